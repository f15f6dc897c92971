/**
 * Clocks, waits, aborts and turns of the event loop.
 *
 * @module
 */
/** A timer that has not fired yet. */
export interface Timer {
  /** Keeps the timer from firing. May be called twice, or after the timer has fired. */
  cancel(): void
}

/**
 * The source of time for everything that waits or takes timestamps; tests pass a manual one.
 *
 * 1. `now()` is for points in time: what is stored, shown, or compared with another process's. It
 *    jumps when the time of day is set.
 * 2. `steady()` is for durations within this process. It never jumps, and stands still while the
 *    machine is suspended. Timers follow it.
 */
export interface Clock {
  /** Milliseconds since the Unix epoch, not rounded. */
  now(): number
  /** Milliseconds since some moment in the past, not rounded. @defaultValue `now()` */
  steady?(): number
  /**
   * Calls `callback` once after `ms` milliseconds; 0 or less means as soon as possible. Delays of
   * months or years are supported.
   */
  setTimeout(callback: () => void, ms: number): Timer
}

/** Above this, Node's timers overflow and fire at once. */
const LONGEST_TIMEOUT_MS = 0x7fffffff

/** How far the steady clock may drift from the wall clock before it is adjusted. */
const DRIFT_MS = 2

let offset = Date.now() - performance.now()

/**
 * The time of this machine. Fractions of milliseconds come from the steady clock. That clock misses
 * adjustments of the wall clock and sleep of the machine, so each reading is compared with the wall
 * clock.
 */
export const systemClock: Clock = {
  steady: () => performance.now(),

  now() {
    const wall = Date.now()
    const steady = performance.now()
    const estimate = offset + steady
    if (estimate >= wall - DRIFT_MS && estimate <= wall + 1 + DRIFT_MS) return estimate
    offset = wall - steady
    return wall
  },

  setTimeout(callback, ms) {
    let handle: NodeJS.Timeout
    const start = (rest: number): void => {
      handle =
        rest > LONGEST_TIMEOUT_MS
          ? setTimeout(() => start(rest - LONGEST_TIMEOUT_MS), LONGEST_TIMEOUT_MS)
          : setTimeout(callback, rest)
    }
    start(Math.max(0, ms))
    return { cancel: () => clearTimeout(handle) }
  },
}

/** Milliseconds by the steady clock, to measure durations with. */
export function steadyNow(clock: Clock): number {
  return clock.steady?.() ?? clock.now()
}

/**
 * Returns a function that continues the present time of day by the steady clock, in milliseconds
 * since the epoch: for durations within this process whose beginning is a stored point in time.
 */
export function steadyTime(clock: Clock): () => number {
  const offset = clock.now() - steadyNow(clock)
  return () => offset + steadyNow(clock)
}

/**
 * Returns a function for ages, in milliseconds since the epoch: the time of day, or what it would
 * be by the steady clock if that is less. So nothing is removed too early because the time of day
 * was set forward in this process's life.
 */
export function cautiousTime(clock: Clock): () => number {
  const steady = steadyTime(clock)
  return () => Math.min(clock.now(), steady())
}

/** Per signal, because adding and removing an event listener costs more than a whole step. */
const listeners = new WeakMap<AbortSignal, Set<(reason: unknown) => void>>()

/**
 * The functions to call, once and with its reason, when `signal` aborts: add one, and delete it
 * when the work is done. However many there are, the signal has one event listener, which stays.
 */
export function abortListeners(signal: AbortSignal): Set<(reason: unknown) => void> {
  const known = listeners.get(signal)
  if (known !== undefined) return known
  const waiting = new Set<(reason: unknown) => void>()
  listeners.set(signal, waiting)
  signal.addEventListener('abort', () => {
    for (const call of waiting) call(signal.reason)
    waiting.clear()
  })
  return waiting
}

/**
 * Settles as `work` does, or rejects with the signal's reason if that aborts first. `work` then
 * continues, but its result or rejection is ignored.
 */
export function raceAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    work.catch(() => undefined)
    return Promise.reject(signal.reason as Error)
  }
  return new Promise<T>((resolve, reject) => {
    const waiting = abortListeners(signal).add(reject)
    work.then(
      (value) => {
        waiting.delete(reject)
        resolve(value)
      },
      (error: Error) => {
        waiting.delete(reject)
        reject(error)
      },
    )
  })
}

/**
 * Resolves after `ms` milliseconds of `clock`, even beyond the longest delay of Node's timers.
 *
 * @throws the signal's reason once it aborts, or at once if it has aborted already.
 */
export function sleep(
  ms: number,
  signal: AbortSignal | null = null,
  clock: Clock = systemClock,
): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason as Error)
      return
    }
    const timer = clock.setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    const onAbort = (): void => {
      timer.cancel()
      reject(signal!.reason as Error)
    }
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

/** The result of {@link within} after a timeout. */
export const LATE: unique symbol = Symbol('late')

/**
 * Settles as `work` does, or resolves with {@link LATE} after `ms` milliseconds of `clock`. `work`
 * then continues, but its result or rejection is ignored.
 */
export async function within<T>(
  ms: number,
  work: Promise<T>,
  clock: Clock = systemClock,
): Promise<T | typeof LATE> {
  let timer: Timer | undefined
  const late = new Promise<typeof LATE>((resolve) => {
    timer = clock.setTimeout(() => resolve(LATE), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    timer?.cancel()
  }
}

/** Blocks the calling thread for `ms` milliseconds. */
export function sleepSync(ms: number): void {
  if (ms > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/**
 * How long to wait before a retry: of HTTP requests, model calls, webhooks, reconnecting readers,
 * stores and MCP servers.
 *
 * The wait is random between zero and a bound that doubles with each retry ("full jitter"), so that
 * clients that failed at the same time do not retry at the same time.
 */

/** Bounds of the waits, in milliseconds. */
export interface Backoff {
  /** Bound of the first wait; each later bound is twice the previous one. */
  readonly firstMs: number
  /** Bound of all waits. */
  readonly maxMs: number
}

/**
 * Statuses after which the same request may succeed later: timeout, too early (RFC 8470,
 * section 5.2), too many requests, and errors of a server or gateway that may be temporary.
 */
export const TRANSIENT_STATUSES: readonly number[] = [408, 425, 429, 500, 502, 503, 504]

/** Bound of the wait before retry `retry` (1, 2, …), in milliseconds. */
export function backoffBound(retry: number, { firstMs, maxMs }: Backoff): number {
  return Math.min(maxMs, firstMs * 2 ** (retry - 1))
}

/**
 * Wait before retry `retry` (1, 2, …), in milliseconds, not rounded.
 *
 * @param random - from 0 to below 1, like `Math.random`.
 */
export function backoffDelay(
  retry: number,
  backoff: Backoff,
  random: () => number = Math.random,
): number {
  return random() * backoffBound(retry, backoff)
}

/** Resolves in the next turn of the event loop, after all I/O callbacks that are ready. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/**
 * Milliseconds of one turn that all long work of this thread may take together. An iteration of the
 * event loop has two such turns: after its I/O, and after its immediates.
 */
const MAX_TURN_MS = 5

/** What long work there is in one turn began then; the turn lasts until `endTurn` is called. */
let turnBegan: number | null = null
const waiting: (() => void)[] = []

function beginTurn(): number {
  setImmediate(endTurn)
  return (turnBegan = performance.now())
}

/** One work goes on in each turn, the one that waits longest, so that none starves. */
function endTurn(): void {
  turnBegan = null
  const goOn = waiting.shift()
  if (goOn === undefined) return
  beginTurn()
  goOn()
}

/**
 * Divides work on long input, so that everything else in the process is done in between. Works that
 * run at the same time, or one after the other in the same turn, share it.
 */
export class LongWork {
  /** True when the work should wait for the {@link next} turn. */
  get isDue(): boolean {
    return performance.now() - (turnBegan ?? beginTurn()) > MAX_TURN_MS
  }

  next(): Promise<void> {
    if (turnBegan === null) beginTurn()
    return new Promise((resolve) => waiting.push(resolve))
  }
}

/** Does work that yields often, and other work of this process in between. */
export async function inSlices<T>(work: Generator<void, T>): Promise<T> {
  const slices = new LongWork()
  for (;;) {
    const { done, value } = work.next()
    if (done === true) return value
    if (slices.isDue) await slices.next()
  }
}

/** Does the same work at once: for input that is known to be short. */
export function atOnce<T>(work: Generator<void, T>): T {
  for (;;) {
    const { done, value } = work.next()
    if (done === true) return value
  }
}

/** Formats float seconds since the epoch as ISO 8601 in UTC with milliseconds. */
export function isoTime(ts: number): string {
  return new Date(Math.round(ts * 1000)).toISOString()
}
