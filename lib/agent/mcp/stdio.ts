/**
 * A server that is a child process: messages are lines of JSON on its standard input and output.
 * Other lines are skipped; the end of its error output is kept for error messages.
 *
 * @module
 */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { describeError } from '../../internal/errors.js'
import { parseJson, type JsonObject } from '../../internal/json.js'
import { uuidV7 } from '../../internal/hash.js'
import { McpError } from '../errors.js'
import { COMMAND_VARIABLE, scrubbedEnvironment } from '../executors/environment.js'
import { lifeline } from '../executors/lifeline.js'
import {
  killAll,
  markedProcesses,
  processGroup,
  signalGroup,
  waitUntilGone,
  type ProcessSet,
} from '../executors/process-tree.js'
import { TextTail } from '../output.js'
import type { ChannelListener, McpChannel } from './channel.js'

/** A server that is started as a child process. */
export interface McpProcess {
  /** The program, looked up on PATH and started without a shell. */
  readonly command: string
  /** Arguments of the program. @defaultValue none */
  readonly args?: readonly string[] | undefined
  /** The server's working directory. @defaultValue that of this process */
  readonly cwd?: string | undefined
  /**
   * Variables for the server, for example its key. Of this process's variables it gets only those
   * that commands of runs get.
   */
  readonly env?: Readonly<Record<string, string>> | undefined
}

/** Milliseconds for a server to end after its input is closed. */
const END_MS = 500
/** Milliseconds for the output of a server that has ended. */
const DRAIN_MS = 500
/** Milliseconds for a server to end after SIGTERM. */
const TERM_MS = 1_500
/** Characters kept of the error output. */
const STDERR_CHARACTERS = 2_000

/** Starts the process and returns its channel. @throws McpError when it cannot be started. */
export async function openStdioChannel(
  server: string,
  launch: McpProcess,
  maxMessageBytes: number,
  listener: ChannelListener,
): Promise<McpChannel> {
  const mark = uuidV7(Date.now())
  const added = { ...launch.env, [COMMAND_VARIABLE]: mark }
  const env = { ...scrubbedEnvironment(process.env, [], added), NODE_V8_COVERAGE: undefined }
  let child: ChildProcessWithoutNullStreams
  try {
    await lifeline.open()
    child = spawn(launch.command, [...(launch.args ?? [])], {
      cwd: launch.cwd,
      env,
      detached: true,
      stdio: 'pipe',
    })
    await Promise.race([
      once(child, 'spawn'),
      once(child, 'error').then(([error]) => Promise.reject(error as Error)),
    ])
  } catch (error) {
    const message = describeError(error)
    throw new McpError(server, 'unreachable', `it could not be started: ${message}`, {
      cause: error,
    })
  }
  return new StdioChannel(server, child, mark, maxMessageBytes, listener)
}

class StdioChannel implements McpChannel {
  readonly #server: string
  readonly #child: ChildProcessWithoutNullStreams
  readonly #sets: readonly ProcessSet[]
  readonly #held: Disposable
  readonly #maxMessageBytes: number
  readonly #listener: ChannelListener
  readonly #exited: Promise<void>
  #parts: Buffer[] = []
  #size = 0
  readonly #stderr = new TextTail(STDERR_CHARACTERS)
  #gone = false
  #closing: Promise<void> | undefined

  constructor(
    server: string,
    child: ChildProcessWithoutNullStreams,
    mark: string,
    maxMessageBytes: number,
    listener: ChannelListener,
  ) {
    this.#server = server
    this.#child = child
    this.#maxMessageBytes = maxMessageBytes
    this.#listener = listener
    this.#sets = [processGroup(child.pid ?? 0), markedProcesses(COMMAND_VARIABLE, mark)]
    this.#held = lifeline.hold(child.pid ?? 0, mark)
    this.#exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        resolve()
        const lost = (): void => this.#lost(`it ended with ${signal ?? `exit code ${code}`}`)
        // Its last answer may not be read yet; what it has started may hold its output open.
        child.stdout.once('end', lost)
        setTimeout(lost, DRAIN_MS).unref()
        if (child.stdout.readableEnded) lost()
      })
    })
    child.on('error', () => undefined) // reported by exit, or by the failed write
    child.stdin.on('error', () => undefined)
    child.stdout.on('data', (chunk: Buffer) => this.#read(chunk))
    child.stdout.on('error', () => undefined)
    child.stderr.on('error', () => undefined)
    child.stderr.setEncoding('utf8')
    child.stderr.on('data', (text: string) => this.#stderr.add(text))
  }

  send(message: JsonObject): Promise<void> {
    const { stdin } = this.#child
    if (this.#gone) return Promise.reject(this.#error('it has ended'))
    if (stdin.writableLength > this.#maxMessageBytes) {
      return Promise.reject(this.#error('it does not read what it is sent'))
    }
    stdin.write(`${JSON.stringify(message)}\n`)
    return Promise.resolve()
  }

  ready(): void {
    // Over pipes, messages do not name the version.
  }

  close(): Promise<void> {
    this.#closing ??= this.#end()
    return this.#closing
  }

  /** Closes the server's input, then sends SIGTERM, then kills everything that it started. */
  async #end(): Promise<void> {
    this.#gone = true
    const { stdin, stdout, stderr, pid } = this.#child
    stdin.end()
    if (!(await waitUntilGone(this.#sets, END_MS))) {
      if (pid !== undefined) signalGroup(pid, 'SIGTERM')
      if (!(await waitUntilGone(this.#sets, TERM_MS))) await killAll(this.#sets)
    }
    await this.#exited
    this.#held[Symbol.dispose]()
    for (const stream of [stdin, stdout, stderr]) stream.destroy()
  }

  #read(chunk: Buffer): void {
    if (this.#gone) return
    let from = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      this.#parts.push(chunk.subarray(from, end))
      from = end + 1
      this.#line(Buffer.concat(this.#parts))
      this.#parts = []
      this.#size = 0
    }
    if (from < chunk.length) this.#parts.push(chunk.subarray(from))
    this.#size += chunk.length - from
    if (this.#size > this.#maxMessageBytes)
      this.#lost(`it sent a message of more than ${this.#maxMessageBytes} bytes`)
  }

  #line(line: Buffer): void {
    if (line.length > this.#maxMessageBytes) {
      this.#lost(`it sent a message of more than ${this.#maxMessageBytes} bytes`)
      return
    }
    const value = parseJson(line.toString())
    if (value !== undefined && !this.#gone) this.#listener.onMessage(value)
  }

  #lost(why: string): void {
    if (this.#gone) return
    const error = this.#error(why)
    this.#gone = true
    this.#parts = []
    this.#listener.onClose(error)
    void this.close()
  }

  #error(why: string): McpError {
    const output = this.#stderr.shown.trim()
    const message = output === '' ? why : `${why}; it last said: ${output}`
    return new McpError(this.#server, 'lost', message)
  }
}
