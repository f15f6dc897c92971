import type { InflateRaw } from 'node:zlib'
import {
  InvalidPayloadError,
  MessageTooBigError,
  PolicyError,
  type WebSocketError,
} from './errors.js'

/** Called with the output of one piece of input, and with why the message is refused, if it is. */
export type Inflated = (chunks: readonly Buffer[], fault: WebSocketError | null) => void

/** The bytes that a sender removes from the end of each message (RFC 7692, section 7.2.1). */
const TAIL = Buffer.from([0x00, 0x00, 0xff, 0xff])
/** The largest LZ77 window, 2^15 bytes (RFC 7692, section 7.1.2). */
const WINDOW_BYTES = 32_768
/** More than any real sender puts into one message; each costs a new zlib engine. */
const MAX_FINAL_BLOCKS = 64
const EMPTY = Buffer.alloc(0)

/**
 * Inflates the messages of one connection, piece by piece (RFC 7692, section 7.2.2).
 *
 * 1. A zlib engine lives from the first byte of a message to its end, so an idle connection has
 *    none. With context takeover, the last 32 KiB of output are the next engine's dictionary.
 * 2. One piece at a time; its callback is called later, exactly once, unless `destroy()` is called.
 * 3. A block marked final ends zlib's stream but not the message: a new engine with the same window
 *    continues (section 7.2.3.4).
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

  /** `limit` is the most bytes of one message; `keepContext` is for context takeover. */
  constructor(limit: number, keepContext: boolean) {
    this.#limit = limit
    this.#keepContext = keepContext
  }

  /** Inflates the next piece of the present message. */
  push(bytes: Buffer, done: Inflated): void {
    this.#done = done
    this.#write(bytes)
  }

  /** Inflates the rest of the present message and ends it. */
  finish(done: Inflated): void {
    this.push(TAIL, (chunks, fault) => {
      this.#endMessage()
      done(chunks, fault)
    })
  }

  /** Frees the engine; a pending callback is never called. */
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

  #write(bytes: Buffer): void {
    this.#input = bytes
    const engine = (this.#engine ??= this.#open())
    this.#consumedBefore = engine.bytesWritten
    engine.write(bytes, () => {
      if (engine === this.#engine) this.#settle(null)
    })
  }

  #open(): InflateRaw {
    const options = this.#window.length > 0 ? { dictionary: this.#window } : {}
    const engine = process.getBuiltinModule('node:zlib').createInflateRaw(options)
    engine.on('data', (chunk: Buffer) => {
      if (engine === this.#engine) this.#take(chunk)
    })
    engine.on('end', () => {
      if (engine === this.#engine) this.#continueAfterFinalBlock(engine)
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
      this.#settle(new MessageTooBigError(`a message has at most ${this.#limit} bytes`))
      return
    }
    this.#chunks.push(chunk)
    this.#window = slide(this.#window, chunk)
  }

  #continueAfterFinalBlock(engine: InflateRaw): void {
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

/** The last 32 KiB of `window` followed by `bytes`. */
export function slide(window: Buffer, bytes: Uint8Array): Buffer {
  if (bytes.length >= WINDOW_BYTES) return Buffer.from(bytes.subarray(-WINDOW_BYTES))
  const kept = window.subarray(-(WINDOW_BYTES - bytes.length) || window.length)
  return Buffer.concat([kept, bytes])
}
