/** How a run ends that its provider refuses, and in whose words. */
import assert from 'node:assert/strict'
import { sse, whole, type Dialect } from './dialects.js'
import { corner, run, type Corner, type How, type Reply, type Row } from './table.js'

const json = (value: object): never => JSON.parse(JSON.stringify(value)) as never
const stream = (...events: readonly object[]): Reply => ({ stream: sse(events.map(json), true) })

interface Refusal extends Row {
  readonly reply: Reply
  /** What the run must say: the provider's words. */
  readonly says: string
}

const refused = (title: string, status: number, says: string, body: object): Refusal => ({
  title: `${title} (${status})`, says, once: true, reply: { status, body },
})
const inStream = (title: string, says: string, ...events: readonly object[]): Refusal => ({
  title: `${title}, in the stream`, says, once: true, reply: stream(...events),
})
const chatError = (message: string, more: object = {}): object => ({
  error: { message, type: 'invalid_request_error', param: 'messages', ...more },
})
const anthropicError = (type: string, message: string): object => ({
  type: 'error', error: { type, message }, request_id: 'req_1',
})
const geminiError = (
  code: number,
  status: string,
  message: string,
  ...details: object[]
): object => ({ error: { code, message, status, ...(details.length > 0 && { details }) } })
const chunk = { choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] }

const TOO_LONG = {
  openai:
    "This model's maximum context length is 128000 tokens. However, your messages resulted in " +
    '130042 tokens. Please reduce the length of the messages.',
  configured:
    'Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 301288 ' +
    'tokens. Please reduce the length of the messages.',
  openRouter:
    "This endpoint's maximum context length is 131072 tokens. However, you requested about 140213 " +
    'tokens (132021 of text input, 8192 in the output). Please reduce the length of either one.',
  vllm:
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens " +
    '(3976 in the messages, 1024 in the completion). Please reduce the length of the messages.',
  vllmPrompt:
    'The decoder prompt (length 2136) is longer than the maximum model length of 2048. Make sure ' +
    'that `max_model_len` is no smaller than the number of text tokens.',
  bedrock: 'Input is too long for requested model.',
  bedrockClaude:
    'The model returned the following errors: prompt is too long: 200049 tokens > 200000 maximum',
  copilot: 'prompt token count of 93854 exceeds the limit of 90000',
  llamaCpp: 'the request exceeds the available context size, try increasing it',
  lmStudio:
    'Trying to keep the first 6402 tokens when context the overflows. However, the model is loaded ' +
    'with context length of only 4096 tokens, which is not enough.',
  mistral:
    'Prompt contains 32921 tokens and 0 draft tokens, too large for model with 32768 maximum ' +
    'context length',
  responses:
    'Your input exceeds the context window of this model. Please adjust your input and try again.',
  anthropic: 'prompt is too long: 208310 tokens > 200000 maximum',
  anthropicAnswer:
    'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input ' +
    'length or `max_tokens` and try again',
  anthropicBytes: 'Request exceeds the maximum size',
  gemini:
    'The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).',
  geminiBare: 'The input token count exceeds the maximum number of tokens allowed (1048576).',
  geminiBytes: 'Request payload size exceeds the limit: 20971520 bytes.',
} as const
const exceeded = { code: 'context_length_exceeded' }

const CONTEXT: Readonly<Record<Dialect, readonly Refusal[]>> = {
  'openai-chat': [
    refused('OpenAI', 400, TOO_LONG.openai, chatError(TOO_LONG.openai, exceeded)),
    refused('OpenAI, a limit', 400, TOO_LONG.configured, chatError(TOO_LONG.configured, exceeded)),
    refused('Azure', 400, TOO_LONG.openai,
      chatError(TOO_LONG.openai, { ...exceeded, status: 400 })),
    refused('OpenRouter', 400, TOO_LONG.openRouter, {
      error: { message: TOO_LONG.openRouter, code: 400, metadata: { provider_name: null } },
    }),
    refused('vLLM', 400, TOO_LONG.vllm, {
      object: 'error', message: TOO_LONG.vllm, type: 'BadRequestError', param: null, code: 400,
    }),
    refused('vLLM, an error within', 400, TOO_LONG.vllmPrompt, {
      error: { message: TOO_LONG.vllmPrompt, type: 'BadRequestError', param: null, code: 400 },
    }),
    refused('a server before vLLM', 500, TOO_LONG.vllmPrompt, { detail: TOO_LONG.vllmPrompt }),
    refused('a gateway before Bedrock', 400, TOO_LONG.bedrock, { message: TOO_LONG.bedrock }),
    refused('GitHub Copilot', 400, TOO_LONG.copilot, {
      error: { message: TOO_LONG.copilot, param: '', code: '', type: '' },
    }),
    refused('llama.cpp', 400, TOO_LONG.llamaCpp, {
      error: { code: 400, message: TOO_LONG.llamaCpp, type: 'exceed_context_size_error' },
    }),
    refused('LM Studio', 400, TOO_LONG.lmStudio, { error: TOO_LONG.lmStudio }),
    refused('Mistral', 400, TOO_LONG.mistral, {
      object: 'error', message: TOO_LONG.mistral, type: 'invalid_request_prompt', code: '3051',
    }),
    inStream('OpenRouter', TOO_LONG.openRouter, chunk, {
      ...chunk, error: { message: TOO_LONG.openRouter, code: 400 },
    }),
    inStream('vLLM', TOO_LONG.vllm, {
      error: { object: 'error', message: TOO_LONG.vllm, type: 'BadRequestError', code: 400 },
    }),
  ],
  'openai-responses': [
    refused('OpenAI', 400, TOO_LONG.responses, chatError(TOO_LONG.responses, exceeded)),
    refused('vLLM', 400, TOO_LONG.vllm, {
      error: { message: TOO_LONG.vllm, type: 'BadRequestError', code: 400 },
    }),
    {
      title: 'a response that failed', says: TOO_LONG.responses,
      reply: {
        whole: {
          status: 'failed', output: [],
          error: { ...exceeded, message: TOO_LONG.responses }, incomplete_details: null,
        },
      },
    },
    inStream('an error of its own', TOO_LONG.responses, {
      type: 'error', ...exceeded, message: TOO_LONG.responses, param: 'input', sequence_number: 2,
    }),
    inStream('an error within', TOO_LONG.responses, {
      type: 'error', sequence_number: 2,
      error: { type: 'invalid_request_error', ...exceeded, message: TOO_LONG.responses },
    }),
  ],
  anthropic: [
    refused('the prompt', 400, TOO_LONG.anthropic,
      anthropicError('invalid_request_error', TOO_LONG.anthropic)),
    refused('the prompt and the answer', 400, TOO_LONG.anthropicAnswer,
      anthropicError('invalid_request_error', TOO_LONG.anthropicAnswer)),
    refused('the bytes', 413, TOO_LONG.anthropicBytes,
      anthropicError('request_too_large', TOO_LONG.anthropicBytes)),
    refused('Bedrock', 400, TOO_LONG.bedrock, { message: TOO_LONG.bedrock }),
    refused('Bedrock, the model', 400, TOO_LONG.bedrockClaude, { message: TOO_LONG.bedrockClaude }),
    inStream('the prompt', TOO_LONG.anthropic,
      anthropicError('invalid_request_error', TOO_LONG.anthropic)),
  ],
  gemini: [
    refused('the prompt', 400, TOO_LONG.gemini,
      geminiError(400, 'INVALID_ARGUMENT', TOO_LONG.gemini)),
    refused('the prompt, without its length', 400, TOO_LONG.geminiBare,
      geminiError(400, 'INVALID_ARGUMENT', TOO_LONG.geminiBare)),
    refused('the bytes', 400, TOO_LONG.geminiBytes,
      geminiError(400, 'INVALID_ARGUMENT', TOO_LONG.geminiBytes)),
    inStream('the prompt', TOO_LONG.gemini,
      geminiError(400, 'INVALID_ARGUMENT', TOO_LONG.gemini)),
  ],
}

const numbers = (text: string): readonly string[] => text.match(/\d+/g) ?? []

async function isTooLong({ reply, says }: Refusal, how: How): Promise<unknown> {
  const outcome = await run(how, [{ replies: [reply] }])
  assert.equal(outcome.end_reason, 'context_exhausted', outcome.message)
  assert.ok(outcome.message.includes(says), outcome.message)
  const known = [...numbers(says), 'status' in reply ? String(reply.status) : '400', '0']
  const told = numbers(outcome.message.replace('p0:m', ''))
  const invented = told.filter((one) => !known.includes(one))
  assert.deepEqual(invented, [], outcome.message)
  return outcome
}

interface Limited extends Row {
  readonly reply: Reply
  readonly says: RegExp
}

async function isLimited({ reply, says }: Limited, how: How): Promise<unknown> {
  const outcome = await run(how, [{ replies: [reply] }])
  const { code, end_reason, message } = outcome
  assert.deepEqual([end_reason, code], ['provider_error', 'ERR_AGENT_MODEL_RATE_LIMIT'])
  assert.match(message, says)
  // Until a fixed time, the wait gets shorter.
  return { ...outcome, message: message.replace(/wait \d+/, 'wait') }
}

const UPSTREAM = 'x/y:free is temporarily rate-limited upstream. Please retry shortly.'
const behind = (raw: unknown): object => ({
  code: 429, message: 'Provider returned error', metadata: { raw, provider_name: 'Chutes' },
})
const BEHIND = /Provider returned error \(Chutes: x\/y:free is temporarily rate-limited upstream\./
const RAW_JSON = JSON.stringify({ error: { message: UPSTREAM, code: 429 } })
const gateway = (wrap: (error: object) => object): readonly Limited[] => {
  const common = { says: BEHIND, once: true }
  const answers = (raw: string): Reply => ({ status: 429, body: { error: behind(raw) } })
  return [
    { ...common, title: 'words', reply: answers(UPSTREAM) },
    { ...common, title: 'words as JSON', reply: answers(RAW_JSON) },
    { ...common, title: 'words in the stream', reply: stream(wrap(behind(UPSTREAM))) },
  ]
}

/** Fifteen minutes in each of its spellings, or, until a fixed time, a day. */
const WAITS = /\(the provider asks to wait (?:15|1[0-4]\d\d) minutes, and a run waits 2 minutes at/
const waits = (
  title: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): Limited => ({ title, says: WAITS, once: true, reply: { status: 429, headers, body } })
const waitsInStream = (title: string, ...events: readonly object[]): Limited => ({
  title: `${title}, in the stream`, says: WAITS, once: true, reply: stream(...events),
})
const TOMORROW = new Date(Date.now() + 24 * 3_600_000)
const LATER = new Date(Date.now() + 72 * 3_600_000)
const RATE_BODY = chatError('Rate limit reached', { code: 'rate_limit_exceeded' })
const inHeaders = (body: object): readonly Limited[] => [
  waits('retry-after in seconds', body, { 'retry-after': '900' }),
  waits('retry-after as a date', body, { 'retry-after': TOMORROW.toUTCString() }),
  waits('retry-after-ms', body, { 'retry-after-ms': '900000' }),
]
const TRY_AGAIN =
  'Rate limit reached for gpt-5 on tokens per day (TPD): Limit 100000, Used 99000, Requested 1900. ' +
  'Please try again in 14m59.5s. Visit the console to learn more.'
const openAi: readonly Limited[] = [
  ...inHeaders(RATE_BODY),
  waits('the reset of the limit that is used up', RATE_BODY, {
    'x-ratelimit-remaining-requests': '5', 'x-ratelimit-reset-requests': '2h0m0s',
    'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': '15m0s',
  }),
  waits('the words of OpenAI', chatError(TRY_AGAIN, { code: 'rate_limit_exceeded' })),
  waits('the words of Azure', chatError('Please retry after 900 seconds.', { code: '429' })),
]

const WAITING: Readonly<Record<Dialect, readonly Limited[]>> = {
  'openai-chat': [
    ...openAi,
    waits('headers that OpenRouter tells in the body', {
      error: {
        message: 'Rate limit exceeded: free-models-per-min. ', code: 429,
        metadata: {
          headers: {
            'X-RateLimit-Limit': '20', 'X-RateLimit-Remaining': '0',
            'X-RateLimit-Reset': String(TOMORROW.getTime()),
          },
          provider_name: null,
        },
      },
    }),
    waitsInStream('the words of OpenAI', { error: { message: TRY_AGAIN, code: 'rate_limit_exceeded' } }),
  ],
  'openai-responses': [
    ...openAi,
    waitsInStream('the words of OpenAI', {
      type: 'response.failed',
      response: { status: 'failed', error: { code: 'rate_limit_exceeded', message: TRY_AGAIN } },
    }),
    waitsInStream('an error', { type: 'error', code: 'rate_limit_exceeded', message: TRY_AGAIN }),
  ],
  anthropic: [
    ...inHeaders(anthropicError('rate_limit_error', 'Number of request tokens has exceeded your limit')),
    waits('the reset of the limit that is used up', anthropicError('rate_limit_error', 'Slow down'), {
      'anthropic-ratelimit-input-tokens-remaining': '0',
      'anthropic-ratelimit-input-tokens-reset': TOMORROW.toISOString(),
      'anthropic-ratelimit-requests-remaining': '9',
      'anthropic-ratelimit-requests-reset': LATER.toISOString(),
    }),
    waitsInStream('words', anthropicError('rate_limit_error', 'Please try again in 15m.')),
  ],
  gemini: [
    ...inHeaders(geminiError(429, 'RESOURCE_EXHAUSTED', 'Resource has been exhausted.')),
    waits('RetryInfo', geminiError(429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota.', {
      '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '899.5s',
    })),
    waits('words', geminiError(429, 'RESOURCE_EXHAUSTED', 'Quota exceeded. Please retry in 14m59.074s.')),
    waitsInStream('RetryInfo', geminiError(429, 'RESOURCE_EXHAUSTED', 'Quota exceeded.', {
      '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '900s',
    })),
  ],
}

/** What stopped the model, and the words of an error if it was one. */
interface Filtered extends Row {
  readonly reply: Reply
  readonly error?: string
  /** The text of the turn, where the provider says why. */
  readonly why?: string
}

async function isFiltered({ reply, error, why }: Filtered, how: How): Promise<unknown> {
  const outcome = await run(how, [{ replies: [reply] }])
  const { end_reason, message, status } = outcome
  assert.deepEqual([status, end_reason], ['failed', 'content_filter'], message)
  assert.equal(outcome.code, error === undefined ? undefined : 'ERR_AGENT_MODEL_FILTER')
  assert.ok(message.includes(error ?? ''), message)
  if (why !== undefined) assert.deepEqual(outcome.texts, [why])
  assert.equal(outcome.requests[0]!.length, 1, 'it is not asked again')
  return outcome
}

const HALF = [{ id: 'call_aaaaaaaaa1', name: 'give_result', args: { total: 3 } }]
/** Stopped before, after a text, and after a call. */
const stopped = (dialect: Dialect, stop: string, title = stop): readonly Filtered[] => [
  { title: `${title}, before anything`, reply: { whole: whole(dialect, { stop }) } },
  { title: `${title}, after a text`, reply: { whole: whole(dialect, { stop, text: 'Half' }) } },
  { title: `${title}, after a call`, reply: { whole: whole(dialect, { stop, calls: HALF }) } },
]
const filtered = (title: string, status: number, error: string, body: object): Filtered => ({
  title: `${title} (${status})`, error, once: true, reply: { status, body },
})
const AZURE =
  "The response was filtered due to the prompt triggering Azure OpenAI's content management " +
  'policy. Please modify your prompt and retry.'
const azure = {
  error: {
    message: AZURE, type: null, param: 'prompt', code: 'content_filter', status: 400,
    innererror: { code: 'ResponsibleAIPolicyViolation', content_filter_result: {} },
  },
}
const FLAGGED =
  'Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try ' +
  'again with a different prompt.'
const BLOCKED = 'Output blocked by content filtering policy'
const HARM = 'This request was declined because it could enable cyber harm.'
const XAI = 'Content violates usage guidelines. Model: grok-4, Failed check: SAFETY_CHECK_TYPE_BIO'
const MODERATION = 'x/y requires moderation on X. Your input was flagged for "violence".'

const BLOCK_REASONS = [
  'SAFETY', 'OTHER', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'IMAGE_SAFETY', 'MODEL_ARMOR',
]
const FINISH_REASONS = [
  'SAFETY', 'RECITATION', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII', 'MODEL_ARMOR', 'IMAGE_SAFETY',
]

const FILTERED: Readonly<Record<Dialect, readonly Filtered[]>> = {
  'openai-chat': [
    ...stopped('openai-chat', 'content_filter'),
    ...stopped('openai-chat', 'guardrail_intervened', 'Bedrock: guardrail_intervened').slice(0, 1),
    filtered('Azure', 400, AZURE, azure),
    filtered('xAI', 403, XAI, {
      code: 'The caller does not have permission to execute the specified operation', error: XAI,
    }),
    filtered('OpenRouter', 403, MODERATION, {
      error: {
        code: 403, message: MODERATION,
        metadata: { reasons: ['violence'], flagged_input: 'x', provider_name: 'X' },
      },
    }),
    { title: 'Azure, in the stream', once: true, error: AZURE, reply: stream(chunk, azure) },
  ],
  'openai-responses': [
    ...stopped('openai-responses', 'content_filter'),
    filtered('Azure', 400, AZURE, azure),
    filtered('OpenAI', 400, FLAGGED, chatError(FLAGGED, { code: 'invalid_prompt' })),
    {
      title: 'a response that failed', error: FLAGGED,
      reply: {
        whole: {
          status: 'failed', output: [], error: { code: 'invalid_prompt', message: FLAGGED },
        },
      },
    },
    {
      title: 'an error in the stream', once: true, error: FLAGGED,
      reply: stream({ type: 'error', code: 'invalid_prompt', message: FLAGGED, param: null }),
    },
  ],
  anthropic: [
    ...stopped('anthropic', 'refusal'),
    {
      title: 'refusal, with the reason', why: HARM,
      reply: {
        whole: {
          ...whole('anthropic', { stop: 'refusal' }),
          stop_details: { type: 'refusal', category: 'cyber', explanation: HARM },
        },
      },
    },
    filtered('the output', 400, BLOCKED, anthropicError('invalid_request_error', BLOCKED)),
    {
      title: 'the output, in the stream', once: true, error: BLOCKED,
      reply: stream(anthropicError('invalid_request_error', BLOCKED)),
    },
  ],
  gemini: [
    ...FINISH_REASONS.flatMap((reason, i) => stopped('gemini', reason).slice(0, i === 0 ? 3 : 1)),
    ...BLOCK_REASONS.map((blockReason): Filtered => ({
      title: `a prompt: ${blockReason}`,
      reply: { whole: { promptFeedback: { blockReason }, usageMetadata: { promptTokenCount: 4 } } },
    })),
  ],
}

export const REFUSALS: readonly Corner[] = [
  corner('a conversation that is too long', isTooLong, CONTEXT),
  corner('what the provider behind a gateway says', isLimited, {
    'openai-chat': gateway((error) => ({ ...chunk, error })),
    'openai-responses': gateway((error) => ({ type: 'response.failed', response: { error } })),
    anthropic: 'the errors of this format have a type and a message, also those of OpenRouter',
    gemini: 'OpenRouter does not speak it, and Google has no provider behind it',
  }),
  corner('a wait that is too long', isLimited, WAITING),
  corner('a content filter', isFiltered, FILTERED),
]
