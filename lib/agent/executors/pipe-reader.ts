import { closeSync, readSync } from 'node:fs'
import { Socket } from 'node:net'

/** Pause after a pipe was found empty, in ms: it doubles until there is output again. */
const PAUSE_MS = { least: 1, most: 32 } as const
/** Bytes that are read before other work gets a turn. */
const TURN_BYTES = 1024 * 1024

type OnChunk = (chunk: Buffer) => void

/** Reads a pipe, opened without blocking, until its writers have closed it or it is closed here. */
export interface PipeReader {
  /** True once the descriptor is closed, after the last chunk. */
  readonly closed: boolean
  /** Closes the descriptor. Calling it twice is harmless. */
  close(): void
}

/** False once this runtime has refused to: Bun and Deno wait for sockets, but not for pipes. */
let mayWait = true

/** A chunk is the caller's only during the call. */
export function readPipe(descriptor: number, onChunk: OnChunk): PipeReader {
  const socket = mayWait ? socketOn(descriptor) : null
  if (socket !== null) return readSocket(socket, onChunk)
  // Not asked again: what Deno makes before it refuses is never freed.
  mayWait = false
  return new PolledPipe(descriptor, onChunk)
}

/** A socket that reads a pipe as the system tells of output, or null where there is none. */
function socketOn(descriptor: number): Socket | null {
  try {
    const socket = new Socket({ fd: descriptor, readable: true, writable: false })
    return socket.pending ? null : socket
  } catch {
    return null
  }
}

function readSocket(socket: Socket, onChunk: OnChunk): PipeReader {
  socket.on('data', onChunk)
  // A broken pipe has no more output.
  socket.on('error', () => undefined)
  return {
    get closed(): boolean {
      return socket.destroyed
    },
    close: () => void socket.destroy(),
  }
}

/** Looks again and again whether there is something. */
export class PolledPipe implements PipeReader {
  closed = false
  readonly #descriptor: number
  readonly #onChunk: OnChunk
  #pauseMs: number = PAUSE_MS.least
  #timer: NodeJS.Timeout | undefined

  constructor(descriptor: number, onChunk: OnChunk) {
    this.#descriptor = descriptor
    this.#onChunk = onChunk
    this.#wait()
  }

  close(): void {
    if (this.closed) return
    this.closed = true
    clearTimeout(this.#timer)
    closeSync(this.#descriptor)
  }

  #wait(): void {
    this.#timer = setTimeout(() => this.#look(), this.#pauseMs)
  }

  #look(): void {
    const { bytes, ended } = readNow(this.#descriptor, TURN_BYTES, this.#onChunk)
    if (ended) return this.close()
    this.#pauseMs = bytes > 0 ? PAUSE_MS.least : Math.min(2 * this.#pauseMs, PAUSE_MS.most)
    this.#wait()
  }
}

/** Takes what is in the pipe now, without waiting for processes that may still write to it. */
export function readNow(
  descriptor: number,
  maxBytes: number,
  onChunk: OnChunk,
): { readonly bytes: number; readonly ended: boolean } {
  const buffer = Buffer.allocUnsafe(64 * 1024)
  let bytes = 0
  while (bytes < maxBytes) {
    let length: number
    try {
      length = readSync(descriptor, buffer)
    } catch (error) {
      // Empty, but somebody still holds it. After any other error there is no more output.
      return { bytes, ended: (error as NodeJS.ErrnoException).code !== 'EAGAIN' }
    }
    if (length === 0) return { bytes, ended: true }
    onChunk(buffer.subarray(0, length))
    bytes += length
  }
  return { bytes, ended: false }
}
