import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { ConnectionLostError, type WebSocketServerOptions } from 'runwright/ws'
import { frame, text, turn, world } from '../helpers/ws-peer.js'

const silent: WebSocketServerOptions = {
  keepAlive: { intervalMs: 8_000, timeoutMs: 16_000 },
  onConnection: (connection) => (connection.onMessage = () => {}),
}

/** Advances the clock by `count` intervals of 8 seconds. */
async function pass(intervals: number): Promise<void> {
  for (let i = 0; i < intervals * 8; i++) {
    mock.timers.tick(1_000)
    await turn()
  }
}

test('a peer is pinged each interval and stays if it answers (RFC 6455 §5.5.2)', async () => {
  mock.timers.enable({ apis: ['setInterval'] })
  try {
    await using w = await world(silent)
    const peer = await w.open()
    for (let i = 0; i < 5; i++) {
      await pass(1)
      assert.equal(await peer.line(), 'ping:')
      const [connection] = w.sockets.connections
      const ponged = new Promise((resolve) => (connection!.onPong = resolve))
      peer.write(frame(10))
      await ponged
    }
    assert.equal(w.sockets.connections.size, 1)
  } finally {
    mock.timers.reset()
  }
})

test('any input keeps a connection alive, also without a pong', async () => {
  mock.timers.enable({ apis: ['setInterval'] })
  try {
    await using w = await world(silent)
    const peer = await w.open()
    const [connection] = w.sockets.connections
    for (let i = 0; i < 6; i++) {
      await pass(1)
      const heard = new Promise((resolve) => (connection!.onMessage = resolve))
      peer.write(text('busy'))
      await heard
    }
    assert.equal(connection!.state, 'open')
  } finally {
    mock.timers.reset()
  }
})

test('a silent peer is ended with 1006 after timeoutMs, other connections are not', async () => {
  mock.timers.enable({ apis: ['setInterval'] })
  try {
    await using w = await world(silent)
    const [dead, alive] = [await w.open(), await w.open()]
    const [first, second] = w.sockets.connections
    for (let i = 0; i < 3; i++) {
      await pass(1)
      const ponged = new Promise((resolve) => (second!.onPong = resolve))
      alive.write(frame(10))
      await ponged
    }
    const { code, wasClean, error } = await first!.closed
    assert.deepEqual([code, wasClean], [1006, false])
    assert.ok(error instanceof ConnectionLostError)
    assert.equal(second!.state, 'open')
    assert.deepEqual((await dead.rest()).every((line) => line === 'ping:'), true)
  } finally {
    mock.timers.reset()
  }
})

test('a peer is not given up while our side does not read', async () => {
  mock.timers.enable({ apis: ['setInterval'] })
  try {
    await using w = await world({ ...silent, receiveAheadBytes: 1, onConnection: () => {} })
    const peer = await w.open()
    peer.write(Buffer.concat([text('untaken'), text('behind it')]))
    const [connection] = w.sockets.connections
    const messages = connection!.messages()
    await messages.next()
    await pass(10)
    assert.equal(connection!.state, 'open')
    assert.deepEqual(await messages.next(), { done: false, value: 'behind it' })
  } finally {
    mock.timers.reset()
  }
})

test('the timer runs only while there are connections', async () => {
  mock.timers.enable({ apis: ['setInterval'] })
  const started = mock.method(globalThis, 'setInterval')
  const stopped = mock.method(globalThis, 'clearInterval')
  try {
    await using w = await world(silent)
    assert.equal(started.mock.callCount(), 0)
    const peers = [await w.open(), await w.open()]
    assert.equal(started.mock.callCount(), 1)
    const ends = [...w.sockets.connections].map(({ closed }) => closed)
    for (const { socket } of peers) socket.destroy()
    await Promise.all(ends)
    await pass(1)
    // The mock ignores a clearInterval in the interval's own callback, so it may be called again.
    assert.ok(stopped.mock.callCount() >= 1)
    await w.open()
    assert.equal(started.mock.callCount(), 2)
  } finally {
    // Not all: Node 26 restores those of earlier tests once more, to what they replaced.
    for (const method of [started, stopped]) method.mock.restore()
    mock.timers.reset()
  }
})

test('null sends no pings', async () => {
  const started = mock.method(globalThis, 'setInterval')
  try {
    await using w = await world({ ...silent, keepAlive: null })
    await w.open()
    assert.equal(started.mock.callCount(), 0)
  } finally {
    started.mock.restore()
  }
})
