/** Repairs a folder over a file store until it is killed; see repair-stops.test.ts. */
import { RunEngine } from '../../../lib/agent/engine.js'
import { FileStore } from '../../../lib/agent/stores/file/file-store.js'

const [directory, cwd] = process.argv.slice(2) as [string, string]
const engine = await RunEngine.open({ store: new FileStore({ directory }), roots: [cwd] })
const { details } = await engine.create({ goal: 'repair', check: 'node --test', cwd })
process.stdout.write(`${details.run_id}\n`)
