import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ModelError, retryDelay } from 'runwright/agent'
import { DEFAULT_RETRY_POLICY } from '../../../lib/agent/models/call-retry.js'

const failure = (retryAfterMs?: number, retryable = true) =>
  new ModelError('ERR_AGENT_MODEL', 'x', { retryable, retryAfterMs })
const most = () => 0.999_999
const least = () => 0

test('waits are random, below a bound that doubles', () => {
  const bounds = [1, 2, 3, 4].map((attempt) => retryDelay(attempt, failure(), most))
  assert.deepEqual(bounds, [500, 1_000, 2_000, 4_000])
  assert.equal(retryDelay(3, failure(), least), 0)
})

test('no bound exceeds 30 seconds', () => {
  assert.equal(
    retryDelay(19, failure(), most, { ...DEFAULT_RETRY_POLICY, maxAttempts: 20 }),
    30_000,
  )
})

test('the fifth failure is the last', () => {
  assert.notEqual(retryDelay(4, failure(), least), null)
  assert.equal(retryDelay(5, failure(), least), null)
})

test('a wait is at least what the provider asks for, up to two minutes', () => {
  assert.equal(retryDelay(1, failure(7_000), least), 7_000)
  assert.equal(retryDelay(1, failure(7_000), most), 7_500)
  assert.equal(retryDelay(1, failure(120_000), least), 120_000)
  assert.equal(retryDelay(1, failure(120_001), least), null)
})

test('a final error and an error of another type are not retried', () => {
  assert.equal(retryDelay(1, failure(undefined, false), least), null)
  assert.equal(retryDelay(1, new TypeError('bug'), least), null)
})
