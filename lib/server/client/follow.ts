/**
 * Follows the events of a run, over any number of connections.
 *
 * 1. The cursor is the `seq` of the last event received; each connection continues behind it.
 * 2. An event at or before the cursor is a repetition and is skipped. Without a filter, a gap after
 *    the cursor means a broken stream, which is reopened at the cursor.
 * 3. A run's events end with the stream that brought `run_end`, whose last events may be behind it,
 *    or with the answer that there will be no more: a 204, or a Close with 1000 behind the last
 *    event of an ended run. A stream that ends otherwise is reopened.
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
  TimeoutError,
  TotalTimeoutError,
} from '../../http/index.js'
import type { OptionKinds } from '../../internal/options.js'
import { backoffDelay, sleep, TRANSIENT_STATUSES } from '../../internal/time.js'
import { OpeningError } from '../../ws/index.js'
import { isUnusableRun, RunServiceError } from '../errors.js'

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
  /**
   * Server-sent events, or a WebSocket, which a `transport` of the client's own cannot carry.
   * @defaultValue 'sse'
   */
  readonly transport?: 'sse' | 'websocket' | undefined
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
  after: 'number', kinds: 'array', deltas: 'boolean', transport: 'string', signal: 'object',
  reconnectMs: 'number', maxFailures: 'number', silenceMs: 'number',
}

/** One connection to the events of a run. */
export interface EventStream {
  /**
   * Each event as JSON; returns when the connection has ended, true if the service closed it as
   * that of a run without further events.
   *
   * @throws BrokenStreamError for what is no stream of events.
   */
  events(): AsyncGenerator<string, boolean>
  /** The last `seq` that the service has come to, whether the event was wanted or not; else 0. */
  readonly position: number
  close(): Promise<void>
}

/**
 * Opens a stream with a query, such as `after=3`; null when there will be no more events. Silence
 * of `silenceMs` ends it.
 */
export type OpenStream = (
  params: Readonly<Record<string, string>>,
  signal: AbortSignal,
  silenceMs: number,
) => Promise<EventStream | null>

const DEFAULT_RECONNECT_MS = 500
const MAX_RECONNECT_MS = 15_000
const DEFAULT_FAILURES = 10
const DEFAULT_SILENCE_MS = 45_000

/** Yields the events of one run. `details` reads the run, for the present end of its log. */
export async function* followEvents(
  open: OpenStream,
  options: FollowOptions,
  details: () => Promise<RunDetails>,
): AsyncGenerator<AgentEvent | ModelDelta, void> {
  const cursor = new Cursor(options)
  // New events only: those behind the present end of the log, whichever connection delivers them.
  if (cursor.position < 0) cursor.position = (await details()).last_seq
  const signal = options.signal ?? new AbortController().signal
  const { maxFailures = DEFAULT_FAILURES, reconnectMs = DEFAULT_RECONNECT_MS } = options
  const { silenceMs = DEFAULT_SILENCE_MS } = options
  let failures = 0
  let broken = 0
  let ended = false
  for (let quiet = 0; ; quiet++) {
    const before = cursor.position
    let retryAfterMs = 0
    let stream: EventStream | null = null
    try {
      stream = await open(cursor.params(), signal, silenceMs)
      if (stream === null) return
      failures = 0
      const texts = stream.events()
      let next = await texts.next()
      for (; next.done !== true; next = await texts.next()) {
        const event = parseEvent(next.value)
        if (event.kind !== 'model_delta' && !cursor.advance(event.seq)) continue
        if (event.kind === 'run_end') ended = true
        if (cursor.isWanted(event)) yield event
      }
      if (ended) return
      cursor.position = Math.max(cursor.position, stream.position)
      if (next.value) return await checkEnd(cursor, broken > 0, details)
    } catch (error) {
      signal.throwIfAborted()
      if (!isTransient(error)) throw error
      if (ended) return
      // A stream that opens and is cut is no failure; a broken stream is one.
      if (cursor.position > before) broken = 0
      if (error instanceof BrokenStreamError) broken += 1
      else failures += 1
      if (Math.max(failures, broken) > maxFailures) throw error
      if (error instanceof RunServiceError) retryAfterMs = error.retryAfterMs ?? 0
    } finally {
      await stream?.close()
    }
    if (cursor.position > before) quiet = 0
    const delayMs = backoffDelay(quiet + 1, { firstMs: reconnectMs, maxMs: MAX_RECONNECT_MS })
    await sleep(Math.max(delayMs, Math.min(retryAfterMs, MAX_RECONNECT_MS)), signal)
  }
}

/**
 * `again`: the same has happened to the connection before.
 *
 * @throws BrokenStreamError unless the cursor is behind the last event of an ended run that is
 * wanted.
 */
async function checkEnd(
  cursor: Cursor,
  again: boolean,
  details: () => Promise<RunDetails>,
): Promise<void> {
  const run = await details().catch((cause: unknown) => {
    if (!isTransient(cause)) throw cause
    throw new BrokenStreamError('the stream has ended; whether the run has is unknown', { cause })
  })
  // Events that are not wanted may be behind the cursor.
  const isLast = cursor.position >= run.last_seq || (cursor.isFiltered && again)
  if (run.ended_at !== null && isLast) return
  throw new BrokenStreamError('the stream was closed before the end of the run')
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

  get isFiltered(): boolean {
    return this.#kinds !== null
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
export class BrokenStreamError extends RemoteProtocolError {}

function isTransient(error: unknown): boolean {
  if (error instanceof RunServiceError) {
    return TRANSIENT_STATUSES.includes(error.status) && !isUnusableRun(error.code)
  }
  if (error instanceof TotalTimeoutError) return false
  return (
    error instanceof NetworkError ||
    error instanceof TimeoutError ||
    error instanceof RemoteProtocolError ||
    error instanceof OpeningError
  )
}
