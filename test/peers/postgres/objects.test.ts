/** Blobs in PostgreSQL: the contract, and what a real server adds to it. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test, type TestContext } from 'node:test'
import { PostgresStore, type ObjectStore } from 'runwright/agent'
import { testObjectStore } from 'runwright/agent/testing'
import { blob, HOUR_MS } from '../../../lib/agent/testing/object-contract/suite.js'
import { noPostgres, openDatabase } from './postgres.js'

const { newSchema, pool } = await openDatabase()
const schemaOf = new WeakMap<object, string>()

async function open(t: TestContext, schema = newSchema()): Promise<ObjectStore> {
  const store = new PostgresStore({ pool, schema })
  await store.open()
  t.after(() => store.close())
  schemaOf.set(store.objects, schema)
  return store.objects
}

async function damage(objects: ObjectStore, hash: string): Promise<void> {
  const change = 'SET data = set_byte(data, length(data) / 2, get_byte(data, 20) # 255)'
  const schema = schemaOf.get(objects)
  await pool.query(`UPDATE ${schema}.objects ${change} WHERE hash = $1 AND chunks = 0`, [hash])
}

testObjectStore('PostgresStore', (t) => open(t), {
  skip: noPostgres,
  reopen: async (objects, t) => {
    await objects.close?.()
    return await open(t, schemaOf.get(objects))
  },
  connect: (objects, t) => open(t, schemaOf.get(objects)),
  damage,
})

describe('blobs in PostgreSQL', { skip: noPostgres }, () => {
  test('what any process used is kept for an hour', async (t) => {
    const one = await open(t)
    const schema = schemaOf.get(one) as string
    const other = await open(t, schema)
    const age = `UPDATE ${schema}.objects SET used_at = used_at - interval '70 minutes'`
    const blobs = ['stored', 'found', 'stored again', 'neither'].map((text) => blob(text))
    const [stored, found, again, neither] = blobs.map(({ hash }) => hash) as string[]
    await one.put(blobs)
    await pool.query(age)
    await one.delete([stored as string], HOUR_MS)
    await one.put(blobs.slice(0, 1))
    await other.has([found as string])
    await other.put(blobs.slice(2, 3))
    await one.delete(blobs.map(({ hash }) => hash), HOUR_MS)
    assert.deepEqual(await one.list(null, 10), [stored, found, again].sort())
    assert.equal(await other.get(neither as string), null)
  })

  test('a blob that another process is about to remove is not found', async (t) => {
    const objects = await open(t)
    const schema = schemaOf.get(objects) as string
    const { hash } = blob('content')
    await objects.put([blob('content')])
    await pool.query(`UPDATE ${schema}.objects SET used_at = used_at - interval '2 hours'`)
    const other = await pool.connect()
    await other.query(`BEGIN; DELETE FROM ${schema}.objects`)
    const found = objects.has([hash])
    const waiting = `SELECT 1 FROM pg_stat_activity
      WHERE wait_event_type = 'Lock' AND datname = current_database()`
    while ((await pool.query(waiting)).rowCount === 0);
    await other.query('COMMIT')
    other.release()
    assert.deepEqual([...(await found)], [])
  })

  test('a blob that another process is using is not removed', async (t) => {
    const objects = await open(t)
    const schema = schemaOf.get(objects) as string
    const { hash } = blob('content')
    await objects.put([blob('content')])
    await pool.query(`UPDATE ${schema}.objects SET used_at = used_at - interval '2 hours'`)
    const other = await pool.connect()
    await other.query(`BEGIN; UPDATE ${schema}.objects SET used_at = now()`)
    const removed = objects.delete([hash], HOUR_MS)
    const waiting = `SELECT 1 FROM pg_stat_activity
      WHERE wait_event_type = 'Lock' AND datname = current_database()`
    while ((await pool.query(waiting)).rowCount === 0);
    await other.query('COMMIT')
    other.release()
    await removed
    assert.ok((await objects.get(hash)) !== null)
  })

  test('a large blob whose writer died in the middle is completed by another one', async (t) => {
    const objects = await open(t)
    const schema = schemaOf.get(objects) as string
    const large = blob(randomBytes(5_000_000))
    await objects.put([large])
    const { rows } = await pool.query<{ bytes: number }>(
      `SELECT length(data) AS bytes FROM ${schema}.object_chunks ORDER BY number`)
    assert.equal(rows.length, 5)
    assert.ok(rows.every(({ bytes }) => bytes <= 1 << 20), 'a chunk has at most 1 MiB')
    for (const lost of ['number > 1', 'number < 3', 'true']) {
      await pool.query(`UPDATE ${schema}.objects SET stored = false`)
      await pool.query(`DELETE FROM ${schema}.object_chunks WHERE ${lost}`)
      assert.equal(await objects.get(large.hash), null)
      assert.deepEqual([...(await objects.has([large.hash]))], [])
      assert.deepEqual(await objects.list(null, 10), [large.hash], 'it can be removed')
      await objects.put([large])
      assert.ok(Buffer.from(large.content).equals((await objects.get(large.hash)) as Uint8Array))
    }
    await objects.delete([large.hash], 0)
    const left = await pool.query(`SELECT 1 FROM ${schema}.object_chunks`)
    assert.equal(left.rowCount, 0)
  })

  test('content that is well-formed but another one is damage, which is named', async (t) => {
    const objects = await open(t)
    const schema = schemaOf.get(objects) as string
    const [stored, other] = [blob('what was stored'), blob('something else')]
    await objects.put([stored, other])
    await pool.query(
      `UPDATE ${schema}.objects SET data = (SELECT data FROM ${schema}.objects WHERE hash = $2)
       WHERE hash = $1`,
      [stored.hash, other.hash],
    )
    const corrupt = { code: 'ERR_AGENT_STORE_CORRUPT', message: new RegExp(stored.hash) }
    await assert.rejects(objects.get(stored.hash), corrupt)
    await objects.put([stored])
    assert.equal(Buffer.from((await objects.get(stored.hash))!).toString(), 'what was stored')
  })

  test('a large blob that others removed and began anew meanwhile is stored whole', async (t) => {
    const objects = await open(t)
    const schema = schemaOf.get(objects) as string
    await pool.query(`
      CREATE TABLE ${schema}.removals (at timestamptz);
      CREATE FUNCTION ${schema}.remove_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NOT EXISTS (SELECT 1 FROM ${schema}.removals) THEN
          INSERT INTO ${schema}.removals VALUES (now());
          DELETE FROM ${schema}.object_chunks WHERE number < NEW.number;
        END IF;
        RETURN NEW;
      END $$;
      CREATE TRIGGER remove_once BEFORE INSERT ON ${schema}.object_chunks
        FOR EACH ROW WHEN (NEW.number = 2) EXECUTE FUNCTION ${schema}.remove_once()`)
    const large = blob(randomBytes(3_000_000))
    await objects.put([large])
    assert.equal((await pool.query(`SELECT 1 FROM ${schema}.removals`)).rowCount, 1)
    assert.ok(Buffer.from(large.content).equals((await objects.get(large.hash)) as Uint8Array))
  })

  test('a lost chunk is damage, which is named and listed', async (t) => {
    const schema = newSchema()
    const store = new PostgresStore({ pool, schema })
    await store.open()
    t.after(() => store.close())
    const large = blob(randomBytes(3_000_000))
    await store.objects.put([large])
    assert.deepEqual(store.damage(), { runs: [], files: [] })
    await pool.query(`DELETE FROM ${schema}.object_chunks WHERE number = 1`)
    const corrupt = { code: 'ERR_AGENT_STORE_CORRUPT', message: new RegExp(large.hash) }
    await assert.rejects(store.objects.get(large.hash), corrupt)
    assert.match(store.damage().files.join(), new RegExp(large.hash))
    await store.objects.put([large])
    assert.deepEqual(store.damage().files, [])
    assert.equal((await store.objects.get(large.hash))?.length, 3_000_000)
  })

  test('one of all processes may sweep, once in a while', async (t) => {
    const one = await open(t)
    const other = await open(t, schemaOf.get(one))
    const claims = await Promise.all([one, other, one, other].map((o) => o.claimSweep?.(HOUR_MS)))
    assert.equal(claims.filter(Boolean).length, 1)
    assert.equal(await other.claimSweep?.(HOUR_MS), false)
    await pool.query(`UPDATE ${schemaOf.get(one)}.sweeps
      SET begun_at = begun_at - interval '61 minutes'`)
    assert.equal(await other.claimSweep?.(HOUR_MS), true)
    assert.equal(await one.claimSweep?.(HOUR_MS), false)
  })
})
