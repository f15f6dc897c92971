import assert from 'node:assert/strict'
import { describe, mock, test } from 'node:test'
import { type WebSocketMessage, WebSocketServer } from 'runwright/ws'
import { closeFrame, frame, text, turn } from '../helpers/ws-peer.js'
import { random } from './random.js'
import { type Link, link, StubSocket } from './stub-socket.js'

async function open(options: object = {}): Promise<Link> {
  const one = await link(new WebSocketServer({ keepAlive: null, ...options }), new StubSocket())
  one.connection.onMessage = null
  return one
}

async function receive({ socket }: Link, ...messages: string[]): Promise<void> {
  socket.push(Buffer.concat(messages.map((message) => text(message))))
  await turn()
}

describe('a handler', () => {
  test('that removes itself gets no more; the rest waits for the next reader', async () => {
    const one = await open()
    await receive(one, 'a', 'b', 'c')
    const seen: unknown[] = []
    one.connection.onMessage = (message) => {
      seen.push(message)
      one.connection.onMessage = null
    }
    assert.deepEqual(seen, ['a'])
    await receive(one, 'd')
    assert.deepEqual(seen, ['a'])
    const messages = one.connection.messages()
    const rest = [await messages.next(), await messages.next(), await messages.next()]
    assert.deepEqual(rest.map(({ value }) => value as unknown), ['b', 'c', 'd'])
    one.socket.destroy()
  })

  test('that replaces itself has ended before the next one is called', async () => {
    for (const waiting of [true, false]) {
      const one = await open()
      if (waiting) await receive(one, 'a', 'b', 'c')
      const seen: string[] = []
      one.connection.onMessage = (first) => {
        seen.push(`< ${String(first)}`)
        one.connection.onMessage = (later) => {
          seen.push(`next ${String(later)}`)
        }
        seen.push(`${String(first)} >`)
      }
      if (!waiting) await receive(one, 'a', 'b', 'c')
      assert.deepEqual(seen, ['< a', 'a >', 'next b', 'next c'])
      one.socket.destroy()
    }
  })

  test('gets what arrives while it is called with what waited, in order', async () => {
    const one = await open({ receiveAheadBytes: 100 })
    one.socket.push(Buffer.concat(Array.from({ length: 20 }, (_, i) => text(`${i}`.padEnd(50)))))
    await turn()
    const seen: string[] = []
    one.connection.onMessage = (message) => seen.push(String(message).trim())
    await turn()
    assert.deepEqual(seen, Array.from({ length: 20 }, (_, i) => `${i}`))
    one.socket.destroy()
  })

  for (const [name, end] of [
    ['fails', () => { throw new Error('mine') }],
    ['closes the connection', (one: Link) => void one.connection.close()],
    ['terminates the connection', (one: Link) => one.connection.terminate()],
  ] as const) {
    test(`that ${name} gets no more of what waits`, async () => {
      const server = new WebSocketServer({ keepAlive: null, closeTimeoutMs: 20, onError: () => {} })
      for (const waiting of [true, false]) {
        const one = await link(server)
        one.connection.onMessage = null
        if (waiting) await receive(one, 'a', 'b')
        const seen: unknown[] = []
        one.connection.onMessage = (message) => {
          seen.push(message)
          end(one)
        }
        if (!waiting) await receive(one, 'a', 'b')
        assert.deepEqual(seen, ['a'])
        assert.notEqual(one.connection.state, 'open')
        one.socket.destroy()
      }
    })
  }

  test('ends iterations, and an iteration replaces it', async () => {
    const one = await open()
    const messages = one.connection.messages()
    const next = messages.next()
    const seen: unknown[] = []
    one.connection.onMessage = (message) => seen.push(message)
    assert.deepEqual(await next, { done: true, value: undefined })
    assert.deepEqual(await messages.next(), { done: true, value: undefined })
    await receive(one, 'a')
    const later = one.connection.messages()
    assert.equal(one.connection.onMessage, null)
    await receive(one, 'b')
    assert.deepEqual([seen, await later.next()], [['a'], { done: false, value: 'b' }])
    one.socket.destroy()
  })

  test('must be a function or null', async () => {
    const one = await open()
    for (const bad of [5, 'x', {}, true]) {
      const set = (): unknown => (one.connection.onMessage = bad as unknown as null)
      assert.throws(set, /^TypeError: onMessage must be a function or null, got/)
    }
    one.connection.onMessage = undefined as unknown as null
    assert.equal(one.connection.onMessage, null)
    one.socket.destroy()
  })
})

describe('an iterator', () => {
  const done = { done: true, value: undefined }

  test('is done after return() and throw(), also for calls that wait', async () => {
    for (const how of ['return', 'throw'] as const) {
      const one = await open()
      const messages = one.connection.messages()
      const waiting = [messages.next(), messages.next()]
      if (how === 'return') assert.deepEqual(await messages.return!(), done)
      else await assert.rejects(messages.throw!(new Error('mine')), /mine/)
      assert.deepEqual(await Promise.all(waiting), [done, done])
      assert.deepEqual(await messages.next(), done)
      await receive(one, 'discarded')
      assert.deepEqual([await messages.return!(), await messages.next()], [done, done])
      const again = one.connection.messages()
      await receive(one, 'for the next reader')
      assert.deepEqual(await again.next(), { done: false, value: 'for the next reader' })
      one.socket.destroy()
    }
  })

  test('that an abort has ended rejects, its messages wait, and Close is answered', async () => {
    const one = await open()
    const controller = new AbortController()
    const messages = one.connection.messages({ signal: controller.signal })
    const waiting = [messages.next(), messages.next()]
    controller.abort(new Error('enough'))
    for (const next of [...waiting, messages.next()]) await assert.rejects(next, /enough/)
    assert.deepEqual([await messages.return!(), await messages.next()], [done, done])
    await receive(one, 'untaken')
    one.socket.push(closeFrame(1000))
    await turn()
    assert.equal(one.socket.frames().at(-1)!.readUInt16BE(0), 1000)
    one.socket.destroy()
    await one.connection.closed
    assert.equal((await one.connection.messages().next()).value, 'untaken')
    await assert.rejects(one.connection.messages({ signal: controller.signal }).next(), /enough/)
  })

  test('that an abort ends holds up a Close no longer', async () => {
    const { connection, socket } = await open()
    const abort = new AbortController()
    const messages = connection.messages({ signal: abort.signal })
    socket.push(Buffer.concat([text('a'), text('b'), closeFrame(1000)]))
    assert.equal((await messages.next()).value, 'a')
    assert.equal(connection.state, 'open')
    abort.abort()
    assert.equal(connection.state, 'closing')
    socket.destroy()
    assert.equal((await connection.closed).wasClean, true)
  })

  test('leaves messages to another one, which goes on when it ends', async () => {
    const one = await open()
    const [first, second] = [one.connection.messages(), one.connection.messages()]
    const nexts = [first.next(), second.next(), first.next()]
    await receive(one, 'a', 'b', 'c', 'd')
    assert.deepEqual((await Promise.all(nexts)).map(({ value }) => value as unknown),
      ['a', 'b', 'c'])
    await first.return!()
    assert.equal((await second.next()).value, 'd')
    await receive(one, 'e')
    assert.equal((await second.next()).value, 'e')
    one.socket.destroy()
    await one.connection.closed
    assert.deepEqual(await second.next(), done)
  })
})

/**
 * Random iterations against a model: messages go to the oldest `next()` that waits, otherwise to a
 * queue; `return()` gives `done` to the calls of its iterator and, if no other goes on, discards.
 */
test('300 random iterations do what the model says', async () => {
  for (let seed = 1; seed <= 300; seed++) {
    const roll = random(seed)
    const below = (limit: number): number => Math.floor(roll() * limit)
    const one = await open()
    const its = [one.connection.messages(), one.connection.messages()]
    const live = [true, true]
    const queue: string[] = []
    const waiting: { of: number; call: number }[] = []
    const expected: unknown[] = []
    const got: Promise<IteratorResult<WebSocketMessage, undefined>>[] = []
    let count = 0
    for (let i = 0; i < 25; i++) {
      const of = below(2)
      const step = below(10)
      if (step < 4) {
        const message = `${count++}`
        await receive(one, message)
        const oldest = waiting.shift()
        if (oldest !== undefined) expected[oldest.call] = message
        else if (live.includes(true)) queue.push(message)
      } else if (step < 9) {
        const call = got.push(its[of]!.next()) - 1
        if (!live[of]) expected[call] = undefined
        else if (queue.length > 0) expected[call] = queue.shift()
        else waiting.push({ of, call })
      } else {
        await its[of]!.return!()
        live[of] = false
        if (!live.includes(true)) queue.length = 0
        for (const call of waiting.filter((one) => one.of === of)) {
          waiting.splice(waiting.indexOf(call), 1)
          expected[call.call] = undefined
        }
      }
    }
    one.socket.destroy()
    await one.connection.closed
    for (const { call } of waiting) expected[call] = undefined
    const values = (await Promise.all(got)).map(({ value }) => value as unknown)
    assert.deepEqual(values, expected, `seed ${seed}`)
  }
})

describe('a program that does not read', () => {
  const settings = {
    receiveAheadBytes: 1_000,
    maxMessageBytes: 5_000,
    keepAlive: { intervalMs: 8_000, timeoutMs: 16_000 },
  }
  const data = (bytes: number): Buffer =>
    Buffer.concat(Array.from({ length: bytes / 100 }, () => text('x'.repeat(100 - 64))))

  /** Advances the clock in steps of a second. */
  async function pass(seconds: number, each: () => void = () => {}): Promise<void> {
    for (let i = 0; i < seconds; i++) {
      mock.timers.tick(1_000)
      each()
      await turn()
    }
  }

  async function withClock(run: () => Promise<void>): Promise<void> {
    mock.timers.enable({ apis: ['setInterval', 'setTimeout'] })
    try {
      await run()
    } finally {
      mock.timers.reset()
    }
  }

  test('still answers a Close behind the data, after a second', () => withClock(async () => {
    const one = await open(settings)
    one.socket.push(Buffer.concat([data(3_000), closeFrame(1000, 'bye')]))
    await turn()
    assert.equal(one.connection.state, 'open')
    await pass(1)
    assert.equal(one.socket.frames().at(-1)!.readUInt16BE(0), 1000)
    assert.equal(one.connection.state, 'closing')
    one.socket.destroy()
    assert.equal((await one.connection.closed).wasClean, true)
    const seen: unknown[] = []
    for await (const message of one.connection) seen.push(message)
    assert.equal(seen.length, 30, 'nothing is lost')
  }))

  test('keeps a peer that answers pings behind its data', () => withClock(async () => {
    const one = await open(settings)
    one.socket.push(data(3_000))
    await pass(100, () => one.socket.push(frame(10)))
    assert.equal(one.connection.state, 'open')
    one.socket.destroy()
    await one.connection.closed
  }))

  test('gives up a peer that is gone', () => withClock(async () => {
    const one = await open(settings)
    one.socket.push(data(3_000))
    await pass(33)
    assert.equal((await one.connection.closed).error?.code, 'ERR_WS_CONNECTION_LOST')
  }))

  test('keeps a peer that sends more than is read ahead, in bounded memory', () =>
    withClock(async () => {
      const one = await open(settings)
      let read = 0
      one.connection.onPing = () => read++
      for (let i = 0; i < 200; i++) one.socket.push(Buffer.concat([data(100), frame(9)]))
      await pass(100)
      assert.equal(one.connection.state, 'open')
      assert.equal(read, 59, 'as much as is read ahead, and one message may have')
      const messages = one.connection.messages()
      for (let i = 0; i < 200; i++) assert.equal((await messages.next()).done, false)
      assert.equal(read, 200)
      one.socket.destroy()
      await one.connection.closed
    }))

  test('slows its peer down while it takes messages, however slowly', () => withClock(async () => {
    const one = await open(settings)
    let read = 0
    one.connection.onPing = () => read++
    for (let i = 0; i < 100; i++) one.socket.push(Buffer.concat([data(100), frame(9)]))
    const messages = one.connection.messages()
    for (let i = 0; i < 80; i++) {
      await messages.next()
      await pass(1)
      assert.ok(read <= i + 11, `${read} were read when ${i + 1} had been taken`)
    }
    one.socket.destroy()
    await one.connection.closed
  }))
})
