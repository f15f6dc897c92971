/** Error responses, and errors inside streams: which code each gets, and when to try again. */
import type { JsonObject } from 'runwright/agent'
import { CONTEXT } from './context-refusals.js'
import type { Dialect } from './dialects.js'
import {
  CHUNK, failure, google, plain, refused, retryInfo, says, streamed, typed, type Refusal,
} from './refusal.js'
import { NOW, type Refused } from './table.js'

const AZURE =
  "The response was filtered due to the prompt triggering Azure OpenAI's content management " +
  'policy. Please modify your prompt and retry.'
const azure = plain(AZURE, {
  type: null, param: 'prompt', code: 'content_filter', status: 400,
  innererror: { code: 'ResponsibleAIPolicyViolation', content_filter_result: {} },
})
const FLAGGED =
  'Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try ' +
  'again with a different prompt.'
const invalidPrompt = { code: 'invalid_prompt', message: FLAGGED }
const BLOCKED = 'Output blocked by content filtering policy'
const XAI = 'Content violates usage guidelines. Model: grok-4, Failed check: SAFETY_CHECK_TYPE_BIO'
const MODERATION = 'x/y requires moderation on X. Your input was flagged for "violence".'

/** A content filter in front of the model or behind it. */
const FILTER: Readonly<Record<Dialect, readonly Refusal[]>> = {
  'openai-chat': [
    says('Azure', 400, AZURE, azure, 'filter'),
    says(
      'xAI', 403, XAI,
      {
        code: 'The caller does not have permission to execute the specified operation', error: XAI,
      },
      'filter',
    ),
    says(
      'OpenRouter', 403, MODERATION,
      plain(MODERATION, {
        code: 403,
        metadata: { reasons: ['violence'], flagged_input: 'x', provider_name: 'X' },
      }),
      'filter',
    ),
    streamed('Azure', AZURE, 'filter', undefined, CHUNK, azure),
    refused(
      'Qwen', null,
      plain('Output data may contain inappropriate content.', { code: 'data_inspection_failed' }),
      'filter',
    ),
  ],
  'openai-responses': [
    says('Azure', 400, AZURE, azure, 'filter'),
    says('OpenAI', 400, FLAGGED, plain(FLAGGED, { code: 'invalid_prompt' }), 'filter'),
    {
      title: 'a response that failed: filtered', words: FLAGGED, fails: failure('filter'),
      whole: { status: 'failed', output: [], error: invalidPrompt },
    },
    streamed('an error', FLAGGED, 'filter', undefined, {
      type: 'error', ...invalidPrompt, param: null,
    }),
  ],
  anthropic: [
    says('the output', 400, BLOCKED, typed('invalid_request_error', BLOCKED), 'filter'),
    streamed(
      'the output is blocked', BLOCKED, 'filter', undefined,
      typed('invalid_request_error', BLOCKED),
    ),
  ],
  gemini: [],
}

/** Fifteen minutes in each of its spellings, or, until a fixed time, a day. */
const WAITS = /\(the provider asks to wait (?:15|1[0-4]\d\d) minutes, and a run waits 2 minutes at/
const QUARTER = 900_000
/** Times in headers are a day after the refusal. */
const DAY = 24 * 3_600_000
/** A wait that is longer than a run waits. */
const waits = (
  title: string, body: object, retry: number, headers?: Refused['headers'],
): Refusal => {
  const more = { words: WAITS, ...(headers !== undefined && { headers }) }
  const row = refused(title, 429, body, 'rate', retry, more)
  return { ...row, title: `a wait that is too long: ${title}` }
}
const waitsInStream = (title: string, retry: number, ...events: readonly object[]): Refusal =>
  streamed(`a wait that is too long: ${title}`, WAITS, 'rate', retry, ...events)

/** Returns refusals that ask for a long wait, whose headers name times after `now`. */
export function waitsUntil(now: number): Readonly<Record<Dialect, readonly Refusal[]>> {
  const tomorrow = new Date(now + DAY)
  const dates = (body: object): readonly Refusal[] => [
    waits('retry-after in seconds', body, QUARTER, { 'retry-after': '900' }),
    waits('retry-after as a date', body, DAY, { 'retry-after': tomorrow.toUTCString() }),
    waits('retry-after-ms', body, QUARTER, { 'retry-after-ms': '900000' }),
  ]
  const limited = { code: 'rate_limit_exceeded', type: 'invalid_request_error' }
  const openAi = [
    ...dates(plain('Rate limit reached', limited)),
    waits('the reset of the limit that is used up', plain('Rate limit reached', limited), QUARTER, {
      'x-ratelimit-remaining-requests': '5', 'x-ratelimit-reset-requests': '2h0m0s',
      'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': '15m0s',
    }),
    waits('the words of OpenAI', plain(TRY_AGAIN, limited), 899_500),
    waits('the words of Azure', plain('Please retry after 900 seconds.', { code: '429' }), QUARTER),
  ]
  return {
    'openai-chat': [
      ...openAi,
      waits(
        'headers that OpenRouter tells in the body',
        plain('Rate limit exceeded: free-models-per-min. ', {
          code: 429,
          metadata: {
            headers: {
              'X-RateLimit-Limit': '20', 'X-RateLimit-Remaining': '0',
              'X-RateLimit-Reset': String(tomorrow.getTime()),
            },
            provider_name: null,
          },
        }),
        DAY,
      ),
      waitsInStream('the words of OpenAI', 899_500, {
        error: { message: TRY_AGAIN, code: 'rate_limit_exceeded' },
      }),
    ],
    'openai-responses': [
      ...openAi,
      waitsInStream('the words of OpenAI', 899_500, {
        type: 'response.failed',
        response: { status: 'failed', error: { code: 'rate_limit_exceeded', message: TRY_AGAIN } },
      }),
      waitsInStream('an error', 899_500, {
        type: 'error', code: 'rate_limit_exceeded', message: TRY_AGAIN,
      }),
    ],
    anthropic: [
      ...dates(typed('rate_limit_error', 'Number of request tokens has exceeded your limit')),
      waits('the reset of the limit that is used up', typed('rate_limit_error', 'Slow down'), DAY, {
        'anthropic-ratelimit-input-tokens-remaining': '0',
        'anthropic-ratelimit-input-tokens-reset': tomorrow.toISOString(),
        'anthropic-ratelimit-requests-remaining': '9',
        'anthropic-ratelimit-requests-reset': new Date(now + 3 * DAY).toISOString(),
      }),
      waitsInStream('words', QUARTER, typed('rate_limit_error', 'Please try again in 15m.')),
    ],
    gemini: [
      ...dates(google(429, 'RESOURCE_EXHAUSTED', 'Resource has been exhausted.')),
      waits(
        'RetryInfo',
        google(429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota.', retryInfo('899.5s')),
        899_500,
      ),
      waits(
        'words',
        google(429, 'RESOURCE_EXHAUSTED', 'Quota exceeded. Please retry in 14m59.074s.'), 899_074,
      ),
      waitsInStream(
        'RetryInfo', QUARTER,
        google(429, 'RESOURCE_EXHAUSTED', 'Quota exceeded.', retryInfo('900s')),
      ),
    ],
  }
}

const TRY_AGAIN =
  'Rate limit reached for gpt-5 on tokens per day (TPD): Limit 100000, Used 99000, Requested 1900. ' +
  'Please try again in 14m59.5s. Visit the console to learn more.'

const UPSTREAM = 'x/y:free is temporarily rate-limited upstream. Please retry shortly.'
const behind = (raw: unknown): JsonObject =>
  ({
    code: 429, message: 'Provider returned error', metadata: { raw, provider_name: 'Chutes' },
  }) as JsonObject
const RAW_JSON = JSON.stringify({ error: { message: UPSTREAM, code: 429 } })
const BEHIND = /Provider returned error \(Chutes: x\/y:free is temporarily rate-limited upstream\./
/** A gateway that passes on what the provider behind it said. */
const gateway = (inStream: object): readonly Refusal[] => [
  refused('OpenRouter', 429, { error: behind(UPSTREAM) }, 'rate', 'again', { words: BEHIND }),
  {
    ...refused('OpenRouter', 429, { error: behind(RAW_JSON) }, 'rate', 'again', { words: BEHIND }),
    title: 'OpenRouter 429: the words of the provider behind it as JSON',
  },
  streamed('OpenRouter', BEHIND, 'rate', 'again', inStream),
]

/** The other refusals, which mean the same in every format. */
const OTHERS: readonly Refusal[] = [
  refused(
    'OpenAI', 401,
    plain('Incorrect API key provided: sk-proj-****1234.', {
      code: 'invalid_api_key', type: 'invalid_request_error',
    }),
    'auth',
  ),
  refused('OpenAI', 403, plain('no access'), 'auth'),
  refused(
    'OpenAI', 429,
    plain(
      'Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000, Used 29000, Requested 4033. Please try again in 6.066s.',
      { type: 'tokens', code: 'rate_limit_exceeded' },
    ),
    'rate', 6_066,
  ),
  refused(
    'OpenAI', 429, plain('Rate limit reached', { code: 'rate_limit_exceeded' }), 'rate', 'again',
  ),
  refused(
    'OpenAI', 429, plain('You exceeded your current quota', { code: 'insufficient_quota' }),
    'quota',
  ),
  refused('OpenAI', 429, plain('x', { type: 'enforced_spend_limit_reached' }), 'quota'),
  refused(
    'OpenAI', 400,
    plain("Unsupported parameter: 'max_tokens' is not supported with this model.", {
      code: 'unsupported_parameter',
    }),
    'other',
  ),
  refused(
    'OpenAI', 404,
    plain('The model `gpt-x` does not exist or you do not have access to it.', {
      code: 'model_not_found',
    }),
    'other',
  ),
  refused('OpenAI', 404, plain('model not found'), 'other'),
  refused(
    'OpenAI', null, plain('Invalid prompt: your prompt was flagged.', { code: 'invalid_prompt' }),
    'filter',
  ),
  refused(
    'OpenAI', null,
    {
      type: 'error', code: 'rate_limit_exceeded', message: 'Slow down.', param: null,
      sequence_number: 3,
    },
    'rate', 'again',
  ),
  refused(
    'OpenAI', null,
    {
      type: 'error', error: { type: 'server_error', code: null, message: 'An error occurred.' },
      sequence_number: 3,
    },
    'other', 'again',
  ),
  refused('OpenAI', 500, plain('oops'), 'other', 'again'),
  refused(
    'Azure', 429,
    plain(
      'Requests have exceeded token rate limit of your current pricing tier. Please retry after 26 seconds. Please go here to increase it.',
      { code: '429' },
    ),
    'rate', 26_000,
  ),
  refused(
    'Azure', 401, { statusCode: 401, message: 'Access denied due to invalid subscription key.' },
    'auth',
  ),
  refused(
    'Anthropic', 400,
    typed('invalid_request_error', 'Your credit balance is too low to access the API'), 'quota',
  ),
  refused(
    'Anthropic', 400,
    typed(
      'invalid_request_error',
      'You have reached your specified API usage limits. You will regain access on 2026-12-01.',
    ),
    'quota',
  ),
  refused(
    'Anthropic', 400,
    typed(
      'invalid_request_error', 'messages.3: `tool_use` ids were found without `tool_result` blocks',
    ),
    'other',
  ),
  refused(
    'Anthropic', 429,
    typed(
      'rate_limit_error',
      'This request would exceed your organization’s rate limit of 30,000 input tokens per minute',
    ),
    'rate', 'again',
  ),
  refused('Anthropic', 500, typed('api_error', 'Internal server error'), 'other', 'again'),
  refused('Anthropic', 529, typed('overloaded_error', 'Overloaded'), 'other', 'again'),
  refused('Anthropic', null, typed('overloaded_error', 'Overloaded'), 'other', 'again'),
  refused(
    'Google', 400,
    google(400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.', {
      reason: 'API_KEY_INVALID',
    }),
    'auth',
  ),
  refused(
    'Google', 400,
    google(400, 'FAILED_PRECONDITION', 'User location is not supported for the API use.'), 'other',
  ),
  refused(
    'Google', 429,
    [
      google(
        429, 'RESOURCE_EXHAUSTED',
        'You exceeded your current quota, please check your plan and billing details.',
        { violations: [{ quotaId: 'GenerateRequestsPerMinutePerProjectPerModel-FreeTier' }] },
        retryInfo('34.074824224s'),
      ),
    ],
    'rate', 34_075,
  ),
  refused(
    'Google', 429, google(429, 'RESOURCE_EXHAUSTED', 'slow', retryInfo('17.5s')), 'rate', 17_500,
  ),
  refused(
    'Google', 429,
    google(429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota', {
      violations: [{ quotaId: 'GenerateRequestsPerMinutePerProjectPerModel' }],
    }),
    'rate', 'again',
  ),
  refused(
    'Google', 429,
    google(
      429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota.',
      { violations: [{ quotaId: 'GenerateRequestsPerDayPerProjectPerModel-FreeTier' }] },
      { retryDelay: '34s' },
    ),
    'quota',
  ),
  refused(
    'Google', 503, google(503, 'UNAVAILABLE', 'The model is overloaded. Please try again later.'),
    'other', 'again',
  ),
  refused(
    'Google', 504, google(504, 'DEADLINE_EXCEEDED', 'The request timed out.'), 'other', 'again',
  ),
  refused(
    'OpenRouter', 402,
    plain('This request requires more credits, or fewer max_tokens.', { code: 402 }), 'quota',
  ),
  refused(
    'OpenRouter', 404,
    { ...plain('No endpoints found for x/y:free.', { code: 404 }), user_id: 'u' }, 'other',
  ),
  refused(
    'OpenRouter', 429,
    plain(
      'Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day',
      { code: 429 },
    ),
    'quota',
  ),
  refused(
    'OpenRouter', 429,
    { error: { ...behind('Rate limit reached. Please try again in 20s.') } }, 'rate', 20_000,
  ),
  refused('OpenRouter', null, plain('Token limit reached', { code: 400 }), 'other'),
  refused(
    'OpenRouter', null, plain('Upstream error from X: overloaded', { code: 502 }), 'other', 'again',
  ),
  refused(
    'Groq', 429,
    plain(
      'Rate limit reached for model `x` on tokens per day (TPD): Limit 100000. Please try again in 24m3.552s. Visit us.',
      { code: 'rate_limit_exceeded' },
    ),
    'rate', 1_443_552,
  ),
  refused(
    'Groq', 498, plain('Flex tier capacity exceeded.', { code: 'capacity_exceeded' }),
    'other', 'again',
  ),
  refused(
    'Groq', 400,
    plain('Tool choice is required, but model did not call a tool', {
      code: 'tool_use_failed', failed_generation: 'Paris.',
    }),
    'mistake',
  ),
  refused(
    'Groq', 400,
    plain('Parsing failed. The model generated output that could not be parsed.', {
      code: 'output_parse_failed', failed_generation: '<|channel|>',
    }),
    'mistake',
  ),
  refused(
    'Groq', null,
    plain('Failed to call a function.', {
      code: 'tool_use_failed', failed_generation: '{', status_code: 400,
    }),
    'mistake',
  ),
  refused(
    'Cerebras', 429,
    {
      message: 'Tokens per minute limit exceeded - too many tokens processed.',
      type: 'too_many_tokens_error', param: 'quota', code: 'token_quota_exceeded',
    },
    'rate', 'again',
  ),
  refused(
    'Bedrock behind a gateway', 429,
    { message: 'Too many tokens, please wait before trying again.' }, 'rate', 'again',
  ),
  refused(
    'Mistral', 429,
    {
      object: 'error', message: 'Service tier capacity exceeded for this model.',
      type: 'service_tier_capacity_exceeded', code: '3505',
    },
    'rate', 'again',
  ),
  refused(
    'Mistral', 422,
    {
      object: 'error', message: { detail: [{ msg: 'Field required' }] },
      type: 'invalid_request_message_error',
    },
    'other',
  ),
  refused('DeepSeek', 402, plain('Insufficient Balance', { type: 'unknown_error' }), 'quota'),
  refused(
    'Moonshot', 429,
    plain('Your account is suspended, please check your plan and billing details', {
      type: 'exceeded_current_quota_error',
    }),
    'quota',
  ),
  refused(
    'Moonshot', 429,
    plain('The engine is currently overloaded, please try again later', {
      type: 'engine_overloaded_error',
    }),
    'rate', 'again',
  ),
  refused(
    'Zhipu', 429,
    plain('Insufficient balance or no resource package. Please recharge.', { code: '1113' }),
    'quota',
  ),
  refused(
    'Qwen', 400,
    plain('Access denied, please make sure your account is in good standing.', {
      code: 'Arrearage',
    }),
    'quota',
  ),
  refused(
    'xAI', 400,
    {
      code: 'Client specified an invalid argument',
      error: 'Incorrect API key provided: xa***. You can obtain one.',
    },
    'auth',
  ),
  refused(
    'xAI', 403,
    {
      code: 'The caller does not have permission',
      error: 'Your team has either used all available credits or reached its monthly spending limit.',
    },
    'quota',
  ),
  refused(
    'llama.cpp', 503, plain('Loading model', { code: 503, type: 'unavailable_error' }),
    'other', 'again',
  ),
  refused(
    'Ollama', 400,
    plain('registry.ollama.ai/library/x does not support tools', { type: 'api_error', code: null }),
    'other',
  ),
  refused(
    'a gateway', 504,
    '<!DOCTYPE html><html><head><title>504 Gateway Time-out</title></head></html>',
    'other', 'again',
  ),
  refused(
    'a gateway', 502, '<html><title>502 Bad Gateway</title></html>', 'other', 'again',
  ),
  refused('a gateway', 520, 'error code: 520', 'other', 'again'),
  refused('a timeout', 408, '', 'other', 'again'),
  refused('a conflict', 409, '', 'other', 'again'),
  refused('a redirect', 302, '', 'other'),
]

const WAITING = waitsUntil(NOW)

/** The refusals of each format; gateways speak the formats of OpenAI alone. */
export const REFUSALS: Readonly<Record<Dialect, readonly Refusal[]>> = {
  'openai-chat': [
    ...CONTEXT['openai-chat'], ...FILTER['openai-chat'],
    ...gateway({ ...CHUNK, error: behind(UPSTREAM) }), ...WAITING['openai-chat'], ...OTHERS,
  ],
  'openai-responses': [
    ...CONTEXT['openai-responses'], ...FILTER['openai-responses'],
    ...gateway({ type: 'response.failed', response: { error: behind(UPSTREAM) } }),
    ...WAITING['openai-responses'],
  ],
  anthropic: [...CONTEXT.anthropic, ...FILTER.anthropic, ...WAITING.anthropic],
  gemini: [...CONTEXT.gemini, ...FILTER.gemini, ...WAITING.gemini],
}
