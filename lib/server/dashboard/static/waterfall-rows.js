/** The rows of the waterfall: the spans of each iteration below a head that sums them up. Pure. */

/** @typedef {import('./spans.js').Span} Span */

/**
 * `end` null while one of its spans lasts.
 *
 * @typedef {{
 *   iteration: number,
 *   start: number,
 *   end: number | null,
 *   spans: Span[],
 *   bad: number,
 *   tokens: number,
 *   cost: number,
 *   costKnown: boolean,
 * }} Group
 * @typedef {{ readonly group: Group, readonly span: Span | null }} WaterfallRow
 */

/**
 * @param {readonly Span[]} spans in any order
 * @returns {Group[]} by iteration, with their spans in the order of their starts
 */
export function groupsOf(spans) {
  /** @type {Map<number, Group>} */
  const groups = new Map()
  for (const span of spans) {
    const { iteration, start } = span
    let group = groups.get(iteration)
    if (group === undefined) {
      const sums = { bad: 0, tokens: 0, cost: 0, costKnown: true }
      group = { iteration, start, end: start, spans: [], ...sums }
      groups.set(iteration, group)
    }
    group.spans.push(span)
    group.start = Math.min(group.start, start)
    group.end = group.end === null || span.end === null ? null : Math.max(group.end, span.end)
    group.tokens += span.tokens
    group.cost += span.cost ?? 0
    group.costKnown &&= span.cost !== null
    if (span.kind !== 'check' && (span.state === 'bad' || span.state === 'lost')) group.bad += 1
  }
  for (const group of groups.values()) {
    group.spans.sort((a, b) => a.start - b.start || a.seq - b.seq)
  }
  return [...groups.values()].sort((a, b) => a.iteration - b.iteration)
}

/**
 * @param {readonly Group[]} groups
 * @param {(iteration: number) => boolean} isFolded
 * @returns {WaterfallRow[]}
 */
export function rowsOf(groups, isFolded) {
  return groups.flatMap((group) => [
    { group, span: null },
    ...(isFolded(group.iteration) ? [] : group.spans.map((span) => ({ group, span }))),
  ])
}

/** Places that the chart above the rows tells apart. */
export const BINS = 400

/**
 * Where on the axis something of a kind goes on, as ranges of bins: what is too small to be seen is
 * one bin wide, and what touches is one range.
 *
 * @param {readonly Span[]} spans of one kind
 * @param {(time: number) => number} at from 0 to 1
 * @param {number} now the end of what lasts
 * @returns {[from: number, to: number][]} at most half as many as there are bins
 */
export function rangesOf(spans, at, now) {
  const taken = new Uint8Array(BINS)
  for (const { start, end } of spans) {
    const from = Math.min(Math.floor(at(start) * BINS), BINS - 1)
    const to = Math.min(Math.ceil(at(end ?? now) * BINS), BINS)
    taken.fill(1, from, Math.max(to, from + 1))
  }
  /** @type {[number, number][]} */
  const ranges = []
  for (let i = 0; i < BINS; i++) {
    if (taken[i] === 0) continue
    const last = ranges.at(-1)
    if (last?.[1] === i) last[1] = i + 1
    else ranges.push([i, i + 1])
  }
  return ranges
}

/**
 * Tokens and cost so far at each place of the axis, as parts of all.
 *
 * @param {readonly Span[]} spans
 * @param {(time: number) => number} at
 */
export function sumsOf(spans, at) {
  const tokens = new Float64Array(BINS)
  const cost = new Float64Array(BINS)
  for (const span of spans) {
    if (span.tokens === 0 || span.end === null) continue
    const bin = Math.min(Math.floor(at(span.end) * BINS), BINS - 1)
    tokens[bin] = (tokens[bin] ?? 0) + span.tokens
    cost[bin] = (cost[bin] ?? 0) + (span.cost ?? 0)
  }
  return { tokens: accumulated(tokens), cost: accumulated(cost) }
}

/** @param {Float64Array} values @returns {number[]} */
function accumulated(values) {
  const total = values.reduce((sum, value) => sum + value, 0)
  let sum = 0
  return [...values].map((value) => (total === 0 ? 0 : (sum += value) / total))
}

/**
 * A time on the axis, such as `1:05:03` or `2.5 s`.
 *
 * @param {number} seconds
 * @param {number} [apart] seconds from one such time to the next
 */
export function elapsed(seconds, apart = 0.001) {
  if (seconds < 60) {
    const digits = Math.min(Math.max(Math.ceil(-Math.log10(Math.max(apart, 1e-3))), 0) + 1, 3)
    return `${Number(seconds.toFixed(digits))} s`
  }
  const whole = Math.round(seconds)
  const [h, m, s] = [Math.floor(whole / 3_600), Math.floor(whole / 60) % 60, whole % 60]
  const two = (/** @type {number} */ part) => String(part).padStart(2, '0')
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`
}
