import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ModelError, type JsonObject, type ModelRequest, type ToolSpec } from 'runwright/agent'
import {
  decodeOpenAiResponsesResponse,
  encodeOpenAiResponsesRequest,
} from '../../../lib/agent/models/openai/responses.js'
import { OpenAiResponsesStream } from '../../../lib/agent/models/openai/responses-stream.js'
import {
  afterCalls,
  context,
  cutsInTwo,
  decodeEvents,
  decodePieces,
  modelRequest,
  prefixes,
  randomPieces,
  recording,
  seeded,
  tool,
} from './exchange.js'

type WireTool = { name: string; description: string | null; parameters: ToolSpec['parameters'] }

function requestOf(body: JsonObject): ModelRequest {
  const input = body['input'] as unknown as { content: string }[]
  const tools = body['tools'] as unknown as WireTool[]
  return modelRequest({
    messages: input.map(({ content }) => ({ role: 'user', text: content })),
    tools: tools.map(({ name, description, parameters }) => ({
      name,
      description: description ?? '',
      parameters,
    })),
  })
}

for (const name of ['openai-responses-tool-call', 'openai-responses-stream-tool-call']) {
  test(`the request of ${name} matches its recording, except for optional fields`, () => {
    const { body } = recording(name).request
    const { instructions: _, ...recorded } = body
    const wire = encodeOpenAiResponsesRequest(requestOf(body), {
      model: 'gpt-4o',
      stream: body['stream'] === true,
    })
    const { store, ...sent } = wire.body
    assert.equal(store, false)
    const described = (recorded['tools'] as JsonObject[]).map((each) => ({
      ...each,
      description: each['description'] ?? '',
    }))
    assert.deepEqual(sent, { ...recorded, tools: described })
    assert.equal(wire.path, '/responses')
  })
}

test('the id of a recorded call is the call_id, not the id of its item', () => {
  const turn = decodeOpenAiResponsesResponse(
    recording('openai-responses-tool-call').response.body,
    modelRequest(),
    context,
  )
  assert.deepEqual(turn.message.calls, [
    { call_id: 'call_0001scrubbed', tool: 'get_capital', args: { country: 'PotatoLand' } },
  ])
  assert.equal(turn.stop, 'tool_calls')
  assert.deepEqual(turn.usage, {
    input_tokens: 40,
    output_tokens: 18,
    cached_tokens: 0,
    reasoning_tokens: 0,
  })
})

test('a recorded turn is sent back unchanged, its result by call_id', () => {
  const { body } = recording('openai-responses-tool-call').response
  const turn = decodeOpenAiResponsesResponse(body, modelRequest(), context)
  const messages = [
    ...afterCalls(turn, [{ output: 'Potato City' }]),
    { role: 'user' as const, text: 'Thanks.' },
  ]
  const wire = encodeOpenAiResponsesRequest(modelRequest({ messages }), {
    model: 'gpt-4o',
    stream: false,
  })
  assert.deepEqual(wire.body['input'], [
    { role: 'user', content: 'Go.' },
    ...((body as JsonObject)['output'] as JsonObject[]),
    { type: 'function_call_output', call_id: 'call_0001scrubbed', output: 'Potato City' },
    { role: 'user', content: 'Thanks.' },
  ])
})

test('a recorded stream gives the same turn wherever it is split', () => {
  const text = String(recording('openai-responses-stream-tool-call').response.body)
  const decode = (pieces: Iterable<Uint8Array>) =>
    decodePieces(new OpenAiResponsesStream(modelRequest(), context), pieces).turn
  const whole = decode([Buffer.from(text)])
  assert.deepEqual(whole.message.calls, [
    { call_id: 'call_0001scrubbed', tool: 'get_capital', args: { country: 'France' } },
  ])
  assert.equal(whole.usage.input_tokens, 255)
  for (const pieces of cutsInTwo(text)) assert.deepEqual(decode(pieces), whole)
  const random = seeded(3)
  for (let i = 0; i < 100; i++) assert.deepEqual(decode(randomPieces(text, random)), whole)
})

test('a stream that is cut off before its last event is a retryable error', () => {
  const text = String(recording('openai-responses-stream-tool-call').response.body)
  for (const prefix of prefixes(text.trimEnd(), 3)) {
    assert.throws(
      () => decodePieces(new OpenAiResponsesStream(modelRequest(), context), [prefix]),
      (error) => error instanceof ModelError && error.retryable,
    )
  }
})

const call = {
  type: 'function_call',
  id: 'fc_1',
  call_id: 'call_123456789',
  name: 'bash',
  arguments: '{"command":"ls"}',
  status: 'completed',
}
const reasoning = {
  type: 'reasoning',
  id: 'rs_1',
  summary: [{ type: 'summary_text', text: 'Hm.' }],
  encrypted_content: 'U0NS',
}
const message = {
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  content: [{ type: 'output_text', text: 'Look.', annotations: [] }],
}
const response = (output: unknown[], part: object = {}) => ({
  status: 'completed',
  output,
  usage: {},
  ...part,
})
const decode = (body: unknown) => decodeOpenAiResponsesResponse(body, modelRequest(), context)
const encodeInput = (messages: ModelRequest['messages']) =>
  encodeOpenAiResponsesRequest(modelRequest({ messages }), { model: 'gpt-5-mini', stream: true })
    .body['input'] as JsonObject[]

test('encrypted reasoning is sent back before its call', () => {
  const turn = decode(response([reasoning, message, call]))
  assert.deepEqual([turn.reasoning, turn.message.text], ['Hm.', 'Look.'])
  assert.deepEqual(encodeInput(afterCalls(turn, [{ output: 'a' }])).slice(1, 4), [
    reasoning,
    message,
    call,
  ])
})

test('unencrypted reasoning is dropped, and then no item keeps its id', () => {
  const turn = decode(response([{ ...reasoning, encrypted_content: null }, call]))
  const { id: _, ...rest } = call
  assert.deepEqual(encodeInput(afterCalls(turn, [{ output: 'a' }])).slice(1, 2), [rest])
})

test('reasoning without a following item is dropped', () => {
  const turn = decode(
    response([message, reasoning], {
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
    }),
  )
  assert.equal(turn.stop, 'length')
  const { id: _, ...rest } = message
  assert.deepEqual(encodeInput([turn.message]), [rest])
})

test('calls of a truncated answer carry an error and are sent back with empty arguments', () => {
  const broken = { ...call, arguments: '{"command":"rm -', status: 'incomplete' }
  const turn = decode(
    response([broken], {
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      usage: { output_tokens: 99 },
    }),
  )
  assert.match(turn.message.calls[0]!.error ?? '', /cut off after 99 tokens/)
  const { status: _, ...whole } = call
  assert.deepEqual(encodeInput(afterCalls(turn, [{ output: 'e', exit_code: 1 }]))[1], {
    ...whole,
    arguments: '{}',
  })
})

test('reasoning models are asked for encrypted reasoning and get no temperature', () => {
  const body = (model: string) =>
    encodeOpenAiResponsesRequest(modelRequest({ system: 'Be good.' }), {
      model,
      stream: true,
      temperature: 1,
      maxOutputTokens: 50,
      reasoningEffort: 'low',
    }).body
  assert.deepEqual(body('gpt-5-mini'), {
    model: 'gpt-5-mini',
    instructions: 'Be good.',
    input: [{ role: 'user', content: 'Go.' }],
    max_output_tokens: 50,
    reasoning: { effort: 'low' },
    store: false,
    include: ['reasoning.encrypted_content'],
    stream: true,
  })
  assert.deepEqual([body('gpt-4o')['temperature'], body('gpt-4o')['include']], [1, undefined])
})

test('a schema with optional arguments is marked as not strict', () => {
  const optional: ToolSpec = {
    ...tool('bash'),
    parameters: {
      type: 'object',
      properties: { command: { type: 'string' } },
      additionalProperties: false,
    },
  }
  const { body } = encodeOpenAiResponsesRequest(modelRequest({ tools: [tool('a'), optional] }), {
    model: 'gpt-4o',
    stream: true,
  })
  assert.deepEqual(
    (body['tools'] as JsonObject[]).map(({ strict }) => strict),
    [true, false],
  )
})

test('a turn of another provider is rebuilt', () => {
  const foreign = {
    role: 'assistant' as const,
    text: 'Look.',
    calls: [{ call_id: 'c1', tool: 'bash', args: { command: 'ls' } }],
    parts: { format: 'anthropic', value: [] },
  }
  assert.deepEqual(encodeInput([foreign]), [
    { role: 'assistant', content: 'Look.' },
    { type: 'function_call', call_id: 'c1', name: 'bash', arguments: '{"command":"ls"}' },
    {
      type: 'function_call_output',
      call_id: 'c1',
      output: 'no result was recorded for this call\n[exit code -1]',
    },
  ])
})

for (const { title, body, stop, text } of [
  {
    title: 'a refusal',
    body: response([{ type: 'message', content: [{ type: 'refusal', refusal: 'No.' }] }]),
    stop: 'refusal',
    text: 'No.',
  },
  {
    title: 'a content filter',
    body: response([], { status: 'incomplete', incomplete_details: { reason: 'content_filter' } }),
    stop: 'content_filter',
    text: '',
  },
  {
    title: 'an unknown reason',
    body: response([], { status: 'incomplete' }),
    stop: 'other',
    text: '',
  },
]) {
  test(`${title} sets the stop reason`, () => {
    const turn = decode(body)
    assert.deepEqual([turn.stop, turn.message.text], [stop, text])
  })
}

const decodeStream = (events: readonly unknown[]) =>
  decodeEvents(new OpenAiResponsesStream(modelRequest(), context), events)

for (const { title, event, retryable } of [
  {
    title: 'response.failed with a server error',
    event: {
      type: 'response.failed',
      response: { status: 'failed', error: { code: 'server_error', message: 'x' } },
    },
    retryable: true,
  },
  {
    title: 'response.failed with a rate limit',
    event: {
      type: 'response.failed',
      response: { error: { code: 'rate_limit_exceeded', message: 'Please try again in 1.5s.' } },
    },
    retryable: true,
  },
  { title: 'response.failed without details', event: { type: 'response.failed' }, retryable: true },
  {
    title: 'an error event',
    event: { type: 'error', code: 'server_error', message: 'x', param: null },
    retryable: true,
  },
  {
    title: 'an error event with an error in it',
    event: {
      type: 'error',
      error: { type: 'invalid_request_error', code: 'context_length_exceeded', message: 'x' },
    },
    retryable: false,
  },
  {
    title: 'a bare error',
    event: { error: { message: 'Invalid prompt', type: 'invalid_request_error' } },
    retryable: false,
  },
]) {
  test(`${title} is thrown, retryable: ${retryable}`, () => {
    assert.throws(
      () => decodeStream([{ type: 'response.created' }, event]),
      (error) => error instanceof ModelError && error.retryable === retryable,
    )
  })
}

test('the text of a rate limit inside a stream gives the delay', () => {
  const event = {
    type: 'error',
    code: 'rate_limit_exceeded',
    message: 'Rate limit reached. Please try again in 1.5s. Visit …',
  }
  assert.throws(() => decodeStream([event]), {
    code: 'ERR_AGENT_MODEL_RATE_LIMIT',
    retryAfterMs: 1_500,
  })
})

test('visible text is streamed, and items replace an empty output', () => {
  const decoder = new OpenAiResponsesStream(modelRequest(), context)
  const push = (value: object & { type: string }) =>
    decoder.push({ event: value.type, data: JSON.stringify(value) })
  assert.equal(push({ type: 'response.output_text.delta', delta: 'Lo' } as { type: string }), 'Lo')
  assert.equal(
    push({ type: 'response.reasoning_summary_text.delta', delta: 'Hm' } as { type: string }),
    '',
  )
  push({ type: 'response.output_item.done', output_index: 1, item: call } as { type: string })
  push({ type: 'response.output_item.done', output_index: 0, item: message } as { type: string })
  assert.equal(decoder.done, false)
  push({ type: 'response.completed', response: { status: 'completed', output: [] } } as {
    type: string
  })
  assert.equal(decoder.done, true)
  const turn = decoder.finish()
  assert.deepEqual([turn.message.text, turn.message.calls.length], ['Look.', 1])
})

test('a failed response and a response of another format are errors', () => {
  assert.throws(
    () => decode({ status: 'failed', error: { code: 'server_error', message: 'x' }, output: [] }),
    { retryable: true },
  )
  assert.throws(() => decode({ status: 'cancelled', output: [] }), ModelError)
  assert.throws(() => decode({ choices: [] }), /Responses interface/)
})

test('cached tokens are part of the input, reasoning tokens of the output', () => {
  const usage = {
    input_tokens: 100,
    output_tokens: 50,
    input_tokens_details: { cached_tokens: 64 },
    output_tokens_details: { reasoning_tokens: 40 },
  }
  assert.deepEqual(decode(response([], { usage })).usage, {
    input_tokens: 100,
    output_tokens: 50,
    cached_tokens: 64,
    reasoning_tokens: 40,
  })
})
