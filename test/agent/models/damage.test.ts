import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  anthropicAdapter,
  geminiAdapter,
  ModelError,
  openAiChatAdapter,
  openAiResponsesAdapter,
  type ModelAdapter,
  type ModelTurn,
} from 'runwright/agent'
import { SseParser } from 'runwright/http'
import { providerError } from '../../../lib/agent/models/provider-errors.js'
import { afterCalls, context, modelRequest, recording, seeded } from './exchange.js'

/** Values that may replace any other. */
const SCALARS = [null, 0, -1, 1e400, '', 'x', '{', true]
const REPLACEMENTS = [...SCALARS, [], {}, [[]], { error: 1 }, ['a', null]]

/** A copy of `value` with one random part replaced or removed. */
function damage(value: unknown, random: () => number): unknown {
  const copy = structuredClone(value)
  const places: (() => void)[] = []
  const visit = (at: unknown): void => {
    if (typeof at !== 'object' || at === null) return
    const holder = at as Record<string, unknown>
    for (const key of Object.keys(holder)) {
      places.push(() => {
        const replacement = REPLACEMENTS[Math.floor(random() * (REPLACEMENTS.length + 1))]
        if (replacement === undefined && Array.isArray(at)) at.splice(Number(key), 1)
        else if (replacement === undefined) delete holder[key]
        else holder[key] = replacement
      })
      visit(holder[key])
    }
  }
  visit(copy)
  places[Math.floor(random() * places.length)]?.()
  return copy
}

function assertSound(turn: ModelTurn, adapter: ModelAdapter): void {
  const { message, usage } = turn
  assert.equal(typeof message.text, 'string')
  assert.equal(typeof turn.reasoning, 'string')
  for (const count of Object.values(usage)) assert.ok(Number.isSafeInteger(count) && count >= 0)
  assert.ok(
    usage.cached_tokens <= usage.input_tokens && usage.reasoning_tokens <= usage.output_tokens,
  )
  const ids = message.calls.map(({ call_id }) => call_id)
  assert.equal(new Set(ids).size, ids.length)
  for (const { args, tool, call_id } of message.calls) {
    assert.ok(typeof args === 'object' && args !== null && !Array.isArray(args))
    assert.ok(typeof tool === 'string' && call_id !== '')
  }
  const messages = afterCalls(
    turn,
    message.calls.map(() => ({ output: 'x' })),
  )
  const wire = adapter.encode(modelRequest({ messages }), { model: 'm', stream: true })
  assert.equal(typeof JSON.stringify(wire.body), 'string')
}

/** Decoding must give a valid turn that can be sent back, or a ModelError, and nothing else. */
function decodesOrRefuses(adapter: ModelAdapter, work: () => ModelTurn): void {
  let turn: ModelTurn
  try {
    turn = work()
  } catch (error) {
    assert.ok(error instanceof ModelError, String((error as Error).stack))
    return
  }
  assertSound(turn, adapter)
}

const adapters: Record<string, ModelAdapter> = {
  'openai-chat': openAiChatAdapter(),
  'openai-responses': openAiResponsesAdapter(),
  anthropic: anthropicAdapter(),
  gemini: geminiAdapter(),
}

for (const [name, adapter] of [
  ['openai-chat-plain', adapters['openai-chat']!],
  ['openai-chat-parallel-tools', adapters['openai-chat']!],
  ['openai-responses-tool-call', adapters['openai-responses']!],
  ['anthropic-parallel-tool-use', adapters['anthropic']!],
  ['gemini-function-call', adapters['gemini']!],
] as const) {
  test(`${name}, damaged anywhere, gives a valid turn or a ModelError`, () => {
    const { body } = recording(name).response
    const random = seeded(11)
    for (let i = 0; i < 1_000; i++) {
      const damaged = damage(damage(body, random), random)
      decodesOrRefuses(adapter, () => adapter.decode(damaged, modelRequest(), context))
    }
  })
}

for (const [name, adapter] of [
  ['openai-chat-stream-parallel-tools', adapters['openai-chat']!],
  ['openai-responses-stream-tool-call', adapters['openai-responses']!],
  ['anthropic-stream-thinking', adapters['anthropic']!],
] as const) {
  test(`${name}, with changed events, gives a valid turn or a ModelError`, () => {
    const events = new SseParser().feed(String(recording(name).response.body))
    const short = [...events.slice(0, 8), ...events.slice(-8)]
    const random = seeded(12)
    for (let i = 0; i < 400; i++) {
      const list = [...short]
      const at = Math.floor(random() * list.length)
      const hit = list[at]!
      const kind = Math.floor(random() * 4)
      if (kind === 0) list.splice(at, 1)
      else if (kind === 1) list.splice(at, 0, hit)
      else if (kind === 2) list.splice(at, 2, list[at + 1] ?? hit, hit)
      else if (hit.data !== '[DONE]') {
        list[at] = { ...hit, data: JSON.stringify(damage(JSON.parse(hit.data), random)) }
      }
      decodesOrRefuses(adapter, () => {
        const decoder = adapter.decodeStream(modelRequest(), context)
        for (const event of list) if (!decoder.done) decoder.push(event)
        return decoder.finish()
      })
    }
  })
}

test('an error response, damaged anywhere, still becomes a ModelError with a message', () => {
  const random = seeded(13)
  const bodies = [
    recording('groq-tool-use-failed-400').response.body,
    { error: { code: 429, status: 'X', message: 'm', details: [{ retryDelay: '1s' }] } },
    { type: 'error', error: { type: 'overloaded_error', message: 'm' } },
    { detail: [{ msg: 'x' }] },
  ]
  for (let i = 0; i < 2_000; i++) {
    const body = damage(damage(bodies[i % bodies.length], random), random)
    const error = providerError(
      { status: 400 + (i % 130), header: () => null, body, now: 0 },
      context,
    )
    assert.ok(error.message.startsWith('test:model answered '))
    assert.equal(typeof error.retryable, 'boolean')
  }
})
