import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { Proxy } from 'runwright/http'
import { behaviour, failure, testCa, useApp } from '../../both-clients.js'

useApp()

interface DigestProxy extends AsyncDisposable {
  readonly url: string
  /** The requests since the last call: method, target, scheme of Proxy-Authorization. */
  heads(): Promise<string[]>
}

async function digestProxy(options: Record<string, unknown> = {}): Promise<DigestProxy> {
  const file = new URL('../../../fixtures/http/digest-proxy.mjs', import.meta.url)
  const worker = new Worker(file, { execArgv: [], workerData: options })
  const [port] = (await once(worker, 'message')) as [number]
  return {
    url: `http://127.0.0.1:${port}`,
    async heads() {
      worker.postMessage('heads')
      return ((await once(worker, 'message')) as [string[]])[0]
    },
    [Symbol.asyncDispose]: async () => void (await worker.terminate()),
  }
}

const auth = ['u', 'p'] as const
const digest = { auth, authScheme: 'digest' as const }

for (const algorithm of ['MD5', 'SHA-256']) {
  for (const qop of ['auth', 'auth-int']) {
    behaviour(
      `a Digest challenge of a proxy (${algorithm}, ${qop}) is answered in absolute form`,
      async ({ make }) => {
        await using proxy = await digestProxy({ algorithm, qop })
        const client = make({ proxy: { url: proxy.url, ...digest } })
        assert.equal((await client.get('http://a.test/x?y=1')).text, 'http://a.test/x?y=1 ')
        assert.equal(
          (await client.post('http://b.test/z', { content: 'body' })).text,
          'http://b.test/z body',
        )
        assert.deepEqual(await proxy.heads(), [
          'GET http://a.test/x?y=1 undefined',
          'GET http://a.test/x?y=1 Digest',
          // The nonce is reused.
          'POST http://b.test/z Digest',
        ])
      },
    )
  }
}

behaviour(
  'a Digest challenge to CONNECT is answered over a new connection',
  async ({ make, secureOrigin }) => {
    await using proxy = await digestProxy()
    const client = make({
      proxy: { url: proxy.url, ...digest },
      verify: testCa,
      limits: { maxKeepaliveConnections: 0 },
    })
    const authority = secureOrigin.replace('https://', '')
    const response = await client.get(`${secureOrigin}/echo`)
    assert.equal(
      response.json<{ headers: Record<string, string> }>().headers['proxy-authorization'],
      undefined,
    )
    assert.ok(response.timings!.proxy! > 0)
    await client.get(`${secureOrigin}/echo`)
    const signed = `CONNECT ${authority} Digest`
    assert.deepEqual(await proxy.heads(), [`CONNECT ${authority} undefined`, signed, signed])
  },
)

behaviour(
  'Basic is sent first by default, and Digest when the proxy refuses that',
  async ({ make, secureOrigin }) => {
    await using proxy = await digestProxy({ closes: true })
    const client = make({ proxy: proxy.url.replace('//', '//u:p@'), verify: testCa })
    assert.equal((await client.get('http://a.test/')).statusCode, 200)
    assert.equal((await client.get(`${secureOrigin}/echo`)).statusCode, 200)
    const [first, second, third] = await proxy.heads()
    assert.deepEqual([first, second], ['GET http://a.test/ Basic', 'GET http://a.test/ Digest'])
    assert.match(third!, /^CONNECT .* Digest$/)
  },
)

behaviour(
  'a stale nonce is replaced, for CONNECT as well',
  async ({ make, secureOrigin }) => {
    await using proxy = await digestProxy({ usesOfNonce: 1 })
    const client = make({
      proxy: { url: proxy.url, ...digest },
      verify: testCa,
      limits: { maxKeepaliveConnections: 0 },
    })
    for (const url of [
      'http://a.test/',
      'http://a.test/',
      `${secureOrigin}/echo`,
      `${secureOrigin}/echo`,
    ]) {
      assert.equal((await client.get(url)).statusCode, 200)
    }
    assert.equal((await proxy.heads()).length, 8)
  },
)

behaviour(
  'a wrong password returns the 407 after one attempt, and fails CONNECT with ProxyError',
  async ({ make }) => {
    await using proxy = await digestProxy()
    const client = make({ proxy: { url: proxy.url, auth: ['u', 'wrong'], authScheme: 'digest' } })
    assert.equal((await client.get('http://a.test/')).statusCode, 407)
    const error = await failure(() => client.get('https://a.test/'))
    assert.deepEqual(
      [error.code, (error as { statusCode?: number }).statusCode],
      ['ERR_HTTP_PROXY', 407],
    )
    assert.equal((await proxy.heads()).length, 4)
  },
)

behaviour(
  'a 407 is returned without credentials, for an unknown scheme, or for a one-time body',
  async ({ make }) => {
    await using proxy = await digestProxy()
    assert.equal((await make({ proxy: proxy.url }).get('http://a.test/')).statusCode, 407)
    const client = make({ proxy: { url: proxy.url, ...digest } })
    assert.equal(
      (await client.post('http://a.test/', { content: ['a', 'b'].values() })).statusCode,
      407,
    )
    // The challenge was stored for the next request.
    assert.equal(
      (await client.post('http://a.test/', { content: ['a', 'b'].values() })).text,
      'http://a.test/ ab',
    )
    assert.equal((await proxy.heads()).length, 3)
    await using other = await digestProxy({ scheme: 'Negotiate' })
    assert.equal(
      (await make({ proxy: { url: other.url, ...digest } }).get('http://a.test/')).statusCode,
      407,
    )
  },
)

test('an unknown authScheme is refused', () => {
  const init = { url: 'http://p.test', auth, authScheme: 'ntlm' as 'digest' }
  assert.throws(() => new Proxy(init), /proxy\.authScheme must be 'basic' or 'digest', got ntlm/)
})
