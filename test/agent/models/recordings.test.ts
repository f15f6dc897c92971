/** Each recorded exchange, answered by a server again: at once, and byte by byte. */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import {
  anthropicAdapter, geminiAdapter, HttpModel, ModelError, openAiChatAdapter, openAiResponsesAdapter,
  type JsonObject, type ModelAdapter, type ModelTurn,
} from 'runwright/agent'
import { AsyncClient } from 'runwright/http'
import { answering, DELIVERIES, type Delivery } from '../../helpers/deliveries.js'
import { modelRequest, recording } from './exchange.js'

/** What is expected of an exchange. */
interface Expected {
  readonly adapter: ModelAdapter
  /** What the model says at first. */
  readonly says?: string
  readonly thinks?: string
  readonly calls?: readonly (readonly [tool: string, args: JsonObject])[]
  /** Input, output, cached and reasoning tokens. */
  readonly usage?: readonly [number, number, number, number]
  /** The message of the error, in place of a turn. */
  readonly fails?: RegExp
  /** Is the error the model's mistake, which it may repair? */
  readonly isMistake?: boolean
}

const chat = openAiChatAdapter()
const responses = openAiResponsesAdapter()
const anthropic = anthropicAdapter()
const RECORDINGS: Readonly<Record<string, Expected>> = {
  'anthropic-parallel-tool-use': {
    adapter: anthropic, says: "I'll help you find out who is the youngest", usage: [423, 202, 0, 0],
    calls: ['Alice', 'Bob', 'Charlie', 'Daisy'].map((name) => ['retrieve_entity_info', { name }]),
  },
  'anthropic-plain': {
    adapter: anthropic, says: 'The capital of France is Paris.', usage: [20, 10, 0, 0],
  },
  'anthropic-stream-thinking': {
    adapter: anthropic, says: 'Here are the basic steps for safely crossing the street',
    thinks: 'This is a straightforward question about pedestrian safety.', usage: [43, 282, 0, 0],
  },
  'gemini-function-call': {
    adapter: geminiAdapter(), calls: [['get_weather', { city: 'Paris' }]], usage: [49, 63, 0, 48],
  },
  'groq-tool-use-failed-400': {
    adapter: chat, isMistake: true,
    fails: /answered 400: .*missing properties: 'name'.*\nWhat the model wrote: \{"name": "get_some/,
  },
  'openai-chat-error-400': {
    adapter: chat, fails: /answered 400: Web search options not supported with this model\.$/,
  },
  'openai-chat-parallel-tools': {
    adapter: chat, usage: [71, 46, 0, 0],
    calls: [['delete_file', { path: '.env' }], ['create_file', { path: 'test.txt' }]],
  },
  'openai-chat-plain': {
    adapter: chat, says: 'The capital of France is Paris.', usage: [24, 8, 0, 0],
  },
  'openai-chat-stream-parallel-tools': {
    adapter: chat, calls: [['get_country', {}], ['get_product_name', {}]], usage: [364, 40, 0, 0],
  },
  'openai-chat-tool-call': {
    adapter: chat, calls: [['get_weather', { city: 'Paris' }]], usage: [132, 23, 0, 0],
  },
  'openai-responses-stream-tool-call': {
    adapter: responses, calls: [['get_capital', { country: 'France' }]], usage: [255, 16, 0, 0],
  },
  'openai-responses-tool-call': {
    adapter: responses, calls: [['get_capital', { country: 'PotatoLand' }]], usage: [40, 18, 0, 0],
  },
}

interface Outcome {
  readonly turn: ModelTurn | null
  readonly error: ModelError | null
  /** The text that was emitted while the answer came. */
  readonly visible: string
}

async function replay(name: string, adapter: ModelAdapter, delivery: Delivery): Promise<Outcome> {
  const { status, headers, body } = recording(name).response
  await using server = await answering([{ status, headers, body }], delivery)
  await using model = new HttpModel(adapter, {
    model: 'm', baseUrl: server.origin, transport: server.transport,
    stream: typeof body === 'string',
  })
  let visible = ''
  const onDelta = (text: string): void => void (visible += text)
  const call = model.complete(modelRequest({ onDelta }))
  const error = await call.then(() => null, (reason: unknown) => reason)
  assert.ok(error === null || error instanceof ModelError, String(error))
  return { turn: error === null ? await call : null, error, visible }
}

function assertExpected({ turn, error, visible }: Outcome, expected: Expected): void {
  const { says = '', thinks = '', calls = [], usage, fails } = expected
  assert.equal(turn === null, fails !== undefined, error?.message)
  if (fails !== undefined) {
    assert.match(error?.message ?? '', fails)
    assert.equal(error?.modelMistake, expected.isMistake === true)
    assert.equal(error?.retryable, false)
    return
  }
  assert.ok(turn!.message.text.startsWith(says) && turn!.reasoning.startsWith(thinks))
  assert.deepEqual(turn!.message.calls.map(({ tool, args }) => [tool, args]), calls)
  assert.ok(turn!.message.calls.every((call) => call.error === undefined))
  assert.deepEqual(Object.values(turn!.usage), usage)
  assert.equal(turn!.stop, calls.length > 0 ? 'tool_calls' : 'end')
  if (visible !== '') assert.equal(visible, turn!.message.text)
}

test('byte by byte, each byte arrives alone', async () => {
  await using server = await answering([{ body: 'data: \u00e4\n\n' }], 'byte by byte')
  await using client = new AsyncClient({ transport: server.transport })
  await using response = await client.stream('GET', server.origin)
  const sizes = []
  for await (const chunk of response.iterBytes()) sizes.push(chunk.length)
  assert.deepEqual(sizes, Array.from({ length: 10 }, () => 1))
})

test('every recorded exchange is in the table, and nothing else', () => {
  const files = readdirSync(new URL('../../fixtures/models', import.meta.url))
  const named = files.filter((file) => file.endsWith('.json')).map((file) => file.slice(0, -5))
  assert.deepEqual(named.sort(), Object.keys(RECORDINGS).sort())
})

for (const [name, expected] of Object.entries(RECORDINGS)) {
  test(`${name} gives the same at once and byte by byte`, async () => {
    const outcomes = []
    for (const delivery of DELIVERIES) {
      const outcome = await replay(name, expected.adapter, delivery)
      assertExpected(outcome, expected)
      outcomes.push(outcome)
    }
    assert.deepEqual(outcomes[1], outcomes[0])
  })
}
