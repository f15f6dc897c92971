/** Lists in the order of folders, end reasons and parents. @module */
import assert from 'node:assert/strict'
import type { OrderField } from '../../../internal/run-sorts.js'
import type { RunQuery, RunStore } from '../../store.js'
import { sampleRun, type SampleRunOptions } from '../sample-records.js'
import { add, idsOf, listAll, type Suite } from './suite.js'

type Sample = SampleRunOptions & { readonly id: string }

const T = 1_700_000_000
const LONG = `/${'x'.repeat(600)}`

/** In the order of creation; the letters are in the order of folders, by code points. */
const FOLDERS: readonly Sample[] = [
  { id: 'f', cwd: '/a/b', status: 'running', tenant: 'blue' },
  { id: 'b', cwd: '/B' },
  { id: 'k', cwd: '/\u{1f600}' },
  { id: 'c', cwd: '/a' },
  { id: 'a', cwd: '', status: 'pending' },
  { id: 'd', cwd: '/a', status: 'failed' },
  { id: 'j', cwd: '/\uffee', status: 'aborted' },
  { id: 'h', cwd: '/b"' },
  { id: 'i', cwd: '/ü', status: 'running' },
  { id: 'e', cwd: '/a', tenant: 'blue' },
  { id: 'g', cwd: '/a1', status: 'failed' },
]

/** A run with two attempts, of which one has a delegate; a retry of it; another tree. */
const TREES: readonly Sample[] = [
  { id: 'r' },
  { id: 'p', rootRunId: 'r', parentRunId: 'r', status: 'running' },
  { id: 'q', rootRunId: 'r', parentRunId: 'r' },
  { id: 'd', rootRunId: 'r', parentRunId: 'p', role: 'delegate' },
  { id: 'y', parentRunId: 'r' },
  { id: 's', status: 'running' },
  { id: 'c', rootRunId: 's', parentRunId: 's', tenant: 'blue' },
]

/** Without a reason first, by creation; then those that achieved their goal; then the others. */
const BY_REASON = 'faibkchedjg'

const ORDERS: readonly {
  readonly sort: OrderField
  readonly runs: readonly Sample[]
  readonly ids: string
}[] = [
  { sort: 'cwd', runs: FOLDERS, ids: 'abcdefghijk' },
  { sort: 'end_reason', runs: FOLDERS, ids: BY_REASON },
  { sort: 'parent', runs: TREES, ids: 'rysdpqc' },
]

/** Of {@link FOLDERS}. */
const CONDITIONS: readonly { readonly query: RunQuery; readonly ids: string }[] = [
  { query: { limit: 1, tenant: 'blue', status: ['running', 'achieved'], sort: 'cwd' }, ids: 'ef' },
  { query: { limit: 2, createdAfter: T + 1, createdBefore: T + 5, sort: '-cwd' }, ids: 'kca' },
  { query: { limit: 1, cwd: '/a', sort: '-cwd' }, ids: 'edc' },
  { query: { limit: 1, status: ['failed'], sort: '-end_reason' }, ids: 'gd' },
]

async function fill(store: RunStore, runs: readonly Sample[] = FOLDERS): Promise<void> {
  for (const [i, { id, ...options }] of runs.entries())
    await add(store, id, { createdAt: T + i, ...options })
}

export function testListOrders(suite: Suite): void {
  testFieldOrders(suite)
  testOrderChanges(suite)
}

function testFieldOrders({ test }: Suite): void {
  for (const { sort, runs, ids } of ORDERS) {
    test(`runs are listed by ${sort}, both ways, in pages of any size`, async (store) => {
      await fill(store, runs)
      for (const limit of [1, 2, 3, 100]) {
        assert.equal((await listAll(store, { limit, sort })).join(''), ids)
        const down = await listAll(store, { limit, sort: `-${sort}` })
        assert.equal(down.reverse().join(''), ids)
      }
    })
  }

  test('an order by a field goes with every condition', async (store) => {
    await fill(store)
    for (const { query, ids } of CONDITIONS)
      assert.equal((await listAll(store, query)).join(''), ids)
  })

  test('folders that only differ far behind have an order, whatever it is', async (store) => {
    for (const [i, end] of ['c', 'a', 'b', 'a', 'c'].entries())
      await add(store, `long-${i}`, { createdAt: T + i, cwd: LONG + end })
    const all = await listAll(store, { limit: 100, sort: 'cwd' })
    assert.deepEqual(await listAll(store, { limit: 1, sort: 'cwd' }), all)
    // Those of one folder are together.
    for (const [one, other] of [['long-0', 'long-4'], ['long-1', 'long-3']] as const)
      assert.equal(all.indexOf(other) - all.indexOf(one), 1)
  })
}

function testOrderChanges({ test }: Suite): void {
  test('a cursor of an order by a field remains correct while runs change', async (store) => {
    await fill(store)
    const next = { limit: 100, sort: 'cwd' } as const
    const first = await store.list({ limit: 4, sort: 'cwd' })
    assert.equal(first.heads.at(-1)?.details.run_id, 'd')
    await add(store, 'new', { createdAt: T + 100, cwd: '/a' })
    await add(store, 'old', { createdAt: T - 100, cwd: '/a' })
    await store.delete('d')
    await store.delete('f')
    const rest = await store.list({ ...next, cursor: first.next ?? '' })
    assert.deepEqual(idsOf(rest), ['e', 'new', 'g', 'h', 'i', 'j', 'k'])
  })

  test('a run that ends goes to its reason', async (store) => {
    await fill(store)
    const sort = 'end_reason'
    assert.deepEqual((await listAll(store, { limit: 3, sort })).join(''), BY_REASON)
    const records = sampleRun('z', { createdAt: T + 50, status: 'failed' })
    await store.append('z', records.slice(0, 2))
    assert.equal((await listAll(store, { limit: 3, sort })).join(''), BY_REASON.replace('i', 'iz'))
    await store.append('z', records.slice(2))
    assert.equal((await listAll(store, { limit: 3, sort })).join(''), `${BY_REASON}z`)
    await store.delete('z')
    assert.equal((await listAll(store, { limit: 3, sort })).join(''), BY_REASON)
  })

  test('a cursor of one order is refused in another, and so is a made-up one', async (store) => {
    await fill(store)
    const { next } = await store.list({ limit: 1, sort: 'cwd' })
    for (const sort of ['-cwd', 'end_reason', 'created_at', undefined] as const) {
      const other = { limit: 1, sort, cursor: next ?? '' }
      await assert.rejects(store.list(other), { code: 'ERR_AGENT_INVALID_REQUEST' })
    }
    // What a caller changes in one moves it, and breaks nothing.
    const odd = Buffer.from(JSON.stringify([0, '\0', 'cwd', '\0\ud800'])).toString('base64url')
    await store.list({ limit: 1, sort: 'cwd', cursor: odd })
  })
}
