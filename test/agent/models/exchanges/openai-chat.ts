/** Answers of OpenAI's Chat Completions and of the servers that speak them. */
import type { ModelErrorCode } from 'runwright/agent'
import { sse } from './dialects.js'
import { CHAT_CALLS } from './openai-chat-calls.js'
import {
  answer, call, callDelta, calling, counts, delta, DONE, finish, ID, SIGNED, text,
} from './openai-chat-parts.js'
import type { Exchange } from './table.js'

/** An answer with a call and these further fields, and those of them that must go back. */
const echoes = (title: string, fields: object, back = fields, reasoning = 'Hm.'): Exchange => ({
  title: `reasoning goes back with its calls under the name under which it came: ${title}`,
  whole: calling('{ "command" : "ls" }', fields),
  gives: { reasoning },
  back: [
    {
      role: 'assistant', content: null, ...back,
      tool_calls: [call(undefined, ID, 'bash', '{ "command" : "ls" }')],
    },
    { role: 'tool', tool_call_id: ID, content: 'result 0' },
  ],
})
const DETAILS = [{ type: 'reasoning.text', text: 'Hm.' }]
const ENCRYPTED = [{ type: 'reasoning.encrypted', data: 'c2ln', id: 'rs_1', index: 0 }]
const BLOCKS = [{ type: 'thinking', thinking: 'Hm, so.', signature: 'c2ln' }]

const REASONING: readonly Exchange[] = [
  echoes('vLLM', { reasoning: 'Hm.' }),
  echoes('DeepSeek', { reasoning_content: 'Hm.' }),
  echoes('both names at once', { reasoning: 'Hm.', reasoning_content: 'Hm.' }),
  echoes('an empty field', { reasoning: 'Hm.', reasoning_content: null }, { reasoning: 'Hm.' }),
  echoes(
    'OpenRouter, whose details have it', { reasoning: 'Hm.', reasoning_details: DETAILS },
    { reasoning_details: DETAILS },
  ),
  echoes(
    'OpenRouter, whose details are encrypted', { reasoning: 'Hm.', reasoning_details: ENCRYPTED },
    { reasoning_details: ENCRYPTED },
  ),
  echoes('LiteLLM: blocks of Claude', { thinking_blocks: BLOCKS }, undefined, ''),
  {
    title: 'reasoning with calls, signatures and the original arguments are sent back',
    whole: answer({
      role: 'assistant', content: '', reasoning_content: 'Let me look.',
      reasoning_details: ENCRYPTED,
      tool_calls: [call(undefined, '', 'bash', '{ "command" : "ls" }', SIGNED)],
    }),
    gives: { reasoning: 'Let me look.' },
    back: [
      {
        role: 'assistant', content: null,
        reasoning_details: ENCRYPTED, reasoning_content: 'Let me look.',
        tool_calls: [call(undefined, 'call_1_0_1', 'bash', '{ "command" : "ls" }', SIGNED)],
      },
      { role: 'tool', tool_call_id: 'call_1_0_1', content: 'result 0' },
    ],
  },
  {
    title: 'reasoning of a turn without calls is not sent back',
    whole: answer({ content: 'Done', reasoning_content: 'Easy.', reasoning: 'Easy.' }),
    gives: { text: 'Done', reasoning: 'Easy.' },
    back: [{ role: 'assistant', content: 'Done' }],
  },
  {
    title: 'streamed reasoning and its details are joined',
    stream: [
      delta({ role: 'assistant', reasoning_content: 'Let ' }),
      delta({
        reasoning_content: 'me.',
        reasoning_details: [{ index: 0, type: 'reasoning.text', text: 'Let ' }],
      }),
      delta({
        reasoning_details: [{ index: 0, type: 'reasoning.text', text: 'me.', signature: 'U0NS' }],
      }),
      text('Yes'), finish('stop'),
    ],
    gives: { reasoning: 'Let me.', text: 'Yes' },
    back: [
      {
        role: 'assistant', content: 'Yes',
        reasoning_details: [
          { index: 0, type: 'reasoning.text', text: 'Let me.', signature: 'U0NS' },
        ],
      },
    ],
  },
  {
    title: 'OpenRouter: keep-alive comments, reasoning in pieces, a role in each, null details',
    stream: [
      ': OPENROUTER PROCESSING',
      ': OPENROUTER PROCESSING',
      ...['Think', 'ing.'].map((piece) =>
        delta({
          role: 'assistant', content: '', reasoning: piece,
          reasoning_details: [{ type: 'reasoning.text', text: piece, index: 0, format: null }],
        }),
      ),
      delta({ role: 'assistant', content: 'Hi', reasoning: null, reasoning_details: [] }),
      delta(
        { role: 'assistant', content: '' },
        { finish_reason: 'stop', native_finish_reason: 'completed' },
      ),
      counts(254, 5, {
        cost: 0.0008,
        prompt_tokens_details: { cached_tokens: 200, cache_write_tokens: 30 },
        completion_tokens_details: { reasoning_tokens: 3 },
      }),
      DONE,
    ],
    gives: { text: 'Hi', reasoning: 'Thinking.', stop: 'end', usage: [254, 5, 200, 3] },
    back: [
      {
        role: 'assistant', content: 'Hi',
        reasoning_details: [{ type: 'reasoning.text', text: 'Thinking.', index: 0, format: null }],
      },
    ],
  },
  {
    title: 'xAI: complete calls, and reasoning tokens on top of the completion',
    stream: [
      delta({ reasoning_content: 'Hm.' }),
      delta({ content: '', tool_calls: [call(0, 'call_12345678', 'now', '{"zone":"UTC"}')] }),
      finish('tool_calls'),
      counts(20, 5, { total_tokens: 125, completion_tokens_details: { reasoning_tokens: 100 } }),
      DONE,
    ],
    gives: { reasoning: 'Hm.', calls: [['now', { zone: 'UTC' }]], usage: [20, 105, 0, 100] },
  },
  {
    title: 'DeepSeek: its own name for cached tokens; reasoning is sent back with the calls',
    stream: [
      delta({ role: 'assistant', content: null, reasoning_content: 'Let me' }),
      delta({ reasoning_content: ' see.' }),
      callDelta(call(0, 'call_00_abcdef', 'now', '{}')),
      {
        ...finish('tool_calls'),
        usage: {
          prompt_tokens: 50, completion_tokens: 9, total_tokens: 59,
          prompt_cache_hit_tokens: 32, prompt_cache_miss_tokens: 18,
          completion_tokens_details: { reasoning_tokens: 6 },
        },
      },
      DONE,
    ],
    gives: { reasoning: 'Let me see.', calls: [['now', {}]], usage: [50, 9, 32, 6] },
    back: [
      {
        role: 'assistant', content: null, reasoning_content: 'Let me see.',
        tool_calls: [call(undefined, 'call_00_abcdef', 'now', '{}')],
      },
    ],
  },
  {
    title: 'Mistral: thoughts and text as lists of parts, which are sent back as one part each',
    stream: [
      delta({ role: 'assistant', content: '' }),
      text([{ type: 'thinking', thinking: [{ type: 'text', text: 'Two ' }] }]),
      text([{ type: 'thinking', thinking: [{ type: 'text', text: 'steps.' }] }]),
      text([{ type: 'text', text: 'He' }]),
      text('ll'),
      delta({ content: 'o' }, { finish_reason: 'stop' }),
      DONE,
    ],
    gives: { text: 'Hello', reasoning: 'Two steps.', stop: 'end' },
    back: [
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: [{ type: 'text', text: 'Two steps.' }] },
          { type: 'text', text: 'Hello' },
        ],
      },
    ],
  },
  {
    title: 'lists of parts and plain text may be mixed',
    stream: [
      text('a'),
      text([{ type: 'thinking', thinking: [{ type: 'text', text: 'why' }] }]),
      text([{ type: 'text', text: 'b' }]),
      delta({ content: 'c' }, { finish_reason: 'stop' }),
    ],
    gives: { text: 'abc', reasoning: 'why' },
  },
  {
    title: 'a list of thoughts before plain text is reasoning',
    stream: [
      text([{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] }]),
      text('An'),
      delta({ content: 'swer' }, { finish_reason: 'stop' }),
    ],
    gives: { text: 'Answer', reasoning: 'Hm.' },
  },
  {
    title: 'local models: a tagged thought is not part of the answer after it',
    stream: [
      ...['<th', 'ink>\nIs 2 < 3? </', 'b> yes</thi', 'nk>\n', '\nYes <b>.'].map(text),
      finish('stop'), DONE,
    ],
    gives: { text: 'Yes <b>.', reasoning: 'Is 2 < 3? </b> yes', stop: 'end' },
    back: [{ role: 'assistant', content: 'Yes <b>.' }],
  },
  {
    title: 'text that merely begins like such a tag is text',
    stream: [...['<', 'this> is', ' HTML'].map(text), finish('stop'), DONE],
    gives: { text: '<this> is HTML', reasoning: '' },
  },
  {
    title: 'a tagged thought in one piece',
    whole: answer({ content: '<think>Hm.</think>\n\nYes.' }),
    gives: { text: 'Yes.', reasoning: 'Hm.' },
  },
  {
    title: 'a tagged thought that was cut off',
    whole: answer({ content: '<think>Hm' }, 'length'),
    gives: { text: '', reasoning: 'Hm', stop: 'length' },
  },
]

const STOPS: readonly Exchange[] = [
  {
    title: 'no finish reason',
    body: { choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' } }] },
    stream: [text('Hi'), DONE],
    gives: { text: 'Hi', stop: 'end' },
  },
  {
    title: 'a finish reason in capitals', whole: answer({ content: 'Hi' }, 'STOP'),
    gives: { stop: 'end' },
  },
  {
    title: 'chunks without a choice change nothing, and the last usage counts',
    stream: [
      { choices: [] }, text('Hi'), delta({ content: '' }, { finish_reason: 'stop' }), counts(3, 1),
      DONE,
    ],
    gives: { text: 'Hi', usage: [3, 1, 0, 0] },
  },
  {
    title: 'choices besides the first are ignored',
    stream: [
      {
        choices: [
          { index: 1, delta: { content: 'other' } }, { index: 0, delta: { content: 'mine' } },
        ],
      },
      { choices: [{ index: 1, delta: { content: 'other' }, finish_reason: 'stop' }] },
      finish('stop'),
    ],
    gives: { text: 'mine' },
  },
  {
    title: 'CRLF, an event name, a finish reason with the last text, and no [DONE]',
    stream: sse([
      { type: 'message', ...text('A') },
      { type: 'message', ...delta({ content: 'B' }, { finish_reason: 'stop' }) },
    ], true).replaceAll('\n', '\r\n'),
    gives: { text: 'AB', stop: 'end' },
  },
  {
    title: 'Azure: filter results before the first choice and in each',
    stream: [
      {
        choices: [],
        prompt_filter_results: [
          { prompt_index: 0, content_filter_results: { hate: { filtered: false } } },
        ],
      },
      delta({ role: 'assistant', content: '', refusal: null }),
      delta({ content: 'Hello' }, { content_filter_results: { hate: { filtered: false } } }),
      finish('stop'),
      counts(7, 2, { prompt_tokens_details: { cached_tokens: 4 } }),
      DONE,
    ],
    gives: { text: 'Hello', stop: 'end', usage: [7, 2, 4, 0] },
  },
  {
    title: 'a refusal in pieces is the text',
    stream: [
      delta({ role: 'assistant', content: null, refusal: '' }),
      delta({ refusal: 'I can’t' }), delta({ refusal: ' do that.' }), finish('stop'), DONE,
    ],
    gives: { text: 'I can’t do that.', stop: 'refusal' },
  },
  {
    title: 'an answer cut off by a filter',
    stream: [text('Half'), finish('content_filter'), DONE],
    gives: { text: 'Half', stop: 'content_filter' },
  },
  {
    title: 'Cerebras: reasoning beside the text, and timings',
    whole: {
      ...answer(
        { content: 'Paris.', reasoning: 'Easy.', role: 'assistant' }, 'stop',
        {
          prompt_tokens: 74, completion_tokens: 36, total_tokens: 110,
          prompt_tokens_details: { cached_tokens: 0 },
        },
      ),
      time_info: { total_time: 0.03 },
    },
    gives: { text: 'Paris.', reasoning: 'Easy.', stop: 'end', usage: [74, 36, 0, 0] },
  },
  {
    title: 'moderation results beside the choices',
    whole: {
      ...answer(
        { annotations: [], content: 'Talk to me.', refusal: null, role: 'assistant' }, 'stop',
        {
          prompt_tokens: 12, completion_tokens: 1880, total_tokens: 1892,
          completion_tokens_details: { reasoning_tokens: 1536 },
        },
      ),
      moderation: { input: { results: [{ flagged: true }] } },
    },
    gives: { text: 'Talk to me.', stop: 'end', usage: [12, 1880, 0, 1536] },
  },
  {
    title: 'Gemini’s Chat Completions: a choice without a message',
    whole: {
      choices: [{ finish_reason: 'stop', index: 0 }],
      usage: { prompt_tokens: 5, total_tokens: 5 },
    },
    gives: { text: '', stop: 'end', usage: [5, 0, 0, 0] },
  },
]

const USAGE: readonly Exchange[] = (
  [
    [
      'cached tokens are part of the prompt',
      {
        prompt_tokens: 100, completion_tokens: 5, total_tokens: 105,
        prompt_tokens_details: { cached_tokens: 64 },
      },
      [100, 5, 64, 0],
    ],
    [
      'reasoning is part of the completion',
      {
        prompt_tokens: 10, completion_tokens: 50, total_tokens: 60,
        completion_tokens_details: { reasoning_tokens: 40 },
      },
      [10, 50, 0, 40],
    ],
    [
      'reasoning in addition to the completion',
      {
        prompt_tokens: 10, completion_tokens: 5, total_tokens: 55,
        completion_tokens_details: { reasoning_tokens: 40 },
      },
      [10, 45, 0, 40],
    ],
    [
      'a total above the sum',
      { prompt_tokens: 35, completion_tokens: 12, total_tokens: 109 }, [35, 74, 0, 62],
    ],
    [
      'a total below the sum',
      { prompt_tokens: 35, completion_tokens: 12, total_tokens: 12 }, [35, 12, 0, 0],
    ],
    [
      'DeepSeek’s name for cached tokens',
      { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10, prompt_cache_hit_tokens: 8 },
      [9, 1, 8, 0],
    ],
    [
      'invalid values', { prompt_tokens: -4, completion_tokens: 'x', total_tokens: null },
      [0, 0, 0, 0],
    ],
  ] as const
).map(([title, usage, tokens]) => ({
  title: `usage: ${title}`,
  whole: answer({ content: 'x' }, 'stop', usage),
  gives: { usage: tokens },
}))

/** Errors after the beginning of a stream. */
const inStream = (
  title: string, event: object, retryable: boolean, code: ModelErrorCode,
): Exchange => ({
  title: `${title} inside a stream`, stream: [text('Par'), event], fails: { retryable, code },
})

const FAILURES: readonly Exchange[] = [
  {
    title: 'an error in a 200 response', body: { error: { message: 'busy', code: 503 } },
    fails: { retryable: true },
  },
  {
    title: 'an answer of another format', body: { hello: 1 },
    fails: { retryable: false, message: /base URL/ },
  },
  {
    title: 'no choices at all', body: { choices: [], usage: { prompt_tokens: 5 } },
    fails: { code: 'ERR_AGENT_MODEL_PROTOCOL', retryable: true, used: [5, 0] },
  },
  {
    title: 'MiniMax: an error beside null choices',
    body: { choices: null, base_resp: { status_code: 1008, status_msg: 'insufficient balance' } },
    fails: { code: 'ERR_AGENT_MODEL_QUOTA', retryable: false },
  },
  {
    title: 'MiniMax: a rate limit',
    body: { choices: null, base_resp: { status_code: 1002, status_msg: 'rate limit' } },
    fails: { code: 'ERR_AGENT_MODEL_RATE_LIMIT', retryable: true },
  },
  ...['error', 'network_error', 'abort'].map((reason): Exchange => ({
    title: `an answer that ends with ${reason} is retryable, and its usage is known`,
    whole: answer({ content: 'Ha' }, reason, { prompt_tokens: 4, completion_tokens: 1 }),
    fails: { code: 'ERR_AGENT_MODEL', retryable: true, used: [4, 1] },
  })),
  {
    title: '[DONE] alone is not an answer', stream: [DONE],
    fails: { retryable: true, message: /in the middle/ },
  },
  {
    title: 'an answer that is cut off after its counts',
    stream: [{ ...text('a'), usage: { prompt_tokens: 43, completion_tokens: 10 } }],
    fails: { retryable: true, message: /in the middle/ },
  },
  inStream(
    'an error beside choices',
    { error: { code: 429, message: 'slow down' }, ...delta({}) },
    true, 'ERR_AGENT_MODEL_RATE_LIMIT',
  ),
  inStream(
    'an error in Groq’s own field', { choices: [], x_groq: { error: 'over capacity, try again' } },
    true, 'ERR_AGENT_MODEL',
  ),
  inStream(
    'a stop due to lack of resources', finish('insufficient_system_resource'),
    true, 'ERR_AGENT_MODEL',
  ),
  inStream(
    'a server error', { error: { message: 'The server had an error', type: 'server_error' } },
    true, 'ERR_AGENT_MODEL',
  ),
  inStream('an error as text', { error: 'model runner has stopped' }, true, 'ERR_AGENT_MODEL'),
  inStream(
    'an error in the choice',
    { choices: [{ error: { code: 502, message: 'upstream' }, finish_reason: 'error' }] },
    true, 'ERR_AGENT_MODEL',
  ),
  inStream(
    'a context overflow', { error: { code: 'context_length_exceeded', message: 'too long' } },
    false, 'ERR_AGENT_MODEL_CONTEXT',
  ),
  inStream(
    'an invalid request', { error: { type: 'invalid_request_error', message: 'no' } },
    false, 'ERR_AGENT_MODEL',
  ),
]

export const CHAT: readonly Exchange[] = [
  ...CHAT_CALLS, ...REASONING, ...STOPS, ...USAGE, ...FAILURES,
]
