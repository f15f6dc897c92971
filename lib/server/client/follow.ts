/**
 * A run's events over any number of connections.
 *
 * 1. The cursor is the `seq` of the last event handed out; each connection continues behind it.
 * 2. An event at or before the cursor was seen and is passed over. Without a filter one that is
 *    ahead of its turn shows a broken stream, which is opened again at the cursor.
 * 3. Only `run_end`, or the service's word that there is nothing more (204), is the end of a run; a
 *    stream that ends otherwise is opened again.
 *
 * @module
 */
import { backoffDelay, TRANSIENT_STATUSES } from '../../internal/backoff.js'
import { sleep } from '../../internal/sleep.js'
import type {
  AgentEvent,
  DeltaPayload,
  EventFields,
  EventKind,
  RunDetails,
} from '../../agent/index.js'
import {
  NetworkError,
  RemoteProtocolError,
  SseParser,
  TimeoutError,
  TotalTimeoutError,
  type AsyncClient,
  type AsyncResponse,
} from '../../http/index.js'
import { answerError } from './answer-error.js'
import { RunServiceError } from '../errors.js'

/**
 * A piece of what a model writes just now. It is no event of the log: it has no `seq`, is not kept,
 * and may be missing; `offset` tells whether one is.
 */
export interface ModelDelta extends Omit<EventFields, 'seq'> {
  readonly kind: 'model_delta'
  readonly payload: DeltaPayload
}

/** How to follow a run. */
export interface FollowOptions {
  /** Only events behind this `seq`; -1 is only what is to come. @defaultValue 0 */
  readonly after?: number | undefined
  /** Only events of these kinds. @defaultValue all */
  readonly kinds?: readonly EventKind[] | undefined
  /** Also hands out what the model writes, while it writes it. @defaultValue false */
  readonly deltas?: boolean | undefined
  /** Ends the iteration by rejecting with its reason. */
  readonly signal?: AbortSignal | undefined
  /** Before the first attempt to open a lost stream again; doubles up to 15 s. @defaultValue 500 */
  readonly reconnectMs?: number | undefined
  /** Attempts in a row that may fail. @defaultValue 10 */
  readonly maxFailures?: number | undefined
  /** Silence after which a connection counts as dead; the service speaks every 15 s. @defaultValue 45000 */
  readonly silenceMs?: number | undefined
}

const DEFAULT_RECONNECT_MS = 500
const MAX_RECONNECT_MS = 15_000
const DEFAULT_FAILURES = 10
const DEFAULT_SILENCE_MS = 45_000

/** Follows the events of one run; `details` tells where its log ends now. */
export async function* followEvents(
  http: AsyncClient,
  path: string,
  options: FollowOptions,
  details: () => Promise<RunDetails>,
): AsyncGenerator<AgentEvent | ModelDelta, void> {
  const cursor = new Cursor(options)
  // Live only begins at the log's present end: from there on a lost connection loses nothing.
  if (cursor.position < 0) cursor.position = (await details()).last_seq
  const signal = options.signal ?? new AbortController().signal
  const { maxFailures = DEFAULT_FAILURES, reconnectMs = DEFAULT_RECONNECT_MS } = options
  let failures = 0
  let broken = 0
  for (let quiet = 0; ; quiet++) {
    const before = cursor.position
    let retryAfterMs = 0
    let response: AsyncResponse | null = null
    try {
      response = await open(http, path, cursor, options)
      if (response === null) return
      failures = 0
      for await (const event of readEvents(response, cursor)) {
        if (cursor.isWanted(event)) yield event
        if (event.kind === 'run_end') return
      }
    } catch (error) {
      signal.throwIfAborted()
      if (!isPassing(error)) throw error
      // A stream that opens is no failure, however often it is cut; one that makes no sense is.
      if (cursor.position > before) broken = 0
      if (error instanceof BrokenStreamError) broken += 1
      else failures += 1
      if (Math.max(failures, broken) > maxFailures) throw error
      if (error instanceof RunServiceError) retryAfterMs = error.retryAfterMs ?? 0
    } finally {
      await response?.close()
    }
    if (cursor.position > before) quiet = 0
    const delayMs = backoffDelay(quiet + 1, { firstMs: reconnectMs, maxMs: MAX_RECONNECT_MS })
    await sleep(Math.max(delayMs, Math.min(retryAfterMs, MAX_RECONNECT_MS)), signal)
  }
}

/** The stream behind the cursor; null when there will be no more events. */
async function open(
  http: AsyncClient,
  path: string,
  cursor: Cursor,
  { signal, silenceMs = DEFAULT_SILENCE_MS }: FollowOptions,
): Promise<AsyncResponse | null> {
  const response = await http.stream('GET', path, {
    params: cursor.params(),
    headers: { Accept: 'text/event-stream', 'Cache-Control': 'no-store' },
    timeout: { read: silenceMs },
    signal,
  })
  try {
    const type = response.headers.get('content-type') ?? ''
    if (response.statusCode === 200 && type.startsWith('text/event-stream')) return response
    if (response.statusCode !== 204) throw await answerError(response)
  } catch (error) {
    await response.close()
    throw error
  }
  await response.close()
  return null
}

/** The events of one connection that are new. */
async function* readEvents(
  response: AsyncResponse,
  cursor: Cursor,
): AsyncGenerator<AgentEvent | ModelDelta, void> {
  const parser = new SseParser()
  for await (const chunk of response.iterBytes()) {
    for (const { data } of parser.feed(chunk)) {
      const event = parseEvent(data)
      if (event.kind === 'model_delta' || cursor.advance(event.seq)) yield event
    }
  }
}

function parseEvent(data: string): AgentEvent | ModelDelta {
  try {
    return JSON.parse(data) as AgentEvent | ModelDelta
  } catch (cause) {
    throw new BrokenStreamError('the stream holds something that is no event', { cause })
  }
}

/** Where a reader is in a log, and what it wants of it. */
class Cursor {
  position: number
  readonly #kinds: ReadonlySet<EventKind> | null
  readonly #deltas: boolean

  constructor({ after = 0, kinds, deltas = false }: FollowOptions) {
    if (!Number.isSafeInteger(after) || after < -1) {
      throw new RangeError(`after must be a whole number from -1 up, got ${after}`)
    }
    this.position = after
    this.#deltas = deltas
    this.#kinds = kinds === undefined ? null : new Set(kinds)
  }

  isWanted({ kind }: AgentEvent | ModelDelta): boolean {
    return this.#kinds === null || kind === 'model_delta' || this.#kinds.has(kind)
  }

  /** What the next connection asks for: the end of the run is always wanted. */
  params(): Record<string, string> {
    const place = { after: String(this.position), ...(this.#deltas ? { deltas: '1' } : {}) }
    if (this.#kinds === null) return place
    return { ...place, kinds: [...new Set([...this.#kinds, 'run_end'])].join(',') }
  }

  /** Moves on to an event; false when it was seen. @throws BrokenStreamError when one is missing. */
  advance(seq: number): boolean {
    if (seq <= this.position) return false
    if (this.#kinds === null && seq !== this.position + 1) {
      throw new BrokenStreamError(
        `event ${seq} came after ${this.position}; those between are missing`,
      )
    }
    this.position = seq
    return true
  }
}

/** A stream that is not what the service sends: its events are not to be trusted. */
class BrokenStreamError extends RemoteProtocolError {}

function isPassing(error: unknown): boolean {
  if (error instanceof RunServiceError) return TRANSIENT_STATUSES.includes(error.status)
  if (error instanceof TotalTimeoutError) return false
  return (
    error instanceof NetworkError ||
    error instanceof TimeoutError ||
    error instanceof RemoteProtocolError
  )
}
