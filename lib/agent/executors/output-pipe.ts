import { execFile } from 'node:child_process'
import { closeSync, constants, open as openFile } from 'node:fs'
import { rmdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { makeTemporaryFolder } from '../../internal/temporary-folders.js'
import { ExhaustedError } from '../errors.js'
import { inOwnPlace } from '../exhaustion.js'
import { OutputKeeper, type KeptOutput } from '../output.js'
import { findProgram } from './environment.js'
import { readNow, readPipe, type PipeReader } from './pipe-reader.js'

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
