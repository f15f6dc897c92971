import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import type { ModelError } from 'runwright/agent'
import { redactSecrets } from '../../../lib/agent/models/provider-errors.js'
import { NOW, refusalOf } from './exchanges/table.js'

function refusal(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): ModelError {
  return refusalOf({ status, body, headers })
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
  test(`the words of a provider behind a gateway are shown: ${title}`, () => {
    const body = { error: { message: 'Provider returned error', code: 429, metadata } }
    assert.equal(refusal(429, body).message, `test:model answered 429: ${message}`)
  })
}

test('an empty body still gives a message, and a huge one is truncated', () => {
  assert.equal(refusal(500, '').message, 'test:model answered 500')
  assert.ok(refusal(500, 'x'.repeat(100_000)).message.length < 1_100)
})

for (const [title, headers, ms, status = 429] of [
  ['retry-after in seconds', { 'retry-after': '7' }, 7_000],
  ['retry-after with a fraction', { 'retry-after': '0.5' }, 500, 503],
  ['retry-after as a date', { 'retry-after': 'Sun, 01 Mar 2026 12:00:30 GMT' }, 30_000],
  ['retry-after as a past date', { 'retry-after': 'Sun, 01 Mar 2026 11:00:00 GMT' }, 0],
  ['retry-after-ms before retry-after', { 'retry-after-ms': '1250', 'retry-after': '2' }, 1_250],
  [
    'the reset of an exhausted limit',
    {
      'x-ratelimit-remaining-requests': '12', 'x-ratelimit-reset-requests': '1s',
      'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': '6m0s',
    },
    360_000,
  ],
  [
    'a reset in milliseconds',
    { 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '120ms' },
    120,
  ],
  [
    'a reset as epoch milliseconds',
    { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(NOW + 9_000) },
    9_000,
  ],
  [
    'a reset as epoch seconds',
    { 'ratelimit-remaining': '0', 'ratelimit-reset': String(NOW / 1000 + 4) },
    4_000,
  ],
  ['a reset in seconds', { 'ratelimit-remaining': '0', 'ratelimit-reset': '3' }, 3_000],
  [
    'Anthropic’s reset',
    {
      'anthropic-ratelimit-input-tokens-remaining': '0',
      'anthropic-ratelimit-input-tokens-reset': '2026-03-01T12:00:12Z',
    },
    12_000,
  ],
  [
    'resets of limits that are not exhausted',
    { 'x-ratelimit-remaining-tokens': '5', 'x-ratelimit-reset-tokens': '6m0s' },
    undefined,
  ],
  ['invalid', { 'retry-after': 'soon' }, undefined],
  ['no header', {}, undefined, 500],
  ['a delay for a final error', { 'retry-after': '7' }, undefined, 400],
] satisfies [string, Record<string, string>, number | undefined, number?][]) {
  test(`retry delay: ${title}`, () => {
    assert.equal(refusal(status, '', headers).retryAfterMs, ms)
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
