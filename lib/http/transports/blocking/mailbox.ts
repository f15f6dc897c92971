import type { WireTimings } from '../../timings.js'
import { CONTROL, type FromWorker } from './protocol.js'

/** Largest response that fits, head and content together. */
export const MAILBOX_BYTES: number = 64 * 1024

type Head = Extract<FromWorker, { t: 'head' }>

/** A head without its content, as it is written in JSON. */
type Written = readonly [
  id: number,
  statusCode: number,
  reasonPhrase: string,
  httpVersion: string,
  headers: string[],
  info: Record<string, unknown>,
  timings: WireTimings | null,
  trailers: string[],
]

/**
 * Shared memory in which the worker leaves one small, complete response. It saves cloning and
 * transferring a message, and does not wake the caller's event loop.
 *
 * 1. The worker writes only while it is empty; the caller reads only while it is full.
 * 2. The response is the last message of its exchange: messages posted before it are read first.
 */
export class Mailbox {
  readonly #control: Int32Array
  readonly #bytes: Buffer

  constructor(control: Int32Array, memory: SharedArrayBuffer) {
    this.#control = control
    this.#bytes = Buffer.from(memory)
  }

  get full(): boolean {
    return Atomics.load(this.#control, CONTROL.mail) !== 0
  }

  /** Stores a response; false when it is incomplete or too large, or the mailbox is full. */
  put(head: Head): boolean {
    if (head.end === null || this.full) return false
    const { id, statusCode, reasonPhrase, httpVersion, headers, info, timings, end, chunks } = head
    const meta: Written = [id, statusCode, reasonPhrase, httpVersion, headers, info, timings, end]
    const text = JSON.stringify(meta)
    // A character takes at most three bytes in UTF-8.
    let room = this.#bytes.length - 3 * text.length
    for (const chunk of chunks) room -= chunk.byteLength
    if (room < 0) return false
    const textLength = this.#bytes.write(text)
    let at = textLength
    for (const chunk of chunks) {
      this.#bytes.set(chunk, at)
      at += chunk.byteLength
    }
    this.#control[CONTROL.mailLength] = at
    Atomics.store(this.#control, CONTROL.mail, textLength)
    return true
  }

  /** Removes the response; null when the mailbox is empty. */
  take(): Head | null {
    const textLength = Atomics.load(this.#control, CONTROL.mail)
    if (textLength === 0) return null
    const text = this.#bytes.toString('utf8', 0, textLength)
    const shared = this.#bytes.subarray(textLength, this.#control[CONTROL.mailLength])
    // Copied before the worker may write again.
    const chunks = shared.byteLength === 0 ? [] : [new Uint8Array(shared)]
    Atomics.store(this.#control, CONTROL.mail, 0)
    const meta = JSON.parse(text) as Written
    const [id, statusCode, reasonPhrase, httpVersion, headers, info, timings, end] = meta
    const head = { id, statusCode, reasonPhrase, httpVersion, headers, info, timings, chunks, end }
    return { t: 'head', ...head }
  }
}
