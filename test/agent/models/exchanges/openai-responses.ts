/** Answers of OpenAI's Responses interface and of the servers that speak it. */
import type { JsonObject } from 'runwright/agent'
import type { Exchange } from './table.js'

const CALL = {
  type: 'function_call', id: 'fc_1', call_id: 'call_123456789', name: 'bash',
  arguments: '{"command":"ls"}', status: 'completed',
}
const REASONING = {
  type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm.' }],
  encrypted_content: 'U0NS',
}
const says = (text: string, more: object = {}): object => ({
  type: 'message', id: 'msg_1', role: 'assistant',
  content: [{ type: 'output_text', text, annotations: [] }], ...more,
})
const LOOK = says('Look.')
const SEARCH = {
  type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'x' },
}
const withoutId = ({ id: _, ...rest }: { readonly id?: string }): object => rest
const resultOf = (call_id: string, type = 'function_call'): object => ({
  type: `${type}_output`, call_id, output: 'result 0',
})
const usage = (input: number, output: number, cached = 0, reasoning = 0): object => ({
  input_tokens: input, input_tokens_details: { cached_tokens: cached, cache_write_tokens: 0 },
  output_tokens: output, output_tokens_details: { reasoning_tokens: reasoning },
  total_tokens: input + output,
})
const response = (output: readonly object[], more: object = {}): JsonObject =>
  ({ status: 'completed', output, usage: {}, ...more }) as JsonObject
const incomplete = (output: readonly object[], reason?: string, more: object = {}): JsonObject =>
  response(output, {
    status: 'incomplete', ...(reason !== undefined && { incomplete_details: { reason } }), ...more,
  })

const event = (type: string, more: object = {}): object => ({ type: `response.${type}`, ...more })
const done = (item: object, output_index?: number): object =>
  event('output_item.done', { output_index, item })
const stream = (last: JsonObject, ...before: readonly object[]): readonly object[] =>
  [
    event('created', { response: { status: 'in_progress', output: [], usage: null } }), ...before,
    event(String(last['status']), { response: last }),
  ].map((one, sequence_number) => ({ ...one, sequence_number }))

const ITEMS: readonly Exchange[] = [
  {
    title: 'encrypted reasoning is sent back before its call',
    whole: response([REASONING, LOOK, CALL]),
    gives: { reasoning: 'Hm.', text: 'Look.' },
    back: [REASONING, LOOK, CALL, resultOf('call_123456789')],
  },
  {
    title: 'unencrypted reasoning is dropped, and then no item keeps its id',
    whole: response([{ ...REASONING, encrypted_content: null }, CALL]),
    back: [withoutId(CALL)],
  },
  {
    title: 'reasoning without a following item is dropped',
    whole: incomplete([LOOK, REASONING], 'max_output_tokens'),
    gives: { stop: 'length' },
    back: [withoutId(LOOK)],
  },
  {
    title: 'reasoning without a text or a call goes back as it came', model: 'gpt-5',
    whole: response([{ ...REASONING, summary: [] }, { ...CALL, name: 'read' }]),
    gives: { reasoning: '' },
    back: [{ ...REASONING, summary: [] }, { ...CALL, name: 'read' }],
  },
  {
    title: 'calls of a truncated answer carry an error and are sent back with empty arguments',
    whole: incomplete(
      [{ ...CALL, arguments: '{"command":"rm -', status: 'incomplete' }], 'max_output_tokens',
      { usage: { output_tokens: 99 } },
    ),
    gives: { stop: 'length', callError: /cut off after 99 tokens/ },
    back: [
      {
        type: 'function_call', id: 'fc_1', call_id: 'call_123456789', name: 'bash', arguments: '{}',
      },
    ],
  },
  {
    title: 'items of all kinds; reasoning is sent back with its call',
    stream: stream(
      response([REASONING, SEARCH, CALL], { usage: usage(61, 148, 32, 128) }),
      event('output_item.added', { output_index: 0, item: { ...REASONING, summary: [] } }),
      event('reasoning_summary_text.delta', { output_index: 0, delta: 'Hm.' }),
      event('web_search_call.searching', { output_index: 1, item_id: 'ws_1' }),
      event('function_call_arguments.delta', {
        output_index: 2, delta: '{"command":"ls"}', obfuscation: 'x',
      }),
      event('function_call_arguments.done', { output_index: 2, arguments: '{"command":"ls"}' }),
    ),
    gives: {
      text: '', reasoning: 'Hm.', stop: 'tool_calls', calls: [['bash', { command: 'ls' }]],
      usage: [61, 148, 32, 128],
    },
    back: [REASONING, SEARCH, CALL, resultOf('call_123456789')],
  },
  {
    title: 'items of the provider’s tools are not calls, and are sent back unchanged',
    whole: response([SEARCH, says('Found.')]),
    gives: { calls: [], text: 'Found.' },
    back: [SEARCH, says('Found.')],
  },
  {
    title: 'a call of a free-text tool gets a result of the same kind',
    stream: stream(
      response([
        {
          type: 'custom_tool_call', id: 'ctc_1', call_id: 'call_abcdefgh', name: 'sql',
          input: 'SELECT 1', status: 'completed',
        },
      ], { usage: usage(5, 4) }),
      event('custom_tool_call_input.delta', { delta: 'SELECT 1' }),
    ),
    gives: { calls: [['sql', { input: 'SELECT 1' }]], stop: 'tool_calls' },
    back: [
      {
        type: 'custom_tool_call', id: 'ctc_1', call_id: 'call_abcdefgh', name: 'sql',
        input: 'SELECT 1', status: 'completed',
      },
      resultOf('call_abcdefgh', 'custom_tool_call'),
    ],
  },
  {
    title: 'streamed items replace an empty output, in the order of their index',
    stream: stream(
      response([]), event('output_text.delta', { delta: 'Lo' }),
      event('reasoning_summary_text.delta', { delta: 'Hm' }),
      event('output_text.delta', { delta: 'ok.' }), done(CALL, 1), done(says('Look.'), 0),
    ),
    gives: { text: 'Look.', calls: [['bash', { command: 'ls' }]] },
    back: [LOOK, CALL],
  },
  {
    title: 'items without an index keep their order; text of any kind is read',
    stream: [
      done({ type: 'reasoning', summary: [] }),
      done({ type: 'message', content: [{ type: 'text', text: 'A' }] }),
      done({ type: 'function_call', call_id: 'call_123456', name: 'f', arguments: '{}' }),
      event('completed', { response: { status: 'completed', output: [] } }),
    ],
    gives: { text: 'A', shown: '', calls: [['f', {}]] },
  },
  {
    title: 'OpenRouter: items done out of order, unencrypted reasoning, comments, and [DONE]',
    stream: [
      ': OPENROUTER PROCESSING',
      ...stream(
        response([], { usage: { ...usage(78, 37, 0, 22), cost: 0.00001 } }),
        event('output_text.delta', { output_index: 1, delta: '4' }),
        done(says('4', { id: 'msg_tmp_1' }), 1),
        done({
          type: 'reasoning', id: 'rs_tmp_1', summary: [],
          content: [{ type: 'reasoning_text', text: 'Sum.' }],
        }, 0),
      ),
      'data: [DONE]',
    ],
    gives: { text: '4', reasoning: 'Sum.', usage: [78, 37, 0, 22] },
    back: [withoutId(says('4'))],
  },
]

const refusal = {
  type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'No, sorry.' }],
}

const STOPS: readonly Exchange[] = [
  {
    title: 'a refusal is the text',
    whole: response([refusal], { usage: usage(5, 4) }),
    stream: stream(
      response([refusal], { usage: usage(5, 4) }),
      event('refusal.delta', { delta: 'No, ' }), event('refusal.delta', { delta: 'sorry.' }),
      event('refusal.done', { refusal: 'No, sorry.' }),
    ),
    gives: { text: 'No, sorry.', stop: 'refusal', usage: [5, 4, 0, 0] },
  },
  ...(
    [
      ['max_output_tokens', 'length'],
      ['max_tokens', 'length'],
      ['content_filter', 'content_filter'],
      ['something_new', 'other'],
      [undefined, 'other'],
    ] as const
  ).map(([reason, stop]): Exchange => ({
    title: `an answer that is incomplete due to ${reason ?? 'no known reason'}`,
    whole: incomplete([says('Hal', { status: 'incomplete' })], reason, { usage: usage(5, 4) }),
    gives: { text: 'Hal', stop, usage: [5, 4, 0, 0] },
  })),
  {
    title: 'nothing but a content filter', whole: incomplete([], 'content_filter'),
    gives: { text: '', stop: 'content_filter' },
  },
  {
    title: 'cached tokens are part of the input, reasoning tokens of the output',
    whole: response([LOOK], { usage: usage(100, 50, 64, 40) }),
    gives: { usage: [100, 50, 64, 40] },
  },
]

const failed = (title: string, last: object, fails: Exchange['fails']): Exchange => ({
  title: `${title} is thrown`, stream: [event('created'), last], fails: fails!,
})
const PAID = {
  status: 'failed', output: [], error: { code: 'server_error', message: 'sorry' },
  usage: { input_tokens: 5, output_tokens: 2 },
}

const FAILURES: readonly Exchange[] = [
  {
    title: 'a response that failed has its usage in the error', whole: PAID,
    fails: { retryable: true, used: [5, 2] },
  },
  {
    title: 'a cancelled response', body: { status: 'cancelled', output: [] },
    fails: { retryable: true },
  },
  {
    title: 'an answer of another format', body: { choices: [] },
    fails: { retryable: false, message: /Responses interface/ },
  },
  failed(
    'response.failed with a rate limit',
    event('failed', {
      response: { error: { code: 'rate_limit_exceeded', message: 'Please try again in 1.5s.' } },
    }),
    { retryable: true, code: 'ERR_AGENT_MODEL_RATE_LIMIT', retryAfterMs: 1_500 },
  ),
  failed('response.failed without details', event('failed'), { retryable: true }),
  failed(
    'an error event', { type: 'error', code: 'server_error', message: 'x', param: null },
    { retryable: true },
  ),
  failed(
    'an error event with an error in it',
    {
      type: 'error',
      error: { type: 'invalid_request_error', code: 'context_length_exceeded', message: 'x' },
    },
    { retryable: false, code: 'ERR_AGENT_MODEL_CONTEXT' },
  ),
  failed(
    'a bare error', { error: { message: 'Invalid prompt', type: 'invalid_request_error' } },
    { retryable: false },
  ),
  failed(
    'a rate limit that names the delay in its text',
    {
      type: 'error', code: 'rate_limit_exceeded',
      message: 'Rate limit reached. Please try again in 1.5s. Visit …',
    },
    { retryable: true, code: 'ERR_AGENT_MODEL_RATE_LIMIT', retryAfterMs: 1_500 },
  ),
]

export const RESPONSES: readonly Exchange[] = [...ITEMS, ...STOPS, ...FAILURES]
