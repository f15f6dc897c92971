/**
 * A process that drives trees of runs of a PostgreSQL store until a signal ends it. What its models
 * do follows from their names and goals; see `tree-plans.ts`. Each call of `add_line` leaves its id
 * in a file, which reveals calls that ran twice. Bundled: only relative imports work here.
 *
 * Argument: JSON of {@link TreeWorkerOptions}. Prints `ready`.
 */
import { appendFileSync, writeSync } from 'node:fs'
import pg from 'pg'
import type { JsonObject } from '../../../lib/internal/json.js'
import type { ModelRequest } from '../../../lib/agent/model.js'
import { defineTool, NO_USAGE, PostgresStore, RunEngine } from './worker-library.js'
import type { WorkerOptions } from './worker.js'

export interface TreeWorkerOptions extends WorkerOptions {
  /** The folder of the copies, which all workers share. */
  readonly copies: string
}

interface Call {
  readonly tool: string
  readonly args: JsonObject
}

const options = JSON.parse(process.argv[2] ?? '{}') as TreeWorkerOptions
const pool = new pg.Pool({ ...options.connection, application_name: `worker-${process.pid}` })
pool.on('error', () => undefined)

const addLine = defineTool({
  name: 'add_line',
  description: 'Adds a line to a file that names the run.',
  parameters: { type: 'object', properties: { file: { type: 'string' } }, required: ['file'] },
  async execute({ file }, { callId, runId, workspace }) {
    appendFileSync(options.marks, `${runId} ${callId}\n`)
    const path = await workspace.resolve(String(file), { forWriting: true })
    appendFileSync(path, `line of ${runId}\n`)
    return 'added'
  },
})

const work = defineTool({
  name: 'work',
  description: 'Starts three runs, the third after the first two.',
  parameters: { type: 'object', properties: {} },
  effect: 'idempotent',
  plan: () => Promise.resolve({}),
  verify: () => Promise.resolve('undone'),
  execute: async (_, { startRun }) => {
    const [a, b] = [part('a.txt'), part('b.txt')]
    const first = await Promise.all([startRun(a), startRun({ ...b, model_name: 'test:late' })])
    const last = await startRun(part('shared.txt'))
    return [...first, last].map(({ status }) => status).join(' ')
  },
})

type Part = { readonly goal: string; readonly check: string; readonly max_iterations: number }

function part(file: string): Part {
  return { goal: `lines ${file}`, check: `grep -q line ${file}`, max_iterations: 8 }
}

const line = (file: string): Call => ({ tool: 'add_line', args: { file } })
const delegate = (args: JsonObject): Call => ({ tool: 'delegate', args })

/** What a model calls after `turns` turns with calls. */
function callsOf(model: string, goal: string, turns: number): readonly Call[] {
  const [, asked] = /Goal: lines (\S+)/.exec(goal) ?? []
  const file = asked ?? 'story.txt'
  if (model === 'late' && turns === 0)
    return [{ tool: 'bash', args: { command: 'sleep 600 > /dev/null 2>&1 & echo started' } }]
  if (asked !== undefined && asked !== 'team') return [line(file)]
  const endless = { goal: 'lines notes.txt', check: 'false', max_iterations: 200 }
  switch (model) {
    case 'bad':
    case 'endless':
      return [line('notes.txt')]
    case 'long':
      return [line(file), line(file)]
    case 'boss':
      return asked === 'team'
        ? ['c.txt', 'd.txt'].map((one) => delegate(part(one)))
        : ['a.txt', 'b.txt', 'shared.txt', 'shared.txt'].map((one) => delegate(part(one)))
    case 'chief': {
      const team = { goal: 'lines team', check: 'cat c.txt d.txt', max_iterations: 4 }
      return [delegate(part('a.txt')), delegate(team)]
    }
    case 'drain':
      return [delegate(endless), delegate(endless)]
    case 'host':
      return [{ tool: 'work', args: {} }]
    default:
      return [line(file)]
  }
}

function answer(model: string, { messages }: ModelRequest): readonly Call[] {
  if (messages.at(-1)?.role === 'tool') return []
  const turns = messages.filter((one) => one.role === 'assistant' && one.calls.length > 0).length
  const [first] = messages
  const goal = first?.role === 'user' ? first.text : ''
  // The chief and the members of its team have the same model.
  const role = model === 'chief' && goal.includes('Goal: lines team') ? 'boss' : model
  return callsOf(role, goal, turns)
}

await RunEngine.open({
  store: new PostgresStore({
    pool,
    schema: options.schema,
    leaseMs: options.leaseMs,
    patienceMs: options.patienceMs,
    labels: ['worker'],
    labelsFor: () => ['worker'],
    statementTimeoutMs: 5_000,
  }),
  roots: [options.root],
  workspaceFolder: options.copies,
  sealedChecks: 'off',
  maxConcurrentRuns: options.slots,
  maxRecoveries: 1_000,
  tools: [addLine, work],
  delegation: { depth: 3, children: 16 },
  detectStuck: false,
  defaultModel: 'test:line',
  providers: [
    {
      id: 'test',
      description: 'does what its name says',
      isLanguageModel: false,
      suggestions: [],
      create: (name) => ({
        name: `test:${name}`,
        isLanguageModel: false,
        contextWindow: null,
        prices: { input: 1, output: 1, as_of: '2026-01-01' },
        complete: async (request) => {
          const calls = answer(name, request).map((call) => ({
            call_id: `c-${crypto.randomUUID()}`,
            ...call,
          }))
          return await Promise.resolve({
            message: { role: 'assistant', text: '', calls },
            reasoning: '',
            usage: { ...NO_USAGE, input_tokens: 2, output_tokens: 1 },
            stop: calls.length > 0 ? 'tool_calls' : 'end',
          })
        },
      }),
    },
  ],
})
writeSync(1, 'ready\n')
