import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import { HandlerError, type MessageChunk, prepare, WebSocketServer } from 'runwright/ws'
import { closeFrame, frame, readFrame, turn } from '../helpers/ws-peer.js'
import { decode, type Link, link } from './stub-socket.js'

const offer = { 'sec-websocket-extensions': 'permessage-deflate' }
function open(deflate: boolean | object = false): Promise<Link> {
  const server = new WebSocketServer({
    keepAlive: null,
    closeTimeoutMs: 50,
    backpressure: { highWaterBytes: 1_000, limitBytes: 100_000 },
    deflate,
  })
  return link(server, undefined, deflate === false ? {} : offer)
}

/** A source that the test feeds. */
class Feed {
  readonly #waiting: ((step: IteratorResult<MessageChunk>) => void)[] = []
  readonly #steps: IteratorResult<MessageChunk>[] = []
  taken = 0
  returned = false

  push(value: MessageChunk): void {
    this.#step({ done: false, value })
  }

  end(): void {
    this.#step({ done: true, value: undefined })
  }

  #step(step: IteratorResult<MessageChunk>): void {
    const waiting = this.#waiting.shift()
    if (waiting === undefined) this.#steps.push(step)
    else waiting(step)
  }

  [Symbol.asyncIterator](): AsyncIterator<MessageChunk> {
    return {
      next: () => {
        this.taken++
        const step = this.#steps.shift()
        if (step !== undefined) return Promise.resolve(step)
        return new Promise((resolve) => this.#waiting.push(resolve))
      },
      return: () => {
        this.returned = true
        return Promise.resolve({ done: true, value: undefined })
      },
    }
  }
}

const written = ({ socket }: Link, takeover = false): string[] =>
  decode(Buffer.concat(socket.writes), takeover).map(
    ({ opcode, payload }) => `${opcode}:${opcode === 8 ? payload.readUInt16BE(0) : payload}`,
  )

/** The first byte and the payload of each frame. */
function rawFrames({ socket }: Link): [number, string][] {
  const found: [number, string][] = []
  let rest = Buffer.concat(socket.writes)
  for (let next = readFrame(rest); next !== null; next = readFrame(rest)) {
    found.push([rest[0]!, next.frame.payload.toString('latin1')])
    rest = rest.subarray(next.size)
  }
  return found
}

describe('a message from an iterable', () => {
  test('is one frame for each piece, and an empty last one (RFC 6455 §5.4)', async () => {
    const one = await open()
    assert.equal(await one.connection.sendStream(['a', '', 'bc']), 'sent')
    await turn()
    assert.deepEqual(rawFrames(one), [[0x01, 'a'], [0x00, 'bc'], [0x80, '']])
    one.socket.destroy()
  })

  const sources: [string, () => Iterable<MessageChunk> | AsyncIterable<MessageChunk>, string][] = [
    ['an async generator', async function* () { yield 'ab'; await turn(); yield 'c' }, '1:abc'],
    ['a generator', function* () { yield 'ab'; yield 'c' }, '1:abc'],
    ['a Node stream', () => Readable.from([Buffer.from('ab'), Buffer.from('c')]), '2:abc'],
    ['a web stream', () => new Blob(['abc']).stream() as AsyncIterable<Uint8Array>, '2:abc'],
    ['bytes of several kinds', () => [new DataView(Buffer.from('ab').buffer.slice(0, 0)),
      new Uint16Array([0x6261])], '2:ab'],
    ['a single empty text', () => [''], '1:'],
  ]
  for (const [name, make, expected] of sources) {
    for (const deflate of [false, true]) {
      test(`may come from ${name}, compression ${deflate}`, async () => {
        const one = await open(deflate)
        assert.equal(await one.connection.sendStream(make()), 'sent')
        await turn()
        assert.deepEqual(written(one), [expected])
        one.socket.destroy()
      })
    }
  }

  test('with text cut between surrogates is valid UTF-8 (RFC 6455 §8.1)', async () => {
    const text = 'a💩€b💩'
    for (const takeover of [null, false, true]) {
      const one = await open(takeover === null ? false : { serverContextTakeover: takeover })
      await one.connection.sendStream([...Array(text.length).keys()].map((i) => text[i]!))
      await one.connection.sendStream(['x\ud83d'])
      await turn()
      assert.deepEqual(written(one, takeover === true), [`1:${text}`, '1:x\ufffd'])
      one.socket.destroy()
    }
  })

  test('compresses all pieces as one, and later messages may refer to it', async () => {
    const piece = 'some words that come again and again. '.repeat(40)
    for (const serverContextTakeover of [false, true]) {
      const one = await open({ serverContextTakeover, thresholdBytes: 100, maxBytes: 1_000 })
      await one.connection.sendStream([piece, piece, piece])
      one.connection.send(piece.slice(0, 1_000))
      assert.equal(await one.connection.sendStream(['plain'], { compress: false }), 'sent')
      await turn()
      const bytes = Buffer.concat(one.socket.writes)
      const received = decode(bytes, serverContextTakeover).map(({ payload }) => `${payload}`)
      assert.deepEqual(received, [piece.repeat(3), piece.slice(0, 1_000), 'plain'])
      assert.ok(bytes.length < 400, `${bytes.length} bytes`)
      one.socket.destroy()
    }
  })

  test('makes later messages wait in order, but not pings and pongs', async () => {
    const one = await open()
    const [first, second] = [new Feed(), new Feed()]
    const ends = [one.connection.sendStream(first)]
    first.push('one ')
    assert.equal(one.connection.send('after one'), 'sent')
    ends.push(one.connection.sendStream(second))
    assert.equal(one.connection.send(prepare('after two')), 'sent')
    second.push('two')
    await turn()
    one.connection.ping('are you there')
    one.socket.push(frame(9, 'and you'))
    first.push('more')
    await turn()
    assert.deepEqual(rawFrames(one).map(([, payload]) => payload).sort(), [
      'and you', 'are you there', 'more', 'one ',
    ])
    assert.equal(second.taken, 0)
    first.end()
    await turn()
    second.end()
    assert.deepEqual(await Promise.all(ends), ['sent', 'sent'])
    await turn()
    assert.deepEqual(written(one).filter((line) => line.startsWith('1:')), [
      '1:one more', '1:after one', '1:two', '1:after two',
    ])
    one.socket.destroy()
  })

  test('asks for the next piece when the peer has room', async () => {
    const one = await open()
    one.socket.reads = false
    const feed = new Feed()
    for (let i = 0; i < 100; i++) feed.push('x'.repeat(1_000))
    feed.end()
    const end = one.connection.sendStream(feed)
    for (let i = 0; i < 50; i++) await turn()
    assert.ok(feed.taken < 40, `${feed.taken} pieces were taken`)
    assert.ok(one.connection.bufferedAmount < 40_000)
    one.socket.resumeReading()
    assert.match(await end, /sent|full/)
    await turn()
    assert.equal(written(one)[0]!.length, 100_002)
    one.socket.destroy()
  })

  test('a source without a piece sends nothing', async () => {
    const one = await open()
    assert.equal(await one.connection.sendStream([]), 'dropped')
    one.connection.send('next')
    await turn()
    assert.deepEqual(written(one), ['1:next'])
    one.socket.destroy()
  })
})

describe('a source that fails', () => {
  const bad: [string, () => Iterable<MessageChunk>, RegExp][] = [
    ['throws', function* () { yield 'a'; throw new Error('mine') }, /^mine$/],
    ['yields text after bytes', () => [Buffer.from('a'), 'b'], /all strings, or all bytes/],
    ['yields bytes after text', () => ['a', Buffer.from('b')], /all strings, or all bytes/],
    ['yields a number', () => ['a', 5 as unknown as string], /^a piece must be a string, Buffer/],
    ['yields a prepared message', () => ['a', prepare('b') as unknown as string], /is whole/],
  ]
  for (const [name, make, message] of bad) {
    test(`and ${name} after a piece ends the connection with 1011`, async () => {
      const one = await open()
      await assert.rejects(one.connection.sendStream(make()), { message })
      await turn()
      assert.equal(rawFrames(one).at(-1)![0], 0x88)
      assert.equal(one.socket.frames().at(-1)!.readUInt16BE(0), 1011)
      one.socket.destroy()
      assert.ok((await one.connection.closed).error instanceof HandlerError)
    })
  }

  test('before the first piece leaves the connection open', async () => {
    const one = await open()
    const source = (function* (): Generator<string> { throw new Error('mine') })()
    const end = one.connection.sendStream(source)
    one.connection.send('behind')
    await assert.rejects(end, /mine/)
    await turn()
    assert.deepEqual([written(one), one.connection.state], [['1:behind'], 'open'])
    one.socket.destroy()
  })

  test('so does an abort before its turn; later, the connection ends with 1011', async () => {
    const one = await open()
    const [first, second] = [new Feed(), new Feed()]
    const [early, late] = [new AbortController(), new AbortController()]
    const ends = [
      one.connection.sendStream(first, { signal: late.signal }),
      one.connection.sendStream(second, { signal: early.signal }),
    ]
    first.push('a')
    await turn()
    early.abort(new Error('early'))
    await assert.rejects(ends[1]!, /early/)
    assert.deepEqual([one.connection.state, second.taken], ['open', 0])
    late.abort(new Error('late'))
    await assert.rejects(ends[0]!, /late/)
    assert.deepEqual([one.connection.state, first.returned], ['closing', true])
    await assert.rejects(one.connection.sendStream(['x'], { signal: late.signal }), /late/)
    one.socket.destroy()
  })

  test('is no iterable, or a whole message', async () => {
    const one = await open()
    for (const source of ['text', Buffer.from('bytes'), prepare('x'), null, 5, {}]) {
      await assert.rejects(one.connection.sendStream(source as Iterable<string>), {
        name: 'TypeError', message: /^the source of a message must be iterable, got /,
      })
    }
    one.socket.destroy()
  })
})

describe('the connection ends during a message from an iterable', () => {
  test('close() waits for it, and for what is behind', async () => {
    const one = await open()
    const feed = new Feed()
    const end = one.connection.sendStream(feed)
    feed.push('a')
    one.connection.send('behind')
    void one.connection.close(1001)
    assert.equal(one.connection.send('late'), 'closed')
    await turn()
    feed.push('b')
    feed.end()
    assert.equal(await end, 'sent')
    await turn()
    assert.deepEqual(written(one), ['1:ab', '1:behind', '8:1001'])
    one.socket.push(closeFrame(1001))
    one.socket.push(null)
    assert.equal((await one.connection.closed).wasClean, true)
  })

  const ends: [string, (one: Link) => void][] = [
    ['the peer closes', ({ socket }) => socket.push(closeFrame(1000))],
    ['the peer breaks a rule', ({ socket }) => socket.push(frame(3))],
    ['the transport is lost', ({ socket }) => socket.destroy()],
    ['the program terminates it', ({ connection }) => connection.terminate()],
    ['the source never ends after close()', ({ connection }) => void connection.close()],
  ]
  for (const [name, finish] of ends) {
    test(`${name}: the result is closed, and the source is stopped`, async () => {
      const one = await open()
      const [feed, next] = [new Feed(), new Feed()]
      const results = [one.connection.sendStream(feed), one.connection.sendStream(next)]
      feed.push('a')
      await turn()
      // The timers of a connection do not keep a process alive, nor does a stub.
      const alive = setInterval(() => {}, 1_000)
      finish(one)
      assert.deepEqual(await Promise.all(results), ['closed', 'closed'])
      assert.deepEqual([feed.returned, next.taken], [true, 0])
      assert.equal(await one.connection.sendStream(['x']), 'closed')
      one.socket.push(null)
      await one.connection.closed
      clearInterval(alive)
      const frames = rawFrames(one)
      assert.deepEqual(frames.filter(([first]) => first === 0x88).length <= 1, true)
    })
  }
})
