import { CODE, Http2Fault, MAX_WINDOW, windowTooLarge } from './frames.js'

/** Bytes that the server may send on one stream; small windows slow large content down. */
export const STREAM_WINDOW: number = 4 * 1024 * 1024
export const EMPTY_WINDOW_UPDATE = 'the server sent a WINDOW_UPDATE of 0'
/** Bytes that the server may send on all streams together. */
export const CONNECTION_WINDOW: number = 64 * 1024 * 1024

/** What the peer may still send, on a connection or on one stream (RFC 9113, section 5.2). */
export class ReceiveWindow {
  readonly #size: number
  #left: number
  #consumed = 0

  constructor(size: number) {
    this.#size = size
    this.#left = size
  }

  /** What the peer may send at present. */
  get left(): number {
    return this.#left
  }

  /** Counts bytes that arrived. @throws {@link Http2Fault} when the peer exceeds the window. */
  receive(bytes: number): void {
    this.#left -= bytes
    if (this.#left < 0) {
      throw new Http2Fault(
        CODE.flowControlError,
        'the server sent more than its flow-control window allows',
      )
    }
  }

  /**
   * Counts bytes that the reader took, and returns by how much to widen the peer's window: 0 until
   * half of it was consumed, which saves WINDOW_UPDATE frames.
   */
  consume(bytes: number): number {
    this.#consumed += bytes
    if (this.#consumed < this.#size / 2) return 0
    const increment = this.#consumed
    this.#left += increment
    this.#consumed = 0
    return increment
  }
}

/** A send window after a change. @throws {@link Http2Fault} beyond the largest that is allowed. */
export function widened(window: number, change: number): number {
  if (window + change > MAX_WINDOW) throw windowTooLarge()
  return window + change
}
