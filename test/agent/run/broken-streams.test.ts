/** Calls that break off cost what they cost: in the log, against budgets, and once. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { ServerResponse } from 'node:http'
import {
  createHttpProvider,
  foldHead,
  MemoryStore,
  openAiChatAdapter,
  type AgentEvent,
  type EngineOptions,
  type EventPayloads,
  type HttpProvider,
  type Model,
  type ModelProvider,
  type ModelRequest,
  type ModelTurn,
  type RunRecord,
} from 'runwright/agent'
import { completeHead, type StoredHead } from '../../../lib/agent/log/head.js'
import { follow, openEngine, runToEnd, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { serve } from '../../helpers/serve.js'

const piece = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`
const says = (content: string): string => piece({ choices: [{ index: 0, delta: { content } }] })
const DONE =
  piece({ choices: [{ index: 0, delta: { content: 'ok' }, finish_reason: 'stop' }] }) +
  piece({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 1 } })

const PRICES = { input: 0, output: 1_000, as_of: '2026-01-01' }

interface Watched {
  readonly onDelta?: () => void
  readonly prices?: typeof PRICES | null
}

/** An engine whose model `p:m` costs a dollar for a thousand tokens of output. */
async function broken(
  t: TestContext,
  answer: (response: ServerResponse, call: number) => void,
  options: Partial<EngineOptions> & Watched = {},
  more: readonly ModelProvider[] = [],
) {
  let calls = 0
  const served = await serve((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      answer(response, calls++)
    })
  })
  const { onDelta, prices = PRICES, ...rest } = options
  const provider: HttpProvider = createHttpProvider(openAiChatAdapter(), {
    id: 'p',
    baseUrl: served.origin,
    prices,
  })
  t.after(async () => {
    await provider.close()
    await served.close()
  })
  const create = (name: string): Model => {
    const model = provider.create(name)
    if (onDelta === undefined) return model
    const { contextWindow, isLanguageModel, prices } = model
    const complete = (request: ModelRequest): Promise<ModelTurn> =>
      model.complete({ ...request, onDelta })
    return { name: model.name, contextWindow, isLanguageModel, prices, complete }
  }
  const providers = [{ ...provider, create }, ...more]
  const opened = await openEngine(t, { defaultModel: 'p:m', random: () => 0, ...rest, providers })
  return { ...opened, calls: () => calls }
}

const usages = (events: readonly AgentEvent[]): EventPayloads['llm_usage'][] =>
  events.flatMap((event) => (event.kind === 'llm_usage' ? [event.payload] : []))
const breakOff = (response: ServerResponse): void => {
  response.write(says('x'.repeat(300)), () => response.destroy())
}

test('attempts that break off are in the log, estimated, and their cost is not known', async (t) => {
  const { engine } = await broken(t, (response, call) =>
    call < 2 ? breakOff(response) : response.end(DONE),
  )
  const { events, details } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
  assertInvariants(events)
  const [first, second, last] = usages(events)
  assert.deepEqual([first?.failed, second?.failed, last?.failed], [true, true, undefined])
  assert.ok(first !== undefined && first.output_tokens >= 100 && first.output_tokens < 120)
  assert.equal(first.estimated_tokens, first.input_tokens + first.output_tokens)
  assert.equal(last?.estimated_tokens, undefined)
  assert.equal(details.usage.estimated_tokens, 2 * first.estimated_tokens)
  assert.equal(details.usage.model_calls, 3)
  assert.equal(details.cost_known, false)
  assert.ok(details.final_state.estimated_cost_usd > 0.2)
  const end = events.at(-1)
  assert.ok(end?.kind === 'run_end' && !end.payload.cost_known)
  assert.equal(end.payload.estimated_cost_usd, details.final_state.estimated_cost_usd)
})

test('a budget in dollars ends a run whose streams only break off', async (t) => {
  const { engine, calls } = await broken(t, breakOff)
  const { events, details } = await runToEnd(engine, { goal: 'shell: false', max_cost_usd: 0.06 })
  assertInvariants(events)
  assert.equal(details.end_reason, 'cost_budget')
  assert.equal(calls(), 1)
})

test('what an aborted call has used is counted', async (t) => {
  let heard: () => void = () => undefined
  const isHeard = new Promise<void>((resolve) => (heard = resolve))
  const { engine } = await broken(t, (response) => void response.write(says('x'.repeat(300))), {
    onDelta: () => heard(),
  })
  const { details } = await engine.create({ goal: 'shell: false' })
  await isHeard
  await engine.abort(details.run_id)
  const events = await follow(engine, details.run_id)
  assertInvariants(events)
  const [used] = usages(events)
  assert.ok(used?.failed === true && used.output_tokens >= 100)
  assert.equal((await engine.get(details.run_id)).status, 'aborted')
})

test('a judge whose stream breaks off is counted at its own price', async (t) => {
  const worker = testProvider((_, n) =>
    n === 0 ? { calls: [{ tool: 'write_file', args: { path: 'a', content: 'b' } }] } : {},
  )
  const { engine } = await broken(
    t,
    (response) => breakOff(response),
    { defaultModel: 'test:m', judgeModel: 'p:m' },
    [worker],
  )
  const { events, details } = await runToEnd(engine, {
    goal: 'Write a file.',
    max_cost_usd: 0.15,
  })
  assertInvariants(events)
  const judged = usages(events).filter(({ purpose }) => purpose === 'judge')
  assert.deepEqual(judged.map(({ failed }) => failed), [true, true])
  assert.ok(judged.every(({ cost_usd }) => cost_usd !== null && cost_usd > 0.1))
  assert.equal(details.end_reason, 'cost_budget')
})

test('a process that goes on counts what broke off once', async (t) => {
  const store = new MemoryStore()
  const { engine } = await broken(
    t,
    (response, call) => (call === 0 ? breakOff(response) : void response.flushHeaders()),
    { store },
  )
  const { details } = await engine.create({ goal: 'shell: false', max_iterations: 1 })
  await follow(engine, details.run_id, ({ kind }) => kind === 'llm_usage')
  const records: readonly RunRecord[] = await store.read(details.run_id, 0, 100)
  const counted = records.filter(({ kind }) => kind === 'llm_usage')
  assert.equal(counted.length, 1)
  // Whoever folds the log, before or after a crash, gets the same sums.
  const head = records.reduce<ReturnType<typeof foldHead> | null>(foldHead, null)
  assert.equal(head?.details.usage.model_calls, 1)
  assert.ok(head.details.usage.estimated_tokens > 100)
})

test('heads that were stored without estimated tokens have none', async () => {
  const usage = { input_tokens: 1, output_tokens: 1, cached_tokens: 0, reasoning_tokens: 0 }
  const counts = { ...usage, model_calls: 1, tool_calls: 0 }
  const stored = { details: { run_id: 'r', usage: counts } } as unknown as StoredHead
  assert.deepEqual(completeHead(stored).details.usage, { ...counts, estimated_tokens: 0 })
})

for (const [title, cost, expected] of [
  ['is the cost of the run, without a price of its own', 0.25, [0.25, true]],
  ['is what a free model costs', 0, [0, true]],
  ['that is absent leaves the cost unknown', undefined, [0, false]],
] as const) {
  test(`a cost that the provider tells ${title}`, async (t) => {
    const usage = { prompt_tokens: 10, completion_tokens: 1, cost }
    const { engine } = await broken(
      t,
      (response) =>
        response.end(
          piece({ choices: [{ index: 0, delta: { content: 'ok' }, finish_reason: 'stop' }] }) +
            piece({ choices: [], usage }),
        ),
      { prices: null },
    )
    const { events, details } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
    assertInvariants(events)
    const { final_state, cost_known } = details
    assert.deepEqual([final_state.estimated_cost_usd, cost_known], expected)
  })
}

test('with a key of one\'s own, the provider behind a gateway charges as well', async (t) => {
  const cost_details = { upstream_inference_cost: 0.5 }
  const usage = { prompt_tokens: 10, completion_tokens: 1, cost: 0.25, is_byok: true, cost_details }
  const { engine } = await broken(t, (response) =>
    response.end(
      piece({ choices: [{ index: 0, delta: { content: 'ok' }, finish_reason: 'stop' }] }) +
        piece({ choices: [], usage }),
    ),
  )
  const { details } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
  assert.equal(details.final_state.estimated_cost_usd, 0.75)
})
