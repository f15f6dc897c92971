import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  anthropicAdapter,
  createHttpProvider,
  geminiAdapter,
  openAiChatAdapter,
  openAiResponsesAdapter,
  type AgentEvent,
  type ModelAdapter,
} from 'runwright/agent'
import { openEngine, runToEnd, scratch } from '../../helpers/engine.js'
import { failingExecutor } from '../../helpers/executor.js'
import { KEY_SHAPED } from '../../helpers/hostile-turn.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { serve } from '../../helpers/serve.js'

/** JSON of a value nested this deep: JSON.stringify would overflow the stack. */
const deep = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`

/** The JSON of one answer, plain or as the events of a stream. */
type Wire = (args: string, id: string, name: string, stop?: string) => string | string[]

interface Provider {
  readonly adapter: ModelAdapter
  readonly plain: Wire
  readonly streamed: Wire
}

const text = JSON.stringify
const chatCall: Wire = (args, id, name) =>
  `{"index":0,"id":${text(id)},"type":"function","function":{"name":${text(name)},"arguments":` +
  `${text(args)}}}`
const item: Wire = (args, id, name) =>
  `{"type":"function_call","call_id":${text(id)},"name":${text(name)},"arguments":${text(args)}}`
const gemini: Wire = (args, id, name, stop = 'STOP') =>
  `{"candidates":[{"content":{"parts":[{"functionCall":{"id":${text(id)},"name":${text(name)},` +
  `"args":${args}}}]},"finishReason":${text(stop)}}]}`

const PROVIDERS: Readonly<Record<string, Provider>> = {
  'openai chat': {
    adapter: openAiChatAdapter(),
    plain: (args, id, name, stop = 'tool_calls') =>
      `{"choices":[{"finish_reason":${text(stop)},"message":{"role":"assistant","content":"",` +
      `"tool_calls":[${chatCall(args, id, name)}]}}]}`,
    streamed: (args, id, name, stop = 'tool_calls') => [
      `{"choices":[{"index":0,"delta":{"tool_calls":[${chatCall(args, id, name)}]}}]}`,
      `{"choices":[{"index":0,"delta":{"__proto__":{"x":1}},"finish_reason":${text(stop)}}]}`,
      '[DONE]',
    ],
  },
  'openai responses': {
    adapter: openAiResponsesAdapter(),
    plain: (args, id, name, stop = 'completed') =>
      `{"status":${text(stop)},"output":[${item(args, id, name)}]}`,
    streamed: (args, id, name, stop = 'completed') => [
      `{"type":"response.output_item.done","output_index":0,"item":${item(args, id, name)}}`,
      `{"type":"response.completed","response":{"status":${text(stop)},"output":[]}}`,
    ],
  },
  anthropic: {
    adapter: anthropicAdapter(),
    plain: (args, id, name, stop = 'tool_use') =>
      `{"type":"message","stop_reason":${text(stop)},"content":[{"type":"tool_use","id":` +
      `${text(id)},"name":${text(name)},"input":${args}}]}`,
    streamed: (args, id, name, stop = 'tool_use') => [
      `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":` +
        `${text(id)},"name":${text(name)},"input":{}}}`,
      `{"type":"content_block_delta","index":0,"delta":{"type":"constructor"}}`,
      `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta",` +
        `"partial_json":${text(args)}}}`,
      `{"type":"message_delta","delta":{"stop_reason":${text(stop)}}}`,
      '{"type":"message_stop"}',
    ],
  },
  gemini: {
    adapter: geminiAdapter(),
    plain: gemini,
    streamed: (...call) => [gemini(...call) as string],
  },
  'gemini as a list': {
    adapter: geminiAdapter(),
    plain: (...call) => `[${gemini(...call) as string}]`,
    streamed: (...call) => [gemini(...call) as string],
  },
}

const NAME = 'read_file'
const ID = 'call_abcdefgh0123'
const HOSTILE: readonly { what: string; call: Parameters<Wire>; said: RegExp }[] = [
  {
    what: 'arguments nested 5 000 deep',
    call: [deep(5_000), ID, NAME],
    said: /nested more than 64 levels deep. Nothing was run/,
  },
  {
    what: 'arguments nested 100 000 deep',
    call: [deep(100_000), ID, NAME],
    said: /nested more than 64 levels deep/,
  },
  {
    what: 'arguments of very many values',
    call: [`{"path":[${'1,'.repeat(20_000)}1]}`, ID, NAME],
    said: /more than 20000 values. Nothing was run/,
  },
  {
    what: 'an id of the shape of a key',
    call: ['{"path":"none"}', KEY_SHAPED, NAME],
    said: /none does not exist|no such file|ENOENT/,
  },
  {
    what: 'a number that is too large',
    call: ['{"path":"x","limit":1e999}', ID, NAME],
    said: /a number that JSON cannot represent/,
  },
  {
    what: 'half of a character',
    call: ['{"path":"\\ud800"}', ID, NAME],
    said: /half of a character/,
  },
  {
    what: 'a field named __proto__',
    call: ['{"path":"x","__proto__":{"y":1}}', ID, NAME],
    said: /a field named __proto__/,
  },
  {
    what: 'a tool named constructor, and its reason to stop',
    call: ['{}', 'constructor', 'constructor', 'constructor'],
    said: /There is no tool constructor/,
  },
  {
    what: 'a tool of the shape of a key',
    call: ['{}', ID, KEY_SHAPED],
    said: /There is no tool \[secret removed\]/,
  },
]

const outputs = (events: readonly AgentEvent[]): string[] =>
  events.flatMap((event) => (event.kind === 'tool_result' ? [event.payload.output] : []))

for (const [provider, { adapter, plain, streamed }] of Object.entries(PROVIDERS)) {
  for (const stream of [false, true]) {
    test(`hostile calls of ${provider}, ${stream ? '' : 'not '}streamed, get a result`, async (t) => {
      for (const { what, call, said } of HOSTILE) {
        const wire = stream ? streamed(...call) : plain(...call)
        const events = Array.isArray(wire) ? wire.map((data) => `data: ${data}\n\n`).join('') : wire
        await using served = await serve((request, response) => {
          request.resume()
          const type = stream ? 'text/event-stream' : 'application/json'
          response.writeHead(200, { 'content-type': type }).end(events)
        })
        await using models = createHttpProvider(adapter, {
          id: 'fake',
          baseUrl: served.origin,
          stream,
        })
        const { engine } = await openEngine(t, {
          providers: [models],
          defaultModel: 'fake:m',
          executor: failingExecutor,
        })
        const run = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
        assertInvariants(run.events)
        assert.match(outputs(run.events)[0] ?? 'no result', said, `${provider}: ${what}`)
        assert.ok(!JSON.stringify(run.events).includes(KEY_SHAPED), what)
        await engine.delete(run.details.run_id)
      }
    })
  }
}

test('hostile calls of a script get a result', async (t) => {
  const scripts = scratch(t)
  for (const [index, { what, call, said }] of HOSTILE.entries()) {
    const [args, id, name] = call
    const calls = `[{"tool":${text(name)},"args":${args},"call_id":${text(id)}}]`
    writeFileSync(join(scripts, `${index}.json`), `{"turns":[{"calls":${calls}},{}]}`)
    const { engine } = await openEngine(t, {
      scripts,
      defaultModel: `scripted:${index}.json`,
      executor: failingExecutor,
    })
    const run = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
    assertInvariants(run.events)
    assert.match(outputs(run.events)[0] ?? 'no result', said, what)
  }
})
