/** What RFC 9113, section 6 says about each type of frame, one row for each rule. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { RemoteProtocolError } from 'runwright/http'
import { CODE } from '../../../../lib/http/transports/http2/frames.js'
import {
  clientOf,
  data,
  END_HEADERS,
  END_STREAM,
  field,
  frame,
  ok,
  OK,
  scripted,
  setting,
  TYPE,
  uint32,
} from './scripted-server.js'

const { protocolError: PROTOCOL, flowControlError: FLOW, frameSizeError: SIZE } = CODE

/** `ends` the connection or `resets` the stream with an error code; `ended` by the server. */
type Outcome = { readonly ends: number } | { readonly resets: number } | 'ignored' | 'ended'
const ends = (code: number): Outcome => ({ ends: code })
const resets = (code: number): Outcome => ({ resets: code })

interface Rule {
  readonly what: string
  /** Sent while stream 1 waits for its response. */
  readonly frames: readonly Buffer[]
  readonly outcome: Outcome
  /** The stage of stream 1; by default its head was not sent. */
  readonly after?: 'head' | 'end' | 'connecting'
}

const MAX = 2 ** 31 - 1
const PADDED = 8
const PRIORITY = 0x20
const rule = (
  what: string,
  frames: readonly Buffer[] | Buffer,
  outcome: Outcome,
  after?: Rule['after'],
): Rule => ({
  what,
  frames: Array.isArray(frames) ? frames : [frames as Buffer],
  outcome,
  ...(after && { after }),
})
/** The first bytes of a frame with a payload of this length. */
const announced = (type: number, stream: number, length: number): Buffer => {
  const head = frame(type, 0, stream)
  head.writeUIntBE(length, 0, 3)
  return head
}

const RULES: readonly Rule[] = [
  // 4.1, 4.2: every frame
  ...[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 99].map((type) =>
    rule(
      `a frame of type ${type} and 16 385 bytes`,
      announced(type, type === 4 ? 0 : 1, 16_385),
      ends(SIZE),
    ),
  ),
  ...[0, 1, 2, 99].map((stream) =>
    rule(`an unknown type on stream ${stream}`, frame(99, 0xff, stream, 'x'), 'ignored'),
  ),
  rule('a stream with the reserved bit', frame(TYPE.window, 0, 2 ** 31 + 1, uint32(1)), 'ignored'),
  ...[TYPE.ping, TYPE.data, TYPE.goAway, 99].map((type) =>
    rule(
      `type ${type} before SETTINGS`,
      frame(type, 0, type === TYPE.data ? 1 : 0, '12345678'),
      ends(PROTOCOL),
      'connecting',
    ),
  ),
  rule(
    'an acknowledgement before SETTINGS',
    frame(TYPE.settings, 1, 0),
    ends(PROTOCOL),
    'connecting',
  ),

  // 6.1 DATA
  rule('DATA of stream 0', data(0, 'x'), ends(PROTOCOL)),
  rule('DATA of a stream never opened', data(99, 'x'), ends(PROTOCOL)),
  rule("DATA of a server's stream", data(2, 'x'), ends(PROTOCOL)),
  rule('DATA before the head', data(1, 'x', 0), resets(PROTOCOL)),
  rule('empty DATA', data(1, '', 0), 'ignored', 'head'),
  rule('DATA with unknown flags', data(1, '', 0xf6), 'ignored', 'head'),
  rule('padded DATA without a length of padding', frame(TYPE.data, PADDED, 1), ends(SIZE), 'head'),
  rule('DATA that is all padding', frame(TYPE.data, PADDED, 1, '\x03\0\0\0'), 'ignored', 'head'),
  rule(
    'DATA with more padding than payload',
    frame(TYPE.data, PADDED, 1, '\x04\0\0\0'),
    ends(PROTOCOL),
    'head',
  ),
  rule('DATA after END_STREAM', data(1, 'x'), 'ignored', 'end'),

  // 6.2 HEADERS
  rule('HEADERS of stream 0', ok(0), ends(PROTOCOL)),
  rule('HEADERS of a stream never opened', ok(99), ends(PROTOCOL)),
  rule("HEADERS of a server's stream", ok(2), ends(PROTOCOL)),
  rule(
    'padded HEADERS without a length of padding',
    frame(TYPE.headers, END_HEADERS | PADDED, 1),
    ends(SIZE),
  ),
  rule(
    'HEADERS with more padding than payload',
    frame(TYPE.headers, END_HEADERS | PADDED, 1, '\x02\x88'),
    ends(PROTOCOL),
  ),
  rule(
    'HEADERS with 4 bytes of priority',
    frame(TYPE.headers, END_HEADERS | PRIORITY, 1, '\0\0\0\0'),
    ends(SIZE),
  ),
  rule(
    'padded HEADERS with 4 bytes of priority',
    frame(TYPE.headers, 0x2c, 1, '\x01\0\0\0\0\0'),
    ends(SIZE),
  ),
  rule(
    'HEADERS of priority alone',
    frame(TYPE.headers, END_HEADERS | PRIORITY, 1, '\0\0\0\0\0'),
    resets(PROTOCOL),
  ),
  rule(
    'trailers without END_STREAM',
    frame(TYPE.headers, END_HEADERS, 1, field('a', 'b')),
    resets(PROTOCOL),
    'head',
  ),
  rule('HEADERS after END_STREAM', ok(1), 'ignored', 'end'),

  // 6.3 PRIORITY
  rule('PRIORITY', frame(TYPE.priority, 0, 1, '\0\0\0\0\0'), 'ignored'),
  rule('PRIORITY of a stream never opened', frame(TYPE.priority, 0, 99, '\0\0\0\0\0'), 'ignored'),
  rule('PRIORITY after END_STREAM', frame(TYPE.priority, 0, 1, '\0\0\0\0\0'), 'ignored', 'end'),
  rule('PRIORITY of stream 0', frame(TYPE.priority, 0, 0, '\0\0\0\0\0'), ends(PROTOCOL)),
  ...[0, 4, 6].flatMap((length) => [
    rule(
      `PRIORITY of ${length} bytes`,
      frame(TYPE.priority, 0, 1, '\0'.repeat(length)),
      resets(SIZE),
    ),
    rule(
      `PRIORITY of ${length} bytes of a stream never opened`,
      frame(TYPE.priority, 0, 99, '\0'.repeat(length)),
      ends(SIZE),
    ),
  ]),

  // 6.4 RST_STREAM
  rule('RST_STREAM', frame(TYPE.reset, 0, 1, uint32(8)), 'ended'),
  rule('RST_STREAM after END_STREAM', frame(TYPE.reset, 0, 1, uint32(8)), 'ignored', 'end'),
  rule('RST_STREAM of stream 0', frame(TYPE.reset, 0, 0, uint32(8)), ends(PROTOCOL)),
  rule('RST_STREAM of a stream never opened', frame(TYPE.reset, 0, 99, uint32(8)), ends(PROTOCOL)),
  ...[0, 3, 5].map((length) =>
    rule(`RST_STREAM of ${length} bytes`, frame(TYPE.reset, 0, 1, '\0'.repeat(length)), ends(SIZE)),
  ),

  // 6.5 SETTINGS
  rule('SETTINGS of a stream', frame(TYPE.settings, 0, 1), ends(PROTOCOL)),
  ...[1, 5, 7].map((length) =>
    rule(
      `SETTINGS of ${length} bytes`,
      frame(TYPE.settings, 0, 0, '\0'.repeat(length)),
      ends(SIZE),
    ),
  ),
  rule('an acknowledgement', frame(TYPE.settings, 1, 0), 'ignored'),
  rule(
    'an acknowledgement with a setting',
    frame(TYPE.settings, 1, 0, setting(3, 100)),
    ends(SIZE),
  ),
  rule('an acknowledgement with a byte', frame(TYPE.settings, 1, 0, '\0'), ends(SIZE)),
  ...(
    [
      [1, 0, 'ignored'],
      [1, 2 ** 32 - 1, 'ignored'],
      [2, 0, 'ignored'],
      [2, 1, ends(PROTOCOL)],
      [2, 2, ends(PROTOCOL)],
      [3, 1, 'ignored'],
      [3, 2 ** 32 - 1, 'ignored'],
      [4, 0, 'ignored'],
      [4, MAX, 'ignored'],
      [4, MAX + 1, ends(FLOW)],
      [4, 2 ** 32 - 1, ends(FLOW)],
      [5, 16_383, ends(PROTOCOL)],
      [5, 16_384, 'ignored'],
      [5, 2 ** 24 - 1, 'ignored'],
      [5, 2 ** 24, ends(PROTOCOL)],
      [6, 0, 'ignored'],
      [6, 2 ** 32 - 1, 'ignored'],
      [8, 1, 'ignored'],
      [99, 7, 'ignored'],
    ] as const
  ).map(([id, value, outcome]) =>
    rule(`setting ${id} of ${value}`, frame(TYPE.settings, 0, 0, setting(id, value)), outcome),
  ),

  // 6.6 PUSH_PROMISE, which our SETTINGS forbid
  rule(
    'PUSH_PROMISE',
    frame(TYPE.push, END_HEADERS, 1, Buffer.concat([uint32(2), Buffer.from(OK, 'latin1')])),
    ends(PROTOCOL),
  ),
  rule('PUSH_PROMISE of stream 0', frame(TYPE.push, END_HEADERS, 0, uint32(2)), ends(PROTOCOL)),
  rule('truncated PUSH_PROMISE', frame(TYPE.push, END_HEADERS, 1, '\0'), ends(PROTOCOL)),

  // 6.7 PING
  rule('PING', frame(TYPE.ping, 0, 0, '12345678'), 'ignored'),
  rule('an answer without a PING', frame(TYPE.ping, 1, 0, '12345678'), 'ignored'),
  rule('PING of a stream', frame(TYPE.ping, 0, 1, '12345678'), ends(PROTOCOL)),
  ...[0, 7, 9].map((length) =>
    rule(`PING of ${length} bytes`, frame(TYPE.ping, 0, 0, '\0'.repeat(length)), ends(SIZE)),
  ),

  // 6.8 GOAWAY
  rule('GOAWAY of a stream', frame(TYPE.goAway, 0, 1, '\0'.repeat(8)), ends(PROTOCOL)),
  ...[0, 7].map((length) =>
    rule(`GOAWAY of ${length} bytes`, frame(TYPE.goAway, 0, 0, '\0'.repeat(length)), ends(SIZE)),
  ),

  // 6.9 WINDOW_UPDATE
  ...[0, 1].flatMap((stream) =>
    [0, 3, 5].map((length) =>
      rule(
        `WINDOW_UPDATE of ${length} bytes of stream ${stream}`,
        frame(TYPE.window, 0, stream, '\0'.repeat(length)),
        ends(SIZE),
      ),
    ),
  ),
  rule(
    'WINDOW_UPDATE with the reserved bit',
    frame(TYPE.window, 0, 1, uint32(2 ** 31 + 1)),
    'ignored',
  ),
  rule('WINDOW_UPDATE of 0', frame(TYPE.window, 0, 1, uint32(0)), resets(PROTOCOL)),
  rule(
    'WINDOW_UPDATE of 0 and the reserved bit',
    frame(TYPE.window, 0, 1, uint32(2 ** 31)),
    resets(PROTOCOL),
  ),
  rule('WINDOW_UPDATE of 0 of the connection', frame(TYPE.window, 0, 0, uint32(0)), ends(PROTOCOL)),
  rule('a largest window', frame(TYPE.window, 0, 1, uint32(MAX - 65_535)), 'ignored'),
  rule('a window that overflows', frame(TYPE.window, 0, 1, uint32(MAX - 65_534)), resets(FLOW)),
  rule(
    'a largest window of the connection',
    frame(TYPE.window, 0, 0, uint32(MAX - 65_535)),
    'ignored',
  ),
  rule(
    'a window of the connection that overflows',
    frame(TYPE.window, 0, 0, uint32(MAX - 65_534)),
    ends(FLOW),
  ),
  rule(
    'a setting that makes a window overflow',
    [
      frame(TYPE.window, 0, 1, uint32(MAX - 65_535)),
      frame(TYPE.settings, 0, 0, setting(4, 65_536)),
    ],
    ends(FLOW),
  ),
  rule(
    'WINDOW_UPDATE of a stream never opened',
    frame(TYPE.window, 0, 99, uint32(1)),
    ends(PROTOCOL),
  ),
  rule('WINDOW_UPDATE after END_STREAM', frame(TYPE.window, 0, 1, uint32(1)), 'ignored', 'end'),

  // 6.10 CONTINUATION
  rule('CONTINUATION of stream 0', frame(TYPE.continuation, END_HEADERS, 0), ends(PROTOCOL)),
  rule('CONTINUATION without HEADERS', frame(TYPE.continuation, END_HEADERS, 1), ends(PROTOCOL)),
  rule(
    'CONTINUATION after the end of a section',
    [ok(1), frame(TYPE.continuation, END_HEADERS, 1)],
    ends(PROTOCOL),
  ),
  ...[
    frame(TYPE.continuation, END_HEADERS, 3),
    data(1, 'x'),
    ok(1),
    frame(TYPE.priority, 0, 1, '12345'),
    frame(TYPE.reset, 0, 1, uint32(8)),
    frame(TYPE.settings, 0, 0),
    frame(TYPE.ping, 0, 0, '12345678'),
    frame(TYPE.goAway, 0, 0, '12345678'),
    frame(TYPE.window, 0, 1, uint32(1)),
    frame(99, 0, 1),
  ].map((other) =>
    rule(
      `type ${other[3]} of stream ${other[8]} amid a section`,
      [frame(TYPE.headers, 0, 1, OK), other],
      ends(PROTOCOL),
    ),
  ),
]

/** What comes of a rule whose bytes arrive in pieces of `size`. */
async function outcomeOf({ frames, after, outcome }: Rule, size: number): Promise<Outcome> {
  const seen: { code?: Promise<Outcome> } = {}
  const server = await scripted(
    async (peer) => {
      const code = async (type: number, at: number): Promise<number> =>
        (await peer.next(type)).payload.readUInt32BE(at)
      if (seen.code === undefined) {
        seen.code = Promise.race([
          code(TYPE.goAway, 4).then(ends, () => 'ended' as const),
          code(TYPE.reset, 0).then(resets, () => new Promise<never>(() => {})),
        ])
        if (after !== 'connecting') await peer.next(TYPE.headers)
        if (after === 'end') peer.write(ok(1), data(1, 'fine'))
        if (after === 'head') peer.write(ok(1))
        const bytes = Buffer.concat(frames)
        for (let at = 0; at < bytes.length; at += size) {
          peer.write(bytes.subarray(at, at + size))
          if (size < bytes.length) await new Promise((resolve) => setImmediate(resolve))
        }
        // What is written to a closed connection would reset it, and its GOAWAY be lost.
        const open = outcome === 'ignored' || 'resets' in Object(outcome)
        if (open && after !== 'end')
          peer.write(...(after === 'head' ? [] : [ok(1)]), data(1, 'fine'))
      }
      for (;;) {
        const { stream } = await peer.next(TYPE.headers).catch(() => ({ stream: 0 }))
        if (stream === 0) return
        peer.write(ok(stream, '', END_STREAM))
      }
    },
    after === 'connecting' ? null : '',
  )
  const client = clientOf()
  try {
    const first = client.get(server.origin).then(
      ({ text }) => text,
      (error: unknown) => error,
    )
    const result = await first
    if (result === 'fine') {
      // Whatever came after the response must not disturb the next one.
      assert.equal((await client.get(server.origin)).statusCode, 200)
      assert.equal(server.accepted, 1)
      return 'ignored'
    }
    assert.ok(result instanceof RemoteProtocolError, String(result))
    const { accepted } = server
    if (after !== 'connecting') assert.equal((await client.get(server.origin)).statusCode, 200)
    // A stream fails alone, so that its connection is used again.
    if (server.accepted > accepted) return await seen.code!
    await client.close()
    return await seen.code!.then((code) =>
      typeof code === 'object' && 'ends' in code && code.ends === 0 ? 'ended' : code,
    )
  } finally {
    await client.close()
    await server[Symbol.asyncDispose]()
  }
}

for (const [how, size] of [
  ['whole', Infinity],
  ['byte by byte', 1],
] as const) {
  test(`frames that arrive ${how} are answered as RFC 9113, section 6 says`, async () => {
    const wrong: object[] = []
    for (const rule of RULES) {
      const outcome = await outcomeOf(rule, size).catch((error: Error) => error.message)
      if (!isDeepStrictEqual(outcome, rule.outcome)) wrong.push({ what: rule.what, outcome })
    }
    assert.deepEqual(wrong, [])
  })
}
