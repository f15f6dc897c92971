import assert from 'node:assert/strict'
import {
  AsyncClient,
  BlockingTransport,
  CacheTransport,
  HttpTransport,
  type CacheTransportOptions,
} from 'runwright/http'
import { behaviour, testCa, useApp, type AnyClient, type World } from '../both-clients.js'

useApp()

let keys = 0

/** A client with a cache over the network, and the URL of a page of its own. */
async function withCache(
  { client: { constructor }, make, origin, secureOrigin }: World,
  options: CacheTransportOptions,
  show: (client: AnyClient, url: (control: string) => string) => Promise<void>,
): Promise<void> {
  for (const base of [origin, secureOrigin]) {
    const network = { http2: true, verify: testCa }
    const inner =
      constructor === AsyncClient ? new HttpTransport(network) : new BlockingTransport(network)
    const transport = new CacheTransport(inner as HttpTransport, options)
    const key = `${constructor.name} ${keys++}`
    const url = (control: string): string =>
      `${base}/cached?${new URLSearchParams({ key, control }).toString()}`
    await show(make({ transport: transport as never }), url)
    await transport.close()
  }
}

behaviour('a server is asked once for what is fresh, over HTTP/1.1 and HTTP/2', async (world) => {
  await withCache(world, {}, async (client, url) => {
    const miss = await client.get(url('max-age=60'))
    for (let i = 0; i < 3; i++) {
      const hit = await client.get(url('max-age=60'))
      assert.equal(hit.extensions.cache?.status, 'hit')
      assert.equal(hit.text, '1')
      assert.equal(hit.httpVersion, miss.httpVersion)
      assert.equal(hit.reasonPhrase, miss.reasonPhrase)
      assert.equal(hit.extensions['remoteAddress'], undefined)
      assert.equal(hit.timings, null)
    }
    assert.equal(miss.extensions.cache?.status, 'miss')
    assert.equal(miss.extensions['remoteAddress'], '127.0.0.1')
    assert.notEqual(miss.timings, null)
  })
})

behaviour('a server confirms what is stale, over HTTP/1.1 and HTTP/2', async (world) => {
  let now = Date.now()
  await withCache(world, { now: () => now }, async (client, url) => {
    await client.get(url('max-age=60'))
    now += 100_000
    const confirmed = await client.get(url('max-age=60'))
    assert.equal(confirmed.extensions.cache?.status, 'revalidated')
    assert.equal(confirmed.text, '1')
    assert.notEqual(confirmed.timings, null)
    await client.post(url('max-age=60'))
    assert.equal((await client.get(url('max-age=60'))).text, '4')
  })
})

behaviour('the connection of a 304 is used again', async (world) => {
  await withCache(world, {}, async (client, url) => {
    await client.get(url('no-cache'))
    const before = (await client.get(new URL('/connections', url('')))).text
    for (let i = 0; i < 5; i++) {
      const response = await client.get(url('no-cache'))
      assert.equal(response.extensions.cache?.status, 'revalidated')
    }
    assert.equal((await client.get(new URL('/connections', url('')))).text, before)
  })
})
