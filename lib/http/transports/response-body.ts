import { StreamClosedError } from '../errors.js'
import type { AsyncByteStream } from './base.js'

/** What a body asks of the connection that feeds it. */
export interface BodySource {
  /** The consumer waits for octets: the read limit runs. */
  waiting(): void
  /** The consumer is behind: stop reading from the socket. */
  pause(): void
  /** There is room again. */
  resume(): void
  /** The consumer does not want the rest. */
  abandon(): void
}

type Next = IteratorResult<Uint8Array, undefined>

/** Octets held for a slow consumer before the socket is paused. */
const HIGH_WATER = 256 * 1024
/** Chunks up to this size are held together: each by itself would take a hundred times its octets. */
const SMALL = 1024
/** Octets of small chunks after which they are made one. */
const MERGE_AT = 4 * 1024

/** The content of a response as it arrives, with back-pressure to the connection. */
export class ResponseBody implements AsyncByteStream, AsyncIterator<Uint8Array, undefined> {
  readonly #source: BodySource
  #queue: Uint8Array[] = []
  /** Small chunks behind those of the queue. */
  #small: Uint8Array[] | null = null
  #smallOctets = 0
  #queued = 0
  #paused = false
  #state: 'open' | 'ended' | 'failed' | 'closed' = 'open'
  #error: unknown
  #waiter: { resolve: (next: Next) => void; reject: (error: unknown) => void } | null = null

  constructor(source: BodySource) {
    this.#source = source
  }

  /** Adds octets that arrived. */
  push(chunk: Uint8Array): void {
    if (this.#state !== 'open') return
    const waiter = this.#waiter
    if (waiter !== null) {
      this.#waiter = null
      waiter.resolve({ done: false, value: chunk })
      return
    }
    this.#queued += chunk.length
    if (chunk.length <= SMALL && this.#queue.length > 0) {
      ;(this.#small ??= []).push(chunk)
      this.#smallOctets += chunk.length
      if (this.#smallOctets >= MERGE_AT) this.#mergeSmall()
    } else {
      this.#mergeSmall()
      this.#queue.push(chunk)
    }
    if (this.#queued >= HIGH_WATER && !this.#paused) {
      this.#paused = true
      this.#source.pause()
    }
  }

  /** The content is complete. */
  end(): void {
    if (this.#state !== 'open') return
    this.#state = 'ended'
    this.#waiter?.resolve({ done: true, value: undefined })
    this.#waiter = null
  }

  /** The content cannot be completed; what arrived before is still delivered. */
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
      if (this.#paused && this.#queued < HIGH_WATER / 2) {
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

  /** Takes the content when all of it has arrived and none was taken; null otherwise. */
  takeWhole(): Uint8Array[] | null {
    if (this.#state !== 'ended' || this.#waiter !== null) return null
    return this.takeReady().chunks
  }

  /** Takes what is there without waiting, and whether that was all. */
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
    this.#queue.push(small.length === 1 ? small[0]! : Buffer.concat(small, this.#smallOctets))
    this.#small = null
    this.#smallOctets = 0
  }

  async return(): Promise<Next> {
    this.close()
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Gives the rest up. Someone waiting in `next()` is told so. */
  close(): void {
    const wasOpen = this.#state === 'open'
    this.#state = 'closed'
    this.#queue = []
    this.#small = null
    this.#smallOctets = 0
    this.#queued = 0
    this.#waiter?.reject(new StreamClosedError('the response was closed while it was being read'))
    this.#waiter = null
    if (wasOpen) this.#source.abandon()
  }
}
