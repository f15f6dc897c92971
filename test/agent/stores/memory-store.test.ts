import assert from 'node:assert/strict'
import { hash as digest } from 'node:crypto'
import { test } from 'node:test'
import { MemoryStore } from 'runwright/agent'
import { ManualClock, testRunStore } from 'runwright/agent/testing'
import { MemoryObjects } from '../../../lib/agent/stores/memory-store.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { HOUR, ShiftedClock } from '../../helpers/shifted-clock.js'

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

for (const jump of [5 * HOUR, -5 * HOUR]) {
  test(`no run is dropped early when the time of day is set by ${jump / HOUR} h`, async () => {
    const clock = new ShiftedClock()
    await using store = new MemoryStore({ retain: { days: 1 }, clock })
    await store.open()
    const end = async (runId: string): Promise<void> => {
      const records = sampleRun(runId, { createdAt: clock.now() / 1000 })
      await store.append(runId, records.slice(0, 2))
      await store.append(runId, records.slice(2))
    }
    const listed = async (): Promise<string[]> => {
      const { heads } = await store.list({ limit: 10 })
      return heads.map(({ details }) => details.run_id).sort()
    }
    await end('a')
    clock.shiftMs = jump
    clock.advance(23 * HOUR)
    await end('b')
    assert.deepEqual(await listed(), ['a', 'b'])
    clock.advance(7 * HOUR)
    await end('c')
    assert.deepEqual(await listed(), ['b', 'c'])
  })
}

for (const jump of [5 * HOUR, -5 * HOUR]) {
  test(`a blob is unused for as long as it is: time of day set by ${jump / HOUR} h`, async () => {
    const clock = new ShiftedClock()
    const objects = new MemoryObjects(clock)
    const content = Buffer.from('x')
    const hash = digest('sha256', content)
    await objects.put([{ hash, content }])
    clock.shiftMs = jump
    clock.advance(HOUR - 1)
    await objects.delete([hash], HOUR)
    assert.equal((await objects.get(hash))?.length, 1)
    clock.advance(1)
    await objects.delete([hash], HOUR)
    assert.equal(await objects.get(hash), null)
  })
}
