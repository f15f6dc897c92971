/** Reads: pages of a log. @module */
import assert from 'node:assert/strict'
import type { RunRecord } from '../../events.js'
import { sampleRun } from '../sample-records.js'
import { add, ALL, type Suite } from './suite.js'

export function testReads({ test }: Suite): void {
  test('an unknown run has no records', async (store) => {
    assert.deepEqual(await store.read('unknown', 0, ALL), [])
  })

  for (const { after, limit, seqs } of [
    { after: 0, limit: 3, seqs: [1, 2, 3] },
    { after: 3, limit: 4, seqs: [4, 5, 6, 7] },
    { after: 8, limit: 100, seqs: [9, 10] },
    { after: 10, limit: 1, seqs: [] },
    { after: 99, limit: 1, seqs: [] },
  ]) {
    const title = `reading after ${after} at most ${limit} of 10 records returns [${seqs.join()}]`
    test(title, async (store) => {
      const records = sampleRun('a', { records: 10 })
      await store.append('a', records.slice(0, 4))
      await store.append('a', records.slice(4))
      const page = await store.read('a', after, limit)
      assert.deepEqual(page, records.filter(({ seq }) => seqs.includes(seq)))
    })
  }

  test('consecutive pages make up the log', async (store) => {
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
