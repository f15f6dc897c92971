/**
 * Answers of servers in the field, in addition to the recordings. Each is decoded as a whole, byte
 * by byte and in random pieces, and the resulting turn is sent back.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  anthropicAdapter,
  geminiAdapter,
  openAiChatAdapter,
  openAiResponsesAdapter,
  type ModelAdapter,
  type ModelTurn,
  type StopReason,
} from 'runwright/agent'
import {
  afterCalls,
  context,
  decodePieces,
  modelRequest,
  randomPieces,
  seeded,
} from './exchange.js'

const chat = openAiChatAdapter()
const responses = openAiResponsesAdapter()
const anthropic = anthropicAdapter()
const gemini = geminiAdapter()

/** What to expect of a turn; omitted fields are not compared. */
interface Expected {
  readonly text?: string
  readonly reasoning?: string
  readonly stop?: StopReason
  readonly calls?: readonly (readonly [tool: string, args: object])[]
  /** Input, output, cached and reasoning tokens. */
  readonly usage?: readonly [number, number, number, number]
}

function assertTurn(turn: ModelTurn, expected: Expected): void {
  const { message, usage } = turn
  const found: Record<string, unknown> = {
    text: message.text,
    reasoning: turn.reasoning,
    stop: turn.stop,
    calls: message.calls.map(({ tool, args }) => [tool, args]),
    usage: [usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens],
  }
  for (const [name, value] of Object.entries(expected)) assert.deepEqual(found[name], value, name)
}

/** The messages, input or contents of the next request, after `turn` and its results. */
function sentBack(adapter: ModelAdapter, turn: ModelTurn): readonly object[] {
  const messages = afterCalls(
    turn,
    turn.message.calls.map((_, i) => ({ output: `result ${i}` })),
  )
  const { body } = adapter.encode(modelRequest({ messages }), { model: 'm', stream: true })
  return (body['messages'] ?? body['input'] ?? body['contents']) as unknown as object[]
}

/** The lines of a stream with these values as its data; a string is a complete line. */
function lines(pieces: readonly unknown[], end = '\n', colon = 'data: '): string {
  return pieces
    .map(
      (piece) =>
        (typeof piece === 'string' ? piece : `${colon}${JSON.stringify(piece)}`) + end + end,
    )
    .join('')
}

interface Streamed {
  readonly title: string
  readonly adapter: ModelAdapter
  readonly stream: string
  readonly expected: Expected
  readonly back?: (list: readonly object[]) => void
}

const DONE = 'data: [DONE]'
const part = (delta: object, more: object = {}): object => ({
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta, logprobs: null, finish_reason: null, ...more }],
})
const callPart = (...tool_calls: object[]): object => part({ tool_calls })
const finish = (finish_reason: string): object => part({}, { finish_reason })
const counts = (prompt: number, completion: number, more: object = {}): object => ({
  choices: [],
  usage: {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    ...more,
  },
})

const CHAT: readonly Omit<Streamed, 'adapter'>[] = [
  {
    title: 'Azure: filter results before the first choice and in each',
    stream: lines([
      {
        choices: [],
        prompt_filter_results: [
          { prompt_index: 0, content_filter_results: { hate: { filtered: false } } },
        ],
      },
      part({ role: 'assistant', content: '', refusal: null }),
      part({ content: 'Hello' }, { content_filter_results: { hate: { filtered: false } } }),
      finish('stop'),
      counts(7, 2, { prompt_tokens_details: { cached_tokens: 4 } }),
      DONE,
    ]),
    expected: { text: 'Hello', stop: 'end', usage: [7, 2, 4, 0] },
  },
  {
    title:
      'OpenRouter: keep-alive comments, reasoning in pieces, a role in each, null details',
    stream: lines([
      ': OPENROUTER PROCESSING',
      ': OPENROUTER PROCESSING',
      part({
        role: 'assistant',
        content: '',
        reasoning: 'Think',
        reasoning_details: [{ type: 'reasoning.text', text: 'Think', index: 0, format: null }],
      }),
      part({
        role: 'assistant',
        content: '',
        reasoning: 'ing.',
        reasoning_details: [{ type: 'reasoning.text', text: 'ing.', index: 0, format: null }],
      }),
      part({ role: 'assistant', content: 'Hi', reasoning: null, reasoning_details: [] }),
      part(
        { role: 'assistant', content: '' },
        { finish_reason: 'stop', native_finish_reason: 'completed' },
      ),
      counts(254, 5, {
        cost: 0.0008,
        prompt_tokens_details: { cached_tokens: 200, cache_write_tokens: 30 },
        completion_tokens_details: { reasoning_tokens: 3 },
      }),
      DONE,
    ]),
    expected: { text: 'Hi', reasoning: 'Thinking.', stop: 'end', usage: [254, 5, 200, 3] },
    back: (list) =>
      assert.deepEqual(list[1], {
        role: 'assistant',
        content: 'Hi',
        reasoning_details: [{ type: 'reasoning.text', text: 'Thinking.', index: 0, format: null }],
      }),
  },
  {
    title: 'calls with interleaved arguments, and with repeated or null names and ids',
    stream: lines([
      callPart({
        index: 0,
        id: 'call_aaaaaaaa1',
        type: 'function',
        function: { name: 'read', arguments: '' },
      }),
      callPart({
        index: 1,
        id: 'call_bbbbbbbb2',
        type: 'function',
        function: { name: 'list', arguments: '{"d' },
      }),
      callPart({ index: 0, id: null, function: { name: null, arguments: '{"path":' } }),
      callPart({
        index: 1,
        id: 'call_bbbbbbbb2',
        function: { name: 'list', arguments: 'ir":"/"}' },
      }),
      callPart({ index: 0, function: { arguments: '"a"}' } }),
      finish('tool_calls'),
      counts(9, 8),
      DONE,
    ]),
    expected: {
      text: '',
      stop: 'tool_calls',
      calls: [
        ['read', { path: 'a' }],
        ['list', { dir: '/' }],
      ],
      usage: [9, 8, 0, 0],
    },
    back: (list) =>
      assert.deepEqual(list.slice(2), [
        { role: 'tool', tool_call_id: 'call_aaaaaaaa1', content: 'result 0' },
        { role: 'tool', tool_call_id: 'call_bbbbbbbb2', content: 'result 1' },
      ]),
  },
  {
    title:
      'vLLM: long ids, finish reason "stop" despite a call, null counts, no blank after data:',
    stream: lines(
      [
        { ...part({ role: 'assistant', content: null }), usage: null },
        {
          ...callPart({
            index: 0,
            id: 'chatcmpl-tool-0123456789abcdef0123456789abcdef',
            type: 'function',
            function: { name: 'now', arguments: '{}' },
          }),
          usage: null,
        },
        { ...finish('stop'), usage: null },
        counts(3, 4),
        'data:[DONE]',
      ],
      '\n',
      'data:',
    ),
    expected: { stop: 'tool_calls', calls: [['now', {}]], usage: [3, 4, 0, 0] },
  },
  {
    title: 'CRLF, an event name, a finish reason with the last text, and no [DONE]',
    stream: lines(
      [part({ content: 'A' }), part({ content: 'B' }, { finish_reason: 'stop' })],
      '\r\n',
    ).replaceAll('data: ', 'event: message\r\ndata: '),
    expected: { text: 'AB', stop: 'end' },
  },
  {
    title: 'xAI: complete calls, and reasoning tokens on top of the completion',
    stream: lines([
      part({ reasoning_content: 'Hm.' }),
      part({
        content: '',
        tool_calls: [
          {
            id: 'call_12345678',
            index: 0,
            type: 'function',
            function: { name: 'now', arguments: '{"zone":"UTC"}' },
          },
        ],
      }),
      finish('tool_calls'),
      {
        choices: [],
        usage: {
          prompt_tokens: 20,
          completion_tokens: 5,
          total_tokens: 125,
          completion_tokens_details: { reasoning_tokens: 100 },
        },
      },
      DONE,
    ]),
    expected: { reasoning: 'Hm.', calls: [['now', { zone: 'UTC' }]], usage: [20, 105, 0, 100] },
  },
  {
    title:
      'DeepSeek: its own name for cached tokens; reasoning is sent back with the calls',
    stream: lines([
      part({ role: 'assistant', content: null, reasoning_content: 'Let me' }),
      part({ reasoning_content: ' see.' }),
      callPart({
        index: 0,
        id: 'call_00_abcdef',
        type: 'function',
        function: { name: 'now', arguments: '{}' },
      }),
      {
        ...finish('tool_calls'),
        usage: {
          prompt_tokens: 50,
          completion_tokens: 9,
          total_tokens: 59,
          prompt_cache_hit_tokens: 32,
          prompt_cache_miss_tokens: 18,
          completion_tokens_details: { reasoning_tokens: 6 },
        },
      },
      DONE,
    ]),
    expected: { reasoning: 'Let me see.', calls: [['now', {}]], usage: [50, 9, 32, 6] },
    back: (list) =>
      assert.equal((list[1] as { reasoning_content: string }).reasoning_content, 'Let me see.'),
  },
  {
    title: 'Mistral: thoughts and text as lists of parts, which are sent back as one part each',
    stream: lines([
      part({ role: 'assistant', content: '' }),
      part({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Two ' }] }] }),
      part({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'steps.' }] }] }),
      part({ content: [{ type: 'text', text: 'He' }] }),
      part({ content: 'll' }),
      part({ content: 'o' }, { finish_reason: 'stop' }),
      DONE,
    ]),
    expected: { text: 'Hello', reasoning: 'Two steps.', stop: 'end' },
    back: (list) =>
      assert.deepEqual((list[1] as { content: object }).content, [
        { type: 'thinking', thinking: [{ type: 'text', text: 'Two steps.' }] },
        { type: 'text', text: 'Hello' },
      ]),
  },
  {
    title: 'local models: a tagged thought is not part of the answer after it',
    stream: lines([
      part({ content: '<th' }),
      part({ content: 'ink>\nIs 2 < 3? </' }),
      part({ content: 'b> yes</thi' }),
      part({ content: 'nk>\n' }),
      part({ content: '\nYes <b>.' }),
      finish('stop'),
      DONE,
    ]),
    expected: { text: 'Yes <b>.', reasoning: 'Is 2 < 3? </b> yes', stop: 'end' },
    back: (list) => assert.equal((list[1] as { content: string }).content, 'Yes <b>.'),
  },
  {
    title: 'text that merely begins like such a tag is text',
    stream: lines([
      part({ content: '<' }),
      part({ content: 'this> is' }),
      part({ content: ' HTML' }),
      finish('stop'),
      DONE,
    ]),
    expected: { text: '<this> is HTML', reasoning: '' },
  },
  {
    title: 'a refusal in pieces is the text',
    stream: lines([
      part({ role: 'assistant', content: null, refusal: '' }),
      part({ refusal: 'I will' }),
      part({ refusal: ' not.' }),
      finish('stop'),
      DONE,
    ]),
    expected: { text: 'I will not.', stop: 'refusal' },
  },
  {
    title: 'an answer cut off by a filter',
    stream: lines([part({ content: 'Half' }), finish('content_filter'), DONE]),
    expected: { text: 'Half', stop: 'content_filter' },
  },
  {
    title: 'Moonshot: usage in the choice, and numbered ids that must be sent back unchanged',
    stream: lines([
      part({ role: 'assistant', content: '' }),
      callPart({
        index: 0,
        id: 'functions.now:0',
        type: 'function',
        function: { name: 'now', arguments: '{}' },
      }),
      {
        choices: [
          {
            index: 0,
            delta: {},
            finish_reason: 'tool_calls',
            usage: {
              prompt_tokens: 19,
              completion_tokens: 13,
              total_tokens: 32,
              cached_tokens: 19,
            },
          },
        ],
      },
      DONE,
    ]),
    expected: { calls: [['now', {}]], usage: [19, 13, 19, 0] },
    back: (list) =>
      assert.equal((list[2] as { tool_call_id: string }).tool_call_id, 'functions.now:0'),
  },
  {
    title: 'late names, indexes from 1, and empty names after them',
    stream: lines([
      callPart({
        index: 1,
        id: 'call_aaaaaaaa1',
        type: 'function',
        function: { name: null, arguments: '{}' },
      }),
      callPart({ index: 1, type: 'function', function: { name: 'now', arguments: '' } }),
      callPart({
        index: 2,
        id: 'call_bbbbbbbb2',
        type: 'function',
        function: { name: 'read', arguments: '{"path"' },
      }),
      callPart({ index: 2, type: 'function', function: { name: '', arguments: ':"a"}' } }),
      finish('tool_calls'),
      DONE,
    ]),
    expected: {
      calls: [
        ['now', {}],
        ['read', { path: 'a' }],
      ],
    },
  },
  {
    title:
      'Gemini’s Chat Completions: no index, a signature in the call, a total above the sum',
    stream: lines([
      {
        choices: [
          {
            index: 0,
            delta: {
              role: 'assistant',
              tool_calls: [
                {
                  extra_content: { google: { thought_signature: 'c2ln' } },
                  function: { arguments: '{}', name: 'now' },
                  id: 'function-call-2900024254458648715',
                  type: 'function',
                },
              ],
            },
            finish_reason: 'stop',
          },
        ],
        usage: { prompt_tokens: 35, completion_tokens: 12, total_tokens: 126 },
      },
      DONE,
    ]),
    expected: { calls: [['now', {}]], stop: 'tool_calls', usage: [35, 91, 0, 79] },
    back: (list) =>
      assert.deepEqual((list[1] as { tool_calls: object[] }).tool_calls[0], {
        extra_content: { google: { thought_signature: 'c2ln' } },
        id: 'function-call-2900024254458648715',
        type: 'function',
        function: { name: 'now', arguments: '{}' },
      }),
  },
]

const message = (
  content: readonly object[],
  stop: string,
  usage: object,
  started: object = {},
): string => {
  const events: object[] = [
    {
      type: 'message_start',
      message: {
        type: 'message',
        role: 'assistant',
        content: [],
        usage: { input_tokens: 10, output_tokens: 1, ...started },
      },
    },
  ]
  content.forEach((event) => events.push({ type: 'ping' }, event))
  events.push(
    {
      type: 'message_delta',
      delta: { stop_reason: stop, stop_sequence: null, stop_details: null },
      usage,
    },
    { type: 'message_stop' },
  )
  return events
    .map(
      (event) =>
        `event: ${(event as { type: string }).type}\ndata: ${JSON.stringify(event)}    \n\n`,
    )
    .join('')
}
const block = (index: number, content_block: object, ...deltas: object[]): object[] => [
  { type: 'content_block_start', index, content_block },
  ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
  { type: 'content_block_stop', index },
]
const json = (...pieces: string[]): object[] =>
  pieces.map((partial_json) => ({ type: 'input_json_delta', partial_json }))

const ANTHROPIC: readonly Omit<Streamed, 'adapter'>[] = [
  {
    title: 'redacted thinking is sent back unchanged, before the call',
    stream: message(
      [
        ...block(0, { type: 'redacted_thinking', data: 'U0VBTEVE' }),
        ...block(
          1,
          { type: 'thinking', thinking: '', signature: '' },
          { type: 'signature_delta', signature: 'c2ln' },
        ),
        ...block(2, { type: 'tool_use', id: 'toolu_1', name: 'now', input: {} }, ...json('')),
      ],
      'tool_use',
      { output_tokens: 30, output_tokens_details: { thinking_tokens: 12 } },
    ),
    expected: {
      text: '',
      reasoning: '',
      stop: 'tool_calls',
      calls: [['now', {}]],
      usage: [10, 30, 0, 12],
    },
    back: (list) =>
      assert.deepEqual((list[1] as { content: object }).content, [
        { type: 'redacted_thinking', data: 'U0VBTEVE' },
        { type: 'thinking', thinking: '', signature: 'c2ln' },
        { type: 'tool_use', id: 'toolu_1', name: 'now', input: {} },
      ]),
  },
  {
    title:
      'server tools are not calls, and are sent back with their results and sources',
    stream: message(
      [
        ...block(
          0,
          { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
          ...json('', '{"qu', 'ery":"x"}'),
        ),
        ...block(1, {
          type: 'web_search_tool_result',
          tool_use_id: 'srvtoolu_1',
          content: [{ type: 'web_search_result', url: 'http://a.test', encrypted_content: 'RU5D' }],
        }),
        ...block(
          2,
          { type: 'text', text: '', citations: [] },
          { type: 'citations_delta', citation: { url: 'http://a.test', encrypted_index: 'SURY' } },
          { type: 'text_delta', text: 'So.' },
        ),
      ],
      'end_turn',
      { input_tokens: 900, output_tokens: 40, server_tool_use: { web_search_requests: 1 } },
    ),
    expected: { text: 'So.', stop: 'end', calls: [], usage: [900, 40, 0, 0] },
    back: (list) =>
      assert.deepEqual((list[1] as { content: object }).content, [
        { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } },
        {
          type: 'web_search_tool_result',
          tool_use_id: 'srvtoolu_1',
          content: [{ type: 'web_search_result', url: 'http://a.test', encrypted_content: 'RU5D' }],
        },
        {
          type: 'text',
          text: 'So.',
          citations: [{ url: 'http://a.test', encrypted_index: 'SURY' }],
        },
      ]),
  },
  {
    title: 'tokens written to and read from the cache are input, however they are split',
    stream: message(
      [...block(0, { type: 'text', text: '' }, { type: 'text_delta', text: 'Hi' })],
      'end_turn',
      {
        input_tokens: 10,
        cache_creation_input_tokens: 300,
        cache_read_input_tokens: 2000,
        output_tokens: 5,
      },
      {
        cache_creation_input_tokens: 300,
        cache_read_input_tokens: 2000,
        cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 200 },
        service_tier: 'standard',
      },
    ),
    expected: { text: 'Hi', usage: [2310, 5, 2000, 0] },
  },
  {
    title: 'tokens for compacting the conversation count, and the summary is sent back',
    stream: message(
      [
        ...block(
          0,
          { type: 'compaction', content: null },
          { type: 'compaction_delta', content: 'Said before.' },
        ),
        ...block(1, { type: 'text', text: '' }, { type: 'text_delta', text: 'Hello!' }),
      ],
      'end_turn',
      {
        input_tokens: 181,
        cache_read_input_tokens: 0,
        output_tokens: 8,
        iterations: [
          {
            type: 'compaction',
            input_tokens: 100,
            cache_read_input_tokens: 55096,
            output_tokens: 83,
          },
          { type: 'message', input_tokens: 181, cache_read_input_tokens: 0, output_tokens: 8 },
        ],
      },
      { input_tokens: 100, cache_read_input_tokens: 55096 },
    ),
    expected: { text: 'Hello!', usage: [55377, 91, 55096, 0] },
    back: (list) =>
      assert.deepEqual((list[1] as { content: object[] }).content[0], {
        type: 'compaction',
        content: 'Said before.',
      }),
  },
  {
    title: 'unknown blocks are kept; unknown deltas and events are ignored',
    stream: message(
      [
        ...block(0, { type: 'hologram', data: 'x' }, { type: 'hologram_delta', more: 'y' }),
        ...block(1, { type: 'text', text: '' }, { type: 'text_delta', text: 'Hi' }),
        { type: 'weather_report', sun: true },
      ],
      'end_turn',
      { output_tokens: 3 },
    ),
    expected: { text: 'Hi', stop: 'end' },
    back: (list) =>
      assert.deepEqual((list[1] as { content: object[] }).content[0], {
        type: 'hologram',
        data: 'x',
      }),
  },
  ...(
    [
      ['pause_turn', 'other'],
      ['refusal', 'content_filter'],
      ['model_context_window_exceeded', 'length'],
    ] as const
  ).map(([reason, stop]) => ({
    title: `the stop reason ${reason}`,
    stream: message(
      [...block(0, { type: 'text', text: '' }, { type: 'text_delta', text: 'Hm' })],
      reason,
      { output_tokens: 2 },
    ),
    expected: { text: 'Hm', stop, usage: [10, 2, 0, 0] as const },
  })),
]

const event = (type: string, more: object, i: number): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: i, ...more })}\n\n`
const responseStream = (
  last: string,
  response: object,
  ...before: (readonly [string, object])[]
): string =>
  [
    ['response.created', { response: { status: 'in_progress', output: [], usage: null } }] as const,
    ...before,
    [last, { response }] as const,
  ]
    .map(([type, more], i) => event(type, more, i))
    .join('')
const functionCall = {
  id: 'fc_1',
  type: 'function_call',
  status: 'completed',
  call_id: 'call_abcdefgh',
  name: 'now',
  arguments: '{"zone":"UTC"}',
}
const sealed = {
  id: 'rs_1',
  type: 'reasoning',
  summary: [{ type: 'summary_text', text: 'Why.' }],
  encrypted_content: 'U0VBTEVE',
}
const usage = (input: number, output: number, cached: number, reasoning: number): object => ({
  input_tokens: input,
  input_tokens_details: { cached_tokens: cached, cache_write_tokens: 0 },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: reasoning },
  total_tokens: input + output,
})

const RESPONSES: readonly Omit<Streamed, 'adapter'>[] = [
  {
    title: 'items of all kinds; reasoning is sent back with its call',
    stream: responseStream(
      'response.completed',
      {
        status: 'completed',
        output: [
          sealed,
          {
            id: 'ws_1',
            type: 'web_search_call',
            status: 'completed',
            action: { type: 'search', query: 'x' },
          },
          functionCall,
        ],
        usage: usage(61, 148, 32, 128),
      },
      ['response.output_item.added', { output_index: 0, item: { ...sealed, summary: [] } }],
      ['response.reasoning_summary_text.delta', { output_index: 0, delta: 'Why.' }],
      ['response.web_search_call.searching', { output_index: 1, item_id: 'ws_1' }],
      [
        'response.function_call_arguments.delta',
        { output_index: 2, delta: '{"zone":"UTC"}', obfuscation: 'x' },
      ],
      ['response.function_call_arguments.done', { output_index: 2, arguments: '{"zone":"UTC"}' }],
    ),
    expected: {
      text: '',
      reasoning: 'Why.',
      stop: 'tool_calls',
      calls: [['now', { zone: 'UTC' }]],
      usage: [61, 148, 32, 128],
    },
    back: (list) =>
      assert.deepEqual(
        [list[1], list[3], list[4]],
        [
          sealed,
          functionCall,
          { type: 'function_call_output', call_id: 'call_abcdefgh', output: 'result 0' },
        ],
      ),
  },
  {
    title: 'a refusal in pieces',
    stream: responseStream(
      'response.completed',
      {
        status: 'completed',
        output: [
          {
            type: 'message',
            role: 'assistant',
            content: [{ type: 'refusal', refusal: 'No, sorry.' }],
          },
        ],
        usage: usage(5, 4, 0, 0),
      },
      ['response.refusal.delta', { delta: 'No, ' }],
      ['response.refusal.delta', { delta: 'sorry.' }],
      ['response.refusal.done', { refusal: 'No, sorry.' }],
    ),
    expected: { text: 'No, sorry.', stop: 'refusal', usage: [5, 4, 0, 0] },
  },
  ...(
    [
      ['max_output_tokens', 'length'],
      ['max_tokens', 'length'],
      ['content_filter', 'content_filter'],
      ['something_new', 'other'],
    ] as const
  ).map(([reason, stop]) => ({
    title: `an answer that is incomplete due to ${reason}`,
    stream: responseStream(
      'response.incomplete',
      {
        status: 'incomplete',
        incomplete_details: { reason },
        output: [
          {
            type: 'message',
            status: 'incomplete',
            content: [{ type: 'output_text', text: 'Hal' }],
          },
        ],
        usage: usage(5, 4, 0, 0),
      },
      ['response.output_text.delta', { delta: 'Hal' }],
    ),
    expected: { text: 'Hal', stop, usage: [5, 4, 0, 0] as const },
  })),
  {
    title:
      'OpenRouter: items done out of order, unencrypted reasoning, comments, and [DONE]',
    stream: `: OPENROUTER PROCESSING\n\n${responseStream(
      'response.completed',
      { status: 'completed', output: [], usage: { ...usage(78, 37, 0, 22), cost: 0.00001 } },
      ['response.output_text.delta', { output_index: 1, delta: '4' }],
      [
        'response.output_item.done',
        {
          output_index: 1,
          item: {
            type: 'message',
            id: 'msg_tmp_1',
            role: 'assistant',
            content: [{ type: 'output_text', text: '4', annotations: [] }],
          },
        },
      ],
      [
        'response.output_item.done',
        {
          output_index: 0,
          item: {
            type: 'reasoning',
            id: 'rs_tmp_1',
            summary: [],
            content: [{ type: 'reasoning_text', text: 'Sum.' }],
          },
        },
      ],
    )}data: [DONE]\n\n`,
    expected: { text: '4', reasoning: 'Sum.', usage: [78, 37, 0, 22] },
    back: (list) =>
      assert.deepEqual(list.slice(1), [
        {
          type: 'message',
          role: 'assistant',
          content: [{ type: 'output_text', text: '4', annotations: [] }],
        },
      ]),
  },
  {
    title: 'a call of a free-text tool gets a result of the same kind',
    stream: responseStream(
      'response.completed',
      {
        status: 'completed',
        output: [
          {
            type: 'custom_tool_call',
            id: 'ctc_1',
            call_id: 'call_abcdefgh',
            name: 'sql',
            input: 'SELECT 1',
            status: 'completed',
          },
        ],
        usage: usage(5, 4, 0, 0),
      },
      ['response.custom_tool_call_input.delta', { delta: 'SELECT 1' }],
    ),
    expected: { calls: [['sql', { input: 'SELECT 1' }]], stop: 'tool_calls' },
    back: (list) =>
      assert.deepEqual(list[2], {
        type: 'custom_tool_call_output',
        call_id: 'call_abcdefgh',
        output: 'result 0',
      }),
  },
]

const candidate = (
  parts: readonly object[],
  more: object = {},
  usageMetadata: object = {},
): object => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
  usageMetadata,
  modelVersion: 'gemini',
  responseId: 'x',
})

const GEMINI: readonly Omit<Streamed, 'adapter'>[] = [
  {
    title: 'a signed call, an empty part at the end, and counts of which the last apply',
    stream: lines(
      [
        candidate(
          [{ functionCall: { name: 'now', args: {} }, thoughtSignature: 'c2ln' }],
          {},
          { promptTokenCount: 29, candidatesTokenCount: 4, totalTokenCount: 33 },
        ),
        candidate(
          [{ text: '' }],
          { finishReason: 'STOP' },
          {
            promptTokenCount: 29,
            candidatesTokenCount: 10,
            thoughtsTokenCount: 110,
            totalTokenCount: 149,
          },
        ),
      ],
      '\r\n',
    ),
    expected: { text: '', stop: 'tool_calls', calls: [['now', {}]], usage: [29, 120, 0, 110] },
    back: (list) =>
      assert.deepEqual(list.slice(1), [
        {
          role: 'model',
          parts: [{ functionCall: { name: 'now', args: {} }, thoughtSignature: 'c2ln' }],
        },
        {
          role: 'user',
          parts: [{ functionResponse: { name: 'now', response: { output: 'result 0' } } }],
        },
      ]),
  },
  {
    title: 'a signature in an otherwise empty part is kept',
    stream: lines(
      [
        candidate([{ text: 'Hel' }]),
        candidate([{ text: 'lo' }]),
        candidate([{ text: '', thoughtSignature: 'c2ln' }], { finishReason: 'STOP' }),
      ],
      '\r\n',
    ),
    expected: { text: 'Hello', stop: 'end' },
    back: (list) =>
      assert.deepEqual(list[1], {
        role: 'model',
        parts: [{ text: 'Hello' }, { text: '', thoughtSignature: 'c2ln' }],
      }),
  },
  {
    title: 'several calls with ids, only the first one signed, besides thoughts and text',
    stream: lines(
      [
        candidate([{ text: 'I wonder.', thought: true }, { text: 'Reading.' }]),
        candidate(
          [
            {
              functionCall: { id: 'a1', name: 'read', args: { path: 'a' } },
              thoughtSignature: 'c2ln',
            },
            { functionCall: { id: 'b2', name: 'read', args: { path: 'b' } } },
          ],
          { finishReason: 'STOP' },
        ),
      ],
      '\r\n',
    ),
    expected: {
      text: 'Reading.',
      reasoning: 'I wonder.',
      calls: [
        ['read', { path: 'a' }],
        ['read', { path: 'b' }],
      ],
    },
    back: (list) =>
      assert.deepEqual(list[2], {
        role: 'user',
        parts: ['a1', 'b2'].map((id, i) => ({
          functionResponse: { id, name: 'read', response: { output: `result ${i}` } },
        })),
      }),
  },
  {
    title: 'the arguments of a call in a separate piece without its name',
    stream: lines(
      [
        candidate([{ functionCall: { name: 'read', args: {} }, thoughtSignature: 'c2ln' }]),
        candidate([{ functionCall: { args: { path: 'a' } } }], { finishReason: 'STOP' }),
      ],
      '\r\n',
    ),
    expected: { calls: [['read', { path: 'a' }]] },
    back: (list) =>
      assert.deepEqual(list[1], {
        role: 'model',
        parts: [{ functionCall: { name: 'read', args: { path: 'a' } }, thoughtSignature: 'c2ln' }],
      }),
  },
  {
    title: 'code that the server executed, with its tokens counted as input',
    stream: lines(
      [
        candidate([{ executableCode: { language: 'PYTHON', code: 'print(1)' }, thought: true }]),
        candidate([{ executableCode: { language: 'PYTHON', code: 'print(1)' } }], {
          finishReason: 'STOP',
        }),
        candidate([{ codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1\n' } }]),
        candidate(
          [{ text: 'One.' }],
          { finishReason: 'STOP' },
          {
            promptTokenCount: 46,
            toolUsePromptTokenCount: 1268,
            candidatesTokenCount: 235,
            thoughtsTokenCount: 563,
            cachedContentTokenCount: 40,
            totalTokenCount: 2112,
          },
        ),
      ],
      '\r\n',
    ),
    expected: { text: 'One.', stop: 'end', calls: [], usage: [1314, 798, 40, 563] },
    back: (list) =>
      assert.deepEqual(list[1], {
        role: 'model',
        parts: [
          { executableCode: { language: 'PYTHON', code: 'print(1)' } },
          { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1\n' } },
          { text: 'One.' },
        ],
      }),
  },
  ...(['SAFETY', 'MODEL_ARMOR', 'PROHIBITED_CONTENT', 'IMAGE_SAFETY'] as const).map(
    (finishReason) => ({
      title: `a withheld answer: ${finishReason}`,
      stream: lines(
        [
          {
            candidates: [{ finishReason, finishMessage: 'It broke a rule.' }],
            usageMetadata: {
              promptTokenCount: 19,
              candidatesTokenCount: 6,
              thoughtsTokenCount: 27,
              totalTokenCount: 52,
            },
          },
        ],
        '\r\n',
      ),
      expected: { stop: 'content_filter' as const, calls: [], usage: [19, 33, 0, 27] as const },
    }),
  ),
  {
    title: 'an answer that used up its tokens with thinking',
    stream: lines(
      [
        {
          candidates: [{ content: { role: 'model' }, finishReason: 'MAX_TOKENS', index: 0 }],
          usageMetadata: { promptTokenCount: 15, thoughtsTokenCount: 2, totalTokenCount: 17 },
        },
      ],
      '\r\n',
    ),
    expected: { text: '', stop: 'length', usage: [15, 2, 0, 2] },
  },
]

const STREAMS: readonly Streamed[] = [
  ...CHAT.map((one) => ({ ...one, adapter: chat })),
  ...ANTHROPIC.map((one) => ({ ...one, adapter: anthropic })),
  ...RESPONSES.map((one) => ({ ...one, adapter: responses })),
  ...GEMINI.map((one) => ({ ...one, adapter: gemini })),
]

for (const { title, adapter, stream, expected, back } of STREAMS) {
  test(`${adapter.provider}: ${title}`, () => {
    const random = seeded(stream.length)
    const bytes = Buffer.from(stream)
    const cuts: Uint8Array[][] = [
      [bytes],
      Array.from(bytes, (_, at) => bytes.subarray(at, at + 1)),
    ]
    for (let i = 0; i < 20; i++) cuts.push(randomPieces(stream, random))
    const [first, ...others] = cuts.map((pieces) =>
      decodePieces(adapter.decodeStream(modelRequest(), context), pieces),
    )
    assertTurn(first!.turn, expected)
    for (const other of others) assert.deepEqual(other, first)
    assert.equal(first!.visible, first!.turn.message.text)
    const list = sentBack(adapter, first!.turn)
    back?.(list)
  })
}

const WHOLE: readonly (readonly [string, ModelAdapter, object, Expected])[] = [
  [
    'no finish reason',
    gemini,
    {
      candidates: [{ content: { parts: [{ text: 'Hi\n' }], role: 'model' }, avgLogprobs: -0.1 }],
      usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 11, totalTokenCount: 18 },
    },
    { text: 'Hi\n', stop: 'end', usage: [7, 11, 0, 0] },
  ],
  [
    'a prompt that was refused',
    gemini,
    {
      promptFeedback: { blockReason: 'MODEL_ARMOR', blockReasonMessage: 'No.' },
      usageMetadata: { trafficType: 'ON_DEMAND' },
    },
    { stop: 'content_filter', calls: [], usage: [0, 0, 0, 0] },
  ],
  [
    'no finish reason',
    chat,
    { choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' } }] },
    { text: 'Hi', stop: 'end' },
  ],
  [
    'Cerebras: reasoning besides the text, and timings',
    chat,
    {
      choices: [
        {
          finish_reason: 'stop',
          index: 0,
          message: { content: 'Paris.', reasoning: 'Easy.', role: 'assistant' },
        },
      ],
      time_info: { total_time: 0.03 },
      usage: {
        prompt_tokens: 74,
        completion_tokens: 36,
        total_tokens: 110,
        prompt_tokens_details: { cached_tokens: 0 },
      },
    },
    { text: 'Paris.', reasoning: 'Easy.', stop: 'end', usage: [74, 36, 0, 0] },
  ],
  [
    'Groq: a call without content',
    chat,
    {
      choices: [
        {
          finish_reason: 'tool_calls',
          index: 0,
          logprobs: null,
          message: {
            role: 'assistant',
            reasoning: 'So.',
            tool_calls: [
              {
                id: 'fc_3b660a12-1bb6-48d9-b318-07f6d4a64bfb',
                type: 'function',
                function: { name: 'now', arguments: '{"zone":"UTC"}' },
              },
            ],
          },
        },
      ],
      usage: {
        queue_time: 0.005,
        prompt_tokens: 245,
        completion_tokens: 104,
        total_tokens: 349,
        completion_tokens_details: { reasoning_tokens: 70 },
      },
      x_groq: { id: 'req_1' },
    },
    { text: '', reasoning: 'So.', calls: [['now', { zone: 'UTC' }]], usage: [245, 104, 0, 70] },
  ],
  [
    'a tagged thought',
    chat,
    { choices: [{ message: { content: '<think>Hm.</think>\n\nYes.' }, finish_reason: 'stop' }] },
    { text: 'Yes.', reasoning: 'Hm.' },
  ],
  [
    'a tagged thought that was cut off',
    chat,
    { choices: [{ message: { content: '<think>Hm' }, finish_reason: 'length' }] },
    { text: '', reasoning: 'Hm', stop: 'length' },
  ],
  [
    'a finish reason in capitals',
    chat,
    { choices: [{ message: { content: 'Hi' }, finish_reason: 'STOP' }] },
    { stop: 'end' },
  ],
  [
    'moderation results besides the choices',
    chat,
    {
      choices: [
        {
          finish_reason: 'stop',
          index: 0,
          message: { annotations: [], content: 'Talk to me.', refusal: null, role: 'assistant' },
        },
      ],
      moderation: { input: { results: [{ flagged: true }] } },
      usage: {
        prompt_tokens: 12,
        completion_tokens: 1880,
        total_tokens: 1892,
        completion_tokens_details: { reasoning_tokens: 1536 },
      },
    },
    { text: 'Talk to me.', stop: 'end', usage: [12, 1880, 0, 1536] },
  ],
  [
    'Gemini’s Chat Completions: a choice without a message',
    chat,
    {
      choices: [{ finish_reason: 'stop', index: 0 }],
      usage: { prompt_tokens: 5, total_tokens: 5 },
    },
    { text: '', stop: 'end', usage: [5, 0, 0, 0] },
  ],
  [
    'text around a call, and an unknown finish reason',
    anthropic,
    {
      type: 'message',
      content: [
        { type: 'text', text: 'Now: ' },
        { type: 'tool_use', id: 'toolu_1', name: 'now', input: {}, caller: { type: 'direct' } },
      ],
      stop_reason: null,
      usage: { input_tokens: 3, output_tokens: 4, service_tier: 'standard' },
    },
    { text: 'Now: ', calls: [['now', {}]], stop: 'tool_calls', usage: [3, 4, 0, 0] },
  ],
  [
    'an empty answer',
    anthropic,
    {
      type: 'message',
      content: [],
      stop_reason: 'end_turn',
      usage: { input_tokens: 3, output_tokens: 2 },
    },
    { text: '', calls: [], stop: 'end' },
  ],
]

for (const [title, adapter, body, expected] of WHOLE) {
  test(`${adapter.provider}, not streamed: ${title}`, () => {
    const turn = adapter.decode(body, modelRequest(), context)
    assertTurn(turn, expected)
    sentBack(adapter, turn)
  })
}

for (const finish_reason of ['error', 'network_error', 'abort']) {
  test(`chat: an answer that ends with ${finish_reason} is retryable`, () => {
    const body = { choices: [{ message: { content: 'Ha' }, finish_reason }] }
    assert.throws(() => chat.decode(body, modelRequest(), context), {
      code: 'ERR_AGENT_MODEL',
      retryable: true,
    })
  })
}

for (const [title, body, expected] of [
  [
    'no choices at all',
    { choices: [], usage: { prompt_tokens: 5 } },
    { code: 'ERR_AGENT_MODEL_PROTOCOL', retryable: true },
  ],
  [
    'MiniMax: an error besides null choices',
    { choices: null, base_resp: { status_code: 1008, status_msg: 'insufficient balance' } },
    { code: 'ERR_AGENT_MODEL_QUOTA', retryable: false },
  ],
  [
    'MiniMax: a rate limit',
    { choices: null, base_resp: { status_code: 1002, status_msg: 'rate limit' } },
    { code: 'ERR_AGENT_MODEL_RATE_LIMIT', retryable: true },
  ],
] as const) {
  test(`chat: ${title}`, () => {
    assert.throws(() => chat.decode(body, modelRequest(), context), expected)
  })
}
