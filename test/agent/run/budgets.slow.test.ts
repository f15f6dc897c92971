import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  MemoryStore,
  ModelError,
  NO_USAGE,
  type AgentEvent,
  type JsonObject,
  type Message,
  type ModelRequest,
} from 'runwright/agent'
import { ManualClock } from 'runwright/agent/testing'
import { untilAborted } from '../../helpers/abort.js'
import {
  follow,
  openEngine,
  runToEnd,
  scratch,
  testProvider,
  type Said,
} from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'

const write = (n: number): { readonly tool: string; readonly args: JsonObject } => ({
  tool: 'write_file',
  args: { path: 'a', content: `${n}` },
})
const results = (events: readonly AgentEvent[]): number[] =>
  events.flatMap((event) => (event.kind === 'tool_result' ? [event.payload.exit_code] : []))

for (const { calls, budget, codes } of [
  { calls: [3], budget: 2, codes: [0, 0, 126] },
  { calls: [1, 1, 1], budget: 2, codes: [0, 0] },
  { calls: [2, 2], budget: 3, codes: [0, 0, 0, 126] },
  { calls: [3], budget: 3, codes: [0, 0, 0] },
]) {
  test(`turns of ${calls.join(', ')} calls stay within a budget of ${budget}`, async (t) => {
    const provider = testProvider((_, n) => ({
      calls: Array.from({ length: calls[n] ?? 0 }, (_, i) => write(10 * n + i)),
    }))
    const { engine } = await openEngine(t, { providers: [provider] })
    const { events, details } = await runToEnd(engine, {
      goal: 'shell: false',
      max_tool_calls: budget,
    })
    assertInvariants(events)
    assert.deepEqual(results(events), codes)
    assert.equal(events.filter(({ kind }) => kind === 'tool_started').length, budget)
    assert.deepEqual([details.status, details.end_reason], ['failed', 'tool_call_budget'])
    assert.equal(details.usage.tool_calls, budget)
    assert.equal(details.max_tool_calls, budget)
  })
}

test('parallel reads stay within the budget of tool calls', async (t) => {
  const calls = Array.from({ length: 8 }, () => ({ tool: 'list_files', args: {} }))
  const { engine } = await openEngine(t, { providers: [testProvider(() => ({ calls }))] })
  const { events } = await runToEnd(engine, { goal: 'shell: false', max_tool_calls: 5 })
  assertInvariants(events)
  assert.deepEqual(results(events), [0, 0, 0, 0, 0, 126, 126, 126])
})

test('no gate opens for calls that exceed the budget', async (t) => {
  const provider = testProvider((_, n) => ({ calls: [write(n), write(n + 10)] }))
  const { engine } = await openEngine(t, { providers: [provider] })
  const request = { goal: 'shell: false', approval: 'writes', max_tool_calls: 1 }
  const { details } = await engine.create(request)
  const events = await follow(engine, details.run_id, (event) => {
    if (event.kind === 'human_check_required')
      void engine.resume(details.run_id, { decision: 'approve' }).catch(() => undefined)
    return false
  })
  assertInvariants(events)
  assert.equal(events.filter(({ kind }) => kind === 'human_check_required').length, 1)
  assert.deepEqual(results(events), [0, 126])
})

test('work that meets the goal counts even if the tool calls are used up', async (t) => {
  const { engine } = await openEngine(t, {
    providers: [testProvider(() => ({ calls: [write(1)] }))],
  })
  const { details } = await runToEnd(engine, { goal: 'shell: test -f a', max_tool_calls: 1 })
  assert.equal(details.end_reason, 'goal_achieved')
})

for (const { field, value, reason } of [
  { field: 'max_total_tokens', value: 100, reason: 'token_budget' },
  { field: 'max_cost_usd', value: 0.0001, reason: 'cost_budget' },
] as const) {
  test(`${field} is checked before each model call`, async (t) => {
    const provider = testProvider((_, n) => ({ calls: [write(n)], tokens: [60, 0] }))
    const { engine } = await openEngine(t, { providers: [provider] })
    const { events, details } = await runToEnd(engine, { goal: 'shell: false', [field]: value })
    assertInvariants(events)
    assert.equal(details.end_reason, reason)
    assert.equal(details.usage.model_calls, 2)
  })
}

test('failed attempts that were charged count towards the budget', async (t) => {
  let attempts = 0
  const provider = testProvider(() => {
    attempts += 1
    const usage = { ...NO_USAGE, input_tokens: 80 }
    throw new ModelError('ERR_AGENT_MODEL', 'cut off', { retryable: true, retryAfterMs: 1, usage })
  })
  const { engine } = await openEngine(t, { providers: [provider], random: () => 0 })
  const { events, details } = await runToEnd(engine, {
    goal: 'shell: false',
    max_total_tokens: 150,
  })
  assertInvariants(events)
  assert.equal(attempts, 2)
  assert.deepEqual([details.end_reason, details.error], ['token_budget', null])
  assert.equal(details.final_state.total_tokens, 160)
})

test('the time budget stops a running command, and its call gets a result', async (t) => {
  const clock = new ManualClock()
  const provider = testProvider(() => ({
    calls: [{ tool: 'bash', args: { command: 'sleep 600' } }],
  }))
  const { engine } = await openEngine(t, { providers: [provider], clock })
  const { details } = await engine.create({ goal: 'shell: false', max_seconds: 60 })
  await follow(engine, details.run_id, ({ kind }) => kind === 'tool_started')
  clock.advance(60_001)
  const events = await follow(engine, details.run_id)
  assertInvariants(events)
  assert.deepEqual(results(events), [130])
  assert.equal((await engine.get(details.run_id)).end_reason, 'time_budget')
})

for (const shutdown of ['in good order', 'by a crash'] as const) {
  test(`time without a process does not count as work: stopped ${shutdown}`, async (t) => {
    const clock = new ManualClock()
    const cwd = scratch(t)
    let store = new MemoryStore()
    store.close = () => Promise.resolve()
    const turns: Said[] = [{ calls: [write(1)] }]
    const hanging = testProvider((request, n) =>
      n === 0
        ? (turns[0] as Said)
        : untilAborted(request.signal),
    )
    const first = await openEngine(t, { cwd, store, clock, providers: [hanging] })
    const { details } = await first.engine.create({ goal: 'shell: test -f b', max_seconds: 100 })
    await follow(first.engine, details.run_id, ({ kind }) => kind === 'tool_result')
    await clock.whenPending()
    clock.advance(40_000)
    if (shutdown === 'by a crash') {
      const records = await store.read(details.run_id, 0, 1_000)
      store = new MemoryStore()
      await store.open()
      await store.append(details.run_id, records)
    } else await first.engine.close()
    clock.advance(3_600_000)
    const meets = testProvider(() => ({
      calls: [{ tool: 'write_file', args: { path: 'b', content: '' } }],
    }))
    const second = await openEngine(t, { cwd, store, clock, providers: [meets] })
    const events = await follow(second.engine, details.run_id)
    assertInvariants(events)
    assert.equal((await second.engine.get(details.run_id)).end_reason, 'goal_achieved')
  })
}

/** A model that refuses conversations beyond a number of characters. */
function narrow(limit: number, requests: ModelRequest[]): ReturnType<typeof testProvider> {
  return testProvider((request, n) => {
    requests.push(request)
    const size = request.messages.reduce((sum, message) => sum + sizeOf(message), 0)
    if (size > limit)
      throw new ModelError('ERR_AGENT_MODEL_CONTEXT', 'too long', { retryable: false })
    return {
      calls: [
        { tool: 'bash', args: { command: `head -c 3000 /dev/zero | tr '\\0' x; echo ${n}` } },
      ],
    }
  })
}
const sizeOf = (message: Message): number =>
  message.role === 'tool' ? message.output.length : message.text.length

test('a model that refuses a long conversation gets a shorter one, then and later', async (t) => {
  const requests: ModelRequest[] = []
  const { engine } = await openEngine(t, { providers: [narrow(20_000, requests)] })
  const { events, details } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 3 })
  assertInvariants(events)
  assert.equal(details.end_reason, 'max_iterations')
  assert.ok(
    events.some((event) => event.kind === 'log' && /sending less/.test(event.payload.message)),
  )
  for (const { messages } of requests) {
    const open = new Set<string>()
    for (const message of messages) {
      if (message.role === 'assistant') for (const { call_id } of message.calls) open.add(call_id)
      if (message.role === 'tool') assert.ok(open.delete(message.call_id))
    }
    assert.equal(open.size, 0, 'no call is parted from its result')
  }
})

test('a model that refuses every length ends the run after two shorter attempts', async (t) => {
  const requests: ModelRequest[] = []
  const { engine } = await openEngine(t, { providers: [narrow(0, requests)] })
  const { events, details } = await runToEnd(engine, { goal: 'shell: false' })
  assertInvariants(events)
  assert.equal(details.end_reason, 'context_exhausted')
  assert.ok(requests.length <= 3, `${requests.length} calls`)
})

test('after a takeover, the time budget stops a first step that appends nothing', async (t) => {
  const clock = new ManualClock()
  const store = new MemoryStore()
  store.close = () => Promise.resolve()
  let calls = 0
  let onCall: () => void = () => undefined
  const provider = testProvider(async ({ signal }, n) => {
    if (n === 0) return { calls: [{ tool: 'list_files', args: {} }] }
    calls += 1
    onCall()
    return await untilAborted(signal)
  })
  const options = { store, clock, providers: [provider] }
  const called = (): Promise<void> => new Promise((resolve) => (onCall = resolve))
  let call = called()
  const first = await openEngine(t, options)
  const { details } = await first.engine.create({ goal: 'shell: false', max_seconds: 60 })
  await call
  clock.advance(20_000)
  await first.engine.close()
  clock.advance(3_600_000)
  call = called()
  const second = await openEngine(t, { ...options, cwd: first.cwd })
  await call
  const followed = follow(second.engine, details.run_id)
  clock.advance(39_999)
  assert.equal((await second.engine.get(details.run_id)).status, 'running')
  clock.advance(1)
  assertInvariants(await followed)
  assert.equal((await second.engine.get(details.run_id)).end_reason, 'time_budget')
  assert.equal(calls, 2)
})
