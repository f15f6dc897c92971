/** Trees of runs in PostgreSQL: what retention and deletion remove. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { PostgresStore, RunEngine } from 'runwright/agent'
import type { RunCreated } from '../../../lib/agent/events.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { testTreeRetention } from '../../agent/stores/tree-retention.js'
import { scratch } from '../../helpers/engine.js'
import { ADVISORY_LOCKS, noPostgres, openDatabase } from './postgres.js'
import { openStore } from './stores.js'

const { newSchema, pool } = await openDatabase()

describe('trees of runs in PostgreSQL', { skip: noPostgres }, () => {
  async function opened(t: TestContext): Promise<{ store: PostgresStore; schema: string }> {
    const schema = newSchema()
    return { schema, store: await openStore(t, { pool, schema, listen: false }) }
  }

  testTreeRetention('PostgresStore', async (t, retain) => {
    const { store } = await opened(t)
    return { store, nowS: Date.now() / 1000, sweep: () => store.sweep(retain) }
  })

  async function addTree(store: PostgresStore, root: string, children: number): Promise<void> {
    await store.append(root, sampleRun(root))
    for (let n = 1; n <= children; n++) {
      const place = { parentRunId: root, rootRunId: root }
      await store.append(`${root}${n}`, sampleRun(`${root}${n}`, place))
    }
  }

  async function idsIn(store: PostgresStore): Promise<string> {
    const { heads } = await store.list({ limit: 1_000 })
    return heads.map(({ details }) => details.run_id).sort().join(' ')
  }

  test('a sweep that is cut off within a tree keeps its root, and the next ends it', async (t) => {
    const { store, schema } = await opened(t)
    await addTree(store, 'a', 3)
    await addTree(store, 'b', 1)
    // Each run is a batch of its own.
    await pool.query(`UPDATE ${schema}.runs SET last_seq = 30000`)
    await pool.query(`
      CREATE FUNCTION ${schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'cut off'; END $$;
      CREATE TRIGGER refuse BEFORE DELETE ON ${schema}.runs
        FOR EACH ROW WHEN (OLD.run_id = 'a') EXECUTE FUNCTION ${schema}.refuse()`)
    await assert.rejects(store.sweep({ runs: 1 }), /cut off/)
    assert.equal(await idsIn(store), 'a b b1')
    await pool.query(`DROP TRIGGER refuse ON ${schema}.runs`)
    // The connection that has failed gives up its lock when the server sees that it is gone.
    const locks = `SELECT 1 ${ADVISORY_LOCKS}`
    while ((await pool.query(locks)).rowCount !== 0);
    assert.equal(await store.sweep({ runs: 1 }), 1)
    assert.equal(await idsIn(store), 'b b1')
    const { rows } = await pool.query(`SELECT DISTINCT run_id FROM ${schema}.events ORDER BY 1`)
    assert.deepEqual(rows, [{ run_id: 'b' }, { run_id: 'b1' }])
  })

  test('trees of more runs than a batch are dropped, held-out tests included', async (t) => {
    const { store, schema } = await opened(t)
    await addTree(store, 'a', 250)
    await store.holdouts.put('a7', Buffer.from('x'))
    await addTree(store, 'b', 0)
    assert.equal(await store.sweep({ runs: 1 }), 251)
    assert.equal(await idsIn(store), 'b')
    const { rowCount } = await pool.query(`SELECT 1 FROM ${schema}.holdouts`)
    assert.equal(rowCount, 0)
  })

  test('a tree whose files are being changed is kept', async (t) => {
    const { store, schema } = await opened(t)
    await addTree(store, 'a', 2)
    await pool.query(`UPDATE ${schema}.runs SET operates = true WHERE run_id = 'a2'`)
    assert.equal(await store.sweep({ runs: 0, days: 1 }), 0)
    await pool.query(`UPDATE ${schema}.runs SET operates = false`)
    assert.equal(await store.sweep({ runs: 0, days: 1 }), 3)
  })

  test('a run starts others only in the process that holds it', async (t) => {
    const { store: first, schema } = await opened(t)
    const second = await openStore(t, { pool, schema, listen: false, leaseMs: 600_000 })
    const terms = { cwdPolicy: 'queue', maxQueued: 9, keysSince: 0 } as const
    const begin = async (store: PostgresStore, runId: string, parent?: string): Promise<string> => {
      const place = parent === undefined ? {} : { parentRunId: parent, rootRunId: parent }
      const [created] = sampleRun(runId, { cwd: `/${runId}`, status: 'pending', ...place })
      const admission = { ...terms, created: created as RunCreated, parent }
      return (await store.shared.admit(admission)).outcome
    }
    assert.equal(await begin(first, 'a'), 'admitted')
    assert.equal(await begin(first, 'a1', 'a'), 'parent_lost', 'nobody holds it')
    assert.equal((await first.shared.claim(1)).length, 1)
    assert.equal(await begin(second, 'a1', 'a'), 'parent_lost', 'another one holds it')
    assert.equal(await begin(first, 'a1', 'a'), 'admitted')
    await pool.query(`UPDATE ${schema}.runs SET fence = fence + 1 WHERE run_id = 'a'`)
    assert.equal(await begin(first, 'a2', 'a'), 'parent_lost', 'it was claimed since')
    assert.equal(await idsIn(first), 'a a1')
  })

  test('what asks under an earlier claim of the same process starts no run', async (t) => {
    const { store, schema } = await opened(t)
    const [parent] = sampleRun('a', { cwd: '/a', status: 'pending' })
    await store.append('a', [parent!])
    assert.equal((await store.shared.claim(1)).length, 1)
    const connection = await pool.connect()
    try {
      const lock = 'SELECT pg_advisory_lock(hashtext($1), 2)'
      await connection.query(lock, [`"${schema}"`])
      const place = { cwd: '/a1', status: 'pending', parentRunId: 'a', rootRunId: 'a' } as const
      const [created] = sampleRun('a1', place)
      const terms = { cwdPolicy: 'queue', maxQueued: 9, keysSince: 0, parent: 'a' } as const
      const asked = store.shared.admit({ ...terms, created: created as RunCreated })
      const waits = `SELECT 1 ${ADVISORY_LOCKS} AND NOT granted`
      while ((await pool.query(waits)).rowCount === 0);
      await store.shared.release('a')
      assert.equal((await store.shared.claim(1)).length, 1, 'claimed again')
      await connection.query('SELECT pg_advisory_unlock_all()')
      assert.equal((await asked).outcome, 'parent_lost')
      assert.equal(await idsIn(store), 'a')
    } finally {
      connection.release()
    }
  })

  test('any process deletes a tree, with its messages and held-out tests', async (t) => {
    const { store, schema } = await opened(t)
    await addTree(store, 'a', 2)
    await addTree(store, 'b', 1)
    await store.holdouts.put('a1', Buffer.from('x'))
    await pool.query(`INSERT INTO ${schema}.messages (run_id, message_id, message)
      VALUES ('a2', 'm', '{}')`)
    const other = new PostgresStore({ pool, schema, listen: false })
    const engine = await RunEngine.open({ store: other, roots: [scratch(t)] })
    t.after(() => engine.close())
    await assert.rejects(engine.delete('a1'), { problem: 'child', message: /delete its root a$/ })
    await engine.delete('a')
    assert.equal(await idsIn(store), 'b b1')
    for (const table of ['messages', 'holdouts'])
      assert.equal((await pool.query(`SELECT 1 FROM ${schema}.${table}`)).rowCount, 0)
    const { rows } = await pool.query(`SELECT DISTINCT run_id FROM ${schema}.events ORDER BY 1`)
    assert.deepEqual(rows, [{ run_id: 'b' }, { run_id: 'b1' }])
  })
})
