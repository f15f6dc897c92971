import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ModelError,
  openAiChatAdapter,
  type JsonObject,
  type ModelTurn,
  type ToolSpec,
} from 'runwright/agent'
import {
  decodeOpenAiChatResponse,
  encodeOpenAiChatRequest,
} from '../../../lib/agent/models/openai/chat.js'
import { readChatUsage } from '../../../lib/agent/models/openai/chat-answer.js'
import { afterCalls, context, decodeEvents, modelRequest, recording, tool } from './exchange.js'

type WireTool = {
  function: { name: string; description: string; parameters: ToolSpec['parameters'] }
}
type WireMessage = { role: string; content: string }

/** The engine's request that corresponds to a recorded one. */
function requestOf(body: JsonObject) {
  const messages = body['messages'] as unknown as WireMessage[]
  const tools = (body['tools'] ?? []) as unknown as WireTool[]
  return modelRequest({
    system: messages.find(({ role }) => role === 'system')?.content ?? '',
    messages: messages
      .filter(({ role }) => role === 'user')
      .map(({ content }) => ({ role: 'user', text: content })),
    tools: tools.map(({ function: { name, description, parameters } }) => ({
      name,
      description,
      parameters,
    })),
  })
}

for (const name of [
  'openai-chat-plain',
  'openai-chat-tool-call',
  'openai-chat-parallel-tools',
  'openai-chat-stream-parallel-tools',
]) {
  test(`the request of ${name} matches its recording`, () => {
    const { body } = recording(name).request
    const { n: _, ...recorded } = body as { n?: number }
    const wire = encodeOpenAiChatRequest(requestOf(body), {
      model: String(body['model']),
      stream: body['stream'] === true,
      strictTools: true,
      extraBody: body['tool_choice'] === 'required' ? { tool_choice: 'required' } : undefined,
    })
    assert.equal(wire.path, '/chat/completions')
    assert.deepEqual(wire.body, recorded)
  })
}

test('a recorded plain answer becomes text without calls', () => {
  const turn = decodeOpenAiChatResponse(
    recording('openai-chat-plain').response.body,
    modelRequest(),
    context,
  )
  assert.equal(turn.message.text, 'The capital of France is Paris.')
  assert.deepEqual(turn.message.calls, [])
  assert.equal(turn.stop, 'end')
  assert.deepEqual(turn.usage, {
    input_tokens: 24,
    output_tokens: 8,
    cached_tokens: 0,
    reasoning_tokens: 0,
  })
})

test('recorded parallel calls keep their order, ids and arguments', () => {
  const turn = decodeOpenAiChatResponse(
    recording('openai-chat-parallel-tools').response.body,
    modelRequest(),
    context,
  )
  assert.deepEqual(turn.message.calls, [
    { call_id: 'call_0001scrubbed', tool: 'delete_file', args: { path: '.env' } },
    { call_id: 'call_0002scrubbed', tool: 'create_file', args: { path: 'test.txt' } },
  ])
  assert.equal(turn.stop, 'tool_calls')
})

test('an error in a 200 response is thrown', () => {
  assert.throws(
    () =>
      decodeOpenAiChatResponse({ error: { message: 'busy', code: 503 } }, modelRequest(), context),
    (error) => error instanceof ModelError && error.retryable,
  )
})

test('an answer without choices is an error with a hint', () => {
  assert.throws(() => decodeOpenAiChatResponse({ hello: 1 }, modelRequest(), context), /base URL/)
})

const answer = (message: unknown, finish_reason = 'stop', usage: unknown = {}) =>
  decodeOpenAiChatResponse(
    { choices: [{ message, finish_reason }], usage },
    modelRequest(),
    context,
  )
const withCall = (args: unknown, id = 'call_123456789') => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name: 'bash', arguments: args } }],
})

for (const { title, args, becomes } of [
  { title: 'JSON text', args: '{"command":"ls"}', becomes: { command: 'ls' } },
  { title: 'an object', args: { command: 'ls' }, becomes: { command: 'ls' } },
  {
    title: 'JSON text encoded twice',
    args: '"{\\"command\\":\\"ls\\"}"',
    becomes: { command: 'ls' },
  },
  { title: 'empty text', args: '', becomes: {} },
  { title: 'null', args: null, becomes: {} },
  { title: 'the text null', args: 'null', becomes: {} },
  { title: 'nothing', args: undefined, becomes: {} },
]) {
  test(`arguments as ${title} are read`, () => {
    const [call] = answer(withCall(args)).message.calls
    assert.deepEqual(call, { call_id: 'call_123456789', tool: 'bash', args: becomes })
  })
}

for (const args of ['{"command":"rm -rf ', '[1]', '"text"', '7', [1], 'command=ls']) {
  test(`arguments ${JSON.stringify(args)} are an error for the model, not repaired`, () => {
    const [call] = answer(withCall(args)).message.calls
    assert.deepEqual(call?.args, {})
    assert.match(call?.error ?? '', /could not be read/)
  })
}

test('all calls of an answer that was cut off carry an error, even complete ones', () => {
  const message = {
    content: 'I will',
    tool_calls: [
      { id: 'call_123456789', function: { name: 'bash', arguments: '{"command":"ls"}' } },
      {
        id: 'call_987654321',
        function: { name: 'write_file', arguments: '{"path":"a","content":"ab' },
      },
    ],
  }
  const turn = answer(message, 'length', { prompt_tokens: 1, completion_tokens: 4096 })
  assert.equal(turn.stop, 'length')
  assert.deepEqual(
    turn.message.calls.map(({ args }) => args),
    [{}, {}],
  )
  for (const { error } of turn.message.calls) assert.match(error ?? '', /cut off after 4096 tokens/)
})

test('missing, short and repeated ids are replaced by unique, deterministic ids', () => {
  const calls = ['', '0', 'functions.bash:0', 'call_123456789', 'call_123456789', 'x'.repeat(80)]
  const message = {
    tool_calls: calls.map((id) => ({ id, function: { name: 'bash', arguments: '{}' } })),
  }
  const ids = answer(message).message.calls.map(({ call_id }) => call_id)
  assert.deepEqual(ids, [
    'call_1_0_1',
    'call_1_0_2',
    'call_1_0_3',
    'call_123456789',
    'call_1_0_5',
    'call_1_0_6',
  ])
})

test('an id used by an earlier turn is replaced, on the wire as well', () => {
  const first = answer(withCall('{"command":"ls"}', 'call_abc_0001'))
  const history = afterCalls(first, [{ output: 'a' }])
  const body = {
    choices: [{ message: withCall('{"command":"pwd"}', 'call_abc_0001'), finish_reason: 'stop' }],
  }
  const second = decodeOpenAiChatResponse(
    body,
    modelRequest({ messages: history, run: { ...modelRequest().run, turn: 1 } }),
    context,
  )
  assert.equal(second.message.calls[0]!.call_id, 'call_1_1_1')
  const messages = [...history, ...afterCalls(second, [{ output: 'b' }]).slice(1)]
  const wire = encodeOpenAiChatRequest(modelRequest({ messages }), { model: 'm', stream: false })
    .body['messages'] as JsonObject[]
  assert.deepEqual(wire.map((message) => message['tool_call_id']).filter(Boolean), [
    'call_abc_0001',
    'call_1_1_1',
  ])
})

test('results follow their calls, in the order of the calls', () => {
  const turn = decodeOpenAiChatResponse(
    recording('openai-chat-parallel-tools').response.body,
    modelRequest(),
    context,
  )
  const [user, assistant, first, second] = afterCalls(turn, [
    { output: 'gone' },
    { output: 'no space', exit_code: 1 },
  ])
  const messages = [user!, assistant!, second!, first!, { role: 'user' as const, text: 'Go on.' }]
  const wire = encodeOpenAiChatRequest(modelRequest({ messages }), { model: 'm', stream: false })
  assert.deepEqual((wire.body['messages'] as JsonObject[]).slice(2), [
    { role: 'tool', tool_call_id: 'call_0001scrubbed', content: 'gone' },
    { role: 'tool', tool_call_id: 'call_0002scrubbed', content: 'no space\n[exit code 1]' },
    { role: 'user', content: 'Go on.' },
  ])
})

test('a call without a result gets one, and a result without a call is dropped', () => {
  const turn = answer(withCall('{}'))
  const messages = [
    ...afterCalls(turn, [{ output: 'x' }]).slice(0, 2),
    { role: 'user' as const, text: 'Hm' },
  ]
  const orphan = {
    role: 'tool' as const,
    call_id: 'call_of_no_turn',
    tool: 'bash',
    output: 'x',
    exit_code: 0,
  }
  const wire = encodeOpenAiChatRequest(modelRequest({ messages: [...messages, orphan] }), {
    model: 'm',
    stream: false,
  })
  const roles = (wire.body['messages'] as JsonObject[]).map(({ role, content }) => [role, content])
  assert.deepEqual(roles.slice(1), [
    ['assistant', null],
    ['tool', 'no result was recorded for this call\n[exit code -1]'],
    ['user', 'Hm'],
  ])
})

test('reasoning with calls, signatures and the original arguments are sent back', () => {
  const message = {
    role: 'assistant',
    content: '',
    reasoning_content: 'Let me look.',
    reasoning_details: [{ type: 'reasoning.encrypted', data: 'U0NS' }],
    tool_calls: [
      {
        id: '',
        type: 'function',
        function: { name: 'bash', arguments: '{ "command" : "ls" }' },
        extra_content: { google: { thought_signature: 'U0NS' } },
      },
    ],
  }
  const turn = answer(message)
  assert.equal(turn.reasoning, 'Let me look.')
  const wire = encodeOpenAiChatRequest(
    modelRequest({ messages: afterCalls(turn, [{ output: 'a' }]) }),
    { model: 'm', stream: false },
  )
  assert.deepEqual((wire.body['messages'] as JsonObject[]).slice(1), [
    {
      role: 'assistant',
      content: null,
      reasoning_details: message.reasoning_details,
      reasoning_content: 'Let me look.',
      tool_calls: [
        {
          extra_content: { google: { thought_signature: 'U0NS' } },
          id: 'call_1_0_1',
          type: 'function',
          function: { name: 'bash', arguments: '{ "command" : "ls" }' },
        },
      ],
    },
    { role: 'tool', tool_call_id: 'call_1_0_1', content: 'a' },
  ])
})

for (const { of, given, sent } of [
  { of: 'vLLM', given: { reasoning: 'Hm.' }, sent: { reasoning: 'Hm.' } },
  {
    of: 'both names at once',
    given: { reasoning: 'Hm.', reasoning_content: 'Hm.' },
    sent: { reasoning: 'Hm.', reasoning_content: 'Hm.' },
  },
  {
    of: 'an empty field',
    given: { reasoning: 'Hm.', reasoning_content: null },
    sent: { reasoning: 'Hm.' },
  },
  {
    of: 'OpenRouter, whose details have it',
    given: { reasoning: 'Hm.', reasoning_details: [{ type: 'reasoning.text', text: 'Hm.' }] },
    sent: { reasoning_details: [{ type: 'reasoning.text', text: 'Hm.' }] },
  },
]) {
  const back = (turn: ModelTurn): JsonObject => {
    const request = modelRequest({ messages: afterCalls(turn, [{ output: 'a' }]) })
    const { body } = encodeOpenAiChatRequest(request, { model: 'm', stream: false })
    const [, message] = body['messages'] as JsonObject[]
    return Object.fromEntries(
      Object.entries(message!).filter(([name]) => name.startsWith('reasoning')),
    )
  }
  test(`reasoning goes back with its calls under the name under which it came: ${of}`, () => {
    const turn = answer({ ...withCall('{}'), ...given })
    assert.equal(turn.reasoning, 'Hm.')
    assert.deepEqual(back(turn), sent)
    const delta = { ...withCall('{}'), ...given }
    const event = { choices: [{ index: 0, delta, finish_reason: 'tool_calls' }] }
    const decoder = openAiChatAdapter().decodeStream(modelRequest(), context)
    assert.deepEqual(back(decodeEvents(decoder, [event])), sent)
  })
}

test('neither reasoning of a turn without calls nor invalid arguments are sent back', () => {
  const quiet = answer({ content: 'Done', reasoning_content: 'Easy.', reasoning: 'Easy.' })
  const broken = answer(withCall('{"command":'))
  const messages = [
    { role: 'user' as const, text: 'Go.' },
    quiet.message,
    ...afterCalls(broken, [{ output: 'e', exit_code: 1 }]).slice(1),
  ]
  const wire = encodeOpenAiChatRequest(modelRequest({ messages }), { model: 'm', stream: false })
    .body['messages'] as JsonObject[]
  assert.deepEqual(wire[1], { role: 'assistant', content: 'Done' })
  assert.match(JSON.stringify(wire[2]), /"arguments":"\{\}"/)
})

for (const { title, usage, becomes } of [
  {
    title: 'cached tokens are part of the prompt',
    usage: {
      prompt_tokens: 100,
      completion_tokens: 5,
      total_tokens: 105,
      prompt_tokens_details: { cached_tokens: 64 },
    },
    becomes: [100, 5, 64, 0],
  },
  {
    title: 'reasoning is part of the completion',
    usage: {
      prompt_tokens: 10,
      completion_tokens: 50,
      total_tokens: 60,
      completion_tokens_details: { reasoning_tokens: 40 },
    },
    becomes: [10, 50, 0, 40],
  },
  {
    title: 'reasoning in addition to the completion',
    usage: {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 55,
      completion_tokens_details: { reasoning_tokens: 40 },
    },
    becomes: [10, 45, 0, 40],
  },
  {
    title: 'a total above the sum',
    usage: { prompt_tokens: 35, completion_tokens: 12, total_tokens: 109 },
    becomes: [35, 74, 0, 62],
  },
  {
    title: 'a total below the sum',
    usage: { prompt_tokens: 35, completion_tokens: 12, total_tokens: 12 },
    becomes: [35, 12, 0, 0],
  },
  {
    title: 'DeepSeek’s name for cached tokens',
    usage: { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10, prompt_cache_hit_tokens: 8 },
    becomes: [9, 1, 8, 0],
  },
  {
    title: 'invalid values',
    usage: { prompt_tokens: -4, completion_tokens: 'x', total_tokens: null },
    becomes: [0, 0, 0, 0],
  },
]) {
  test(`usage: ${title}`, () => {
    const { input_tokens, output_tokens, cached_tokens, reasoning_tokens } = readChatUsage(
      usage as JsonObject,
    )
    assert.deepEqual([input_tokens, output_tokens, cached_tokens, reasoning_tokens], becomes)
  })
}

test('reasoning models get no temperature, and max_completion_tokens', () => {
  const encode = (model: string) =>
    encodeOpenAiChatRequest(modelRequest(), {
      model,
      stream: false,
      temperature: 0.2,
      maxOutputTokens: 100,
      reasoningEffort: 'low',
    }).body
  assert.deepEqual(encode('openai/gpt-5-mini'), {
    model: 'openai/gpt-5-mini',
    messages: [{ role: 'user', content: 'Go.' }],
    max_completion_tokens: 100,
    reasoning_effort: 'low',
    stream: false,
  })
  const plain = encode('llama3.1')
  assert.equal(plain['temperature'], 0.2)
  assert.equal(plain['max_tokens'], 100)
})

test('tool names that a provider would refuse are substituted on the wire', () => {
  const tools = [tool('files.read'), tool('files_read'), tool('1st'), tool('y'.repeat(70))]
  const request = modelRequest({ tools })
  const wire = encodeOpenAiChatRequest(request, { model: 'm', stream: false })
  const sent = (wire.body['tools'] as unknown as WireTool[]).map(({ function: { name } }) => name)
  assert.deepEqual(sent, ['files_read_2', 'files_read', '_1st', 'y'.repeat(60)])
  const body = {
    choices: [
      {
        message: { tool_calls: sent.map((name) => ({ function: { name, arguments: '{}' } })) },
        finish_reason: 'stop',
      },
    ],
  }
  const turn = decodeOpenAiChatResponse(body, request, context)
  assert.deepEqual(
    turn.message.calls.map(({ tool: name }) => name),
    tools.map(({ name }) => name),
  )
})

test('a call without a name carries an error', () => {
  const turn = answer({ tool_calls: [{ id: 'call_123456789', function: { arguments: '{}' } }] })
  assert.match(turn.message.calls[0]!.error ?? '', /names no tool/)
})

test('stream_options can be omitted for servers that refuse it', () => {
  const wire = encodeOpenAiChatRequest(modelRequest(), {
    model: 'm',
    stream: true,
    streamUsage: false,
  })
  assert.equal(wire.body['stream_options'], undefined)
})

test('a turn of another provider is rebuilt from its text and calls', () => {
  const message = {
    role: 'assistant' as const,
    text: 'Looking.',
    calls: [{ call_id: 'toolu_0001', tool: 'bash', args: { command: 'ls' } }],
    parts: { format: 'anthropic', value: [{ type: 'thinking', thinking: 'x', signature: 'U0NS' }] },
  }
  const wire = encodeOpenAiChatRequest(modelRequest({ messages: [message] }), {
    model: 'm',
    stream: false,
  })
  assert.deepEqual((wire.body['messages'] as JsonObject[])[0], {
    role: 'assistant',
    content: 'Looking.',
    tool_calls: [
      {
        id: 'toolu_0001',
        type: 'function',
        function: { name: 'bash', arguments: '{"command":"ls"}' },
      },
    ],
  })
})
