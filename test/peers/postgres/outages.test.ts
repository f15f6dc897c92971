/** A database that is down, slow or out of connections, and processes that lost their lease. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test, type TestContext } from 'node:test'
import pg from 'pg'
import {
  PostgresStore,
  RunEngine,
  StoreError,
  type PgPool,
  type PostgresStoreOptions,
} from 'runwright/agent'
import { createRunService } from 'runwright/server'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { follow, scratch, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { noPostgres, startPostgres, type Postgres } from './postgres.js'
import {
  connectionLost,
  firstClaim,
  followThrough,
  openStore,
  proxyTo,
  until,
  wrap,
} from './stores.js'

const UNAVAILABLE = { code: 'ERR_AGENT_STORE_UNAVAILABLE' }
let postgres: Postgres
let schemas = 0

describe('PostgresStore during outages', { skip: noPostgres }, () => {
  before(async () => {
    postgres = await startPostgres({
      fsync: 'off',
      max_connections: '40',
      superuser_reserved_connections: '3',
    })
  })
  after(() => postgres.remove())

  test('while the database is down runs wait and requests fail; then runs continue', async (t) => {
    const { pool } = await poolOf(t)
    const root = scratch(t)
    let reached: () => void = () => undefined
    let go: () => void = () => undefined
    const atSecond = new Promise<void>((resolve) => (reached = resolve))
    const released = new Promise<void>((resolve) => (go = resolve))
    const provider = testProvider(async (_, n) => {
      if (n !== 1) return {}
      reached()
      await released
      return {}
    })
    const service = await createRunService({
      engine: {
        store: new PostgresStore({ pool, schema: next(), patienceMs: 50, leaseMs: 60_000 }),
        roots: [root],
        providers: [provider],
        defaultModel: 'test:m',
      },
    })
    t.after(() => service.close())
    const server = createServer(service.handler).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => void server.close())
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const { details } = await service.engine.create({ goal: 'shell: false', max_iterations: 2 })
    const following = follow(service.engine as RunEngine, details.run_id)
    await atSecond
    await postgres.stop('immediate')
    go()
    await assert.rejects(service.engine.get(details.run_id), UNAVAILABLE)
    const refused = await fetch(`${origin}/api/runs/${details.run_id}`)
    assert.equal(refused.status, 503)
    assert.equal(refused.headers.get('retry-after'), '2')
    assert.equal(((await refused.json()) as { code: string }).code, 'store_unavailable')
    const post = await fetch(`${origin}/api/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ goal: 'shell: true' }),
    })
    assert.equal(post.status, 503)
    const health = await fetch(`${origin}/api/health`)
    assert.equal(health.status, 503)
    assert.equal(((await health.json()) as { status: string }).status, 'failing')
    await postgres.start()
    const events = await following
    assertInvariants(events)
    assert.equal(events.at(-1)?.kind, 'run_end')
    assert.equal(events.filter(({ kind }) => kind === 'run_recovered').length, 0)
    assert.equal((await service.engine.get(details.run_id)).end_reason, 'max_iterations')
  })

  test('a process that was disconnected for longer than its lease cannot append', async (t) => {
    const proxy = await proxyTo(t, postgres.connection.port)
    const far = await poolOf(t, { port: proxy.port })
    const near = await poolOf(t)
    const schema = next()
    const options = { schema, leaseMs: 300, pollMs: 20 }
    const one = await openStore(t, { pool: far.pool, ...options })
    const two = await openStore(t, { pool: near.pool, ...options })
    const records = sampleRun('a', { status: 'running', records: 4 })
    await one.append('a', records.slice(0, 2))
    const lost: string[] = []
    one.shared.listen({
      claimable: () => undefined,
      abortRequested: () => undefined,
      lost: (runId) => lost.push(runId),
      doubtful: () => undefined,
      messagesLeft: () => undefined,
    })
    assert.deepEqual(await one.shared.claim(1), [
      { runId: 'a', abandoned: false, abort: null, hasMessages: false, overdue: false },
    ])
    await one.append('a', records.slice(2, 3))
    const claimed = firstClaim(two)
    proxy.stall()
    const late = one.append('a', records.slice(3))
    late.catch(() => undefined)
    assert.deepEqual(await claimed, {
      runId: 'a', abandoned: true, abort: null, hasMessages: false, overdue: false,
    })
    await two.append('a', [{ ...records[3], ts: records[3]!.ts + 1 } as (typeof records)[number]])
    proxy.flow()
    await assert.rejects(late, { code: 'ERR_AGENT_CLAIM_LOST' })
    assert.deepEqual(lost, ['a'])
    assert.equal((await two.read('a', 3, 1))[0]?.ts, records[3]!.ts + 1)
  })

  test('an append whose answer was lost is stored once', async (t) => {
    const { pool } = await poolOf(t)
    let lose = false
    // Executes the statement, then behaves as if the connection broke before the answer.
    const losing = wrap(pool, async (client, query) => {
      const result = await client.query(query)
      if (!lose || !query.text.includes('INSERT INTO')) return result
      lose = false
      throw connectionLost()
    })
    const store = await openStore(t, { pool: losing, schema: next() })
    const records = sampleRun('a', { status: 'running', records: 30 })
    for (const record of records) {
      lose = true
      await store.append('a', [record])
    }
    assert.deepEqual(await store.read('a', 0, 100), records)
    lose = true
    await store.shared.claim(1)
    assert.ok(store.shared.holds('a'))
    const more = sampleRun('a', { status: 'running', records: 60 }).slice(30)
    lose = true
    await Promise.all(more.map((record) => store.append('a', [record])))
    assert.deepEqual(await store.read('a', 30, 100), more)
  })

  test('a claim whose answer was lost is recovered by the next one', async (t) => {
    const { pool } = await poolOf(t)
    let lose = false
    const losing = wrap(pool, async (client, query) => {
      const result = await client.query(query)
      if (!lose || query.text !== 'COMMIT') return result
      lose = false
      throw connectionLost()
    })
    const store = await openStore(t, { pool: losing, schema: next() })
    await store.append('a', sampleRun('a', { status: 'running', records: 2 }))
    lose = true
    await assert.rejects(store.shared.claim(1), UNAVAILABLE)
    assert.equal(store.shared.holds('a'), false)
    assert.deepEqual(await store.shared.claim(1), [
      { runId: 'a', abandoned: false, abort: null, hasMessages: false, overdue: false },
    ])
  })

  test('a statement without an answer fails after statementTimeoutMs', async (t) => {
    const proxy = await proxyTo(t, postgres.connection.port)
    const { pool } = await poolOf(t, { port: proxy.port })
    const schema = next()
    await new PostgresStore({ pool, schema }).migrate()
    const store = new PostgresStore({
      pool,
      schema,
      statementTimeoutMs: 300,
      patienceMs: 1,
      leaseMs: 60_000,
    })
    t.after(() => store.close())
    // On a slow machine this may time out several times.
    await until(() => store.open())
    proxy.stall()
    await assert.rejects(store.head('a'), { ...UNAVAILABLE, message: /no answer within 300 ms/ })
    await assert.rejects(store.check(), UNAVAILABLE)
    proxy.flow()
    await until(() => store.check())
    await until(async () => assert.equal(await store.head('a'), null))
  })

  test('an answer that arrived while the process was paused counts', async (t) => {
    const { pool } = await poolOf(t)
    const neverNotified = new Int32Array(new SharedArrayBuffer(4))
    let pausing = false
    const pausable = wrap(pool, (client, query) => {
      if (pausing) setImmediate(() => Atomics.wait(neverNotified, 0, 0, 600))
      return client.query(query)
    })
    const schema = next()
    await new PostgresStore({ pool, schema }).migrate()
    const store = new PostgresStore({
      pool: pausable,
      schema,
      listen: false,
      statementTimeoutMs: 300,
      patienceMs: 1,
      pollMs: 600_000,
    })
    t.after(() => store.close())
    await until(() => store.open())
    // Each statement is followed by a pause longer than its timeout.
    pausing = true
    await until(async () => assert.equal(await store.head('a'), null))
    pausing = false
  })

  test('a store opens once a database without free connections has some again', async (t) => {
    const { pool } = await poolOf(t)
    const schema = next()
    const store = await openStore(t, {
      pool,
      schema,
      listen: false,
      patienceMs: 1,
      leaseMs: 60_000,
      pollMs: 60_000,
    })
    await store.head('a')
    const greedy = Array.from(
      { length: 50 },
      () =>
        new pg.Client({ ...postgres.connection, user: 'visitor' }),
    )
    await pool.query(
      `DO $$ BEGIN CREATE ROLE visitor LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$`,
    )
    await pool.query(`GRANT ALL ON SCHEMA "${schema}" TO visitor;
      GRANT ALL ON ALL TABLES IN SCHEMA "${schema}" TO visitor`)
    const taken = await Promise.allSettled(greedy.map((client) => client.connect()))
    t.after(() => Promise.allSettled(greedy.map((client) => client.end())))
    assert.ok(taken.some(({ status }) => status === 'rejected'))
    const visitor = await poolOf(t, { user: 'visitor' })
    const crowded = new PostgresStore({ pool: visitor.pool, schema, migrate: false, patienceMs: 1 })
    await assert.rejects(crowded.open(), UNAVAILABLE)
    await Promise.allSettled(greedy.map((client) => client.end()))
    await until(() => crowded.open())
    await crowded.close()
  })

  test('eight processes can create the tables at the same time', async (t) => {
    const { pool } = await poolOf(t)
    const schema = next()
    await Promise.all(Array.from({ length: 8 }, () => openStore(t, { pool, schema })))
    const text = `SELECT version FROM "${schema}".migrations ORDER BY version`
    const { rows } = await pool.query<{ version: number }>(text)
    assert.deepEqual(rows.map(({ version }) => version), rows.map((_, i) => i + 1))
    assert.ok(rows.length > 0)
  })

  test('tables of a newer version are used if compatible and refused otherwise', async (t) => {
    const { pool } = await poolOf(t)
    const schema = next()
    const store = await openStore(t, { pool, schema })
    await store.append('a', sampleRun('a'))
    await pool.query(`INSERT INTO "${schema}".migrations (version, compatible_from) VALUES (98, 1)`)
    const beside = await openStore(t, { pool, schema })
    assert.equal((await beside.head('a'))?.details.run_id, 'a')
    await pool.query(`INSERT INTO "${schema}".migrations (version, compatible_from) VALUES (99, 99)`)
    await assert.rejects(new PostgresStore({ pool, schema }).open(), {
      code: 'ERR_AGENT_STORE_VERSION',
      message: /update runwright/,
    })
  })

  test('behind a pooler that loses prepared statements, a store works without them', async (t) => {
    const { pool } = await poolOf(t)
    const forgetful = wrap(pool, async (client, query) => {
      if (query.name === undefined) return await client.query(query)
      throw Object.assign(new Error(`prepared statement "${query.name}" does not exist`), {
        code: '26000',
      })
    })
    const warnings: string[] = []
    const onWarning = ({ message }: Error): void => void warnings.push(message)
    process.on('warning', onWarning)
    t.after(() => process.off('warning', onWarning))
    const store = await openStore(t, { pool: forgetful, schema: next(), listen: false })
    await store.append('a', sampleRun('a'))
    assert.equal((await store.read('a', 0, 100)).length, 4)
    assert.equal(warnings.filter((text) => text.includes('prepared statements')).length, 1)
  })

  test('sweep() removes runs beyond days or number, with their logs', async (t) => {
    const { pool } = await poolOf(t)
    const schema = next()
    const store = await openStore(t, { pool, schema })
    const now = Date.now() / 1000
    for (let i = 0; i < 10; i++)
      await store.append(`old-${i}`, sampleRun(`old-${i}`, { createdAt: now - 9 * 86_400 - i }))
    for (let i = 0; i < 10; i++)
      await store.append(`new-${i}`, sampleRun(`new-${i}`, { createdAt: now - 60 + i }))
    await store.append(
      'live',
      sampleRun('live', { createdAt: now - 99 * 86_400, status: 'running' }),
    )
    assert.equal(await store.sweep({ days: 7 }), 10)
    assert.equal(await store.sweep({ runs: 4 }), 6)
    const { heads } = await store.list({ limit: 100 })
    assert.deepEqual(
      heads.map(({ details }) => details.run_id),
      ['new-9', 'new-8', 'new-7', 'new-6', 'live'],
    )
    const { rows } = await pool.query(`SELECT DISTINCT run_id FROM "${schema}".events`)
    assert.equal(rows.length, 5)
  })

  test('errors do not contain the password of the database', async (t) => {
    const { pool } = await poolOf(t, { port: 1, password: 'hunter2-secret' })
    const store = new PostgresStore({ pool, patienceMs: 1 })
    const error = await store.open().catch((thrown: unknown) => thrown)
    assert.ok(error instanceof StoreError)
    assert.equal(error.code, 'ERR_AGENT_STORE_UNAVAILABLE')
    assert.doesNotMatch(`${error.message} ${error.stack} ${JSON.stringify(error)}`, /hunter2/)
  })

  test('an invalid option is refused by name', () => {
    const pool = { connect: () => undefined } as unknown as PgPool
    const bad: [Partial<PostgresStoreOptions>, RegExp][] = [
      [{ pool: {} as PgPool }, /^pool must be/],
      [{ schema: 'no"quotes' }, /^schema must be/],
      [{ leaseMs: 0 }, /^leaseMs must be/],
      [{ pollMs: Number.NaN }, /^pollMs must be/],
      [{ maxRunning: 1.5 }, /^maxRunning must be/],
    ]
    for (const [options, message] of bad) {
      assert.throws(() => new PostgresStore({ pool, ...options }), { name: 'TypeError', message })
    }
  })

  test('a subscriber whose connection is cut again and again misses nothing', async (t) => {
    const proxy = await proxyTo(t, postgres.connection.port)
    const far = await poolOf(t, { port: proxy.port })
    const near = await poolOf(t)
    const schema = next()
    const root = scratch(t)
    const engine = async (
      pool: PgPool,
      more: Partial<PostgresStoreOptions> = {},
    ): Promise<RunEngine> => {
      const store = new PostgresStore({
        pool,
        schema,
        pollMs: 50,
        leaseMs: 600_000,
        patienceMs: 600_000,
        ...more,
      })
      const provider = testProvider((_, n) => {
        if (n % 2 === 1) proxy.cut()
        return { tokens: [1, 1] }
      })
      const opened = await RunEngine.open({
        store,
        roots: [root],
        sealedChecks: 'off',
        providers: [provider],
        defaultModel: 'test:m',
      })
      t.after(() => opened.close())
      return opened
    }
    const watcher = await engine(far.pool, { labels: ['watcher'] })
    const worker = await engine(near.pool, { labels: ['worker'], labelsFor: () => ['worker'] })
    const runs = await Promise.all(
      Array.from({ length: 6 }, () => worker.create({ goal: 'shell: false', max_iterations: 3 })),
    )
    const lists = await Promise.all(
      runs.map(({ details }) => followThrough(watcher, details.run_id)),
    )
    for (const [i, events] of lists.entries()) {
      assertInvariants(events)
      assert.deepEqual(
        events,
        await worker.events(runs[i]!.details.run_id, { after: 0, limit: 1_000 }),
      )
    }
  })
})

function next(): string {
  return `o${(schemas += 1)}`
}

async function poolOf(
  t: TestContext,
  more: pg.PoolConfig = {},
): Promise<{ readonly pool: pg.Pool }> {
  const pool = postgres.pool(more)
  t.after(() => void pool.end()) // not awaited: what is stalled may never end
  return { pool }
}
