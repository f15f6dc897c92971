/** Child processes that use a run in PostgreSQL; tests start them by `Children`. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { PostgresStore, RunEngine } from 'runwright/agent'
import { createRunService, drainOnSignal } from 'runwright/server'
import { testProvider } from '../../helpers/engine.js'
import type { Life } from '../../helpers/mortal-child.js'
import { poolTo, type Connection } from './postgres.js'

/** A database, and folders. */
export interface Place {
  readonly connection: Connection
  readonly schema: string
  readonly root: string
  readonly workspaceFolder: string
  readonly leaseMs: number
}

/** Writes when it is told to stop, and has a process that writes until it is killed. */
const LAST = [
  'rm gone', 'chmod +x a', "trap 'echo stopped > c; exit' TERM",
  "(setsid sh -c 'while :; do date +%N > stray; sleep 0.01; done' &)", 'sleep 600 & wait',
].join('\n')
const TURNS = [
  [{ tool: 'write_file', args: { path: 'a', content: 'new a\n' } }],
  [],
  [{ tool: 'write_file', args: { path: 'b', content: 'half\n' } }],
  [{ tool: 'bash', args: { command: LAST } }],
]

/**
 * Drives a run: one whole iteration, then half of one, in which a command never ends. SIGTERM
 * closes the engine.
 */
export async function driveHalfWay(place: Place): Promise<void> {
  const { connection, schema, root, workspaceFolder, leaseMs } = place
  const pool = new pg.Pool(connection)
  const engine = await RunEngine.open({
    store: new PostgresStore({ pool, schema, leaseMs, labels: ['worker'] }),
    roots: [root],
    sealedChecks: 'off',
    workspaceFolder,
    providers: [
      testProvider((_, turn) => ({
        // Not those of the process that takes over.
        calls: (TURNS[turn] ?? []).map((call) => ({ call_id: `half-way-${turn}`, ...call })),
      })),
    ],
  })
  /** What is closed must not keep the process alive. */
  const close = async (): Promise<void> => {
    await engine.close()
    await pool.end()
    const left = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout')
    if (left.length > 0) throw new Error('a timer goes on after the engine was closed')
  }
  process.once('SIGTERM', () => void close())
}

export interface OperationPlan extends Place {
  readonly runId: string
  readonly operation: 'restore' | 'apply'
  readonly request: { readonly checkpoint_id?: string }
}

/** Restores a checkpoint of a run, or applies the changes of one. Steps: writes. */
export async function operate(plan: OperationPlan, life: Life): Promise<void> {
  const { connection, schema, root, workspaceFolder, leaseMs, runId, operation, request } = plan
  const pool = new pg.Pool(connection)
  const store = new PostgresStore({ pool, schema, leaseMs })
  life.countAppends(store)
  await life.countFiles()
  const engine = await RunEngine.open({ store, roots: [root], workspaceFolder })
  life.begin()
  await engine.workspaces[operation](runId, request).catch((error: { code?: unknown }) => {
    // The machine was too slow for the lease, and another process goes on as after a death.
    if (error.code !== 'ERR_AGENT_CLAIM_LOST') throw error
    life.die()
  })
  await engine.close()
  await pool.end()
}

/** Serves, set up as the documentation says, and says its port. */
export async function serve(
  { connection, schema, root }: Pick<Place, 'connection' | 'schema' | 'root'>,
  life: Life,
): Promise<void> {
  // Idle connections keep a process alive until this time is over.
  const pool = poolTo(connection, { idleTimeoutMillis: 3_600_000 })
  const service = await createRunService({
    engine: { store: new PostgresStore({ pool, schema }), roots: [root] },
  })
  const server = createServer(service.handler)
  service.attach(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  drainOnSignal(service, [server], { graceMs: 1_000, onClosed: () => pool.end() })
  life.say(`${(server.address() as AddressInfo).port}`)
}
