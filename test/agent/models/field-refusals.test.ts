/** Error responses of servers in the field: which code each gets, and when to retry. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { providerError } from '../../../lib/agent/models/provider-errors.js'
import { context } from './exchange.js'

const QUOTA = 'ERR_AGENT_MODEL_QUOTA'
const RATE = 'ERR_AGENT_MODEL_RATE_LIMIT'
const AUTH = 'ERR_AGENT_MODEL_AUTH'
const CONTEXT = 'ERR_AGENT_MODEL_CONTEXT'
const FILTER = 'ERR_AGENT_MODEL_FILTER'
const OTHER = 'ERR_AGENT_MODEL'
const MISTAKE = 'mistake'

/** An error in OpenAI's format. */
const plain = (message: string, more: object = {}): object => ({
  error: { message, param: null, ...more },
})
/** An error in Anthropic's format. */
const typed = (type: string, message: string): object => ({
  type: 'error',
  error: { type, message },
  request_id: 'req_1',
})
/** An error in Google's format. */
const google = (code: number, status: string, message: string, ...details: object[]): object => ({
  error: { code, status, message, details },
})

const retry = 'try again'
/** Server, status (null inside a stream), body, code, and `retry`, a delay in ms, or nothing. */
const REFUSALS: readonly (readonly [
  string,
  number | null,
  unknown,
  string,
  (typeof retry | number)?,
])[] = [
  [
    'OpenAI',
    401,
    plain('Incorrect API key provided: sk-proj-****1234.', {
      code: 'invalid_api_key',
      type: 'invalid_request_error',
    }),
    AUTH,
  ],
  [
    'OpenAI',
    429,
    plain(
      'Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000, Used 29000, Requested 4033. Please try again in 6.066s.',
      { type: 'tokens', code: 'rate_limit_exceeded' },
    ),
    RATE,
    6_066,
  ],
  [
    'OpenAI',
    429,
    plain('Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 33000.', {
      type: 'tokens',
      code: 'rate_limit_exceeded',
    }),
    CONTEXT,
  ],
  [
    'OpenAI',
    400,
    plain("Unsupported parameter: 'max_tokens' is not supported with this model.", {
      code: 'unsupported_parameter',
    }),
    OTHER,
  ],
  [
    'OpenAI',
    404,
    plain('The model `gpt-x` does not exist or you do not have access to it.', {
      code: 'model_not_found',
    }),
    OTHER,
  ],
  [
    'OpenAI',
    null,
    plain('Invalid prompt: your prompt was flagged.', { code: 'invalid_prompt' }),
    FILTER,
  ],
  [
    'OpenAI',
    null,
    {
      type: 'error',
      code: 'rate_limit_exceeded',
      message: 'Slow down.',
      param: null,
      sequence_number: 3,
    },
    RATE,
    retry,
  ],
  [
    'OpenAI',
    null,
    {
      type: 'error',
      error: { type: 'server_error', code: null, message: 'An error occurred.' },
      sequence_number: 3,
    },
    OTHER,
    retry,
  ],
  [
    'Azure',
    429,
    plain(
      'Requests have exceeded token rate limit of your current pricing tier. Please retry after 26 seconds. Please go here to increase it.',
      { code: '429' },
    ),
    RATE,
    26_000,
  ],
  [
    'Azure',
    400,
    plain('The response was filtered due to the prompt triggering the content management policy.', {
      code: 'content_filter',
      status: 400,
      innererror: { code: 'ResponsibleAIPolicyViolation' },
    }),
    FILTER,
  ],
  [
    'Azure',
    401,
    { statusCode: 401, message: 'Access denied due to invalid subscription key.' },
    AUTH,
  ],
  [
    'Anthropic',
    400,
    typed('invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum'),
    CONTEXT,
  ],
  [
    'Anthropic',
    400,
    typed(
      'invalid_request_error',
      'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000',
    ),
    CONTEXT,
  ],
  [
    'Anthropic',
    400,
    typed(
      'invalid_request_error',
      'You have reached your specified API usage limits. You will regain access on 2026-12-01.',
    ),
    QUOTA,
  ],
  [
    'Anthropic',
    400,
    typed(
      'invalid_request_error',
      'messages.3: `tool_use` ids were found without `tool_result` blocks',
    ),
    OTHER,
  ],
  ['Anthropic', 413, typed('request_too_large', 'Request exceeds the maximum size'), CONTEXT],
  [
    'Anthropic',
    429,
    typed(
      'rate_limit_error',
      'This request would exceed your organization’s rate limit of 30,000 input tokens per minute',
    ),
    RATE,
    retry,
  ],
  ['Anthropic', 500, typed('api_error', 'Internal server error'), OTHER, retry],
  ['Anthropic', null, typed('overloaded_error', 'Overloaded'), OTHER, retry],
  [
    'Google',
    400,
    google(400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.', {
      reason: 'API_KEY_INVALID',
    }),
    AUTH,
  ],
  [
    'Google',
    400,
    google(
      400,
      'INVALID_ARGUMENT',
      'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
    ),
    CONTEXT,
  ],
  [
    'Google',
    400,
    google(400, 'FAILED_PRECONDITION', 'User location is not supported for the API use.'),
    OTHER,
  ],
  [
    'Google',
    429,
    [
      google(
        429,
        'RESOURCE_EXHAUSTED',
        'You exceeded your current quota, please check your plan and billing details.',
        { violations: [{ quotaId: 'GenerateRequestsPerMinutePerProjectPerModel-FreeTier' }] },
        { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.074824224s' },
      ),
    ],
    RATE,
    34_075,
  ],
  [
    'Google',
    429,
    google(
      429,
      'RESOURCE_EXHAUSTED',
      'You exceeded your current quota.',
      { violations: [{ quotaId: 'GenerateRequestsPerDayPerProjectPerModel-FreeTier' }] },
      { retryDelay: '34s' },
    ),
    QUOTA,
  ],
  [
    'Google',
    503,
    google(503, 'UNAVAILABLE', 'The model is overloaded. Please try again later.'),
    OTHER,
    retry,
  ],
  ['Google', 504, google(504, 'DEADLINE_EXCEEDED', 'The request timed out.'), OTHER, retry],
  [
    'OpenRouter',
    402,
    plain('This request requires more credits, or fewer max_tokens.', { code: 402 }),
    QUOTA,
  ],
  [
    'OpenRouter',
    404,
    { ...plain('No endpoints found for x/y:free.', { code: 404 }), user_id: 'u' },
    OTHER,
  ],
  [
    'OpenRouter',
    429,
    plain('Provider returned error', {
      code: 429,
      metadata: {
        raw: 'x/y:free is temporarily rate-limited upstream. Please retry shortly.',
        provider_name: 'X',
      },
    }),
    RATE,
    retry,
  ],
  [
    'OpenRouter',
    429,
    plain(
      'Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day',
      { code: 429 },
    ),
    QUOTA,
  ],
  ['OpenRouter', null, plain('Token limit reached', { code: 400 }), OTHER],
  ['OpenRouter', null, plain('Upstream error from X: overloaded', { code: 502 }), OTHER, retry],
  [
    'Groq',
    413,
    plain(
      'Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 7000',
      { type: 'tokens', code: 'rate_limit_exceeded' },
    ),
    CONTEXT,
  ],
  [
    'Groq',
    429,
    plain(
      'Rate limit reached for model `x` on tokens per day (TPD): Limit 100000. Please try again in 24m3.552s. Visit us.',
      { code: 'rate_limit_exceeded' },
    ),
    RATE,
    1_443_552,
  ],
  ['Groq', 498, plain('Flex tier capacity exceeded.', { code: 'capacity_exceeded' }), OTHER, retry],
  [
    'Groq',
    400,
    plain('Tool choice is required, but model did not call a tool', {
      code: 'tool_use_failed',
      failed_generation: 'Paris.',
    }),
    MISTAKE,
  ],
  [
    'Groq',
    400,
    plain('Parsing failed. The model generated output that could not be parsed.', {
      code: 'output_parse_failed',
      failed_generation: '<|channel|>',
    }),
    MISTAKE,
  ],
  [
    'Groq',
    null,
    plain('Failed to call a function.', {
      code: 'tool_use_failed',
      failed_generation: '{',
      status_code: 400,
    }),
    MISTAKE,
  ],
  [
    'Cerebras',
    429,
    {
      message: 'Tokens per minute limit exceeded - too many tokens processed.',
      type: 'too_many_tokens_error',
      param: 'quota',
      code: 'token_quota_exceeded',
    },
    RATE,
    retry,
  ],
  [
    'Bedrock behind a gateway',
    429,
    { message: 'Too many tokens, please wait before trying again.' },
    RATE,
    retry,
  ],
  [
    'Mistral',
    429,
    {
      object: 'error',
      message: 'Service tier capacity exceeded for this model.',
      type: 'service_tier_capacity_exceeded',
      code: '3505',
    },
    RATE,
    retry,
  ],
  [
    'Mistral',
    422,
    {
      object: 'error',
      message: { detail: [{ msg: 'Field required' }] },
      type: 'invalid_request_message_error',
    },
    OTHER,
  ],
  ['DeepSeek', 402, plain('Insufficient Balance', { type: 'unknown_error' }), QUOTA],
  [
    'Moonshot',
    429,
    plain('Your account is suspended, please check your plan and billing details', {
      type: 'exceeded_current_quota_error',
    }),
    QUOTA,
  ],
  [
    'Moonshot',
    429,
    plain('The engine is currently overloaded, please try again later', {
      type: 'engine_overloaded_error',
    }),
    RATE,
    retry,
  ],
  [
    'Moonshot',
    400,
    plain('Invalid request: Your request exceeded model token limit: 262144', {
      type: 'invalid_request_error',
    }),
    CONTEXT,
  ],
  [
    'Zhipu',
    429,
    plain('Insufficient balance or no resource package. Please recharge.', { code: '1113' }),
    QUOTA,
  ],
  [
    'Qwen',
    400,
    plain('Range of input length should be [1, 129024]', { code: 'invalid_parameter_error' }),
    CONTEXT,
  ],
  [
    'Qwen',
    400,
    plain('Access denied, please make sure your account is in good standing.', {
      code: 'Arrearage',
    }),
    QUOTA,
  ],
  [
    'Qwen',
    null,
    plain('Output data may contain inappropriate content.', { code: 'data_inspection_failed' }),
    FILTER,
  ],
  [
    'xAI',
    400,
    {
      code: 'Client specified an invalid argument',
      error: 'Incorrect API key provided: xa***. You can obtain one.',
    },
    AUTH,
  ],
  [
    'xAI',
    400,
    {
      code: 'Client specified an invalid argument',
      error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    },
    CONTEXT,
  ],
  [
    'xAI',
    403,
    {
      code: 'The caller does not have permission',
      error:
        'Your team has either used all available credits or reached its monthly spending limit.',
    },
    QUOTA,
  ],
  [
    'vLLM',
    400,
    {
      object: 'error',
      message:
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
      type: 'BadRequestError',
      code: 400,
    },
    CONTEXT,
  ],
  [
    'a server before vLLM',
    500,
    { detail: 'The decoder prompt (length 66501) is longer than the maximum model length of 65536.' },
    CONTEXT,
  ],
  ['GitHub Copilot', 400, plain('prompt token count of 93854 exceeds the limit of 90000'), CONTEXT],
  [
    'Google',
    400,
    google(400, 'INVALID_ARGUMENT', 'Request payload size exceeds the limit: 20971520 bytes.'),
    CONTEXT,
  ],
  [
    'xAI',
    403,
    {
      code: 'The caller does not have permission to execute the specified operation',
      error: 'Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO',
    },
    FILTER,
  ],
  [
    'llama.cpp',
    400,
    plain('the request exceeds the available context size, try increasing it', {
      code: 400,
      type: 'exceed_context_size_error',
      n_ctx: 4096,
    }),
    CONTEXT,
  ],
  [
    'llama.cpp',
    500,
    plain('Context size has been exceeded.', { code: 500, type: 'server_error' }),
    CONTEXT,
  ],
  [
    'llama.cpp',
    503,
    plain('Loading model', { code: 503, type: 'unavailable_error' }),
    OTHER,
    retry,
  ],
  [
    'LM Studio',
    400,
    { error: 'The model is loaded with context length of only 4096 tokens, which is not enough.' },
    CONTEXT,
  ],
  [
    'Ollama',
    400,
    plain('registry.ollama.ai/library/x does not support tools', { type: 'api_error', code: null }),
    OTHER,
  ],
  [
    'Together',
    422,
    plain('Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193.', {
      type: 'invalid_request_error',
    }),
    CONTEXT,
  ],
  [
    'a gateway',
    504,
    '<!DOCTYPE html><html><head><title>504 Gateway Time-out</title></head></html>',
    OTHER,
    retry,
  ],
  ['a gateway', 520, 'error code: 520', OTHER, retry],
]

for (const [server, status, body, code, back] of REFUSALS) {
  const mistake = code === MISTAKE
  const failure = `${status ?? 'in a stream'}: ${JSON.stringify(body).slice(0, 110)}`
  test(`${server} ${failure} is ${code}, ${back ?? 'final'}`, () => {
    const error = providerError({ status, header: () => null, body, now: 0 }, context)
    assert.equal(error.code, mistake ? OTHER : code)
    assert.equal(error.modelMistake, mistake)
    assert.equal(error.retryable, back !== undefined)
    assert.equal(error.retryAfterMs, typeof back === 'number' ? back : undefined)
  })
}
