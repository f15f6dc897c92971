import assert from 'node:assert/strict'
import { test } from 'node:test'
import { costOf, knownPrices } from 'runwright/agent'

const usage = {
  input_tokens: 1_000_000,
  output_tokens: 200_000,
  cached_tokens: 600_000,
  reasoning_tokens: 50_000,
}

test('a call costs its fresh input, its cached input and its output, each at its price', () => {
  assert.equal(
    costOf(usage, { input: 2, cached: 0.5, output: 10, as_of: '2026-01-01' }),
    0.8 + 0.3 + 2,
  )
})

test('cached input costs as much as input where no price is given for it', () => {
  assert.equal(costOf(usage, { input: 2, output: 10, as_of: '2026-01-01' }), 4)
})

test('an unknown price is null, never 0', () => {
  assert.equal(costOf(usage, null), null)
  assert.equal(knownPrices('gpt-from-the-future'), null)
  assert.equal(knownPrices('openai/gpt-5'), null)
  assert.equal(knownPrices('toString'), null)
})

test('more cached than input tokens do not make the cost negative', () => {
  const odd = { ...usage, cached_tokens: 2_000_000 }
  assert.equal(costOf(odd, { input: 2, cached: 0, output: 10, as_of: '2026-01-01' }), 2)
})

test('a dated or latest name has the price of its model, a variant does not', () => {
  assert.deepEqual(knownPrices('gpt-5-mini-2025-08-07'), knownPrices('gpt-5-mini'))
  assert.deepEqual(knownPrices('claude-haiku-4-5-20251001'), knownPrices('claude-haiku-4-5'))
  assert.deepEqual(knownPrices('claude-sonnet-4-5-latest'), knownPrices('claude-sonnet-4-5'))
  assert.equal(knownPrices('gpt-5-mini-fast'), null)
})

test('each price has the date of its lookup', () => {
  const prices = knownPrices('gpt-5-mini')
  assert.match(prices?.as_of ?? '', /^\d{4}-\d{2}-\d{2}$/)
  assert.deepEqual([prices?.input, prices?.cached, prices?.output], [0.25, 0.025, 2])
})
