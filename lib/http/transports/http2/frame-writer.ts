import type { Socket } from 'node:net'
import { CODE, Http2Fault } from './frames.js'

/** Bytes of replies that a server may leave unread before the connection is closed. */
const MAX_BACKLOG_BYTES = 1024 * 1024

/** Collects the frames of one turn of the event loop and sends them in one write. */
export class FrameWriter {
  readonly #socket: Socket
  /** Frames to be written, one byte per character. */
  #text = ''
  #corked = false
  #scheduled = false

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /** Adds frames, one byte per character. */
  write(frames: string): void {
    this.#text += frames
    if (this.#scheduled) return
    this.#scheduled = true
    process.nextTick(() => this.flush())
  }

  /**
   * Adds frames that the server asked for.
   *
   * @throws {@link Http2Fault} when it keeps asking and reads nothing.
   */
  reply(frames: string): void {
    if (this.#socket.writableLength + this.#text.length > MAX_BACKLOG_BYTES) {
      throw new Http2Fault(
        CODE.enhanceYourCalm,
        'the server keeps sending PING or SETTINGS without reading the replies',
      )
    }
    this.write(frames)
  }

  /** Adds a frame whose payload is written without a copy. */
  writeContent(head: string, payload: Uint8Array): void {
    this.write(head)
    if (!this.#corked) {
      this.#corked = true
      this.#socket.cork()
    }
    this.#writeText()
    this.#socket.write(payload)
  }

  /** Writes everything now, not at the end of the turn. */
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
