import { execFile } from 'node:child_process'
import { closeSync, constants, open as openFile, readSync } from 'node:fs'
import { rmdir, unlink } from 'node:fs/promises'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { makeTemporaryFolder } from '../../internal/processes.js'
import { ExhaustedError } from '../errors.js'
import { inOwnPlace } from '../exhaustion.js'
import { type KeptOutput, OutputKeeper } from '../output.js'
import { findProgram } from './environment.js'

/** Bytes still read after a command's end, when a grandchild may go on writing. */
const MAX_DRAIN_BYTES = 1024 * 1024

/**
 * A pipe for a command's output. Node would give its child two sockets: they cannot be opened again
 * by name (`echo > /dev/stderr` fails), and the order of standard output and standard error would
 * be lost. A FIFO, unlinked once it is open, is one real pipe for both.
 */
export class OutputPipe {
  /** For the child's standard output and standard error; closed here once the child has it. */
  readonly writeEnd: number
  readonly #readEnd: number
  readonly #reader: PipeReader
  readonly #keeper: OutputKeeper
  #writeEndOpen = true

  private constructor(readEnd: number, writeEnd: number, maxBytes: number) {
    this.#readEnd = readEnd
    this.writeEnd = writeEnd
    this.#keeper = new OutputKeeper(maxBytes)
    this.#reader = readPipe(readEnd, (chunk) => this.#keeper.add(chunk))
  }

  /**
   * Creates the pipe, with the program `mkfifo`.
   *
   * @throws {@link ExhaustedError} when the folder for temporary files cannot be used now.
   */
  static async open(maxBytes: number): Promise<OutputPipe> {
    const mkfifo = findProgram('mkfifo')
    return await inOwnPlace('no pipe can be made', () => OutputPipe.#open(mkfifo, maxBytes))
  }

  static async #open(mkfifo: string, maxBytes: number): Promise<OutputPipe> {
    const folder = await makeTemporaryFolder('command')
    const path = join(folder, 'output')
    try {
      await promisify(execFile)(mkfifo, ['-m', '600', path]).catch((error: unknown) => {
        throw whyNoPipe(error)
      })
      // Opened first, without blocking, the reader keeps the writer from blocking.
      const reader = await openDescriptor(path, constants.O_RDONLY | constants.O_NONBLOCK)
      const writer = await openDescriptor(path, constants.O_WRONLY).catch((error: unknown) => {
        closeSync(reader)
        throw error
      })
      return new OutputPipe(reader, writer, maxBytes)
    } finally {
      // Unlike `rm`, these work when no descriptor is left.
      await unlink(path).catch(() => undefined)
      await rmdir(folder).catch(() => undefined)
    }
  }

  /** Closes our end for writing: from now on only the command's processes hold it. */
  closeWriteEnd(): void {
    if (this.#writeEndOpen) closeSync(this.writeEnd)
    this.#writeEndOpen = false
  }

  /**
   * Takes what is in the pipe now, without waiting for processes that still hold it, and closes it.
   * A process that writes afterwards gets SIGPIPE.
   */
  finish(): KeptOutput {
    this.closeWriteEnd()
    if (!this.#reader.closed)
      readNow(this.#readEnd, MAX_DRAIN_BYTES, (chunk) => this.#keeper.add(chunk))
    this.#reader.close()
    return this.#keeper.finish()
  }
}

/** A program tells the fault of the system in its own words, and ends with a code. */
function whyNoPipe(error: unknown): unknown {
  const { code, stderr = '' } = error as { readonly code?: unknown; readonly stderr?: string }
  return typeof code === 'number' ? new ExhaustedError(stderr.trim(), { cause: error }) : error
}

/** A bare descriptor: a FileHandle would close it when it is garbage-collected. */
async function openDescriptor(path: string, flags: number): Promise<number> {
  return await promisify(openFile)(path, flags)
}

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
function readPipe(descriptor: number, onChunk: OnChunk): PipeReader {
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
function readNow(
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
      // EAGAIN: the pipe is empty but still open elsewhere. Any other error ends the output.
      return { bytes, ended: (error as NodeJS.ErrnoException).code !== 'EAGAIN' }
    }
    if (length === 0) return { bytes, ended: true }
    onChunk(buffer.subarray(0, length))
    bytes += length
  }
  return { bytes, ended: false }
}
