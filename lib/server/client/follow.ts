/**
 * Follows the events of a run, over any number of connections.
 *
 * 1. The cursor is the `seq` of the last event received; each connection continues behind it.
 * 2. An event at or before the cursor is a repetition and is skipped. Without a filter, a gap after
 *    the cursor means a broken stream, which is reopened at the cursor.
 * 3. Only `run_end` or a 204 ends a run's events. A stream that ends otherwise is reopened.
 *
 * `AsyncClient.sse()` reconnects by other rules: it cannot move the cursor in the query, and it
 * counts failures and reads errors without the service's problem details.
 *
 * @module
 */
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
import type { OptionKinds } from '../../internal/options.js'
import { backoffDelay, TRANSIENT_STATUSES } from '../../internal/backoff.js'
import { sleep } from '../../internal/sleep.js'
import { isUnusableRun, RunServiceError } from '../errors.js'
import { answerError } from './answer-error.js'

/**
 * A piece of text that a model is generating. It is no event of the log: it has no `seq`, is not
 * stored, and may be lost; a jump in `offset` shows that one was.
 */
export interface ModelDelta extends Omit<EventFields, 'seq'> {
  readonly kind: 'model_delta'
  readonly payload: DeltaPayload
}

/** Options of `RunServiceClient.events()`. */
export interface FollowOptions {
  /** Only events with a greater `seq`; -1 for new events only. @defaultValue 0 */
  readonly after?: number | undefined
  /** Only events of these kinds. @defaultValue all */
  readonly kinds?: readonly EventKind[] | undefined
  /** Also yields the model's text while it is being generated. @defaultValue false */
  readonly deltas?: boolean | undefined
  /** Aborts the iteration, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Longest delay before the first reconnect, in ms; doubles up to 15 s. @defaultValue 500 */
  readonly reconnectMs?: number | undefined
  /** Failed attempts in a row that are tolerated. @defaultValue 10 */
  readonly maxFailures?: number | undefined
  /**
   * Silence after which a connection counts as lost, in ms; the service sends something every 15 s.
   * @defaultValue 45000
   */
  readonly silenceMs?: number | undefined
}

/** For `checkOptions()`. */
export const FOLLOW_OPTIONS: OptionKinds<FollowOptions> = {
  after: 'number', kinds: 'array', deltas: 'boolean', signal: 'object', reconnectMs: 'number',
  maxFailures: 'number', silenceMs: 'number',
}

const DEFAULT_RECONNECT_MS = 500
const MAX_RECONNECT_MS = 15_000
const DEFAULT_FAILURES = 10
const DEFAULT_SILENCE_MS = 45_000

/** Yields the events of one run. `details` reads the run, for the present end of its log. */
export async function* followEvents(
  http: AsyncClient,
  path: string,
  options: FollowOptions,
  details: () => Promise<RunDetails>,
): AsyncGenerator<AgentEvent | ModelDelta, void> {
  const cursor = new Cursor(options)
  // New events only: those behind the present end of the log, whichever connection delivers them.
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
      if (!isTransient(error)) throw error
      // A stream that opens and is cut is no failure; a broken stream is one.
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

/** Opens the stream behind the cursor; null when there will be no more events. */
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

/** The new events of one connection. */
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
    throw new BrokenStreamError('the stream contains data that is not an event', { cause })
  }
}

/** The position of a reader in a log, and the kinds that it wants. */
class Cursor {
  position: number
  readonly #kinds: ReadonlySet<EventKind> | null
  readonly #deltas: boolean

  constructor({ after = 0, kinds, deltas = false }: FollowOptions) {
    if (!Number.isSafeInteger(after) || after < -1) {
      throw new RangeError(`after must be an integer of at least -1, got ${after}`)
    }
    this.position = after
    this.#deltas = deltas
    this.#kinds = kinds === undefined ? null : new Set(kinds)
  }

  isWanted({ kind }: AgentEvent | ModelDelta): boolean {
    return this.#kinds === null || kind === 'model_delta' || this.#kinds.has(kind)
  }

  /** The query of the next connection. It always includes `run_end`. */
  params(): Record<string, string> {
    const range = { after: String(this.position), ...(this.#deltas ? { deltas: '1' } : {}) }
    if (this.#kinds === null) return range
    return { ...range, kinds: [...new Set([...this.#kinds, 'run_end'])].join(',') }
  }

  /** Moves to an event; false when it was seen. @throws BrokenStreamError when one is missing */
  advance(seq: number): boolean {
    if (seq <= this.position) return false
    if (this.#kinds === null && seq !== this.position + 1) {
      throw new BrokenStreamError(
        `event ${seq} came after ${this.position}; the events between are missing`,
      )
    }
    this.position = seq
    return true
  }
}

/** Thrown for a stream with a gap or with data that is no event. */
class BrokenStreamError extends RemoteProtocolError {}

function isTransient(error: unknown): boolean {
  if (error instanceof RunServiceError) {
    return TRANSIENT_STATUSES.includes(error.status) && !isUnusableRun(error.code)
  }
  if (error instanceof TotalTimeoutError) return false
  return (
    error instanceof NetworkError ||
    error instanceof TimeoutError ||
    error instanceof RemoteProtocolError
  )
}
