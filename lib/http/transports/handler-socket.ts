import { Duplex } from 'node:stream'

/** Takes the place of a socket under a Node response: passes what is written to `onBytes`. */
export class HandlerSocket extends Duplex {
  readonly remoteAddress: string
  readonly remotePort: number
  readonly remoteFamily: string
  readonly localAddress = '127.0.0.1'
  readonly localPort = 80
  readonly encrypted: boolean
  onBytes: (chunk: Buffer) => void = () => {}
  /** Completes the write that is held back, for a slow reader. */
  #heldWrite: (() => void) | null = null
  #holding = false

  constructor(remoteAddress: string, remotePort: number, encrypted: boolean) {
    super({ allowHalfOpen: true })
    this.remoteAddress = remoteAddress
    this.remotePort = remotePort
    this.remoteFamily = remoteAddress.includes(':') ? 'IPv6' : 'IPv4'
    this.encrypted = encrypted
  }

  holdWrites(): void {
    this.#holding = true
  }

  releaseWrites(): void {
    this.#holding = false
    const complete = this.#heldWrite
    this.#heldWrite = null
    complete?.()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: () => void): void {
    this.onBytes(chunk)
    if (this.#holding) this.#heldWrite = callback
    else callback()
  }

  override _read(): void {
    // The request's body is pushed into the IncomingMessage itself.
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    this.releaseWrites()
    callback(error)
  }

  setTimeout(): this {
    return this
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  destroySoon(): void {
    this.end()
  }

  address(): { address: string; family: string; port: number } {
    return { address: this.localAddress, family: 'IPv4', port: this.localPort }
  }
}
