import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ModelError, type JsonObject, type ModelRequest, type ToolSpec } from 'runwright/agent'
import {
  decodeAnthropicResponse,
  encodeAnthropicRequest,
} from '../../../lib/agent/models/anthropic/adapter.js'
import { AnthropicStream } from '../../../lib/agent/models/anthropic/stream.js'
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
} from './exchange.js'

type WireTool = { name: string; description: string; input_schema: ToolSpec['parameters'] }
type WireMessage = { role: string; content: { text: string }[] }

function requestOf(body: JsonObject): ModelRequest {
  const messages = body['messages'] as unknown as WireMessage[]
  const tools = (body['tools'] ?? []) as unknown as WireTool[]
  return modelRequest({
    system: String(body['system'] ?? ''),
    messages: messages.map(({ content }) => ({ role: 'user', text: content[0]!.text })),
    tools: tools.map(({ name, description, input_schema }) => ({
      name,
      description,
      parameters: input_schema,
    })),
  })
}

for (const name of [
  'anthropic-plain',
  'anthropic-parallel-tool-use',
  'anthropic-stream-thinking',
]) {
  test(`the request of ${name} matches its recording`, () => {
    const { body } = recording(name).request
    const thinking = body['thinking'] as { budget_tokens: number } | undefined
    const wire = encodeAnthropicRequest(requestOf(body), {
      model: String(body['model']),
      stream: body['stream'] === true,
      promptCaching: false,
      maxOutputTokens: Number(body['max_tokens']),
      thinkingBudget: thinking?.budget_tokens,
    })
    assert.equal(wire.path, '/v1/messages')
    assert.equal(wire.headers['anthropic-version'], '2023-06-01')
    assert.deepEqual(wire.body, body)
  })
}

test('recorded parallel calls keep their order, ids and arguments beside the text', () => {
  const turn = decodeAnthropicResponse(
    recording('anthropic-parallel-tool-use').response.body,
    modelRequest(),
    context,
  )
  assert.match(turn.message.text, /^I'll help you find out/)
  assert.deepEqual(
    turn.message.calls.map(({ call_id, args }) => [call_id, args]),
    [
      ['toolu_0001scrubbed', { name: 'Alice' }],
      ['toolu_0002scrubbed', { name: 'Bob' }],
      ['toolu_0003scrubbed', { name: 'Charlie' }],
      ['toolu_0004scrubbed', { name: 'Daisy' }],
    ],
  )
  assert.deepEqual(turn.usage, {
    input_tokens: 423,
    output_tokens: 202,
    cached_tokens: 0,
    reasoning_tokens: 0,
  })
})

test('the results of parallel calls come in one message, before any text', () => {
  const { body } = recording('anthropic-parallel-tool-use').response
  const turn = decodeAnthropicResponse(body, modelRequest(), context)
  const outputs = [
    { output: '30' },
    { output: '', exit_code: 0 },
    { output: 'no such person', exit_code: 1 },
    { output: '9' },
  ]
  const messages = [
    ...afterCalls(turn, outputs),
    { role: 'user' as const, text: 'A human says: hurry.' },
  ]
  const wire = encodeAnthropicRequest(modelRequest({ messages }), {
    model: 'claude-haiku-4-5',
    stream: false,
    promptCaching: false,
  })
  assert.deepEqual(wire.body['messages'], [
    { role: 'user', content: [{ type: 'text', text: 'Go.' }] },
    { role: 'assistant', content: (body as JsonObject)['content'] },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_0001scrubbed', content: '30' },
        { type: 'tool_result', tool_use_id: 'toolu_0002scrubbed', content: '(no output)' },
        {
          type: 'tool_result',
          tool_use_id: 'toolu_0003scrubbed',
          content: 'no such person\n[exit code 1]',
          is_error: true,
        },
        { type: 'tool_result', tool_use_id: 'toolu_0004scrubbed', content: '9' },
        { type: 'text', text: 'A human says: hurry.' },
      ],
    },
  ])
})

test('a recorded stream with thinking gives the same turn wherever it is split', () => {
  const text = String(recording('anthropic-stream-thinking').response.body)
  const decode = (pieces: Iterable<Uint8Array>) =>
    decodePieces(new AnthropicStream(modelRequest(), context), pieces)
  const whole = decode([Buffer.from(text)])
  assert.match(whole.turn.message.text, /^Here are the basic steps for safely crossing the street:/)
  assert.equal(whole.visible, whole.turn.message.text)
  assert.match(whole.turn.reasoning, /^This is a straightforward question .* accidents\.$/)
  assert.deepEqual(whole.turn.usage, {
    input_tokens: 43,
    output_tokens: 282,
    cached_tokens: 0,
    reasoning_tokens: 0,
  })
  assert.equal(whole.turn.stop, 'end')
  assert.deepEqual(decode([...Buffer.from(text)].map((byte) => Uint8Array.of(byte))), whole)
  const random = seeded(2)
  for (let i = 0; i < 30; i++) assert.deepEqual(decode(randomPieces(text, random)), whole)
})

test('the beginning and the end of that stream, joined, may be split after any byte', () => {
  const events = String(recording('anthropic-stream-thinking').response.body).split('\n\n')
  const text = [...events.slice(0, 5), ...events.slice(16, 22), ...events.slice(-6)].join('\n\n')
  const decode = (pieces: Iterable<Uint8Array>) =>
    decodePieces(new AnthropicStream(modelRequest(), context), pieces)
  const whole = decode([Buffer.from(text)])
  assert.equal(whole.turn.reasoning, 'This is a straightforward question about')
  assert.equal(whole.turn.message.text, 'Here are the crossing streets.')
  for (const pieces of cutsInTwo(text)) assert.deepEqual(decode(pieces), whole)
})

test('a stream that is cut off anywhere before its stop reason is a retryable error', () => {
  const text = String(recording('anthropic-stream-thinking').response.body)
  const end = text.indexOf('event: message_delta')
  for (const prefix of prefixes(text.slice(0, end), 31)) {
    assert.throws(
      () => decodePieces(new AnthropicStream(modelRequest(), context), [prefix]),
      (error) => error instanceof ModelError && error.retryable,
    )
  }
})

test('thinking is sent back verbatim with its signature, before the text', () => {
  const text = String(recording('anthropic-stream-thinking').response.body)
  const { turn } = decodePieces(new AnthropicStream(modelRequest(), context), [Buffer.from(text)])
  const messages = [
    { role: 'user' as const, text: 'How?' },
    turn.message,
    { role: 'user' as const, text: 'Thanks.' },
  ]
  const wire = encodeAnthropicRequest(modelRequest({ messages }), {
    model: 'claude-sonnet-4-0',
    stream: true,
    promptCaching: false,
  })
  const content = (wire.body['messages'] as unknown as WireMessage[])[1]!
    .content as unknown as JsonObject[]
  assert.deepEqual(
    content.map(({ type }) => type),
    ['thinking', 'text'],
  )
  assert.equal(content[0]!['signature'], 'U0NSVUJCRUQ0001')
  assert.equal(content[0]!['thinking'], turn.reasoning)
})

const start = (index: number, content_block: unknown) => ({
  type: 'content_block_start',
  index,
  content_block,
})
const delta = (index: number, value: unknown) => ({
  type: 'content_block_delta',
  index,
  delta: value,
})
const json = (index: number, partial_json: string) =>
  delta(index, { type: 'input_json_delta', partial_json })
const stop = (stop_reason: string, usage: unknown = { output_tokens: 7 }) => [
  { type: 'message_delta', delta: { stop_reason }, usage },
  { type: 'message_stop' },
]
const toolUse = (id: string, name = 'bash', input: unknown = {}) => ({
  type: 'tool_use',
  id,
  name,
  input,
})
const decodeStream = (events: readonly unknown[]) =>
  decodeEvents(new AnthropicStream(modelRequest(), context), events)

test('streamed arguments are joined per block, even if blocks interleave', () => {
  const turn = decodeStream([
    {
      type: 'message_start',
      message: {
        usage: {
          input_tokens: 5,
          cache_read_input_tokens: 90,
          cache_creation_input_tokens: 5,
          output_tokens: 1,
        },
      },
    },
    start(0, toolUse('toolu_aaaaaa')),
    start(1, toolUse('toolu_bbbbbb')),
    json(0, ''),
    json(0, '{"comm'),
    json(1, '{"command":"pwd"}'),
    json(0, 'and":"ls"}'),
    start(2, toolUse('toolu_cccccc', 'list_files')),
    ...stop('tool_use'),
  ])
  assert.deepEqual(
    turn.message.calls.map(({ args }) => args),
    [{ command: 'ls' }, { command: 'pwd' }, {}],
  )
  assert.deepEqual(turn.usage, {
    input_tokens: 100,
    output_tokens: 7,
    cached_tokens: 90,
    reasoning_tokens: 0,
  })
})

test('calls of a truncated answer carry an error and are sent back with empty arguments', () => {
  const turn = decodeStream([
    start(0, { type: 'text', text: 'Wri' }),
    delta(0, { type: 'text_delta', text: 'ting.' }),
    start(1, toolUse('toolu_aaaaaa', 'write_file')),
    json(1, '{"path":"a","content":"half'),
    ...stop('max_tokens', { output_tokens: 4096 }),
  ])
  assert.equal(turn.stop, 'length')
  assert.match(turn.message.calls[0]!.error ?? '', /cut off after 4096 tokens/)
  const wire = encodeAnthropicRequest(
    modelRequest({ messages: afterCalls(turn, [{ output: 'cut off', exit_code: 1 }]) }),
    { model: 'm', stream: true },
  )
  assert.match(
    JSON.stringify(wire.body),
    /"text":"Writing\."\},\{"type":"tool_use","id":"toolu_aaaaaa","name":"write_file","input":\{\}\}/,
  )
})

for (const { stop_reason, becomes } of [
  { stop_reason: 'end_turn', becomes: 'end' },
  { stop_reason: 'stop_sequence', becomes: 'end' },
  { stop_reason: 'refusal', becomes: 'content_filter' },
  { stop_reason: 'pause_turn', becomes: 'other' },
  { stop_reason: 'model_context_window_exceeded', becomes: 'length' },
  { stop_reason: 'tool_use', becomes: 'end' },
]) {
  test(`the stop reason ${stop_reason} without calls becomes ${becomes}`, () => {
    assert.equal(
      decodeStream([start(0, { type: 'text', text: 'Hi' }), ...stop(stop_reason)]).stop,
      becomes,
    )
  })
}

for (const { type, retryable } of [
  { type: 'overloaded_error', retryable: true },
  { type: 'api_error', retryable: true },
  { type: 'rate_limit_error', retryable: true },
  { type: 'invalid_request_error', retryable: false },
  { type: 'authentication_error', retryable: false },
]) {
  test(`${type} inside a stream is thrown, retryable: ${retryable}`, () => {
    const event = { type: 'error', error: { type, message: 'Sorry' } }
    assert.throws(
      () => decodeStream([start(0, { type: 'text', text: 'H' }), event]),
      (error) => error instanceof ModelError && error.retryable === retryable,
    )
  })
}

test('pings and unknown events are ignored', () => {
  const turn = decodeStream([
    { type: 'ping' },
    { type: 'something_new' },
    start(0, { type: 'text', text: 'Hi' }),
    ...stop('end_turn'),
  ])
  assert.equal(turn.message.text, 'Hi')
})

test('the system prompt and the end of the conversation are marked for the cache', () => {
  const { body } = encodeAnthropicRequest(modelRequest({ system: 'Be good.' }), {
    model: 'claude-haiku-4-5',
    stream: true,
  })
  assert.deepEqual(body['system'], [
    { type: 'text', text: 'Be good.', cache_control: { type: 'ephemeral' } },
  ])
  assert.deepEqual(body['messages'], [
    {
      role: 'user',
      content: [{ type: 'text', text: 'Go.', cache_control: { type: 'ephemeral' } }],
    },
  ])
})

test('max_tokens is always sent, by the known limit, and exceeds the thinking budget', () => {
  const maxTokens = (model: string, thinkingBudget?: number) =>
    encodeAnthropicRequest(modelRequest(), { model, stream: true, thinkingBudget }).body[
      'max_tokens'
    ]
  assert.equal(maxTokens('claude-3-opus-latest'), 4096)
  assert.equal(maxTokens('claude-sonnet-4-5'), 32_000)
  assert.equal(maxTokens('unknown-model'), 4096)
  assert.equal(maxTokens('unknown-model', 8000), 9024)
})

for (const { model, thinking, effort, temperature } of [
  {
    model: 'claude-haiku-4-5',
    thinking: { type: 'enabled', budget_tokens: 2000 },
    effort: undefined,
    temperature: 1,
  },
  {
    model: 'claude-opus-4-6',
    thinking: { type: 'adaptive' },
    effort: { effort: 'low' },
    temperature: 1,
  },
  {
    model: 'claude-sonnet-5',
    thinking: { type: 'adaptive' },
    effort: { effort: 'low' },
    temperature: undefined,
  },
]) {
  test(`${model} gets the thinking and sampling fields that it accepts`, () => {
    const encode = (choices: object) =>
      encodeAnthropicRequest(modelRequest(), { model, stream: true, temperature: 1, ...choices })
        .body
    const thoughtful = encode({ thinkingBudget: 2000, reasoningEffort: 'low' })
    assert.deepEqual(thoughtful['thinking'], thinking)
    assert.deepEqual(thoughtful['output_config'], effort)
    assert.equal(thoughtful['temperature'], undefined)
    assert.deepEqual([encode({})['thinking'], encode({})['temperature']], [undefined, temperature])
  })
}

const assistant = (text: string) => ({ role: 'assistant' as const, text, calls: [] })
const user = (text: string) => ({ role: 'user' as const, text })

for (const { title, messages, roles } of [
  {
    title: 'consecutive user messages are merged',
    messages: [user('a'), user('b')],
    roles: [['user', 2]],
  },
  {
    title: 'consecutive turns are merged',
    messages: [user('a'), assistant('b'), assistant('c'), user('d')],
    roles: [
      ['user', 1],
      ['assistant', 2],
      ['user', 1],
    ],
  },
  {
    title: 'an empty turn is dropped',
    messages: [user('a'), assistant(''), user('b')],
    roles: [['user', 2]],
  },
  {
    title: 'a conversation that begins with the model gets a user message first',
    messages: [assistant('a'), user('b')],
    roles: [
      ['user', 1],
      ['assistant', 1],
      ['user', 1],
    ],
  },
  {
    title: 'a conversation that ends with the model gets a user message last',
    messages: [user('a'), assistant('b')],
    roles: [
      ['user', 1],
      ['assistant', 1],
      ['user', 1],
    ],
  },
  { title: 'a blank message is dropped', messages: [user('a'), user(' ')], roles: [['user', 1]] },
  { title: 'an empty conversation gets a user message', messages: [], roles: [['user', 1]] },
]) {
  test(title, () => {
    const { body } = encodeAnthropicRequest(modelRequest({ messages }), {
      model: 'm',
      stream: true,
    })
    const sent = body['messages'] as unknown as WireMessage[]
    assert.deepEqual(
      sent.map(({ role, content }) => [role, content.length]),
      roles,
    )
  })
}

test('neither thinking without its signature nor empty text is sent back', () => {
  const turn = decodeStream([
    start(0, { type: 'thinking', thinking: '', signature: '' }),
    delta(0, { type: 'thinking_delta', thinking: 'Hm' }),
    start(1, { type: 'text', text: '' }),
    start(2, { type: 'redacted_thinking', data: 'U0NS' }),
    start(3, toolUse('', 'bash', { command: 'ls' })),
    ...stop('tool_use'),
  ])
  assert.deepEqual(turn.message.calls, [
    { call_id: 'call_1_0_1', tool: 'bash', args: { command: 'ls' } },
  ])
  const wire = encodeAnthropicRequest(
    modelRequest({ messages: afterCalls(turn, [{ output: 'a' }]) }),
    { model: 'm', stream: true, promptCaching: false },
  )
  assert.deepEqual((wire.body['messages'] as unknown as WireMessage[]).slice(1), [
    {
      role: 'assistant',
      content: [
        { type: 'redacted_thinking', data: 'U0NS' },
        toolUse('call_1_0_1', 'bash', { command: 'ls' }),
      ],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1_0_1', content: 'a' }] },
  ])
})

test('a turn of another provider is rebuilt from its text and calls', () => {
  const calls = [{ call_id: 'call_1', tool: 'bash', args: { command: 'ls' } }]
  const parts = { format: 'openai-chat', value: { role: 'assistant' } }
  const messages = [user('a'), { role: 'assistant' as const, text: 'Look.', calls, parts }]
  const { body } = encodeAnthropicRequest(modelRequest({ messages }), { model: 'm', stream: true })
  assert.deepEqual((body['messages'] as unknown as WireMessage[])[1]!.content, [
    { type: 'text', text: 'Look.' },
    toolUse('call_1', 'bash', { command: 'ls' }),
  ])
})

test('blocks of the provider’s own tools keep their arguments and are not calls', () => {
  const turn = decodeStream([
    start(0, { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }),
    json(0, '{"query":"x"}'),
    start(1, { type: 'text', text: 'Found.' }),
    ...stop('end_turn'),
  ])
  assert.deepEqual(turn.message.calls, [])
  assert.match(JSON.stringify(turn.message.parts), /"name":"web_search","input":\{"query":"x"\}/)
})

test('text and thinking without a block start are read; arguments without one are an error', () => {
  const turn = decodeStream([
    { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'Hm.' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 's' } },
    { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'Hello' } },
    { type: 'content_block_delta', index: 2, delta: { type: 'something_delta', new: 1 } },
    ...stop('end_turn'),
  ])
  assert.equal(turn.message.text, 'Hello')
  assert.equal(turn.reasoning, 'Hm.')
  assert.throws(() => decodeStream([json(4, '{}')]), /for no tool call/)
})

test('thinking tokens of newer models are counted separately, streamed or not', () => {
  const usage = {
    input_tokens: 10,
    output_tokens: 145,
    output_tokens_details: { thinking_tokens: 47 },
  }
  const whole = decodeAnthropicResponse(
    { content: [{ type: 'text', text: 'x' }], stop_reason: 'end_turn', usage },
    modelRequest(),
    context,
  )
  const streamed = decodeStream([
    { type: 'message_start', message: { usage: { input_tokens: 10, output_tokens: 2 } } },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
    { type: 'message_stop' },
  ])
  for (const turn of [whole, streamed]) {
    assert.deepEqual(turn.usage, {
      input_tokens: 10, output_tokens: 145, cached_tokens: 0, reasoning_tokens: 47,
    })
  }
})

test('an error in a 200 response, and a response of another format, are errors', () => {
  assert.throws(
    () =>
      decodeAnthropicResponse(
        { type: 'error', error: { type: 'overloaded_error' } },
        modelRequest(),
        context,
      ),
    ModelError,
  )
  assert.throws(
    () => decodeAnthropicResponse({ choices: [] }, modelRequest(), context),
    /Messages interface/,
  )
})
