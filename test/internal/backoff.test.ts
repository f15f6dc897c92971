import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backoffBound, backoffDelay } from '../../lib/internal/time.js'

const backoff = { firstMs: 100, maxMs: 1_000 }

test('the bound of a wait doubles with each retry up to maxMs', () => {
  const bounds = [1, 2, 3, 4, 5, 6, 5_000].map((retry) => backoffBound(retry, backoff))
  assert.deepEqual(bounds, [100, 200, 400, 800, 1_000, 1_000, 1_000])
  assert.equal(backoffBound(1, { firstMs: 5_000, maxMs: 1_000 }), 1_000)
})

test('a wait is random between zero and its bound', () => {
  assert.equal(backoffDelay(3, backoff, () => 0), 0)
  assert.equal(backoffDelay(3, backoff, () => 0.5), 200)
  for (let i = 0; i < 100; i++) {
    const delay = backoffDelay(2, backoff)
    assert.ok(delay >= 0 && delay < 200, `${delay}`)
  }
})
