import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import {
  MemoryStore,
  RunEngine,
  type AgentEvent,
  type EngineOptions,
  type JsonObject,
  type Message,
  type ModelRequest,
} from 'runwright/agent'
import { nextTurn } from '../../../lib/internal/time.js'
import { follow, openEngine, scratch, testProvider, type Said } from '../../helpers/engine.js'
import { FaultyStore } from '../../helpers/faulty-store.js'
import { assertInvariants } from '../../helpers/invariants.js'

const REFUSED = { code: 'ERR_AGENT_RUN_STATE' }
const list: Said = { calls: [{ tool: 'list_files', args: {} }] }

/** The texts that messages from outside begin with are left out. */
function textsOf(messages: readonly Message[]): string[] {
  return messages.map((message) =>
    message.role === 'tool'
      ? `result ${message.call_id}`
      : message.text.replace(/^Message from the user:\n\n/, 'user: ').split('\n')[0]!,
  )
}

/** An engine whose model is stepped by the test: each call waits until it is answered. */
async function stepped(
  t: TestContext,
  options: Partial<EngineOptions> = {},
  request: JsonObject = {},
): Promise<{
  readonly engine: RunEngine
  readonly runId: string
  /** Resolves with the messages of the next call. */
  readonly asked: () => Promise<string[]>
  readonly answer: (said: Said) => void
  readonly end: () => Promise<AgentEvent[]>
}> {
  const asked: ModelRequest[] = []
  let onAsked: () => void = () => undefined
  let onAnswer: (said: Said) => void = () => undefined
  const provider = testProvider(async (call) => {
    const answer = new Promise<Said>((resolve) => (onAnswer = resolve))
    asked.push(call)
    onAsked()
    return await answer
  })
  const { engine } = await openEngine(t, { providers: [provider], ...options })
  const { details } = await engine.create({ goal: 'shell: false', max_iterations: 2, ...request })
  return {
    engine,
    runId: details.run_id,
    asked: async () => {
      while (asked.length === 0) await new Promise<void>((resolve) => (onAsked = resolve))
      return textsOf(asked.shift()!.messages)
    },
    answer: (said) => onAnswer(said),
    end: async () => {
      const events = await follow(engine, details.run_id)
      assertInvariants(events)
      return events
    },
  }
}

test('a message is heard with the next call of the model, after all that came before', async (t) => {
  const { engine, runId, asked, answer, end } = await stepped(t)
  await asked()
  const sent = await engine.message(runId, { text: 'first' })
  await engine.message(runId, { text: 'later', deliver: 'next_iteration' })
  await engine.message(runId, { text: 'second', deliver: 'next_turn' })
  answer(list)
  const second = await asked()
  assert.deepEqual(second.slice(1), ['', 'result c0_0', 'user: first', 'user: second'])
  answer({})
  const third = await asked()
  assert.deepEqual(third.slice(1), [
    '', 'result c0_0', 'user: first', 'user: second', '',
    'Goal check after iteration 1: not achieved: exit code 1', 'user: later',
  ])
  answer({})
  const events = await end()
  const heard = events.flatMap((one) => (one.kind === 'model_turn' ? [one.payload.heard] : []))
  assert.equal(heard[0], undefined)
  assert.equal(heard[1]?.[0], sent.message_id)
  assert.deepEqual([heard[1]?.length, heard[2]?.length], [2, 1])
  const message = events.find(({ kind }) => kind === 'user_message')
  assert.deepEqual(message?.payload, {
    message_id: sent.message_id, text: 'first', deliver: 'next_turn', by: null,
  })
})

test('a waiting message gives the model one more turn in its iteration', async (t) => {
  const { engine, runId, asked, answer, end } = await stepped(t, {}, { max_iterations: 1 })
  await asked()
  await engine.message(runId, { text: 'wait' })
  answer({ text: 'done' })
  assert.deepEqual((await asked()).slice(1), ['done', 'user: wait'])
  answer({})
  await end()
})

test('what comes too late is reported with the end of the run', async (t) => {
  const { engine, runId, asked, answer, end } = await stepped(
    t, { maxTurnsPerIteration: 1 }, { max_iterations: 1 },
  )
  await asked()
  const { message_id } = await engine.message(runId, { text: 'too late' })
  answer({})
  const last = (await end()).at(-1)
  assert.deepEqual(last?.kind === 'run_end' && last.payload.unheard, [message_id])
})

test('an ended run takes no message, and names what does', async (t) => {
  const { engine, runId, asked, answer, end } = await stepped(t, {}, { max_iterations: 1 })
  await asked()
  const key = { idempotencyKey: 'k' }
  const first = await engine.message(runId, { text: 'one' }, key)
  answer({})
  await asked()
  answer({})
  await end()
  await assert.rejects(engine.message(runId, { text: 'two' }), {
    ...REFUSED, problem: 'ended', message: /failed, and the message was not delivered: fork/,
  })
  assert.deepEqual(await engine.message(runId, { text: 'one' }, key), first)
  await assert.rejects(engine.message(runId, { text: 'two' }, key), {
    code: 'ERR_AGENT_IDEMPOTENCY',
  })
  const other = { idempotencyKey: 'other' }
  await assert.rejects(engine.message(runId, { text: 'one' }, other), { problem: 'ended' })
})

test('a key makes a message unique, per run and principal, also for another process', async (t) => {
  const store = new MemoryStore()
  const cwd = scratch(t)
  const options = { store, cwd, gateTimeoutMs: null }
  const { engine, runId, asked, answer } = await stepped(t, options, { hitl_enabled: true })
  const as = (id: string, idempotencyKey: string) => ({
    idempotencyKey, caller: { owner: { id, tenant: null } },
  })
  await asked()
  const first = await engine.message(runId, { text: 'one' }, as('ann', 'k'))
  assert.deepEqual(await engine.message(runId, { text: 'one' }, as('ann', 'k')), first)
  const bobs = await engine.message(runId, { text: 'two' }, as('bob', 'k'))
  assert.notDeepEqual(bobs, first)
  answer(list)
  assert.equal((await asked()).filter((text) => text === 'user: one').length, 1)
  answer({})
  await follow(engine, runId, ({ kind }) => kind === 'human_check_required')
  // As after a restart: the memory of a process is gone.
  const { engine: next } = await openEngine(t, { store: again(store), cwd })
  assert.deepEqual(await next.message(runId, { text: 'one' }, as('ann', 'k')), first)
  const reused = { code: 'ERR_AGENT_IDEMPOTENCY' }
  for (const message of [{ text: 'x' }, { text: 'one', deliver: 'next_iteration' }])
    await assert.rejects(next.message(runId, message, as('ann', 'k')), reused)
  await next.abort(runId)
})

test('messages wait while a run is pending or at a gate', async (t) => {
  const answers: string[][] = []
  const providers = [
    testProvider(({ messages }) => {
      answers.push(textsOf(messages))
      return {}
    }),
  ]
  const { engine } = await openEngine(t, { providers, maxConcurrentRuns: 1 })
  const goal = { goal: 'shell: false', hitl_enabled: true, max_iterations: 2 }
  const { details } = await engine.create(goal)
  const { run_id } = details
  await engine.message(run_id, { text: 'early' })
  await follow(engine, run_id, ({ kind }) => kind === 'human_check_required')
  assert.equal(answers[0]?.at(-1), 'user: early')
  await engine.message(run_id, { text: 'at the gate' })
  await nextTurn()
  assert.equal((await engine.get(run_id)).status, 'awaiting_human')
  await engine.resume(run_id, { decision: 'approve', feedback: 'go on' })
  await follow(engine, run_id, ({ kind, iteration }) => kind === 'model_turn' && iteration === 2)
  assert.deepEqual(answers[1]?.slice(-2), [
    'A human reviewed your work and says:', 'user: at the gate',
  ])
  await engine.abort(run_id)
  assertInvariants(await follow(engine, run_id))
})

test('a message must be text of at most 32 KiB, without secrets; 100 may wait', async (t) => {
  const { engine, runId, asked, answer, end } = await stepped(
    t, { secrets: ['hunter22'] }, { max_iterations: 1 },
  )
  await asked()
  const invalid = { code: 'ERR_AGENT_INVALID_REQUEST' }
  for (const [message, reason] of [
    [{}, /text/],
    [{ text: ' \n' }, /must not be blank/],
    [{ text: 'x', deliver: 'now' }, /deliver/],
    [{ text: 'x', by: 'me' }, /by/],
    [{ text: 'ä'.repeat(16_385) }, /at most 32768 bytes/],
    [{ text: 'the password is hunter22' }, /contains a key or password/],
  ] as const)
    await assert.rejects(engine.message(runId, message), { ...invalid, message: reason })
  await assert.rejects(
    engine.message(runId, { text: 'x' }, { idempotencyKey: 'hunter22' }), invalid,
  )
  await engine.message(runId, { text: 'ä'.repeat(16_384) })
  for (let i = 1; i < 100; i++) await engine.message(runId, { text: `${i}` })
  const full = { ...REFUSED, problem: 'too_many_messages' }
  await assert.rejects(engine.message(runId, { text: 'one more' }), full)
  answer({})
  assert.equal((await asked()).filter((text) => text.startsWith('user: ')).length, 100)
  answer(list)
  await asked()
  await engine.message(runId, { text: 'room again' })
  answer({})
  await asked()
  answer({})
  await end()
})

test('messages of which only some fit into the context are heard over several turns', async (t) => {
  const seen: number[] = []
  const provider = testProvider(({ messages }) => {
    seen.push(messages.filter(({ role }) => role === 'user').length)
    return {}
  })
  const model = provider.create('m')
  const { engine } = await openEngine(t, {
    providers: [{ ...provider, create: () => ({ ...model, contextWindow: 60_000 }) }],
  })
  const { details } = await engine.create({ goal: 'shell: false', max_iterations: 1 })
  const { run_id } = details
  for (let i = 0; i < 5; i++) await engine.message(run_id, { text: `${i}`.repeat(30_000) })
  const events = await follow(engine, run_id)
  assertInvariants(events)
  const heard = events.flatMap((event) =>
    event.kind === 'model_turn' ? [event.payload.heard?.length ?? 0] : [],
  )
  assert.deepEqual(heard, [2, 2, 1])
  assert.equal(seen.length, 3)
})

test('a model that repeats itself goes on when it is told something', async (t) => {
  let calls = 0
  const providers = [
    testProvider(async ({ messages }) => {
      calls += 1
      if (calls === 4) await engine.message(runId, { text: 'do something else' })
      return textsOf(messages).includes('user: do something else') ? {} : list
    }),
  ]
  const { engine } = await openEngine(t, { providers })
  const { details } = await engine.create({ goal: 'shell: false', max_iterations: 1 })
  const runId = details.run_id
  const events = await follow(engine, runId)
  assertInvariants(events)
  assert.equal(calls, 5)
  assert.equal((await engine.get(runId)).end_reason, 'max_iterations')
})

test('a message that the store refuses is not accepted, and is not heard twice', async (t) => {
  const store = new FaultyStore()
  const { engine, runId, asked, answer, end } = await stepped(t, { store }, { max_iterations: 1 })
  await asked()
  const outage = { code: 'ERR_AGENT_STORE_UNAVAILABLE' }
  store.refuses = () => true
  await assert.rejects(engine.message(runId, { text: 'one' }), outage)
  // Known to be unavailable: this one is never stored.
  await assert.rejects(engine.message(runId, { text: 'never' }), outage)
  await assert.rejects(engine.message(runId, { text: 'one' }), outage)
  store.refuses = () => false
  const { message_id } = await engine.message(runId, { text: 'one' })
  const another = await engine.message(runId, { text: 'one' })
  assert.notEqual(another.message_id, message_id)
  answer({})
  assert.deepEqual((await asked()).slice(2), ['user: one', 'user: one'])
  answer({})
  const events = await end()
  const ids = events.flatMap((one) => (one.kind === 'user_message' ? [one.payload.message_id] : []))
  assert.deepEqual(ids, [message_id, another.message_id])
})

test('a message beside an abort, an answer and the end of a run is stored or refused', async (t) => {
  for (const what of ['abort', 'approve', 'end'] as const) {
    const { engine, runId, asked, answer, end } = await stepped(
      t, {}, { hitl_enabled: what === 'approve', max_iterations: 1 },
    )
    await asked()
    if (what === 'approve') {
      answer({})
      await follow(engine, runId, ({ kind }) => kind === 'human_check_required').catch(() => [])
    }
    const other =
      what === 'abort'
        ? engine.abort(runId)
        : what === 'approve'
          ? engine.resume(runId, { decision: 'abort' }).catch(() => undefined)
          : Promise.resolve(answer({}))
    const sent = Array.from({ length: 5 }, (_, i) =>
      engine.message(runId, { text: `${i}` }).then(
        ({ message_id }) => message_id,
        (error: { problem?: string }) => assert.equal(error.problem, 'ended'),
      ),
    )
    await other
    if (what === 'end') {
      await asked()
      answer({})
    }
    const accepted = (await Promise.all(sent)).filter((id) => id !== undefined)
    const events = await end()
    const stored = events.flatMap((one) =>
      one.kind === 'user_message' ? [one.payload.message_id] : [],
    )
    assert.deepEqual(stored, accepted, what)
  }
})

/** A handle on what a store has, without what a process knows of it. */
function again(store: MemoryStore): MemoryStore {
  return new Proxy(store, {
    get(target, name) {
      if (name === 'open' || name === 'close') return () => Promise.resolve()
      const value = Reflect.get(target, name) as unknown
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
