import type { Socket } from 'node:net'
import { ProxyError } from '../../errors.js'
import { HeldBytes } from '../held-bytes.js'

/** Reads exact parts of a proxy handshake from a socket, and puts the rest back at its end. */
export class HandshakeReader {
  readonly #socket: Socket
  readonly #peer: string
  readonly #held = new HeldBytes()
  /** The bytes that wait to be taken. */
  #bytes: Buffer = Buffer.alloc(0)
  #error: Error | null = null
  #wake: (() => void) | null = null

  /** @param peer - Names the proxy in error messages. */
  constructor(socket: Socket, peer: string) {
    this.#socket = socket
    this.#peer = peer
    socket.on('data', this.#onData)
    socket.on('end', this.#onEnd)
    socket.on('close', this.#onEnd)
    socket.on('error', this.#onError)
  }

  /** The next `count` bytes. @throws {@link ProxyError} when the connection ends before them. */
  async take(count: number): Promise<Buffer> {
    await this.#until(() => this.#bytes.length >= count)
    return this.#cut(count)
  }

  /** All bytes up to and including `mark`. @throws {@link ProxyError} beyond `maxBytes`. */
  async takeUntil(mark: string, maxBytes: number): Promise<Buffer> {
    let at = -1
    let searched = 0
    await this.#until(() => {
      at = this.#bytes.indexOf(mark, searched, 'latin1')
      if (at !== -1) return true
      const { length } = this.#bytes
      if (length > maxBytes)
        throw new ProxyError(`${this.#peer} answered with more than ${maxBytes} bytes`)
      searched = Math.max(0, length - mark.length + 1)
      return false
    })
    return this.#cut(at + mark.length)
  }

  /** Stops reading, pauses the socket and puts unread bytes back. */
  release(): void {
    const socket = this.#socket
    socket.removeListener('data', this.#onData)
    socket.removeListener('end', this.#onEnd)
    socket.removeListener('close', this.#onEnd)
    socket.removeListener('error', this.#onError)
    socket.pause()
    if (this.#bytes.length > 0 && !socket.destroyed) socket.unshift(this.#bytes)
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#held.length === 0) this.#held.keep(this.#bytes)
    this.#bytes = this.#held.with(chunk)
    this.#held.keep(this.#bytes)
    this.#wake?.()
  }

  readonly #onEnd = (): void => {
    this.#error ??= new ProxyError(`${this.#peer} closed the connection during the handshake`)
    this.#wake?.()
  }

  readonly #onError = (cause: Error): void => {
    this.#error ??= new ProxyError(`${this.#peer} failed during the handshake: ${cause.message}`, {
      cause,
    })
    this.#wake?.()
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.#error !== null) throw this.#error
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  #cut(count: number): Buffer {
    const head = this.#bytes.subarray(0, count)
    this.#bytes = this.#bytes.subarray(count)
    this.#held.clear()
    return head
  }
}
