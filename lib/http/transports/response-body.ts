import { StreamClosedError } from '../errors.js'
import type { AsyncByteStream } from './base.js'

/** The connection that feeds a {@link ResponseBody}. */
export interface BodySource {
  /** The reader waits for content: starts the read timeout. */
  waiting(): void
  /** The reader is too slow: stop receiving. */
  pause(): void
  /** The reader has caught up: receive again. */
  resume(): void
  /** The reader closed the body before its end. */
  abandon(): void
}

type Next = IteratorResult<Uint8Array, undefined>

/** Bytes queued for a slow reader before the source is paused. */
const HIGH_WATER_BYTES = 256 * 1024
/** Chunks up to this size are merged: a view of one byte takes a hundred times as much memory. */
const SMALL_CHUNK_BYTES = 1024
/** Bytes of small chunks that make one merged chunk. */
const MERGE_AT_BYTES = 4 * 1024

/** The content of a response as it arrives, with backpressure on the connection. */
export class ResponseBody implements AsyncByteStream, AsyncIterator<Uint8Array, undefined> {
  readonly #source: BodySource
  #queue: Uint8Array[] = []
  /** Small chunks that follow those of the queue. */
  #small: Uint8Array[] | null = null
  #smallBytes = 0
  #queued = 0
  #paused = false
  #state: 'open' | 'ended' | 'failed' | 'closed' = 'open'
  #error: unknown
  #waiter: { resolve: (next: Next) => void; reject: (error: unknown) => void } | null = null

  constructor(source: BodySource) {
    this.#source = source
  }

  /** Takes ownership of `chunk`. */
  push(chunk: Uint8Array): void {
    if (this.#state !== 'open') return
    const waiter = this.#waiter
    if (waiter !== null) {
      this.#waiter = null
      waiter.resolve({ done: false, value: chunk })
      return
    }
    this.#queued += chunk.length
    if (chunk.length <= SMALL_CHUNK_BYTES && this.#queue.length > 0) {
      ;(this.#small ??= []).push(chunk)
      this.#smallBytes += chunk.length
      if (this.#smallBytes >= MERGE_AT_BYTES) this.#mergeSmall()
    } else {
      this.#mergeSmall()
      this.#queue.push(chunk)
    }
    if (this.#queued >= HIGH_WATER_BYTES && !this.#paused) {
      this.#paused = true
      this.#source.pause()
    }
  }

  end(): void {
    if (this.#state !== 'open') return
    this.#state = 'ended'
    this.#waiter?.resolve({ done: true, value: undefined })
    this.#waiter = null
  }

  /** Ends the content with `error`, after the chunks that have already arrived. */
  fail(error: unknown): void {
    if (this.#state !== 'open') return
    this.#state = 'failed'
    this.#error = error
    this.#waiter?.reject(error)
    this.#waiter = null
  }

  next(): Promise<Next> {
    if (this.#queue.length === 0) this.#mergeSmall()
    const chunk = this.#queue.shift()
    if (chunk !== undefined) {
      this.#queued -= chunk.length
      if (this.#paused && this.#queued < HIGH_WATER_BYTES / 2) {
        this.#paused = false
        this.#source.resume()
      }
      return Promise.resolve({ done: false, value: chunk })
    }
    if (this.#state === 'open') {
      return new Promise((resolve, reject) => {
        this.#waiter = { resolve, reject }
        this.#source.waiting()
      })
    }
    if (this.#state === 'failed') return Promise.reject(this.#error)
    return Promise.resolve({ done: true, value: undefined })
  }

  /** Takes the rest of the content if it has arrived completely; null otherwise. */
  takeWhole(): Uint8Array[] | null {
    if (this.#state !== 'ended' || this.#waiter !== null) return null
    return this.takeReady().chunks
  }

  /** Takes what has arrived, without waiting. `ended`: nothing follows. */
  takeReady(): { readonly chunks: Uint8Array[]; readonly ended: boolean } {
    this.#mergeSmall()
    const chunks = this.#queue
    this.#queue = []
    this.#queued = 0
    if (this.#paused) {
      this.#paused = false
      this.#source.resume()
    }
    return { chunks, ended: this.#state === 'ended' }
  }

  #mergeSmall(): void {
    const small = this.#small
    if (small === null) return
    this.#queue.push(small.length === 1 ? small[0]! : Buffer.concat(small, this.#smallBytes))
    this.#small = null
    this.#smallBytes = 0
  }

  async return(): Promise<Next> {
    this.close()
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Discards the rest and rejects a pending `next()`. */
  close(): void {
    const wasOpen = this.#state === 'open'
    this.#state = 'closed'
    this.#queue = []
    this.#small = null
    this.#smallBytes = 0
    this.#queued = 0
    this.#waiter?.reject(new StreamClosedError('the response was closed while it was being read'))
    this.#waiter = null
    if (wasOpen) this.#source.abandon()
  }
}
