import { backoffDelay, TRANSIENT_STATUSES } from '../internal/backoff.js'
import {
  HttpStatusError,
  NetworkError,
  RemoteProtocolError,
  TimeoutError,
  TotalTimeoutError,
} from './errors.js'
import type { RequestOptions } from './exchange.js'
import { Headers } from './headers.js'
import type { BaseResponse } from './response.js'
import { MAX_SSE_EVENT_LENGTH, SseParser, type ServerSentEvent } from './content/sse-parser.js'
import { redactUrl } from './url.js'

/** What `sse()` may be told besides the options of a request. */
export interface SseOptions extends RequestOptions {
  /** @defaultValue 'GET' */
  readonly method?: string | undefined
  /** Sent as Last-Event-ID with the first request. */
  readonly lastEventId?: string | undefined
  /** Whether a lost or ended stream is opened again. @defaultValue true */
  readonly reconnect?: boolean | undefined
  /** Delay before opening again, in ms, until the server says otherwise. @defaultValue 3000 */
  readonly reconnectMs?: number | undefined
  /** Failures one after the other before giving up. @defaultValue 5 */
  readonly maxFailures?: number | undefined
  /** Characters of one event at most. @defaultValue 16 Mi */
  readonly maxEventLength?: number | undefined
}

/** Longest wait before a stream is opened again after failures, unless the server asks for more. */
const MAX_RECONNECT_MS = 60_000

/**
 * What an event stream remembers between its connections (WHATWG HTML, section 9.2): the last
 * event's id, how long to wait, and how often it failed. The clients do the rest.
 */
export class EventSourceSession {
  readonly method: string
  readonly #options: SseOptions
  #parser: SseParser
  #delayMs: number
  #failures = 0
  /** Whether an answer was of another type, which opening the stream again would not change. */
  #wrongType = false

  constructor(options: SseOptions) {
    this.method = options.method ?? 'GET'
    this.#options = options
    this.#delayMs = options.reconnectMs ?? 3_000
    this.#parser = this.#newParser(options.lastEventId ?? '')
  }

  /** The options of the next request. */
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
    // One with a control character cannot be sent, and is no reason to give the stream up.
    if (lastEventId !== '' && !/[\0-\x1f\x7f]/.test(lastEventId))
      headers.set('Last-Event-ID', lastEventId)
    this.#parser = this.#newParser(this.#parser.lastEventId)
    // Silence is no fault of an event stream, so the read limit counts only when it was asked for.
    const timeout = rest.timeout === undefined ? { read: null } : rest.timeout
    return { ...rest, headers, timeout }
  }

  /**
   * Whether events follow; false when the server says that there will be no more (204).
   *
   * @throws {@link HttpStatusError} for another status than 200.
   * @throws {@link RemoteProtocolError} for another content type.
   */
  accepts(response: BaseResponse): boolean {
    if (response.statusCode === 204) return false
    response.raiseForStatus()
    if (response.statusCode !== 200) throw statusError(response)
    const type = response.headers.get('content-type') ?? ''
    if (!/^text\/event-stream(?:\s*;|\s*$)/i.test(type)) {
      this.#wrongType = true
      throw new RemoteProtocolError(`the answer is no event stream: its Content-Type is "${type}"`)
    }
    return true
  }

  /** The events that `chunk` completes. */
  feed(chunk: Uint8Array): ServerSentEvent[] {
    const events = this.#parser.feed(chunk)
    const asked = this.#parser.retry ?? events.findLast(({ retry }) => retry !== null)?.retry
    if (typeof asked === 'number') this.#delayMs = asked
    if (events.length > 0) this.#failures = 0
    return events
  }

  /**
   * How long to wait before the stream is opened again, in ms; null when it is over.
   *
   * @param error - Why the last connection ended; null when the server ended it in order.
   * @throws the error, when opening again is not wanted or would not help.
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
    // Never sooner than the server asked; how much later is left to chance.
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
    `an event stream is answered with 200, not ${statusCode}: ${redactUrl(url)}`,
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
