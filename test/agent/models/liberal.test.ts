/**
 * Undocumented forms that servers send and adapters accept.
 */
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
import { afterCalls, context, decodeEvents, modelRequest } from './exchange.js'

const adapters: Readonly<Record<string, ModelAdapter>> = {
  chat: openAiChatAdapter(),
  responses: openAiResponsesAdapter(),
  anthropic: anthropicAdapter(),
  gemini: geminiAdapter(),
}

function streamed(adapter: ModelAdapter, events: readonly unknown[]): ModelTurn {
  return decodeEvents(adapter.decodeStream(modelRequest(), context), events)
}

const chunk = (delta: object, more: object = {}): object => ({
  choices: [{ index: 0, delta, ...more }],
})

/** The events of a streamed answer "Hi" in each format. */
const GREETINGS: Readonly<Record<string, readonly unknown[]>> = {
  chat: [chunk({ content: 'Hi' }), chunk({}, { finish_reason: 'stop' })],
  responses: [
    {
      type: 'response.output_item.done',
      item: { type: 'message', content: [{ type: 'output_text', text: 'Hi' }] },
    },
    { type: 'response.completed', response: { status: 'completed' } },
  ],
  anthropic: [
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'Hi' } },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
    { type: 'message_stop' },
  ],
  gemini: [{ candidates: [{ content: { parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }] }],
}

for (const [name, adapter] of Object.entries(adapters)) {
  test(`${name}: empty pieces, keep-alives, unknown events and fields, and missing usage`, () => {
    const extras = [
      '',
      ' ',
      { type: 'ping' },
      { type: 'keepalive', sequence_number: 3 },
      { new: { field: [] } },
    ]
    const turn = streamed(adapter, [
      ...extras,
      ...(GREETINGS[name] ?? []).flatMap((event, i) => (i === 0 ? [event] : [...extras, event])),
    ])
    assert.equal(turn.message.text, 'Hi')
    assert.equal(turn.stop, 'end')
    assert.deepEqual(turn.usage, {
      input_tokens: 0,
      output_tokens: 0,
      cached_tokens: 0,
      reasoning_tokens: 0,
    })
  })
}

test('chat: choices besides the first are ignored', () => {
  const turn = streamed(adapters['chat']!, [
    {
      choices: [
        { index: 1, delta: { content: 'other' } },
        { index: 0, delta: { content: 'mine' } },
      ],
    },
    { choices: [{ index: 1, delta: { content: 'other' }, finish_reason: 'stop' }] },
    chunk({}, { finish_reason: 'stop' }),
  ])
  assert.equal(turn.message.text, 'mine')
})

test('chat: lists of parts and plain text may be mixed', () => {
  const turn = streamed(adapters['chat']!, [
    chunk({ content: 'a' }),
    chunk({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'why' }] }] }),
    chunk({ content: [{ type: 'text', text: 'b' }] }),
    chunk({ content: 'c' }, { finish_reason: 'stop' }),
  ])
  assert.equal(turn.message.text, 'abc')
  assert.equal(turn.reasoning, 'why')
})

for (const [form, turn] of [
  [
    'streamed',
    () =>
      streamed(adapters['chat']!, [
        chunk({ function_call: { name: 'ls', arguments: '{"a"' } }),
        chunk({ function_call: { arguments: ':1}' } }),
        chunk({}, { finish_reason: 'function_call' }),
      ]),
  ],
  [
    'not streamed',
    () =>
      adapters['chat']!.decode(
        {
          choices: [
            {
              message: { content: null, function_call: { name: 'ls', arguments: '{"a":1}' } },
              finish_reason: 'function_call',
            },
          ],
        },
        modelRequest(),
        context,
      ),
  ],
] as const) {
  test(`chat: the function_call of old servers is a call, ${form}`, () => {
    const { message, stop } = turn()
    assert.deepEqual(message.calls.map(({ tool, args }) => [tool, args]), [['ls', { a: 1 }]])
    assert.equal(stop, 'tool_calls')
  })
}

test('chat: calls that share one id are sent back with distinct ids, each with its result', () => {
  const calls = ['a', 'b'].map((path) => ({
    id: 'call_same_for_all',
    type: 'function',
    function: { name: 'read', arguments: `{"path":"${path}"}` },
  }))
  const turn = adapters['chat']!.decode(
    { choices: [{ message: { content: null, tool_calls: calls }, finish_reason: 'tool_calls' }] },
    modelRequest(), context,
  )
  const messages = afterCalls(turn, [{ output: 'A' }, { output: 'B' }])
  const body = adapters['chat']!.encode(modelRequest({ messages }), {
    model: 'm',
    stream: true,
  }).body
  const [, assistant, first, second] = body['messages'] as {
    tool_calls?: { id: string }[]
    tool_call_id?: string
    content: string
  }[]
  const ids = assistant?.tool_calls?.map(({ id }) => id) ?? []
  assert.equal(new Set(ids).size, 2)
  assert.deepEqual([first?.tool_call_id, second?.tool_call_id], ids)
  assert.deepEqual([first?.content, second?.content], ['A', 'B'])
})

test('responses: items without an index keep their order; text of any kind is read', () => {
  const turn = streamed(adapters['responses']!, [
    { type: 'response.output_item.done', item: { type: 'reasoning', summary: [] } },
    {
      type: 'response.output_item.done',
      item: { type: 'message', content: [{ type: 'text', text: 'A' }] },
    },
    {
      type: 'response.output_item.done',
      item: { type: 'function_call', call_id: 'call_123456', name: 'f', arguments: '{}' },
    },
    { type: 'response.completed', response: { status: 'completed', output: [] } },
  ])
  assert.equal(turn.message.text, 'A')
  assert.deepEqual(turn.message.calls.map(({ tool }) => tool), ['f'])
})

test("responses: items of the provider's tools are not calls, and are sent back unchanged", () => {
  const search = {
    type: 'web_search_call',
    id: 'ws_1',
    status: 'completed',
    action: { type: 'search', query: 'x' },
  }
  const output = [
    search,
    {
      type: 'message',
      role: 'assistant',
      content: [{ type: 'output_text', text: 'Found.', annotations: [] }],
    },
  ]
  const turn = adapters['responses']!.decode(
    { status: 'completed', output },
    modelRequest(),
    context,
  )
  assert.deepEqual(turn.message.calls, [])
  const body = adapters['responses']!.encode(modelRequest({ messages: [turn.message] }), {
    model: 'm',
    stream: true,
  }).body
  assert.deepEqual((body['input'] as unknown[])[0], search)
})

test('gemini: a stream in the form of one array is accepted', () => {
  const turn = adapters['gemini']!.decode(
    [
      { candidates: [{ content: { parts: [{ text: 'Hel' }] } }] },
      {
        candidates: [
          {
            content: {
              parts: [
                { text: 'lo' },
                { functionCall: { name: 'a' } },
                { functionCall: { name: 'a', args: null } },
              ],
            },
            finishReason: 'STOP',
          },
        ],
        usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2 },
      },
    ],
    modelRequest(),
    context,
  )
  assert.equal(turn.message.text, 'Hello')
  assert.equal(turn.message.calls.length, 2)
  assert.equal(new Set(turn.message.calls.map(({ call_id }) => call_id)).size, 2)
  assert.equal(turn.usage.input_tokens, 3)
})

/** Failures after tokens were used: title, decoding, input and output tokens. */
const PAID_FAILURES: readonly (readonly [string, () => unknown, number, number])[] = [
  [
    'gemini: a malformed call',
    () =>
      adapters['gemini']!.decode(
        {
          candidates: [{ finishReason: 'MALFORMED_FUNCTION_CALL' }],
          usageMetadata: { promptTokenCount: 30, candidatesTokenCount: 7, totalTokenCount: 37 },
        },
        modelRequest(),
        context,
      ),
    30,
    7,
  ],
  [
    'responses: a failed response',
    () =>
      adapters['responses']!.decode(
        {
          status: 'failed',
          error: { code: 'server_error', message: 'sorry' },
          usage: { input_tokens: 5, output_tokens: 2 },
        },
        modelRequest(),
        context,
      ),
    5,
    2,
  ],
  [
    'responses: a failed stream',
    () =>
      streamed(adapters['responses']!, [
        {
          type: 'response.failed',
          response: {
            error: { code: 'server_error', message: 'sorry' },
            usage: { input_tokens: 5, output_tokens: 2 },
          },
        },
      ]),
    5,
    2,
  ],
  [
    'chat: a finish reason that means an error',
    () =>
      adapters['chat']!.decode(
        {
          choices: [{ message: { content: 'half' }, finish_reason: 'error' }],
          usage: { prompt_tokens: 4, completion_tokens: 1 },
        },
        modelRequest(),
        context,
      ),
    4,
    1,
  ],
]
for (const [title, fail, input, output] of PAID_FAILURES) {
  test(`${title} has the usage in its error`, () => {
    assert.throws(fail, (error) => {
      assert.ok(error instanceof ModelError)
      assert.deepEqual([error.usage?.input_tokens, error.usage?.output_tokens], [input, output])
      return true
    })
  })
}

for (const [name, events, input] of [
  [
    'chat',
    [{ ...chunk({ content: 'a' }), usage: { prompt_tokens: 43, completion_tokens: 10 } }],
    43,
  ],
  [
    'anthropic',
    [{ type: 'message_start', message: { usage: { input_tokens: 11, output_tokens: 1 } } }],
    11,
  ],
  [
    'gemini',
    [{ candidates: [{ content: { parts: [] } }], usageMetadata: { promptTokenCount: 9 } }],
    9,
  ],
] as const) {
  test(`${name}: the usage of a stream that is cut off is known`, () => {
    const decoder = adapters[name]!.decodeStream(modelRequest(), context)
    for (const event of events) decoder.push({ event: 'message', data: JSON.stringify(event) })
    assert.equal(decoder.usage.input_tokens, input)
    assert.throws(() => decoder.finish(), /in the middle/)
  })
}
