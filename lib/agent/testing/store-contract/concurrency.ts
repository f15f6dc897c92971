/** Concurrent appends, and closing while they are in flight. @module */
import assert from 'node:assert/strict'
import { sampleRun } from '../sample-records.js'
import { add, ALL, fold, ownedBy, rejectsWith, type Suite } from './suite.js'

export function testConcurrency({ test }: Suite): void {
  test('concurrent appends to many runs do not interfere', async (store) => {
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

  test('a read during appends returns a prefix of the log, without a gap', async (store) => {
    const records = sampleRun('a', { records: 200 })
    const appends = records.map((record) => store.append('a', [record]))
    const pages = await Promise.all(Array.from({ length: 20 }, () => store.read('a', 0, ALL)))
    for (const page of pages) assert.deepEqual(page, records.slice(0, page.length))
    await Promise.all(appends)
    assert.deepEqual(await store.read('a', 0, ALL), records)
  })
}

export function testClosing({ test }: Suite): void {
  test('close waits for appends in flight, and may be called twice', async (store) => {
    const appended = store.append('a', sampleRun('a'))
    await Promise.all([store.close(), store.close()])
    await appended
    await store.close()
  })

  test('a closed store rejects every call', async (store) => {
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
