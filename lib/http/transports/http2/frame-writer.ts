import type { Socket } from 'node:net'
import { outliveWriteFailures } from '../write-failures.js'
import { CODE, Http2Fault } from './frames.js'

/** Bytes of replies that a server may leave unread before the connection is closed. */
const MAX_BACKLOG_BYTES = 1024 * 1024

/** Collects the frames of one turn of the event loop and sends them in one write. */
export class FrameWriter {
  /** Why nothing more can be sent; null while writes succeed. */
  failure: NodeJS.ErrnoException | null = null
  readonly #socket: Socket
  /** Frames to be written, one byte per character. */
  #text = ''
  #corked = false
  #scheduled = false

  /** @param onFailure - Called when the peer has closed the connection; it may have answered. */
  constructor(socket: Socket, onFailure: () => void) {
    this.#socket = socket
    outliveWriteFailures(socket, (error) => {
      this.failure = error
      onFailure()
    })
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

  /** Closes the socket, once what was written has left; after a failure nothing ever does. */
  close(): void {
    if (this.failure === null) this.#socket.destroySoon()
    else this.#socket.destroy()
  }

  #writeText(): void {
    this.#socket.write(this.#text, 'latin1')
    this.#text = ''
  }
}
