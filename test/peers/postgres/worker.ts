/**
 * A process that claims runs from a PostgreSQL store and drives them with a model that calls one
 * unsafe tool, or a command, in each iteration. The tool appends its call's id to a file, which
 * reveals calls that ran twice. It runs until a signal ends it. Bundled: only relative imports work
 * here.
 *
 * Argument: JSON of {@link WorkerOptions}. Prints `ready`.
 */
import { appendFileSync, writeSync } from 'node:fs'
import pg from 'pg'
import type { SealedMode } from '../../../lib/agent/events.js'
import type { Connection } from './postgres.js'
import * as current from './worker-library.js'

export interface WorkerOptions {
  readonly connection: Connection
  readonly schema: string
  readonly root: string
  /** The file to which the unsafe tool appends. */
  readonly marks: string
  readonly leaseMs: number
  readonly patienceMs: number
  readonly slots: number
  /** The model asks for this command in place of the unsafe tool. */
  readonly command?: string | undefined
  /** Default `off`: a copy for each first check has tests of its own. Not for other versions. */
  readonly sealedChecks?: SealedMode | undefined
  /** A bundle of another version to use in place of this one. */
  readonly library?: string | undefined
}

const options = JSON.parse(process.argv[2] ?? '{}') as WorkerOptions
const { defineTool, NO_USAGE, PostgresStore, RunEngine } = {
  ...current,
  ...(options.library === undefined
    ? undefined
    : ((await import(options.library)) as Partial<typeof current>)),
}
const pool = new pg.Pool(options.connection)
pool.on('error', () => undefined)

const mark = defineTool({
  name: 'mark',
  description: 'Records that it was called.',
  parameters: { type: 'object', properties: {} },
  async execute(_, { callId, signal }) {
    appendFileSync(options.marks, `${callId}\n`)
    for (let turns = 0; turns < 20 && !signal.aborted; turns++) {
      await new Promise((resolve) => setImmediate(resolve))
    }
    return 'recorded'
  },
})

const { command } = options
const call =
  command === undefined ? { tool: 'mark', args: {} } : { tool: 'bash', args: { command } }

const engine = await RunEngine.open({
  store: new PostgresStore({
    pool,
    schema: options.schema,
    leaseMs: options.leaseMs,
    patienceMs: options.patienceMs,
    labels: ['worker'],
    statementTimeoutMs: 5_000,
  }),
  roots: [options.root],
  ...(options.library === undefined && { sealedChecks: options.sealedChecks ?? 'off' }),
  maxConcurrentRuns: options.slots,
  tools: [mark],
  detectStuck: false,
  defaultModel: 'test:m',
  providers: [
    {
      id: 'test',
      description: 'requests one call, then none',
      isLanguageModel: false,
      suggestions: ['m'],
      create: () => ({
        name: 'test:m',
        isLanguageModel: false,
        contextWindow: null,
        prices: { input: 1, output: 1, as_of: '2026-01-01' },
        complete: async ({ messages }) => {
          const last = messages.at(-1)
          const calls =
            last?.role === 'tool'
              ? []
              : [{ call_id: `c-${crypto.randomUUID()}`, ...call }]
          return {
            message: { role: 'assistant', text: '', calls },
            reasoning: '',
            usage: { ...NO_USAGE, input_tokens: 2, output_tokens: 1 },
            stop: calls.length > 0 ? 'tool_calls' : 'end',
          }
        },
      }),
    },
  ],
})

const followed = new Set<string>()

/** Follows a run that is driven here; a stream that ends without `run_end` is a failure. */
async function follow(runId: string): Promise<void> {
  if (followed.has(runId)) return
  followed.add(runId)
  const reader = await engine.subscribe(runId)
  let last = ''
  for await (const batch of reader) last = batch.at(-1)?.kind ?? last
  if (reader.end !== 'run_end' || last === 'run_end') return
  writeSync(2, `the stream of ${runId} ended as if it were complete, after ${last}\n`)
  process.exit(3)
}

engine.observe(({ details }) => void follow(details.run_id).catch(() => undefined))
writeSync(1, 'ready\n')
