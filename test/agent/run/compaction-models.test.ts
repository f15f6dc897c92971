/** Summaries where other models take over, providers have limits, and there are images. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  defineTool, ModelError, type ModelProvider, type ModelRequest,
} from 'runwright/agent'
import { openEngine, runToEnd, testProvider, type Said } from '../../helpers/engine.js'
import { png } from '../../helpers/images.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { lookTool, looking, WINDOW } from '../../helpers/long-run.js'

/** A language model with a small window; `sees`: it takes images. */
function provider(
  id: string,
  answer: (request: ModelRequest, call: number) => Said,
  price: number,
  sees = false,
): ModelProvider {
  const made = testProvider(answer)
  const prices = { input: price, output: price, as_of: '2026-01-01' }
  const more = { isLanguageModel: true, contextWindow: WINDOW, prices, takesImages: sees }
  const create: ModelProvider['create'] = (name) => {
    return { ...made.create(name), ...more, name: `${id}:${name}` }
  }
  return { ...made, id, create }
}

const isSummary = ({ purpose }: ModelRequest): boolean => purpose === 'summary'
const summary: Said = { text: 'What was done.', tokens: [1_000, 100] }

test('the model that has taken over writes the summary, at its own price, within limits', async (t) => {
  const broken = provider('first', () => {
    throw new ModelError('ERR_AGENT_MODEL_AUTH', 'no', { retryable: false })
  }, 1)
  const asked: boolean[] = []
  const works = provider('second', (request, call) => {
    asked.push(isSummary(request))
    if (isSummary(request)) return summary
    return call < 30 ? looking(call) : { text: 'done' }
  }, 10)
  const { engine } = await openEngine(t, {
    providers: [broken, works], defaultModel: 'first:m', tools: [lookTool], compaction: 'summary',
    maxTurnsPerIteration: 100, providerLimits: { second: { concurrent: 1 } },
  })
  const { details, events } = await runToEnd(engine, {
    goal: 'shell: false', max_iterations: 1, fallback_models: ['second:m'],
  })
  assertInvariants(events)
  const costs = events.flatMap((event) =>
    event.kind === 'llm_usage' && event.payload.purpose === 'summary' ? [event.payload] : [],
  )
  assert.ok(costs.length > 0)
  assert.equal(costs.length, asked.filter(Boolean).length)
  for (const { cost_usd, model_name } of costs) {
    assert.equal(model_name, 'second:m')
    assert.equal(cost_usd, (1_100 * 10) / 1e6)
  }
  assert.equal(details.active_model, 'second:m')
})

/** A tool that returns an image. */
const photoTool = defineTool({
  name: 'photo',
  description: 'Takes a photo.',
  parameters: { type: 'object', properties: {} },
  effect: 'read',
  execute: () => {
    return { output: 'here', exitCode: 0, files: [{ mediaType: 'image/png', data: png() }] }
  },
})

for (const sees of [true, false]) {
  const which = sees ? 'sees images' : 'sees none'
  test(`what is summarized has no images, for a model that ${which}`, async (t) => {
    const seen: { readonly summarized: boolean; readonly images: number }[] = []
    const model = provider('one', (request, call) => {
      const images = request.messages.filter((one) => 'images' in one).length
      seen.push({ summarized: isSummary(request), images })
      if (isSummary(request)) return summary
      if (call % 5 === 0) return { calls: [{ tool: 'photo', args: {} }] }
      return call < 40 ? looking(call) : { text: 'done' }
    }, 1, sees)
    const { engine } = await openEngine(t, {
      providers: [model], defaultModel: 'one:m', tools: [lookTool, photoTool],
      compaction: 'summary', maxTurnsPerIteration: 100, detectStuck: false,
    })
    const { events } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
    assertInvariants(events)
    assert.ok(seen.some(({ summarized }) => summarized))
    assert.deepEqual(seen.filter((one) => one.summarized && one.images > 0), [])
    assert.equal(seen.some(({ images }) => images > 0), sees)
  })
}
