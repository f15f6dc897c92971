import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { constants, createSecureServer, createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { fileURLToPath } from 'node:url'
import { test } from 'node:test'
import { AsyncClient, ReadTimeoutError, RemoteProtocolError } from 'runwright/http'
import { listen, type Served } from '../helpers/serve.js'

const cert = (name: string): Buffer => readFileSync(fileURLToPath(new URL(`../fixtures/http/certs/${name}.pem`, import.meta.url)))
const verify = { ca: cert('ca').toString() }

type OnStream = (stream: ServerHttp2Stream, headers: Record<string, unknown>) => void

function secureServer(onStream: OnStream, settings = {}): Promise<Served> {
  const server = createSecureServer({
    cert: cert('server'),
    key: cert('server-key'),
    allowHTTP1: true,
    settings,
  })
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    onStream(stream, headers)
  })
  server.on('sessionError', () => {})
  return listen(server as never, 'https')
}

const answer = (stream: ServerHttp2Stream, body: string, headers = {}): void => {
  stream.respond({ ':status': 200, ...headers })
  stream.end(body)
}

test('HTTP/2 is spoken when it is offered and chosen; many calls share one connection', async () => {
  await using server = await secureServer((stream, headers) => answer(stream, String(headers[':path'])))
  await using client = new AsyncClient({ http2: true, verify })
  const responses = await Promise.all([...Array(50).keys()].map((i) => client.get(`${server.origin}/${i}`)))
  assert.deepEqual(responses.map((response) => response.text), [...Array(50).keys()].map((i) => `/${i}`))
  assert.equal(responses[0]!.httpVersion, 'HTTP/2')
  assert.equal(responses[0]!.reasonPhrase, 'OK')
  assert.equal(server.accepted, 1)
})

test('without the offer HTTP/1.1 is spoken, and a server that knows only that is served so', async () => {
  await using server = await secureServer((stream) => answer(stream, ''))
  server.server.on('request', (request, response) => {
    if (request.httpVersionMajor === 1) response.end('one')
  })
  await using client = new AsyncClient({ verify })
  assert.equal((await client.get(server.origin)).httpVersion, 'HTTP/1.1')
})

test('with http1: false HTTP/2 is spoken in the clear', async () => {
  const plain = createServer()
  plain.on('stream', (stream) => answer(stream, 'clear'))
  await using server = await listen(plain as never)
  await using client = new AsyncClient({ http1: false, http2: true })
  const response = await client.get(server.origin)
  assert.deepEqual([response.text, response.httpVersion], ['clear', 'HTTP/2'])
})

test('fields of the connection are not sent, Host becomes :authority', async () => {
  let seen: Record<string, unknown> = {}
  await using server = await secureServer((stream, headers) => {
    seen = headers
    answer(stream, '')
  })
  await using client = new AsyncClient({ http2: true, verify })
  await client.get(server.origin, { headers: { Host: 'other.test', Connection: 'x-hop', 'X-Hop': '1', 'X-End': '2' } })
  assert.equal(seen[':authority'], 'other.test')
  assert.equal(seen['x-end'], '2')
  for (const name of ['connection', 'host', 'x-hop', 'transfer-encoding']) assert.equal(seen[name], undefined, name)
})

test('bodies go both ways, larger than any window, with trailers', async () => {
  await using server = await secureServer((stream) => {
    stream.respond({ ':status': 200 }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '1' }))
    stream.pipe(stream)
  })
  await using client = new AsyncClient({ http2: true, verify })
  const content = Buffer.alloc(20_000_000, 'x')
  const whole = await client.post(server.origin, { content })
  assert.equal(whole.content.length, content.length)
  assert.equal(whole.trailers.get('x-sum'), '1')
  const chunks = async function* (): AsyncGenerator<Buffer> {
    for (let i = 0; i < 50; i++) yield content.subarray(0, 100_000)
  }
  assert.equal((await client.post(server.origin, { content: chunks() })).content.length, 5_000_000)
})

test('after GOAWAY the next call opens a new connection, and streams that are open go on', async () => {
  let session: ServerHttp2Session | undefined
  let finish: (() => void) | undefined
  await using server = await secureServer((stream, headers) => {
    session = stream.session as ServerHttp2Session
    if (headers[':path'] === '/slow') {
      stream.respond({ ':status': 200 })
      stream.write('begun')
      finish = () => stream.end(' and done')
    } else answer(stream, 'quick')
  })
  await using client = new AsyncClient({ http2: true, verify })
  const slow = await client.stream('GET', `${server.origin}/slow`)
  session!.goaway(constants.NGHTTP2_NO_ERROR)
  for (let i = 0; i < 3; i++) assert.equal((await client.get(server.origin)).text, 'quick')
  finish!()
  assert.equal((await slow.read()).toString(), 'begun and done')
  assert.equal(server.accepted, 2)
})

test('a refused stream is sent again, even a POST; another reset is an error', async () => {
  let tries = 0
  await using server = await secureServer((stream, headers) => {
    if (headers[':path'] === '/reset') stream.close(constants.NGHTTP2_INTERNAL_ERROR)
    else if (tries++ === 0) stream.close(constants.NGHTTP2_REFUSED_STREAM)
    else answer(stream, 'second')
  })
  await using client = new AsyncClient({ http2: true, verify })
  assert.equal((await client.post(server.origin, { content: 'x' })).text, 'second')
  await assert.rejects(client.get(`${server.origin}/reset`), RemoteProtocolError)
  assert.equal((await client.get(server.origin)).text, 'second')
})

test("the server's limit of streams is kept to", async () => {
  let most = 0
  const open = new Set<ServerHttp2Stream>()
  await using server = await secureServer(
    (stream) => {
      open.add(stream)
      most = Math.max(most, open.size)
      setImmediate(() => {
        open.delete(stream)
        answer(stream, 'ok')
      })
    },
    { maxConcurrentStreams: 3 },
  )
  await using client = new AsyncClient({ http2: true, verify, limits: { maxConnections: 1 } })
  const responses = await Promise.all([...Array(30).keys()].map(() => client.get(server.origin)))
  assert.equal(responses.every((response) => response.text === 'ok'), true)
  assert.ok(most <= 3, `${most} streams at a time`)
  assert.equal(server.accepted, 1)
})

test('a lost session ends its streams with an error and does no more harm', async () => {
  await using server = await secureServer((stream, headers) => {
    if (headers[':path'] === '/lost') (stream.session as ServerHttp2Session).destroy()
    else if (headers[':path'] !== '/never') answer(stream, 'ok')
  })
  await using client = new AsyncClient({ http2: true, verify })
  await assert.rejects(client.get(`${server.origin}/lost`), RemoteProtocolError)
  await assert.rejects(client.get(`${server.origin}/never`, { timeout: { read: 30 } }), ReadTimeoutError)
  assert.equal((await client.get(server.origin)).text, 'ok')
})

test('an aborted stream leaves the others alone', async () => {
  await using server = await secureServer((stream, headers) => {
    if (headers[':path'] === '/a') answer(stream, 'ok')
  })
  await using client = new AsyncClient({ http2: true, verify })
  const controller = new AbortController()
  const reason = new Error('no more')
  const never = client.get(`${server.origin}/never`, { signal: controller.signal })
  const first = await client.get(`${server.origin}/a`)
  controller.abort(reason)
  await assert.rejects(never, (error) => error === reason)
  assert.equal((await client.get(`${server.origin}/a`)).text, first.text)
  assert.equal(server.accepted, 1)
})
