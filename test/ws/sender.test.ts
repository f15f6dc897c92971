import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type Backpressure,
  prepare,
  SlowReaderError,
  WebSocketServer,
} from 'runwright/ws'
import { frame, text, turn, world } from '../helpers/ws-peer.js'
import { type Link, link } from './stub-socket.js'

const SMALL: Backpressure = { highWaterBytes: 1_000, limitBytes: 5_000, policy: 'close' }
const server = (backpressure: Partial<Backpressure> = {}): WebSocketServer =>
  new WebSocketServer({
    keepAlive: null,
    closeTimeoutMs: 50,
    backpressure: { ...SMALL, ...backpressure },
  })

/** Makes the peer stop reading, with more waiting for it than the socket buffers by itself. */
async function stall({ connection, socket }: Link): Promise<void> {
  socket.reads = false
  connection.send('x'.repeat(20_000))
  await turn()
  socket.writes.length = 0
}

describe('writes', () => {
  test('all messages of one turn go out in one write', async () => {
    const { connection, socket } = await link(server({ limitBytes: 10 ** 6 }))
    for (let i = 0; i < 10; i++) connection.send(`${i}`)
    await Promise.resolve().then(() => connection.send('and in a promise reaction'))
    assert.equal(socket.writes.length, 0)
    await turn()
    assert.equal(socket.writes.length, 1)
    assert.equal(socket.texts().length, 11)
  })

  test('replies to one chunk of input go out in one write, after the whole chunk', async () => {
    const { connection, socket } = await link(server())
    connection.onMessage = (message) => connection.send(message)
    socket.push(Buffer.concat([text('a'), text('b'), frame(9, 'c')]))
    await turn()
    assert.equal(socket.writes.length, 1)
    assert.deepEqual(socket.texts(), ['a', 'b', 'c'])
  })

  test('a broadcast writes the same buffer to all, in one write per turn', async () => {
    const sockets = server({ limitBytes: 10 ** 6 })
    const links = await Promise.all(Array.from({ length: 20 }, () => link(sockets)))
    for (let i = 0; i < 10; i++) assert.equal(sockets.broadcast(`event ${i}`), 20)
    await turn()
    for (const { socket } of links) {
      assert.equal(socket.writes.length, 1)
      assert.equal(socket.writes[0], links[0]!.socket.writes[0], 'one Buffer object for all')
      assert.deepEqual(socket.texts(), Array.from({ length: 10 }, (_, i) => `event ${i}`))
    }
  })

  test('one prepared message is one Buffer object for all', async () => {
    const sockets = server()
    const links = await Promise.all(Array.from({ length: 5 }, () => link(sockets)))
    const message = prepare('hello')
    for (const { connection } of links) connection.send(message)
    await turn()
    assert.equal(new Set(links.map(({ socket }) => socket.writes[0])).size, 1)
  })

  test('a connection that joins late, leaves or gets more keeps its own order', async () => {
    const sockets = server({ limitBytes: 10 ** 6 })
    const [a, b, c] = [await link(sockets), await link(sockets), await link(sockets)]
    const [one, two, three] = ['1', '2', '3'].map(prepare)
    for (const { connection } of [a, b]) connection.send(one!)
    b.connection.send('own')
    for (const { connection } of [a, b, c]) connection.send(two!)
    void c.connection.close(1000)
    for (const { connection } of [a, b, c]) connection.send(three!)
    await turn()
    assert.deepEqual(a.socket.texts(), ['1', '2', '3'])
    assert.deepEqual(b.socket.texts(), ['1', 'own', '2', '3'])
    assert.deepEqual(c.socket.texts(), ['2', Buffer.from([3, 0xe8]).toString()])
  })

  test('groups that get different events share a buffer within each group', async () => {
    const sockets = server({ limitBytes: 10 ** 6 })
    const links = await Promise.all(Array.from({ length: 8 }, () => link(sockets)))
    const events = Array.from({ length: 6 }, (_, i) => prepare(`${i}`))
    const wants = (who: number, event: number): boolean => event % 2 === 0 || who % 2 === 0
    for (const [who, { connection }] of links.entries()) {
      for (const [i, event] of events.entries()) if (wants(who, i)) connection.send(event)
    }
    await turn()
    for (const [who, { socket }] of links.entries()) {
      assert.deepEqual(socket.texts(), events.map((_, i) => `${i}`).filter((_, i) => wants(who, i)))
      assert.equal(socket.writes[0], links[who % 2]!.socket.writes[0])
    }
  })

  test('nothing is shared from one turn to the next', async () => {
    const sockets = server()
    const [a, b] = [await link(sockets), await link(sockets)]
    const [one, two] = ['1', '2'].map(prepare)
    for (const message of [one!, two!]) a.connection.send(message)
    await turn()
    for (const message of [one!, two!]) b.connection.send(message)
    await turn()
    assert.deepEqual([a.socket.texts(), b.socket.texts()], [['1', '2'], ['1', '2']])
  })

  test('a large binary message is not copied, and a large burst is not joined', async () => {
    const { connection, socket } = await link(
      server({ highWaterBytes: 10 ** 6, limitBytes: 10 ** 7 }),
    )
    const payload = Buffer.alloc(200_000, 'x')
    connection.send(payload)
    connection.send('behind')
    await turn()
    assert.ok(
      socket.writes.some(
        (write) => write.buffer === payload.buffer && write.length === payload.length,
      ),
    )
    assert.deepEqual(
      socket.texts().map((message) => message.length),
      [200_000, 6],
    )
  })
})

describe('a slow reader', () => {
  test('makes send return full, and drained() resolves once it has caught up', async () => {
    const one = await link(server({ limitBytes: 50_000 }))
    let drains = 0
    one.connection.onDrain = () => drains++
    assert.equal(one.connection.send('small'), 'sent')
    assert.equal(await one.connection.drained(), true)
    await stall(one)
    assert.equal(one.connection.send('y'.repeat(500)), 'full')
    await turn()
    assert.ok(one.connection.bufferedAmount > 20_500)
    const drained = one.connection.drained()
    one.socket.resumeReading()
    assert.equal(await drained, true)
    assert.equal(one.connection.bufferedAmount, 0)
    assert.equal(drains, 1)
  })

  test('has one listener on its socket, however many turns send to it', async () => {
    const one = await link(server({ limitBytes: 10 ** 6 }))
    await stall(one)
    for (let i = 0; i < 20; i++) {
      one.connection.send(`${i}`)
      await turn()
    }
    assert.equal(one.socket.listenerCount('drain'), 1)
    one.socket.resumeReading()
    assert.equal(await one.connection.drained(), true)
    assert.deepEqual(one.socket.texts(), Array.from({ length: 20 }, (_, i) => `${i}`))
    assert.equal(one.socket.listenerCount('drain'), 0)
  })

  test('is drained only when the socket has nothing left, however little that is', async () => {
    const { connection, socket } = await link(server({ policy: 'coalesce' }))
    socket.reads = false
    connection.send('less than the socket calls too much')
    await turn()
    assert.equal(socket.writableNeedDrain, false)
    let drained = false
    const waiting = connection.drained().then((result) => (drained = result))
    await turn()
    assert.deepEqual([drained, connection.bufferedAmount > 0], [false, true])
    socket.resumeReading()
    assert.equal(await waiting, true)
    assert.equal(connection.bufferedAmount, 0)
    assert.deepEqual(socket.texts(), ['less than the socket calls too much'])
  })

  test('gets onDrain after each full, also when that was taken at once', async () => {
    const { connection } = await link(server({ highWaterBytes: 100 }))
    let drains = 0
    connection.onDrain = () => drains++
    for (let i = 1; i <= 3; i++) {
      assert.equal(connection.send('x'.repeat(200)), 'full')
      assert.equal(connection.send('x'.repeat(200)), 'full')
      await turn()
      assert.equal(drains, i)
    }
  })

  test('never gets an older state after a newer one, nor loses a full one', async () => {
    const one = await link(server({ limitBytes: 30_000, policy: 'coalesce' }))
    await stall(one)
    one.connection.send('y'.repeat(4_000), { key: 'other' })
    assert.equal(one.connection.send('old', { key: 'k' }), 'full')
    // What waits falls below the high-water mark, because a message got smaller.
    one.socket.takeOne()
    one.connection.send('small', { key: 'other' })
    one.connection.send('new', { key: 'k' })
    one.connection.send('without a key')
    one.socket.resumeReading()
    await turn()
    const texts = one.socket.texts().filter((message) => message.length < 100)
    assert.ok(texts.indexOf('old') < texts.indexOf('new'), String(texts))
    assert.deepEqual(texts.slice(-2), ['new', 'without a key'])
  })

  test('lets a source that awaits drained() send any amount in bounded memory', async () => {
    const { connection, socket } = await link(server({ limitBytes: 5_000 }))
    socket.reads = false
    let most = 0
    const source = (async () => {
      for (let i = 0; i < 200; i++) {
        if (connection.send('z'.repeat(900)) === 'full') await connection.drained()
        most = Math.max(most, connection.bufferedAmount)
      }
    })()
    while (socket.texts().length < 200) {
      socket.resumeReading()
      await turn()
      socket.reads = false
    }
    socket.resumeReading()
    await source
    assert.ok(most <= 5_000, `${most} bytes were buffered`)
  })

  test('is closed with 1013 at the limit, including the message being sent', async () => {
    const one = await link(server({ limitBytes: 25_000 }))
    await stall(one)
    assert.equal(one.connection.send('y'.repeat(4_000)), 'full')
    assert.equal(one.connection.send('y'.repeat(4_000)), 'closed')
    assert.equal(one.connection.state, 'closing')
    one.socket.resumeReading()
    await turn()
    assert.equal(one.socket.frames().at(-1)!.readUInt16BE(0), 1013)
    one.socket.destroy()
    const { error, wasClean } = await one.connection.closed
    assert.ok(error instanceof SlowReaderError)
    assert.deepEqual([error.closeCode, error.code, wasClean], [1013, 'ERR_WS_SLOW_READER', false])
  })

  test('gets a single message beyond the limit if nothing else waits for it', async () => {
    const { connection, socket } = await link(server())
    assert.equal(connection.send('x'.repeat(100_000)), 'full')
    await turn()
    assert.equal(socket.texts()[0]!.length, 100_000)
  })

  test('loses messages under the policy drop, and gets later ones', async () => {
    const one = await link(server({ limitBytes: 25_000, policy: 'drop' }))
    await stall(one)
    const results = Array.from({ length: 4 }, (_, i) => one.connection.send(`${i}`.repeat(2_000)))
    assert.deepEqual(results, ['full', 'full', 'dropped', 'dropped'])
    const drained = one.connection.drained()
    one.socket.resumeReading()
    await drained
    assert.equal(one.connection.send('later'), 'sent')
    await turn()
    assert.deepEqual(one.socket.texts().map((message) => message[0]), ['0', '1', 'l'])
  })

  test('gets the latest message of each key under the policy coalesce', async () => {
    const one = await link(server({ limitBytes: 25_000, policy: 'coalesce' }))
    await stall(one)
    for (let i = 0; i < 100; i++) {
      assert.equal(one.connection.send(`a${i}`, { key: 'a' }), 'full')
      assert.equal(one.connection.send(`b${i}`, { key: 'b' }), 'full')
    }
    assert.ok(one.connection.bufferedAmount < 20_100)
    const drained = one.connection.drained()
    one.socket.resumeReading()
    assert.equal(await drained, true)
    assert.deepEqual(one.socket.texts(), ['a99', 'b99'])
  })

  test('coalesced messages respect the limit, and those without a key are dropped', async () => {
    const one = await link(server({ limitBytes: 22_000, policy: 'coalesce' }))
    await stall(one)
    assert.equal(one.connection.send('k'.repeat(1_500), { key: 'k' }), 'full')
    assert.equal(one.connection.send('l'.repeat(1_500), { key: 'l' }), 'dropped')
    assert.equal(one.connection.send('m'.repeat(1_500)), 'dropped')
    assert.equal(one.connection.send('n'.repeat(1_600), { key: 'k' }), 'full')
    assert.ok(one.connection.bufferedAmount <= 22_000)
    one.socket.resumeReading()
    await turn()
    assert.deepEqual(one.socket.texts().map((message) => message[0]), ['n'])
  })

  test('gets what was kept for it before the Close frame (RFC 6455 §5.5.1)', async () => {
    const one = await link(server({ limitBytes: 25_000, policy: 'coalesce' }))
    await stall(one)
    one.connection.send('latest', { key: 'k' })
    one.socket.push(frame(9, 'pong'))
    await turn()
    void one.connection.close(1000)
    one.socket.resumeReading()
    await turn()
    const [close, ...rest] = one.socket.frames().reverse()
    assert.deepEqual(rest.reverse().map(String), ['pong', 'latest'])
    assert.equal(close!.readUInt16BE(0), 1000)
  })

  test('gets only the latest Pong (RFC 6455 §5.5.3)', async () => {
    const one = await link(server())
    await stall(one)
    for (let i = 0; i < 900; i++) one.socket.push(frame(9, `${i}`))
    await turn()
    assert.ok(one.connection.bufferedAmount < 21_000)
    one.socket.resumeReading()
    await turn()
    assert.deepEqual(one.socket.texts(), ['899'])
  })

  for (const { what, add } of [
    { what: 'empty messages', add: (to: Link['connection']) => to.send('') },
    { what: 'pings', add: (to: Link['connection']) => to.ping() },
    {
      what: 'empty messages with a key each',
      add: (to: Link['connection'], i: number) => to.send('', { key: `${i}` }),
    },
    {
      what: 'messages with a key each',
      add: (to: Link['connection'], i: number) => to.send('x'.repeat(900), { key: `${i}` }),
    },
  ]) {
    for (const stalls of [true, false]) {
      const when = stalls ? 'while it does not read' : 'in one turn'
      test(`has a bounded number of ${what} queued ${when}`, async () => {
        const one = await link(server({ limitBytes: 64_000, policy: 'coalesce' }))
        if (stalls) await stall(one)
        let accepted = 0
        while (['sent', 'full'].includes(add(one.connection, accepted))) accepted++
        assert.ok(accepted <= 1_000, `${accepted} were accepted`)
        assert.equal(accepted === 1, stalls && what === 'pings')
        one.socket.resumeReading()
        await turn()
        assert.equal(add(one.connection, 0), 'sent', 'there is room again')
      })
    }
  }

  for (const { flood, code } of [
    { flood: frame(9), code: null },
    { flood: frame(9, 'p'.repeat(125)), code: null },
    { flood: frame(10), code: null },
    { flood: frame(1), code: null },
    { flood: frame(0, '', { fin: false }), code: 1008 },
    { flood: frame(0, 'x', { fin: false }), code: 1008 },
  ]) {
    const name = `opcode ${flood[0]! & 15} of ${flood.length} bytes`
    test(`that sends 50 000 frames with ${name} has little queued for it`, async () => {
      const sockets = new WebSocketServer({ keepAlive: null, maxControlFramesPerSecond: null })
      const one = await link(sockets)
      one.connection.onMessage = null
      one.socket.reads = false
      if ((flood[0]! & 15) === 0) one.socket.push(frame(1, '', { fin: false }))
      const perChunk = Math.floor(65_536 / flood.length)
      const chunk = Buffer.concat(Array.from({ length: perChunk }, () => flood))
      let most = 0
      for (let sent = 0; sent < 50_000 && one.socket.readableLength < 1e6; sent += perChunk) {
        one.socket.push(Buffer.from(chunk))
        await turn()
        most = Math.max(most, one.connection.bufferedAmount)
      }
      // The answers to one chunk at most; later ones replace each other.
      assert.ok(most <= 65_536, `${most} bytes were queued`)
      assert.equal(one.connection.state, code === null ? 'open' : 'closing')
      one.socket.resumeReading()
      await turn()
      const close = one.socket.frames().at(-1)
      if (code !== null) assert.equal(close!.readUInt16BE(0), code)
      one.socket.destroy()
    })
  }

  test('does not affect other connections, and costs bounded memory', async () => {
    const sockets = server({ limitBytes: 30_000, policy: 'drop' })
    const [slow, quick] = [await link(sockets), await link(sockets)]
    await stall(slow)
    for (let i = 0; i < 1_000; i++) {
      sockets.broadcast(`${i}`.padStart(100, '0'))
      await turn()
    }
    assert.equal(quick.socket.texts().length, 1_000)
    assert.equal(quick.socket.writes.length, 1_000)
    assert.ok(slow.connection.bufferedAmount <= 30_000)
  })

  test('ends the wait of drained() when it is lost or a signal aborts', async () => {
    const one = await link(server({ limitBytes: 50_000 }))
    await stall(one)
    const controller = new AbortController()
    const [waiting, aborted] = [
      one.connection.drained(),
      one.connection.drained({ signal: controller.signal }),
    ]
    controller.abort(new Error('enough'))
    await assert.rejects(aborted, /enough/)
    one.socket.destroy()
    assert.equal(await waiting, false)
    assert.equal(await one.connection.drained(), false)
    await assert.rejects(one.connection.drained({ signal: controller.signal }), /enough/)
  })
})

test('over TCP a peer that stops reading is closed with 1013 in bounded memory', async () => {
  const limitBytes = 300_000
  await using w = await world({
    backpressure: { limitBytes },
    closeTimeoutMs: 50,
    onConnection: (connection) => (connection.onMessage = () => {}),
  })
  const [stuck, fine] = [await w.open(), await w.open()]
  const [slow, quick] = w.sockets.connections
  stuck.socket.pause()
  const event = prepare('x'.repeat(50_000))
  let sent = 0
  for (let result = slow!.send(event); result !== 'closed'; result = slow!.send(event)) {
    sent++
    assert.ok(slow!.bufferedAmount <= limitBytes)
    quick!.send('tick')
    await turn()
  }
  assert.deepEqual(await fine.lines(sent), Array.from({ length: sent }, () => 'text:tick'))
  assert.ok((await slow!.closed).error instanceof SlowReaderError)
  assert.equal(quick!.state, 'open')
})
