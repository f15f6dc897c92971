/** Edge cases: unusual texts, roles with few rights, crowded pools, processes that stop midway. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test, type TestContext } from 'node:test'
import type pg from 'pg'
import {
  PostgresStore,
  RunEngine,
  type Admission,
  type PgClient,
  type PgPool,
  type RunRecord,
} from 'runwright/agent'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { systemClock } from '../../../lib/internal/time.js'
import { follow, scratch, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { millionTests } from '../../agent/goals/million-tests.js'
import { noPostgres, openDatabase, poolTo } from './postgres.js'
import { connectionLost, firstClaim, openStore, proxyTo, until, wrap } from './stores.js'

type RunCreated = Admission['created']

const ALL = 1_000
const { connection, newSchema } = await openDatabase()

describe('PostgresStore at its edges', { skip: noPostgres }, () => {
  test('a goal with a lone surrogate does not break searches', async (t) => {
    const store = await openStore(t, { pool: poolOf(t), schema: newSchema(), listen: false })
    await store.append('a', sampleRun('a', { goal: 'half \ud800 of one' }))
    await store.append('b', sampleRun('b', { goal: 'whole ÄPFEL' }))
    assert.deepEqual(await found(store, 'whole'), ['b'])
    assert.deepEqual(await found(store, 'half OF'), ['a'])
    assert.deepEqual(await found(store, 'äpfel'), ['b'])
    assert.equal((await store.head('a'))?.details.goal, 'half \ud800 of one')
  })

  test('queries with texts that a column cannot hold find nothing and do no harm', async (t) => {
    const store = await openStore(t, { pool: poolOf(t), schema: newSchema(), listen: false })
    await store.append('a', sampleRun('a'))
    for (const odd of ['\0', 'a\0', 'a\ud800', 'x'.repeat(5_000)]) {
      assert.equal(await store.head(odd), null)
      assert.deepEqual(await store.read(odd, 0, ALL), [])
      await store.delete(odd)
      assert.equal(await store.findByKey({ id: odd, tenant: odd }, odd, 0), null)
      for (const query of [{ search: odd }, { tenant: odd }, { modelName: odd }, { goal: odd }]) {
        if (odd.startsWith('a\0') && 'search' in query) continue
        const { heads } = await store.list({ ...query, limit: 9 })
        assert.deepEqual(heads, [], JSON.stringify(query))
      }
      const cursor = Buffer.from(JSON.stringify([9e15, odd])).toString('base64url')
      assert.equal((await store.list({ limit: 9, cursor })).heads.length, 1)
      await assert.rejects(store.append(odd, sampleRun(odd)), {
        code: 'ERR_AGENT_STORE',
        message: /^a run id has/,
      })
    }
  })

  test('owners, tenants, keys, models and folders of any length are distinguished', async (t) => {
    const store = await openStore(t, { pool: poolOf(t), schema: newSchema(), listen: false })
    const long = randomBytes(4_000).toString('base64')
    for (const [i, end] of ['1', '2', '\0', '\ud800', '\ud801'].entries()) {
      const text = long + end
      const [created] = sampleRun(`run-${i}`, {
        ownerId: text,
        tenant: text,
        key: text,
        modelName: text,
      })
      const payload = { ...created!.payload, cwd: `/${end}/${text}` }
      const record = { ...created, payload } as RunCreated
      const admission = {
        created: record,
        maxQueued: 99,
        cwdPolicy: 'reject' as const,
        keysSince: 0,
      }
      assert.deepEqual(await store.shared.admit(admission), { outcome: 'admitted' })
      assert.equal(
        (await store.findByKey({ id: text, tenant: text }, text, 0))?.details.run_id,
        `run-${i}`,
      )
      for (const query of [{ tenant: text }, { modelName: text }]) {
        const { heads } = await store.list({ ...query, limit: 9 })
        assert.deepEqual(heads.map(({ details }) => details.run_id), [`run-${i}`])
      }
      assert.equal((await store.head(`run-${i}`))?.details.model_name, text)
    }
  })

  test('when the database rejects records of one run, only appends to that run fail', async (t) => {
    const pool = poolOf(t)
    const schema = newSchema()
    const ids = ['a', 'bad', 'c']
    // Labels give each run a folder of its own.
    const store = await openStore(t, {
      pool,
      schema,
      listen: false,
      labels: ids,
      labelsFor: ({ run_id }) => [run_id],
    })
    const logs = ids.map((runId) => sampleRun(runId, { status: 'running', records: 3 }))
    for (const [i, runId] of ids.entries()) await store.append(runId, logs[i]!.slice(0, 2))
    assert.equal((await store.shared.claim(3)).length, 3)
    await pool.query(`CREATE FUNCTION ${schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN IF new.run_id = 'bad' THEN RAISE 'not this one'; END IF; RETURN new; END $$;
      CREATE TRIGGER refuse BEFORE INSERT ON ${schema}.events
      FOR EACH ROW EXECUTE FUNCTION ${schema}.refuse()`)
    const outcomes = await Promise.allSettled(
      ids.map((runId, i) => store.append(runId, logs[i]!.slice(2))),
    )
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    )
    for (const [i, runId] of ids.entries()) {
      assert.deepEqual(
        await store.read(runId, 0, ALL),
        runId === 'bad' ? logs[i]!.slice(0, 2) : logs[i],
      )
    }
    await pool.query(`DROP TRIGGER refuse ON ${schema}.events`)
    await store.append('bad', logs[1]!.slice(2))
    assert.deepEqual(await store.read('bad', 0, ALL), logs[1])
  })

  test('a process that stops during a claim does not block others', async (t) => {
    const schema = newSchema()
    let stopped = false
    const stuck = wrapReleases(poolOf(t), async (client, query) => {
      const result = await client.query(query)
      if (query.name?.startsWith('runwright_claim_lock') === true) {
        stopped = true
        await new Promise(() => undefined)
      }
      return result
    })
    const two = await openStore(t, { pool: poolOf(t), schema, pollMs: 20 })
    await two.append('a', sampleRun('a', { status: 'running' }))
    const one = new PostgresStore({ pool: stuck, schema, listen: false, statementTimeoutMs: 400 })
    t.after(() => one.close())
    await until(() => one.open())
    await until(async () => {
      await assert.rejects(one.shared.claim(1), { code: 'ERR_AGENT_STORE_UNAVAILABLE' })
      assert.ok(stopped)
    })
    const claim = await firstClaim(two)
    assert.deepEqual(claim, {
      runId: 'a', abandoned: false, abort: null, hasMessages: false, overdue: false,
    })
  })

  test('a claim whose release failed is released later', async (t) => {
    const schema = newSchema()
    let lose = true
    const losing = wrap(poolOf(t), async (client, query) => {
      if (lose && query.text.includes('SET claimed_by = NULL')) throw connectionLost()
      return await client.query(query)
    })
    const one = await openStore(t, { pool: losing, schema, listen: false, patienceMs: 1 })
    const two = await openStore(t, { pool: poolOf(t), schema, pollMs: 20 })
    await one.append('a', sampleRun('a', { status: 'running' }))
    assert.equal((await one.shared.claim(1)).length, 1)
    await assert.rejects(one.shared.release('a'), { code: 'ERR_AGENT_STORE_UNAVAILABLE' })
    lose = false
    const claim = firstClaim(two)
    assert.deepEqual(await one.shared.claim(0), [])
    assert.equal(((await claim) as { runId: string }).runId, 'a')
  })

  for (const listen of ['with', 'without'] as const) {
    test(`a crowded pool does not delay heartbeats, ${listen} notifications`, async (t) => {
      const schema = newSchema()
      const near = poolOf(t)
      const pool = poolOf(t, { max: 4 })
      const store = await openStore(t, {
        // A heartbeat per second, with a timeout of one second.
        ...{ pool, schema, leaseMs: 3_000, pollMs: 20 },
        ...(listen === 'with' ? {} : { listen: false as const }),
      })
      await store.append('a', sampleRun('a', { status: 'running' }))
      assert.equal((await store.shared.claim(1)).length, 1)
      // Holds all other connections, with many more requests in the queue.
      const crowd = Array.from({ length: 30 }, () => pool.connect())
      const leave = async (): Promise<unknown> =>
        Promise.all(crowd.map(async (client) => (await client).release()))
      await Promise.all(crowd.slice(0, 3))
      const beats = new Set<string>()
      await until(async () => {
        const { rows } = await near.query(`SELECT w.expires_at::text AS at FROM ${schema}.workers w
          JOIN ${schema}.runs r ON r.claimed_by = w.worker_id`)
        beats.add(rows[0].at)
        assert.ok(beats.size > 3)
      }).finally(leave)
    })
  }

  test('watchers learn of many concurrent changes, whatever the length of run ids', async (t) => {
    const schema = newSchema()
    const pool = poolOf(t)
    const [one, two] = [
      await openStore(t, { pool, schema, listen: false, pollMs: 600_000 }),
      await openStore(t, {
        pool,
        schema,
        listen: poolOf(t, { application_name: schema }),
        pollMs: 600_000,
      }),
    ]
    await listening(pool, schema)
    const ids = Array.from({ length: 200 }, (_, i) =>
      `${i}-${'x'.repeat(i === 0 ? 599 : 100)}`.slice(0, 600),
    )
    const logs = ids.map((runId) => sampleRun(runId, { records: 4 }))
    await Promise.all(ids.map((runId, i) => one.append(runId, logs[i]!.slice(0, 2))))
    const notified = ids.map(
      (runId, i) =>
        new Promise<void>((resolve) => {
          two.shared.watch(runId, (end) => {
            if (end === (i % 2 === 0 ? 'deleted' : 4)) resolve()
          })
        }),
    )
    await Promise.all(
      ids.map((runId, i) =>
        i % 2 === 0 ? one.delete(runId) : one.append(runId, logs[i]!.slice(2)),
      ),
    )
    await Promise.all(notified)
  })

  test('changes missed while the connection was down are reported afterwards', async (t) => {
    const schema = newSchema()
    const proxy = await proxyTo(t, connection.port)
    const near = poolOf(t)
    const one = await openStore(t, { pool: near, schema, listen: false, pollMs: 600_000 })
    const listen = poolOf(t, { port: proxy.port, application_name: schema })
    const two = await openStore(t, { pool: near, schema, listen, pollMs: 600_000 })
    await listening(near, schema)
    const records = sampleRun('a', { status: 'running', records: 9 })
    await one.append('a', records.slice(0, 1))
    for (let seq = 1; seq < 9; seq++) {
      const notified = new Promise<void>((resolve) => {
        const unwatch = two.shared.watch('a', (end) => {
          if (end !== seq + 1) return
          unwatch()
          resolve()
        })
      })
      proxy.cut()
      await one.append('a', records.slice(seq, seq + 1))
      await notified
    }
  })

  test('close() resolves in time although the database does not answer', async (t) => {
    const schema = newSchema()
    const near = await openStore(t, { pool: poolOf(t), schema, listen: false })
    await near.append('a', sampleRun('a', { status: 'running', records: 2 }))
    const proxy = await proxyTo(t, connection.port)
    const pool = poolOf(t, { port: proxy.port })
    const store = new PostgresStore({
      pool,
      schema,
      statementTimeoutMs: 300,
      patienceMs: 1,
      pollMs: 20,
    })
    t.after(() => store.close())
    // On a slow machine these may time out several times.
    await until(() => store.open())
    await until(async () => {
      await store.shared.claim(1)
      assert.ok(store.shared.holds('a'))
    })
    proxy.stall()
    const late = assert.rejects(
      store.append('a', sampleRun('a', { status: 'running', records: 3 }).slice(2)),
    )
    await store.close()
    await late
    proxy.flow()
  })

  test('the record of a million tests is stored and read', async (t) => {
    const store = await openStore(t, { pool: poolOf(t), schema: newSchema(), listen: false })
    const [created, started] = sampleRun('big')
    const check = millionTests('big', 3)
    await store.append('big', [created!, started!])
    await store.append('big', [check])
    assert.deepEqual(await store.read('big', 0, ALL), [created, started, check])
    const all = sampleRun('fork').slice(1)
    const fork = [created!, check, ...all].map((one, i) => ({ ...one, run_id: 'fork', seq: i + 1 }))
    await store.append('fork', fork as RunRecord[])
    assert.deepEqual(await store.read('fork', 0, ALL), fork)
  })

  test('a role without the right to create schemas can use existing tables', async (t) => {
    const admin = poolOf(t)
    const schema = newSchema()
    // The roles of a server belong to all of its databases.
    const role = `poor_in_${connection.database}`
    await admin.query(
      `CREATE ROLE ${role} LOGIN; REVOKE CREATE ON DATABASE ${connection.database} FROM PUBLIC`,
    )
    const poor = poolOf(t, { user: role })
    const tooEarly = {
      code: 'ERR_AGENT_STORE_VERSION',
      message: /has no tables of runwright.*call migrate\(\)/,
    }
    await assert.rejects(new PostgresStore({ pool: poor, schema, migrate: false }).open(), tooEarly)
    await assert.rejects(new PostgresStore({ pool: poor, schema }).open(), {
      code: 'ERR_AGENT_STORE',
      message: /permission denied/,
    })
    await new PostgresStore({ pool: admin, schema }).migrate()
    await admin.query(`GRANT USAGE ON SCHEMA ${schema} TO ${role};
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${role}`)
    for (const migrate of [true, false]) {
      const store = await openStore(t, { pool: poor, schema, migrate, retain: { runs: 5 } })
      const runId = `a-${migrate}`
      await store.append(runId, sampleRun(runId, { status: 'running', records: 3 }))
      assert.equal((await store.shared.claim(1))[0]?.runId, runId)
      await store.append(runId, [{ ...sampleRun(runId, { records: 4 })[3] } as RunRecord])
      assert.equal((await store.list({ limit: 9 })).heads[0]?.details.status, 'achieved')
      await store.sweep()
      await store.delete(runId)
      await store.close()
    }
  })

  test('a role can create the tables in a schema that it owns', async (t) => {
    const admin = poolOf(t)
    const schema = newSchema()
    const role = `owner_of_${connection.database}`
    await admin.query(`CREATE ROLE ${role} LOGIN;
      REVOKE CREATE ON DATABASE ${connection.database} FROM PUBLIC;
      CREATE SCHEMA ${schema} AUTHORIZATION ${role}`)
    const store = await openStore(t, { pool: poolOf(t, { user: role }), schema })
    await store.append('a', sampleRun('a'))
    assert.equal((await store.read('a', 0, ALL)).length, 4)
  })

  test('stores in schemas of one database are independent, whatever their names', async (t) => {
    const pool = poolOf(t)
    const stores = await Promise.all(
      ['user', 'select', '_1'].map((schema) => openStore(t, { pool, schema })),
    )
    for (const [i, store] of stores.entries()) {
      await store.append('same', sampleRun('same', { status: 'running', records: 2 + i }))
    }
    for (const [i, store] of stores.entries()) {
      assert.equal((await store.head('same'))?.details.last_seq, 2 + i)
      assert.deepEqual((await store.shared.claim(9)).map(({ runId }) => runId), ['same'])
    }
    await stores[0]!.delete('same')
    assert.equal(await stores[0]!.head('same'), null)
    assert.equal((await stores[1]!.read('same', 0, ALL)).length, 3)
    assert.ok(stores[1]!.shared.holds('same'))
  })

  test('a subscription to a run that retention removes ends without a gap', async (t) => {
    const schema = newSchema()
    const pool = poolOf(t)
    const store = new PostgresStore({ pool, schema })
    const engine = await RunEngine.open({ store, roots: [scratch(t)] })
    t.after(() => engine.close())
    await store.append('a', sampleRun('a', { records: 2_000, text: 'x'.repeat(2_000) }))
    const subscription = await engine.subscribe('a')
    const seqs: number[] = []
    for (let batch = await subscription.next(); batch !== null; batch = await subscription.next()) {
      for (const { seq } of batch) seqs.push(seq)
      if (seqs.length === batch.length) assert.equal(await store.sweep({ days: 7 }), 1)
    }
    assert.equal(subscription.end, 'deleted')
    assert.deepEqual(seqs, Array.from(seqs, (_, i) => i + 1))
    assert.ok(seqs.length < 2_000)
  })

  test('retention removes runs of any size in batches, the oldest first', async (t) => {
    const pool = poolOf(t)
    const schema = newSchema()
    const store = await openStore(t, { pool, schema, listen: false })
    await store.append('seed', sampleRun('seed'))
    await fill(pool, schema, 500)
    await pool.query(
      `UPDATE ${schema}.runs SET last_seq = 30000 WHERE run_id IN ('old-3', 'old-4')`,
    )
    assert.equal(await store.sweep({ runs: 101 }), 400)
    const { heads } = await store.list({ limit: 500 })
    assert.equal(heads.length, 101)
    assert.equal(heads.at(-1)?.details.run_id, 'old-401')
    const { rows } = await pool.query(
      `SELECT count(DISTINCT run_id)::integer AS logs FROM ${schema}.events`,
    )
    assert.equal(rows[0].logs, 101)
  })

  test("a gate times out by the database's clock, not by that of a process", async (t) => {
    const schema = newSchema()
    const root = scratch(t)
    const pool = poolOf(t)
    const open = async (lateMs: number): Promise<RunEngine> => {
      const engine = await RunEngine.open({
        store: new PostgresStore({ pool, schema, pollMs: 20 }),
        roots: [root],
        sealedChecks: 'off',
        providers: [testProvider(() => ({}))],
        defaultModel: 'test:m',
        gateTimeoutMs: 300,
        clock: {
          now: () => systemClock.now() - lateMs,
          setTimeout: (callback, ms) => systemClock.setTimeout(callback, ms),
        },
      })
      t.after(() => engine.close())
      return engine
    }
    const right = await open(0)
    const { details } = await right.create({ goal: 'shell: false', hitl_enabled: true })
    await follow(right, details.run_id, ({ kind }) => kind === 'human_check_required')
    await right.close()
    const late = await open(3_600_000)
    assertInvariants(await follow(late, details.run_id))
    assert.equal((await late.get(details.run_id)).end_reason, 'gate_timeout')
  })

  test('a run whose labels no process has can be aborted', async (t) => {
    const root = scratch(t)
    const store = new PostgresStore({
      pool: poolOf(t),
      schema: newSchema(),
      labels: ['here'],
      labelsFor: () => ['gone'],
    })
    const engine = await RunEngine.open({
      ...{ store, roots: [root], providers: [testProvider(() => ({}))], defaultModel: 'test:m' },
      sealedChecks: 'off',
    })
    t.after(() => engine.close())
    const { details } = await engine.create({ goal: 'shell: false' })
    await engine.abort(details.run_id)
    assertInvariants(await follow(engine, details.run_id))
    assert.equal((await engine.get(details.run_id)).status, 'aborted')
  })

  test('polling alone finds abort requests', async (t) => {
    const schema = newSchema()
    const pool = poolOf(t)
    const options = { pool, schema, listen: false as const, pollMs: 20, leaseMs: 3_600_000 }
    const [one, two] = [await openStore(t, options), await openStore(t, options)]
    await one.append('a', sampleRun('a', { status: 'running' }))
    const wanted = new Promise((resolve) => {
      one.shared.listen({
        ...{ claimable: () => undefined, lost: () => undefined, doubtful: () => undefined },
        messagesLeft: () => undefined,
        abortRequested: (runId, { by }) => resolve([runId, by]),
      })
    })
    assert.equal((await one.shared.claim(1)).length, 1)
    one.shared.watch('a', () => undefined)
    await two.shared.requestAbort('a', 'alice')
    assert.deepEqual(await wanted, ['a', 'alice'])
  })

  test('no statement scans a whole table', async (t) => {
    const schema = newSchema()
    const pool = poolOf(t)
    const scans: string[] = []
    const seen = new Set<string>()
    const explaining = wrap(pool, async (client, query) => {
      if (/^\s*(SELECT|WITH|UPDATE|DELETE)/.test(query.text) && query.text.includes(schema)) {
        const { text, values = [] } = query
        const { rows } = await client.query({ text: `EXPLAIN (FORMAT JSON) ${text}`, values })
        const what = text.trim().split('\n')[0] as string
        seen.add(what)
        const scan = /"Node Type":"Seq Scan"[^}]*?"Relation Name":"(?:runs|events)"/
        if (scan.test(JSON.stringify(rows))) scans.push(what)
      }
      return await client.query(query)
    })
    const plain = await openStore(t, { pool, schema, listen: false })
    await plain.append('seed', sampleRun('seed'))
    await fill(pool, schema, 20_000)
    await plain.append('live', sampleRun('live', { status: 'running', records: 2, key: 'k' }))
    const store = await openStore(t, { pool: explaining, schema, listen: false, maxRunning: 9 })
    const limit = 20
    for (const query of [
      ...[
        {},
        { status: ['running' as const] },
        { tenant: 't1' },
        { tenant: null },
        { modelName: 'm-7' },
        { goal: 'no such' },
        { root: 'seed' },
        { parent: 'seed' },
        { role: 'root' as const },
        { cwd: '/elsewhere' },
        { endReason: ['stuck' as const] },
        { metadata: { team: 'red' } },
        { sort: 'created_at' as const },
        { cwd: '/elsewhere', sort: 'created_at' as const },
        { sort: 'cwd' as const },
        { sort: '-cwd' as const },
        { sort: 'end_reason' as const },
        { sort: '-parent' as const },
      ],
      ...[
        { createdAfter: 1.7e9 },
        { createdBefore: 1.5e9 },
        { status: ['failed' as const], tenant: 't2' },
      ],
    ]) {
      const page = await store.list({ ...query, limit })
      if (page.next !== null) await store.list({ ...query, limit, cursor: page.next })
    }
    const created = sampleRun('new', { status: 'pending', key: 'n', records: 1 })[0] as RunCreated
    await store.shared.admit({ created, maxQueued: 9, cwdPolicy: 'reject', keysSince: 0 })
    assert.equal((await store.shared.claim(9)).length, 1)
    await store.append('live', sampleRun('live', { status: 'running', records: 3 }).slice(2))
    await store.read('old-77', 50, 10)
    await store.findByKey({ id: null, tenant: null }, 'k', 0)
    await store.shared.requestAbort('live', null)
    await store.shared.release('live')
    await store.sweep({ days: 36_500 })
    await store.delete('old-19999')
    await store.close()
    assert.ok(seen.size > 15, [...seen].join('\n'))
    assert.deepEqual(scans, [])
  })
})

function poolOf(t: TestContext, more: pg.PoolConfig = {}): pg.Pool {
  const pool = poolTo(connection, more)
  t.after(() => void pool.end()) // not awaited: what is stalled may never end
  return pool
}

/** As `wrap`, for a process that stopped: its connections are not released. */
function wrapReleases(pool: PgPool, run: Parameters<typeof wrap>[1]): PgPool {
  const wrapped = wrap(pool, run)
  return {
    connect(callback) {
      wrapped.connect((error, client) => {
        if (client === undefined) return callback(error, client)
        const release: PgClient['release'] = (destroy) => destroy === undefined && client.release()
        callback(error, { query: (query) => client.query(query), release, on: client.on })
      })
    },
  }
}

async function found(store: PostgresStore, search: string): Promise<string[]> {
  return (await store.list({ search, limit: 9 })).heads.map(({ details }) => details.run_id)
}

/** Resolves once a connection with this application name listens. */
async function listening(pool: pg.Pool, name: string): Promise<void> {
  const text = `SELECT 1 FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = $1 AND state = 'idle' AND query <> ''`
  await until(async () => assert.equal((await pool.query(text, [name])).rows.length, 1))
}

/** Inserts ended runs of one event each, copies of the run `seed`. */
async function fill(pool: pg.Pool, schema: string, runs: number): Promise<void> {
  await pool.query(`INSERT INTO ${schema}.runs (run_id, created_ms, ended_ms, status, goal_hash,
      model_name, tenant, fixed, head, last_seq)
    SELECT 'old-' || i, 1.6e12 + i, 1.6e12 + i, (ARRAY['achieved', 'failed'])[1 + i % 2],
      md5(i::text), 'm-' || i % 50, 't' || i % 9,
      replace(fixed::text, '"seed"', '"old-' || i || '"')::json, head, 100
    FROM generate_series(1, ${runs}) i,
      (SELECT fixed, head FROM ${schema}.runs WHERE run_id = 'seed') s`)
  await pool.query(`INSERT INTO ${schema}.events (run_id, seq, record)
    SELECT 'old-' || i, 1, '{}' FROM generate_series(1, ${runs}) i`)
  await pool.query(`ANALYZE ${schema}.runs; ANALYZE ${schema}.events`)
}
