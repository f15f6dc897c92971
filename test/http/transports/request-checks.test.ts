import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HandlerTransport, LocalProtocolError, Proxy } from 'runwright/http'
import { checkHost } from '../../../lib/http/transports/request-checks.js'
import { Headers } from '../../../lib/http/headers.js'
import { behaviour, failure, testCa, useApp } from '../both-clients.js'

useApp()

const VALID = [
  'a.test',
  'a.test:8080',
  'A_b-c.test.',
  '127.0.0.1:80',
  '[::1]',
  '[::1]:443',
  'a.test:',
  'a%20b',
]
const INVALID = [
  '',
  'user@a.test',
  'user:pw@a.test',
  'a.test/path',
  'a.test?q',
  'a.test#f',
  'http://a.test',
  'a.test, b.test',
  'a.test,b.test',
  'a.test b.test',
  'a.test:x',
  'a.test:65536',
  'a.test:80:80',
  ':80',
  '[::1',
  '::1',
  '[::1]x',
  'a\\b',
  '<a>',
  'bücher.test',
  '[]',
]

test('a Host header is a host, with or without a port', () => {
  for (const host of VALID) checkHost(new Headers({ Host: host }))
  for (const host of INVALID) {
    assert.throws(() => checkHost(new Headers({ Host: host })), LocalProtocolError, host)
  }
  // Each single byte that a header value may have.
  for (let code = 32; code < 256; code++) {
    const char = String.fromCharCode(code)
    const valid = /[\w.~%!$&'()*+;=-]/.test(char)
    const check = (): void => checkHost(new Headers({ Host: `a${char}b` }))
    if (valid) check()
    else if (code !== 127) assert.throws(check, LocalProtocolError, char)
  }
})

for (const http2 of [false, true]) {
  behaviour(
    `over HTTP/${http2 ? 2 : 1} a second or invalid Host header is refused before a connection`,
    async ({ client, make, secureOrigin }) => {
      // Nothing listens there: an attempt to connect would be a ConnectError.
      const url = 'https://127.0.0.1:1/'
      for (const headers of [
        [
          ['Host', 'a.test'],
          ['Host', 'b.test'],
        ],
        [
          ['host', 'a.test'],
          ['HOST', 'a.test'],
        ],
        [
          ['Host', ''],
          ['hOst', ''],
        ],
        ...INVALID.map((host) => [['Host', host]]),
      ] as [string, string][][]) {
        const error = await failure(() => client.get(url, { headers }))
        assert.ok(error instanceof LocalProtocolError, `${JSON.stringify(headers)}: ${error}`)
        assert.match(error.message, /Host header/)
      }
      const add = make({
        eventHooks: {
          request: [
            (request) =>
              ['a.test', 'b.test'].forEach((host) => request.headers.append('host', host)),
          ],
        },
      })
      assert.match((await failure(() => add.get(url))).message, /more than one Host header/)
      const { host, ':authority': authority } = (
        await client.get(`${secureOrigin}/echo`, { headers: { host: 'other.test' } })
      ).json<{ headers: Record<string, string> }>().headers
      assert.equal(host ?? authority, 'other.test')
    },
    { http2, verify: testCa },
  )
}

behaviour('an application in process gets no second Host header either', async ({ make }) => {
  const transport = new HandlerTransport((_request, response) => response.end('ok'))
  const client = make({ transport, baseUrl: 'http://a.test' })
  const headers: [string, string][] = [
    ['Host', 'a'],
    ['Host', 'b'],
  ]
  assert.ok((await failure(() => client.get('/', { headers }))) instanceof LocalProtocolError)
  assert.equal((await client.get('/', { headers: { Host: 'b' } })).text, 'ok')
})

test('headers for a proxy must not frame the request', () => {
  for (const name of ['Host', 'Content-Length', 'Transfer-Encoding']) {
    const init = { url: 'http://p.test', headers: { [name]: '1' } }
    assert.throws(() => new Proxy(init), new RegExp(`proxy.headers must not have ${name}`, 'i'))
  }
})
