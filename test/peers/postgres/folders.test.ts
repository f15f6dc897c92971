/** Folders of a PostgresStore: nested ones exclude each other, and each belongs to one tenant. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import * as current from 'runwright/agent'
import type { PostgresStore, PostgresStoreOptions } from 'runwright/agent'
import type { RunCreated } from '../../../lib/agent/events.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { Random } from '../../helpers/random.js'
import { noPostgres, openDatabase } from './postgres.js'
import { openStore, wrap } from './stores.js'

const BUNDLE = new URL('../../fixtures/versions/agent-1.mjs', import.meta.url)
const { newSchema, pool } = await openDatabase()
let runs = 0

/** What a run is admitted with. */
interface Wanted {
  readonly cwd: string
  readonly tenant?: string | null
  readonly cwdPolicy?: 'queue' | 'reject' | 'allow'
}

async function admit(store: PostgresStore, runId: string, wanted: Wanted): Promise<string> {
  const { cwd, tenant = null, cwdPolicy = 'queue' } = wanted
  const [created] = sampleRun(runId, { cwd, tenant, status: 'pending' })
  const admission = { created: created as RunCreated, cwdPolicy, maxQueued: 1e6, keysSince: 0 }
  return (await store.shared.admit(admission)).outcome
}

async function claim(store: PostgresStore, slots: number): Promise<readonly string[]> {
  return (await store.shared.claim(slots)).map(({ runId }) => runId)
}

async function end(store: PostgresStore, runId: string): Promise<void> {
  const { last_seq } = (await store.head(runId))!.details
  const all = sampleRun(runId, { status: 'failed', records: last_seq + 2 })
  await store.append(runId, all.slice(last_seq))
}

describe('folders of PostgresStore', { skip: noPostgres }, () => {
  const open = (
    t: TestContext,
    schema: string,
    more: Partial<PostgresStoreOptions> = {},
  ): Promise<PostgresStore> =>
    openStore(t, { pool, schema, listen: false, leaseMs: 600_000, ...more })

  for (const [first, second, excluded] of [
    ['/a', '/a', true],
    ['/a', '/a/b', true],
    ['/a/b/c', '/a', true],
    ['/', '/a/b', true],
    ['/a/b', '/', true],
    ['/a', '/ab', false],
    ['/a', '/a0', false],
    ['/a_b', '/axb/c', false],
    ['/a%', '/a/b', false],
    ['/A', '/a', false],
    ['/a/b', '/a/c', false],
    ['/ä', '/ä/b', true],
    ['/a\\', '/a\\/b', true],
    ['/a\\', '/a/b', false],
    ['/a"', '/a"/b', true],
    ['/a"cwd":"/x', '/x', false],
    ['/a\n', '/a\n/b', true],
    [`/${'x'.repeat(200)}/${'y'.repeat(600)}/a`, `/${'x'.repeat(200)}`, true],
    [`/${'x'.repeat(200)}`, `/${'x'.repeat(200)}/${'y'.repeat(600)}/a`, true],
  ] as const) {
    const show = (path: string): string => JSON.stringify(path.slice(0, 20))
    test(`${show(first)} ${excluded ? 'excludes' : 'does not exclude'} ${show(second)}`, async (t) => {
      const [one, two] = await Promise.all(['', ''].map(() => open(t, 's')))
      const id = `${runs++}`
      t.after(() => pool.query('DELETE FROM s.runs'))
      assert.equal(await admit(one!, `${id}a`, { cwd: first }), 'admitted')
      assert.deepEqual(await claim(one!, 1), [`${id}a`])
      const refused = excluded ? 'cwd_busy' : 'admitted'
      assert.equal(await admit(two!, `${id}r`, { cwd: second, cwdPolicy: 'reject' }), refused)
      if (!excluded) return
      assert.equal(await admit(two!, `${id}b`, { cwd: second }), 'admitted')
      assert.deepEqual(await claim(two!, 9), [])
      await end(one!, `${id}a`)
      assert.deepEqual(await claim(two!, 9), [`${id}b`])
    })
  }

  test('random runs of three processes never share folders, and none is passed unfairly', async (t) => {
    for (let seed = 1; seed <= 3; seed++) {
      const random = new Random(seed)
      const schema = `r${seed}`
      const stores = await Promise.all([1, 2, 3].map(() => open(t, schema)))
      let waiting: { readonly runId: string; readonly cwd: string }[] = []
      const held = new Map<string, { readonly cwd: string; readonly store: PostgresStore }>()
      for (let step = 0; step < 60 || waiting.length + held.size > 0; step++) {
        const store = random.pick(stores)
        if (step < 60 && random.chance(0.5)) {
          const names = Array.from({ length: random.integer(0, 4) }, () =>
            random.pick(['a', 'ab', 'b_', '%']),
          )
          const run = { runId: `${step}`, cwd: `/${names.join('/')}` }
          await admit(store, run.runId, run)
          waiting.push(run)
        } else if (random.chance(0.6)) {
          const taken = [...held.values()].map(({ cwd }) => cwd)
          const may = waiting.filter(({ cwd }, i) => {
            const earlier = waiting.slice(0, i).map((run) => run.cwd)
            return ![...taken, ...earlier].some((other) => overlap(other, cwd))
          })
          const slots = random.integer(1, 4)
          const expected = may.slice(0, slots)
          const claimed = await claim(store, slots)
          assert.deepEqual(claimed, expected.map(({ runId }) => runId), `seed ${seed}, ${step}`)
          for (const { runId, cwd } of expected) held.set(runId, { cwd, store })
          waiting = waiting.filter((run) => !expected.includes(run))
        } else if (held.size > 0) {
          const runId = random.pick([...held.keys()])
          await end(held.get(runId)!.store, runId)
          held.delete(runId)
        }
      }
    }
  })

  test('a process of version 1 claims nothing in, above or below a folder in use', async (t) => {
    const old = (await import(BUNDLE.href)) as typeof current
    const schema = newSchema()
    const options = { pool, schema, listen: false as const, leaseMs: 600_000 }
    const earlier = new old.PostgresStore(options)
    await earlier.open()
    t.after(() => earlier.close())
    // Admitted, and one of them claimed, before the tables had places.
    await admit(earlier, 'old', { cwd: '/srv/old/in' })
    assert.deepEqual(await claim(earlier, 1), ['old'])
    await admit(earlier, 'waits', { cwd: '/srv/old' })
    const store = await open(t, schema)
    await admit(earlier, 'also waits', { cwd: '/srv/old/in/deep' })
    await admit(store, 'new', { cwd: '/srv/new' })
    assert.deepEqual(await claim(store, 9), ['new'])
    await admit(earlier, 'later', { cwd: '/srv/new/in' })
    await admit(store, 'root', { cwd: '/' })
    assert.deepEqual(await claim(earlier, 9), [])
    await end(store, 'new')
    await end(earlier, 'old')
    // It does not know that runs of nested folders wait in order, but never gives both a folder.
    const first = await claim(earlier, 9)
    assert.equal(first.length, 2)
    for (const runId of first) await end(earlier, runId)
    const rest = [...(await claim(earlier, 9)), ...(await claim(store, 9))]
    assert.ok(rest.length > 0)
  })

  test('labels keep equal paths of several machines apart', async (t) => {
    const labelsFor: PostgresStoreOptions['labelsFor'] = ({ goal }) => [goal]
    const schema = newSchema()
    const store = await open(t, schema, { labelsFor, labels: ['x', 'y'] })
    for (const [i, goal, tenant] of [[1, 'x', 'a'], [2, 'y', 'b'], [3, 'x', 'a']] as const) {
      const [created] = sampleRun(`${i}`, { goal, tenant, cwd: '/srv/p', status: 'pending' })
      const admission = { created: created as RunCreated, maxQueued: 9, keysSince: 0 }
      const { outcome } = await store.shared.admit({ ...admission, cwdPolicy: 'queue' })
      assert.equal(outcome, 'admitted')
    }
    assert.deepEqual(await claim(store, 9), ['1', '2'])
  })

  for (const cwdPolicy of ['queue', 'allow', 'reject'] as const) {
    test(`a folder belongs to the tenant that has runs there: ${cwdPolicy}`, async (t) => {
      const old = (await import(BUNDLE.href)) as typeof current
      const schema = newSchema()
      const earlier = new old.PostgresStore({ pool, schema, listen: false })
      await earlier.open()
      t.after(() => earlier.close())
      await admit(earlier, 'old', { cwd: '/srv/old', tenant: 'a', cwdPolicy })
      const [one, two] = await Promise.all([open(t, schema), open(t, schema)])
      assert.equal(await admit(one, 'a', { cwd: '/srv/a/in', tenant: 'a', cwdPolicy }), 'admitted')
      await admit(earlier, 'beside', { cwd: '/srv/beside', tenant: 'a', cwdPolicy })
      for (const cwd of ['/', '/srv/a', '/srv/a/in', '/srv/a/in/b', '/srv/old/x', '/srv/beside']) {
        assert.equal(await admit(two, 'b', { cwd, tenant: 'b', cwdPolicy }), 'foreign_folder', cwd)
        assert.equal(await admit(two, 'n', { cwd, cwdPolicy }), 'foreign_folder', cwd)
        assert.equal(await two.hasForeignRun(cwd, 'b'), true)
        assert.equal(await two.hasForeignRun(cwd, 'a'), false)
      }
      assert.equal(await admit(two, 'b', { cwd: '/srv/ab', tenant: 'b', cwdPolicy }), 'admitted')
      await two.delete('a')
      assert.equal(await admit(two, 'c', { cwd: '/srv/a', tenant: 'b', cwdPolicy }), 'admitted')
    })
  }

  test('of two tenants that are admitted to overlapping folders at once, one is refused', async (t) => {
    const schema = newSchema()
    const stores = await Promise.all([open(t, schema), open(t, schema)])
    for (let i = 0; i < 10; i++) {
      const outcomes = await Promise.all([
        admit(stores[0]!, `a${i}`, { cwd: `/${i}/in`, tenant: 'a' }),
        admit(stores[1]!, `b${i}`, { cwd: `/${i}`, tenant: 'b' }),
      ])
      assert.deepEqual(outcomes.sort(), ['admitted', 'foreign_folder'])
    }
  })

  test('ten thousand runs that wait for folders cost a claim a bounded number of rows', async (t) => {
    const schema = newSchema()
    let rows = 0
    const counting = wrap(pool, async (client, query) => {
      const result = await client.query(query)
      if (query.name === 'runwright_candidates') rows += result.rows.length
      return result
    })
    const store = await openStore(t, { pool: counting, schema, listen: false, leaseMs: 600_000 })
    await admit(store, 'seed', { cwd: '/seed' })
    await pool.query(`INSERT INTO ${schema}.runs (run_id, created_ms, status, goal_hash, model_name,
        fixed, head, last_seq, folder)
      SELECT 'w' || i, 1, 'pending', 'x', 'm',
        replace(fixed::text, '"/seed"', '"/w/' || i % 5000 || '"')::json, head, 1, 'w' || i % 5000
      FROM ${schema}.runs, generate_series(1, 10000) i WHERE run_id = 'seed'`)
    await pool.query(`ANALYZE ${schema}.runs`)
    assert.equal((await claim(store, 4)).length, 4)
    assert.ok(rows <= 2 * (4 + 64), `${rows} rows`)
  })
})

function overlap(a: string, b: string): boolean {
  const [outer, inner] = a.length <= b.length ? [a, b] : [b, a]
  return outer === '/' || outer === inner || inner.startsWith(`${outer}/`)
}
