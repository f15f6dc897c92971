import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { listen, type Served } from './serve.js'

/** One end of a TCP connection: writes raw bytes, and waits for bytes to arrive. */
export class RawPeer implements Disposable {
  readonly socket: Socket
  /** The bytes received and not taken yet. */
  received: Buffer = Buffer.alloc(0)
  #ended = false
  #wake: (() => void) | undefined

  constructor(socket: Socket) {
    this.socket = socket
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => {
      this.received = Buffer.concat([this.received, chunk])
      this.#wake?.()
    })
    const end = (): void => {
      this.#ended = true
      this.#wake?.()
    }
    socket.on('end', end)
    socket.on('close', end)
    socket.on('error', () => {})
  }

  /** Connects to a port of the loopback interface. */
  static async connect(port: number): Promise<RawPeer> {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    await once(socket, 'connect')
    return new RawPeer(socket)
  }

  /** Writes bytes; a string is encoded as latin1, so that each character is one byte. */
  write(bytes: string | Uint8Array): void {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
  }

  /** Takes `count` bytes, waiting for them; rejects if the peer ends before. */
  async take(count: number): Promise<Buffer> {
    await this.#until(() => this.received.length >= count, `${count} bytes`)
    return this.#cut(count)
  }

  /** Takes everything up to and including `mark`. */
  async takeUntil(mark: string): Promise<string> {
    await this.#until(() => this.received.includes(mark, 0, 'latin1'), JSON.stringify(mark))
    return this.#cut(this.received.indexOf(mark, 0, 'latin1') + mark.length).toString('latin1')
  }

  /** Takes all bytes up to the end of the connection. */
  async takeAll(): Promise<Buffer> {
    await this.#until(() => this.#ended, 'the end')
    return this.#cut(this.received.length)
  }

  /** Resolves once the peer has ended or reset the connection. */
  async ended(): Promise<void> {
    await this.#until(() => this.#ended, 'the end')
  }

  /** Sends FIN. */
  end(bytes?: string): void {
    if (bytes !== undefined) this.write(bytes)
    this.socket.end()
  }

  /** Sends RST. */
  reset(): void {
    this.socket.resetAndDestroy()
  }

  [Symbol.dispose](): void {
    this.socket.destroy()
  }

  #cut(count: number): Buffer {
    const head = this.received.subarray(0, count)
    this.received = this.received.subarray(count)
    return head
  }

  async #until(condition: () => boolean, what: string): Promise<void> {
    while (!condition()) {
      if (this.#ended) throw new Error(`the peer ended before ${what}, after ${this.received}`)
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }
}

/** A server that calls `script` with each connection and its number (0, 1, 2, …). */
export function rawServer(
  script: (peer: RawPeer, index: number) => void | Promise<void>,
): Promise<Served<Server>> {
  let index = 0
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const peer = new RawPeer(socket)
    void Promise.resolve(script(peer, index++)).catch(() => socket.destroy())
  })
  return listen(server)
}
