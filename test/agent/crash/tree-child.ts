/**
 * Drives a tree of runs over a file store until it has ended, or until it kills itself at a write.
 * See trees.test.ts.
 */
import { RunEngine } from '../../../lib/agent/engine.js'
import type { JsonObject } from '../../../lib/internal/json.js'
import type { ModelProvider } from '../../../lib/agent/model-provider.js'
import { FileStore } from '../../../lib/agent/stores/file/file-store.js'
import { defineTool } from '../../../lib/agent/tools/define.js'
import { NO_USAGE } from '../../../lib/agent/usage.js'
import { DyingWrites } from '../../helpers/dying-writes.js'

export interface TreePlan {
  readonly directory: string
  readonly root: string
  readonly request: JsonObject
  /** The number of the write at which it dies; 0 for none. */
  readonly killAt: number
}

const plan = JSON.parse(process.argv[2] ?? '{}') as TreePlan

interface Call {
  readonly tool: string
  readonly args: JsonObject
}

/** `write FILE WORD` is done by writing that file; other goals by the calls of the first turn. */
function firstCalls(goal: string, model: string): readonly Call[] {
  const [, file, word] = /Goal: write (\S+) (\S+)/.exec(goal) ?? []
  const write = (path: string, content: string): Call => ({
    tool: 'write_file',
    args: { path, content },
  })
  if (file !== undefined) return [write(`${file}.txt`, `${word}\n`)]
  const part = (name: string): JsonObject => ({
    goal: `write ${name} ${name}`,
    check: `grep -q ${name} ${name}.txt`,
  })
  if (model === 'boss') return ['a', 'b'].map((name) => ({ tool: 'delegate', args: part(name) }))
  if (model === 'host') return [{ tool: 'work', args: {} }]
  return [write('answer.txt', model === 'bad' ? 'bad\n' : `good ${model}\n`)]
}

let calls = 0
const provider: ModelProvider = {
  id: 'test',
  description: 'of the test',
  isLanguageModel: false,
  suggestions: [],
  create: (name) => ({
    name: `test:${name}`,
    isLanguageModel: false,
    contextWindow: null,
    prices: null,
    complete: async ({ messages }) => {
      const isFirst = messages.every(({ role }) => role !== 'assistant')
      const [first] = messages
      const goal = first?.role === 'user' ? first.text : ''
      const asked = isFirst ? firstCalls(goal, name) : []
      const ids = asked.map((call) => ({ call_id: `c${process.pid}_${++calls}`, ...call }))
      return await Promise.resolve({
        message: { role: 'assistant', text: 'now', calls: ids },
        reasoning: '',
        usage: { ...NO_USAGE, input_tokens: 1, output_tokens: 1 },
        stop: asked.length > 0 ? 'tool_calls' : 'end',
      })
    },
  }),
}

const work = defineTool({
  name: 'work',
  description: 'starts two runs',
  parameters: { type: 'object', properties: {} },
  effect: 'idempotent',
  plan: () => Promise.resolve({}),
  verify: () => Promise.resolve('undone'),
  execute: async (_, { startRun }) => {
    const part = (name: string): { goal: string; check: string } => ({
      goal: `write ${name} ${name}`,
      check: `grep -q ${name} ${name}.txt`,
    })
    const results = await Promise.all([startRun(part('a')), startRun(part('b'))])
    return results.map(({ status }) => status).join(' ')
  },
})

const store = new FileStore({ directory: plan.directory })
const writes = await DyingWrites.of(store, plan.root, plan.killAt)
const engine = await RunEngine.open({
  store,
  roots: [plan.root],
  sealedChecks: 'off',
  providers: [provider],
  defaultModel: 'test:good',
  tools: [work],
  delegation: { depth: 1, children: 4 },
  maxRecoveries: 100,
  maxConcurrentRuns: 2,
})
writes.begin()
const { details } = await engine.create(plan.request, { idempotencyKey: 'tree' })
for await (const _ of await engine.subscribe(details.run_id)) void _
await engine.close()
