import assert from 'node:assert/strict'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer as createHttp } from 'node:http'
import { createServer as createHttps } from 'node:https'
import { connect, createServer as createTcp, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'
import {
  ConnectError,
  OpeningTimeoutError,
  prepare,
  WebSocketClient,
  type WebSocketClientOptions,
  type WebSocketMessage,
  WebSocketServer,
  type WebSocketServerOptions,
} from 'runwright/ws'
import { certificate, key } from '../helpers/ws-certificate.js'
import { echo, frame, listen, stop, turn, world } from '../helpers/ws-peer.js'
import { rawServer, response } from '../helpers/ws-raw-server.js'

const urlOf = ({ port }: { readonly port: number }): string => `ws://127.0.0.1:${port}/`

async function take(
  messages: AsyncIterator<WebSocketMessage, undefined>,
  count: number,
): Promise<(WebSocketMessage | undefined)[]> {
  const taken = []
  while (taken.length < count) taken.push((await messages.next()).value)
  return taken
}

/** Payloads at the bounds of each form of a length. */
const payloads = [
  '', 'hello', 'κόσμε € 💩', 'x'.repeat(70_000), Buffer.alloc(0), Buffer.alloc(125, 1),
  Buffer.alloc(126, 2), Buffer.alloc(65_535, 3), Buffer.alloc(65_536, 4),
]

/** A client and a server with these settings exchange all payloads, twice. */
async function exchange(
  own: WebSocketClientOptions['deflate'],
  other: WebSocketServerOptions['deflate'],
): Promise<void> {
  await using w = await world({ ...echo, protocols: ['v1'], deflate: other })
  const client = new WebSocketClient({ deflate: own, protocols: ['v0', 'v1'] })
  await using connection = await client.connect(urlOf(w))
  assert.equal(connection.protocol, 'v1')
  assert.equal('sec-websocket-extensions' in connection.context.headers, other !== false)
  const messages = connection.messages()
  for (let i = 0; i < 2; i++) {
    for (const payload of payloads) connection.send(payload)
    assert.deepEqual(await take(messages, payloads.length), payloads)
  }
  assert.equal(connection.state, 'open')
}

test('a client and the server of this library agree on any compression', async () => {
  const free = { thresholdBytes: 0, serverContextTakeover: true, clientContextTakeover: true }
  for (const serverMaxWindowBits of [8, 9, 12, 15]) {
    for (const serverContextTakeover of [true, false]) {
      const deflate = {
        thresholdBytes: 0, serverMaxWindowBits, clientMaxWindowBits: 23 - serverMaxWindowBits,
        serverContextTakeover, clientContextTakeover: serverMaxWindowBits % 2 === 0,
      }
      await exchange(deflate, deflate)
      // Where the server allows everything, what is agreed is what the client asked for.
      await exchange(deflate, free)
    }
  }
})

test('a client and the server of this library exchange messages without compression', async () => {
  await exchange(false, false)
  await exchange(true, false)
})

describe('a client and the server of this library', () => {
  test('close from either side, with the same outcome for both', async () => {
    for (const side of ['client', 'server', 'both'] as const) {
      await using w = await world(echo)
      const connection = await new WebSocketClient().connect(urlOf(w))
      const [peer] = [...w.sockets.connections]
      if (side !== 'server') void connection.close(4001, 'from the client')
      if (side !== 'client') void peer!.close(4002, 'from the server')
      const [mine, theirs] = [await connection.closed, await peer!.closed]
      assert.deepEqual([mine.wasClean, theirs.wasClean], [true, true])
      const codes = { client: [4001, 4001], server: [4002, 4002], both: [4002, 4001] }[side]
      assert.deepEqual([mine.code, theirs.code], codes)
    }
  })

  test('prepared messages go to both kinds of connections, and are not changed', async () => {
    for (const deflate of [false, true]) {
      await using w = await world({ ...echo, deflate })
      const client = new WebSocketClient({ deflate })
      const message = prepare('again '.repeat(1_000))
      const connections = await Promise.all([1, 2, 3].map(() => client.connect(urlOf(w))))
      for (let i = 0; i < 2; i++) {
        assert.equal(w.sockets.broadcast(message, connections), 3)
        assert.equal(w.sockets.broadcast(message), 3)
      }
      for (const connection of connections) {
        const messages = connection.messages()
        assert.deepEqual(await take(messages, 4), Array(4).fill('again '.repeat(1_000)))
        await connection.close()
      }
    }
  })

  for (const policy of ['close', 'drop', 'coalesce'] as const) {
    test(`a server that does not read: ${policy}`, async () => {
      await using server = await rawServer()
      const client = new WebSocketClient({
        backpressure: { policy, highWaterBytes: 10_000, limitBytes: 100_000 },
      })
      const [connection, peer] = await Promise.all([client.connect(server.url), server.open()])
      peer.socket.pause()
      const results = new Set<string>()
      let sent = 0
      for (; sent < 2_000; sent++) {
        const result = connection.send('x'.repeat(5_000) + sent, { key: 'state' })
        results.add(result)
        if (result === 'closed' || result === 'dropped') break
        assert.ok(connection.bufferedAmount < 5_000_000)
        await turn()
      }
      peer.socket.resume()
      if (policy === 'close') {
        assert.ok(results.has('closed'))
        while (!(await peer.line()).startsWith('close:1013'));
        peer.socket.end()
        assert.equal((await connection.closed).error?.code, 'ERR_WS_SLOW_READER')
        return
      }
      assert.ok(results.has(policy === 'drop' ? 'dropped' : 'full'))
      assert.equal(await connection.drained(), true)
      let last = ''
      connection.send('end')
      for (let line = ''; line !== 'text:end'; line = await peer.line()) last = line
      if (policy === 'coalesce') assert.equal(last, `text:${'x'.repeat(5_000)}${sent - 1}`)
      connection.terminate()
    })
  }

  test('the client pings, and gives up a server that is silent', async () => {
    await using server = await rawServer()
    const client = new WebSocketClient({ keepAlive: { intervalMs: 20, timeoutMs: 40 } })
    const [connection, peer] = await Promise.all([client.connect(server.url), server.open()])
    assert.equal(await peer.line(), 'ping:')
    const { code, error } = await connection.closed
    assert.deepEqual([code, error?.message], [1006, 'the peer sent nothing for too long'])
  })

  test('a handler that throws ends its connection, and is reported', async () => {
    await using w = await world({ onConnection: (connection) => void connection.send('hi') })
    const reported: unknown[] = []
    const client = new WebSocketClient({ onError: (error) => reported.push(error) })
    const connection = await client.connect(urlOf(w))
    const failure = new Error('of the program')
    connection.onMessage = () => {
      throw failure
    }
    assert.equal((await connection.closed).error?.code, 'ERR_WS_HANDLER')
    assert.deepEqual(reported, [failure])
  })
})

describe('the transport at the end (RFC 6455 §7.1.1)', () => {
  test('the client waits until the server has ended it', async () => {
    await using server = await rawServer()
    const client = new WebSocketClient()
    const [connection, peer] = await Promise.all([client.connect(server.url), server.open()])
    const closed = connection.close(1000, 'bye')
    assert.equal(await peer.line(), 'close:1000:bye')
    let ended = false
    peer.socket.on('end', () => (ended = true))
    peer.write(frame(8, Buffer.from([3, 232]), { mask: false }))
    for (let i = 0; i < 20; i++) await turn()
    assert.equal(ended, false)
    assert.equal(connection.state, 'closing')
    peer.socket.end()
    await peer.body()
    assert.deepEqual(await closed, { code: 1000, reason: '', wasClean: true, error: null })
  })

  test('a server that never does so is given up after closeTimeoutMs', async () => {
    for (const answers of [true, false]) {
      await using server = await rawServer()
      const client = new WebSocketClient({ closeTimeoutMs: 30 })
      const [connection, peer] = await Promise.all([client.connect(server.url), server.open()])
      const closed = connection.close()
      assert.equal(await peer.line(), 'close:1000')
      if (answers) peer.write(frame(8, Buffer.from([3, 232]), { mask: false }))
      const { code, wasClean } = await closed
      assert.deepEqual([code, wasClean], answers ? [1000, true] : [1006, false])
      await peer.body()
    }
  })

  test('replies of a loop go out behind the FIN of a server that half-closes', async () => {
    await using server = await rawServer()
    const [connection, peer] = await Promise.all([
      new WebSocketClient().connect(server.url),
      server.open(),
    ])
    const loop = (async () => {
      for await (const message of connection) {
        await turn()
        connection.send(`re: ${String(message)}`)
      }
    })()
    for (const message of ['1', '2', '3']) peer.write(frame(1, message, { mask: false }))
    peer.socket.end()
    assert.deepEqual(await peer.rest(), ['text:re: 1', 'text:re: 2', 'text:re: 3'])
    await loop
    assert.equal((await connection.closed).error?.code, 'ERR_WS_CONNECTION_LOST')
  })
})

/** A TLS server of WebSockets on a free port. */
async function tlsWorld(
  tls: object,
  options: WebSocketServerOptions<undefined> = echo,
): Promise<{ url: string } & AsyncDisposable> {
  const server = createHttps({ cert: certificate, key, ...tls })
  const sockets = new WebSocketServer(options)
  sockets.attach(server)
  const port = await listen(server)
  return {
    url: `wss://localhost:${port}/`,
    async [Symbol.asyncDispose]() {
      await sockets.close()
      await stop(server)
    },
  }
}

describe('TLS', () => {
  test('a certificate that is not trusted is refused, by name and reason', async () => {
    await using server = await tlsWorld({})
    await assert.rejects(new WebSocketClient().connect(server.url), (error: ConnectError) => {
      assert.ok(error instanceof ConnectError)
      assert.match(error.message, /^cannot connect to localhost:\d+: self-signed certificate/)
      assert.equal((error.cause as NodeJS.ErrnoException).code, 'DEPTH_ZERO_SELF_SIGNED_CERT')
      return true
    })
  })

  test('ca, rejectUnauthorized and servername are those of tls.connect()', async () => {
    await using server = await tlsWorld({})
    const open = async (tls: object, url = server.url): Promise<void> => {
      await using connection = await new WebSocketClient({ tls }).connect(url)
      connection.send('hello')
      assert.deepEqual(await take(connection.messages(), 1), ['hello'])
    }
    await open({ ca: certificate })
    await open({ rejectUnauthorized: false })
    await open({ ca: certificate }, server.url.replace('localhost', '127.0.0.1'))
    await assert.rejects(open({ ca: certificate, servername: 'other.example' }), {
      code: 'ERR_WS_CONNECT', message: /other\.example/,
    })
    const checkServerIdentity = (): Error => new Error('not this one')
    await assert.rejects(open({ ca: certificate, checkServerIdentity }), /not this one/)
  })

  test('a certificate of the client is sent', async () => {
    await using server = await tlsWorld({ requestCert: true, ca: certificate })
    const trusting = { ca: certificate }
    const client = new WebSocketClient({ tls: { ...trusting, cert: certificate, key } })
    await using connection = await client.connect(server.url)
    connection.send('hello')
    assert.deepEqual(await take(connection.messages(), 1), ['hello'])
    await assert.rejects(new WebSocketClient({ tls: trusting }).connect(server.url))
  })

  test('the wrong scheme is an error that says so', async () => {
    await using server = await tlsWorld({})
    await using plain = await world(echo)
    const toTls = new WebSocketClient().connect(server.url.replace('wss', 'ws'))
    await assert.rejects(toTls, { code: 'ERR_WS_HANDSHAKE' })
    const toPlain = new WebSocketClient().connect(`wss://localhost:${plain.port}`)
    await assert.rejects(toPlain, { code: 'ERR_WS_CONNECT' })
  })

  test('HTTP/2 is not offered, which could not be upgraded', async () => {
    await using server = await tlsWorld({ ALPNProtocols: ['h2', 'http/1.1'] })
    const client = new WebSocketClient({ tls: { ca: certificate } })
    await using connection = await client.connect(server.url)
    connection.send('x')
    assert.deepEqual(await take(connection.messages(), 1), ['x'])
  })
})

describe('a server that cannot be reached', () => {
  test('is a ConnectError with each reason', async () => {
    const server = createTcp()
    const port = await listen(server as never)
    await new Promise((resolve) => server.close(resolve))
    const client = new WebSocketClient()
    for (const [host, pattern] of [
      ['127.0.0.1', /^cannot connect to 127\.0\.0\.1:\d+: connect ECONNREFUSED/],
      ['localhost', /^cannot connect to localhost:\d+: connect ECONNREFUSED/],
      ['[::1]', /^cannot connect to \[::1\]:\d+: connect E/],
      ['name.invalid', /^cannot connect to name\.invalid:\d+: getaddrinfo/],
    ] as const) {
      await assert.rejects(client.connect(`ws://user:SECRET@${host}:${port}/?SECRET`), (error) => {
        assert.ok(error instanceof ConnectError)
        assert.match(error.message, pattern)
        assert.doesNotMatch(inspect(error), /SECRET/)
        return true
      })
    }
  })
})

/** Stages of an opening at which nothing answers. */
const stages = {
  'the connect function': { url: 'ws://h', connect: () => new Promise<never>(() => {}) },
  'a transport that connects': {
    url: 'ws://h',
    connect: () => Object.assign(new PassThrough(), { connecting: true }),
  },
  TLS: { url: 'wss://127.0.0.1', connect: null },
  'the response': { url: 'ws://127.0.0.1', connect: null },
}

describe('an opening that nobody answers', () => {
  for (const [name, { url, connect: dial }] of Object.entries(stages)) {
    const start = async (limits: object, signal?: AbortSignal) => {
      const server = await rawServer()
      const client = new WebSocketClient({ ...limits, ...(dial === null ? {} : { connect: dial }) })
      const given = dial === null ? `${url}:${server.port}/` : url
      return { server, client, opened: client.connect(given, { signal }) }
    }

    test(`at ${name} times out`, async () => {
      const limits = { connectTimeoutMs: 40, handshakeTimeoutMs: 40 }
      const { server, client, opened } = await start(limits)
      await using _server = server
      await assert.rejects(opened, (error: OpeningTimeoutError) => {
        assert.ok(error instanceof OpeningTimeoutError)
        assert.equal(error.code, 'ERR_WS_OPENING_TIMEOUT')
        assert.equal(error.timeoutMs, 40)
        const what = name === 'the response' ? 'no response from' : 'no connection for'
        assert.match(error.message, new RegExp(`^${what} wss?://[^ ]+ within 40 ms$`))
        return true
      })
      if (dial === null) await (await server.accept()).body()
      assert.equal(client.connections.size, 0)
    })

    test(`at ${name} is aborted, and its transport destroyed`, async () => {
      const controller = new AbortController()
      const { server, client, opened } = await start({}, controller.signal)
      await using _server = server
      const peer = dial === null ? await server.accept() : null
      if (name === 'the response') await peer!.head()
      const reason = new Error('enough')
      controller.abort(reason)
      await assert.rejects(opened, (error) => error === reason)
      await peer?.body()
      assert.equal(client.connections.size, 0)
    })
  }

  test('is not begun after an abort', async () => {
    const client = new WebSocketClient({ connect: () => assert.fail('it dialled') })
    const reason = { any: 'value' }
    const opened = client.connect('ws://h', { signal: AbortSignal.abort(reason) })
    await assert.rejects(opened, (error) => error === reason)
  })

  test('does not end an open connection when the signal aborts later', async () => {
    await using w = await world(echo)
    const controller = new AbortController()
    const { signal } = controller
    const connection = await new WebSocketClient().connect(urlOf(w), { signal })
    controller.abort()
    connection.send('still here')
    assert.deepEqual(await take(connection.messages(), 1), ['still here'])
    await connection.close()
  })

  test('a transport that comes after the abort is destroyed', async () => {
    const timers = (): string[] =>
      process.getActiveResourcesInfo().filter((name) => name === 'Timeout')
    const before = timers()
    let deliver = (_transport: PassThrough): void => {}
    const late = new Promise<PassThrough>((resolve) => (deliver = resolve))
    const signals: AbortSignal[] = []
    const client = new WebSocketClient({
      connect: (_target, signal) => {
        signals.push(signal)
        return late
      },
    })
    const controller = new AbortController()
    const opened = client.connect('ws://h', { signal: controller.signal })
    controller.abort(new Error('enough'))
    await assert.rejects(opened, /enough/)
    assert.equal(signals[0]!.aborted, true)
    const transport = new PassThrough()
    deliver(transport)
    for (let i = 0; i < 5; i++) await turn()
    assert.equal(transport.destroyed, true)
    assert.deepEqual(timers(), before, 'no deadline is left')
  })

  test('a deadline does not fire while a response waits to be read', async () => {
    await using server = await rawServer()
    const client = new WebSocketClient({ handshakeTimeoutMs: 30 })
    const opened = client.connect(server.url)
    const { peer, head } = await server.request()
    peer.write(response(head))
    // The thread is busy beyond the deadline, with the response in the socket.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60)
    const connection = await opened
    connection.terminate()
  })
})

describe('the connect function', () => {
  test('may return a connecting socket, such as that of a unix socket', async () => {
    const path = join(tmpdir(), `runwright-ws-${process.pid}.sock`)
    const server = createHttp()
    const sockets = new WebSocketServer(echo)
    sockets.attach(server)
    server.listen(path)
    await once(server, 'listening')
    const client = new WebSocketClient({ connect: () => connect(path) })
    const connection = await client.connect('ws://any.example/')
    connection.send('by path')
    assert.deepEqual(await take(connection.messages(), 1), ['by path'])
    await connection.close()
    await sockets.close()
    await stop(server)
    rmSync(path, { force: true })
  })

  test('may return a paused transport with bytes in it', async () => {
    await using server = await rawServer()
    const client = new WebSocketClient({
      connect: async () => {
        const socket = connect(server.port, '127.0.0.1')
        await once(socket, 'connect')
        socket.pause()
        socket.unshift('HTTP/1.1 100 Continue\r\n\r\n')
        return socket
      },
    })
    const [connection] = await Promise.all([client.connect('ws://h/'), server.open()])
    connection.terminate()
  })

  test('may return a transport of an own kind, to which TLS is added', async () => {
    await using server = await tlsWorld({})
    const port = Number(new URL(server.url).port)
    const dialled: Socket[] = []
    const client = new WebSocketClient({
      tls: { ca: certificate },
      connect: async ({ host, secure }) => {
        assert.deepEqual([host, secure], ['localhost', true])
        const socket = connect(port, '127.0.0.1')
        dialled.push(socket)
        await once(socket, 'connect')
        return socket
      },
    })
    const connection = await client.connect('wss://localhost/')
    connection.send('x')
    assert.deepEqual(await take(connection.messages(), 1), ['x'])
    connection.terminate()
    await connection.closed
    if (!dialled[0]!.closed) await once(dialled[0]!, 'close')
  })

  test('that fails is a ConnectError with its cause; one that returns no stream, too', async () => {
    const cause = new Error('the proxy is closed')
    for (const fail of [
      () => {
        throw cause
      },
      () => Promise.reject(cause),
    ]) {
      await assert.rejects(new WebSocketClient({ connect: fail }).connect('ws://h:1'), {
        code: 'ERR_WS_CONNECT', message: 'cannot connect to h:1: the proxy is closed', cause,
      })
    }
    const nothing = new WebSocketClient({ connect: () => undefined as never })
    await assert.rejects(nothing.connect('ws://h'), /connect must return a stream/)
  })
})

test('invalid options are refused by name', () => {
  for (const [options, pattern] of [
    [{ connectTimeoutMs: 0 }, /connectTimeoutMs must be/],
    [{ handshakeTimeoutMs: 2 ** 31 }, /handshakeTimeoutMs must be/],
    [{ tls: { rejectUnauthorised: false } }, /use rejectUnauthorized/],
    [{ perMessageDeflate: true }, /use deflate/],
    [{ maxPayload: 1 }, /use maxMessageBytes/],
    [{ ca: 'x' }, /use tls/],
    [{ agent: {} }, /use connect/],
    [{ followRedirects: true }, /followRedirects is not an option/],
    [{ maxConnections: 1 }, /maxConnections is not an option/],
  ] as const) assert.throws(() => new WebSocketClient(options as never), pattern)
})
