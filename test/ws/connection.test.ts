import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import {
  type CloseInfo,
  ConnectionLostError,
  HandlerError,
  ProtocolError,
  type WebSocketConnection,
  type WebSocketServerOptions,
} from 'runwright/ws'
import {
  closeFrame,
  echo,
  frame,
  type RawPeer,
  text,
  turn,
  type World,
  world,
} from '../helpers/ws-peer.js'

interface Pair extends AsyncDisposable {
  readonly peer: RawPeer
  readonly connection: WebSocketConnection<undefined>
  readonly world: World<undefined>
}

/** A peer, and the server's connection to it. */
async function pair(options: WebSocketServerOptions = {}): Promise<Pair> {
  let connected: (connection: WebSocketConnection<undefined>) => void
  const connection = new Promise<WebSocketConnection<undefined>>((resolve) => (connected = resolve))
  const made = await world({
    ...options,
    onConnection(one, request) {
      options.onConnection?.(one, request)
      connected(one)
    },
  })
  const peer = await made.open()
  return {
    peer,
    world: made,
    connection: await connection,
    [Symbol.asyncDispose]: () => made[Symbol.asyncDispose](),
  }
}

/** Echoes by iteration, each message in a later turn. */
const slowEcho: WebSocketServerOptions = {
  async onConnection(connection) {
    for await (const message of connection) {
      await turn()
      connection.send(message)
    }
  },
}

const silent = {
  onConnection: (connection: WebSocketConnection<undefined>) => (connection.onMessage = () => {}),
}
const plain = (line: string): string => line.replace(/^(close:\d+).*$/s, '$1')

describe('the peer closes', () => {
  for (const code of [
    1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4404,
    4999,
  ]) {
    test(`the code ${code} is echoed, once (RFC 6455 §5.5.1, 7.4)`, async () => {
      await using p = await pair(echo)
      p.peer.write(closeFrame(code, 'bye'))
      assert.deepEqual(await p.peer.finish(), [`close:${code}`])
      const info: CloseInfo = { code, reason: 'bye', wasClean: true, error: null }
      assert.deepEqual(await p.connection.closed, info)
    })
  }

  test('an empty Close gets an empty one and is reported as 1005 (RFC 6455 §5.5.1)', async () => {
    await using p = await pair(echo)
    p.peer.write(closeFrame())
    assert.deepEqual(await p.peer.finish(), ['close'])
    assert.deepEqual(await p.connection.closed, {
      code: 1005,
      reason: '',
      wasClean: true,
      error: null,
    })
  })

  test('a reason of 123 bytes is reported in full (RFC 6455 §5.5.1)', async () => {
    await using p = await pair(echo)
    const reason = '€'.repeat(41)
    p.peer.write(closeFrame(1000, reason))
    await p.peer.finish()
    assert.equal((await p.connection.closed).reason, reason)
  })

  test('a reason that is not UTF-8 is 1007 (RFC 6455 §8.1)', async () => {
    for (const reason of [[0xff], [0xc3], [0xed, 0xa0, 0x80]]) {
      await using p = await pair(echo)
      p.peer.write(closeFrame(1000, Buffer.from(reason)))
      assert.deepEqual((await p.peer.finish()).map(plain), ['close:1007'])
      const { code, wasClean } = await p.connection.closed
      assert.deepEqual({ code, wasClean }, { code: 1006, wasClean: false })
    }
  })

  test('frames after a Close are ignored, even in the same chunk (RFC 6455 §5.5.1)', async () => {
    const seen: unknown[] = []
    await using p = await pair({
      onConnection(connection) {
        connection.onMessage = (message) => seen.push(message)
        connection.onPing = (payload) => seen.push(payload)
      },
    })
    p.peer.write(
      Buffer.concat([closeFrame(1000), text('late'), frame(9, 'late'), closeFrame(1001), frame(3)]),
    )
    p.peer.write(frame(9, 'later'))
    assert.deepEqual(await p.peer.finish(), ['close:1000'])
    assert.deepEqual(seen, [])
  })

  test('a Close within a fragmented message is echoed (RFC 6455 §5.5.1)', async () => {
    await using p = await pair(echo)
    p.peer.write(Buffer.concat([text('half', { fin: false }), closeFrame(1000)]))
    assert.deepEqual(await p.peer.finish(), ['close:1000'])
    assert.equal((await p.connection.closed).wasClean, true)
  })

  test('after the closing handshake the server ends TCP first (RFC 6455 §7.1.1)', async () => {
    await using p = await pair(echo)
    p.peer.write(closeFrame(1000))
    assert.equal(await p.peer.line(), 'close:1000')
    assert.equal(await p.peer.next(), null, 'the server ended its side while ours is open')
    assert.equal(p.connection.state, 'closing')
    p.peer.socket.end()
    await p.connection.closed
    assert.equal(p.connection.state, 'closed')
    assert.equal(p.peer.error, null)
  })
})

describe('the program closes', () => {
  test('the default is 1000 and the peer may answer with its own code', async () => {
    await using p = await pair(silent)
    const closed = p.connection.close()
    assert.equal(await p.peer.line(), 'close:1000')
    p.peer.write(closeFrame(3456, 'mine'))
    assert.equal(await p.peer.next(), null)
    p.peer.socket.end()
    assert.deepEqual(await closed, { code: 3456, reason: 'mine', wasClean: true, error: null })
  })

  test('neither data nor a ping follows our Close (RFC 6455 §5.5.1)', async () => {
    await using p = await pair(echo)
    const closed = p.connection.close(4404, 'gone')
    assert.equal(p.connection.send('late'), 'closed')
    assert.equal(p.connection.ping(), 'closed')
    p.peer.write(Buffer.concat([text('unheard'), frame(9, 'unanswered'), closeFrame(4404)]))
    assert.deepEqual(await p.peer.finish(), ['close:4404:gone'])
    assert.equal((await closed).wasClean, true)
    assert.equal(p.connection.send('later'), 'closed')
  })

  test('a second close has no effect and does not throw (RFC 6455 §7.1.2)', async () => {
    await using p = await pair(silent)
    const [first, second] = [p.connection.close(1001), p.connection.close(1000)]
    p.peer.write(closeFrame(1001))
    assert.deepEqual(await p.peer.finish(), ['close:1001'])
    assert.deepEqual(await first, await second)
    assert.equal((await p.connection.close()).code, 1001)
  })

  test('when both sides close at once, each sends one Close (RFC 6455 §5.5.1)', async () => {
    await using p = await pair(silent)
    p.peer.write(closeFrame(1001))
    const closed = p.connection.close(1000)
    assert.deepEqual(await p.peer.finish(), ['close:1000'])
    assert.deepEqual(await closed, { code: 1001, reason: '', wasClean: true, error: null })
  })

  test('a silent peer is disconnected after closeTimeoutMs (RFC 6455 §7.1.1)', async () => {
    await using p = await pair({ ...silent, closeTimeoutMs: 20 })
    const { code, wasClean } = await p.connection.close(1000)
    assert.deepEqual({ code, wasClean }, { code: 1006, wasClean: false })
    assert.equal(await p.peer.line(), 'close:1000')
  })

  test('so is a peer that answers but never ends its side (RFC 6455 §7.1.1)', async () => {
    await using p = await pair({ ...silent, closeTimeoutMs: 20 })
    p.peer.write(closeFrame(1000))
    assert.equal((await p.connection.closed).wasClean, true)
  })

  test('while closing, data of the peer is skipped whatever its size', async () => {
    await using p = await pair({ ...echo, maxMessageBytes: 10 })
    const closed = p.connection.close(1000)
    p.peer.write(
      Buffer.concat([
        text(Buffer.alloc(1_000, 0xff)),
        frame(2, 'x', { fin: false }),
        closeFrame(1000),
      ]),
    )
    assert.deepEqual(await p.peer.finish(), ['close:1000'])
    assert.equal((await closed).wasClean, true)
  })

  for (const [name, reason, expected] of [
    ['is cut to 123 bytes', 'x'.repeat(200), 'x'.repeat(123)],
    ['is cut at a code point', 'x'.repeat(122) + '€', 'x'.repeat(122)],
    ['is cut before a surrogate pair', 'x'.repeat(121) + '💩', 'x'.repeat(121)],
    ['may be passed as bytes', Buffer.from('grüße'), 'grüße'],
    [
      'may be passed as a view of a larger buffer',
      new Uint8Array(Buffer.from('abcdef').buffer, Buffer.from('abcdef').byteOffset, 0),
      '',
    ],
    ['never contains a lone surrogate', 'a\ud800b', 'a\ufffdb'],
  ] as const) {
    test(`a reason ${name} (RFC 6455 §5.5.1)`, async () => {
      await using p = await pair(silent)
      void p.connection.close(1000, reason)
      assert.equal(await p.peer.line(), `close:1000${expected === '' ? '' : `:${expected}`}`)
    })
  }

  for (const code of [0, 999, 1004, 1005, 1006, 1015, 2000, 2999, 5000, 1000.5, NaN]) {
    test(`the code ${code} is a RangeError and does not close (RFC 6455 §7.4)`, async () => {
      await using p = await pair(echo)
      assert.throws(() => p.connection.close(code), RangeError)
      p.peer.write(text('open'))
      assert.equal(await p.peer.line(), 'text:open')
    })
  }

  test('terminate destroys the transport without a Close', async () => {
    await using p = await pair(silent)
    p.connection.terminate()
    assert.equal(await p.peer.next(), null)
    const info = await p.connection.closed
    assert.deepEqual([info.code, info.wasClean], [1006, false])
    p.connection.terminate()
  })

  test('await using closes with 1000', async () => {
    await using p = await pair(silent)
    const done = (async () => {
      await using connection = p.connection
      connection.send('bye')
    })()
    p.peer.write(closeFrame(1000))
    assert.deepEqual(await p.peer.finish(), ['text:bye', 'close:1000'])
    await done
  })
})

describe('the transport is lost', () => {
  const outcomes: [string, (peer: RawPeer) => void][] = [
    ['an end without a Close', (peer) => peer.socket.end()],
    ['an end in the middle of a frame', (peer) => peer.socket.end(text('hello').subarray(0, 4))],
    ['a reset', (peer) => (peer.socket as import('node:net').Socket).resetAndDestroy()],
  ]
  for (const [name, lose] of outcomes) {
    test(`${name} is 1006, not clean, and reported once (RFC 6455 §7.1.5)`, async () => {
      const reported: CloseInfo[] = []
      await using p = await pair({
        onConnection(connection) {
          connection.onMessage = () => {}
          connection.onClose = (info) => reported.push(info)
        },
      })
      lose(p.peer)
      const info = await p.connection.closed
      assert.deepEqual([info.code, info.reason, info.wasClean], [1006, '', false])
      assert.ok(info.error instanceof ConnectionLostError)
      assert.equal(info.error.code, 'ERR_WS_CONNECTION_LOST')
      await turn()
      assert.deepEqual(reported, [info])
      assert.equal(p.world.sockets.connections.size, 0)
    })
  }

  test('a reset by the peer during a send does no harm', async () => {
    await using p = await pair(silent)
    const { socket } = p.peer
    socket.pause()
    for (let i = 0; i < 50; i++) p.connection.send('x'.repeat(10_000))
    ;(socket as import('node:net').Socket).resetAndDestroy()
    await p.connection.closed
    assert.equal(await p.connection.drained(), false)
  })
})

describe('the connection is failed', () => {
  test('replies to valid frames go out before the Close (RFC 6455 §7.1.7)', async () => {
    await using p = await pair(echo)
    p.peer.write(
      Buffer.concat([
        text('one'),
        frame(9, 'two'),
        text('three'),
        frame(2, 'x', { rsv: 1 }),
        text('never'),
      ]),
    )
    assert.deepEqual((await p.peer.finish()).map(plain), [
      'text:one',
      'pong:two',
      'text:three',
      'close:1002',
    ])
    const info = await p.connection.closed
    assert.deepEqual([info.code, info.wasClean], [1006, false])
    assert.ok(info.error instanceof ProtocolError)
  })

  test('so do the replies of a program that iterates (RFC 6455 §7.1.7)', async () => {
    await using p = await pair(slowEcho)
    const good = Array.from({ length: 20 }, (_, i) => text(`${i}`))
    p.peer.write(Buffer.concat([...good, text(Buffer.from([0xff]))]))
    const lines = await p.peer.finish()
    assert.deepEqual(lines.slice(0, 20), good.map((_, i) => `text:${i}`))
    assert.equal(plain(lines[20]!), 'close:1007')
  })

  test('and its replies to messages before the Close of a peer (RFC 6455 §5.5.1)', async () => {
    await using p = await pair(slowEcho)
    p.peer.write(Buffer.concat([text('a'), text('b'), closeFrame(3000)]))
    assert.deepEqual(await p.peer.finish(), ['text:a', 'text:b', 'close:3000'])
    assert.equal((await p.connection.closed).wasClean, true)
  })

  test('a program that stops iterating cannot delay the end for ever', async () => {
    await using p = await pair({ closeTimeoutMs: 20 })
    const messages = p.connection.messages()
    p.peer.write(Buffer.concat([text('a'), text('b'), frame(3)]))
    await messages.next()
    assert.equal(plain(await p.peer.line()), 'close:1002')
  })

  test('later frames are ignored (RFC 6455 §7.1.7)', async () => {
    const seen: unknown[] = []
    await using p = await pair({
      onConnection: (connection) => (connection.onMessage = (message) => seen.push(message)),
    })
    p.peer.write(Buffer.concat([frame(3), text('same chunk'), closeFrame(1000)]))
    assert.equal(plain(await p.peer.line()), 'close:1002')
    p.peer.write(text('next chunk'))
    assert.deepEqual(await p.peer.finish(), [])
    assert.deepEqual(seen, [])
  })

  test('unread megabytes do not reset the connection before the Close arrives', async () => {
    await using p = await pair({ ...echo, maxMessageBytes: 1_000 })
    p.peer.write(frame(2, Buffer.alloc(8 * 2 ** 20, 'x')))
    p.peer.socket.end()
    assert.deepEqual((await p.peer.rest()).map(plain), ['close:1009'])
    assert.equal(p.peer.error, null)
    await p.connection.closed
  })

  test('unread megabytes do not reset the connection before a refusal arrives', async () => {
    await using p = await pair(echo)
    const peer = await p.world.dial()
    peer.write('POST / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
    peer.write(Buffer.alloc(4 * 2 ** 20))
    peer.socket.end()
    assert.equal((await peer.head()).status, 405)
    await peer.body()
    assert.equal(peer.error, null)
  })
})

describe('messages are received', () => {
  test('by iteration, in order, and the loop ends with the connection', async () => {
    const seen: unknown[] = []
    await using p = await pair()
    p.peer.write(Buffer.concat([text('a'), frame(2, 'b'), text('c'), closeFrame(1000)]))
    p.peer.socket.end()
    for await (const message of p.connection) seen.push(message)
    assert.deepEqual(seen, ['a', Buffer.from('b'), 'c'])
    assert.deepEqual(await p.connection.messages().next(), { done: true, value: undefined })
  })

  test('leaving the loop discards later messages and keeps the connection open', async () => {
    await using p = await pair()
    p.peer.write(Buffer.concat([text('a'), text('b')]))
    for await (const message of p.connection) {
      assert.equal(message, 'a')
      break
    }
    p.peer.write(Buffer.concat([text('c'), frame(9, 'still here')]))
    assert.equal(await p.peer.line(), 'pong:still here')
    assert.equal(p.connection.state, 'open')
  })

  test('a signal ends the wait for the next message with its own reason', async () => {
    await using p = await pair()
    const controller = new AbortController()
    const messages = p.connection.messages({ signal: controller.signal })
    const next = messages.next()
    const reason = new Error('enough')
    controller.abort(reason)
    await assert.rejects(next, reason)
    await assert.rejects(messages.next(), reason)
    p.peer.write(text('for someone else'))
    assert.deepEqual(await p.connection.messages().next(), {
      done: false,
      value: 'for someone else',
    })
  })

  test('a signal that never aborts has no effect', async () => {
    await using p = await pair()
    const { signal } = new AbortController()
    const messages = p.connection.messages({ signal })
    const next = messages.next()
    p.peer.write(text('a'))
    assert.deepEqual(await next, { done: false, value: 'a' })
    const last = messages.next()
    p.peer.write(closeFrame(1000))
    p.peer.socket.end()
    assert.deepEqual(await last, { done: true, value: undefined })
  })

  test('untaken messages pause reading, and taking one resumes it', async () => {
    const order: string[] = []
    await using p = await pair({ receiveAheadBytes: 1_000 })
    p.connection.onPing = () => order.push('ping')
    const messages = p.connection.messages()
    p.peer.write(Buffer.concat([text('x'.repeat(1_000)), frame(9)]))
    const other = await p.world.open()
    other.write(frame(9))
    await other.line()
    order.push('taking')
    await messages.next()
    await p.peer.line()
    assert.deepEqual(order, ['taking', 'ping'])
  })

  test('a reader slower than its peer loses nothing', async () => {
    await using p = await pair({ receiveAheadBytes: 1_000 })
    const count = 400
    for (let i = 0; i < count; i++) p.peer.write(text(`${i}`.padEnd(10_000, '.')))
    const seen: string[] = []
    for await (const message of p.connection) {
      seen.push(String(message).slice(0, 5))
      if (seen.length === count) break
    }
    assert.deepEqual(seen, Array.from({ length: count }, (_, i) => `${i}`.padEnd(5, '.')))
  })

  test('messages received before a handler is set are delivered to it', async () => {
    await using p = await pair()
    p.peer.write(Buffer.concat([text('a'), text('b'), frame(9, 'read')]))
    assert.equal(await p.peer.line(), 'pong:read')
    const seen: unknown[] = []
    p.connection.onMessage = (message) => seen.push(message)
    assert.deepEqual(seen, ['a', 'b'])
    p.peer.write(Buffer.concat([text('c'), frame(9)]))
    await p.peer.line()
    assert.deepEqual(seen, ['a', 'b', 'c'])
  })

  test('a caller that awaits upgrade() can set its handler before the first message', async () => {
    await using w = await world({}, null)
    const seen: unknown[] = []
    w.server.on('upgrade', async (request, socket, head) => {
      const connection = await w.sockets.upgrade(request, socket, head)
      connection!.onMessage = (message) => seen.push(message)
    })
    const peer = await w.dial()
    const { opening } = await import('../helpers/ws-peer.js')
    peer.write(Buffer.concat([Buffer.from(opening()), text('early'), frame(9)]))
    await peer.head()
    await peer.line()
    assert.deepEqual(seen, ['early'])
  })
})

describe('handlers', () => {
  const failures: [string, (connection: WebSocketConnection<undefined>) => void][] = [
    ['throws', (connection) => (connection.onMessage = () => { throw new Error('mine') })],
    ['rejects', (connection) => (connection.onMessage = () => Promise.reject(new Error('mine')))],
  ]
  for (const [name, set] of failures) {
    test(`one that ${name} ends its connection with 1011, and its error is reported`, async () => {
      const errors: unknown[] = []
      await using p = await pair({ onConnection: set, onError: (error) => errors.push(error) })
      p.peer.write(text('x'))
      assert.deepEqual((await p.peer.finish()).map(plain), ['close:1011'])
      const { error } = await p.connection.closed
      assert.ok(error instanceof HandlerError)
      assert.deepEqual(errors, [error.cause])
    })
  }

  test('an onConnection that throws is reported and closes with 1011', async () => {
    const errors: unknown[] = []
    await using w = await world({
      onConnection() {
        throw new Error('mine')
      },
      onError: (error) => errors.push(error),
    })
    const peer = await w.open()
    assert.equal(plain(await peer.line()), 'close:1011')
    assert.equal(errors.length, 1)
  })

  test('without onError a failure is a process warning', async () => {
    const warned = once(process, 'warning')
    await using p = await pair({
      onConnection: (connection) => (connection.onMessage = () => { throw new Error('shown') }),
    })
    p.peer.write(text('x'))
    const [warning] = (await warned) as [Error]
    assert.equal(warning.message, 'shown')
  })

  test('onPing and onPong get the payload (RFC 6455 §5.5.2, 5.5.3)', async () => {
    const seen: string[] = []
    await using p = await pair({
      onConnection(connection) {
        connection.onPing = (payload) => seen.push(`ping:${payload}`)
        connection.onPong = (payload) => seen.push(`pong:${payload}`)
      },
    })
    assert.equal(p.connection.ping('are you there'), 'sent')
    assert.equal(await p.peer.line(), 'ping:are you there')
    p.peer.write(Buffer.concat([frame(10, 'are you there'), frame(9, 'and you')]))
    assert.equal(await p.peer.line(), 'pong:and you')
    assert.deepEqual(seen, ['pong:are you there', 'ping:and you'])
  })

  test('a ping of more than 125 bytes is a RangeError (RFC 6455 §5.5)', async () => {
    await using p = await pair(silent)
    assert.throws(() => p.connection.ping('x'.repeat(126)), RangeError)
    assert.equal(p.connection.ping(Buffer.alloc(125)), 'sent')
  })
})
