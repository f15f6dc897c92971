/**
 * The time axis of a run. Pure.
 *
 * Hours in which a run only waited would leave no room for its work. So all the time in which
 * nothing worked takes at most a third of the axis: each wait keeps its length up to a limit, and
 * what is longer is drawn as long as that, with a mark.
 */

/** @typedef {import('./spans.js').Span} Span */

/** Kinds that only wait. */
const WAITING = new Set(['gate', 'wait'])
/** How long all waits may be, as a part of the time of work. */
const SHARE = 0.5

/** @param {Span} span */
export function isWait({ kind }) {
  return WAITING.has(kind)
}

/**
 * The times in which something works, in order, without those that overlap.
 *
 * @param {readonly Span[]} spans
 * @param {number} end of what has no end yet
 * @returns {[start: number, end: number][]}
 */
function workOf(spans, end) {
  const sorted = spans.filter((span) => !isWait(span)).sort((a, b) => a.start - b.start)
  /** @type {[number, number][]} */
  const work = []
  for (const span of sorted) {
    const until = span.end ?? end
    const last = work.at(-1)
    if (last !== undefined && span.start <= last[1]) last[1] = Math.max(last[1], until)
    else if (until > span.start) work.push([span.start, until])
  }
  return work
}

/**
 * The longest that a wait is drawn, so that all of them take no more than `room`.
 *
 * @param {readonly number[]} waits
 * @param {number} room
 */
export function limitOf(waits, room) {
  const sorted = [...waits].sort((a, b) => a - b)
  let left = room
  for (const [i, wait] of sorted.entries()) {
    const each = left / (sorted.length - i)
    if (wait > each) return each
    left -= wait
  }
  return Infinity
}

export class TimeScale {
  /** Times, and where each is on the axis. @type {number[]} */
  #times = [0]
  /** @type {number[]} */
  #places = [0]
  /** The waits that are drawn shorter. @type {(readonly [start: number, end: number])[]} */
  breaks = []

  /**
   * @param {readonly Span[]} spans
   * @param {number} end seconds from the first event to the end of the axis
   */
  constructor(spans, end) {
    const work = workOf(spans, end)
    const total = work.reduce((sum, [from, to]) => sum + to - from, 0)
    /** @type {[number, number][]} */
    const gaps = []
    let at = 0
    for (const [from, to] of [...work, /** @type {const} */ ([end, end])]) {
      if (from > at) gaps.push([at, from])
      at = Math.max(at, to)
    }
    const limit = total === 0 ? Infinity : limitOf(gaps.map(([a, b]) => b - a), total * SHARE)
    let place = 0
    let time = 0
    const go = (/** @type {number} */ to, /** @type {number} */ length) => {
      place += length
      time = to
      this.#times.push(time)
      this.#places.push(place)
    }
    for (const [from, to] of gaps) {
      if (from > time) go(from, from - time)
      if (to - from > limit) this.breaks.push([from, to])
      go(to, Math.min(to - from, limit))
    }
    if (end > time) go(end, end - time)
  }

  /** Where a time is, from 0 to 1. @param {number} time */
  at(time) {
    const length = this.#places.at(-1) ?? 0
    return length === 0 ? 0 : between(time, this.#times, this.#places) / length
  }

  /** The time at a place. @param {number} part from 0 to 1 */
  timeAt(part) {
    return between(part * (this.#places.at(-1) ?? 0), this.#places, this.#times)
  }
}

/**
 * @param {number} value
 * @param {readonly number[]} from ascending
 * @param {readonly number[]} to
 */
function between(value, from, to) {
  let low = 0
  let high = from.length - 1
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if (/** @type {number} */ (from[middle]) <= value) low = middle
    else high = middle
  }
  const [a, b] = [from[low] ?? 0, from[high] ?? 0]
  const [c, d] = [to[low] ?? 0, to[high] ?? 0]
  if (b <= a) return value >= b ? d : c
  return c + Math.min(Math.max((value - a) / (b - a), 0), 1) * (d - c)
}
