import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore, type RunHead, type RunQuery } from 'runwright/agent'
import { headsOf } from '../../../lib/agent/log/heads-of.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'

test('all runs that meet the conditions are listed once, newest first', async () => {
  const store = new MemoryStore()
  await store.open()
  const ids = Array.from({ length: 250 }, (_, i) => `run-${String(i).padStart(3, '0')}`)
  for (const id of ids) await store.append(id, sampleRun(id))
  assert.deepEqual(await listed(store), ids.toReversed())
  assert.deepEqual(await listed(store, { search: 'run-01' }), ids.slice(10, 20).toReversed())
  const stop = new AbortController()
  const seen: string[] = []
  await assert.rejects(async () => {
    for await (const { details } of headsOf(store, {}, stop.signal)) {
      if (seen.push(details.run_id) === 150) stop.abort(new Error('enough'))
    }
  }, /enough/)
  assert.equal(seen.length, 200)
})

test('a list that a store never ends is an error', async () => {
  const store = new MemoryStore()
  await store.open()
  await store.append('run-1', sampleRun('run-1'))
  const { heads } = await store.list({ limit: 1 })
  const ends = { list: async () => ({ heads, next: 'again' }) }
  await assert.rejects(listed(ends), { code: 'ERR_AGENT_STORE', message: /leads back to a page/ })
  let pages = 0
  const empty = { list: async () => ({ heads: [], next: String(pages++) }) }
  await assert.rejects(listed(empty), { code: 'ERR_AGENT_STORE', message: /64 empty pages/ })
})

async function listed(
  store: { list(query: RunQuery): Promise<{ heads: readonly RunHead[]; next: string | null }> },
  query: Omit<RunQuery, 'limit'> = {},
): Promise<string[]> {
  const found: string[] = []
  for await (const { details } of headsOf(store, query)) found.push(details.run_id)
  return found
}
