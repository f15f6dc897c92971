import type { Socket } from 'node:net'
import { ProxyError } from '../../errors.js'

/** Reads exact parts of a proxy handshake from a socket, and puts the rest back at its end. */
export class HandshakeReader {
  readonly #socket: Socket
  readonly #peer: string
  #held: Buffer = Buffer.alloc(0)
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
    await this.#until(() => this.#held.length >= count)
    return this.#cut(count)
  }

  /** All bytes up to and including `mark`. @throws {@link ProxyError} beyond `maxBytes`. */
  async takeUntil(mark: string, maxBytes: number): Promise<Buffer> {
    await this.#until(() => {
      if (this.#held.includes(mark, 0, 'latin1')) return true
      if (this.#held.length > maxBytes)
        throw new ProxyError(`${this.#peer} answered with more than ${maxBytes} bytes`)
      return false
    })
    return this.#cut(this.#held.indexOf(mark, 0, 'latin1') + mark.length)
  }

  /** Stops reading, pauses the socket and puts unread bytes back. */
  release(): void {
    const socket = this.#socket
    socket.removeListener('data', this.#onData)
    socket.removeListener('end', this.#onEnd)
    socket.removeListener('close', this.#onEnd)
    socket.removeListener('error', this.#onError)
    socket.pause()
    if (this.#held.length > 0 && !socket.destroyed) socket.unshift(this.#held)
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#held = Buffer.concat([this.#held, chunk])
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
    const head = this.#held.subarray(0, count)
    this.#held = this.#held.subarray(count)
    return head
  }
}
