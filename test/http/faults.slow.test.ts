import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { Worker } from 'node:worker_threads'
import {
  AsyncClient,
  Client,
  RequestError,
  type AsyncClientOptions,
  type RequestOptions,
} from 'runwright/http'
import { failure, type AnyClientOptions } from './both-clients.js'

type Step = Readonly<Record<string, unknown>>

let peers: Worker
let lastId = 0

before(() => {
  peers = new Worker(new URL('../fixtures/http/peer-worker.mjs', import.meta.url), { execArgv: [] })
})
after(() => peers.terminate())

/** Starts a server on another thread that plays one of `scripts` per connection. */
async function play(scripts: readonly (readonly Step[])[]): Promise<string> {
  const id = ++lastId
  peers.postMessage({ id, scripts })
  for (;;) {
    const [message] = (await once(peers, 'message')) as [{ id: number; port: number }]
    if (message.id === id) return `http://127.0.0.1:${message.port}`
  }
}

const request: Step = { take: '\r\n\r\n' }
const ok: readonly Step[] = [
  request,
  { write: 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine' },
  { hold: true },
]
const answering = (text: string, ...then: Step[]): readonly Step[] => [
  request,
  { write: text },
  ...then,
]
const hold: Step = { hold: true }

interface Fault {
  readonly name: string
  readonly script: readonly Step[]
  readonly options?: RequestOptions & { readonly method?: string; readonly stream?: boolean }
  readonly client?: (origin: string) => AnyClientOptions
  /** The URL to call; by default the origin of the server. */
  readonly url?: (origin: string) => string
  /** Class of the expected error; null if the call succeeds. */
  readonly error: string | null
  readonly code?: string
  readonly message?: RegExp
  /** Whether the kernel may report the reset as an end, merged with the bytes before it. */
  readonly merged?: boolean
}

const REMOTE = { error: 'RemoteProtocolError', code: 'ERR_HTTP_REMOTE_PROTOCOL' }
const LOCAL = { error: 'LocalProtocolError', code: 'ERR_HTTP_LOCAL_PROTOCOL' }
const READ = { error: 'ReadError', code: 'ERR_HTTP_READ' }
const READ_TIMEOUT = { error: 'ReadTimeoutError', code: 'ERR_HTTP_READ_TIMEOUT' }
const CONNECT = { error: 'ConnectError', code: 'ERR_HTTP_CONNECT' }
const CONNECT_TIMEOUT = { error: 'ConnectTimeoutError', code: 'ERR_HTTP_CONNECT_TIMEOUT' }
const PROXY = { error: 'ProxyError', code: 'ERR_HTTP_PROXY' }
const secure = (origin: string): string => origin.replace('http:', 'https:')
const hello: Step = { take: '\x16\x03\x01' }
const byProxy =
  (scheme: string) =>
  (origin: string): AnyClientOptions => ({ proxy: origin.replace('http:', scheme) })
const elsewhere = (): string => 'http://elsewhere.invalid/'
const tunnelled = (): string => 'https://elsewhere.invalid/'
const big = Buffer.alloc(30_000_000, 'x')

const faults: Fault[] = [
  { name: 'FIN before a response', script: [request, { end: true }], ...REMOTE },
  {
    name: 'FIN in the middle of the head',
    script: answering('HTTP/1.1 200 OK\r\nContent-', { end: true }),
    ...REMOTE,
  },
  {
    name: 'FIN in the middle of the content',
    script: answering('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf', { end: true }),
    ...REMOTE,
  },
  {
    name: 'FIN without the last chunk',
    script: answering('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n', {
      end: true,
    }),
    ...REMOTE,
  },
  { name: 'RST before a response', script: [request, { reset: true }], ...READ },
  {
    name: 'RST in the middle of the head',
    script: answering('HTTP/1.1 200 OK\r\nContent-', { reset: true }),
    ...READ,
    merged: true,
  },
  {
    name: 'RST in the middle of the content',
    script: answering('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf', { reset: true }),
    ...READ,
    merged: true,
  },
  {
    name: 'silence in the middle of the head',
    script: answering('HTTP/1.1 200 OK\r\nContent-', hold),
    options: { timeout: { read: 40 } },
    ...READ_TIMEOUT,
  },
  {
    name: 'an invalid status line',
    script: answering('HTTP/1.1 abc\r\n\r\n', hold),
    ...REMOTE,
  },
  { name: 'another protocol', script: answering('SSH-2.0-x\r\n', hold), ...REMOTE },
  { name: 'HTTP/0.9', script: answering('<html>', hold), ...REMOTE },
  { name: 'HTTP/2 in the clear', script: answering('HTTP/2 200\r\n\r\n', hold), ...REMOTE },
  {
    name: 'a bare LF',
    script: answering('HTTP/1.1 200 OK\nContent-Length: 0\n\n', hold),
    ...REMOTE,
  },
  {
    name: 'a bare LF among CRLF',
    script: answering('HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n', hold),
    ...REMOTE,
  },
  {
    name: 'a folded header line',
    script: answering('HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n', hold),
    ...REMOTE,
  },
  {
    name: 'a space before the colon',
    script: answering('HTTP/1.1 200 OK\r\nA : b\r\n\r\n', hold),
    ...REMOTE,
  },
  {
    name: 'a NUL in a header value',
    script: answering('HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n', hold),
    ...REMOTE,
  },
  {
    name: 'two different Content-Lengths',
    script: answering('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab', hold),
    ...REMOTE,
  },
  {
    name: 'two equal Content-Lengths',
    script: answering('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab', hold),
    error: null,
  },
  {
    name: 'a negative Content-Length',
    script: answering('HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n', hold),
    ...REMOTE,
  },
  {
    name: 'Content-Length with Transfer-Encoding',
    script: answering(
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      hold,
    ),
    ...REMOTE,
  },
  {
    name: 'an unknown Transfer-Encoding',
    script: answering('HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n', hold),
    ...REMOTE,
  },
  {
    name: 'an invalid chunk size',
    script: answering('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n', hold),
    ...REMOTE,
  },
  {
    name: 'a chunk longer than its size',
    script: answering('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n', hold),
    ...REMOTE,
  },
  {
    name: 'an endless head',
    script: [
      request,
      { write: 'HTTP/1.1 200 OK\r\n' },
      { repeat: ['A: ' + 'b'.repeat(1000) + '\r\n', 200] },
      hold,
    ],
    ...REMOTE,
    message: /larger than 65536/,
  },
  {
    name: 'a long head within the limit',
    script: answering(
      `HTTP/1.1 200 OK\r\nA: ${'b'.repeat(60_000)}\r\nContent-Length: 0\r\n\r\n`,
      hold,
    ),
    error: null,
  },
  {
    name: 'an endless trailer section',
    script: [
      request,
      { write: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n' },
      { repeat: ['A: ' + 'b'.repeat(1000) + '\r\n', 200] },
      hold,
    ],
    ...REMOTE,
  },
  {
    name: 'an unrequested 101',
    script: answering(
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
      hold,
    ),
    ...REMOTE,
  },
  {
    name: '100 and 103 before the response',
    script: answering(
      'HTTP/1.1 100 Continue\r\n\r\n' +
        'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n' +
        'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
      hold,
    ),
    error: null,
  },
  {
    name: 'an endless series of informational responses',
    script: [request, { repeat: ['HTTP/1.1 103 Early Hints\r\n\r\n', 101] }, hold],
    ...REMOTE,
    message: /more than 100 informational/,
  },
  {
    name: 'content and framing in a response to CONNECT',
    script: answering('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', hold),
    options: { method: 'CONNECT' },
    error: null,
  },
  {
    name: 'content that ends with the connection',
    script: answering('HTTP/1.1 200 OK\r\n\r\nall of it', { end: true }),
    error: null,
  },
  { name: 'HTTP/1.0', script: answering('HTTP/1.0 200 OK\r\n\r\nold', { end: true }), error: null },
  {
    name: '204 with a Content-Length',
    script: answering('HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n', hold),
    error: null,
  },
  {
    name: '304 with a Content-Encoding',
    script: answering(
      'HTTP/1.1 304 Not Modified\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\n',
      hold,
    ),
    error: null,
  },
  {
    name: 'a response to HEAD with Content-Length and Content-Encoding',
    script: answering(
      'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\n',
      hold,
    ),
    options: { method: 'HEAD' },
    error: null,
  },
  { name: 'silence', script: [request, hold], options: { timeout: { read: 40 } }, ...READ_TIMEOUT },
  {
    name: 'silence after the head',
    script: answering('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf', hold),
    options: { timeout: { read: 40 } },
    ...READ_TIMEOUT,
  },
  {
    name: 'a slow drip',
    script: answering('HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n', { drip: ['x', 5] }),
    options: { timeout: { read: 5_000, total: 80 } },
    error: 'TotalTimeoutError',
    code: 'ERR_HTTP_TOTAL_TIMEOUT',
  },
  {
    name: 'a server that does not read',
    script: [{ pause: true }, { hold: true }],
    options: { method: 'POST', content: big, timeout: { write: 60 } },
    error: 'WriteTimeoutError',
    code: 'ERR_HTTP_WRITE_TIMEOUT',
  },
  {
    name: 'a reset during the upload',
    script: [request, { reset: true }],
    options: { method: 'POST', content: big },
    error: 'WriteError',
    code: 'ERR_HTTP_WRITE',
  },
  {
    name: 'a 413 during the upload',
    script: answering('HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno', hold),
    options: { method: 'POST', content: big },
    error: null,
  },
  {
    name: 'six content codings',
    script: answering(
      'HTTP/1.1 200 OK\r\nContent-Encoding: gzip,gzip,gzip,gzip,gzip,gzip\r\n' +
        'Content-Length: 1\r\n\r\nx',
      hold,
    ),
    error: 'DecodingError',
    code: 'ERR_HTTP_DECODING',
  },
  {
    name: 'content that does not match its Content-Encoding',
    script: answering(
      'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd',
      hold,
    ),
    error: 'DecodingError',
    code: 'ERR_HTTP_DECODING',
  },
  {
    name: 'a Content-Encoding without content',
    script: answering(
      'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n',
      hold,
    ),
    error: null,
  },
  {
    name: 'a redirect to a URL without host',
    script: answering('HTTP/1.1 302 Found\r\nLocation: http://\r\nContent-Length: 0\r\n\r\n', hold),
    options: { followRedirects: true },
    ...REMOTE,
  },
  {
    name: 'a redirect to another scheme',
    script: answering(
      'HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n',
      hold,
    ),
    options: { followRedirects: true },
    ...REMOTE,
  },
  {
    name: 'a refused connection',
    script: ok,
    url: () => 'http://127.0.0.1:1/',
    ...CONNECT,
    message: /127\.0\.0\.1:1.*ECONNREFUSED/,
  },
  {
    name: 'a name that does not exist',
    script: ok,
    url: elsewhere,
    ...CONNECT,
    message: /elsewhere\.invalid/,
  },
  {
    name: 'a TLS handshake without response',
    script: [hello, hold],
    url: secure,
    options: { timeout: { connect: 60 } },
    ...CONNECT_TIMEOUT,
    message: /within 60 ms/,
  },
  {
    name: 'a TLS handshake with a plain HTTP server',
    script: [hello, { write: 'HTTP/1.1 400 Bad Request\r\n\r\n' }, hold],
    url: secure,
    ...CONNECT,
  },
  { name: 'FIN in the TLS handshake', script: [hello, { end: true }], url: secure, ...CONNECT },
  { name: 'RST in the TLS handshake', script: [hello, { reset: true }], url: secure, ...CONNECT },
  {
    name: 'a proxy that never responds to CONNECT',
    script: [request, hold],
    client: byProxy('http:'),
    url: tunnelled,
    options: { timeout: { connect: 60 } },
    ...CONNECT_TIMEOUT,
  },
  {
    name: 'a proxy that refuses CONNECT',
    script: answering('HTTP/1.1 403 No\r\n\r\n', hold),
    client: byProxy('http:'),
    url: tunnelled,
    ...PROXY,
    message: /403 No/,
  },
  {
    name: 'a proxy that requires a password',
    script: answering('HTTP/1.1 407 Who?\r\n\r\n', hold),
    client: byProxy('http:'),
    url: tunnelled,
    ...PROXY,
    message: /user name and password/,
  },
  {
    name: 'a proxy that closes the connection after CONNECT',
    script: [request, { end: true }],
    client: byProxy('http:'),
    url: tunnelled,
    ...PROXY,
  },
  {
    name: 'a proxy that resets the connection after CONNECT',
    script: [request, { reset: true }],
    client: byProxy('http:'),
    url: tunnelled,
    ...PROXY,
  },
  {
    name: 'an endless response to CONNECT',
    script: [request, { repeat: ['A: ' + 'b'.repeat(1000) + '\r\n', 200] }, hold],
    client: byProxy('http:'),
    url: tunnelled,
    ...PROXY,
  },
  {
    name: 'a proxy that cannot be reached',
    script: ok,
    client: () => ({ proxy: 'http://127.0.0.1:1' }),
    url: elsewhere,
    ...CONNECT,
  },
  {
    name: 'a 407 response to a request in absolute form',
    script: answering('HTTP/1.1 407 Who?\r\nContent-Length: 0\r\n\r\n', hold),
    client: byProxy('http:'),
    url: elsewhere,
    error: null,
  },
  {
    name: 'an HTTP server as SOCKS proxy',
    script: [{ take: '\x05' }, { write: 'HTTP/1.1 400\r\n' }, hold],
    client: byProxy('socks5h:'),
    url: elsewhere,
    ...PROXY,
  },
  {
    name: 'a SOCKS proxy that requires a password',
    script: [{ take: '\x05' }, { write: '\x05\xff' }, hold],
    client: byProxy('socks5h:'),
    url: elsewhere,
    ...PROXY,
    message: /user name/,
  },
  {
    name: 'a SOCKS proxy that cannot reach the host',
    script: [
      { take: '\x05\x01\x00' },
      { write: '\x05\x00' },
      { take: '\x05\x01\x00' },
      { write: '\x05\x04\x00\x01\0\0\0\0\0\0' },
      hold,
    ],
    client: byProxy('socks5h:'),
    url: elsewhere,
    ...PROXY,
    message: /host unreachable/,
  },
  {
    name: 'a SOCKS proxy that never responds',
    script: [{ take: '\x05' }, hold],
    client: byProxy('socks5h:'),
    url: elsewhere,
    options: { timeout: { connect: 60 } },
    ...CONNECT_TIMEOUT,
  },
  { name: 'CRLF in a header', script: ok, options: { headers: { 'X-A': 'b\r\nC: d' } }, ...LOCAL },
  { name: 'NUL in a header', script: ok, options: { headers: { 'X-A': 'b\0' } }, ...LOCAL },
  {
    name: 'CRLF in a header name',
    script: ok,
    options: { headers: { 'X-A\r\nB': 'b' } },
    ...LOCAL,
  },
  { name: 'CRLF in the method', script: ok, options: { method: 'GET / HTTP/1.1\r\n' }, ...LOCAL },
  {
    name: 'a space in the request target',
    script: ok,
    options: { extensions: { target: '/ HTTP/1.1\r\nX: y' } },
    ...LOCAL,
  },
  { name: 'CRLF in a cookie', script: ok, options: { cookies: { a: 'b\r\nX: y' } }, ...LOCAL },
  {
    name: 'Transfer-Encoding with Content-Length',
    script: ok,
    options: {
      headers: { 'Transfer-Encoding': 'chunked', 'Content-Length': '3' },
      method: 'POST',
      content: 'abc',
    },
    ...LOCAL,
  },
]

for (const kind of ['AsyncClient', 'Client'] as const) {
  for (const fault of faults) {
    const outcome = fault.error === null ? 'is accepted' : `is a ${fault.error}`
    test(`${kind}: ${fault.name} ${outcome}, and the next call works`, async () => {
      const origin = await play([fault.script, ok])
      const settings: AnyClientOptions = { timeout: 5_000, ...fault.client?.(origin) }
      const client =
        kind === 'Client' ? new Client(settings) : new AsyncClient(settings as AsyncClientOptions)
      try {
        const { method = 'GET', ...options } = fault.options ?? {}
        const url = fault.url?.(origin) ?? origin
        if (fault.error === null) {
          const response = await client.request(method, url, options)
          assert.ok(response.statusCode >= 200)
        } else {
          const error = await failure(() => client.request(method, url, options))
          const asEnd = fault.merged === true && error.code === REMOTE.code
          const expected = asEnd ? REMOTE : fault
          assert.equal(
            `${error.constructor.name} ${error.code}`,
            `${expected.error} ${expected.code}`,
            String(error),
          )
          if (fault.message !== undefined) assert.match(error.message, fault.message)
          if (error instanceof RequestError && method === 'GET' && fault.code !== LOCAL.code) {
            assert.equal(error.request?.url.origin, new URL(url).origin)
          }
        }
        if (fault.script !== ok && fault.client === undefined)
          assert.equal((await client.get(await play([ok]))).text, 'fine')
      } finally {
        await client.close()
      }
    })
  }

  test(`${kind}: a stale connection is replaced once for a GET, but not for a POST`, async () => {
    const keep = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n'
    // Each connection serves one request and resets at the next.
    const stale = [request, { write: keep + 'ok' }, request, { reset: true }]
    const origin = await play([stale, stale, stale])
    const client = kind === 'Client' ? new Client() : new AsyncClient()
    try {
      assert.equal((await client.get(origin)).text, 'ok')
      assert.equal((await client.get(origin)).text, 'ok')
      const error = await failure(() => client.post(origin, { content: 'x' }))
      assert.equal(error.constructor.name, 'ReadError')
    } finally {
      await client.close()
    }
  })

  test(`${kind}: surplus bytes after a response close the connection`, async () => {
    const origin = await play([
      answering('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\nevil', hold),
      ok,
    ])
    const client = kind === 'Client' ? new Client() : new AsyncClient()
    try {
      assert.equal((await client.get(origin)).text, 'ok')
      assert.equal((await client.get(origin)).text, 'fine')
    } finally {
      await client.close()
    }
  })
}
