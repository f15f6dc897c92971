/** Talks to a fork until it has ended, or this process has killed itself; see talk.test.ts. */
import { writeSync } from 'node:fs'
import { killAtWrite } from '../../helpers/kill-at-write.js'
import { RunEngine } from '../../../lib/agent/engine.js'
import { FileStore } from '../../../lib/agent/stores/file/file-store.js'
import { talk, talkProvider, type TalkPlan } from './talk.js'

const plan = JSON.parse(process.argv[2] ?? '{}') as TalkPlan
const { directory, root, at, killAt } = plan
const store = new FileStore({ directory })
const { begin, count } = await killAtWrite(store, directory, killAt)
const engine = await RunEngine.open({
  store, roots: [root], providers: [talkProvider(at)], defaultModel: 'talk:m',
  sealedChecks: 'off',
})
begin()
await talk(engine, plan, (line) => void writeSync(1, `${line}\n`))
writeSync(1, `done ${count()}\n`)
await engine.close()
