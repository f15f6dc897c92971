/**
 * Restores a checkpoint of a run in PostgreSQL, or applies the changes of one, and kills itself at
 * a write. Bundled: only relative imports work here. Argument: JSON of {@link RestoreOptions}.
 */
import pg from 'pg'
import { DyingWrites } from '../../helpers/dying-writes.js'
import type { Connection } from './postgres.js'
import { PostgresStore, RunEngine } from './worker-library.js'

export interface RestoreOptions {
  readonly connection: Connection
  readonly schema: string
  readonly root: string
  readonly workspaceFolder: string
  readonly leaseMs: number
  readonly runId: string
  readonly operation: 'restore' | 'apply'
  readonly request: { readonly checkpoint_id?: string }
  /** The write at which to die, from 1. */
  readonly killAt: number
}

const options = JSON.parse(process.argv[2] ?? '{}') as RestoreOptions
const { connection, schema, root, workspaceFolder, leaseMs, runId, operation, request } = options
const pool = new pg.Pool(connection)
const store = new PostgresStore({ pool, schema, leaseMs })
const writes = await DyingWrites.of(store, root, options.killAt)
const engine = await RunEngine.open({ store, roots: [root], workspaceFolder })
writes.begin()
await engine.workspaces[operation](runId, request).catch((error: { code?: unknown }) => {
  // The machine was too slow for the lease, and another process goes on as after a death.
  if (error.code !== 'ERR_AGENT_CLAIM_LOST') throw error
  process.kill(process.pid, 'SIGKILL')
})
await engine.close()
await pool.end()
