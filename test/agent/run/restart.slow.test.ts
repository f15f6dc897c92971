import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  StoreError,
  type AgentEvent,
  type EngineOptions,
  type RunEngine,
  type RunPage,
  type RunQuery,
} from 'runwright/agent'
import { nextTurn } from '../../../lib/internal/time.js'
import { untilAborted } from '../../helpers/abort.js'
import { follow, openEngine, scratch, testProvider, type Said } from '../../helpers/engine.js'
import { FaultyStore } from '../../helpers/faulty-store.js'
import { assertInvariants } from '../../helpers/invariants.js'

/** A model that holds every run until the test lets it go, and the order in which runs came. */
class Gatekeeper {
  readonly order: string[] = []
  readonly provider = testProvider(({ run, signal }) => this.#hold(run.run_id, signal))
  readonly #held = new Map<string, () => void>()
  #arrivals: (() => void)[] = []

  #hold(runId: string, signal: AbortSignal): Promise<Said> {
    this.order.push(runId)
    for (const resolve of this.#arrivals.splice(0)) resolve()
    return new Promise((resolve, reject) => {
      this.#held.set(runId, () => resolve({ stop: 'refusal' }))
      untilAborted(signal).catch(reject)
    })
  }

  async arrived(count: number): Promise<void> {
    while (this.order.length < count)
      await new Promise<void>((resolve) => this.#arrivals.push(resolve))
  }

  letGo(runId: string): void {
    this.#held.get(runId)?.()
  }
}

interface World {
  readonly store: FaultyStore
  readonly root: string
  readonly begun: readonly string[]
  readonly pending: readonly string[]
}

/** What a process that drove `begun` runs, with `pending` ones in the queue, leaves behind. */
async function crashed(
  t: TestContext,
  begun: number,
  pending: number,
  folders: 'own' | 'shared' = 'own',
): Promise<World> {
  const root = scratch(t)
  const store = new FaultyStore()
  const keeper = new Gatekeeper()
  const { engine } = await openEngine(t, {
    store,
    cwd: root,
    providers: [keeper.provider],
    maxConcurrentRuns: Math.max(1, begun),
    maxQueuedRuns: 10_000,
    cwdPolicy: folders === 'own' ? 'queue' : 'allow',
  })
  const runIds: string[] = []
  for (let index = 0; index < begun + pending; index++) {
    const cwd = folders === 'own' ? join(root, String(index)) : root
    mkdirSync(cwd, { recursive: true })
    const { details } = await engine.create({ goal: 'shell: false', cwd })
    runIds.push(details.run_id)
  }
  await keeper.arrived(begun)
  const next = new FaultyStore()
  await next.open()
  for (const [index, runId] of runIds.entries())
    await next.append(runId, await store.read(runId, 0, index < begun ? 1_000 : 1))
  store.lose()
  next.tried.length = 0
  return { store: next, root, begun: runIds.slice(0, begun), pending: runIds.slice(begun) }
}

async function restart(
  t: TestContext,
  { store, root }: World,
  options: Partial<EngineOptions> = {},
): Promise<{ readonly engine: RunEngine; readonly keeper: Gatekeeper }> {
  const keeper = new Gatekeeper()
  const { engine } = await openEngine(t, {
    store,
    cwd: root,
    providers: [keeper.provider],
    maxConcurrentRuns: 1,
    maxQueuedRuns: 10_000,
    ...options,
  })
  return { engine, keeper }
}

test('runs that had begun come first, by age, then the queue, then new runs', async (t) => {
  const world = await crashed(t, 3, 3)
  const { engine, keeper } = await restart(t, world)
  const { details } = await engine.create({ goal: 'shell: false' })
  const expected = [...world.begun, ...world.pending, details.run_id]
  for (const [index, runId] of expected.entries()) {
    await keeper.arrived(index + 1)
    const followed = follow(engine, runId)
    keeper.letGo(runId)
    assertInvariants(await followed)
  }
  assert.deepEqual(keeper.order, expected)
})

test('a run that is created before the others are listed comes behind them', async (t) => {
  const world = await crashed(t, 0, 2)
  let release: () => void = () => undefined
  const held = new Promise<void>((resolve) => (release = resolve))
  const list = world.store.list.bind(world.store)
  world.store.list = async (query) => {
    await held
    return await list(query)
  }
  const { engine, keeper } = await restart(t, world)
  const { details } = await engine.create({ goal: 'shell: false' })
  assert.equal(engine.capacity().queued, 3)
  release()
  const expected = [...world.pending, details.run_id]
  for (const [index, runId] of expected.entries()) {
    await keeper.arrived(index + 1)
    keeper.letGo(runId)
  }
  assert.deepEqual(keeper.order, expected)
})

test('a run that had begun and waits for a slot says so', async (t) => {
  const world = await crashed(t, 2, 1)
  const { engine, keeper } = await restart(t, world)
  const [first = '', second = ''] = world.begun
  const waits = (event: AgentEvent): boolean =>
    event.kind === 'log' && event.payload.message.startsWith('waiting for a slot')
  const events = await follow(engine, second, waits)
  assert.ok(waits(events.at(-1) as AgentEvent))
  await keeper.arrived(1)
  keeper.letGo(first)
  keeper.letGo(second)
  assert.ok(!(await follow(engine, first)).some(waits))
})

test('a start reads no logs, and later only those of runs that get a slot', async (t) => {
  const world = await crashed(t, 0, 500, 'shared')
  const { store, pending } = world
  store.reads.length = 0
  const { engine, keeper } = await restart(t, world, { maxConcurrentRuns: 2, cwdPolicy: 'allow' })
  assert.deepEqual(store.reads, [])
  assert.equal(engine.capacity().queued, 500)
  await keeper.arrived(2)
  assert.deepEqual(new Set(store.reads), new Set(pending.slice(0, 2)))
  assert.equal(engine.capacity().queued, 498)
})

test('runs of one folder do not slow each other down while they wait', async (t) => {
  const world = await crashed(t, 0, 400, 'shared')
  const { engine, keeper } = await restart(t, world, { maxConcurrentRuns: 4 })
  for (const [index, runId] of world.pending.slice(0, 3).entries()) {
    await keeper.arrived(index + 1)
    assert.equal(keeper.order[index], runId)
    const followed = follow(engine, runId)
    keeper.letGo(runId)
    await followed
  }
})

test('a run that is not taken up yet can be followed, and keeps its place', async (t) => {
  const world = await crashed(t, 0, 3)
  const { engine, keeper } = await restart(t, world)
  const [first = '', second = '', third = ''] = world.pending
  const followed = follow(engine, third)
  const closed = await engine.subscribe(third)
  closed.close()
  for (const runId of [first, second]) {
    await keeper.arrived(world.pending.indexOf(runId) + 1)
    keeper.letGo(runId)
  }
  await keeper.arrived(3)
  keeper.letGo(third)
  assertInvariants(await followed)
  assert.deepEqual(keeper.order, world.pending)
})

test('a run that is not taken up yet can be aborted, retried, and not deleted', async (t) => {
  const world = await crashed(t, 0, 4)
  const { engine, keeper } = await restart(t, world)
  await keeper.arrived(1)
  const [first = '', second = '', third = ''] = world.pending
  await assert.rejects(engine.delete(second), { problem: 'live' })
  await assert.rejects(engine.resume(third, { decision: 'approve' }), { problem: 'not_waiting' })
  assert.equal((await engine.retry(second)).parent_run_id, second)
  assert.equal((await engine.abort(second)).already, false)
  assertInvariants(await follow(engine, second))
  assert.equal((await engine.abort(second)).already, true)
  assert.equal(engine.capacity().queued, 3)
  await engine.delete(second)
  keeper.letGo(first)
  await keeper.arrived(2)
  assert.equal(keeper.order[1], third, 'an answer did not move it in the queue')
})

test('with `reject`, the folder of a run that is not taken up yet is busy', async (t) => {
  const world = await crashed(t, 1, 2)
  const { engine } = await restart(t, world, { cwdPolicy: 'reject' })
  mkdirSync(join(world.root, '0', 'below'))
  mkdirSync(join(world.root, 'beside'))
  for (const name of ['0', '1', '2', '.', '0/below']) {
    const cwd = join(world.root, name)
    await assert.rejects(engine.create({ goal: 'shell: false', cwd }), {
      code: 'ERR_AGENT_CWD_BUSY',
    })
  }
  await engine.create({ goal: 'shell: false', cwd: join(world.root, 'beside') })
})

test('a queue that an earlier process filled is full', async (t) => {
  const { engine } = await restart(t, await crashed(t, 0, 3), { maxQueuedRuns: 2 })
  await assert.rejects(engine.create({ goal: 'shell: true' }), { code: 'ERR_AGENT_QUEUE_FULL' })
})

test('a run whose log cannot be read now is taken up when it can', async (t) => {
  const world = await crashed(t, 1, 0)
  let refusals = 2
  const read = world.store.read.bind(world.store)
  world.store.read = async (...page) => {
    if (refusals-- > 0) throw new StoreError('ERR_AGENT_STORE_UNAVAILABLE', 'the disk fails')
    return await read(...page)
  }
  const { keeper } = await restart(t, world)
  await keeper.arrived(1)
  assert.deepEqual(keeper.order, world.begun)
})

test('a quarantined run is never driven, and does not hold its folder', async (t) => {
  const world = await crashed(t, 1, 1)
  const [bad] = world.begun
  const list = world.store.list.bind(world.store)
  world.store.list = async (query: RunQuery): Promise<RunPage> => {
    const { heads, next } = await list(query)
    const marked = heads.map((head) =>
      head.details.run_id === bad ? { ...head, problem: 'damaged' } : head,
    )
    return { heads: marked, next }
  }
  const { keeper } = await restart(t, world)
  await keeper.arrived(1)
  for (let turns = 0; turns < 20; turns++) await nextTurn()
  assert.deepEqual(keeper.order, world.pending)
})

test('an engine closes while the runs of an earlier process are listed', async (t) => {
  const world = await crashed(t, 1, 2)
  let release: () => void = () => undefined
  const held = new Promise<void>((resolve) => (release = resolve))
  const list = world.store.list.bind(world.store)
  world.store.list = async (query) => {
    await held
    return await list(query)
  }
  const { engine, keeper } = await restart(t, world)
  const subscription = await engine.subscribe(world.pending[0] ?? '')
  const closed = engine.close()
  release()
  await closed
  while ((await subscription.next()) !== null);
  assert.equal(subscription.end, 'shutdown')
  assert.deepEqual(keeper.order, [])
  assert.deepEqual(world.store.tried, [])
})

test('a reader that comes while the log of a run is read follows that run', async (t) => {
  const world = await crashed(t, 1, 0)
  const [runId = ''] = world.begun
  const { store } = world
  const read = store.read.bind(store)
  let release: () => void = () => undefined
  const released = new Promise<void>((resolve) => (release = resolve))
  let begin: () => void = () => undefined
  const begun = new Promise<void>((resolve) => (begin = resolve))
  store.read = async (...args) => {
    store.read = read
    begin()
    await released
    return await read(...args)
  }
  const { engine, keeper } = await restart(t, world)
  await begun
  const subscription = await engine.subscribe(runId)
  release()
  await keeper.arrived(1)
  keeper.letGo(runId)
  const events: AgentEvent[] = []
  for await (const batch of subscription) {
    for (const { json } of batch) events.push(JSON.parse(json) as AgentEvent)
  }
  assertInvariants(events)
  assert.equal(events.at(-1)?.kind, 'run_end')
})
