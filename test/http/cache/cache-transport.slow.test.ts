import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CacheTransport, Client, MemoryCacheStore } from 'runwright/http'
import { chunked, bytes } from './chunked-origin.js'

test('copies of responses that are being read take 64 MiB at most', async () => {
  const size = 16 * 1024 * 1024
  const { origin } = chunked([bytes(size)])
  const store = new MemoryCacheStore({ maxBytes: 1e9 })
  const transport = new CacheTransport(origin, { store, maxEntryBytes: size })
  using client = new Client({ transport, baseUrl: 'http://a.test' })
  const open = [1, 2, 3, 4, 5].map((n) => {
    const response = client.stream('GET', `/${n}`)
    const chunks = response.iterRaw()
    chunks.next()
    return chunks
  })
  for (const chunks of open) chunks.next()
  assert.equal(store.size, 4)
  client.get('/6')
  assert.equal(store.size, 5)
})
