/**
 * The "streamable HTTP" transport: each message is a POST, whose response is JSON or an event
 * stream; notifications arrive on a further stream, which many servers do not offer. A stream that
 * breaks off before its answer is resumed if its events have ids. The HTTP client reconnects.
 *
 * @module
 */
import {
  AsyncClient,
  ConnectError,
  ConnectTimeoutError,
  HttpError,
  SseParser,
  type AsyncResponse,
  type AsyncTransport,
  type ServerSentEvent,
} from '../../http/index.js'
import { type Clock, raceAbort, sleep } from '../../internal/time.js'
import { addRotatingCredential } from '../../internal/errors.js'
import { parseJson, type JsonObject, type JsonValue } from '../../internal/json.js'
import { McpError } from '../errors.js'
import { clip } from '../output.js'
import type { ChannelListener, McpAuthorizer, McpChannel } from './channel.js'
import { readMessages, type RpcId } from './json-rpc.js'
import type { McpOAuthOptions } from './oauth/options.js'

/** A server that is reached over HTTP. */
export interface McpEndpoint {
  /** Where messages are posted, for example `https://host/mcp`. Redirects are not followed. */
  readonly url: string
  /** Sent as `Authorization: Bearer …`; a function is called before each request. */
  readonly bearer?: string | (() => string | Promise<string>) | undefined
  /** How to get access tokens, in place of `bearer`. */
  readonly oauth?: McpOAuthOptions | undefined
  /** Sent with every request; their values are masked when headers are printed. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Replaces the network, for gateways and tests. */
  readonly transport?: AsyncTransport | undefined
}

/** What a channel needs of the options of its server. */
interface HttpChannelOptions {
  readonly name: string
  readonly maxMessageBytes: number
  readonly clock: Clock
  readonly authorizer: McpAuthorizer | null
}

const SESSION_HEADER = 'mcp-session-id'
const VERSION_HEADER = 'mcp-protocol-version'
/** Milliseconds to connect and to write, and the longest delay before a stream is resumed. */
const IDLE_MS = 30_000
/** Milliseconds to wait for the server to end a session. */
const GOODBYE_MS = 2_000
/** Milliseconds before a stream is reopened, unless the server sets the delay. */
const REOPEN_MS = 1_000
const KEY_HINT = 'give it a bearer token that it accepts, or oauth'
const ADDRESS_HINT = 'is the address that of its streamable HTTP interface?'
/** By status of an error response. */
const HINTS: Readonly<Record<number, string>> = {
  401: KEY_HINT,
  403: KEY_HINT,
  404: ADDRESS_HINT,
  405: ADDRESS_HINT,
}
/** Tokens that are fetched for one request: one, and another with the scopes that it needs. */
const MAX_RENEWALS = 2
/** Characters of an error response that go into a message. */
const REFUSAL_CHARACTERS = 300

/** Shortest and longest delay that a server can set before the first attempt to resume a stream. */
const RETRY_MS = { least: 100, most: IDLE_MS }
/**
 * Texts with which servers answer 400 rather than the specified 404 to a session that they do not
 * know, for example after a restart.
 */
const UNKNOWN_SESSION = [
  /\b(?:no valid|invalid|unknown|missing|expired)\b.{0,20}\bsession\b/i,
  /\bsession\b.{0,20}\b(?:not found|expired|invalid|unknown|required|terminated)\b/i,
  /\bserver not initialized\b/i,
]

/** Creates the channel; it connects with the first message. */
export function openHttpChannel(
  config: HttpChannelOptions,
  endpoint: McpEndpoint,
  listener: ChannelListener,
): McpChannel {
  return new HttpChannel(config, endpoint, listener)
}

class HttpChannel implements McpChannel {
  readonly #server: string
  readonly #endpoint: McpEndpoint
  readonly #maxMessageBytes: number
  readonly #clock: Clock
  readonly #authorizer: McpAuthorizer | null
  readonly #listener: ChannelListener
  readonly #client: AsyncClient
  readonly #over = new AbortController()
  #sessionId: string | null = null
  #version: string | null = null
  #closing: Promise<void> | undefined

  constructor(
    config: HttpChannelOptions,
    endpoint: McpEndpoint,
    listener: ChannelListener,
  ) {
    this.#server = config.name
    this.#endpoint = endpoint
    this.#maxMessageBytes = config.maxMessageBytes
    this.#clock = config.clock
    this.#authorizer = config.authorizer
    this.#listener = listener
    this.#client = new AsyncClient({
      timeout: { connect: IDLE_MS, read: null, write: IDLE_MS, pool: null, total: null },
      limits: { maxConnections: null },
      maxResponseBytes: config.maxMessageBytes,
      sensitiveHeaders: [SESSION_HEADER, ...Object.keys(endpoint.headers ?? {})],
      ...(endpoint.transport !== undefined && { transport: endpoint.transport }),
    })
  }

  async send(message: JsonObject, signal: AbortSignal): Promise<void> {
    const { method, id } = message
    const wanted = typeof method === 'string' && typeof id === 'number' ? id : null
    for (let renewals = 0; ; renewals++) {
      const token = await this.#token()
      const response = await this.#post(message, token, signal)
      try {
        const renewed = renewals < MAX_RENEWALS ? this.#renew(response, token) : null
        if (renewed === null) return await this.#read(response, message, wanted, signal)
        if (wanted !== null) this.#listener.onWait(wanted, renewed)
        renewed.catch(() => undefined) // it may fail before it is waited for
        await response.close()
        await raceAbort(renewed, AbortSignal.any([signal, this.#over.signal]))
      } finally {
        await response.close()
      }
    }
  }

  ready(protocolVersion: string): void {
    this.#version = protocolVersion
    void this.#listen()
  }

  close(): Promise<void> {
    this.#closing ??= this.#end()
    return this.#closing
  }

  async #end(): Promise<void> {
    this.#over.abort()
    if (this.#sessionId !== null) {
      const timeout = { total: GOODBYE_MS, read: GOODBYE_MS }
      await this.#headers()
        .then((headers) => this.#client.request('DELETE', this.#endpoint.url, { headers, timeout }))
        .catch(() => undefined) // the session expires at the server
    }
    await this.#client.close()
  }

  async #post(
    message: JsonObject,
    token: string | null,
    signal: AbortSignal,
  ): Promise<AsyncResponse> {
    try {
      return await this.#client.stream('POST', this.#endpoint.url, {
        content: JSON.stringify(message),
        headers: {
          ...(await this.#headers(token)),
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        },
        signal: AbortSignal.any([signal, this.#over.signal]),
      })
    } catch (error) {
      throw this.#failure(error, signal, 'lost')
    }
  }

  /** Gets another token if the response asks for one; the server has done nothing then. */
  #renew({ statusCode, headers }: AsyncResponse, token: string | null): Promise<void> | null {
    if (this.#authorizer === null || (statusCode !== 401 && statusCode !== 403)) return null
    const challenges = headers.getList('www-authenticate')
    return this.#authorizer.answer({ status: statusCode, challenges, token })
  }

  async #token(): Promise<string | null> {
    if (this.#authorizer !== null) return await this.#authorizer.token()
    const { bearer = null } = this.#endpoint
    const token = typeof bearer === 'function' ? await bearer() : bearer
    if (typeof token === 'string') addRotatingCredential(token)
    return token
  }

  async #headers(sent?: string | null): Promise<Record<string, string>> {
    const token = sent === undefined ? await this.#token() : sent
    return {
      ...this.#endpoint.headers,
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(this.#sessionId !== null && { [SESSION_HEADER]: this.#sessionId }),
      ...(this.#version !== null && { [VERSION_HEADER]: this.#version }),
    }
  }

  /** Reads the response to a POST: for a request (`wanted` is its id), until its answer arrives. */
  async #read(
    response: AsyncResponse,
    message: JsonObject,
    wanted: number | null,
    signal: AbortSignal,
  ): Promise<void> {
    if (!response.isSuccess) throw await this.#refusal(response, wanted)
    if (message['method'] === 'initialize') this.#sessionId = readSessionId(response)
    if (this.#sessionId !== null) addRotatingCredential(this.#sessionId)
    if (wanted === null) return
    const type = response.headers.get('content-type') ?? ''
    if (/^text\/event-stream\b/i.test(type)) return this.#readStream(response, wanted, signal)
    let text: string
    try {
      await response.read()
      text = response.text
    } catch (error) {
      throw this.#failure(error, signal, 'lost')
    }
    const value = parseJson(text)
    if (value === undefined || !this.#deliver(value, wanted)) {
      throw new McpError(this.#server, 'protocol', 'its answer to a request holds no answer')
    }
  }

  async #readStream(response: AsyncResponse, wanted: number, signal: AbortSignal): Promise<void> {
    const parser = new SseParser({ maxEventLength: this.#maxMessageBytes })
    let retry: number | null = null
    try {
      for await (const chunk of response.iterBytes()) {
        for (const event of parser.feed(chunk)) {
          retry = event.retry ?? retry
          if (this.#event(event, wanted)) return
        }
      }
    } catch (error) {
      signal.throwIfAborted()
      if (parser.lastEventId === '' || this.#over.signal.aborted)
        throw this.#failure(error, signal, 'lost')
    }
    if (parser.lastEventId === '') {
      throw new McpError(this.#server, 'lost', 'its stream ended before the answer')
    }
    await this.#resume(parser.lastEventId, retry ?? parser.retry, wanted, signal)
  }

  /** Continues a stream that broke off, until the answer arrives, after the delay it asked for. */
  async #resume(
    lastEventId: string,
    retry: number | null,
    wanted: number,
    signal: AbortSignal,
  ): Promise<void> {
    const delay = Math.min(Math.max(retry ?? REOPEN_MS, RETRY_MS.least), RETRY_MS.most)
    try {
      if (retry !== null) {
        await sleep(delay, AbortSignal.any([signal, this.#over.signal]), this.#clock)
      }
      const events = this.#client.sse(this.#endpoint.url, {
        headers: await this.#headers(),
        lastEventId,
        reconnectMs: delay,
        maxFailures: 3,
        maxEventLength: this.#maxMessageBytes,
        signal: AbortSignal.any([signal, this.#over.signal]),
      })
      for await (const event of events) if (this.#event(event, wanted)) return
    } catch (error) {
      throw this.#failure(error, signal, 'lost')
    }
    throw new McpError(this.#server, 'lost', 'its stream ended before the answer')
  }

  /** Keeps the stream of notifications open; many servers have none. */
  async #listen(): Promise<void> {
    const { signal } = this.#over
    try {
      const events = this.#client.sse(this.#endpoint.url, {
        headers: await this.#headers(),
        reconnectMs: REOPEN_MS,
        maxFailures: 5,
        maxEventLength: this.#maxMessageBytes,
        signal,
      })
      for await (const event of events) this.#event(event, null)
    } catch {
      // Calls work without notifications, but changes of the tool list go unnoticed.
    }
  }

  #event({ data }: ServerSentEvent, wanted: number | null): boolean {
    const value = data.trim() === '' ? undefined : parseJson(data)
    return value !== undefined && this.#deliver(value, wanted)
  }

  /** Passes a value to the listener; true when it contains the awaited answer. */
  #deliver(value: JsonValue, wanted: number | null): boolean {
    if (this.#over.signal.aborted) return true
    const answered =
      wanted !== null && readMessages(value).some((message) => isAnswer(message, wanted))
    this.#listener.onMessage(value)
    return answered
  }

  async #refusal(response: AsyncResponse, wanted: number | null): Promise<McpError> {
    const { statusCode } = response
    await response.read().catch(() => undefined)
    const { text, answers } = readRefusal(response)
    const unknown = statusCode === 404 || (statusCode === 400 && isUnknownSession(text))
    const lost = this.#sessionId !== null && unknown
    const hint = lost ? 'the session is over' : (HINTS[statusCode] ?? '')
    const parts = [`it answered ${statusCode}`, text, hint]
    const message = parts.filter((part) => part !== '').join(': ')
    const error = new McpError(this.#server, lost ? 'session' : 'unreachable', message)
    // What answers the request by its id may come from the tool, after it did its work.
    if (!lost || statusCode === 404 || wanted === null || answers !== wanted) return error
    this.#listener.onClose(error)
    return new McpError(this.#server, 'lost', message)
  }

  #failure(error: unknown, signal: AbortSignal, problem: McpError['problem']): unknown {
    if (signal.aborted) return signal.reason
    if (!(error instanceof HttpError)) return error
    const never = error instanceof ConnectError || error instanceof ConnectTimeoutError
    return new McpError(this.#server, never ? 'unreachable' : problem, error.message, {
      cause: error,
    })
  }
}

function isAnswer(message: ReturnType<typeof readMessages>[number], wanted: number): boolean {
  return (message.kind === 'result' || message.kind === 'error') && message.id === wanted
}

/** The protocol allows visible ASCII only; any other id could not be sent back. */
function readSessionId(response: AsyncResponse): string | null {
  const id = response.headers.get(SESSION_HEADER)
  return id !== null && /^[\x21-\x7e]{1,1000}$/.test(id) ? id : null
}

function isUnknownSession(text: string): boolean {
  return UNKNOWN_SESSION.some((form) => form.test(text))
}

/** What an error response says, and the id of the request that it answers, if it names one. */
function readRefusal(response: AsyncResponse): {
  readonly text: string
  readonly answers: RpcId | null
} {
  let text = ''
  try {
    text = response.text.trim()
  } catch {
    return { text, answers: null }
  }
  const value = parseJson(text)
  const [message] = value === undefined ? [] : readMessages(value)
  if (message?.kind === 'error')
    return { text: clip(message.message, REFUSAL_CHARACTERS), answers: message.id }
  return { text: text.startsWith('<') ? '' : clip(text, REFUSAL_CHARACTERS), answers: null }
}
