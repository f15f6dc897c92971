import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore } from 'runwright/agent'
import { ManualClock, testRunStore } from 'runwright/agent/testing'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'

testRunStore('MemoryStore', async () => {
  const store = new MemoryStore()
  await store.open()
  return store
})

test('a memory store that is not open rejects calls with what to do', async () => {
  await assert.rejects(new MemoryStore().head('a'), {
    code: 'ERR_AGENT_STORE',
    message: /open\(\) first/,
  })
})

test('a memory store drops the oldest ended runs beyond retain.runs, and no live run', async () => {
  await using store = new MemoryStore({ retain: { runs: 2 } })
  await store.open()
  await store.append('live', sampleRun('live', { createdAt: 1, status: 'running' }))
  for (const [i, runId] of ['a', 'b', 'c', 'd'].entries()) {
    const records = sampleRun(runId, { createdAt: 10 + i })
    await store.append(runId, records.slice(0, 2))
    await store.append(runId, records.slice(2))
  }
  const { heads } = await store.list({ limit: 10 })
  assert.deepEqual(heads.map(({ details }) => details.run_id), ['d', 'c', 'live'])
})

test('a memory store drops runs that ended more than retain.days ago', async () => {
  const clock = new ManualClock(1_000_000_000_000)
  await using store = new MemoryStore({ retain: { days: 1 }, clock })
  await store.open()
  const end = async (runId: string): Promise<void> => {
    const records = sampleRun(runId, { createdAt: clock.now() / 1000 })
    await store.append(runId, records.slice(0, 2))
    await store.append(runId, records.slice(2))
  }
  await end('old')
  clock.advance(86_400_000 + 1_000)
  await end('new')
  const { heads } = await store.list({ limit: 10 })
  assert.deepEqual(heads.map(({ details }) => details.run_id), ['new'])
})
