import type { WireTimings } from '../../timings.js'
import { CONTROL, type FromWorker } from './protocol.js'

/** Octets of a whole answer that fit, head and content. */
export const MAILBOX_BYTES: number = 64 * 1024

type Head = Extract<FromWorker, { t: 'head' }>

/** All of a head but its content, as it is written. */
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
 * Shared memory in which the worker leaves one small answer that came whole, so that nothing is
 * cloned or handed over and the caller's event loop is not woken for it.
 *
 * 1. The worker writes only while it is empty, the caller reads only while it is full.
 * 2. Such an answer is the last message of its exchange: what was posted before it is read first.
 */
export class Mailbox {
  readonly #control: Int32Array
  readonly #octets: Buffer

  constructor(control: Int32Array, memory: SharedArrayBuffer) {
    this.#control = control
    this.#octets = Buffer.from(memory)
  }

  /** Whether an answer is waiting. */
  get full(): boolean {
    return Atomics.load(this.#control, CONTROL.mail) !== 0
  }

  /** Leaves an answer; false when it does not fit, is not whole, or the last is not read yet. */
  put(head: Head): boolean {
    if (head.end === null || this.full) return false
    const { id, statusCode, reasonPhrase, httpVersion, headers, info, timings, end, chunks } = head
    const written: Written = [
      id,
      statusCode,
      reasonPhrase,
      httpVersion,
      headers,
      info,
      timings,
      end,
    ]
    const text = JSON.stringify(written)
    let room = this.#octets.length - 3 * text.length
    for (const chunk of chunks) room -= chunk.byteLength
    if (room < 0) return false
    const textLength = this.#octets.write(text)
    let at = textLength
    for (const chunk of chunks) {
      this.#octets.set(chunk, at)
      at += chunk.byteLength
    }
    this.#control[CONTROL.mailLength] = at
    Atomics.store(this.#control, CONTROL.mail, textLength)
    return true
  }

  /** Takes the answer out; null when there is none. */
  take(): Head | null {
    const textLength = Atomics.load(this.#control, CONTROL.mail)
    if (textLength === 0) return null
    const text = this.#octets.toString('utf8', 0, textLength)
    // A copy in memory that is not shared.
    const content = new Uint8Array(
      this.#octets.subarray(textLength, this.#control[CONTROL.mailLength]),
    )
    Atomics.store(this.#control, CONTROL.mail, 0)
    const [id, statusCode, reasonPhrase, httpVersion, headers, info, timings, end] = JSON.parse(
      text,
    ) as Written
    const chunks = content.byteLength === 0 ? [] : [content]
    return {
      t: 'head',
      id,
      statusCode,
      reasonPhrase,
      httpVersion,
      headers,
      info,
      timings,
      chunks,
      end,
    }
  }
}
