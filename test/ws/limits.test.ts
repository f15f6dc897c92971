/** The limit of a message is on the message, not on the bytes that carry it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { constants, deflateRawSync } from 'node:zlib'
import { frame, world } from '../helpers/ws-peer.js'
import { random } from './random.js'

const LIMIT = 40_000
const roll = random(7)
const noise = Buffer.from(Array.from({ length: LIMIT + 1 }, () => Math.floor(roll() * 256)))

const deflated = (payload: Buffer, options: object = {}): Buffer =>
  deflateRawSync(payload, { finishFlush: constants.Z_SYNC_FLUSH, ...options }).subarray(0, -4)

/** Ways to send a binary message. */
const ways: Record<string, (payload: Buffer) => Buffer> = {
  'plain, in one frame': (payload) => frame(2, payload),
  'plain, in fragments': (payload) => fragments(payload, 0),
  'compressed, in one frame': (payload) => frame(2, deflated(payload), { rsv: 4 }),
  'compressed, in fragments': (payload) => fragments(deflated(payload), 4),
  'compressed with little memory': (payload) =>
    fragments(deflated(payload, { memLevel: 1, level: 1 }), 4),
  'compressed with fixed codes': (payload) =>
    frame(2, deflated(payload, { strategy: constants.Z_FIXED }), { rsv: 4 }),
}

function fragments(bytes: Buffer, rsv: number): Buffer {
  const frames: Buffer[] = []
  for (let at = 0; at < bytes.length; at += 1_000) {
    const fin = at + 1_000 >= bytes.length
    const piece = bytes.subarray(at, at + 1_000)
    frames.push(frame(at === 0 ? 2 : 0, piece, { fin, rsv: at === 0 ? rsv : 0 }))
  }
  return Buffer.concat(frames)
}

describe('a message that cannot be compressed', () => {
  for (const [name, encode] of Object.entries(ways)) {
    test(`${name}, is accepted at the limit and refused beyond it (RFC 6455 §10.4)`, async () => {
      await using w = await world({
        maxMessageBytes: LIMIT,
        deflate: true,
        onConnection(connection) {
          connection.onMessage = (message) => connection.send(`${message.length}`)
        },
      })
      const peer = await w.open({ 'Sec-WebSocket-Extensions': 'permessage-deflate' })
      peer.write(encode(noise.subarray(0, LIMIT)))
      assert.equal(await peer.line(), `text:${LIMIT}`)
      peer.write(encode(noise))
      assert.match(await peer.line(), /^close:1009:/)
    })
  }
})

test('a compressed message that is no message has at most twice the limit and 64 KiB', async () => {
  await using w = await world({ maxMessageBytes: LIMIT, maxFragments: 10 ** 6, deflate: true })
  const peer = await w.open({ 'Sec-WebSocket-Extensions': 'permessage-deflate' })
  // Empty stored blocks, without end.
  const nothing = Buffer.from('000000ffff'.repeat(2_000), 'hex')
  peer.write(frame(2, nothing, { fin: false, rsv: 4 }))
  for (let sent = 0; sent < LIMIT * 2 + 65_536; sent += nothing.length) {
    peer.write(frame(0, nothing, { fin: false }))
  }
  assert.match(await peer.line(), /^close:1009:/)
})
