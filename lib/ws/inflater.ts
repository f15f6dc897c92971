import { createInflateRaw, type InflateRaw } from 'node:zlib'
import {
  InvalidPayloadError,
  MessageTooBigError,
  PolicyError,
  type WebSocketError,
} from './errors.js'

/** What inflating a piece gave: the octets so far, or why the message is refused. */
export type Inflated = (chunks: readonly Buffer[], fault: WebSocketError | null) => void

/** What a sender cut off the end of each message (RFC 7692, section 7.2.1). */
const TAIL = Buffer.from([0x00, 0x00, 0xff, 0xff])
/** The largest LZ77 window. */
const WINDOW_BYTES = 32_768
/** More final blocks in one message than any sender has a use for; each costs an engine. */
const MAX_FINAL_BLOCKS = 64
const EMPTY = Buffer.alloc(0)

/**
 * Inflates the messages of one connection, piece by piece (RFC 7692, section 7.2.2).
 *
 * 1. An engine of zlib lives from the first octet of a message to its end, never longer: a
 *    connection at rest holds none. Context that is carried over is the last 32 KiB of output,
 *    given to the next engine as its dictionary.
 * 2. One piece at a time, and its callback comes later, exactly once, unless `destroy()` comes first.
 * 3. A block marked final ends zlib's stream but not the message: what follows goes to a new engine
 *    with the same window (section 7.2.3.4).
 */
export class Inflater {
  readonly #limit: number
  readonly #keepContext: boolean
  #window: Buffer = EMPTY
  #engine: InflateRaw | null = null
  #input: Buffer = EMPTY
  #consumedBefore = 0
  #chunks: Buffer[] = []
  #produced = 0
  #finalBlocks = 0
  #done: Inflated | null = null

  /** `limit` is the most octets of one message; `keepContext` carries the window over. */
  constructor(limit: number, keepContext: boolean) {
    this.#limit = limit
    this.#keepContext = keepContext
  }

  /** Inflates the next piece of the message at hand. */
  push(octets: Buffer, done: Inflated): void {
    this.#done = done
    this.#write(octets)
  }

  /** Inflates what is left of the message at hand and ends it. */
  finish(done: Inflated): void {
    this.push(TAIL, (chunks, fault) => {
      this.#endMessage()
      done(chunks, fault)
    })
  }

  /** Frees the engine; a callback that is still owed never comes. */
  destroy(): void {
    this.#done = null
    this.#endMessage()
    this.#window = EMPTY
  }

  #endMessage(): void {
    this.#closeEngine()
    if (!this.#keepContext) this.#window = EMPTY
    this.#produced = 0
    this.#finalBlocks = 0
    this.#chunks = []
  }

  #closeEngine(): void {
    this.#engine?.close()
    this.#engine = null
  }

  #write(octets: Buffer): void {
    this.#input = octets
    const engine = (this.#engine ??= this.#open())
    this.#consumedBefore = engine.bytesWritten
    engine.write(octets, () => {
      if (engine === this.#engine) this.#settle(null)
    })
  }

  #open(): InflateRaw {
    const options = this.#window.length > 0 ? { dictionary: this.#window } : {}
    const engine = createInflateRaw(options)
    engine.on('data', (chunk: Buffer) => {
      if (engine === this.#engine) this.#take(chunk)
    })
    engine.on('end', () => {
      if (engine === this.#engine) this.#goOnBehindFinalBlock(engine)
    })
    engine.on('error', () => {
      if (engine !== this.#engine) return
      this.#settle(new InvalidPayloadError('a compressed message cannot be inflated'))
    })
    return engine
  }

  #take(chunk: Buffer): void {
    this.#produced += chunk.length
    if (this.#produced > this.#limit) {
      this.#settle(new MessageTooBigError(`a message has at most ${this.#limit} octets`))
      return
    }
    this.#chunks.push(chunk)
    this.#window = slide(this.#window, chunk)
  }

  #goOnBehindFinalBlock(engine: InflateRaw): void {
    const rest = this.#input.subarray(engine.bytesWritten - this.#consumedBefore)
    this.#closeEngine()
    if (++this.#finalBlocks > MAX_FINAL_BLOCKS) {
      this.#settle(new PolicyError(`a message has at most ${MAX_FINAL_BLOCKS} final blocks`))
    } else this.#write(rest)
  }

  #settle(fault: WebSocketError | null): void {
    const [done, chunks] = [this.#done, this.#chunks]
    this.#done = null
    this.#chunks = []
    if (fault !== null) this.#closeEngine()
    done?.(chunks, fault)
  }
}

/** The last 32 KiB of everything seen, `octets` included. */
export function slide(window: Buffer, octets: Uint8Array): Buffer {
  if (octets.length >= WINDOW_BYTES) return Buffer.from(octets.subarray(-WINDOW_BYTES))
  const kept = window.subarray(-(WINDOW_BYTES - octets.length) || window.length)
  return Buffer.concat([kept, octets])
}
