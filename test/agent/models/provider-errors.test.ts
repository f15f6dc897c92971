import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { providerError, redactSecrets } from '../../../lib/agent/models/provider-errors.js'
import { context, recording } from './exchange.js'

const NOW = Date.parse('2026-03-01T12:00:00Z')

function refusal(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) {
  return providerError({ status, header: (name) => headers[name] ?? null, body, now: NOW }, context)
}

test('a recorded 400 is final and has the provider’s message', () => {
  const { response } = recording('openai-chat-error-400')
  const error = refusal(response.status, response.body)
  assert.equal(
    error.message,
    'test:model answered 400: Web search options not supported with this model.',
  )
  assert.deepEqual(
    [error.code, error.retryable, error.modelMistake, error.statusCode],
    ['ERR_AGENT_MODEL', false, false, 400],
  )
})

test('a recorded 400 tool_use_failed is the model’s mistake, with its output', () => {
  const { response } = recording('groq-tool-use-failed-400')
  const error = refusal(response.status, response.body)
  assert.deepEqual(
    [error.code, error.retryable, error.modelMistake],
    ['ERR_AGENT_MODEL', false, true],
  )
  assert.match(error.message, /missing properties: 'name'/)
  assert.match(error.message, /What the model wrote: \{"name": "get_something_by_name"/)
})

const QUOTA = 'ERR_AGENT_MODEL_QUOTA'
const RATE = 'ERR_AGENT_MODEL_RATE_LIMIT'
const AUTH = 'ERR_AGENT_MODEL_AUTH'
const CONTEXT = 'ERR_AGENT_MODEL_CONTEXT'
const OTHER = 'ERR_AGENT_MODEL'

const googleError = (message: string, details: unknown[]) => ({
  error: { code: 429, status: 'RESOURCE_EXHAUSTED', message, details },
})

for (const { title, status, body, code, retryable } of [
  {
    title: 'a rate limit',
    status: 429,
    body: { error: { message: 'Rate limit reached', code: 'rate_limit_exceeded' } },
    code: RATE,
    retryable: true,
  },
  {
    title: 'an exhausted quota',
    status: 429,
    body: { error: { message: 'You exceeded your current quota', code: 'insufficient_quota' } },
    code: QUOTA,
    retryable: false,
  },
  {
    title: 'a spending limit',
    status: 429,
    body: { error: { type: 'enforced_spend_limit_reached', message: 'x' } },
    code: QUOTA,
    retryable: false,
  },
  {
    title: 'a credit balance',
    status: 400,
    body: {
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: 'Your credit balance is too low to access the API',
      },
    },
    code: QUOTA,
    retryable: false,
  },
  {
    title: 'payment required',
    status: 402,
    body: { error: { message: 'Insufficient Balance' } },
    code: QUOTA,
    retryable: false,
  },
  {
    title: 'Google’s daily quota',
    status: 429,
    body: googleError('You exceeded your current quota', [
      { violations: [{ quotaId: 'GenerateRequestsPerDayPerProjectPerModel-FreeTier' }] },
    ]),
    code: QUOTA,
    retryable: false,
  },
  {
    title: 'Google’s quota per minute',
    status: 429,
    body: googleError('You exceeded your current quota', [
      { violations: [{ quotaId: 'GenerateRequestsPerMinutePerProjectPerModel' }] },
    ]),
    code: RATE,
    retryable: true,
  },
  {
    title: 'an invalid key',
    status: 401,
    body: { error: { message: 'Incorrect API key provided' } },
    code: AUTH,
    retryable: false,
  },
  {
    title: 'a forbidden model',
    status: 403,
    body: { error: { message: 'no access' } },
    code: AUTH,
    retryable: false,
  },
  {
    title: 'Google’s invalid key',
    status: 400,
    body: {
      error: { code: 400, message: 'API key not valid.', details: [{ reason: 'API_KEY_INVALID' }] },
    },
    code: AUTH,
    retryable: false,
  },
  {
    title: 'an overlong prompt (OpenAI)',
    status: 400,
    body: { error: { code: 'context_length_exceeded', message: 'too long' } },
    code: CONTEXT,
    retryable: false,
  },
  {
    title: 'an overlong prompt (Anthropic)',
    status: 400,
    body: {
      error: {
        type: 'invalid_request_error',
        message: 'prompt is too long: 208310 tokens > 200000 maximum',
      },
    },
    code: CONTEXT,
    retryable: false,
  },
  {
    title: 'an overlong prompt (llama.cpp)',
    status: 400,
    body: { error: { type: 'exceed_context_size_error', message: 'x' } },
    code: CONTEXT,
    retryable: false,
  },
  {
    title: 'a request too large for the limit per minute',
    status: 429,
    body: {
      error: {
        code: 'rate_limit_exceeded',
        message: 'Request too large for gpt-4o on tokens per min: Limit 30000, Requested 40000',
      },
    },
    code: CONTEXT,
    retryable: false,
  },
  { title: 'a body that is too large', status: 413, body: 'nope', code: CONTEXT, retryable: false },
  {
    title: 'an unknown model',
    status: 404,
    body: { error: { message: 'model not found' } },
    code: OTHER,
    retryable: false,
  },
  { title: 'a timeout', status: 408, body: '', code: OTHER, retryable: true },
  { title: 'a conflict', status: 409, body: '', code: OTHER, retryable: true },
  {
    title: 'a server error',
    status: 500,
    body: { error: { message: 'oops' } },
    code: OTHER,
    retryable: true,
  },
  {
    title: 'a bad gateway in HTML',
    status: 502,
    body: '<html><title>502 Bad Gateway</title></html>',
    code: OTHER,
    retryable: true,
  },
  {
    title: 'an overload',
    status: 529,
    body: { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
    code: OTHER,
    retryable: true,
  },
  { title: 'a redirect', status: 302, body: '', code: OTHER, retryable: false },
]) {
  test(`${title} (${status}) is ${code}, retryable: ${retryable}`, () => {
    const error = refusal(status, body)
    assert.deepEqual([error.code, error.retryable, error.modelMistake], [code, retryable, false])
    assert.equal(error.statusCode, status)
  })
}

for (const { title, body, message } of [
  { title: 'a detail', body: { detail: 'Not here' }, message: 'Not here' },
  {
    title: 'a list of details',
    body: { detail: [{ msg: 'field required' }] },
    message: '[{"msg":"field required"}]',
  },
  {
    title: 'an error as text',
    body: { error: 'model "x" not found, try pulling it first' },
    message: 'model "x" not found, try pulling it first',
  },
  {
    title: 'a bare message',
    body: { object: 'error', message: 'bad', code: 40403 },
    message: 'bad',
  },
  { title: 'plain text', body: 'upstream gone\n', message: 'upstream gone' },
  { title: 'JSON as text', body: '{"error":{"message":"inner"}}', message: 'inner' },
  { title: 'an array of the error', body: [{ error: { message: 'listed' } }], message: 'listed' },
  {
    title: 'HTML',
    body: '<!DOCTYPE html><html><head><title>Blocked</title></head></html>',
    message: 'an HTML page (Blocked)',
  },
]) {
  test(`the message is found in ${title}`, () => {
    assert.equal(refusal(400, body).message, `test:model answered 400: ${message}`)
  })
}

for (const { title, metadata, message } of [
  {
    title: 'text',
    metadata: { raw: 'x:free is rate-limited upstream. Retry shortly.', provider_name: 'Chutes' },
    message: 'Provider returned error (Chutes: x:free is rate-limited upstream. Retry shortly.)',
  },
  {
    title: 'JSON as text',
    metadata: { raw: '{"error":{"message":"too many tokens per minute"}}', provider_name: 'Azure' },
    message: 'Provider returned error (Azure: too many tokens per minute)',
  },
  {
    title: 'an object',
    metadata: { raw: { message: 'capacity' } },
    message: 'Provider returned error (capacity)',
  },
  {
    title: 'what was said already',
    metadata: { raw: 'Provider returned error', provider_name: 'X' },
    message: 'Provider returned error (X)',
  },
  { title: 'nothing', metadata: { raw: '', provider_name: '' }, message: 'Provider returned error' },
  {
    title: 'a key',
    metadata: { raw: 'no quota for secret-key-123' },
    message: 'Provider returned error (no quota for [key])',
  },
]) {
  test(`of a provider behind a gateway, the words are shown: ${title}`, () => {
    const body = { error: { message: 'Provider returned error', code: 429, metadata } }
    assert.equal(refusal(429, body).message, `test:model answered 429: ${message}`)
  })
}

test('a provider behind a gateway names the wait in its own words', () => {
  const metadata = { raw: 'Rate limit reached. Please try again in 20s.' }
  const body = { error: { message: 'Provider returned error', code: 429, metadata } }
  assert.equal(refusal(429, body).retryAfterMs, 20_000)
})

test('an empty body still gives a message, and a huge one is truncated', () => {
  assert.equal(refusal(500, '').message, 'test:model answered 500')
  assert.ok(refusal(500, 'x'.repeat(100_000)).message.length < 1_100)
})

for (const { title, status, headers, body, ms } of [
  {
    title: 'retry-after in seconds',
    status: 429,
    headers: { 'retry-after': '7' },
    body: '',
    ms: 7_000,
  },
  {
    title: 'retry-after with a fraction',
    status: 503,
    headers: { 'retry-after': '0.5' },
    body: '',
    ms: 500,
  },
  {
    title: 'retry-after as a date',
    status: 429,
    headers: { 'retry-after': 'Sun, 01 Mar 2026 12:00:30 GMT' },
    body: '',
    ms: 30_000,
  },
  {
    title: 'retry-after as a past date',
    status: 429,
    headers: { 'retry-after': 'Sun, 01 Mar 2026 11:00:00 GMT' },
    body: '',
    ms: 0,
  },
  {
    title: 'retry-after-ms before retry-after',
    status: 429,
    headers: { 'retry-after-ms': '1250', 'retry-after': '2' },
    body: '',
    ms: 1_250,
  },
  {
    title: 'the reset of an exhausted limit',
    status: 429,
    headers: {
      'x-ratelimit-remaining-requests': '12',
      'x-ratelimit-reset-requests': '1s',
      'x-ratelimit-remaining-tokens': '0',
      'x-ratelimit-reset-tokens': '6m0s',
    },
    body: '',
    ms: 360_000,
  },
  {
    title: 'a reset in milliseconds',
    status: 429,
    headers: { 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '120ms' },
    body: '',
    ms: 120,
  },
  {
    title: 'a reset as epoch milliseconds',
    status: 429,
    headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(NOW + 9_000) },
    body: '',
    ms: 9_000,
  },
  {
    title: 'a reset as epoch seconds',
    status: 429,
    headers: { 'ratelimit-remaining': '0', 'ratelimit-reset': String(NOW / 1000 + 4) },
    body: '',
    ms: 4_000,
  },
  {
    title: 'a reset in seconds',
    status: 429,
    headers: { 'ratelimit-remaining': '0', 'ratelimit-reset': '3' },
    body: '',
    ms: 3_000,
  },
  {
    title: 'Anthropic’s reset',
    status: 429,
    headers: {
      'anthropic-ratelimit-input-tokens-remaining': '0',
      'anthropic-ratelimit-input-tokens-reset': '2026-03-01T12:00:12Z',
    },
    body: '',
    ms: 12_000,
  },
  {
    title: 'a reset that OpenRouter has in the body',
    status: 429,
    headers: {},
    body: {
      error: {
        message: 'Rate limit exceeded: free-models-per-min. ',
        code: 429,
        metadata: {
          headers: { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': String(NOW + 9_000) },
        },
      },
    },
    ms: 9_000,
  },
  {
    title: 'resets of limits that are not exhausted',
    status: 429,
    headers: { 'x-ratelimit-remaining-tokens': '5', 'x-ratelimit-reset-tokens': '6m0s' },
    body: '',
    ms: undefined,
  },
  {
    title: 'Google’s RetryInfo',
    status: 429,
    headers: {},
    body: googleError('slow', [
      { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '17.5s' },
    ]),
    ms: 17_500,
  },
  { title: 'invalid', status: 429, headers: { 'retry-after': 'soon' }, body: '', ms: undefined },
  { title: 'no header', status: 500, headers: {}, body: '', ms: undefined },
  {
    title: 'a delay for a final error',
    status: 400,
    headers: { 'retry-after': '7' },
    body: '',
    ms: undefined,
  },
]) {
  test(`retry delay: ${title}`, () => {
    assert.equal(refusal(status, body, headers as Record<string, string>).retryAfterMs, ms)
  })
}

test('x-should-retry: false applies, except to a rate limit', () => {
  assert.equal(refusal(500, '', { 'x-should-retry': 'false' }).retryable, false)
  assert.equal(refusal(429, '', { 'x-should-retry': 'false' }).retryable, true)
})

test('errors contain neither the configured keys nor anything of the shape of a key', () => {
  const error = refusal(401, {
    error: { message: 'Incorrect API key provided: secret-key-123 or sk-abcdef*****wxyz' },
  })
  assert.doesNotMatch(inspect(error, { depth: 9 }), /secret-key-123|abcdef/)
  assert.match(error.message, /check the key/)
  assert.equal(redactSecrets('Bearer abcdefgh.ijk and AIzaSyA0123456789', []), '[key] and [key]')
})

test('of the statuses below 500 only 408, 409, 429 and 498 are retryable', () => {
  const statuses = Array.from({ length: 300 }, (_, i) => 300 + i)
  const retryable = statuses.filter((status) => refusal(status, '').retryable)
  assert.deepEqual(retryable, [408, 409, 429, 498, ...statuses.filter((status) => status >= 500)])
})
