/** Delivers the events of one run until it is killed; see `kill.test.ts`. */
import { FileStore, RunEngine } from 'runwright/agent'
import { Webhooks } from '../../../lib/server/webhooks/webhooks.js'
import { SECRET } from './receiver.js'

const [folder = '', url = ''] = process.argv.slice(2)
const store = new FileStore({ directory: `${folder}/runs` })
const engine = await RunEngine.open({ store, roots: [folder], sealedChecks: 'off' })
await Webhooks.open(engine, {
  directory: `${folder}/webhooks`,
  endpoints: [{ url, secret: SECRET, allowPrivate: true }],
  onFailure: () => {},
})
const { runs } = await engine.list()
// A goal that is met at once: the run ends by itself.
if (runs.length === 0) await engine.create({ goal: 'shell: true' })
