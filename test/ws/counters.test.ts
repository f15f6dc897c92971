import assert from 'node:assert/strict'
import { once } from 'node:events'
import { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { describe, mock, test } from 'node:test'
import { type WebSocketConnection, WebSocketServer } from 'runwright/ws'
import { closeFrame, echo, frame, opening, text, turn, world } from '../helpers/ws-peer.js'
import { link, StubSocket } from './stub-socket.js'

describe('counters', () => {
  test('count connections, messages and bytes in both directions', async () => {
    await using w = await world(echo)
    const { counters } = w.sockets
    const [peer, other] = [await w.open(), await w.open()]
    const input = Buffer.concat([text('hello'), text('x', { fin: false }), frame(0, 'y')])
    peer.write(input)
    assert.deepEqual(await peer.lines(2), ['text:hello', 'text:xy'])
    assert.deepEqual([counters.connectionsOpen, counters.connectionsTotal], [2, 2])
    assert.deepEqual([counters.messagesReceived, counters.bytesReceived], [2, input.length])
    assert.deepEqual([counters.messagesSent, counters.bytesSent], [2, 7 + 4])
    const [, second] = w.sockets.connections
    const closed = second!.closed
    other.socket.destroy()
    await closed
    assert.deepEqual([counters.connectionsOpen, counters.connectionsTotal], [1, 2])
  })

  test('count refused handshakes by their reasons', async () => {
    await using w = await world({
      maxConnections: 1,
      authorize: (request) => {
        if (request.url === '/throw') throw new Error('mine')
        return request.url === '/no' ? { status: 401 } : { context: undefined }
      },
      onError: () => {},
    })
    const refuse = async (headers: object, path = '/'): Promise<number> => {
      const peer = await w.dial()
      peer.write(opening(headers as Record<string, string>, { path }))
      const { status } = await peer.head()
      peer.socket.destroy()
      return status
    }
    const statuses = [
      await refuse({ 'Sec-WebSocket-Version': '8' }),
      await refuse({ Origin: 'https://evil.example' }),
      await refuse({}, '/no'), await refuse({}, '/throw'),
    ]
    await w.open()
    statuses.push(await refuse({}))
    assert.deepEqual(statuses, [426, 403, 401, 500, 503])
    assert.deepEqual(w.sockets.counters.refused, {
      handshake: 1, origin: 1, authorize: 1, unavailable: 1, error: 1, gone: 0,
    })
    assert.equal(w.sockets.counters.connectionsTotal, 1)
  })

  test('count a client that disconnects before it has an answer', async () => {
    let asked: () => void
    const asking = new Promise<void>((resolve) => (asked = resolve))
    await using w = await world({
      authorize: async (_request, { signal }) => {
        asked()
        await once(signal, 'abort')
        return { context: undefined }
      },
    })
    const peer = await w.dial()
    peer.write(opening())
    await asking
    ;(peer.socket as Socket).resetAndDestroy()
    while (w.sockets.counters.refused.gone === 0) await turn()
    assert.equal(w.sockets.counters.refused.gone, 1)
  })

  for (const [policy, expected] of [
    ['drop', { messagesDropped: 2, messagesReplaced: 0, slowReaders: 0 }],
    ['coalesce', { messagesDropped: 0, messagesReplaced: 2, slowReaders: 0 }],
    ['close', { messagesDropped: 0, messagesReplaced: 0, slowReaders: 1 }],
  ] as const) {
    test(`count what slow readers lose by the policy ${policy}`, async () => {
      const server = new WebSocketServer({
        keepAlive: null,
        backpressure: { highWaterBytes: 1_000, limitBytes: 21_500, policy },
      })
      const { connection, socket } = await link(server)
      socket.reads = false
      connection.send('x'.repeat(20_000))
      await turn()
      for (let i = 0; i < 3; i++) connection.send('y'.repeat(1_000), { key: 'k' })
      const { messagesDropped, messagesReplaced, slowReaders } = server.counters
      assert.deepEqual({ messagesDropped, messagesReplaced, slowReaders }, expected)
      socket.resumeReading()
      await turn()
      assert.equal(server.counters.messagesSent, 2)
      socket.destroy()
    })
  }

  test('count pings, those without an answer, and lost peers', async () => {
    mock.timers.enable({ apis: ['setInterval'] })
    try {
      const server = new WebSocketServer({ keepAlive: { intervalMs: 8_000, timeoutMs: 16_000 } })
      const { connection, socket } = await link(server)
      const pass = async (): Promise<void> => {
        mock.timers.tick(8_000)
        await turn()
      }
      await pass()
      socket.push(frame(10))
      await turn()
      await pass()
      const { pingsSent, pingsUnanswered } = server.counters
      assert.deepEqual([pingsSent, pingsUnanswered], [2, 0])
      await pass()
      await pass()
      await connection.closed
      const { counters } = server
      assert.deepEqual([counters.pingsSent, counters.pingsUnanswered], [3, 2])
      assert.deepEqual([counters.peersLost, counters.connectionsOpen], [1, 0])
    } finally {
      mock.timers.reset()
    }
  })
})

describe('a connection has', () => {
  test('an id that no other one has, and data of the program', async () => {
    interface Mine { topics: Set<string> }
    const seen: WebSocketConnection<undefined, Mine>[] = []
    const server = new WebSocketServer<undefined, Mine>({
      keepAlive: null,
      onConnection: (connection) => {
        assert.equal(connection.data, undefined)
        connection.data = { topics: new Set(['news']) }
        seen.push(connection)
      },
    })
    for (let i = 0; i < 5; i++) await server.upgrade(...raw(new StubSocket()))
    assert.equal(new Set(seen.map(({ id }) => id)).size, 5)
    assert.equal(seen.filter(({ data }) => data?.topics.has('news')).length, 5)
    for (const connection of seen) connection.terminate()
  })

  test('the request object itself if that is read in time, and an equal one later', async () => {
    for (const early of [true, false]) {
      let given: unknown
      await using w = await world({
        onConnection(connection, request) {
          given = request
          if (early) assert.equal(connection.request, request)
        },
      })
      const cookies = ['a=1', 'b=2']
      const peer = await w.dial()
      const fields = { Cookie: cookies, 'X-Twice': ['1', '2'], Host: 'here' }
      peer.write(opening(fields, { path: '/p?q=1' }))
      await peer.head()
      const [connection] = w.sockets.connections
      while (connection!.state !== 'open') await turn()
      await turn()
      const { request } = connection!
      assert.equal(request === given, early)
      assert.equal(request instanceof IncomingMessage, early)
      assert.equal(connection!.request, request)
      assert.deepEqual([request.method, request.url, request.httpVersion], ['GET', '/p?q=1', '1.1'])
      const { headers, rawHeaders } = given as IncomingMessage
      assert.deepEqual({ ...request.headers }, { ...headers })
      assert.deepEqual([request.headers.cookie, request.headers['x-twice']], ['a=1; b=2', '1, 2'])
      assert.deepEqual(request.rawHeaders, rawHeaders)
      assert.equal(request.socket.remoteAddress, '127.0.0.1')
    }
  })

  test('its remote address, also when it is lost', async () => {
    for (const early of [true, false]) {
      await using w = await world({
        onConnection: (connection) => void (early && connection.request),
      })
      const peer = await w.open()
      const [connection] = w.sockets.connections
      await turn()
      assert.equal(connection!.remoteAddress, '127.0.0.1')
      peer.write(closeFrame(1000))
      peer.socket.destroy()
      await connection!.closed
      assert.equal(connection!.remoteAddress, '127.0.0.1')
      assert.equal(connection!.request.url, '/')
    }
  })
})

function raw(socket: StubSocket): Parameters<WebSocketServer['upgrade']> {
  const headers = {
    host: 'localhost', upgrade: 'websocket', connection: 'Upgrade', 'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  }
  const rawHeaders = ['Host', 'localhost']
  return [{ method: 'GET', url: '/', httpVersion: '1.1', headers, rawHeaders, socket: {} }, socket]
}
