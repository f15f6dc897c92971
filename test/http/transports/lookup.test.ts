import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LookupFunction } from 'node:net'
import { networkInterfaces } from 'node:os'
import { createSecureServer } from 'node:http2'
import { lookup as systemLookup } from 'node:dns'
import { readFileSync } from 'node:fs'
import {
  AsyncClient,
  BlockingTransport,
  Client,
  ConnectError,
  ConnectTimeoutError,
  HttpTransport,
} from 'runwright/http'
import { rawServer } from '../../helpers/raw-peer.js'
import { listen, serve } from '../../helpers/serve.js'
import { behaviour, failure, useApp } from '../both-clients.js'

useApp()

const local = { address: '127.0.0.1', family: 4 }
const odd = (value: unknown): never => value as never
const late = (call: () => void): void => void setImmediate(call)

/** Functions of the caller that give 127.0.0.1, in any form that dns.lookup() has. */
const good: Record<string, LookupFunction> = {
  'a list': (_, __, done) => late(() => done(null, [local])),
  'one address although a list was asked for': (_, __, done) => late(() => done(null, ...one)),
  'an answer before it returns': (_, __, done) => done(null, [local]),
  'a second answer': (_, __, done) => {
    done(null, [local])
    done(new Error('second'), [])
    late(() => done(null, '192.0.2.1', 4))
  },
  'an error after the answer': (_, __, done) => {
    done(null, [local])
    throw new Error('second')
  },
  'a closed port first': (_, __, done) => done(null, [{ address: '::1', family: 6 }, local]),
  'a wrong family': (_, __, done) => done(null, [{ address: '127.0.0.1', family: 6 }]),
  'undefined as no error': (_, __, done) => done(odd(undefined), [local]),
  'the system’s': (_, options, done) => systemLookup('localhost', options, done),
}
const one = ['127.0.0.1', 4] as const

for (const [name, lookup] of Object.entries(good)) {
  test(`lookup may give ${name}`, async () => {
    await using server = await serve((request, response) => response.end(request.headers.host))
    await using client = new AsyncClient({ lookup, trustEnv: false })
    const response = await client.get(`http://name.test:${server.port}/`)
    assert.equal(response.text, `name.test:${server.port}`)
  })
}

/** Functions of the caller that fail, and what the message names. */
const bad: Record<string, [LookupFunction, RegExp]> = {
  'an error': [
    (_, __, done) => done(Object.assign(new Error('no name'), { code: 'ENOTFOUND' }), []),
    /: ENOTFOUND: lookup of name\.test: no name$/,
  ],
  'an exception': [() => assert.fail('broken'), /lookup of name\.test: broken$/],
  'a rejection': [odd(async () => assert.fail('broken')), /lookup of name\.test: broken$/],
  'a string as error': [(_, __, done) => done(odd('broken'), []), /lookup of name\.test: broken$/],
  nothing: [(_, __, done) => done(null, []), /lookup of name\.test: it gave no address$/],
  'no address': [(_, __, done) => done(null, odd(undefined)), /it must give an IP address/],
  'a name': [(_, __, done) => done(null, 'other.test', 4), /it must give an IP address/],
  'a number': [(_, __, done) => done(null, odd(7)), /it must give an IP address/],
  'a list of strings': [(_, __, done) => done(null, odd(['127.0.0.1'])), /it must give an IP/],
  'a list with null': [(_, __, done) => done(null, odd([local, null])), /it must give an IP/],
  'a list with garbage': [
    (_, __, done) => done(null, odd([local, { address: '127.0.0.1:80' }])),
    /it must give an IP address/,
  ],
}

for (const [name, [lookup, message]] of Object.entries(bad)) {
  test(`a lookup that gives ${name} is a ConnectError`, async () => {
    await using client = new AsyncClient({ lookup, trustEnv: false })
    const error = await failure(() => client.get('http://name.test/'))
    assert.ok(error instanceof ConnectError, String(error))
    assert.match(error.message, /^cannot connect to name\.test:80: /)
    assert.match(error.message, message)
  })
}

test('a lookup that never calls back ends with the time limit, or an abort', async () => {
  let calls = 0
  await using client = new AsyncClient({ lookup: () => void calls++, trustEnv: false })
  const limited = await failure(() => client.get('http://name.test/', { timeout: { connect: 1 } }))
  assert.ok(limited instanceof ConnectTimeoutError, String(limited))
  const controller = new AbortController()
  const aborted = failure(() => client.get('http://a.test/', { signal: controller.signal }))
  controller.abort(new Error('enough'))
  assert.equal((await aborted).message, 'enough')
  assert.equal(calls, 2)
})

test('lookup is called for names only, with the parameters of dns.lookup()', async () => {
  await using server = await serve((_, response) => response.end())
  const seen: unknown[] = []
  const lookup: LookupFunction = (name, options, done) => {
    seen.push([name, options.all])
    done(null, [local])
  }
  await using client = new AsyncClient({ lookup, trustEnv: false })
  await client.get(server.origin)
  await client.get(`http://name.test:${server.port}/`)
  await client.get(`http://NAME.test:${server.port}/`)
  assert.deepEqual(seen, [['name.test', true]])
})

test('lookup serves TLS and HTTP/2, and transports', async () => {
  const file = (name: string): Buffer =>
    readFileSync(new URL(`../../fixtures/http/certs/${name}.pem`, import.meta.url))
  const server = createSecureServer({ cert: file('other'), key: file('other-key') })
  server.on('request', (_, response) => response.end('h2'))
  await using served = await listen(server as never, 'https')
  const lookup: LookupFunction = (_, __, done) => done(null, [local])
  const verify = { ca: [file('ca').toString(), file('other').toString()] }
  const transport = new HttpTransport({ lookup, http2: true, verify })
  await using client = new AsyncClient({ transport })
  const response = await client.get(`https://other.test:${served.port}/`)
  assert.deepEqual([response.text, response.httpVersion], ['h2', 'HTTP/2'])
  await transport.close()
})

for (const proxied of ['http', 'socks5'] as const) {
  test(`lookup resolves the name of a proxy (${proxied})`, async () => {
    const names: string[] = []
    const lookup: LookupFunction = (name, _, done) => {
      names.push(name)
      if (name === 'proxy.test') done(null, [local])
      else done(new Error('unknown'), [])
    }
    await using proxy = await rawServer(async (peer) => {
      if (proxied === 'socks5') {
        await peer.take(3)
        peer.write('\x05\x00')
        return
      }
      await peer.takeUntil('\r\n\r\n')
      peer.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    })
    await using client = new AsyncClient({
      lookup,
      proxy: `${proxied}://proxy.test:${proxy.port}`,
    })
    if (proxied === 'http') assert.equal((await client.get('http://origin.test/')).text, 'ok')
    else {
      const error = await failure(() => client.get('http://origin.test/'))
      assert.match(error.message, /^cannot connect to origin\.test: lookup of origin\.test: unknown/)
    }
    assert.deepEqual(names, proxied === 'http' ? ['proxy.test'] : ['proxy.test', 'origin.test'])
  })
}

test('Client refuses lookup, which its thread cannot call', () => {
  for (const make of [
    () => new Client({ lookup: () => {} } as object),
    () => new BlockingTransport({ lookup: () => {} }),
  ]) {
    assert.throws(make, { name: 'TypeError', message: /lookup cannot be used with Client.*AsyncC/ })
  }
  new BlockingTransport({ lookup: null }).close()
})

const loopback = process.platform === 'linux' ? '127.0.0.2' : '127.0.0.1'

behaviour('localAddress is where connections come from', async ({ make, origin, secureOrigin }) => {
  const port = new URL(origin).port
  const client = make({ localAddress: loopback, verify: false, http2: true, trustEnv: false })
  for (const base of [origin, `http://localhost:${port}`, secureOrigin]) {
    const { extensions } = await client.get(`${base}/echo`)
    assert.equal(extensions['localAddress'], loopback, base)
  }
})

behaviour('an address that is not of this machine is a ConnectError', async ({ make, origin }) => {
  const mine = Object.values(networkInterfaces()).flatMap((all) => all?.map((one) => one.address))
  const client = make({ localAddress: '192.0.2.7', trustEnv: false })
  assert.ok(!mine.includes('192.0.2.7'))
  const error = await failure(() => client.get(origin))
  assert.ok(error instanceof ConnectError)
  assert.match(error.message, /localAddress: bind E\w+ 192\.0\.2\.7/)
  for (const localAddress of ['localhost', '127.0.0.1:80', '', '1.2.3']) {
    const message = /localAddress must be an IP address/
    assert.throws(() => make({ localAddress }), { name: 'TypeError', message })
  }
})

test('with localAddress, lookup gives an address of its family', async () => {
  await using server = await serve((_, response) => response.end('ok'))
  const lookup: LookupFunction = (_, __, done) => done(null, [{ address: '::1', family: 6 }, local])
  const options = { lookup, trustEnv: false }
  await using client = new AsyncClient({ ...options, localAddress: '127.0.0.1' })
  assert.equal((await client.get(`http://name.test:${server.port}`)).text, 'ok')
  const six: LookupFunction = (_, __, done) => done(null, '::1', 6)
  await using other = client.extend({ lookup: six })
  const error = await failure(() => other.get(`http://name.test:${server.port}`))
  assert.match(error.message, /lookup of name\.test: it gave no IPv4 address/)
})
