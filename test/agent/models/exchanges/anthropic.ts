/** Answers of Anthropic's Messages interface. */
import type { JsonObject } from 'runwright/agent'
import { recording } from '../exchange.js'
import type { Exchange } from './table.js'

const ID = 'toolu_aaaaaa'
const toolUse = (id: string, name = 'bash', input: object = {}): object => ({
  type: 'tool_use', id, name, input,
})
const start = (index: number, content_block: object): object => ({
  type: 'content_block_start', index, content_block,
})
const delta = (index: number, value: object): object => ({
  type: 'content_block_delta', index, delta: value,
})
const json = (index: number, partial_json: string): object =>
  delta(index, { type: 'input_json_delta', partial_json })
/** A block, and the deltas of its fields. */
const block = (index: number, content_block: object, ...deltas: readonly object[]): object[] => [
  start(index, content_block), ...deltas.map((one) => delta(index, one)),
  { type: 'content_block_stop', index },
]
const text = (index: number, ...pieces: readonly string[]): object[] =>
  block(
    index, { type: 'text', text: '' }, ...pieces.map((one) => ({ type: 'text_delta', text: one })),
  )
const stop = (stop_reason: string, usage: object = { output_tokens: 7 }): object[] => [
  { type: 'message_delta', delta: { stop_reason, stop_sequence: null, stop_details: null }, usage },
  { type: 'message_stop' },
]
const began = (usage: object): object => ({
  type: 'message_start',
  message: {
    type: 'message', role: 'assistant', content: [], usage: { output_tokens: 1, ...usage },
  },
})
/** A stream as the service sends it: with pings, and 10 tokens of input unless told otherwise. */
const stream = (
  blocks: readonly object[], stop_reason: string, usage: object, started: object = {},
): readonly object[] => [
  began({ input_tokens: 10, ...started }),
  ...blocks.flatMap((one) => [{ type: 'ping' }, one]), ...stop(stop_reason, usage),
]
const message = (
  content: readonly object[], stop_reason: string | null, usage: object = {},
): JsonObject =>
  ({ type: 'message', role: 'assistant', content, stop_reason, usage }) as JsonObject
const turn = (...content: readonly object[]): object => ({ role: 'assistant', content })
const results = (...ids: readonly string[]): object => ({
  role: 'user',
  content: ids.map((id, i) => ({
    type: 'tool_result', tool_use_id: id, content: `result ${i}`,
  })),
})

/** The beginning and the end of the recorded stream with thinking, joined. */
function excerpt(): string {
  const events = String(recording('anthropic-stream-thinking').response.body).split('\n\n')
  return [...events.slice(0, 5), ...events.slice(16, 22), ...events.slice(-6)].join('\n\n')
}

const SEALED: readonly object[] = [
  { type: 'thinking', thinking: 'Hm, so.', signature: 'c2lnbmVk' },
  { type: 'redacted_thinking', data: 'b3BhcXVl' },
  { type: 'text', text: 'I look.' },
  toolUse('toolu_bbbbbb', 'read', { path: 'a' }),
]
const FOUND = {
  type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1',
  content: [{ type: 'web_search_result', url: 'http://a.test', encrypted_content: 'RU5D' }],
}

const BLOCKS: readonly Exchange[] = [
  {
    title: 'an excerpt of the recorded stream with thinking', stream: excerpt(),
    gives: {
      reasoning: 'This is a straightforward question about', text: 'Here are the crossing streets.',
    },
  },
  {
    title: 'streamed arguments are joined per block, even if blocks interleave',
    stream: [
      began({ input_tokens: 5, cache_read_input_tokens: 90, cache_creation_input_tokens: 5 }),
      start(0, toolUse(ID)), start(1, toolUse('toolu_bbbbbb')),
      json(0, ''), json(0, '{"comm'), json(1, '{"command":"pwd"}'), json(0, 'and":"ls"}'),
      start(2, toolUse('toolu_cccccc', 'list_files')),
      ...stop('tool_use'),
    ],
    gives: {
      calls: [['bash', { command: 'ls' }], ['bash', { command: 'pwd' }], ['list_files', {}]],
      usage: [100, 7, 90, 0],
    },
  },
  {
    title: 'calls of a truncated answer carry an error and are sent back with empty arguments',
    stream: [
      start(0, { type: 'text', text: 'Wri' }), delta(0, { type: 'text_delta', text: 'ting.' }),
      start(1, toolUse(ID, 'write_file')), json(1, '{"path":"a","content":"half'),
      ...stop('max_tokens', { output_tokens: 4096 }),
    ],
    gives: { stop: 'length', callError: /cut off after 4096 tokens/ },
    back: [turn({ type: 'text', text: 'Writing.' }, toolUse(ID, 'write_file')), results(ID)],
  },
  {
    title: 'text around a call, and an unknown stop reason',
    body: message(
      [
        { type: 'text', text: 'Now: ' },
        { ...toolUse('toolu_1', 'now'), caller: { type: 'direct' } },
      ],
      null, { input_tokens: 3, output_tokens: 4, service_tier: 'standard' },
    ),
    gives: { text: 'Now: ', calls: [['now', {}]], stop: 'tool_calls', usage: [3, 4, 0, 0] },
  },
  {
    title: 'thinking, also redacted, is sent back with its signature',
    whole: message(SEALED, 'tool_use'),
    back: [turn(...SEALED), results('toolu_bbbbbb')],
  },
  {
    title: 'redacted thinking is sent back unchanged, before the call',
    stream: stream(
      [
        ...block(0, { type: 'redacted_thinking', data: 'U0VBTEVE' }),
        ...block(
          1, { type: 'thinking', thinking: '', signature: '' },
          { type: 'signature_delta', signature: 'c2ln' },
        ),
        ...block(2, toolUse('toolu_1', 'now'), { type: 'input_json_delta', partial_json: '' }),
      ],
      'tool_use', { output_tokens: 30, output_tokens_details: { thinking_tokens: 12 } },
    ),
    gives: {
      text: '', reasoning: '', stop: 'tool_calls', calls: [['now', {}]], usage: [10, 30, 0, 12],
    },
    back: [
      turn(
        { type: 'redacted_thinking', data: 'U0VBTEVE' },
        { type: 'thinking', thinking: '', signature: 'c2ln' }, toolUse('toolu_1', 'now'),
      ),
    ],
  },
  {
    title: 'neither thinking without its signature nor empty text is sent back',
    stream: [
      start(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, { type: 'thinking_delta', thinking: 'Hm' }),
      start(1, { type: 'text', text: '' }),
      start(2, { type: 'redacted_thinking', data: 'U0NS' }),
      start(3, toolUse('', 'bash', { command: 'ls' })),
      ...stop('tool_use'),
    ],
    gives: { ids: ['call_1_0_1'], calls: [['bash', { command: 'ls' }]] },
    back: [
      turn(
        { type: 'redacted_thinking', data: 'U0NS' },
        toolUse('call_1_0_1', 'bash', { command: 'ls' }),
      ),
      results('call_1_0_1'),
    ],
  },
  {
    title: 'server tools are not calls, and are sent back with their results and sources',
    stream: stream(
      [
        ...block(
          0, { ...toolUse('srvtoolu_1', 'web_search'), type: 'server_tool_use' },
          ...['', '{"qu', 'ery":"x"}'].map((partial_json) => ({
            type: 'input_json_delta', partial_json,
          })),
        ),
        ...block(1, FOUND),
        ...block(
          2, { type: 'text', text: '', citations: [] },
          { type: 'citations_delta', citation: { url: 'http://a.test', encrypted_index: 'SURY' } },
          { type: 'text_delta', text: 'So.' },
        ),
      ],
      'end_turn',
      { input_tokens: 900, output_tokens: 40, server_tool_use: { web_search_requests: 1 } },
    ),
    gives: { text: 'So.', stop: 'end', calls: [], usage: [900, 40, 0, 0] },
    back: [
      turn(
        { ...toolUse('srvtoolu_1', 'web_search', { query: 'x' }), type: 'server_tool_use' }, FOUND,
        {
          type: 'text', text: 'So.',
          citations: [{ url: 'http://a.test', encrypted_index: 'SURY' }],
        },
      ),
    ],
  },
  {
    title: 'unknown blocks are kept; unknown deltas and events are ignored',
    stream: stream(
      [
        ...block(0, { type: 'hologram', data: 'x' }, { type: 'hologram_delta', more: 'y' }),
        ...text(1, 'Hi'), { type: 'weather_report', sun: true },
      ],
      'end_turn', { output_tokens: 3 },
    ),
    gives: { text: 'Hi', stop: 'end' },
    back: [turn({ type: 'hologram', data: 'x' }, { type: 'text', text: 'Hi' })],
  },
  {
    title: 'text and thinking without a block start are read',
    stream: [
      delta(0, { type: 'thinking_delta', thinking: 'Hm.' }),
      delta(0, { type: 'signature_delta', signature: 's' }),
      delta(1, { type: 'text_delta', text: 'Hello' }),
      delta(2, { type: 'something_delta', new: 1 }),
      ...stop('end_turn'),
    ],
    gives: { text: 'Hello', reasoning: 'Hm.' },
    back: [
      turn(
        { type: 'thinking', thinking: 'Hm.', signature: 's' }, { type: 'text', text: 'Hello' },
      ),
    ],
  },
]

const USAGE: readonly Exchange[] = [
  {
    title: 'tokens written to and read from the cache are input, however they are split',
    stream: stream(
      text(0, 'Hi'), 'end_turn',
      {
        input_tokens: 10, cache_creation_input_tokens: 300, cache_read_input_tokens: 2000,
        output_tokens: 5,
      },
      {
        cache_creation_input_tokens: 300, cache_read_input_tokens: 2000,
        cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 200 },
        service_tier: 'standard',
      },
    ),
    gives: { text: 'Hi', usage: [2310, 5, 2000, 0] },
  },
  {
    title: 'tokens for compacting the conversation count, and the summary is sent back',
    stream: stream(
      [
        ...block(
          0, { type: 'compaction', content: null },
          { type: 'compaction_delta', content: 'Said before.' },
        ),
        ...text(1, 'Hello!'),
      ],
      'end_turn',
      {
        input_tokens: 181, cache_read_input_tokens: 0, output_tokens: 8,
        iterations: [
          {
            type: 'compaction', input_tokens: 100, cache_read_input_tokens: 55096,
            output_tokens: 83,
          },
          { type: 'message', input_tokens: 181, cache_read_input_tokens: 0, output_tokens: 8 },
        ],
      },
      { input_tokens: 100, cache_read_input_tokens: 55096 },
    ),
    gives: { text: 'Hello!', usage: [55377, 91, 55096, 0] },
    back: [
      turn({ type: 'compaction', content: 'Said before.' }, { type: 'text', text: 'Hello!' }),
    ],
  },
  {
    title: 'thinking tokens of newer models are counted separately',
    body: message([{ type: 'text', text: 'x' }], 'end_turn', {
      input_tokens: 10, output_tokens: 145, output_tokens_details: { thinking_tokens: 47 },
    }),
    stream: [
      began({ input_tokens: 10, output_tokens: 2 }),
      ...stop('end_turn', {
        input_tokens: 10, output_tokens: 145, output_tokens_details: { thinking_tokens: 47 },
      }),
    ],
    gives: { usage: [10, 145, 0, 47] },
  },
]

const STOPS: readonly Exchange[] = [
  ...(
    [
      ['end_turn', 'end'],
      ['stop_sequence', 'end'],
      ['refusal', 'content_filter'],
      ['pause_turn', 'other'],
      ['model_context_window_exceeded', 'length'],
      ['tool_use', 'end'],
    ] as const
  ).map(([reason, becomes]): Exchange => ({
    title: `the stop reason ${reason} without calls becomes ${becomes}`,
    stream: stream(text(0, 'Hm'), reason, { output_tokens: 2 }),
    gives: { text: 'Hm', stop: becomes, usage: [10, 2, 0, 0] },
  })),
  {
    title: 'an empty answer',
    whole: message([], 'end_turn', { input_tokens: 3, output_tokens: 2 }),
    gives: { text: '', calls: [], stop: 'end', usage: [3, 2, 0, 0] },
  },
  {
    title: 'pings and unknown events are ignored, and counts may be missing',
    stream: [
      { type: 'ping' }, { type: 'something_new' }, start(0, { type: 'text', text: 'Hi' }),
      { type: 'message_delta', delta: { stop_reason: 'end_turn' } }, { type: 'message_stop' },
    ],
    gives: { text: 'Hi', usage: [0, 0, 0, 0] },
  },
]

const FAILURES: readonly Exchange[] = [
  ...(
    [
      ['overloaded_error', true],
      ['api_error', true],
      ['rate_limit_error', true],
      ['invalid_request_error', false],
      ['authentication_error', false],
    ] as const
  ).map(([type, retryable]): Exchange => ({
    title: `${type} inside a stream is thrown, retryable: ${retryable}`,
    stream: [
      start(0, { type: 'text', text: 'H' }), { type: 'error', error: { type, message: 'Sorry' } },
    ],
    fails: { retryable },
  })),
  {
    title: 'an error in a 200 response',
    body: { type: 'error', error: { type: 'overloaded_error' } },
    fails: { retryable: true },
  },
  {
    title: 'an answer of another format', body: { choices: [] },
    fails: { retryable: false, message: /Messages interface/ },
  },
  {
    title: 'arguments of no call', stream: [json(4, '{}')],
    fails: { retryable: true, message: /for no tool call/ },
  },
]

export const ANTHROPIC: readonly Exchange[] = [...BLOCKS, ...USAGE, ...STOPS, ...FAILURES]
