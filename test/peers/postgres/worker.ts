/**
 * A process that claims runs from a PostgreSQL store and drives them with a model that calls one
 * unsafe tool in each iteration. The tool appends its call's id to a file, which reveals calls that
 * ran twice. It runs until a signal ends it. Bundled: only relative imports work here.
 *
 * Argument: JSON of {@link WorkerOptions}. Prints `ready`.
 */
import { appendFileSync, writeSync } from 'node:fs'
import pg from 'pg'
import * as current from './worker-library.js'

export interface WorkerOptions {
  readonly port: number
  readonly schema: string
  readonly root: string
  /** The file to which the unsafe tool appends. */
  readonly marks: string
  readonly leaseMs: number
  readonly patienceMs: number
  readonly slots: number
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
const pool = new pg.Pool({
  host: '127.0.0.1',
  port: options.port,
  user: 'runwright',
  database: 'postgres',
})
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

await RunEngine.open({
  store: new PostgresStore({
    pool,
    schema: options.schema,
    leaseMs: options.leaseMs,
    patienceMs: options.patienceMs,
    labels: ['worker'],
    statementTimeoutMs: 5_000,
  }),
  roots: [options.root],
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
              : [{ call_id: `c-${crypto.randomUUID()}`, tool: 'mark', args: {} }]
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
writeSync(1, 'ready\n')
