/** The largest record that a run has: the first check of a suite of a million tests. */
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { scratch } from '../../helpers/engine.js'
import { millionTests } from '../goals/million-tests.js'
import { openStore } from './store-files.js'

test('the record of a million tests is stored, rewritten and read by a file store', async (t) => {
  const directory = scratch(t)
  const [created, started, ...rest] = sampleRun('big')
  const check = millionTests('big', 3)
  const log = [created!, started!, check, ...rest.map((one) => ({ ...one, seq: one.seq + 1 }))]
  let store = await openStore(directory)
  await store.append('gone', sampleRun('gone'))
  await store.append('big', log.slice(0, 3))
  for (const records of [log.slice(0, 3), log]) {
    assert.deepEqual(await store.read('big', 0, 100), records)
    if (records.length < log.length) await store.append('big', log.slice(3))
  }
  await store.delete('gone')
  await store.compact()
  await store.close()
  store = await openStore(directory)
  assert.deepEqual(await store.read('big', 0, 100), log)
  await store.close()
})
