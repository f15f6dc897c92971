import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type {
  AgentEvent,
  EngineOptions,
  Executor,
  RunDetails,
  RunEngine,
  RunRecord,
} from 'runwright/agent'
import { ManualClock } from 'runwright/agent/testing'
import { BACKOFF } from '../../../lib/agent/exhaustion.js'
import { type Clock, nextTurn, systemClock } from '../../../lib/internal/time.js'
import {
  follow, openEngine, payloads, runToEnd, scratch, testProvider, type Said,
} from '../../helpers/engine.js'
import { FaultyStore, FULL } from '../../helpers/faulty-store.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { Random } from '../../helpers/random.js'

const UNAVAILABLE = { code: 'ERR_AGENT_STORE_UNAVAILABLE' }

const bash = (command: string): Said => ({ calls: [{ tool: 'bash', args: { command } }] })

/** A run that has just had one of its appends refused, and is refused ever since. */
async function waiting(
  t: TestContext,
  refusesAt: (records: readonly RunRecord[]) => boolean,
  options: Partial<EngineOptions> = {},
): Promise<{
  readonly engine: RunEngine
  readonly store: FaultyStore
  readonly details: RunDetails
  readonly cwd: string
}> {
  const store = new FaultyStore()
  const said = bash('echo one >> ran; echo out')
  const providers = [testProvider((_, n) => (n === 0 ? said : {}))]
  const { engine, cwd } = await openEngine(t, { store, providers, ...options })
  let isFull = false
  store.refuses = (_, records) => (isFull ||= refusesAt(records))
  const { details } = await engine.create({ goal: 'shell: test -f done', max_iterations: 1 })
  await store.until(() => isFull)
  await nextTurn()
  return { engine, store, details, cwd }
}

const has = (kind: AgentEvent['kind']) => (records: readonly RunRecord[]): boolean =>
  records.some((record) => record.kind === kind)

for (const kind of [
  'run_started',
  'goal_check',
  'step_start',
  'model_turn',
  'tool_started',
  'tool_result',
  'run_end',
] as const) {
  test(`a run whose ${kind} the store refuses waits and goes on, doing nothing twice`, async (t) => {
    const { engine, store, details, cwd } = await waiting(t, has(kind))
    const before = await engine.get(details.run_id)
    assert.equal(before.status, kind === 'run_started' ? 'pending' : 'running')
    await assert.rejects(engine.check(), { ...UNAVAILABLE, message: FULL })
    await assert.rejects(engine.create({ goal: 'shell: true' }), UNAVAILABLE)
    const tried = store.tried.length
    await store.until(() => store.tried.length > tried)
    assert.equal((await engine.get(details.run_id)).last_seq, before.last_seq)
    store.refuses = () => false
    const events = await follow(engine, details.run_id)
    assertInvariants(events)
    const { end_reason } = await engine.get(details.run_id)
    assert.equal(end_reason, 'max_iterations')
    assert.equal(readFileSync(join(cwd, 'ran'), 'utf8'), 'one\n')
    const results = events.filter((event) => event.kind === 'tool_result')
    assert.deepEqual(results.map(({ payload }) => payload.output), ['out\n'])
    await engine.check()
  })
}

test('an abort that the store refuses stops the command that runs', async (t) => {
  const store = new FaultyStore()
  const providers = [testProvider(() => bash('sleep 600'))]
  const { engine } = await openEngine(t, { store, providers })
  const { details } = await engine.create({ goal: 'shell: false' })
  await follow(engine, details.run_id, ({ kind }) => kind === 'tool_started')
  store.refuses = () => true
  await assert.rejects(engine.abort(details.run_id), UNAVAILABLE)
  // The end of the run follows the end of its command.
  await assert.rejects(engine.abort(details.run_id), UNAVAILABLE)
  store.refuses = () => false
  const events = await follow(engine, details.run_id)
  assertInvariants(events)
  const result = events.find((event) => event.kind === 'tool_result')
  assert.equal(result?.payload.exit_code, 130)
  assert.equal((await engine.get(details.run_id)).end_reason, 'cancelled')
})

test('an abort of a run that waits for the store ends it when the store is back', async (t) => {
  const { engine, store, details } = await waiting(t, has('model_turn'))
  await assert.rejects(engine.abort(details.run_id), {
    ...UNAVAILABLE,
    message: `the run was stopped, but that is not stored yet: ${FULL}`,
  })
  await assert.rejects(engine.abort(details.run_id), UNAVAILABLE)
  assert.equal((await engine.get(details.run_id)).status, 'running')
  store.refuses = () => false
  const events = await follow(engine, details.run_id)
  assertInvariants(events)
  assert.equal(events.filter(({ kind }) => kind === 'abort_requested').length, 1)
  const { details: after, already } = await engine.abort(details.run_id)
  assert.deepEqual([after.status, already], ['aborted', true])
})

test('a refused answer was never given: another one may be', async (t) => {
  const store = new FaultyStore()
  const { engine } = await openEngine(t, { store, providers: [testProvider(() => ({}))] })
  const { details } = await engine.create({ goal: 'shell: false', hitl_enabled: true })
  await follow(engine, details.run_id, ({ kind }) => kind === 'human_check_required')
  store.refuses = () => true
  await assert.rejects(engine.resume(details.run_id, { decision: 'approve' }), UNAVAILABLE)
  await assert.rejects(engine.resume(details.run_id, { decision: 'abort' }), UNAVAILABLE)
  store.refuses = () => false
  const { last_seq, status } = await engine.get(details.run_id)
  assert.equal(status, 'awaiting_human')
  assert.equal((await engine.resume(details.run_id, { decision: 'abort' })).status, 'aborted')
  const events = await follow(engine, details.run_id)
  assertInvariants(events)
  assert.equal(events[last_seq]?.kind, 'human_check_response')
})

test('an engine closes while its store is full; the next one continues the run', async (t) => {
  // No time-out ends the wait of the run.
  const clock = new ManualClock()
  const { engine, store, details, cwd } = await waiting(t, has('tool_result'), { clock })
  const subscription = await engine.subscribe(details.run_id, { after: -1 })
  await engine.close()
  assert.equal(await subscription.next(), null)
  assert.equal(subscription.end, 'shutdown')
  store.refuses = () => false
  const next = await openEngine(t, { store, cwd, providers: [testProvider(() => ({}))] })
  const events = await follow(next.engine, details.run_id)
  assertInvariants(events)
  assert.equal(readFileSync(join(cwd, 'ran'), 'utf8'), 'one\n', 'the command did not run again')
  const result = events.find((event) => event.kind === 'tool_result')
  assert.match(result?.payload.output ?? '', /^Outcome unknown/)
})

test('an engine closes when its store does not answer at all', async (t) => {
  const clock = new ManualClock()
  const store = new FaultyStore()
  const { engine } = await openEngine(t, { store, clock, providers: [testProvider(() => ({}))] })
  let hangs = false
  const append = store.append.bind(store)
  store.append = (runId, records) => {
    hangs ||= has('model_turn')(records)
    return hangs ? new Promise(() => undefined) : append(runId, records)
  }
  const { details } = await engine.create({ goal: 'shell: false' })
  while (!hangs) await nextTurn()
  const subscription = await engine.subscribe(details.run_id, { after: -1 })
  const closed = engine.close()
  let isClosed = false
  void closed.then(() => (isClosed = true))
  while (!isClosed) {
    clock.advance(1_000)
    await nextTurn()
  }
  assert.equal(await subscription.next(), null)
  assert.equal(subscription.end, 'shutdown')
})

test('a time budget does not run while the store is full', async (t) => {
  const clock = new ManualClock()
  const store = new FaultyStore()
  const providers = [testProvider((_, n) => (n === 0 ? bash('echo hi') : {}))]
  const { engine } = await openEngine(t, { store, clock, providers })
  let isFull = false
  store.refuses = (_, records) => (isFull ||= has('model_turn')(records))
  const request = { goal: 'shell: false', max_iterations: 1, max_seconds: 60 }
  const { details } = await engine.create(request)
  await store.until(() => isFull)
  await nextTurn()
  for (let minutes = 0; minutes < 10; minutes++) {
    await clock.whenPending()
    clock.advance(60_000)
    await nextTurn()
  }
  store.refuses = () => false
  const subscription = await engine.subscribe(details.run_id, { after: -1 })
  const back = subscription.next()
  clock.advance(BACKOFF.maxMs)
  await back
  await follow(engine, details.run_id)
  assert.equal((await engine.get(details.run_id)).end_reason, 'max_iterations')
})

test('a command that waits for the store to begin does not time out meanwhile', async (t) => {
  const clock = new ManualClock()
  const store = new FaultyStore()
  const providers = [testProvider((_, n) => (n === 0 ? bash('echo out') : {}))]
  const options = { store, clock, providers, toolTimeoutMs: 60_000 }
  const { engine } = await openEngine(t, options)
  let isFull = false
  store.refuses = (_, records) => (isFull ||= has('tool_started')(records))
  const { details } = await engine.create({ goal: 'shell: false', max_iterations: 1 })
  await store.until(() => isFull)
  await nextTurn()
  for (let minutes = 0; minutes < 10; minutes++) {
    await clock.whenPending()
    clock.advance(60_000)
    await nextTurn()
  }
  store.refuses = () => false
  clock.advance(BACKOFF.maxMs)
  const events = await follow(engine, details.run_id)
  const result = events.find((event) => event.kind === 'tool_result')
  assert.deepEqual([result?.payload.exit_code, result?.payload.output], [0, 'out\n'])
})

test('a goal check that finds no room for its files waits, and says so once', async (t) => {
  let refusals = 3
  const executor: Executor = {
    name: 'crowded',
    run: async () => {
      if (refusals-- > 0) throw Object.assign(new Error('no space left'), { code: 'ENOSPC' })
      return { exitCode: 0, output: '', truncated: false, timedOut: false, durationMs: 1 }
    },
    killMarked: async () => 0,
  }
  const { engine } = await openEngine(t, { clock: hasty, executor })
  const { events, details } = await runToEnd(engine, { goal: 'shell: true' })
  assertInvariants(events)
  assert.deepEqual(payloads(events, 'log').map(({ message }) => message), [
    'waiting for the machine: the goal could not be checked: no space left (ENOSPC)',
    'the machine works again',
  ])
  assert.equal(details.status, 'achieved')
})

/** A log without what depends on time and chance. */
function withoutTimes(events: readonly AgentEvent[]): unknown[] {
  const varying = new Set(['ts', 'run_id', 'duration_ms', 'gate_id', 'pgid', 'cwd'])
  const text = JSON.stringify(events, (key, value: unknown) => (varying.has(key) ? 0 : value))
  return JSON.parse(text.replaceAll(/\d+(\.\d+)? ?m?s\b/g, '0 s')) as unknown[]
}

const ROUNDS = Number(process.env['RUNWRIGHT_RANDOM_RUNS'] ?? 6)

test(`${ROUNDS} runs over a store that fails at random leave the log of one that never does`, async (t) => {
  const seed = Number(process.env['RUNWRIGHT_SEED'] ?? Date.now() % 1_000_000)
  t.diagnostic(`seed ${seed}`)
  for (let round = 0; round < ROUNDS; round++) {
    const random = new Random(seed * 1000 + round)
    const turns = Array.from({ length: random.integer(2, 7) }, (_, n): Said => ({
      text: `turn ${n}`,
      tokens: [random.integer(0, 50), random.integer(0, 9)],
      calls: Array.from({ length: random.integer(0, 3) }, (_, c) => ({
        call_id: `c${n}_${c}`,
        ...random.pick([
          { tool: 'list_files', args: {} },
          { tool: 'write_file', args: { path: 'a', content: `${n}` } },
          { tool: 'bash', args: { command: `echo c${n}_${c} >> ran; wc -l < ran` } },
        ]),
      })),
    }))
    const gates = random.chance(0.4)
    const perfect = await play(t, turns, gates, null)
    const faulty = await play(t, turns, gates, random)
    try {
      assert.deepEqual(withoutTimes(faulty.events), withoutTimes(perfect.events))
      assert.deepEqual(faulty.ran, perfect.ran)
      assert.equal(new Set(faulty.ran).size, faulty.ran.length, 'no command ran twice')
    } catch (error) {
      throw new Error(`seed ${seed}, round ${round}`, { cause: error })
    }
  }
})

/** Shortens the pauses between attempts to reach the store, and nothing else. */
const hasty: Clock = {
  now: () => systemClock.now(),
  setTimeout: (callback, ms) => systemClock.setTimeout(callback, ms > BACKOFF.maxMs ? ms : 0),
}

/** Plays a script of turns; with `random`, over a store with outages. */
async function play(
  t: TestContext,
  turns: readonly Said[],
  gates: boolean,
  random: Random | null,
): Promise<{ readonly events: AgentEvent[]; readonly ran: readonly string[] }> {
  const store = new FaultyStore()
  const cwd = scratch(t)
  const { engine } = await openEngine(t, {
    store,
    cwd,
    providers: [testProvider((_, n) => turns[n] ?? {})],
    maxTurnsPerIteration: 3,
    detectStuck: false,
    clock: hasty,
  })
  let outage = 0
  store.refuses = (_, [first]) => {
    if (random === null || first?.kind === 'run_created') return false
    if (outage === 0 && random.chance(0.2)) outage = random.integer(1, 3)
    return outage > 0 && outage-- > 0
  }
  const { details } = await engine.create({
    goal: 'shell: false',
    max_iterations: 3,
    hitl_enabled: gates,
  })
  const events: AgentEvent[] = []
  for await (const batch of await engine.subscribe(details.run_id)) {
    for (const { json } of batch) events.push(JSON.parse(json) as AgentEvent)
    while (events.at(-1)?.kind === 'human_check_required' && !(await approved(engine, details)));
  }
  const ran = existsSync(join(cwd, 'ran')) ? readFileSync(join(cwd, 'ran'), 'utf8').split('\n') : []
  await engine.close()
  return { events, ran }
}

/** Approves the open gate; false when the store refused that. */
async function approved(engine: RunEngine, { run_id }: RunDetails): Promise<boolean> {
  try {
    await engine.resume(run_id, { decision: 'approve' })
    return true
  } catch (error) {
    if ((error as { code?: string }).code !== UNAVAILABLE.code) throw error
    return false
  }
}
