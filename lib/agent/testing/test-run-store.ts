/**
 * The contract of `RunStore`, sentence by sentence, as tests for `node:test`.
 *
 * @module
 */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { StoreError, type StoreErrorCode } from '../errors.js'
import type { RunOwner, RunRecord, RunStatus } from '../events.js'
import { foldHead, type RunHead } from '../run-details.js'
import type { RunQuery, RunStore } from '../store.js'
import { sampleRun, type SampleRunOptions } from './sample-records.js'

/** Options of {@link testRunStore}. */
export interface TestRunStoreOptions {
  /**
   * Closes the store and opens the same data again, as a restart would. Without it the tests of
   * durability are left out: for stores that keep nothing.
   */
  readonly reopen?: ((store: RunStore, t: TestContext) => Promise<RunStore>) | undefined
}

/**
 * Checks an implementation of `RunStore` against its contract. Call it at the top of a test file;
 * it defines a suite of tests.
 *
 * @param open - makes an empty store and calls its `open()`; the suite closes it. What has to be
 * cleaned up afterwards belongs into `t.after()`.
 *
 * @example
 * ```ts
 * import { MemoryStore } from 'runwright/agent'
 * import { testRunStore } from 'runwright/agent/testing'
 *
 * testRunStore('MemoryStore', async () => {
 *   const store = new MemoryStore()
 *   await store.open()
 *   return store
 * })
 * ```
 */
export function testRunStore(
  name: string,
  open: (t: TestContext) => Promise<RunStore>,
  options: TestRunStoreOptions = {},
): void {
  const suite: Suite = {
    test(title, body) {
      test(title, async (t) => {
        const store = await open(t)
        try {
          await body(store, t)
        } finally {
          await store.close()
        }
      })
    },
  }
  describe(`${name} keeps the contract of RunStore`, () => {
    testAppends(suite)
    testReads(suite)
    testHeads(suite)
    testLists(suite)
    testKeys(suite)
    testDeletes(suite)
    testConcurrency(suite)
    testClosing(suite)
    if (options.reopen !== undefined) testDurability(suite, options.reopen)
  })
}

interface Suite {
  test(title: string, body: (store: RunStore, t: TestContext) => Promise<void>): void
}

const ALL = 1_000_000

async function add(
  store: RunStore,
  runId: string,
  options?: SampleRunOptions,
): Promise<RunRecord[]> {
  const records = sampleRun(runId, options)
  await store.append(runId, records)
  return records
}

function rejectsWith(code: StoreErrorCode): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof StoreError, `expected a StoreError, got ${String(error)}`)
    assert.equal(error.code, code)
    return true
  }
}

function fold(records: readonly RunRecord[]): RunHead {
  const head = records.reduce<RunHead | null>(foldHead, null)
  assert.ok(head !== null)
  return head
}

function testAppends({ test }: Suite): void {
  test('records come back as they were appended', async (store) => {
    const text = '" and \\, a line\nend, a null \u0000, ü, 漢字, 🙂, \u2028, a lone \ud800'
    const records = await add(store, 'a', { text, records: 6, goal: text })
    assert.deepEqual(await store.read('a', 0, ALL), records)
  })

  test('appends to one run follow one another', async (store) => {
    const records = sampleRun('a', { records: 7 })
    for (const record of records) await store.append('a', [record])
    assert.deepEqual(await store.read('a', 0, ALL), records)
  })

  test('the caller may change its array once append was called', async (store) => {
    const records = sampleRun('a')
    const passed = [...records]
    const appended = store.append('a', passed)
    passed.length = 0
    await appended
    assert.deepEqual(await store.read('a', 0, ALL), records)
  })

  test('a record larger than a megabyte is kept whole', async (store) => {
    const records = await add(store, 'a', { text: 'large '.repeat(300_000) })
    assert.deepEqual(await store.read('a', 0, ALL), records)
  })

  for (const { title, seqs } of [
    { title: 'a gap', seqs: [6] },
    { title: 'a repetition', seqs: [4] },
    { title: 'a gap within the call', seqs: [5, 7] },
    { title: 'a start over', seqs: [1] },
  ]) {
    test(`${title} is refused, and nothing of the call is kept`, async (store) => {
      const records = await add(store, 'a', { status: 'running', records: 4 })
      const last = records.at(-1) as RunRecord
      const wrong = seqs.map((seq): RunRecord => ({ ...last, seq }))
      await assert.rejects(store.append('a', wrong), rejectsWith('ERR_AGENT_SEQ_CONFLICT'))
      assert.deepEqual(await store.read('a', 0, ALL), records)
      await store.append('a', [{ ...last, seq: 5 }])
      assert.equal((await store.head('a'))?.details.last_seq, 5)
    })
  }

  test('a run that does not begin with its first record is refused', async (store) => {
    const records = sampleRun('a')
    await assert.rejects(store.append('a', records.slice(1)), rejectsWith('ERR_AGENT_SEQ_CONFLICT'))
    assert.equal(await store.head('a'), null)
  })

  test('of two writers of the same record one is refused', async (store) => {
    const [created, ...rest] = sampleRun('a') as [RunRecord, ...RunRecord[]]
    await store.append('a', [created])
    const outcomes = await Promise.allSettled([store.append('a', rest), store.append('a', rest)])
    assert.deepEqual(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    const refused = outcomes.find((outcome) => outcome.status === 'rejected')
    rejectsWith('ERR_AGENT_SEQ_CONFLICT')(refused?.reason)
    assert.deepEqual(await store.read('a', 0, ALL), [created, ...rest])
  })

  test('appends of one run that do not wait for one another keep their order', async (store) => {
    const records = sampleRun('a', { records: 50 })
    await Promise.all(records.map((record) => store.append('a', [record])))
    assert.deepEqual(await store.read('a', 0, ALL), records)
  })

  test('unknown kinds are kept and change nothing but the place in the log', async (store) => {
    const records = await add(store, 'a', { status: 'running', records: 3 })
    const unknown = { ...records[2], seq: 4, kind: 'from_the_future', payload: { x: 1 } }
    const future = unknown as unknown as RunRecord
    await store.append('a', [future])
    assert.deepEqual(await store.read('a', 3, ALL), [future])
    assert.deepEqual(await store.head('a'), fold([...records, future]))
  })
}

function testReads({ test }: Suite): void {
  test('an unknown run has no records', async (store) => {
    assert.deepEqual(await store.read('nobody', 0, ALL), [])
  })

  for (const { after, limit, seqs } of [
    { after: 0, limit: 3, seqs: [1, 2, 3] },
    { after: 3, limit: 4, seqs: [4, 5, 6, 7] },
    { after: 8, limit: 100, seqs: [9, 10] },
    { after: 10, limit: 1, seqs: [] },
    { after: 99, limit: 1, seqs: [] },
  ]) {
    test(`reading after ${after} at most ${limit} of 10 records gives [${seqs.join()}]`, async (store) => {
      const records = sampleRun('a', { records: 10 })
      await store.append('a', records.slice(0, 4))
      await store.append('a', records.slice(4))
      const page = await store.read('a', after, limit)
      assert.deepEqual(page, records.filter(({ seq }) => seqs.includes(seq)))
    })
  }

  test('pages put together are the log', async (store) => {
    const records = await add(store, 'a', { records: 101 })
    const read: RunRecord[] = []
    for (;;) {
      const page = await store.read('a', read.length, 7)
      if (page.length === 0) break
      read.push(...page)
    }
    assert.deepEqual(read, records)
  })
}

function testHeads({ test }: Suite): void {
  test('an unknown run has no head', async (store) => {
    assert.equal(await store.head('nobody'), null)
  })

  test('the head is the fold of the records after each append', async (store) => {
    const records = sampleRun('a', { records: 6, ownerId: 'me', tenant: 't', key: 'k' })
    for (const [i, record] of records.entries()) {
      await store.append('a', [record])
      assert.deepEqual(await store.head('a'), fold(records.slice(0, i + 1)))
    }
  })

  test('a head that was given out does not change', async (store) => {
    const records = sampleRun('a')
    await store.append('a', records.slice(0, 2))
    const head = await store.head('a')
    const { heads } = await store.list({ limit: 1 })
    await store.append('a', records.slice(2))
    assert.deepEqual(head, fold(records.slice(0, 2)))
    assert.deepEqual(heads, [fold(records.slice(0, 2))])
  })

  test('runs are counted by status', async (store) => {
    const none = { pending: 0, running: 0, awaiting_human: 0, achieved: 0, failed: 0, aborted: 0 }
    assert.deepEqual(await store.counts(), none)
    const statuses = ['pending', 'running', 'running', 'awaiting_human', 'failed', 'aborted'] as const
    for (const [i, status] of statuses.entries()) await add(store, `run-${i}`, { status })
    const moving = sampleRun('moving')
    await store.append('moving', moving.slice(0, 2))
    const before = { ...none, pending: 1, running: 3, awaiting_human: 1, failed: 1, aborted: 1 }
    assert.deepEqual(await store.counts(), before)
    await store.append('moving', moving.slice(2))
    assert.deepEqual(await store.counts(), { ...before, running: 2, achieved: 1 })
  })
}

async function listAll(store: RunStore, query: Omit<RunQuery, 'cursor'>): Promise<string[]> {
  const ids: string[] = []
  let cursor: string | undefined
  for (;;) {
    const { heads, next } = await store.list({ ...query, cursor })
    ids.push(...heads.map(({ details }) => details.run_id))
    assert.ok(heads.length <= query.limit)
    if (next === null) return ids
    assert.equal(heads.length, query.limit, 'only the last page may be short')
    cursor = next
  }
}

function testLists({ test }: Suite): void {
  const T = 1_700_000_000
  const runs: readonly (SampleRunOptions & { readonly id: string })[] = [
    { id: 'c', createdAt: T, status: 'achieved', goal: 'npm-test', tenant: 'blue' },
    { id: 'a', createdAt: T + 2, status: 'running', goal: 'pytest', modelName: 'openai:x' },
    { id: 'd', createdAt: T + 1, status: 'failed', goal: 'npm-test', modelName: 'openai:x' },
    { id: 'b', createdAt: T + 1, status: 'running', goal: 'npm-test', tenant: 'blue' },
    { id: 'e', createdAt: T + 1.001, status: 'aborted', goal: 'pytest', tenant: 'blue' },
  ]
  const fill = async (store: RunStore): Promise<void> => {
    for (const { id, ...options } of runs) await add(store, id, options)
  }

  interface Case {
    readonly title: string
    readonly query: Partial<RunQuery>
    readonly ids: string
  }
  const cases: readonly Case[] = [
    { title: 'without conditions', query: {}, ids: 'aedbc' },
    { title: 'of one status', query: { status: ['running'] }, ids: 'ab' },
    { title: 'of one of two statuses', query: { status: ['failed', 'aborted'] }, ids: 'ed' },
    { title: 'with an empty list of statuses', query: { status: [] }, ids: 'aedbc' },
    { title: 'with a goal', query: { goal: 'npm-test' }, ids: 'dbc' },
    { title: 'with part of a goal', query: { goal: 'npm' }, ids: '' },
    { title: 'with a model', query: { modelName: 'openai:x' }, ids: 'ad' },
    { title: 'of a tenant', query: { tenant: 'blue' }, ids: 'ebc' },
    { title: 'of no tenant', query: { tenant: null }, ids: 'ad' },
    { title: 'created after a time', query: { createdAfter: T + 1 }, ids: 'ae' },
    { title: 'created before a time', query: { createdBefore: T + 1 }, ids: 'c' },
    { title: 'created between', query: { createdAfter: T, createdBefore: T + 2 }, ids: 'edb' },
    {
      title: 'by several conditions',
      query: { goal: 'npm-test', status: ['running'], tenant: 'blue' },
      ids: 'b',
    },
  ]
  for (const { title, query, ids } of cases) {
    test(`runs are listed newest first ${title}, in pages of any size`, async (store) => {
      await fill(store)
      for (const limit of [1, 2, 3, 100]) {
        assert.deepEqual((await listAll(store, { ...query, limit })).join(''), ids)
      }
    })
  }

  test('a list has the heads of its runs', async (store) => {
    await fill(store)
    const { heads } = await store.list({ limit: 100 })
    for (const head of heads) assert.deepEqual(head, await store.head(head.details.run_id))
  })

  test('an empty store lists nothing', async (store) => {
    assert.deepEqual(await store.list({ limit: 10 }), { heads: [], next: null })
  })

  test('a cursor stays right while runs are added and deleted', async (store) => {
    for (let i = 0; i < 10; i++) await add(store, `run-${i}`, { createdAt: T + i })
    const first = await store.list({ limit: 4 })
    await add(store, 'newer', { createdAt: T + 100 })
    await add(store, 'older', { createdAt: T - 100 })
    await store.delete('run-6') // the last of the first page
    await store.delete('run-4')
    const rest = await listAll(store, { limit: 4 })
    const second = await store.list({ limit: 100, cursor: first.next ?? '' })
    assert.deepEqual(
      second.heads.map(({ details }) => details.run_id),
      ['run-5', 'run-3', 'run-2', 'run-1', 'run-0', 'older'],
    )
    assert.equal(rest[0], 'newer')
  })

  test('a cursor that no page gave is refused', async (store) => {
    await fill(store)
    for (const cursor of ['', 'x', 'bm90IGpzb24', 'W10']) {
      await assert.rejects(store.list({ limit: 1, cursor }), { code: 'ERR_AGENT_INVALID_REQUEST' })
    }
  })
}

/** An owner of the tenant that is none. */
function ownedBy(id: string | null): RunOwner {
  return { id, tenant: null }
}

function testKeys({ test }: Suite): void {
  const T = 1_700_000_000

  test('a run is found by its owner and key', async (store) => {
    await add(store, 'a', { ownerId: 'me', key: 'k' })
    await add(store, 'b', { ownerId: null, key: 'k' })
    await add(store, 'c', { ownerId: 'me', key: 'other' })
    assert.deepEqual(await store.findByKey(ownedBy('me'), 'k', 0), await store.head('a'))
    assert.deepEqual(await store.findByKey(ownedBy(null), 'k', 0), await store.head('b'))
    assert.equal(await store.findByKey(ownedBy('you'), 'k', 0), null)
    assert.equal(await store.findByKey(ownedBy('me'), 'none', 0), null)
    assert.equal(await store.findByKey({ id: 'me', tenant: 'other' }, 'k', 0), null)
  })

  test('a run that was created before the window is not found', async (store) => {
    await add(store, 'a', { createdAt: T, key: 'k' })
    assert.equal((await store.findByKey(ownedBy(null), 'k', T))?.details.run_id, 'a')
    assert.equal(await store.findByKey(ownedBy(null), 'k', T + 1), null)
  })

  test('of two runs with the same key the one in the window is found', async (store) => {
    await add(store, 'old', { createdAt: T, key: 'k' })
    await add(store, 'new', { createdAt: T + 100, key: 'k' })
    assert.equal((await store.findByKey(ownedBy(null), 'k', T + 50))?.details.run_id, 'new')
    await store.delete('new')
    assert.equal(await store.findByKey(ownedBy(null), 'k', T + 50), null)
    assert.equal((await store.findByKey(ownedBy(null), 'k', T))?.details.run_id, 'old')
  })
}

function testDeletes({ test }: Suite): void {
  test('a deleted run is gone from everywhere, and others stay', async (store) => {
    await add(store, 'a', { key: 'k' })
    const records = await add(store, 'b', { status: 'running' })
    await store.delete('a')
    assert.deepEqual(await store.read('a', 0, ALL), [])
    assert.equal(await store.head('a'), null)
    assert.equal(await store.findByKey(ownedBy(null), 'k', 0), null)
    assert.deepEqual(await listAll(store, { limit: 10 }), ['b'])
    const counts = await store.counts()
    assert.deepEqual([counts.achieved, counts.running], [0, 1])
    assert.deepEqual(await store.read('b', 0, ALL), records)
  })

  test('deleting an unknown run, or twice, is no error', async (store) => {
    await store.delete('nobody')
    await add(store, 'a')
    await store.delete('a')
    await store.delete('a')
  })

  test('a deleted run takes no more records', async (store) => {
    const records = await add(store, 'a', { status: 'running', records: 3 })
    await store.delete('a')
    const next = { ...records[2], seq: 4 } as RunRecord
    await assert.rejects(store.append('a', [next]), rejectsWith('ERR_AGENT_SEQ_CONFLICT'))
    assert.equal(await store.head('a'), null)
  })
}

function testConcurrency({ test }: Suite): void {
  test('many runs that append at the same time do not disturb one another', async (store) => {
    const logs = Array.from({ length: 40 }, (_, i) =>
      sampleRun(`run-${i}`, { records: 10 + (i % 7) }),
    )
    await Promise.all(
      logs.map(async (records, i) => {
        for (let at = 0; at < records.length; at += 1 + (i % 3)) {
          await store.append(`run-${i}`, records.slice(at, at + 1 + (i % 3)))
        }
      }),
    )
    for (const [i, records] of logs.entries()) {
      assert.deepEqual(await store.read(`run-${i}`, 0, ALL), records)
      assert.deepEqual(await store.head(`run-${i}`), fold(records))
    }
  })

  test('a read during appends sees a beginning of the log, without a gap', async (store) => {
    const records = sampleRun('a', { records: 200 })
    const appends = records.map((record) => store.append('a', [record]))
    const pages = await Promise.all(Array.from({ length: 20 }, () => store.read('a', 0, ALL)))
    for (const page of pages) assert.deepEqual(page, records.slice(0, page.length))
    await Promise.all(appends)
    assert.deepEqual(await store.read('a', 0, ALL), records)
  })
}

function testClosing({ test }: Suite): void {
  test('closing waits for appends in flight, and closing twice is harmless', async (store) => {
    const appended = store.append('a', sampleRun('a'))
    await Promise.all([store.close(), store.close()])
    await appended
    await store.close()
  })

  test('a closed store rejects everything', async (store) => {
    await add(store, 'a')
    await store.close()
    const closed = rejectsWith('ERR_AGENT_STORE')
    await assert.rejects(store.append('b', sampleRun('b')), closed)
    await assert.rejects(store.read('a', 0, 1), closed)
    await assert.rejects(store.head('a'), closed)
    await assert.rejects(store.list({ limit: 1 }), closed)
    await assert.rejects(store.counts(), closed)
    await assert.rejects(store.findByKey(ownedBy(null), 'k', 0), closed)
    await assert.rejects(store.delete('a'), closed)
    await assert.rejects(store.open(), closed)
  })
}

function testDurability(
  { test }: Suite,
  reopen: (store: RunStore, t: TestContext) => Promise<RunStore>,
): void {
  test('everything is there again after a restart', async (store, t) => {
    const runs: (readonly [string, RunRecord[]])[] = []
    const statuses = Object.keys(await store.counts()) as RunStatus[]
    for (let i = 0; i < 30; i++) {
      const status = statuses[i % statuses.length]
      const runId = `run-${i}`
      runs.push([runId, await add(store, runId, { status, key: `k${i}`, records: 3 + i })])
    }
    await store.delete('run-7')
    const [counts, list] = [await store.counts(), await store.list({ limit: 100 })]
    const again = await reopen(store, t)
    try {
      assert.deepEqual(await again.counts(), counts)
      assert.deepEqual(await again.list({ limit: 100 }), list)
      for (const [runId, records] of runs) {
        const expected = runId === 'run-7' ? [] : records
        assert.deepEqual(await again.read(runId, 0, ALL), expected)
        assert.deepEqual(await again.head(runId), runId === 'run-7' ? null : fold(records))
      }
      assert.equal((await again.findByKey(ownedBy(null), 'k3', 0))?.details.run_id, 'run-3')
      assert.equal(await again.findByKey(ownedBy(null), 'k7', 0), null)
    } finally {
      await again.close()
    }
  })

  test('a run goes on after a restart where it stopped', async (store, t) => {
    const records = sampleRun('a', { records: 20 })
    await store.append('a', records.slice(0, 9))
    const again = await reopen(store, t)
    try {
      const conflict = rejectsWith('ERR_AGENT_SEQ_CONFLICT')
      await assert.rejects(again.append('a', records.slice(8)), conflict)
      await again.append('a', records.slice(9))
      assert.deepEqual(await again.read('a', 0, ALL), records)
      assert.deepEqual(await again.head('a'), fold(records))
    } finally {
      await again.close()
    }
  })

  test('a cursor outlives a restart', async (store, t) => {
    for (let i = 0; i < 6; i++) await add(store, `run-${i}`, { createdAt: 1_700_000_000 + i })
    const { next } = await store.list({ limit: 3 })
    const again = await reopen(store, t)
    try {
      const page = await again.list({ limit: 3, cursor: next ?? '' })
      assert.deepEqual(page.heads.map(({ details }) => details.run_id), ['run-2', 'run-1', 'run-0'])
    } finally {
      await again.close()
    }
  })
}
