/** Appends: order, atomicity, conflicts. @module */
import assert from 'node:assert/strict'
import type { RunRecord } from '../../events.js'
import { sampleRun } from '../sample-records.js'
import { add, ALL, assertOneConflict, fold, rejectsWith, type Suite } from './suite.js'

export function testAppends({ test }: Suite): void {
  test('records are read back as they were appended', async (store) => {
    const text = '" and \\, a line\nend, a null \u0000, ü, 漢字, 🙂, \u2028, a lone \ud800'
    const records = await add(store, 'a', { text, records: 6, goal: text })
    assert.deepEqual(await store.read('a', 0, ALL), records)
  })

  test('appends to one run add to its log', async (store) => {
    const records = sampleRun('a', { records: 7 })
    for (const record of records) await store.append('a', [record])
    assert.deepEqual(await store.read('a', 0, ALL), records)
  })

  test('the caller may change its array after calling append', async (store) => {
    const records = sampleRun('a')
    const passed = [...records]
    const appended = store.append('a', passed)
    passed.length = 0
    await appended
    assert.deepEqual(await store.read('a', 0, ALL), records)
  })

  test('a record larger than a megabyte is stored whole', async (store) => {
    const records = await add(store, 'a', { text: 'large '.repeat(300_000) })
    assert.deepEqual(await store.read('a', 0, ALL), records)
  })

  for (const { title, seqs } of [
    { title: 'a gap', seqs: [6] },
    { title: 'a repetition', seqs: [4] },
    { title: 'a gap within the call', seqs: [5, 7] },
    { title: 'a second beginning', seqs: [1] },
  ]) {
    test(`${title} is refused, and none of its records are stored`, async (store) => {
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

  test('of two concurrent appends of the same records one is refused', async (store) => {
    const [created, ...rest] = sampleRun('a') as [RunRecord, ...RunRecord[]]
    await store.append('a', [created])
    assertOneConflict(await Promise.allSettled([1, 2].map(() => store.append('a', rest))))
    assert.deepEqual(await store.read('a', 0, ALL), [created, ...rest])
  })

  test('concurrent appends to one run keep the order of the calls', async (store) => {
    const records = sampleRun('a', { records: 50 })
    await Promise.all(records.map((record) => store.append('a', [record])))
    assert.deepEqual(await store.read('a', 0, ALL), records)
  })

  test('records of an unknown kind are stored like any other', async (store) => {
    const records = await add(store, 'a', { status: 'running', records: 3 })
    const unknown = { ...records[2], seq: 4, kind: 'from_the_future', payload: { x: 1 } }
    const future = unknown as unknown as RunRecord
    await store.append('a', [future])
    assert.deepEqual(await store.read('a', 3, ALL), [future])
    assert.deepEqual(await store.head('a'), fold([...records, future]))
  })
}
