import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ModelError, type JsonObject } from 'runwright/agent'
import { OpenAiChatStream } from '../../../lib/agent/models/openai/chat-stream.js'
import {
  context,
  cutsInTwo,
  decodeEvents,
  decodePieces,
  modelRequest,
  prefixes,
  randomPieces,
  recording,
  seeded,
} from './exchange.js'

test('a recorded stream gives the same turn wherever it is split', () => {
  const text = String(recording('openai-chat-stream-parallel-tools').response.body)
  const decode = (pieces: Iterable<Uint8Array>) =>
    decodePieces(new OpenAiChatStream(modelRequest(), context), pieces).turn
  const whole = decode([Buffer.from(text)])
  assert.deepEqual(whole.message.calls, [
    { call_id: 'call_0001scrubbed', tool: 'get_country', args: {} },
    { call_id: 'call_0002scrubbed', tool: 'get_product_name', args: {} },
  ])
  assert.deepEqual(whole.usage, {
    input_tokens: 364,
    output_tokens: 40,
    cached_tokens: 0,
    reasoning_tokens: 0,
  })
  for (const pieces of cutsInTwo(text)) assert.deepEqual(decode(pieces), whole)
  const random = seeded(1)
  for (let i = 0; i < 100; i++) assert.deepEqual(decode(randomPieces(text, random)), whole)
  assert.deepEqual(decode([...Buffer.from(text)].map((byte) => Uint8Array.of(byte))), whole)
})

test('a stream that ends before its finish reason is a retryable error, never a turn', () => {
  const text = String(recording('openai-chat-stream-parallel-tools').response.body)
  const finished = text.indexOf('"finish_reason":"tool_calls"')
  const end = text.indexOf('\n\n', finished) + 2
  for (const prefix of prefixes(text.slice(0, end))) {
    assert.throws(
      () => decodePieces(new OpenAiChatStream(modelRequest(), context), [prefix]),
      (error) => error instanceof ModelError && error.retryable,
    )
  }
})

const chunk = (delta: unknown, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason }],
})
const callDelta = (call: unknown) => chunk({ tool_calls: [call] })
const decodeStream = (events: readonly unknown[]) =>
  decodeEvents(new OpenAiChatStream(modelRequest(), context), events)

const fragment = (
  index: number | undefined,
  id: string | undefined,
  name: string | undefined,
  args?: unknown,
) => ({
  ...(index !== undefined && { index }),
  ...(id !== undefined && { id }),
  function: { ...(name !== undefined && { name }), ...(args !== undefined && { arguments: args }) },
})

for (const { title, deltas } of [
  {
    title: 'distinguished by index',
    deltas: [
      fragment(0, 'call_aaaaaaaa', 'a', ''),
      fragment(1, 'call_bbbbbbbb', 'b', ''),
      fragment(0, undefined, undefined, '{"x":'),
      fragment(1, undefined, undefined, '{"y":2}'),
      fragment(0, undefined, undefined, '1}'),
    ],
  },
  {
    title: 'all with index 0 and their own ids',
    deltas: [
      fragment(0, 'call_aaaaaaaa', 'a', '{"x":1}'),
      fragment(0, 'call_bbbbbbbb', 'b', '{"y":2}'),
    ],
  },
  {
    title: 'all with index 0 and no ids',
    deltas: [fragment(0, '', 'a', '{"x":1}'), fragment(0, '', 'b', '{"y":2}')],
  },
  {
    title: 'without index, with ids repeated on each piece',
    deltas: [
      fragment(undefined, 'call_aaaaaaaa', 'a', '{"x":'),
      fragment(undefined, 'call_aaaaaaaa', undefined, '1}'),
      fragment(undefined, 'call_bbbbbbbb', 'b', '{"y":2}'),
    ],
  },
  {
    title: 'without index and id, complete, with arguments as objects',
    deltas: [
      fragment(undefined, undefined, 'a', { x: 1 }),
      fragment(undefined, undefined, 'b', { y: 2 }),
    ],
  },
  {
    title: 'with the name on every piece',
    deltas: [
      fragment(0, 'call_aaaaaaaa', 'a', '{"x"'),
      fragment(0, 'call_aaaaaaaa', 'a', ':1}'),
      fragment(1, 'call_bbbbbbbb', 'b', '{"y":2}'),
    ],
  },
]) {
  test(`streamed calls ${title} become two calls`, () => {
    const turn = decodeStream([...deltas.map(callDelta), chunk({}, 'stop'), '[DONE]'])
    assert.deepEqual(
      turn.message.calls.map(({ tool: name, args }) => [name, args]),
      [
        ['a', { x: 1 }],
        ['b', { y: 2 }],
      ],
    )
    assert.equal(new Set(turn.message.calls.map(({ call_id }) => call_id)).size, 2)
    assert.equal(turn.stop, 'tool_calls', 'calls decide, not the stop word')
  })
}

test('the same call twice without ids is two calls', () => {
  const call = fragment(0, '', 'list_files', '{}')
  const turn = decodeStream([callDelta(call), callDelta(call), chunk({}, 'stop')])
  assert.equal(turn.message.calls.length, 2)
})

for (const id of ['', 'call_0'])
  test(`deltas that all have the name are one call, with the id ${JSON.stringify(id)}`, () => {
    const args = { text: '}{"\\"]\\', list: [{ a: [] }], '{': 1 }
    for (const index of [undefined, 0]) {
      const deltas = [...JSON.stringify(args)].map((char) => fragment(index, id, 'write', char))
      const turn = decodeStream([...deltas.map(callDelta), chunk({}, 'stop')])
      assert.deepEqual(turn.message.calls.map((call) => call.args), [args])
    }
  })

test('chunks without a choice change nothing, and the last usage counts', () => {
  const turn = decodeStream([
    { choices: [] },
    chunk({ content: 'Hi' }),
    chunk({ content: '' }, 'stop'),
    { choices: [], usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 } },
    '[DONE]',
  ])
  assert.equal(turn.message.text, 'Hi')
  assert.deepEqual(turn.usage, {
    input_tokens: 3,
    output_tokens: 1,
    cached_tokens: 0,
    reasoning_tokens: 0,
  })
})

test('an answer without a finish reason is complete after [DONE]', () => {
  assert.equal(decodeStream([chunk({ content: 'Hi' }), '[DONE]']).message.text, 'Hi')
  assert.throws(() => decodeStream(['[DONE]']), ModelError)
})

for (const { title, event, retryable, code } of [
  {
    title: 'an error besides choices',
    event: { error: { code: 429, message: 'slow down' }, choices: [chunk({}).choices[0]] },
    retryable: true,
    code: 'ERR_AGENT_MODEL_RATE_LIMIT',
  },
  {
    title: 'an error in Groq’s own field',
    event: { choices: [], x_groq: { error: 'over capacity, try again' } },
    retryable: true,
    code: 'ERR_AGENT_MODEL',
  },
  {
    title: 'a stop due to lack of resources',
    event: { choices: [{ delta: {}, finish_reason: 'insufficient_system_resource' }] },
    retryable: true,
    code: 'ERR_AGENT_MODEL',
  },
  {
    title: 'a server error',
    event: { error: { message: 'The server had an error', type: 'server_error' } },
    retryable: true,
    code: 'ERR_AGENT_MODEL',
  },
  {
    title: 'an error as text',
    event: { error: 'model runner has stopped' },
    retryable: true,
    code: 'ERR_AGENT_MODEL',
  },
  {
    title: 'an error in the choice',
    event: { choices: [{ error: { code: 502, message: 'upstream' }, finish_reason: 'error' }] },
    retryable: true,
    code: 'ERR_AGENT_MODEL',
  },
  {
    title: 'a context overflow',
    event: { error: { code: 'context_length_exceeded', message: 'too long' } },
    retryable: false,
    code: 'ERR_AGENT_MODEL_CONTEXT',
  },
  {
    title: 'an invalid request',
    event: { error: { type: 'invalid_request_error', message: 'no' } },
    retryable: false,
    code: 'ERR_AGENT_MODEL',
  },
]) {
  test(`${title} inside a 200 stream is thrown, retryable: ${retryable}`, () => {
    assert.throws(
      () => decodeStream([chunk({ content: 'Par' }), event]),
      (error) =>
        error instanceof ModelError && error.retryable === retryable && error.code === code,
    )
  })
}

test('streamed reasoning, refusals and lists of parts are joined', () => {
  const turn = decodeStream([
    chunk({ role: 'assistant', reasoning_content: 'Let ' }),
    chunk({
      reasoning_content: 'me.',
      reasoning_details: [{ index: 0, type: 'reasoning.text', text: 'Let ' }],
    }),
    chunk({
      reasoning_details: [{ index: 0, type: 'reasoning.text', text: 'me.', signature: 'U0NS' }],
    }),
    chunk({ content: 'Yes' }),
    chunk({}, 'stop'),
  ])
  assert.equal(turn.reasoning, 'Let me.')
  assert.deepEqual((turn.message.parts?.value as JsonObject)['reasoning_details'], [
    { index: 0, type: 'reasoning.text', text: 'Let me.', signature: 'U0NS' },
  ])
  const refused = decodeStream([
    chunk({ refusal: 'I can’t' }),
    chunk({ refusal: ' do that.' }),
    chunk({}, 'stop'),
  ])
  assert.deepEqual([refused.message.text, refused.stop], ['I can’t do that.', 'refusal'])
  const parts = decodeStream([
    chunk({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] }] }),
    chunk({ content: 'An' }),
    chunk({ content: 'swer' }, 'stop'),
  ])
  assert.deepEqual([parts.message.text, parts.reasoning], ['Answer', 'Hm.'])
})
