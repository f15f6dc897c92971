/**
 * One session with a server: handshake, requests and their answers, cancellation and progress. Of
 * the server's own requests only `ping` is answered: no sampling, roots or elicitation.
 *
 * @module
 */
import { abortListeners, type Clock, steadyNow, type Timer } from '../../internal/time.js'
import { isJsonObject, type JsonObject, type JsonValue } from '../../internal/json.js'
import { McpError } from '../errors.js'
import { clip } from '../output.js'
import type { ChannelListener, McpChannel } from './channel.js'
import {
  readMessages,
  rpcMethodNotFound,
  rpcNotification,
  rpcRequest,
  rpcResult,
  type RpcMessage,
} from './json-rpc.js'

/** Supported versions of the protocol, newest first. */
const PROTOCOL_VERSIONS: readonly string[] = [
  '2025-11-25',
  '2025-06-18',
  '2025-03-26',
  '2024-11-05',
]

/** Requests under way, beyond which further ones are refused. */
const MAX_PENDING = 256
/** Progress extends a request's deadline to at most this many timeouts in total. */
const MAX_EXTENSION = 10

export interface SessionOptions {
  /** Name of the server in error messages. */
  readonly server: string
  readonly clock: Clock
  /** Milliseconds for requests that set no timeout of their own. */
  readonly timeoutMs: number
  /** Called when the server announces that its tools have changed. */
  readonly onToolsChanged: () => void
  /** Called when the connection is lost, but not after `close()`. */
  readonly onClose: (error: McpError) => void
  readonly connect: (listener: ChannelListener) => Promise<McpChannel>
}

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined
  /** Milliseconds without an answer or progress. @defaultValue that of the session */
  readonly timeoutMs?: number | undefined
}

interface Pending {
  readonly resolve: (result: JsonObject) => void
  readonly reject: (error: unknown) => void
  /** Called on each progress notification: restarts the timeout. */
  readonly progress: () => void
  /** Stops the clock of the request until the work is done. */
  readonly hold: (work: Promise<unknown>) => void
}

export class McpSession {
  readonly #options: SessionOptions
  readonly #pending = new Map<number, Pending>()
  readonly #over = new AbortController()
  #channel: McpChannel | undefined
  #lastId = 0
  #closed: McpError | undefined
  #capabilities: JsonObject = {}

  private constructor(options: SessionOptions) {
    this.#options = options
  }

  /**
   * Connects and performs the handshake.
   *
   * @throws McpError when the server cannot be reached, or supports no known version.
   */
  static async open(options: SessionOptions, signal?: AbortSignal): Promise<McpSession> {
    const session = new McpSession(options)
    try {
      session.#channel = await options.connect({
        onMessage: (value) => session.#receive(value),
        onClose: (error) => session.#end(error),
        onWait: (id, work) => session.#pending.get(id)?.hold(work),
      })
      await session.#initialize(session.#channel, signal)
      return session
    } catch (error) {
      await session.close()
      throw error
    }
  }

  /** Whether the server said in the handshake that it has `tools`, `resources` or `prompts`. */
  offers(feature: string): boolean {
    return isJsonObject(this.#capabilities[feature])
  }

  /**
   * Sends a request and resolves with its result. When the signal fires or the time is up, the
   * request is cancelled at the server.
   *
   * @throws McpError; the signal's reason.
   */
  request(method: string, params: JsonObject, options: RequestOptions = {}): Promise<JsonObject> {
    const { server, clock } = this.#options
    const { signal, timeoutMs = this.#options.timeoutMs } = options
    const channel = this.#channel
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error)
    if (channel === undefined || this.#closed !== undefined) {
      return Promise.reject(
        this.#closed ?? new McpError(server, 'lost', 'the connection is closed'),
      )
    }
    if (this.#pending.size >= MAX_PENDING) {
      return Promise.reject(
        new McpError(server, 'refused', `${MAX_PENDING} requests are under way`),
      )
    }
    const id = ++this.#lastId
    const exchange = new AbortController()
    return new Promise<JsonObject>((resolve, reject) => {
      let latest = steadyNow(clock) + timeoutMs * MAX_EXTENSION
      let timer: Timer | undefined
      const settle = (end: () => void): void => {
        if (!this.#pending.delete(id)) return
        timer?.cancel()
        listeners?.delete(giveUp)
        end()
        exchange.abort()
      }
      const giveUp = (reason: unknown): void => {
        if (method !== 'initialize') {
          const params = { requestId: id, reason: 'the client no longer waits' }
          this.#post(rpcNotification('notifications/cancelled', params))
        }
        settle(() => reject(reason))
      }
      const wait = (): void => {
        timer?.cancel()
        const ms = Math.max(0, Math.min(timeoutMs, latest - steadyNow(clock)))
        timer = clock.setTimeout(
          () => giveUp(new McpError(server, 'timeout', `${method} was not answered in time`)),
          ms,
        )
      }
      const listeners = signal === undefined ? undefined : abortListeners(signal).add(giveUp)
      this.#pending.set(id, {
        resolve: (result) => settle(() => resolve(result)),
        reject: (error) => settle(() => reject(error)),
        progress: wait,
        hold: (work) => {
          const since = steadyNow(clock)
          timer?.cancel()
          const resume = (): void => {
            latest += steadyNow(clock) - since
            if (this.#pending.has(id)) wait()
          }
          work.then(resume, resume)
        },
      })
      wait()
      const message = rpcRequest(id, method, { ...params, _meta: { progressToken: id } })
      channel.send(message, exchange.signal).catch((error: unknown) => {
        this.#pending.get(id)?.reject(error)
        if (error instanceof McpError && error.problem === 'session') this.#end(error)
      })
    })
  }

  /** Ends the session and rejects pending requests. Idempotent. */
  async close(): Promise<void> {
    this.#end(new McpError(this.#options.server, 'lost', 'the connection was closed'), false)
    await this.#channel?.close()
  }

  async #initialize(channel: McpChannel, signal: AbortSignal | undefined): Promise<void> {
    const { server } = this.#options
    const hello = {
      protocolVersion: PROTOCOL_VERSIONS[0] ?? '',
      capabilities: {},
      clientInfo: { name: 'runwright', version: '1' },
    }
    const answer = await this.request('initialize', hello, { signal })
    const version = answer['protocolVersion']
    if (typeof version !== 'string' || !PROTOCOL_VERSIONS.includes(version)) {
      const theirs = clip(JSON.stringify(version ?? null), 40)
      const known = PROTOCOL_VERSIONS.join(', ')
      throw new McpError(
        server,
        'protocol',
        `it speaks version ${theirs} of the protocol; known are ${known}`,
      )
    }
    if (isJsonObject(answer['capabilities'])) this.#capabilities = answer['capabilities']
    channel.ready(version)
    await channel.send(rpcNotification('notifications/initialized'), this.#over.signal)
  }

  #receive(value: JsonValue): void {
    for (const message of readMessages(value)) this.#take(message)
  }

  #take(message: RpcMessage): void {
    switch (message.kind) {
      case 'request':
        this.#post(
          message.method === 'ping' ? rpcResult(message.id, {}) : rpcMethodNotFound(message.id),
        )
        break
      case 'notification':
        this.#notified(message.method, message.params)
        break
      case 'result':
        if (typeof message.id === 'number') this.#pending.get(message.id)?.resolve(message.result)
        break
      case 'error': {
        const error = new McpError(
          this.#options.server,
          'refused',
          `${message.message} (${message.code})`,
        )
        if (typeof message.id === 'number') this.#pending.get(message.id)?.reject(error)
      }
    }
  }

  #notified(method: string, params: JsonObject): void {
    const token = params['progressToken']
    if (method === 'notifications/tools/list_changed') this.#options.onToolsChanged()
    else if (method === 'notifications/progress' && typeof token === 'number') {
      this.#pending.get(token)?.progress()
    }
  }

  /** Sends a message that needs no answer; a failure to send is ignored. */
  #post(message: JsonObject): void {
    if (this.#closed === undefined)
      this.#channel?.send(message, this.#over.signal).catch(() => undefined)
  }

  #end(error: McpError, notify = true): void {
    if (this.#closed !== undefined) return
    this.#closed = error
    // The server may have begun the other requests before it dropped the session.
    const others =
      error.problem === 'session'
        ? new McpError(this.#options.server, 'lost', error.detail)
        : error
    for (const { reject } of [...this.#pending.values()]) reject(others)
    this.#over.abort()
    if (notify) this.#options.onClose(error)
  }
}
