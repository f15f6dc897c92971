/** Messages to runs that another process holds, holds no more, or has never held. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { PostgresStore, RunEngine, type AgentEvent, type JsonObject } from 'runwright/agent'
import { follow, scratch, testProvider, type Said } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { noPostgres, openDatabase } from './postgres.js'
import { wrap } from './stores.js'
import { Workers } from './workers.js'

const LEASE_MS = 800

const { connection, newSchema, pool } = await openDatabase()

const heardIn = (events: readonly AgentEvent[]): string[] =>
  events.flatMap((event) => (event.kind === 'model_turn' ? (event.payload.heard ?? []) : []))
const unheardIn = (events: readonly AgentEvent[]): readonly string[] => {
  const end = events.at(-1)
  return end?.kind === 'run_end' ? (end.payload.unheard ?? []) : []
}

describe('messages in a PostgresStore', { skip: noPostgres }, () => {
  test('a message reaches a run that another process drives, once, and by its key', async (t) => {
    const schema = newSchema()
    const cwd = scratch(t)
    let open: () => void = () => undefined
    const first = new Promise<void>((resolve) => (open = resolve))
    let calls = 0
    await engineOf(t, schema, cwd, 600_000, async () => {
      if ((calls += 1) === 1) await first
      return {}
    })
    const [other, deaf] = [await watcher(t, schema, cwd), await watcher(t, schema, cwd, false)]
    const runId = await create(other!, cwd, { max_iterations: 2 })
    await follow(other!, runId, ({ kind }) => kind === 'step_start')
    const sent = []
    for (const engine of [other!, deaf!, other!])
      sent.push((await engine.message(runId, { text: 'same' })).message_id)
    const key = { idempotencyKey: 'k' }
    const keyed = await Promise.all(
      [other!, deaf!].map((engine) => engine.message(runId, { text: 'keyed' }, key)),
    )
    assert.equal(keyed[0]?.message_id, keyed[1]?.message_id)
    const reused = { code: 'ERR_AGENT_IDEMPOTENCY' }
    await assert.rejects(deaf!.message(runId, { text: 'other' }, key), reused)
    for (let i = sent.length + 1; i < 100; i++) await other!.message(runId, { text: `${i}` })
    const full = { problem: 'too_many_messages' }
    await assert.rejects(other!.message(runId, { text: 'one more' }), full)
    open()
    const events = await follow(deaf!, runId)
    assertInvariants(events)
    assert.deepEqual(heardIn(events).slice(0, 4), [...sent, keyed[0]?.message_id])
    assert.equal(heardIn(events).length, 100)
    assert.deepEqual(await deaf!.message(runId, { text: 'keyed' }, key), keyed[0])
    await assert.rejects(deaf!.message(runId, { text: 'late' }), { problem: 'ended' })
    const { rows } = await pool.query(`SELECT * FROM "${schema}".messages`)
    assert.deepEqual(rows, [])
  })

  test('may_change is set by any process, of a run that another one drives or nobody does', async (t) => {
    const schema = newSchema()
    const cwd = scratch(t)
    let open: () => void = () => undefined
    const first = new Promise<void>((resolve) => (open = resolve))
    await engineOf(t, schema, cwd, 600_000, async () => await first.then(() => ({})))
    const [one, two] = [await watcher(t, schema, cwd), await watcher(t, schema, cwd)]
    const runId = await create(one, cwd, { hitl_enabled: true, max_iterations: 2 })
    await follow(one, runId, ({ kind }) => kind === 'step_start')
    const update = { may_change: ['test/**'] }
    const key = { idempotencyKey: 'k' }
    for (const engine of [one, two])
      assert.deepEqual((await engine.update(runId, update, key)).may_change, update.may_change)
    open()
    await follow(one, runId, ({ kind }) => kind === 'human_check_required')
    // At a gate, no process drives it.
    assert.equal((await two.update(runId, { may_change: [] })).may_change, null)
    assert.equal((await one.get(runId)).may_change, null)
    await one.abort(runId)
    const events = await follow(two, runId)
    assertInvariants(events)
    const lists = events.flatMap((event) =>
      event.kind === 'user_message' ? [event.payload.may_change] : [],
    )
    assert.deepEqual(lists, [['test/**'], []])
  })

  test('messages to runs that nobody holds are appended by the process that gets them', async (t) => {
    const schema = newSchema()
    const cwd = scratch(t)
    const one = await watcher(t, schema, cwd)
    const two = await watcher(t, schema, cwd)
    const runId = await create(one, cwd, { hitl_enabled: true, max_iterations: 3 })
    const early = await one.message(runId, { text: 'early' })
    assert.equal((await two.get(runId)).last_seq, 2)
    await engineOf(t, schema, cwd, 600_000, () => ({}))
    await follow(one, runId, ({ kind }) => kind === 'human_check_required')
    const ids = await Promise.all(
      Array.from({ length: 8 }, (_, i) => (i % 2 ? one : two).message(runId, { text: `${i}` })),
    )
    assert.equal((await one.get(runId)).status, 'awaiting_human')
    await two.resume(runId, { decision: 'approve' })
    await follow(one, runId, ({ kind, iteration }) => kind === 'model_turn' && iteration === 2)
    await one.abort(runId)
    const events = await follow(two, runId)
    assertInvariants(events)
    const heard = heardIn(events)
    assert.equal(heard[0], early.message_id)
    assert.deepEqual(heard.slice(1).sort(), ids.map(({ message_id }) => message_id).sort())
  })

  test('messages survive the death and the pause of the process that holds the run', async (t) => {
    const world = await World.open(t)
    const runId = await world.create({ max_iterations: 400 })
    const [first] = await world.workers.start(1)
    await world.until(runId, 2)
    const sent: string[] = []
    const send = async (): Promise<void> => {
      const { message_id } = await world.engine.message(runId, { text: `${sent.length}` })
      sent.push(message_id)
    }
    await send()
    // Between durable and heard, or before it was taken at all.
    const beside = send()
    await world.workers.kill(first!)
    await beside
    await send() // kept for the next holder
    const [second] = await world.workers.start(1)
    await send()
    await world.untilHeard(runId, sent)
    second!.kill('SIGSTOP')
    await send()
    const [third] = await world.workers.start(1)
    await send()
    second!.kill('SIGCONT')
    await world.untilHeard(runId, sent)
    await world.engine.abort(runId)
    const events = await follow(world.engine, runId)
    assertInvariants(events)
    assert.deepEqual([...heardIn(events), ...unheardIn(events)], sent)
    const calls = readFileSync(world.marks, 'utf8').split('\n').filter(Boolean)
    assert.equal(new Set(calls).size, calls.length, 'no unsafe call ran twice')
    await world.workers.kill(third!)
  })

  test('each message to runs whose processes are killed is heard, or reported as unheard', async (t) => {
    const world = await World.open(t)
    await world.workers.start(2)
    const runs = await Promise.all(
      Array.from({ length: 3 }, (_, i) => world.create({ max_iterations: 5 + 4 * i })),
    )
    const accepted = await Promise.all(
      runs.map(async (runId) => {
        const ids: string[] = []
        for (let i = 0; ; i++) {
          try {
            ids.push((await world.engine.message(runId, { text: `${i}` })).message_id)
          } catch (error) {
            const { problem } = error as { problem?: string }
            if (problem === 'ended') return ids
            if (problem !== 'too_many_messages') throw error
          }
          if (i % 10 === 9 && runId === runs[0]) await world.workers.replaceOne()
        }
      }),
    )
    for (const [i, runId] of runs.entries()) {
      const events = await follow(world.engine, runId)
      assertInvariants(events)
      assert.deepEqual([...heardIn(events), ...unheardIn(events)], accepted[i])
    }
  })

  test('what many messages at once cost grows with their number, and no faster', async (t) => {
    const [schema, cwd, count] = [newSchema(), scratch(t), 60]
    const seen: string[] = []
    const noting = wrap(pool, (client, query) => {
      seen.push(query.text)
      return client.query(query)
    })
    const holder = await RunEngine.open({
      store: new PostgresStore({ pool: noting, schema, labels: ['worker'], pollMs: 50 }),
      roots: [cwd],
      sealedChecks: 'off',
      defaultModel: 'test:m',
      providers: [testProvider(() => new Promise<never>(() => undefined))],
    })
    t.after(() => holder.close())
    // A sender waits for the length of a lease: here for as long as a slow machine needs.
    const other = await engineOf(t, schema, cwd, 600_000, () => ({}), [])
    const runId = await create(other, cwd)
    await follow(other, runId, ({ kind }) => kind === 'goal_check')
    await Promise.all(
      Array.from({ length: count }, (_, i) => other.message(runId, { text: `${i}` })),
    )
    const answers = seen.filter((text) => text.includes('SET answer')).length
    const looks = seen.filter((text) => text.includes('SET taken')).length
    assert.equal(answers, count)
    assert.ok(looks <= 2 * count, `${looks} looks`)
  })

  test('a message that no holder takes is refused, and never heard', async (t) => {
    const schema = newSchema()
    const cwd = scratch(t)
    const store = new PostgresStore({ pool, schema, leaseMs: LEASE_MS, labels: ['worker'] })
    await store.open()
    t.after(() => store.close())
    const other = await watcher(t, schema, cwd)
    const runId = await create(other, cwd)
    // As a process of an earlier version: it renews its lease, and knows no messages.
    store.shared.listen({
      claimable: () => undefined, abortRequested: () => undefined,
      lost: () => undefined, doubtful: () => undefined, messagesLeft: () => undefined,
    })
    assert.equal((await store.shared.claim(1)).length, 1)
    await assert.rejects(other.message(runId, { text: 'hello?' }), {
      code: 'ERR_AGENT_STORE_UNAVAILABLE', message: /takes no messages now/,
    })
    assert.deepEqual(await store.shared.takeMessages(runId), [])
  })
})

/** Workers that are killed, and an engine that only accepts requests and reads. */
class World {
  readonly engine: RunEngine
  readonly marks: string
  readonly workers: Workers & { replaceOne(): Promise<void> }
  readonly #cwd: string

  private constructor(engine: RunEngine, marks: string, workers: Workers, cwd: string) {
    this.engine = engine
    this.marks = marks
    this.#cwd = cwd
    let last: Awaited<ReturnType<Workers['start']>>[0] | undefined
    this.workers = Object.assign(workers, {
      replaceOne: async (): Promise<void> => {
        if (last !== undefined) await workers.kill(last)
        ;[last] = await workers.start(1)
      },
    })
  }

  static async open(t: TestContext): Promise<World> {
    const schema = newSchema()
    const cwd = scratch(t)
    const marks = join(cwd, 'marks')
    writeFileSync(marks, '')
    const engine = await watcher(t, schema, cwd)
    const workers = new Workers(t, {
      connection, schema, root: cwd, marks, leaseMs: LEASE_MS, patienceMs: 60_000,
      slots: 8,
    })
    t.after(() => workers.killAll())
    return new World(engine, marks, workers, cwd)
  }

  create(request: JsonObject = {}): Promise<string> {
    return create(this.engine, this.#cwd, request)
  }

  async until(runId: string, iteration: number): Promise<void> {
    await follow(this.engine, runId, (event) => event.iteration === iteration)
  }

  async untilHeard(runId: string, ids: readonly string[]): Promise<void> {
    const left = new Set(ids)
    await follow(this.engine, runId, (event) => {
      if (event.kind === 'model_turn') for (const id of event.payload.heard ?? []) left.delete(id)
      return left.size === 0
    })
  }
}

async function create(engine: RunEngine, cwd: string, request: JsonObject = {}): Promise<string> {
  return (await engine.create({ goal: 'shell: false', cwd, ...request })).details.run_id
}

/** An engine that accepts requests, but drives no run: runs need a label that it does not have. */
function watcher(
  t: TestContext,
  schema: string,
  cwd: string,
  listens = true,
): Promise<RunEngine> {
  return engineOf(t, schema, cwd, LEASE_MS, () => ({}), [], listens)
}

async function engineOf(
  t: TestContext,
  schema: string,
  cwd: string,
  leaseMs: number,
  answer: () => Said | Promise<Said>,
  labels: readonly string[] = ['worker'],
  listens = true,
): Promise<RunEngine> {
  const engine = await RunEngine.open({
    store: new PostgresStore({
      pool, schema, leaseMs, labels, labelsFor: () => ['worker'], pollMs: 50,
      ...(!listens && { listen: false }),
    }),
    roots: [cwd],
    sealedChecks: 'off',
    cwdPolicy: 'allow',
    defaultModel: 'test:m',
    detectStuck: false,
    providers: [testProvider(answer)],
  })
  t.after(() => engine.close())
  return engine
}
