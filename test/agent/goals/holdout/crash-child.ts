/**
 * Drives a run with held-out tests over a file store until it ends, and prints its end; dies as
 * soon as it is durable that they are evaluated, if it is told to.
 */
import { readdirSync, writeSync } from 'node:fs'
import { RunEngine } from '../../../../lib/agent/engine.js'
import { FileStore } from '../../../../lib/agent/stores/file/file-store.js'

const { directory, root, dies } = JSON.parse(process.argv[2] ?? '{}') as {
  readonly directory: string
  readonly root: string
  readonly dies: boolean
}
const store = new FileStore({ directory })
const append = store.append.bind(store)
store.append = async (runId, records) => {
  await append(runId, records)
  const begins = records.some(({ kind }) => kind === 'holdout_evaluation')
  if (dies && begins) process.kill(process.pid, 'SIGKILL')
}
const engine = await RunEngine.open({ store, roots: [root], maxRecoveries: 10 })
const { runs } = await engine.list()
const holdout = { files: { 'held/check.sh': 'test -f code' }, command: 'sh held/check.sh' }
const runId =
  runs[0]?.run_id ??
  (await engine.create({ goal: 'shell: test -f code', holdout })).details.run_id
for await (const _ of await engine.subscribe(runId)) continue
const { end_reason, assurance } = await engine.get(runId)
const events = await engine.events(runId, { after: 0, limit: 1_000 })
const evaluations = events.filter(({ kind }) => kind === 'holdout_evaluation').length
await engine.close()
const copies = readdirSync(`${directory}/workspaces/.sealed`)
writeSync(1, JSON.stringify({ end_reason, holdout: assurance?.holdout, evaluations, copies }))
