import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  constants,
  createDeflateRaw,
  createInflateRaw,
  type DeflateRaw,
  deflateRawSync,
  type InflateRaw,
  inflateRawSync,
} from 'node:zlib'
import { DEFAULT_DEFLATE, prepare, type WebSocketServerOptions } from 'runwright/ws'
import { negotiateDeflate } from '../../lib/ws/deflate.js'
import { type ExtensionOffer, parseExtensions } from '../../lib/ws/extensions.js'
import { collectGarbage } from '../helpers/garbage.js'
import {
  closeFrame,
  echo,
  frame,
  opening,
  type RawPeer,
  text,
  turn,
  world,
} from '../helpers/ws-peer.js'
import { random, splits } from './random.js'

const RSV1 = { rsv: 4 }

/** Compresses one message without context (RFC 7692, section 7.2.1). */
function deflated(payload: string | Uint8Array, windowBits = 15): Buffer {
  const bytes = deflateRawSync(Buffer.from(payload as string), {
    windowBits,
    finishFlush: constants.Z_SYNC_FLUSH,
  })
  return bytes.subarray(0, bytes.length - 4)
}

/** Inflates a message compressed without context. */
function inflated(payload: Buffer, windowBits = 15): string {
  const bytes = Buffer.concat([payload, Buffer.from([0, 0, 255, 255])])
  return inflateRawSync(bytes, { windowBits, finishFlush: constants.Z_SYNC_FLUSH }).toString()
}

type Deflate = WebSocketServerOptions['deflate'] | 'default'

const options = (deflate: Deflate = true): WebSocketServerOptions => ({
  ...echo,
  deflate: deflate === true ? { thresholdBytes: 0 } : deflate === 'default' ? undefined : deflate,
})

const OFFER = 'permessage-deflate'
const NO_CONTEXT = `${OFFER}; server_no_context_takeover; client_no_context_takeover`

async function negotiate(
  offer: string | readonly string[],
  deflate: Deflate,
): Promise<string | undefined> {
  await using w = await world(options(deflate))
  const peer = await w.dial()
  peer.write(opening({ 'Sec-WebSocket-Extensions': offer }))
  const { status, headers } = await peer.head()
  assert.equal(status, 101)
  return headers.get('sec-websocket-extensions')
}

describe('negotiation (RFC 7692 §5.1 and 7.1)', () => {
  const takeover = { serverContextTakeover: true, clientContextTakeover: true }
  const cases: [string, string | readonly string[], Deflate, string | undefined][] = [
    ['off by default', OFFER, 'default', undefined],
    ['a plain offer is accepted without context takeover', OFFER, true, NO_CONTEXT],
    ['context takeover both ways if the server enables it', OFFER, takeover, OFFER],
    [
      'the client forbids context takeover of the server',
      `${OFFER}; server_no_context_takeover`,
      takeover,
      `${OFFER}; server_no_context_takeover`,
    ],
    [
      'the client declines its own context takeover',
      `${OFFER}; client_no_context_takeover`,
      takeover,
      `${OFFER}; client_no_context_takeover`,
    ],
    [
      'a client window is limited only if the client supports it',
      OFFER,
      { clientMaxWindowBits: 10 },
      NO_CONTEXT,
    ],
    [
      'a client window is limited when offered',
      `${OFFER}; client_max_window_bits`,
      { clientMaxWindowBits: 10 },
      `${NO_CONTEXT}; client_max_window_bits=10`,
    ],
    [
      'a client window is never larger than offered',
      `${OFFER}; client_max_window_bits=9`,
      { clientMaxWindowBits: 12 },
      `${NO_CONTEXT}; client_max_window_bits=9`,
    ],
    ['a full client window is not limited', `${OFFER}; client_max_window_bits`, true, NO_CONTEXT],
    [
      'a server window as requested',
      `${OFFER}; server_max_window_bits=10`,
      true,
      `${NO_CONTEXT}; server_max_window_bits=10`,
    ],
    [
      'a server window smaller than requested',
      `${OFFER}; server_max_window_bits=12`,
      { serverMaxWindowBits: 9 },
      `${NO_CONTEXT}; server_max_window_bits=9`,
    ],
    [
      'a server window of 8',
      `${OFFER}; server_max_window_bits=8`,
      true,
      `${NO_CONTEXT}; server_max_window_bits=8`,
    ],
    [
      'a value in quotes',
      `${OFFER}; server_max_window_bits="10"`,
      true,
      `${NO_CONTEXT}; server_max_window_bits=10`,
    ],
    [
      'the second offer if the first is invalid',
      `${OFFER}; server_max_window_bits=7, ${OFFER}`,
      true,
      NO_CONTEXT,
    ],
    ['the second offer if the first is unknown', `x-other; a=1, ${OFFER}`, true, NO_CONTEXT],
    ['an offer on a second header line', ['x-other', OFFER], true, NO_CONTEXT],
    ...[
      'server_max_window_bits=08',
      'server_max_window_bits=7',
      'server_max_window_bits=16',
      'server_max_window_bits',
      'client_max_window_bits=08',
      'client_max_window_bits=16',
      'client_max_window_bits=x',
      'server_no_context_takeover=1',
      'client_no_context_takeover=yes',
      'unknown',
      'unknown=1',
      'server_no_context_takeover; server_no_context_takeover',
      'client_max_window_bits=9; client_max_window_bits=10',
      'server_max_window_bits=1e1',
    ].map((bad): [string, string, true, undefined] => [
      `declines ${bad}`,
      `${OFFER}; ${bad}`,
      true,
      undefined,
    ]),
  ]
  for (const [name, offer, deflate, answer] of cases) {
    test(name, async () => assert.equal(await negotiate(offer, deflate), answer))
  }

  test('authorize may decline compression for one request', async () => {
    await using w = await world({
      ...options(),
      authorize: (request) => ({
        context: undefined,
        deflate: request.headers['user-agent'] !== 'Safari/15.0',
      }),
    })
    for (const [agent, answer] of [['Safari/15.0', undefined], ['other', NO_CONTEXT]] as const) {
      const peer = await w.dial()
      peer.write(opening({ 'User-Agent': agent, 'Sec-WebSocket-Extensions': OFFER }))
      assert.equal((await peer.head()).headers.get('sec-websocket-extensions'), answer)
    }
  })
})

test('each of 360 offers gets a valid answer with 36 settings (RFC 7692 §7.1)', () => {
  const flags = [false, true]
  const bits = [8, 9, 10, 11, 12, 13, 14, 15]
  const settings = flags.flatMap((serverContextTakeover) =>
    flags.flatMap((clientContextTakeover) =>
      [8, 10, 15].flatMap((serverMaxWindowBits) =>
        [8, 12, 15].map((clientMaxWindowBits) => ({
          ...DEFAULT_DEFLATE, serverContextTakeover, clientContextTakeover, serverMaxWindowBits,
          clientMaxWindowBits,
        })),
      ),
    ),
  )
  let count = 0
  for (const noServer of flags) {
    for (const noClient of flags) {
      for (const server of [null, ...bits]) {
        for (const client of [null, true as const, ...bits]) {
          const header = [OFFER]
          if (noServer) header.push('server_no_context_takeover')
          if (noClient) header.push('client_no_context_takeover')
          if (server !== null) header.push(`server_max_window_bits=${server}`)
          if (client === true) header.push('client_max_window_bits')
          else if (client !== null) header.push(`client_max_window_bits=${client}`)
          const offers = parseExtensions(header.join('; '))!
          for (const config of settings) {
            count++
            const agreed = negotiateDeflate(offers, config)!
            const [{ name, parameters }] = parseExtensions(agreed.response)! as [ExtensionOffer]
            const given = new Map(parameters)
            assert.deepEqual([name, given.size], [OFFER, parameters.length])
            const hint = `${header.join('; ')} -> ${agreed.response}`
            const noTakeover = noServer || !config.serverContextTakeover
            assert.equal(given.has('server_no_context_takeover'), noTakeover, hint)
            assert.equal(agreed.contextTakeover, !noTakeover, hint)
            const noPeerTakeover = noClient || !config.clientContextTakeover
            assert.equal(given.has('client_no_context_takeover'), noPeerTakeover, hint)
            assert.equal(agreed.peerContextTakeover, !noPeerTakeover, hint)
            // A limit that the client asked for must be in the answer, 15 too (section 7.1.2.1).
            const limit = Math.min(server ?? 15, config.serverMaxWindowBits)
            const shown = given.get('server_max_window_bits')
            assert.equal(shown ?? '15', `${limit}`, hint)
            assert.equal(shown === undefined, server === null && limit === 15, hint)
            assert.equal(agreed.windowBits, limit, hint)
            // This one only if the client knows it (section 7.1.2.2).
            const asked = typeof client === 'number' ? client : 15
            const most = Math.min(asked, config.clientMaxWindowBits)
            const expected = client === null || most === 15 ? undefined : `${most}`
            assert.equal(given.get('client_max_window_bits'), expected, hint)
          }
        }
      }
    }
  }
  assert.equal(count, 360 * 36)
})

/** A peer that negotiated compression. */
async function withPeer(
  use: (peer: RawPeer) => Promise<void>,
  settings: WebSocketServerOptions = options(),
  offer = OFFER,
): Promise<void> {
  await using w = await world(settings)
  await use(await w.open({ 'Sec-WebSocket-Extensions': offer }))
}

/** The server's replies up to the end; compressed payloads are shown inflated. */
async function talk(
  bytes: Buffer,
  settings: WebSocketServerOptions = options(),
): Promise<string[]> {
  const lines: string[] = []
  await withPeer(async (peer) => {
    peer.write(bytes)
    for (let next = await peer.next(); next !== null; next = await peer.next()) {
      if (next.opcode === 8)
        lines.push(`close:${next.payload.length < 2 ? '' : next.payload.readUInt16BE(0)}`)
      else
        lines.push(next.rsv === 4 ? `deflated:${inflated(next.payload)}` : `plain:${next.payload}`)
    }
  }, settings)
  return lines
}

describe('compressed messages', () => {
  /** The samples of RFC 7692, section 7.2.3, which all inflate to Hello. */
  const samples: [string, Buffer][] = [
    ['one block (7.2.3.1)', text(Buffer.from('f248cdc9c90700', 'hex'), RSV1)],
    [
      'two fragments (7.2.3.1)',
      Buffer.concat([
        text(Buffer.from('f248cd', 'hex'), { rsv: 4, fin: false }),
        frame(0, Buffer.from('c9c90700', 'hex')),
      ]),
    ],
    [
      'a block without compression (7.2.3.3)',
      text(Buffer.from('000500faff48656c6c6f00', 'hex'), RSV1),
    ],
    ['a final block (7.2.3.4)', text(Buffer.from('f348cdc9c9070000', 'hex'), RSV1)],
    [
      'two blocks (7.2.3.5)',
      text(Buffer.from('f248050000 00ffffcac9c90700'.replace(/ /g, ''), 'hex'), RSV1),
    ],
  ]
  for (const [name, bytes] of samples) {
    test(`${name} of RFC 7692 inflates to Hello, in any pieces`, async () => {
      const all = Buffer.concat([bytes, closeFrame(1000)])
      assert.deepEqual(await talk(all), ['deflated:Hello', 'close:1000'])
      for (const pieces of [[...all].map((byte) => Buffer.from([byte])), ...splits(all, 5)]) {
        await withPeer(async (peer) => {
          for (const piece of pieces) {
            peer.write(piece)
            await turn()
          }
          assert.equal(inflated((await peer.next())!.payload), 'Hello')
          assert.equal(await peer.line(), 'close:1000')
        })
      }
    })
  }

  test('an empty message, compressed (RFC 7692 §7.2.3.6)', async () => {
    const bytes = Buffer.concat([
      text(Buffer.from([0]), RSV1),
      frame(2, Buffer.from([0]), RSV1),
      closeFrame(1000),
    ])
    assert.deepEqual(await talk(bytes), ['deflated:', 'deflated:', 'close:1000'])
  })

  test('an empty frame with RSV1 is an empty message', async () => {
    assert.deepEqual(await talk(Buffer.concat([text('', RSV1), closeFrame(1000)])), [
      'deflated:',
      'close:1000',
    ])
  })

  test('data after final blocks continues the message (RFC 7692 §7.2.1)', async () => {
    const final = (part: string): Buffer => deflateRawSync(Buffer.from(part))
    const bytes = Buffer.concat([final('one '), final('two '), final(''), deflated('three')])
    assert.deepEqual(await talk(Buffer.concat([text(bytes, RSV1), closeFrame(1000)])), [
      'deflated:one two three',
      'close:1000',
    ])
  })

  test('endless final blocks are refused, as each costs an engine (RFC 6455 §10.4)', async () => {
    const bytes = Buffer.concat(Array.from({ length: 1_000 }, () => Buffer.from([3, 0])))
    assert.deepEqual(await talk(text(bytes, RSV1)), ['close:1008'])
  })

  test('compressed and plain messages and pings may be mixed (RFC 7692 §6)', async () => {
    const body = 'abc'.repeat(100)
    const cut = deflated(body)
    const bytes = Buffer.concat([
      text('plain'),
      text(cut.subarray(0, 5), { rsv: 4, fin: false }),
      frame(9, 'ping'),
      frame(0, cut.subarray(5), { fin: false }),
      frame(0, ''),
      frame(2, deflated('bin'), RSV1),
      text('plain again'),
      closeFrame(1000),
    ])
    assert.deepEqual(await talk(bytes), [
      'deflated:plain',
      'plain:ping',
      `deflated:${body}`,
      'deflated:bin',
      'deflated:plain again',
      'close:1000',
    ])
  })

  const rsv: [string, Buffer][] = [
    [
      'on a continuation',
      Buffer.concat([
        text(deflated('a').subarray(0, 1), { rsv: 4, fin: false }),
        frame(0, 'x', RSV1),
      ]),
    ],
    [
      'on a continuation of a plain message',
      Buffer.concat([text('a', { fin: false }), frame(0, 'x', RSV1)]),
    ],
    ['on a ping', frame(9, '', RSV1)],
    ['on a Close', frame(8, '', RSV1)],
    ['together with RSV2', text('', { rsv: 6 })],
  ]
  for (const [name, bytes] of rsv) {
    test(`RSV1 ${name} is 1002 (RFC 7692 §6.1)`, async () => {
      assert.deepEqual(await talk(bytes), ['close:1002'])
    })
  }

  test('corrupt data is 1007 (RFC 7692 §7.2.2)', async () => {
    for (const bad of ['ffffff', '00ffff0000', 'f248cdc9c90700ffffff07', '07']) {
      assert.deepEqual(await talk(text(Buffer.from(bad, 'hex'), RSV1)), ['close:1007'], bad)
    }
  })

  test('a message that inflates beyond the limit is 1009 before its end', async () => {
    const bomb = deflated(Buffer.alloc(50 * 2 ** 20))
    const settings = { ...options(), maxMessageBytes: 100_000 }
    assert.ok(bomb.length < 100_000)
    assert.deepEqual(await talk(text(bomb, { ...RSV1, fin: false }), settings), ['close:1009'])
    const parts = Buffer.concat([
      text(bomb.subarray(0, 200), { ...RSV1, fin: false }),
      frame(0, bomb.subarray(200, 400), { fin: false }),
    ])
    assert.deepEqual(await talk(parts, settings), ['close:1009'])
  })

  test('a message of exactly the limit is accepted', async () => {
    const settings = { ...options(), maxMessageBytes: 1_000 }
    const lines = await talk(
      Buffer.concat([
        text(deflated('x'.repeat(1_000)), RSV1),
        text(deflated('x'.repeat(1_001)), RSV1),
      ]),
      settings,
    )
    assert.deepEqual(lines, [`deflated:${'x'.repeat(1_000)}`, 'close:1009'])
  })

  test('text is checked while it inflates, before the message ends (RFC 6455 §8.1)', async () => {
    const bad = deflated(Buffer.from([0x61, 0xed, 0xa0]))
    assert.deepEqual(await talk(text(bad, { ...RSV1, fin: false })), ['close:1007'])
    const split = Buffer.concat([
      text(deflated('ok'), RSV1),
      text(deflated(Buffer.from([0xe2, 0x82])), RSV1),
    ])
    assert.deepEqual(await talk(split), ['deflated:ok', 'close:1007'])
    assert.deepEqual(
      await talk(Buffer.concat([text(deflated('κόσμε €'), RSV1), closeFrame(1000)])),
      ['deflated:κόσμε €', 'close:1000'],
    )
  })

  test('a binary message is not checked for UTF-8', async () => {
    const lines = await talk(
      Buffer.concat([frame(2, deflated(Buffer.from([0xff])), RSV1), closeFrame(1000)]),
    )
    assert.deepEqual(lines, ['deflated:\ufffd', 'close:1000'])
  })

  test('closing while a message inflates drops it, and the peer can answer', async () => {
    for (const fin of [true, false]) {
      const seen: unknown[] = []
      await using w = await world({
        ...options(),
        onConnection(connection) {
          connection.onMessage = (message) => {
            seen.push(message)
            // Inflating the rest of the chunk starts first.
            queueMicrotask(() => void connection.close(1000))
          }
        },
      })
      const peer = await w.open({ 'Sec-WebSocket-Extensions': OFFER })
      const [connection] = w.sockets.connections
      const big = deflated(Buffer.alloc(500_000, 'x'))
      const rest = fin ? text('next') : frame(0, 'rest')
      peer.write(Buffer.concat([text('go'), text(big, { ...RSV1, fin }), rest, closeFrame(1000)]))
      assert.deepEqual(await peer.finish(), ['close:1000'])
      assert.deepEqual(seen, ['go'])
      assert.equal((await connection!.closed).wasClean, true)
    }
  })

  test('closing before a message inflates lets the peer answer', async () => {
    await using w = await world({
      ...options(),
      onConnection(connection) {
        connection.onPing = () => void connection.close(1000)
        connection.onMessage = () => assert.fail('a message after our Close')
      },
    })
    const peer = await w.open({ 'Sec-WebSocket-Extensions': OFFER })
    const big = deflated(Buffer.alloc(500_000, 'x'))
    peer.write(
      Buffer.concat([
        frame(9),
        text(big, RSV1),
        text('a', { fin: false }),
        frame(0, 'b'),
        closeFrame(1000),
      ]),
    )
    assert.deepEqual(await peer.finish(), ['pong:', 'close:1000'])
  })

  test('connections lost while inflating free their engines', async () => {
    await using w = await world(options())
    const big = deflated(Buffer.alloc(900_000, 'y'))
    /** The memory of zlib: outside the heap, and not part of an ArrayBuffer. */
    const zlibBytes = (): number => {
      const { external, arrayBuffers } = process.memoryUsage()
      return external - arrayBuffers
    }
    await collectGarbage()
    const before = zlibBytes()
    for (let i = 0; i < 100; i++) {
      const peer = await w.open({ 'Sec-WebSocket-Extensions': OFFER })
      const [connection] = w.sockets.connections
      peer.write(text(big, { ...RSV1, fin: i % 2 === 0 }))
      await turn()
      ;(peer.socket as import('node:net').Socket).resetAndDestroy()
      await connection!.closed
    }
    assert.equal(w.sockets.connections.size, 0)
    await collectGarbage()
    assert.ok(zlibBytes() - before < 10 ** 6, `${zlibBytes() - before} bytes are not freed`)
  })
})

/** The compressor or inflater of a peer that keeps its context between messages. */
class Codec {
  readonly #engine: DeflateRaw | InflateRaw
  #out: Buffer[] = []

  constructor(engine: DeflateRaw | InflateRaw) {
    this.#engine = engine
    engine.on('data', (chunk: Buffer) => this.#out.push(chunk))
  }

  async run(bytes: Buffer): Promise<Buffer> {
    this.#engine.write(bytes)
    await new Promise<void>((resolve) => this.#engine.flush(constants.Z_SYNC_FLUSH, resolve))
    return Buffer.concat(this.#out.splice(0))
  }
}

const compressor = (): ((bytes: Buffer) => Promise<Buffer>) => {
  const codec = new Codec(createDeflateRaw())
  return async (bytes) => (await codec.run(bytes)).subarray(0, -4)
}

const decompressor = (): ((payload: Buffer) => Promise<Buffer>) => {
  const codec = new Codec(createInflateRaw())
  return (payload) => codec.run(Buffer.concat([payload, Buffer.from([0, 0, 255, 255])]))
}

describe('context takeover (RFC 7692 §7.1.1)', () => {
  const messages = Array.from({ length: 30 }, (_, i) =>
    JSON.stringify({ kind: 'log', seq: i, text: 'the same words again' }),
  )
  const both = options({
    serverContextTakeover: true,
    clientContextTakeover: true,
    thresholdBytes: 0,
  })

  test('both ways: each message may refer to earlier ones', async () => {
    await withPeer(async (peer) => {
      const [compress, decompress] = [compressor(), decompressor()]
      let sent = 0
      let received = 0
      for (const message of messages) {
        const bytes = await compress(Buffer.from(message))
        peer.write(text(bytes, RSV1))
        sent += bytes.length
        const reply = (await peer.next())!
        assert.equal(reply.rsv, 4)
        received += reply.payload.length
        assert.equal(String(await decompress(reply.payload)), message)
      }
      const alone = messages.reduce((sum, message) => sum + deflated(message).length, 0)
      assert.ok(received < alone / 2, `${received} bytes with context, ${alone} without`)
      assert.ok(sent < alone / 2)
    }, both)
  })

  test('works over more than one window, in random sizes', async () => {
    await withPeer(async (peer) => {
      const next = random(7692)
      const [compress, decompress] = [compressor(), decompressor()]
      for (let i = 0; i < 40; i++) {
        const payload = Buffer.alloc(1 + Math.floor(next() ** 2 * 40_000))
        for (let at = 0; at < payload.length; at++) payload[at] = 97 + Math.floor(next() * 4)
        peer.write(frame(2, await compress(payload), RSV1))
        const reply = (await peer.next())!
        assert.ok(payload.equals(await decompress(reply.payload)), `message ${i}`)
      }
    }, both)
  })

  test('none: every message is compressed on its own', async () => {
    await withPeer(async (peer) => {
      for (const message of messages) {
        peer.write(text(deflated(message), RSV1))
        assert.equal(inflated((await peer.next())!.payload), message)
      }
    })
  })

  test('a prepared message becomes part of the window of each connection', async () => {
    await using w = await world({
      deflate: { serverContextTakeover: true, thresholdBytes: 0 },
      onConnection: (connection) => (connection.onMessage = () => {}),
    })
    const peers = [
      await w.open({ 'Sec-WebSocket-Extensions': OFFER }),
      await w.open({ 'Sec-WebSocket-Extensions': OFFER }),
      await w.open({ 'Sec-WebSocket-Extensions': `${OFFER}; server_no_context_takeover` }),
      await w.open(),
    ]
    const all = [...w.sockets.connections]
    const sent: string[] = []
    for (let i = 0; i < 10; i++) {
      const message = `${i} ${'words '.repeat(30)}`
      sent.push(message)
      if (i % 2 === 0) w.sockets.broadcast(prepare(message))
      else for (const connection of all) connection.send(message)
    }
    for (const [i, peer] of peers.entries()) {
      const decompress = decompressor()
      for (const message of sent) {
        const reply = (await peer.next())!
        if (i === 3) {
          assert.equal(reply.payload.toString(), message)
          continue
        }
        assert.equal(String(await decompress(reply.payload)), message)
      }
    }
  })
})

describe('what is compressed', () => {
  test('messages from thresholdBytes to maxBytes, unless compress is false', async () => {
    await using w = await world({
      deflate: { thresholdBytes: 10, maxBytes: 20 },
      onConnection(connection) {
        for (const size of [9, 10, 20, 21]) connection.send('x'.repeat(size))
        connection.send(Buffer.alloc(15, 'x'))
        connection.send(prepare('x'.repeat(15)))
        connection.send('x'.repeat(15), { compress: false })
        connection.send(prepare('x'.repeat(15)), { compress: false })
      },
    })
    const peer = await w.open({ 'Sec-WebSocket-Extensions': OFFER })
    const seen: (0 | 1)[] = []
    for (let i = 0; i < 8; i++) seen.push((await peer.next())!.rsv === 4 ? 1 : 0)
    assert.deepEqual(seen, [0, 1, 1, 0, 1, 1, 0, 0])
  })

  test('with a window of 8 bits no reference goes back more than 256 bytes', async () => {
    await using w = await world({
      deflate: { thresholdBytes: 0 },
      onConnection: (connection) =>
        connection.send(`${'ab'.repeat(5)}${'0123456789'.repeat(100)}ababababab`),
    })
    const peer = await w.open({ 'Sec-WebSocket-Extensions': `${OFFER}; server_max_window_bits=8` })
    assert.ok(inflated((await peer.next())!.payload, 8).endsWith('9ababababab'))
  })

  test('a prepared message is compressed once for all with the same parameters', async () => {
    await using w = await world({
      deflate: { thresholdBytes: 0 },
      onConnection: (connection) => (connection.onMessage = () => {}),
    })
    const offers = [OFFER, OFFER, `${OFFER}; server_max_window_bits=9`]
    const peers: RawPeer[] = []
    for (const offer of offers) peers.push(await w.open({ 'Sec-WebSocket-Extensions': offer }))
    w.sockets.broadcast('hello hello hello')
    const frames = await Promise.all(peers.map((peer) => peer.next()))
    for (const next of frames) assert.equal(inflated(next!.payload), 'hello hello hello')
    assert.ok(frames[0]!.payload.equals(frames[1]!.payload))
  })
})
