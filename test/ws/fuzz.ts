/**
 * Random connections, each generated from one seed, with the replies of a correct server or client.
 *
 * A case is a stream of frames, valid or mutated, in random pieces; for a server it begins with an
 * opening handshake. A
 * second implementation, as plain as possible and without any code of lib, computes the expected
 * replies in order and the close code.
 */
import { isUtf8 } from 'node:buffer'
import { constants, deflateRawSync, inflateRawSync } from 'node:zlib'
import { frame, type FrameOptions, opening } from '../helpers/ws-peer.js'
import { random } from './random.js'

export const LIMITS = { maxMessageBytes: 5_000, maxFragments: 20 } as const

/** The side that is tested: a server's input is masked, a client's is not. */
export type Role = 'client' | 'server'

export interface Case {
  readonly seed: number
  readonly deflate: boolean
  /** Everything the peer sends: for a client without the head of the response. */
  readonly bytes: Buffer
  readonly pieces: readonly Buffer[]
  /** The replies after the 101 as `opcode:payload in hex`, the last a Close or the end. */
  readonly expected: readonly string[]
}

class Dice {
  readonly role: Role
  readonly #next: () => number

  constructor(seed: number, role: Role) {
    this.#next = random(seed)
    this.role = role
  }

  frame(opcode: number, payload: Uint8Array = Buffer.alloc(0), options: FrameOptions = {}): Buffer {
    return frame(opcode, payload, { mask: this.role === 'server', ...options })
  }

  below(limit: number): number {
    return Math.floor(this.#next() * limit)
  }

  chance(probability: number): boolean {
    return this.#next() < probability
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)]!
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.below(256)))
  }
}

const SIZES = [0, 1, 2, 5, 20, 124, 125, 126, 127, 300, 1_200, 4_000]
const WORDS = ['hello', 'κόσμε', '€', '💩', '\u{10ffff}', 'a', '\0', 'ß']

function someText(dice: Dice): Buffer {
  const size = dice.pick(SIZES)
  let all = ''
  while (all.length < size) all += dice.pick(WORDS)
  return Buffer.from(all.slice(0, size))
}

function deflated(payload: Buffer): Buffer {
  return deflateRawSync(payload, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4)
}

/** One message, in one frame or several, with control frames in between. */
function someMessage(dice: Dice, deflate: boolean): Buffer[] {
  const isText = dice.chance(0.6)
  let payload = isText ? someText(dice) : dice.bytes(dice.pick(SIZES))
  if (isText && dice.chance(0.06)) payload[dice.below(payload.length)] = dice.below(256)
  const compress = deflate && dice.chance(0.6)
  if (compress) payload = deflated(payload)
  if (compress && dice.chance(0.05)) payload[dice.below(payload.length)] = dice.below(256)
  const frames: Buffer[] = []
  const count = dice.chance(0.6) ? 1 : 1 + dice.below(dice.chance(0.05) ? 30 : 6)
  let at = 0
  for (let i = 0; i < count; i++) {
    const last = i === count - 1
    const end = last ? payload.length : at + dice.below(payload.length - at + 1)
    frames.push(
      dice.frame(i === 0 ? (isText ? 1 : 2) : 0, payload.subarray(at, end), {
        fin: last,
        rsv: compress && i === 0 ? 4 : 0,
        key: dice.chance(0.1) ? [0, 0, 0, 0] : [...dice.bytes(4)],
      }),
    )
    if (!last && dice.chance(0.3)) frames.push(someControl(dice))
    at = end
  }
  return frames
}

function someControl(dice: Dice): Buffer {
  return dice.frame(dice.pick([9, 9, 10]), dice.bytes(dice.pick([0, 1, 4, 125])))
}

const CODES = [
  1000, 1001, 1003, 1007, 1011, 1014, 3000, 4404, 4999, 0, 999, 1004, 1005, 1006, 1015, 1016, 2999,
  5000,
]

function someClose(dice: Dice): Buffer {
  if (dice.chance(0.2)) return dice.frame(8)
  if (dice.chance(0.1)) return dice.frame(8, dice.bytes(dice.pick([1, 3, 50, 125])))
  const code = dice.pick(CODES)
  const reason = Buffer.from(dice.pick(['', 'bye', 'grüße']))
  return dice.frame(8, Buffer.concat([Buffer.from([code >> 8, code & 255]), reason]))
}

/** A frame that is usually invalid. */
function badFrame(dice: Dice): Buffer {
  const payload = dice.bytes(dice.pick([0, 3, 126]))
  switch (dice.below(6)) {
    case 0:
      return dice.frame(dice.below(16), payload, { rsv: dice.below(8), fin: dice.chance(0.5) })
    case 1:
      return dice.frame(dice.pick([1, 2]), payload, { mask: dice.role === 'client' })
    case 2:
      return dice.frame(2, payload, { lengthBits: dice.pick([16, 64]) })
    case 3:
      return dice.frame(2, payload, {
        lengthBits: 64,
        declared: dice.pick([2n ** 63n, 2n ** 40n, 5_001n, 65_536n]),
      })
    case 4:
      return dice.frame(dice.pick([8, 9, 10]), dice.bytes(126))
    default:
      return dice.bytes(1 + dice.below(40))
  }
}

function mutate(dice: Dice, bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes)
  if (copy.length === 0) return copy
  for (let i = 1 + dice.below(3); i > 0; i--) copy[dice.below(copy.length)] = dice.below(256)
  return dice.chance(0.3) ? copy.subarray(0, dice.below(copy.length)) : copy
}

function cut(dice: Dice, bytes: Buffer): Buffer[] {
  const largest = dice.pick([1, 3, 20, 500, 100_000])
  // Only the beginning is cut so small: each piece takes a turn of the event loop.
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const size = pieces.length > 60 ? bytes.length : 1 + dice.below(largest)
    pieces.push(bytes.subarray(at, at + size))
    at += size
  }
  return pieces
}

/** Generates the case of a seed. */
export function makeCase(seed: number, role: Role = 'server'): Case {
  const dice = new Dice(seed, role)
  const deflate = dice.chance(0.4)
  const frames: Buffer[] = []
  for (let i = dice.below(6); i > 0; i--) {
    if (dice.chance(0.2)) frames.push(someControl(dice))
    else frames.push(...someMessage(dice, deflate))
  }
  if (dice.chance(0.35)) frames.splice(dice.below(frames.length + 1), 0, badFrame(dice))
  if (dice.chance(0.8)) frames.push(someClose(dice))
  let stream: Buffer = Buffer.concat(frames)
  if (dice.chance(0.15)) stream = mutate(dice, stream)
  const request = opening(deflate ? { 'Sec-WebSocket-Extensions': 'permessage-deflate' } : {})
  const head = Buffer.from(role === 'server' ? request : '')
  const bytes = Buffer.concat([head, stream])
  return { seed, deflate, bytes, pieces: cut(dice, bytes), expected: answer(stream, deflate, role) }
}

const line = (opcode: number, payload: Uint8Array): string =>
  `${opcode}:${Buffer.from(payload).toString('hex')}`
const closing = (code: number): string => `close ${code}`

/** The expected replies to a stream, after which the peer ends (RFC 6455, sections 5 to 8). */
export function answer(stream: Buffer, deflate: boolean, role: Role = 'server'): string[] {
  const out: string[] = []
  let rest = stream
  let message: { opcode: number; compressed: boolean; parts: Buffer[] } | null = null
  for (;;) {
    const header = judgeHeader(rest, deflate, message !== null, role)
    if (typeof header === 'number') return [...out, closing(header)]
    // The rest of the stream is an incomplete header; the peer then ends its side.
    const partial = header === null
    if (partial) return [...out, 'end']
    const { fin, opcode, rsv, length, size, key } = header
    if (opcode < 8) {
      const before = opcode === 0 ? message!.parts : []
      const total = before.reduce((sum, part) => sum + part.length, 0) + length
      const compressed = opcode === 0 ? message!.compressed : rsv === 4
      // The limit is on the message; before it is inflated, it may have a little more than twice.
      const most = LIMITS.maxMessageBytes * (compressed ? 2 : 1) + (compressed ? 65_536 : 0)
      if (total > most) return [...out, closing(1009)]
      if (opcode === 0 && before.length >= LIMITS.maxFragments) return [...out, closing(1008)]
    }
    if (key === null) return [...out, 'end']
    const there = rest.subarray(size, size + length)
    const payload = Buffer.from(there.map((byte, i) => byte ^ key[i & 3]!))
    const whole = there.length === length
    if (opcode >= 8) {
      if (!whole) return [...out, 'end']
      if (opcode === 8) return [...out, judgeClose(payload)]
      if (opcode === 9) out.push(line(10, payload))
    } else {
      if (opcode !== 0) message = { opcode, compressed: rsv === 4, parts: [] }
      message!.parts.push(payload)
      const verdict = judgeMessage(message!, fin && whole)
      if (typeof verdict === 'number') return [...out, closing(verdict)]
      if (verdict === EITHER) return [...out, EITHER]
      if (!whole) return [...out, 'end']
      if (fin) {
        out.push(line(message!.opcode, verdict))
        message = null
      }
    }
    rest = rest.subarray(size + length)
  }
}

interface Header {
  readonly fin: boolean
  readonly rsv: number
  readonly opcode: number
  readonly length: number
  readonly size: number
  /** `null`: the header is complete up to its length only. */
  readonly key: Buffer | null
}

/** A close code for a broken rule, `null` if there are too few bytes to tell. */
function judgeHeader(
  bytes: Buffer,
  deflate: boolean,
  inMessage: boolean,
  role: Role,
): Header | number | null {
  if (bytes.length < 1) return null
  const first = bytes[0]!
  const [fin, rsv, opcode] = [first >= 128, (first >> 4) & 7, first & 15]
  if (rsv !== 0 && !(rsv === 4 && deflate && (opcode === 1 || opcode === 2))) return 1002
  if ((opcode > 2 && opcode < 8) || opcode > 10) return 1002
  if (opcode >= 8 && !fin) return 1002
  if (opcode === 0 && !inMessage) return 1002
  if ((opcode === 1 || opcode === 2) && inMessage) return 1002
  if (bytes.length < 2) return null
  if (bytes[1]! >= 128 !== (role === 'server')) return 1002
  let length = bytes[1]! & 127
  if (opcode >= 8 && length > 125) return 1002
  let size = 2
  if (length === 126) {
    if (bytes.length < 4) return null
    length = bytes.readUInt16BE(2)
    size = 4
    if (length < 126) return 1002
  } else if (length === 127) {
    if (bytes.length >= 3 && bytes[2]! >= 128) return 1002
    if (bytes.length < 10) return null
    const long = bytes.readBigUInt64BE(2)
    size = 10
    if (long < 65_536n) return 1002
    length = Number(long)
  }
  if (role === 'client') return { fin, rsv, opcode, length, size, key: Buffer.alloc(4) }
  const key = bytes.length < size + 4 ? null : bytes.subarray(size, size + 4)
  return { fin, rsv, opcode, length, size: size + 4, key }
}

function judgeClose(payload: Buffer): string {
  if (payload.length === 0) return 'close empty'
  if (payload.length === 1) return closing(1002)
  const code = payload.readUInt16BE(0)
  const fine =
    (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) ||
    (code >= 3000 && code <= 4999)
  if (!fine) return closing(1002)
  return closing(isUtf8(payload.subarray(2)) ? code : 1007)
}

/** Compressed data with two faults: which is found first depends on the chunks of zlib. */
export const EITHER = 'close 1007 or 1009'

/** The message so far, or the close code if it is invalid already. */
function judgeMessage(
  { opcode, compressed, parts }: { opcode: number; compressed: boolean; parts: Buffer[] },
  ended: boolean,
): Buffer | number | typeof EITHER {
  let bytes: Buffer = Buffer.concat(parts)
  if (compressed) {
    const inflated = inflate(
      ended ? Buffer.concat([bytes, Buffer.from([0, 0, 255, 255])]) : bytes,
    )
    if (inflated === null) return EITHER
    bytes = inflated
    const over = bytes.length > LIMITS.maxMessageBytes
    if (over && (opcode === 2 || couldBeUtf8(bytes))) return 1009
    if (over) return EITHER
  }
  if (opcode === 1 && !(ended ? isUtf8(bytes) : couldBeUtf8(bytes))) return 1007
  return bytes
}

function couldBeUtf8(bytes: Buffer): boolean {
  return ['', '80', '8080', '808080', 'a080', '9080', '908080'].some((tail) =>
    isUtf8(Buffer.concat([bytes, Buffer.from(tail, 'hex')])),
  )
}

/** Inflates as much as possible, beyond final blocks too; `null` if the data is corrupt. */
function inflate(bytes: Buffer): Buffer | null {
  let out: Buffer = Buffer.alloc(0)
  for (let rest = bytes; rest.length > 0; ) {
    const dictionary = out.length === 0 ? {} : { dictionary: out.subarray(-32_768) }
    try {
      const { buffer, engine } = inflateRawSync(rest, {
        finishFlush: constants.Z_SYNC_FLUSH,
        info: true,
        ...dictionary,
      }) as unknown as { buffer: Buffer; engine: { bytesWritten: number } }
      out = Buffer.concat([out, buffer])
      if (engine.bytesWritten === 0) break
      rest = rest.subarray(engine.bytesWritten)
    } catch {
      return null
    }
  }
  return out
}
