import type { Socket } from 'node:net'

/** Gathers the frames of one turn of the event loop, so that they leave in one write. */
export class FrameWriter {
  readonly #socket: Socket
  /** Frames to be written, one character for each octet. */
  #text = ''
  #corked = false
  #scheduled = false

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /** Octets that the peer has not taken yet. */
  get backlog(): number {
    return this.#socket.writableLength + this.#text.length
  }

  /** Adds frames, one character for each octet. */
  write(frames: string): void {
    this.#text += frames
    if (this.#scheduled) return
    this.#scheduled = true
    process.nextTick(() => this.flush())
  }

  /** Adds a frame whose payload is passed on without a copy. */
  writeContent(head: string, payload: Uint8Array): void {
    this.write(head)
    if (!this.#corked) {
      this.#corked = true
      this.#socket.cork()
    }
    this.#writeText()
    this.#socket.write(payload)
  }

  /** Writes what is there now. */
  flush(): void {
    this.#scheduled = false
    if (this.#text !== '' && this.#socket.writable) this.#writeText()
    this.#text = ''
    if (!this.#corked) return
    this.#corked = false
    this.#socket.uncork()
  }

  #writeText(): void {
    this.#socket.write(this.#text, 'latin1')
    this.#text = ''
  }
}
