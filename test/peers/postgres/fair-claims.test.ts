/** Tenants and trees of runs in a PostgresStore: they take turns in the queue. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import type { PostgresStore, PostgresStoreOptions } from 'runwright/agent'
import type { RunCreated } from '../../../lib/agent/events.js'
import { foldHead } from '../../../lib/agent/log/head.js'
import { FairQueue, type Waiting } from '../../../lib/internal/queues.js'
import { insertRunQuery } from '../../../lib/agent/stores/postgres/append-statements.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { Random } from '../../helpers/random.js'
import { noPostgres, openDatabase, poolTo } from './postgres.js'
import { openStore, wrap } from './stores.js'

const { connection, newSchema, pool } = await openDatabase()

describe('turns in a PostgresStore', { skip: noPostgres }, () => {
  const open = (
    t: TestContext,
    schema: string,
    more: Partial<PostgresStoreOptions> = {},
  ): Promise<PostgresStore> =>
    openStore(t, { pool, schema, listen: false, leaseMs: 600_000, ...more })

  /** Admits a run; one whose root is another run as a child of it. */
  const admit = async (
    store: PostgresStore,
    schema: string,
    runId: string,
    root = runId,
    tenant: string | null = null,
  ) => {
    const [created] = sampleRun(runId, { cwd: `/${runId}`, status: 'pending', tenant })
    const terms = { cwdPolicy: 'queue', maxQueued: 1e6, keysSince: 0 } as const
    await store.shared.admit({ created: created as RunCreated, ...terms })
    if (root === runId) return
    const values = [runId, root]
    await pool.query(`UPDATE ${schema}.runs SET root_run_id = $2 WHERE run_id = $1`, values)
  }
  const claim = async (store: PostgresStore, slots = 1): Promise<readonly string[]> =>
    (await store.shared.claim(slots)).map(({ runId }) => runId)
  const end = async (store: PostgresStore, runId: string): Promise<void> => {
    const { last_seq } = (await store.head(runId))!.details
    const all = sampleRun(runId, { status: 'failed', records: last_seq + 2 })
    await store.append(runId, all.slice(last_seq))
  }

  test('a parent with many children takes turns with the runs that come later', async (t) => {
    const schema = newSchema()
    const store = await open(t, schema)
    for (const child of ['a1', 'a2', 'a3', 'a4', 'a5']) await admit(store, schema, child, 'a')
    for (const single of ['b', 'c']) await admit(store, schema, single)
    await admit(store, schema, 'd1', 'd')
    assert.deepEqual(await claim(store), ['a1'])
    // The slot is free again before anything else has been claimed.
    await end(store, 'a1')
    assert.deepEqual(await claim(store), ['b'])
    await admit(store, schema, 'e')
    assert.deepEqual(await claim(store, 4), ['c', 'd1', 'a2', 'e'])
    assert.deepEqual(await claim(store, 9), ['a3', 'a4', 'a5'])
  })

  test('the slots of one claim go round over the roots', async (t) => {
    const schema = newSchema()
    const store = await open(t, schema)
    for (let n = 0; n < 200; n++) await admit(store, schema, `a${n}`, 'a')
    for (const child of ['b1', 'b2']) await admit(store, schema, child, 'b')
    await admit(store, schema, 'c')
    assert.deepEqual(await claim(store, 6), ['a0', 'b1', 'c', 'a1', 'b2', 'a2'])
  })

  test('tenants take turns, and the slots of one claim go round over them', async (t) => {
    const schema = newSchema()
    const store = await open(t, schema)
    for (let n = 0; n < 300; n++) await admit(store, schema, `a${n}`, undefined, 'a')
    for (const child of ['b1', 'b2', 'b3']) await admit(store, schema, child, 'b', 'b')
    await admit(store, schema, 'b4', undefined, 'b')
    await admit(store, schema, 'c', undefined, null)
    assert.deepEqual(await claim(store), ['a0'])
    assert.deepEqual(await claim(store, 5), ['b1', 'c', 'a1', 'b4', 'a2'])
    assert.deepEqual(await claim(store, 3), ['b2', 'a3', 'b3'])
    assert.equal((await claim(store, 290)).length, 290)
    assert.deepEqual(await claim(store, 290), ['a294', 'a295', 'a296', 'a297', 'a298', 'a299'])
  })

  test('random runs of three processes are claimed as the queue of one process has them', async (t) => {
    for (let seed = 1; seed <= 3; seed++) {
      const random = new Random(seed)
      const schema = `r${seed}`
      const stores = await Promise.all([1, 2, 3].map(() => open(t, schema)))
      const queue = new FairQueue<Waiting>()
      let waiting = 0
      const held = new Map<string, PostgresStore>()
      for (let step = 0; step < 60 || waiting > 0; step++) {
        const store = random.pick(stores)
        if (step < 60 && random.chance(0.6)) {
          const runId = `r${step}`
          const tenant = random.pick(['t', 't', 'u', null])
          const root = random.pick([`a of ${tenant}`, `a of ${tenant}`, `b of ${tenant}`, runId])
          await admit(store, schema, runId, root, tenant)
          queue.add({ runId, tenant, root })
          queue.ready(runId)
          waiting += 1
        } else if (waiting > 0 && random.chance(0.7)) {
          const slots = Math.min(waiting, random.integer(1, 3))
          const expected = Array.from({ length: slots }, () => queue.next()!.runId)
          waiting -= slots
          assert.deepEqual(await claim(store, slots), expected, `seed ${seed}, step ${step}`)
          for (const runId of expected) held.set(runId, store)
        } else if (held.size > 0) {
          const runId = random.pick([...held.keys()])
          await end(held.get(runId)!, runId)
          held.delete(runId)
        }
      }
    }
  })

  test('a child is stored with its root, its parent and its role', async (t) => {
    const schema = newSchema()
    const store = await open(t, schema)
    await admit(store, schema, 'top')
    const [created] = sampleRun('child', { cwd: '/', status: 'pending' })
    const head = foldHead(null, created!)
    const place = { root_run_id: 'top', parent_run_id: 'top', role: 'attempt' } as const
    const child = { ...head, details: { ...head.details, ...place } }
    const placement = { folder: null, labels: [] }
    await pool.query({
      ...insertRunQuery(schema, child, placement, [created!], [JSON.stringify(created)]),
    } as { text: string; values: unknown[] })
    const { rows } = await pool.query(`SELECT run_id, root_run_id, parent_run_id, role
      FROM ${schema}.runs ORDER BY queue_number`)
    const none = { root_run_id: null, parent_run_id: null, role: null }
    assert.deepEqual(rows, [{ run_id: 'top', ...none }, { run_id: 'child', ...place }])
  })

  test('a role with rights to the tables alone claims children', async (t) => {
    const schema = newSchema()
    const owner = await open(t, schema)
    await admit(owner, schema, 'child', 'top')
    const role = `service_in_${connection.database}`
    await pool.query(`CREATE ROLE ${role} LOGIN; GRANT USAGE ON SCHEMA ${schema} TO ${role};
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${role}`)
    const restricted = poolTo(connection, { user: role })
    t.after(() => restricted.end())
    const store = await open(t, schema, { pool: restricted, migrate: false })
    assert.deepEqual(await claim(store), ['child'])
    await store.close()
  })

  test('a claim among twenty thousand waiting runs reads a bounded number of rows', async (t) => {
    const schema = newSchema()
    let plan = ''
    const explaining = wrap(pool, async (client, query) => {
      if (query.name === 'runwright_candidates' && plan === '') {
        const { text, values } = query
        const explain = { text: `EXPLAIN (ANALYZE) ${text}`, values: [...values!] }
        const { rows } = await pool.query(explain)
        plan = rows.map((row: object) => Object.values(row)[0]).join('\n')
      }
      return await client.query(query)
    })
    const store = await open(t, schema, { pool: explaining })
    await admit(store, schema, 'seed')
    await pool.query(`INSERT INTO ${schema}.runs (run_id, created_ms, status, goal_hash, model_name,
        fixed, head, last_seq, folder)
      SELECT 'w' || i, 1, 'pending', 'x', 'm',
        replace(fixed::text, '"/seed"', '"/w/' || i || '"')::json, head, 1, 'w' || i
      FROM ${schema}.runs, generate_series(1, 20000) i WHERE run_id = 'seed'`)
    await pool.query(`ANALYZE ${schema}.runs`)
    for (const child of ['a1', 'a2']) await admit(store, schema, child, 'a')
    assert.deepEqual(await claim(store, 4), ['seed', 'w1', 'w2', 'w3'])
    const counts = [...plan.matchAll(/actual time=\S+ rows=(\d+) loops/g)]
    const read = counts.map(([, rows]) => Number(rows))
    assert.ok(Math.max(...read) <= 4 + 64 + 2, plan)
  })
})
