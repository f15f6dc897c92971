/** Engines that share one database, like processes on several machines. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import {
  PostgresStore,
  RunEngine,
  type AgentEvent,
  type EngineOptions,
  type PostgresStoreOptions,
} from 'runwright/agent'
import { follow, scratch, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { assertPlacesOfTenants } from '../../helpers/queue-places.js'
import { noPostgres, openDatabase } from './postgres.js'

/** Longer than any pause of a machine: no process loses its lease here. */
const LEASE_MS = 600_000

const { newSchema, pool } = await openDatabase()

describe('engines that share a PostgresStore', { skip: noPostgres }, () => {
  test('a run is driven by one process, and every process sees the same events', async (t) => {
    const { engines, cwd } = await cluster(t, 3)
    const lists = await Promise.all(
      Array.from({ length: 6 }, async (_, i) => {
        const folder = join(cwd, String(i))
        mkdirSync(folder)
        const { details } = await engines[i % 3]!.create({
          goal: 'shell: false',
          cwd: folder,
          max_iterations: 3,
        })
        return await Promise.all(engines.map((engine) => follow(engine, details.run_id)))
      }),
    )
    for (const [first, ...others] of lists) {
      assertInvariants(first!)
      for (const other of others) assert.deepEqual(other, first)
      assert.equal(first!.filter(({ kind }) => kind === 'run_started').length, 1)
      assert.equal(first!.at(-1)?.kind, 'run_end')
    }
  })

  test('late, reconnecting and finished subscribers see each event once', async (t) => {
    let open: () => void = () => undefined
    const gate = new Promise<void>((resolve) => (open = resolve))
    const { engines } = await cluster(t, 2, { answer: async (n) => (n === 2 ? gate : undefined) })
    const { details } = await engines[0]!.create({ goal: 'shell: false', max_iterations: 4 })
    const early: AgentEvent[] = []
    for (const engine of engines) {
      const seen = await follow(
        engine,
        details.run_id,
        ({ kind, iteration }) => kind === 'iteration_complete' && iteration === 2,
      )
      early.push(...(engine === engines[0] ? seen : []))
    }
    const rest = engines.map(async (engine) => {
      const events: AgentEvent[] = []
      const after = early.at(-1)!.seq
      for await (const batch of await engine.subscribe(details.run_id, { after })) {
        for (const { json } of batch) events.push(JSON.parse(json) as AgentEvent)
      }
      return events
    })
    open()
    for (const events of await Promise.all(rest)) assertInvariants([...early, ...events])
    for (const engine of engines) assertInvariants(await follow(engine, details.run_id))
  })

  test('a gate can be answered in any process, and repeated answers count once', async (t) => {
    const { engines } = await cluster(t, 2)
    const [one, two] = engines as [RunEngine, RunEngine]
    const { details } = await one.create({
      goal: 'shell: false',
      max_iterations: 3,
      hitl_enabled: true,
    })
    for (let round = 1; round <= 2; round++) {
      await follow(
        two,
        details.run_id,
        ({ kind, iteration }) => kind === 'human_check_required' && iteration === round,
      )
      const gate_id = await gateId(one, details.run_id)
      const answer = { decision: 'approve', gate_id } as const
      // Repeating the same answer is not an error.
      const answers = await Promise.all([
        one.resume(details.run_id, answer),
        two.resume(details.run_id, answer),
      ])
      assert.deepEqual(
        answers.map((answered) => answered.gate_id),
        [gate_id, gate_id],
      )
    }
    const events = await follow(two, details.run_id)
    assertInvariants(events)
    assert.equal(events.filter(({ kind }) => kind === 'human_check_response').length, 2)
    assert.equal(events.filter(({ kind }) => kind === 'run_recovered').length, 0)
  })

  test('of an approval and an abort in two processes, one is refused', async (t) => {
    const { engines } = await cluster(t, 2)
    const [one, two] = engines as [RunEngine, RunEngine]
    for (let round = 0; round < 5; round++) {
      const { details } = await one.create({
        goal: 'shell: false',
        max_iterations: 2,
        hitl_enabled: true,
      })
      await follow(two, details.run_id, ({ kind }) => kind === 'human_check_required')
      const gate_id = await gateId(one, details.run_id)
      const answers = await Promise.allSettled([
        one.resume(details.run_id, { decision: 'approve', gate_id }),
        two.resume(details.run_id, { decision: 'abort', gate_id }),
      ])
      assert.deepEqual(answers.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
      const refused = answers.find((answer) => answer.status === 'rejected')
      assert.equal((refused?.reason as { code: string }).code, 'ERR_AGENT_RUN_STATE')
      const events = await follow(one, details.run_id)
      assertInvariants(events)
      const responses = events.filter(({ kind }) => kind === 'human_check_response')
      assert.equal(responses.length, 1)
    }
  })

  test('a running and a waiting run can be aborted from another process', async (t) => {
    const { engines, cwd } = await cluster(t, 2, {
      answer: (_, signal) => rejectOnAbort(signal),
      engine: { maxConcurrentRuns: 1 },
      store: { maxRunning: 1 },
    })
    const [one, two] = engines as [RunEngine, RunEngine]
    const other = join(cwd, 'other')
    mkdirSync(other)
    const working = (await one.create({ goal: 'shell: false' })).details.run_id
    await follow(two, working, ({ kind }) => kind === 'step_start')
    const waiting = (await one.create({ goal: 'shell: false', cwd: other })).details.run_id
    for (const engine of engines) {
      const runId = engine === one ? waiting : working
      assert.equal((await engine.abort(runId)).already, false)
      const events = await follow(engine, runId)
      assertInvariants(events)
      assert.equal((await one.get(runId)).end_reason, 'cancelled')
      assert.equal((await engine.abort(runId)).already, true)
    }
  })

  test('a gate without an answer is timed out by some process', async (t) => {
    const { engines } = await cluster(t, 2, { engine: { gateTimeoutMs: 50 } })
    const { details } = await engines[0]!.create({ goal: 'shell: false', hitl_enabled: true })
    const events = await follow(engines[1]!, details.run_id)
    assertInvariants(events)
    assert.equal((await engines[0]!.get(details.run_id)).end_reason, 'gate_timeout')
    assert.equal(events.filter(({ kind }) => kind === 'human_check_response').length, 0)
  })

  test('runs of one folder are driven one at a time, in order of creation', async (t) => {
    let working = 0
    let most = 0
    const order: string[] = []
    const { engines } = await cluster(t, 3, {
      answer: async () => {
        working += 1
        most = Math.max(most, working)
        await new Promise((resolve) => setImmediate(resolve))
        working -= 1
      },
    })
    const runs: string[] = []
    for (let i = 0; i < 9; i++) {
      runs.push(
        (await engines[i % 3]!.create({ goal: 'shell: false', max_iterations: 1 })).details.run_id,
      )
    }
    const started = await Promise.all(
      runs.map(async (runId, i) =>
        (await follow(engines[i % 3]!, runId)).find(({ kind }) => kind === 'run_started'),
      ),
    )
    order.push(...started.toSorted((a, b) => a!.ts - b!.ts).map((event) => event!.run_id))
    assert.deepEqual(order, runs)
    assert.equal(most, 1)
  })

  test('maxRunning bounds the runs of all processes together', async (t) => {
    let working = 0
    let most = 0
    let meet: () => void = () => undefined
    const met = new Promise<void>((resolve) => (meet = resolve))
    const { engines, cwd } = await cluster(t, 3, {
      store: { maxRunning: 2 },
      answer: async () => {
        working += 1
        most = Math.max(most, working)
        if (working === 2) meet()
        await met // two are driven at the same time
        for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
        working -= 1
      },
    })
    const runs = await Promise.all(
      Array.from({ length: 9 }, async (_, i) => {
        const folder = join(cwd, String(i))
        mkdirSync(folder)
        return (
          await engines[i % 3]!.create({ goal: 'shell: false', cwd: folder, max_iterations: 2 })
        ).details.run_id
      }),
    )
    for (const runId of runs) assertInvariants(await follow(engines[0]!, runId))
    assert.equal(most, 2)
  })

  test('a full queue, a busy folder and a used key are detected across processes', async (t) => {
    const { engines, cwd } = await cluster(t, 2, {
      answer: (_, signal) => rejectOnAbort(signal),
      engine: { maxQueuedRuns: 1, cwdPolicy: 'reject' },
      store: { maxRunning: 1 },
    })
    const [one, two] = engines as [RunEngine, RunEngine]
    const folders = ['a', 'b', 'c'].map((name) => join(cwd, name))
    for (const folder of folders) mkdirSync(folder)
    const request = { goal: 'shell: false', cwd: folders[0]! }
    const key = { idempotencyKey: 'k' }
    const both = await Promise.all([one.create(request, key), two.create(request, key)])
    assert.equal(both[0].details.run_id, both[1].details.run_id)
    assert.deepEqual(both.map(({ created }) => created).sort(), [false, true])
    const runId = both[0].details.run_id
    await assert.rejects(two.create({ ...request, max_iterations: 7 }, key), {
      code: 'ERR_AGENT_IDEMPOTENCY',
    })
    await assert.rejects(two.create(request), { code: 'ERR_AGENT_CWD_BUSY' })
    await follow(two, runId, ({ kind }) => kind === 'run_started')
    await two.create({ ...request, cwd: folders[1]! })
    await assert.rejects(one.create({ ...request, cwd: folders[2]! }), {
      code: 'ERR_AGENT_QUEUE_FULL',
    })
  })

  test('a tenant gets as many places in the queue of all processes as it leaves free', async (t) => {
    const { engines, cwd } = await cluster(t, 2, {
      answer: (_, signal) => rejectOnAbort(signal),
      engine: { maxQueuedRuns: 4, cwdPolicy: 'allow' },
      store: { maxRunning: 1 },
    })
    await assertPlacesOfTenants(engines, cwd)
  })

  test('a run is only driven by a process that has its labels', async (t) => {
    const drivers: string[] = []
    const place = (name: string) => ({
      engine: { providers: [testProvider(() => (drivers.push(name), {}))] },
      store: { labels: [name], labelsFor: () => ['b'] },
    })
    const { engines } = await cluster(t, ['a', 'b', 'c'].map(place))
    for (const engine of engines) {
      const { details } = await engine.create({ goal: 'shell: false', max_iterations: 1 })
      assertInvariants(await follow(engine, details.run_id))
    }
    assert.deepEqual(drivers, ['b', 'b', 'b'])
  })

  test('a closing process hands its runs over without a recovery', async (t) => {
    let requests = 0
    const { engines, schema } = await cluster(t, 1, {
      answer: async (n, signal) => {
        requests += 1
        if (n === 1) await rejectOnAbort(signal)
      },
    })
    const { details } = await engines[0]!.create({ goal: 'shell: false', max_iterations: 3 })
    await follow(
      engines[0]!,
      details.run_id,
      ({ kind, iteration }) => kind === 'step_start' && iteration === 2,
    )
    const { engines: others } = await cluster(t, 1, {}, schema)
    const followed = follow(others[0]!, details.run_id)
    await engines[0]!.close()
    const events = await followed
    assertInvariants(events)
    assert.equal(events.filter(({ kind }) => kind === 'run_suspended').length, 1)
    assert.equal(events.filter(({ kind }) => kind === 'run_recovered').length, 0)
    assert.ok(requests > 0)
  })

  test('without notifications, polling finds gates and answers', async (t) => {
    const { engines } = await cluster(t, 2, { store: { listen: false, pollMs: 20 } })
    const [one, two] = engines as [RunEngine, RunEngine]
    const { details } = await one.create({
      goal: 'shell: false',
      max_iterations: 3,
      hitl_enabled: true,
    })
    await follow(two, details.run_id, ({ kind }) => kind === 'human_check_required')
    await two.resume(details.run_id, { decision: 'abort' })
    assertInvariants(await follow(one, details.run_id))
  })

  test('a run deleted in one process is unknown in another', async (t) => {
    const { engines } = await cluster(t, 2)
    const [one, two] = engines as [RunEngine, RunEngine]
    const { details } = await one.create({ goal: 'shell: false', max_iterations: 1 })
    assertInvariants(await follow(two, details.run_id))
    await two.delete(details.run_id)
    await assert.rejects(one.get(details.run_id), { code: 'ERR_AGENT_UNKNOWN_RUN' })
    assert.deepEqual((await one.list()).runs, [])
  })
})

interface Place {
  readonly engine?: Partial<EngineOptions>
  readonly store?: Partial<PostgresStoreOptions>
  /** Called with the number of the model call in its process. */
  readonly answer?: (n: number, signal: AbortSignal) => Promise<void> | void | undefined
}

async function cluster(
  t: TestContext,
  places: number | readonly Place[],
  all: Place = {},
  schema = newSchema(),
): Promise<{
  readonly engines: readonly RunEngine[]
  readonly cwd: string
  readonly schema: string
}> {
  const cwd = scratch(t)
  const list = typeof places === 'number' ? Array.from({ length: places }, () => all) : places
  const engines: RunEngine[] = []
  for (const place of list) {
    const provider = testProvider(async ({ signal }, n) => {
      await place.answer?.(n, signal)
      return { tokens: [3, 2] }
    })
    const engine = await RunEngine.open({
      store: new PostgresStore({ pool, schema, leaseMs: LEASE_MS, ...place.store }),
      roots: [cwd, '/tmp'],
      sealedChecks: 'off',
      providers: [provider],
      defaultModel: 'test:m',
      ...place.engine,
    })
    engines.push(engine)
    t.after(() => engine.close())
  }
  return { engines, cwd, schema }
}

async function rejectOnAbort(signal: AbortSignal): Promise<never> {
  await once(signal, 'abort')
  throw signal.reason
}

async function gateId(engine: RunEngine, runId: string): Promise<string> {
  return (await engine.get(runId)).gate?.gate_id ?? ''
}
