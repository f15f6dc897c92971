import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { WebSocketServer, type WebSocketServerOptions } from 'runwright/ws'
import { collectGarbage } from '../helpers/garbage.js'
import { closeFrame, echo, frame, type RawPeer, text, turn, world } from '../helpers/ws-peer.js'
import { splits } from './random.js'

/** The replies of a server with these options to these bytes, up to the end. */
async function talk(
  bytes: Buffer,
  options: WebSocketServerOptions = echo,
  send: (peer: RawPeer, bytes: Buffer) => Promise<void> | void = (peer, all) => peer.write(all),
): Promise<string[]> {
  await using w = await world(options)
  const peer = await w.open()
  await send(peer, bytes)
  return await peer.finish()
}

async function byteByByte(peer: RawPeer, bytes: Buffer): Promise<void> {
  for (const byte of bytes) {
    peer.write(Buffer.from([byte]))
    await turn()
  }
}

/** A line without the reason of a Close frame. */
const plain = (line: string): string => line.replace(/^(close:\d+).*$/s, '$1')

describe('a frame that breaks the protocol ends the connection with 1002', () => {
  const cases: { name: string; section: string; bytes: Buffer }[] = [
    { name: 'a frame without a mask', section: '5.1', bytes: frame(1, 'x', { mask: false }) },
    {
      name: 'an unmasked frame, before its payload',
      section: '5.1',
      bytes: frame(1, 'x'.repeat(70_000), { mask: false }).subarray(0, 10),
    },
    ...[4, 2, 1, 6, 7].map((rsv) => ({
      name: `reserved bits ${rsv.toString(2).padStart(3, '0')}`,
      section: '5.2',
      bytes: frame(1, 'x', { rsv }),
    })),
    { name: 'a reserved bit on a ping', section: '5.2', bytes: frame(9, '', { rsv: 4 }) },
    ...[3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map((opcode) => ({
      name: `the opcode ${opcode}`,
      section: '5.2',
      bytes: frame(opcode, 'x'),
    })),
    {
      name: 'a 16-bit length of 125',
      section: '5.2',
      bytes: frame(1, 'x'.repeat(125), { lengthBits: 16 }),
    },
    { name: 'a 16-bit length of 0', section: '5.2', bytes: frame(1, '', { lengthBits: 16 }) },
    {
      name: 'a 64-bit length of 65535',
      section: '5.2',
      bytes: frame(2, Buffer.alloc(65_535), { lengthBits: 64 }),
    },
    { name: 'a 64-bit length of 5', section: '5.2', bytes: frame(1, 'hello', { lengthBits: 64 }) },
    {
      name: 'a 64-bit length with its top bit set',
      section: '5.2',
      bytes: frame(2, '', { lengthBits: 64, declared: 2n ** 63n + 5n }),
    },
    { name: 'a continuation without a message', section: '5.4', bytes: frame(0, 'x') },
    {
      name: 'a continuation after the end of a message',
      section: '5.4',
      bytes: Buffer.concat([text('a', { fin: false }), frame(0, 'b'), frame(0, 'c')]).subarray(0),
    },
    {
      name: 'a new text inside a message',
      section: '5.4',
      bytes: Buffer.concat([text('a', { fin: false }), text('b')]),
    },
    {
      name: 'a new binary inside a message',
      section: '5.4',
      bytes: Buffer.concat([text('a', { fin: false }), frame(2, 'b', { fin: false })]),
    },
    ...[8, 9, 10].map((opcode) => ({
      name: `a fragmented control frame, opcode ${opcode}`,
      section: '5.5',
      bytes: frame(opcode, '', { fin: false }),
    })),
    ...[8, 9, 10].map((opcode) => ({
      name: `a control frame of 126 bytes, opcode ${opcode}`,
      section: '5.5',
      bytes: frame(opcode, Buffer.alloc(126, 'x')),
    })),
    { name: 'a Close of one byte', section: '5.5.1', bytes: frame(8, 'x') },
    ...[0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 1999, 2000, 2999, 5000, 65_535].map(
      (code) => ({
        name: `the close code ${code}`,
        section: '7.4',
        bytes: closeFrame(code),
      }),
    ),
  ]
  for (const { name, section, bytes } of cases) {
    test(`${name} (RFC 6455 §${section})`, async () => {
      for (const send of [undefined, byteByByte]) {
        // 64 KiB byte by byte would test nothing more.
        if (send !== undefined && bytes.length > 1_000) continue
        const lines = await talk(bytes, echo, send)
        assert.equal(plain(lines.at(-1)!), 'close:1002')
        assert.equal(lines.filter((line) => line.startsWith('close')).length, 1)
      }
    })
  }

  test('at the first byte that breaks a rule (RFC 6455 §7.1.7)', async () => {
    await using w = await world(echo)
    for (const bytes of [
      [0xf1],
      [0x83],
      [0x00],
      [0x09],
      [0x81, 0x05],
      [0x89, 0xfe],
      [0x81, 0xfe, 0, 125],
      [0x82, 0xff, 0x80],
      [0x82, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff],
    ]) {
      const peer = await w.open()
      peer.write(Buffer.from(bytes))
      assert.equal(plain((await peer.finish())[0]!), 'close:1002', `after ${bytes.join(' ')}`)
    }
  })
})

describe('sizes', () => {
  for (const size of [0, 1, 125, 126, 127, 65_535, 65_536, 70_000]) {
    test(`${size} bytes are echoed, in one or in random pieces (RFC 6455 §5.2)`, async () => {
      await using w = await world(echo)
      const payload = Buffer.alloc(size, 'abcdefg')
      const bytes = Buffer.concat([text(payload), frame(2, payload)])
      for (const pieces of [[bytes], ...splits(bytes, 3, size)]) {
        const peer = await w.open()
        for (const piece of pieces) {
          peer.write(piece)
          await turn()
        }
        const [first, second] = [await peer.next(), await peer.next()]
        assert.deepEqual([first!.opcode, second!.opcode], [1, 2])
        assert.ok(payload.equals(first!.payload) && payload.equals(second!.payload))
        assert.deepEqual([first!.masked, second!.masked], [false, false], 'RFC 6455, section 5.1')
        peer.socket.destroy()
      }
    })
  }
})

describe('input in any pieces', () => {
  const script = Buffer.concat([
    text('one'),
    frame(2, Buffer.from([0, 255, 10])),
    text('two, ', { fin: false }),
    frame(9, 'now'),
    frame(0, '', { fin: false }),
    frame(10, 'unasked'),
    frame(0, 'three €'),
    text(''),
    frame(9),
    frame(2, 'x'.repeat(300), { key: [0, 0, 0, 0] }),
    closeFrame(4321, 'done'),
    text('never'),
  ])
  const answer = [
    'text:one',
    `binary:${Buffer.from([0, 255, 10]).toString()}`,
    'pong:now',
    'text:two, three €',
    'text:',
    'pong:',
    `binary:${'x'.repeat(300)}`,
    'close:4321',
  ]

  test('many frames in one chunk (RFC 6455 §6.2)', async () => {
    assert.deepEqual(await talk(script), answer)
  })

  test('one byte at a time (RFC 6455 §6.2)', async () => {
    assert.deepEqual(await talk(script, echo, byteByByte), answer)
  })

  test('100 random splits (RFC 6455 §6.2)', async () => {
    await using w = await world(echo)
    for (const pieces of splits(script, 100, 6455)) {
      const peer = await w.open()
      for (const piece of pieces) {
        peer.write(piece)
        await turn()
      }
      assert.deepEqual(await peer.finish(), answer)
    }
  })

  test('any masking key, also for a frame in several chunks (RFC 6455 §5.3)', async () => {
    await using w = await world(echo)
    const peer = await w.open()
    const payload = Buffer.from(Array.from({ length: 5_000 }, (_, i) => i & 0x7f))
    for (const key of [
      [0, 0, 0, 0],
      [255, 255, 255, 255],
      [1, 2, 3, 4],
      [0, 0, 0, 1],
      [128, 0, 0, 0],
    ]) {
      const bytes = text(payload, { key })
      for (const at of [7, 8, 9, 1_031, 4_999]) {
        peer.write(bytes.subarray(0, at))
        await turn()
        peer.write(bytes.subarray(at))
        assert.ok(payload.equals((await peer.next())!.payload))
      }
    }
  })
})

describe('fragments and control frames', () => {
  test('fragments are joined, including empty ones (RFC 6455 §5.4)', async () => {
    const lines = await talk(
      Buffer.concat([
        frame(2, '', { fin: false }),
        frame(0, 'a', { fin: false }),
        frame(0, '', { fin: false }),
        frame(0, 'b', { fin: false }),
        frame(0, ''),
        text('', { fin: false }),
        frame(0, ''),
        closeFrame(1000),
      ]),
    )
    assert.deepEqual(lines, ['binary:ab', 'text:', 'close:1000'])
  })

  test('a ping between fragments is answered before the message (RFC 6455 §5.4)', async () => {
    await using w = await world(echo)
    const peer = await w.open()
    peer.write(Buffer.concat([text('a', { fin: false }), frame(9, 'p')]))
    assert.equal(await peer.line(), 'pong:p')
    peer.write(frame(0, 'b'))
    assert.equal(await peer.line(), 'text:ab')
  })

  test('a pong repeats the payload, up to 125 arbitrary bytes (RFC 6455 §5.5.3)', async () => {
    await using w = await world(echo)
    const peer = await w.open()
    for (const payload of [Buffer.alloc(0), Buffer.alloc(125, 0xfe), Buffer.from('hi')]) {
      peer.write(frame(9, payload))
      const pong = await peer.next()
      assert.equal(pong!.opcode, 10)
      assert.ok(payload.equals(pong!.payload))
    }
  })

  test('ten pings in one chunk get ten pongs in order (RFC 6455 §5.5.3)', async () => {
    const pings = Array.from({ length: 10 }, (_, i) => frame(9, `${i}`))
    const lines = await talk(Buffer.concat([...pings, closeFrame(1000)]))
    assert.deepEqual(lines, [...pings.map((_, i) => `pong:${i}`), 'close:1000'])
  })

  test('an unsolicited pong is ignored (RFC 6455 §5.5.3)', async () => {
    assert.deepEqual(await talk(Buffer.concat([frame(10, 'x'), frame(10), closeFrame(1000)])), [
      'close:1000',
    ])
  })

  test('a flood of control frames ends with 1008 (RFC 6455 §10.4)', async () => {
    // A second may end meanwhile: one of the two then has more than it may have.
    const flood = Buffer.concat(Array.from({ length: 102 }, () => frame(9, 'x')))
    const lines = await talk(flood, { maxControlFramesPerSecond: 50 })
    assert.equal(plain(lines.at(-1)!), 'close:1008')
    assert.ok(lines.length >= 51 && lines.length <= 101, `${lines.length} lines`)
  })
})

describe('limits are checked at the header', () => {
  test('a declared length over the limit is 1009 before any payload (RFC 6455 §10.4)', async () => {
    for (const declared of [1_001, 65_536, 2 ** 40]) {
      const header = frame(2, '', { declared, lengthBits: declared < 65_536 ? 16 : 64 })
      const lines = await talk(header.subarray(0, header.length - 4), {
        ...echo,
        maxMessageBytes: 1_000,
      })
      assert.equal(plain(lines[0]!), 'close:1009')
    }
  })

  test('a message of exactly the limit is accepted, also in fragments', async () => {
    const lines = await talk(
      Buffer.concat([
        text('x'.repeat(10)),
        text('x'.repeat(4), { fin: false }),
        frame(0, 'y'.repeat(6)),
        closeFrame(1000),
      ]),
      { ...echo, maxMessageBytes: 10 },
    )
    assert.deepEqual(lines, ['text:xxxxxxxxxx', 'text:xxxxyyyyyy', 'close:1000'])
  })

  test('fragments that together exceed the limit are 1009 (RFC 6455 §10.4)', async () => {
    const bytes = Buffer.concat([
      text('x'.repeat(6), { fin: false }),
      frame(0, 'y'.repeat(5)).subarray(0, 2),
    ])
    assert.equal(plain((await talk(bytes, { ...echo, maxMessageBytes: 10 }))[0]!), 'close:1009')
  })

  test('more than maxFragments are 1008 (RFC 6455 §10.4)', async () => {
    const limits = { ...echo, maxFragments: 3 }
    const more = frame(0, 'x', { fin: false })
    const good = Buffer.concat([text('x', { fin: false }), more, frame(0, 'x'), closeFrame(1000)])
    assert.deepEqual(await talk(good, limits), ['text:xxx', 'close:1000'])
    const bad = Buffer.concat([text('x', { fin: false }), more, more, more])
    assert.equal(plain((await talk(bad, limits))[0]!), 'close:1008')
  })

  test('control frames do not count towards either limit', async () => {
    const bytes = Buffer.concat([
      text('x', { fin: false }),
      ...Array.from({ length: 20 }, () => frame(9, 'long enough')),
      frame(0, 'y'),
      closeFrame(1000),
    ])
    const lines = await talk(bytes, { ...echo, maxMessageBytes: 2, maxFragments: 2 })
    assert.deepEqual(lines.slice(-2), ['text:xy', 'close:1000'])
  })
})

describe('UTF-8', () => {
  const bad: Record<string, number[]> = {
    'an overlong form of two bytes': [0xc0, 0xaf],
    'an overlong form of three bytes': [0xe0, 0x80, 0xaf],
    'an overlong form of four bytes': [0xf0, 0x80, 0x80, 0xaf],
    'the first surrogate': [0xed, 0xa0, 0x80],
    'the last surrogate': [0xed, 0xbf, 0xbf],
    'the first value beyond U+10FFFF': [0xf4, 0x90, 0x80, 0x80],
    'a lead byte of five bytes': [0xf8, 0x88, 0x80, 0x80, 0x80],
    'a continuation byte alone': [0x80],
    'the byte FE': [0xfe],
    'a lead byte before ASCII': [0xc3, 0x41],
    'a truncated code point before ASCII': [0xe2, 0x82, 0x41],
  }
  for (const [name, bytes] of Object.entries(bad)) {
    test(`${name} is 1007, wherever it is cut (RFC 6455 §8.1)`, async () => {
      await using w = await world(echo)
      for (let at = 0; at <= bytes.length; at++) {
        const [head, tail] = [
          Buffer.from([0x61, ...bytes.slice(0, at)]),
          Buffer.from(bytes.slice(at)),
        ]
        const peer = await w.open()
        peer.write(text(head, { fin: false }))
        await turn()
        peer.write(frame(0, Buffer.concat([tail, Buffer.from('b')])))
        assert.deepEqual((await peer.finish()).map(plain), ['close:1007'])
      }
    })
  }

  for (const bytes of [[0xc3], [0xe2, 0x82], [0xf0, 0x9f, 0x92]]) {
    test(`a text that ends within a code point of ${bytes.length + 1} bytes is 1007`, async () => {
      const payload = Buffer.from([0x61, ...bytes])
      assert.equal(plain((await talk(text(payload)))[0]!), 'close:1007')
      const fragments = Buffer.concat([text(payload, { fin: false }), frame(0, '')])
      assert.equal(plain((await talk(fragments))[0]!), 'close:1007')
    })
  }

  test('a code point may be split over fragments and chunks (RFC 6455 §5.6, 8.1)', async () => {
    const payload = Buffer.from('κόσμε \u{10ffff} \ud7ff \ue000 \u{1f4a9} \0')
    const fragments = [...payload].map((byte, i) =>
      frame(i === 0 ? 1 : 0, Buffer.from([byte]), { fin: i === payload.length - 1 }),
    )
    const bytes = Buffer.concat([...fragments, closeFrame(1000)])
    assert.deepEqual(await talk(bytes), [`text:${payload.toString()}`, 'close:1000'])
    assert.deepEqual(await talk(bytes, echo, byteByByte), [
      `text:${payload.toString()}`,
      'close:1000',
    ])
  })

  test('an invalid byte fails before the frame is complete (RFC 6455 §8.1)', async () => {
    const payload = Buffer.concat([
      Buffer.from('κόσμε'),
      Buffer.from([0xed, 0xa0]),
      Buffer.alloc(80_000, 'x'),
    ])
    const header = payload.length - 80_000 + 14
    assert.equal(plain((await talk(text(payload).subarray(0, header)))[0]!), 'close:1007')
  })

  test('an invalid byte fails before the message is complete (RFC 6455 §8.1)', async () => {
    const bytes = text(Buffer.from([0x61, 0xf4, 0x90]), { fin: false })
    assert.equal(plain((await talk(bytes))[0]!), 'close:1007')
  })

  test('binary is never checked (RFC 6455 §5.6)', async () => {
    await using w = await world(echo)
    const peer = await w.open()
    const payload = Buffer.from(Array.from({ length: 600 }, (_, i) => i & 255))
    peer.write(frame(2, payload))
    assert.ok(payload.equals((await peer.next())!.payload))
  })
})

test('tiny fragments do not keep their chunks in memory (RFC 6455 §10.4)', async () => {
  await using w = await world({ maxFragments: 10 ** 6 })
  const peer = await w.open()
  // Each fragment is a small part of its own chunk, which a view would keep in memory.
  await collectGarbage()
  const before = process.memoryUsage().arrayBuffers
  peer.write(frame(2, 'x', { fin: false }))
  const many = Buffer.concat(Array.from({ length: 20_000 }, () => frame(0, 'y', { fin: false })))
  for (let at = 0; at < many.length; at += 7_000) {
    peer.write(many.subarray(at, at + 7_000))
    await turn()
  }
  peer.write(frame(9, 'read'))
  assert.equal(await peer.line(), 'pong:read')
  await collectGarbage()
  const grown = process.memoryUsage().arrayBuffers - before
  assert.ok(grown < 4 * 2 ** 20, `${grown} bytes for a message of 20 kB`)
})

test('limits are set per server', async () => {
  await using small = await world({ ...echo, maxMessageBytes: 4 })
  await using large = await world({ ...echo, maxMessageBytes: 8 })
  const [one, two] = [await small.open(), await large.open()]
  one.write(text('12345'))
  two.write(text('12345'))
  assert.equal(plain((await one.finish())[0]!), 'close:1009')
  assert.equal(await two.line(), 'text:12345')
  assert.ok(small.sockets instanceof WebSocketServer)
})
