/** Every method in every state, and every argument that is refused. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type WebSocketConnection, WebSocketServer } from 'runwright/ws'
import { closeFrame, turn } from '../helpers/ws-peer.js'
import { link, StubSocket } from './stub-socket.js'

type Connection = WebSocketConnection<undefined>

/** How a connection comes into each state. */
const states: Record<string, (socket: StubSocket, connection: Connection) => unknown> = {
  opening: () => undefined,
  open: () => turn(),
  'closed by the program': async (_, connection) => {
    await turn()
    void connection.close(3000)
  },
  'closed by the peer': async (socket) => {
    await turn()
    socket.push(closeFrame(3000))
    await turn()
  },
  terminated: (_, connection) => connection.terminate(),
  closed: async (socket, connection) => {
    await turn()
    socket.destroy()
    await connection.closed
  },
}

/** What a method gives: the first in `opening` and `open`, the second in all later states. */
const methods: [string, (one: Connection) => unknown, [unknown, unknown]][] = [
  ['send', (one) => one.send('x'), ['sent', 'closed']],
  ['send with a key', (one) => one.send('x', { key: 'k' }), ['sent', 'closed']],
  ['sendStream', (one) => one.sendStream(['x']), ['sent', 'closed']],
  ['ping', (one) => one.ping('x'), ['sent', 'closed']],
  ['onMessage', (one) => (one.onMessage = () => {}) && typeof one.onMessage, ['function', 'function']],
  ['onMessage = null', (one) => (one.onMessage = null), [null, null]],
  ['messages().return()', (one) => one.messages().return!(), [done(), done()]],
  ['id', (one) => one.id > 0, [true, true]],
  ['request', (one) => one.request.url, ['/', '/']],
  ['data', (one) => (one.data = 5) && one.data, [5, 5]],
]

function done(): object {
  return { done: true, value: undefined }
}

async function inState(state: string): Promise<{ one: Connection; socket: StubSocket }> {
  const socket = new StubSocket()
  let opened: Connection
  const server = new WebSocketServer({
    keepAlive: null,
    closeTimeoutMs: 20,
    onConnection: (connection) => void (opened = connection),
  })
  if (state === 'opening') {
    void link(server, socket)
    while (opened! === undefined) await Promise.resolve()
  } else await link(server, socket)
  await states[state]!(socket, opened!)
  return { one: opened!, socket }
}

describe('every method in every state', () => {
  for (const state of Object.keys(states)) {
    const late = state !== 'opening' && state !== 'open'
    for (const [name, call, expected] of methods) {
      test(`${name}: ${state}`, async () => {
        const { one, socket } = await inState(state)
        assert.deepEqual(await call(one), expected[late ? 1 : 0])
        socket.destroy()
        assert.equal((await one.closed).code, state === 'closed by the peer' ? 3000 : 1006)
      })
    }

    test(`the end: ${state}`, async () => {
      const { one, socket } = await inState(state)
      const next = one.messages().next()
      const drained = one.drained()
      const closed = one.close(1000)
      one.terminate()
      await using disposed = one
      assert.equal(await closed, await disposed.closed)
      assert.deepEqual([await next, typeof (await drained)], [done(), 'boolean'])
      assert.deepEqual([one.state, one.send('x'), one.bufferedAmount], ['closed', 'closed', 0])
      socket.destroy()
    })
  }
})

describe('what a method does not take is refused in every state, and changes nothing', () => {
  const any = (value: unknown): never => value as never
  const bad: [string, (one: Connection) => unknown, RegExp][] = [
    ['send(5)', (one) => one.send(any(5)), /^TypeError: a message must be/],
    ['send(x, 5)', (one) => one.send('x', any(5)), /^TypeError: the options of send\(\) must be/],
    ['send key', (one) => one.send('x', { key: any(5) }), /^TypeError: key must be a string/],
    ['send compress', (one) => one.send('x', any({ compress: 1 })), /^TypeError: compress must be/],
    ['send option', (one) => one.send('x', any({ binary: true })), /^TypeError: binary is not an/],
    ['ping(5)', (one) => one.ping(any(5)), /^TypeError: a ping must be/],
    ['a long ping', (one) => one.ping(new Uint16Array(63)), /^RangeError: .* 125 bytes, got 126/],
    ...[0, 1004, 1005, 1006, 1015, 2999, 5000, 1000.5, NaN, Infinity, -1, '1000', null].map(
      (code): (typeof bad)[number] => [
        `close(${String(code)})`, (one) => one.close(any(code)), /^RangeError: close code must be/,
      ],
    ),
    ['close reason', (one) => one.close(1000, any(5)), /^TypeError: the reason of a Close frame/],
    ['messages option', (one) => one.messages(any({ abort: 1 })), /^TypeError: abort is not an/],
    ['messages signal', (one) => one.messages({ signal: any(1) }), /^TypeError: signal must be/],
    ['drained option', (one) => one.drained(any({ timeout: 1 })), /^TypeError: timeout is not/],
    ['drained signal', (one) => one.drained({ signal: any(1) }), /^TypeError: signal must be/],
    ['sendStream(5)', (one) => one.sendStream(any(5)), /^TypeError: the source of a message/],
    ['sendStream option', (one) => one.sendStream([], any({ key: 'k' })), /^TypeError: key is not/],
    ['onMessage', (one) => (one.onMessage = any(5)), /^TypeError: onMessage must be/],
  ]
  for (const [name, call, expected] of bad) {
    test(name, async () => {
      for (const state of Object.keys(states)) {
        const { one, socket } = await inState(state)
        const before = [one.state, socket.writes.length]
        await assert.rejects(async () => await call(one), (error) => expected.test(String(error)))
        assert.deepEqual([one.state, socket.writes.length], before, state)
        socket.destroy()
      }
    })
  }
})
