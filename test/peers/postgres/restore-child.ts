/**
 * Restores a checkpoint of a run in PostgreSQL, and kills itself when a file has been renamed into
 * its place. Bundled: only relative imports work here. Argument: JSON of {@link RestoreOptions}.
 */
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import pg from 'pg'
import { PostgresStore, RunEngine } from './worker-library.js'

export interface RestoreOptions {
  readonly port: number
  readonly schema: string
  readonly root: string
  readonly leaseMs: number
  readonly runId: string
  readonly checkpointId: string
}

const options = JSON.parse(process.argv[2] ?? '{}') as RestoreOptions
const { port, schema, root, leaseMs, runId, checkpointId } = options
const { rename } = promises
promises.rename = async (...given) => {
  await rename(...given)
  process.kill(process.pid, 'SIGKILL')
}
syncBuiltinESMExports()
const pool = new pg.Pool({ host: '127.0.0.1', port, user: 'runwright', database: 'postgres' })
const engine = await RunEngine.open({
  store: new PostgresStore({ pool, schema, leaseMs }),
  roots: [root],
})
await engine.workspaces.restore(runId, { checkpoint_id: checkpointId })
