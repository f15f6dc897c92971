import { backoffDelay, TRANSIENT_STATUSES } from '../internal/time.js'
import { checkOptions, type OptionKinds } from '../internal/options.js'
import { REQUEST_OPTIONS, type RequestOptions } from './call-options.js'
import { MAX_SSE_EVENT_LENGTH, SseParser, type ServerSentEvent } from './content/sse-parser.js'
import {
  HttpStatusError,
  NetworkError,
  RemoteProtocolError,
  TimeoutError,
  TotalTimeoutError,
} from './errors.js'
import { Headers } from './headers.js'
import type { BaseResponse } from './response.js'
import { redactUrl } from './url.js'

/** Options of `sse()`, besides those of any request. */
export interface SseOptions extends RequestOptions {
  /** @defaultValue 'GET' */
  readonly method?: string | undefined
  /** Sent as Last-Event-ID with the first request. */
  readonly lastEventId?: string | undefined
  /** Whether a lost or ended stream is opened again. @defaultValue true */
  readonly reconnect?: boolean | undefined
  /** Delay before opening again, in ms, unless the server sets one. @defaultValue 3000 */
  readonly reconnectMs?: number | undefined
  /** Consecutive failures to tolerate. @defaultValue 5 */
  readonly maxFailures?: number | undefined
  /** Most characters of one event. @defaultValue 16 Mi */
  readonly maxEventLength?: number | undefined
}

const SSE_OPTIONS: OptionKinds<SseOptions> = {
  ...REQUEST_OPTIONS, method: 'string', lastEventId: 'string', reconnect: 'boolean',
  reconnectMs: 'number', maxFailures: 'number', maxEventLength: 'number',
}

/** Longest delay before a failed stream is opened again, unless the server sets a longer one. */
const MAX_RECONNECT_MS = 60_000
/** Shortest delay that a server can set: one that ends its streams at once must cause no loop. */
const MIN_SERVER_DELAY_MS = 100

/**
 * The state of an event stream between its connections (WHATWG HTML, section 9.2): last event id,
 * delay and failures. The clients open the connections and wait.
 */
export class EventSourceSession {
  readonly method: string
  readonly #options: SseOptions
  #parser: SseParser
  #delayMs: number
  #failures = 0
  /** Whether a response had another content type, which opening the stream again cannot cure. */
  #wrongType = false

  constructor(options: SseOptions) {
    checkOptions(options, SSE_OPTIONS, 'sse()')
    this.method = options.method ?? 'GET'
    this.#options = options
    this.#delayMs = options.reconnectMs ?? 3_000
    this.#parser = this.#newParser(options.lastEventId ?? '')
  }

  /** The request options for the next connection. */
  requestOptions(): RequestOptions {
    const {
      lastEventId: _lastEventId,
      method: _method,
      reconnect: _reconnect,
      reconnectMs: _reconnectMs,
      maxFailures: _maxFailures,
      maxEventLength: _maxEventLength,
      ...rest
    } = this.#options
    const headers = new Headers(rest.headers)
    headers.setDefault('Accept', 'text/event-stream')
    headers.setDefault('Cache-Control', 'no-store')
    const { lastEventId } = this.#parser
    // An id with a control character cannot be sent, but must not end the stream either.
    if (lastEventId !== '' && !/[\0-\x1f\x7f]/.test(lastEventId))
      headers.set('Last-Event-ID', lastEventId)
    this.#parser = this.#newParser(this.#parser.lastEventId)
    // Event streams may be silent, so a read limit applies only if the caller set one.
    const timeout = rest.timeout === undefined ? { read: null } : rest.timeout
    // `accepts()` checks the status; content that may never end is not read for its error.
    return { ...rest, headers, timeout, raiseForStatus: false }
  }

  /**
   * Whether events follow; false for 204, with which the server ends the stream for good.
   *
   * @throws {@link HttpStatusError} for a status other than 200.
   * @throws {@link RemoteProtocolError} for a content type other than text/event-stream.
   */
  accepts(response: BaseResponse): boolean {
    if (response.statusCode === 204) return false
    response.raiseForStatus()
    if (response.statusCode !== 200) throw statusError(response)
    const type = response.headers.get('content-type') ?? ''
    if (!/^text\/event-stream(?:\s*;|\s*$)/i.test(type)) {
      this.#wrongType = true
      throw new RemoteProtocolError(`the response is not an event stream: its type is "${type}"`)
    }
    return true
  }

  /** The events that `chunk` completes. They reset the count of failures. */
  feed(chunk: Uint8Array): ServerSentEvent[] {
    const events = this.#parser.feed(chunk)
    const retryMs = this.#parser.retry ?? events.findLast(({ retry }) => retry !== null)?.retry
    if (typeof retryMs === 'number') this.#delayMs = Math.max(retryMs, MIN_SERVER_DELAY_MS)
    if (events.length > 0) this.#failures = 0
    return events
  }

  /**
   * Delay before the stream is opened again, in ms; null if the stream is over.
   *
   * @param error - Why the last connection failed; null when the server ended it cleanly.
   * @throws the error when the caller does not want to reconnect or that would not help.
   */
  nextDelay(error: unknown): number | null {
    if (this.#options.reconnect === false) {
      if (error !== null) throw error
      return null
    }
    if (error === null) return this.#delayMs
    this.#failures++
    const maxFailures = this.#options.maxFailures ?? 5
    if (this.#wrongType || !isTransient(error) || this.#failures > maxFailures) throw error
    // Never earlier than the server asked for; jitter only adds to the delay.
    const backoff = { firstMs: this.#delayMs, maxMs: MAX_RECONNECT_MS }
    return Math.max(this.#delayMs, backoffDelay(this.#failures, backoff))
  }

  #newParser(lastEventId: string): SseParser {
    const { maxEventLength = MAX_SSE_EVENT_LENGTH } = this.#options
    return new SseParser({ lastEventId, maxEventLength })
  }
}

function statusError(response: BaseResponse): HttpStatusError {
  const { statusCode, url } = response
  return new HttpStatusError(
    `an event stream needs status 200, got ${statusCode}: ${redactUrl(url)}`,
    response,
  )
}

function isTransient(error: unknown): boolean {
  if (error instanceof HttpStatusError) return TRANSIENT_STATUSES.includes(error.statusCode)
  if (error instanceof TotalTimeoutError) return false
  return (
    error instanceof NetworkError ||
    error instanceof TimeoutError ||
    error instanceof RemoteProtocolError
  )
}
