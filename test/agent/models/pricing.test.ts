import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import {
  costOf,
  createHttpProvider,
  InvalidRequestError,
  knownPrices,
  openAiChatAdapter,
  providersFromEnvironment,
} from 'runwright/agent'
import { ScriptedModel } from 'runwright/agent/testing'
import { chargeFor } from '../../../lib/agent/models/pricing.js'
import { valueFor } from '../../../lib/agent/models/per-model.js'
import { openEngine } from '../../helpers/engine.js'

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

test('a snapshot with a price of its own has that price', () => {
  const { input, output, cached } = knownPrices('gpt-4o-2024-05-13') ?? {}
  assert.deepEqual([input, cached, output], [5, undefined, 15])
  assert.equal(knownPrices('gpt-4o-2024-08-06')?.input, 2.5)
})

for (const [told, prices, charged] of [
  [0.5, { input: 1, output: 1, as_of: '2026-01-01' }, 0.5],
  [0.5, null, 0.5],
  [0, null, 0],
  [0, { input: 1, output: 0, as_of: '2026-01-01' }, 1],
  [undefined, null, null],
] as const) {
  test(`a told cost of ${told} is charged as ${charged} with ${prices ? 'a' : 'no'} price`, () => {
    const used = told === undefined ? usage : { ...usage, cost_usd: told }
    assert.equal(chargeFor(used, prices), charged)
  })
}

for (const [model, found] of [
  ['gpt-4o', 'exact'],
  ['gpt-4o-2024-08-06', 'gpt-4o-*'],
  ['gpt-4o-mini', '*mini'],
  ['gpt-4oo', 'gpt-4o*'],
  ['gpt-5', undefined],
  ['a.b', 'a*b'],
  ['ab', 'a*b'],
  ['aa', undefined],
  ['x-y-z', 'x*-*z'],
  ['x-z', 'x*-*z'],
  ['toString', undefined],
] as const) {
  test(`of patterns, ${model} gets ${found}`, () => {
    const patterns = ['gpt-4o*', 'gpt-4o-*', '*gpt-4o-mini', 'a*b', 'x*-*z']
    const values = {
      ...Object.fromEntries(patterns.map((pattern) => [pattern, pattern])),
      'gpt-4o': 'exact',
      '*gpt-4o-mini': '*mini',
    }
    assert.equal(valueFor(values, model), found)
  })
}

const own = { input: 9, output: 9, as_of: '2026-01-01' }

test('prices and windows of a provider may differ from model to model', async () => {
  await using provider = createHttpProvider(openAiChatAdapter(), {
    id: 'p',
    prices: { 'gpt-4o*': own, 'gpt-5': null },
    contextWindow: { 'gpt-4o*': 1_000, 'gpt-5': null },
  })
  assert.deepEqual(provider.create('gpt-4o-mini').prices, own)
  assert.equal(provider.create('gpt-4o-mini').contextWindow, 1_000)
  assert.equal(provider.create('gpt-5').prices, null)
  assert.equal(provider.create('gpt-5').contextWindow, null)
  assert.deepEqual(provider.create('gpt-4.1').prices, knownPrices('gpt-4.1'))
  assert.equal(provider.create('gpt-4.1').contextWindow, 1_000_000)
})

test('prices of providers from the environment may differ from model to model', async () => {
  const env = { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', OLLAMA_HOST: '127.0.0.1:1' }
  const providers = providersFromEnvironment(env, { prices: { 'a/*': own } })
  const [openai, ollama] = providers
  assert.deepEqual(openai?.create('a/b').prices, own)
  assert.equal(openai?.create('b').prices, null)
  assert.equal(ollama?.create('a/b').prices?.input, 0)
  for (const provider of providers) await provider.close()
})

test('what is wrong with the prices of a pattern is named', () => {
  const prices = { 'gpt-4o*': { input: 1 } } as never
  const open = (): unknown => createHttpProvider(openAiChatAdapter(), { id: 'p', prices })
  assert.throws(open, /prices\["gpt-4o\*"\]/)
  const contextWindow = { 'gpt-4o*': '8k' } as never
  assert.throws(
    () => createHttpProvider(openAiChatAdapter(), { id: 'p', contextWindow }),
    /contextWindow\["gpt-4o\*"\] must be a number of tokens or null/,
  )
})

for (const prices of [
  { input: NaN, output: 1 }, { input: -1, output: 1 }, { input: 1, output: Infinity }, { input: 1 },
  { input: 1, output: 1, cached: -1 }, { input: '1', output: 1 }, {}, [], 5,
] as never[]) {
  test(`prices ${inspect(prices)} are refused, by whatever model they come`, async (t) => {
    const given = typeof prices === 'object' ? { ...(prices as object), as_of: '' } : prices
    const options = { id: 'p', prices: given } as never
    assert.throws(() => createHttpProvider(openAiChatAdapter(), options), TypeError)
    const complete = (): Promise<never> => Promise.reject()
    const model = { ...new ScriptedModel([]), name: 'own', prices, complete }
    const own = { id: 'own', description: '', isLanguageModel: true, suggestions: [] }
    const providers = [{ ...own, create: () => model as never }]
    const { engine } = await openEngine(t, { providers, defaultModel: 'builtin:repair' })
    const request = { goal: 'shell: false', model_name: 'own:a', max_cost_usd: 1 }
    await assert.rejects(engine.create(request), (error) => {
      assert.ok(error instanceof InvalidRequestError)
      assert.equal(error.violations[0]?.pointer, '/model_name')
      assert.match(error.violations[0].detail, /^prices of own:a(\.\w+)? must be/)
      return true
    })
  })
}
