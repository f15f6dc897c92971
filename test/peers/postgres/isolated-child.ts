/**
 * Drives a run in PostgreSQL: one whole iteration, then half of one, in which a command never ends.
 * SIGTERM closes the engine. Bundled: only relative imports work here. Argument: JSON of
 * {@link ChildOptions}.
 */
import pg from 'pg'
import type { Connection } from './postgres.js'
import { NO_USAGE, PostgresStore, RunEngine } from './worker-library.js'

export interface ChildOptions {
  readonly connection: Connection
  readonly schema: string
  readonly root: string
  readonly workspaceFolder: string
  readonly leaseMs: number
}

const options = JSON.parse(process.argv[2] ?? '{}') as ChildOptions
const { connection, schema, root, workspaceFolder, leaseMs } = options
/** Writes when it is told to stop, and has a process that writes until it is killed. */
const LAST = [
  'rm gone', 'chmod +x a', "trap 'echo stopped > c; exit' TERM",
  "(setsid sh -c 'while :; do date +%N > stray; sleep 0.01; done' &)", 'sleep 600 & wait',
].join('\n')
const turns = [
  [{ tool: 'write_file', args: { path: 'a', content: 'new a\n' } }],
  [],
  [{ tool: 'write_file', args: { path: 'b', content: 'half\n' } }],
  [{ tool: 'bash', args: { command: LAST } }],
]
const pool = new pg.Pool(connection)
const engine = await RunEngine.open({
  store: new PostgresStore({ pool, schema, leaseMs, labels: ['worker'] }),
  roots: [root],
  sealedChecks: 'off',
  workspaceFolder,
  providers: [
    {
      id: 'test',
      description: 'turns of the test',
      isLanguageModel: false,
      suggestions: ['m'],
      create: () => ({
        name: 'test:m',
        isLanguageModel: false,
        contextWindow: null,
        prices: null,
        complete: async () => {
          const calls = (turns.shift() ?? []).map((call, i) => ({
            call_id: `c${turns.length}-${i}`,
            ...call,
          }))
          return {
            message: { role: 'assistant', text: '', calls },
            reasoning: '',
            usage: NO_USAGE,
            stop: calls.length > 0 ? 'tool_calls' : 'end',
          }
        },
      }),
    },
  ],
})
/** What is closed must not keep the process alive. */
async function close(): Promise<void> {
  await engine.close()
  await pool.end()
  const left = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout')
  if (left.length > 0) throw new Error('a timer goes on after the engine was closed')
}
process.once('SIGTERM', () => void close())
