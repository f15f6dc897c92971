import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { describe, test } from 'node:test'
import {
  type Admission,
  CloseCode,
  type Refusal,
  WebSocketServer,
  type WebSocketServerOptions,
  type WebSocketConnection,
} from 'runwright/ws'
import {
  closeFrame,
  echo,
  frame,
  listen,
  opening,
  RawPeer,
  stop,
  text,
  world,
} from '../helpers/ws-peer.js'
import { link, StubSocket } from './stub-socket.js'

const silent: WebSocketServerOptions = {
  onConnection: (connection) => (connection.onMessage = () => {}),
}

describe('authorize', () => {
  const problem = JSON.stringify({ code: 'unknown_run', status: 404 })
  const refusals: {
    name: string
    refusal: Refusal
    headers: Record<string, string>
    body: string
  }[] = [
    {
      name: 'a 401 with WWW-Authenticate (RFC 6455 §10.5)',
      refusal: { status: 401, headers: { 'WWW-Authenticate': 'Bearer' } },
      headers: { 'www-authenticate': 'Bearer' },
      body: 'Unauthorized',
    },
    {
      name: 'a 404 as problem details (RFC 6455 §4.2.2)',
      refusal: {
        status: 404,
        headers: { 'content-type': 'application/problem+json' },
        body: problem,
      },
      headers: { 'content-type': 'application/problem+json' },
      body: problem,
    },
    {
      name: 'a redirect (RFC 6455 §4.2.2)',
      refusal: { status: 307, headers: { Location: 'wss://elsewhere.example/' } },
      headers: { location: 'wss://elsewhere.example/' },
      body: 'Temporary Redirect',
    },
    {
      name: 'a 403 with a binary body',
      refusal: { status: 403, body: new Uint8Array([104, 105]) },
      headers: {},
      body: 'hi',
    },
    {
      name: 'a 409',
      refusal: { status: 409, headers: { 'X-Empty': undefined, 'Set-Cookie': ['a=1'] } },
      headers: { 'set-cookie': 'a=1' },
      body: 'Conflict',
    },
  ]
  for (const { name, refusal, headers, body } of refusals) {
    for (const later of [false, true]) {
      test(`answers ${name} in place of the 101, ${later ? 'later' : 'at once'}`, async () => {
        await using w = await world({
          authorize: () => (later ? Promise.resolve(refusal) : refusal),
          onConnection: () => assert.fail('a refused client was accepted'),
        })
        const peer = await w.dial()
        peer.write(Buffer.concat([Buffer.from(opening()), text('smuggled')]))
        const head = await peer.head()
        assert.equal(head.status, refusal.status)
        assert.equal(head.headers.get('connection'), 'close')
        for (const [field, value] of Object.entries(headers))
          assert.equal(head.headers.get(field), value)
        assert.equal((await peer.body()).toString(), body)
        assert.equal(w.sockets.connections.size, 0)
      })
    }
  }

  test('its context and headers reach the connection and the client', async () => {
    await using w = await world<{ user: string }>({
      authorize: (request) => ({
        context: { user: String(request.headers['x-user']) },
        headers: { 'Set-Cookie': ['a=1', 'b=2'] },
      }),
      onConnection(connection, request) {
        connection.send(`${connection.context.user} at ${request.url}`)
      },
    })
    const peer = await w.dial()
    peer.write(opening({ 'X-User': 'ada' }, { path: '/runs/1?after=2' }))
    assert.match((await peer.head()).raw, /Set-Cookie: a=1\r\nSet-Cookie: b=2/)
    assert.equal(await peer.line(), 'text:ada at /runs/1?after=2')
  })

  test('throwing is a 500 and is reported, without details for the client', async () => {
    const errors: unknown[] = []
    for (const authorize of [
      () => { throw new Error('secret') },
      () => Promise.reject(new Error('secret')),
    ]) {
      await using w = await world({ authorize, onError: (error) => errors.push(error) })
      const peer = await w.dial()
      peer.write(opening())
      assert.equal((await peer.head()).status, 500)
      assert.doesNotMatch((await peer.body()).toString(), /secret/)
    }
    assert.equal(errors.length, 2)
  })

  test('a header that would break the response is a 500, not an injection', async () => {
    const errors: unknown[] = []
    for (const answer of [
      { status: 401, headers: { 'X-Bad': 'a\r\nSet-Cookie: b=1' } },
      { context: undefined, headers: { 'X-Bad': 'a\r\nSet-Cookie: b=1' } },
      { status: 401, headers: { 'X Bad': 'a' } },
    ]) {
      await using w = await world({
        authorize: () => answer,
        onError: (error) => errors.push(error),
      })
      const peer = await w.dial()
      peer.write(opening())
      const head = await peer.head()
      assert.equal(head.status, 500)
      assert.equal(head.headers.has('set-cookie'), false)
    }
    assert.equal(errors.length, 3)
  })

  test('an invalid result is a 500 and is reported', async () => {
    const errors: unknown[] = []
    for (const answer of [
      { status: 200 },
      { status: NaN },
      { status: 101 },
      undefined,
      null,
      'yes',
    ]) {
      await using w = await world({
        authorize: () => answer as Refusal,
        onError: (error) => errors.push(error),
      })
      const peer = await w.dial()
      peer.write(opening())
      assert.equal((await peer.head()).status, 500)
    }
    assert.equal(errors.length, 6)
    assert.ok(errors.every((error) => error instanceof TypeError))
  })

  test('taking too long is a 503 and aborts its signal', async () => {
    let signal: AbortSignal | undefined
    await using w = await world({
      handshakeTimeoutMs: 10,
      authorize: (_request, offer) => {
        signal = offer.signal
        return new Promise<never>(() => {})
      },
    })
    const peer = await w.dial()
    peer.write(opening())
    const head = await peer.head()
    assert.equal(head.status, 503)
    assert.equal(head.headers.get('retry-after'), '5')
    assert.equal(signal!.aborted, true)
  })

  test('a reset by the peer meanwhile aborts the signal and does no harm', async () => {
    let called: (signal: AbortSignal) => void
    const signal = new Promise<AbortSignal>((resolve) => (called = resolve))
    await using w = await world({
      authorize: (_request, offer) => {
        called(offer.signal)
        return new Promise<Admission<undefined>>((resolve) => {
          offer.signal.addEventListener('abort', () => resolve({ context: undefined }))
        })
      },
      onConnection: () => assert.fail('a disconnected client was accepted'),
    })
    const peer = await w.dial()
    peer.write(opening())
    const given = await signal
    const aborted = given.aborted ? Promise.resolve() : once(given, 'abort')
    ;(peer.socket as import('node:net').Socket).resetAndDestroy()
    await aborted
    assert.equal(w.sockets.connections.size, 0)
  })

  test('is called only for valid handshakes from allowed origins', async () => {
    let called = 0
    await using w = await world({
      authorize: () => {
        called++
        return { status: 401 }
      },
    })
    for (const headers of [{ Origin: 'https://evil.example' }, { 'Sec-WebSocket-Key': 'x' }]) {
      const peer = await w.dial()
      peer.write(opening(headers))
      await peer.head()
    }
    assert.equal(called, 0)
  })
})

describe('origins', () => {
  const cases: [string, WebSocketServerOptions['origins'], string | null, number][] = [
    ['any accepts every page', 'any', 'https://other.example', 101],
    [
      'a list accepts its members',
      ['https://a.example', 'http://b.example:81/'],
      'http://b.example:81',
      101,
    ],
    ['a list refuses others', ['https://a.example'], 'http://a.example', 403],
    ['a list refuses the own host', ['https://a.example'], 'http://localhost', 403],
    ['a list accepts a request without an origin', ['https://a.example'], null, 101],
    ['a function decides', (origin) => origin.endsWith('.example'), 'https://x.example', 101],
    ['a function refuses', () => false, 'http://localhost', 403],
  ]
  for (const [name, origins, origin, status] of cases) {
    test(`${name} (RFC 6455 §10.2)`, async () => {
      await using w = await world({ origins })
      const peer = await w.dial()
      peer.write(opening({ Origin: origin }))
      assert.equal((await peer.head()).status, status)
    })
  }

  test('a function that throws is a 500', async () => {
    const errors: unknown[] = []
    await using w = await world({
      origins: () => { throw new Error('mine') },
      onError: (error) => errors.push(error),
    })
    const peer = await w.dial()
    peer.write(opening({ Origin: 'http://localhost' }))
    assert.equal((await peer.head()).status, 500)
    assert.equal(errors.length, 1)
  })
})

describe('limits', () => {
  test('connections beyond maxConnections get 503, including handshakes in progress', async () => {
    let admit = (): void => {}
    await using w = await world({
      maxConnections: 2,
      authorize: (request) =>
        request.url === '/slow'
          ? new Promise<Admission<undefined>>(
              (resolve) => (admit = () => resolve({ context: undefined })),
            )
          : { context: undefined },
    })
    const first = await w.open()
    const second = await w.dial()
    const called = once(w.server, 'upgrade')
    second.write(opening({}, { path: '/slow' }))
    await called
    const third = await w.dial()
    third.write(opening())
    assert.equal((await third.head()).status, 503)
    admit()
    assert.equal((await second.head()).status, 101)
    first.write(closeFrame(1000))
    await first.finish()
    const [gone] = w.sockets.connections
    await (w.sockets.connections.size === 2 ? gone!.closed : Promise.resolve())
    await w.open()
  })
})

test('one signal for many connections and handshakes causes no leak warning', async () => {
  const warnings: Error[] = []
  const note = (warning: Error): void => void warnings.push(warning)
  process.on('warning', note)
  const shutdown = new AbortController()
  const ended: unknown[] = []
  let admit = (): void => {}
  const admitted = new Promise<Admission<undefined>>(
    (resolve) => (admit = () => resolve({ context: undefined })),
  )
  let called = 0
  await using w = await world({
    authorize: () => {
      if (++called === 30) admit()
      return admitted
    },
    onConnection: async (connection) => {
      try {
        for await (const _ of connection.messages({ signal: shutdown.signal }));
      } catch (error) {
        ended.push(error)
      }
    },
  })
  await Promise.all(Array.from({ length: 30 }, () => w.open()))
  const reason = new Error('enough')
  shutdown.abort(reason)
  await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', note)
  assert.deepEqual([warnings, ended], [[], Array.from({ length: 30 }, () => reason)])
})

describe('upgrade', () => {
  test('a host may route requests itself, below its own prefix', async () => {
    const sockets = new WebSocketServer(echo)
    const server = createServer()
    server.on('upgrade', (request, socket, head) => {
      if (request.url!.startsWith('/agents/')) void sockets.upgrade(request, socket, head)
      else socket.end('HTTP/1.1 418 I am a Teapot\r\n\r\n')
    })
    const port = await listen(server)
    const [ours, theirs] = [await RawPeer.connect(port), await RawPeer.connect(port)]
    ours.write(opening({}, { path: '/agents/api/ws/1' }))
    theirs.write(opening({}, { path: '/other' }))
    assert.equal((await ours.head()).status, 101)
    assert.equal((await theirs.head()).status, 418)
    for (const { socket } of [ours, theirs]) socket.destroy()
    await sockets.close()
    await stop(server)
  })

  test('it resolves to the connection, or to null if it was refused', async () => {
    await using w = await world(silent, null)
    const results: Promise<WebSocketConnection<undefined> | null>[] = []
    w.server.on('upgrade', (request, socket, head) => {
      results.push(w.sockets.upgrade(request, socket, head))
    })
    const good = await w.open()
    assert.equal((await results[0])!.state, 'open')
    const bad = await w.dial()
    bad.write(opening({ 'Sec-WebSocket-Version': '8' }))
    await bad.head()
    assert.equal(await results[1], null)
    good.socket.destroy()
  })

  test('a second upgrade of a socket is reported and has no effect', async () => {
    const errors: unknown[] = []
    await using w = await world({ ...echo, onError: (error) => errors.push(error) }, null)
    let second: Promise<unknown> | undefined
    w.server.on('upgrade', (request, socket, head) => {
      void w.sockets.upgrade(request, socket, head)
      second = w.sockets.upgrade(request, socket, head)
    })
    const peer = await w.open()
    assert.equal(await second, null)
    assert.match(String(errors), /^TypeError: this socket was already upgraded/)
    peer.write(text('fine'))
    assert.equal(await peer.line(), 'text:fine')
  })

  test('if a host routes every upgrade here, other protocols get 426', async () => {
    await using w = await world(echo, null)
    w.server.on('upgrade', (request, socket, head) => void w.sockets.upgrade(request, socket, head))
    const peer = await w.dial()
    peer.write(opening({ Upgrade: 'h2c' }))
    assert.equal((await peer.head()).status, 426)
  })

  test('attaching and routing at once is reported, and the first call serves', async () => {
    const errors: unknown[] = []
    await using w = await world({ ...echo, onError: (error) => errors.push(error) }, null)
    w.server.on('upgrade', (request, socket, head) => void w.sockets.upgrade(request, socket, head))
    w.sockets.attach(w.server)
    const peer = await w.open()
    peer.write(text('once'))
    assert.equal(await peer.line(), 'text:once')
    assert.equal(errors.length, 1)
  })

  test('requireUpgrade answers a plain request with 426 (RFC 6455 §4.2.2)', async () => {
    const sockets = new WebSocketServer()
    const server = createServer((_request, response) => sockets.requireUpgrade(response))
    const port = await listen(server)
    const response = await fetch(`http://127.0.0.1:${port}/`)
    assert.equal(response.status, 426)
    assert.equal(response.headers.get('upgrade'), 'websocket')
    assert.equal(response.headers.get('sec-websocket-version'), '13')
    await response.text()
    await sockets.close()
    await stop(server)
  })
})

describe('shutdown', () => {
  test('close sends 1001 to all, refuses new connections with 503, and completes', async () => {
    await using w = await world(silent)
    const peers = [await w.open(), await w.open(), await w.open()]
    const closed = w.sockets.close({ reason: 'restart' })
    for (const peer of peers) assert.equal(await peer.line(), 'close:1001:restart')
    const late = await w.dial()
    late.write(opening())
    assert.equal((await late.head()).status, 503)
    for (const peer of peers) {
      peer.write(closeFrame(CloseCode.GOING_AWAY))
      peer.socket.end()
    }
    await closed
    assert.equal(w.sockets.connections.size, 0)
    assert.equal(w.server.listenerCount('upgrade'), 0)
  })

  test('close() of the HTTP server completes even if peers never answer', async () => {
    const server = createServer()
    const sockets = new WebSocketServer({ ...silent, closeTimeoutMs: 20 })
    sockets.attach(server)
    const port = await listen(server)
    const peer = await RawPeer.connect(port)
    peer.write(opening())
    await peer.head()
    const ended = once(server, 'close')
    server.close()
    await Promise.all([sockets.close(), sockets.close(), ended])
    peer.socket.destroy()
  })

  test('a bad option is refused at once, and a later close() completes', async () => {
    await using w = await world(silent)
    const peer = await w.open()
    for (const code of [0, 999, 1004, 1005, 1006, 1015, 2000, 5000, NaN, 1000.5]) {
      const close = (): unknown => w.sockets.close({ code })
      assert.throws(close, /^(RangeError: close code|TypeError: code) must be/)
    }
    for (const bad of [{ reason: 5 }, { refusal: { status: 200 } }, { codes: 1000 }, 5]) {
      assert.throws(() => w.sockets.close(bad as object), TypeError)
    }
    peer.write(frame(9, 'still open'))
    assert.equal(await peer.line(), 'pong:still open')
    const closed = w.sockets.close()
    assert.throws(() => w.sockets.close({ code: 1005 }), RangeError)
    assert.equal(await peer.line(), 'close:1001')
    peer.socket.destroy()
    await closed
  })

  test('close() completes over a transport that never reports its end', async () => {
    const sockets = new WebSocketServer({ keepAlive: null, closeTimeoutMs: 20 })
    const mute = new StubSocket()
    const { connection } = await link(sockets, mute)
    mute.destroy = () => mute
    const alive = setInterval(() => {}, 1_000)
    await sockets.close()
    clearInterval(alive)
    assert.equal((await connection.closed).wasClean, false)
  })

  test('a handshake in progress is answered 503', async () => {
    let called = (): void => {}
    const waiting = new Promise<void>((resolve) => (called = resolve))
    await using w = await world({
      authorize: () => {
        called()
        return new Promise<never>(() => {})
      },
    })
    const peer = await w.dial()
    peer.write(opening())
    await waiting
    const closed = w.sockets.close()
    assert.equal((await peer.head()).status, 503)
    await closed
  })

  test('a signal closes the server, even if it has aborted before', async () => {
    const controller = new AbortController()
    await using w = await world({ ...silent, signal: controller.signal })
    const peer = await w.open()
    controller.abort()
    assert.equal(await peer.line(), 'close:1001')
    peer.socket.destroy()
    await w.sockets.close()
    await new WebSocketServer({ signal: controller.signal }).close()
  })

  test('await using closes the server', async () => {
    await using w = await world(silent)
    const peer = await w.open()
    const done = (async () => {
      await using sockets = w.sockets
      assert.equal(sockets.connections.size, 1)
    })()
    assert.equal(await peer.line(), 'close:1001')
    peer.socket.destroy()
    await done
  })
})

test('50 concurrent peers with input of every kind get their own replies', async () => {
  await using w = await world(echo)
  const peers = await Promise.all(Array.from({ length: 50 }, () => w.open()))
  for (const [i, peer] of peers.entries()) {
    peer.write(Buffer.concat([text(`${i}`, { fin: false }), frame(9, `p${i}`), frame(0, `+${i}`)]))
  }
  for (const [i, peer] of peers.entries()) {
    assert.deepEqual(await peer.lines(2), [`pong:p${i}`, `text:${i}+${i}`])
  }
})
