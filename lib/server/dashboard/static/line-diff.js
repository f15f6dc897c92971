/** Compares two texts line by line, within bounds: with the fewest edits, or roughly. */

/** Lines that a hunk shows around what has changed. */
const CONTEXT = 3
/** Beyond so many lines on either side nothing is compared. */
const MOST_LINES = 50_000
/** Beyond so many lines added and removed, the changed part is shown as one block. */
const MOST_EDITS = 800

/** A changed region: lines `a0` to `a1` of the text before, `b0` to `b1` of the text after. */
/** @typedef {{ a0: number, a1: number, b0: number, b1: number }} Region */

/**
 * The lines of a unified diff without head, and how many are added and removed; null when the texts
 * have too many lines.
 *
 * @param {string} before
 * @param {string} after
 * @returns {{ lines: readonly string[], added: number, removed: number } | null}
 */
export function diffTexts(before, after) {
  const a = linesOf(before)
  const b = linesOf(after)
  if (a.length > MOST_LINES || b.length > MOST_LINES) return null
  const regions = regionsOf(a, b)
  const sum = (/** @type {(region: Region) => number} */ count) =>
    regions.reduce((total, region) => total + count(region), 0)
  return {
    lines: hunksOf(regions).flatMap((hunk) => hunkLines(hunk, a, b)),
    added: sum(({ b0, b1 }) => b1 - b0),
    removed: sum(({ a0, a1 }) => a1 - a0),
  }
}

/** Each with its newline: a last line without one differs from one with it. @param {string} text */
function linesOf(text) {
  return text === '' ? [] : text.split(/(?<=\n)/)
}

/** @param {readonly string[]} a @param {readonly string[]} b */
function regionsOf(a, b) {
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1
  let end = 0
  const most = Math.min(a.length, b.length) - start
  while (end < most && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1
  const [left, right] = [a.slice(start, a.length - end), b.slice(start, b.length - end)]
  if (left.length === 0 && right.length === 0) return []
  const found = shortest(left, right) ?? [{ a0: 0, a1: left.length, b0: 0, b1: right.length }]
  return found.map(({ a0, a1, b0, b1 }) => ({
    a0: a0 + start, a1: a1 + start, b0: b0 + start, b1: b1 + start,
  }))
}

/**
 * The fewest edits (Myers, "An O(ND) Difference Algorithm and Its Variations"); null beyond
 * `MOST_EDITS`.
 *
 * @param {readonly string[]} a
 * @param {readonly string[]} b
 */
function shortest(a, b) {
  const most = Math.min(MOST_EDITS, a.length + b.length)
  const middle = most + 1
  const reach = new Int32Array(2 * most + 3)
  /** @type {Int32Array[]} */
  const trace = []
  for (let edits = 0; edits <= most; edits++) {
    // The step back from `edits` looks at the diagonals around it.
    trace.push(reach.slice(middle - edits - 1, middle + edits + 2))
    for (let k = -edits; k <= edits; k += 2) {
      const [under, over] = [reach[middle + k - 1] ?? 0, reach[middle + k + 1] ?? 0]
      let x = k === -edits || (k !== edits && under < over) ? over : under + 1
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1
      reach[middle + k] = x
      if (x >= a.length && x - k >= b.length) return walkBack(trace, a.length, b.length)
    }
  }
  return null
}

/**
 * @param {readonly Int32Array[]} trace
 * @param {number} aEnd
 * @param {number} bEnd
 */
function walkBack(trace, aEnd, bEnd) {
  /** @type {Region[]} */
  const regions = []
  let [x, y] = [aEnd, bEnd]
  for (let edits = trace.length - 1; edits > 0; edits--) {
    const before = trace[edits] ?? new Int32Array()
    const at = (/** @type {number} */ k) => before[k + edits + 1] ?? 0
    const k = x - y
    const isAdded = k === -edits || (k !== edits && at(k - 1) < at(k + 1))
    const from = isAdded ? k + 1 : k - 1
    const [px, py] = [at(from), at(from) - from]
    const edit = isAdded
      ? { a0: px, a1: px, b0: py, b1: py + 1 }
      : { a0: px, a1: px + 1, b0: py, b1: py }
    const next = regions.at(-1)
    if (next !== undefined && next.a0 === edit.a1 && next.b0 === edit.b1)
      Object.assign(next, { a0: edit.a0, b0: edit.b0 })
    else regions.push(edit)
    ;[x, y] = [px, py]
  }
  return regions.reverse()
}

/** Regions that are near each other share a hunk. @param {readonly Region[]} regions */
function hunksOf(regions) {
  /** @type {Region[][]} */
  const hunks = []
  for (const region of regions) {
    const last = hunks.at(-1)
    if (last !== undefined && region.a0 - (last.at(-1)?.a1 ?? 0) <= 2 * CONTEXT) last.push(region)
    else hunks.push([region])
  }
  return hunks
}

/**
 * @param {readonly Region[]} hunk
 * @param {readonly string[]} a
 * @param {readonly string[]} b
 */
function hunkLines(hunk, a, b) {
  const [first, last] = [hunk[0], hunk.at(-1)]
  if (first === undefined || last === undefined) return []
  const before = Math.min(CONTEXT, first.a0)
  const after = Math.min(CONTEXT, a.length - last.a1)
  const [a0, a1] = [first.a0 - before, last.a1 + after]
  const [b0, b1] = [first.b0 - before, last.b1 + after]
  const lines = [`@@ -${range(a0, a1)} +${range(b0, b1)} @@`]
  let at = a0
  for (const region of hunk) {
    lines.push(...shown(' ', a.slice(at, region.a0)))
    lines.push(...shown('-', a.slice(region.a0, region.a1)))
    lines.push(...shown('+', b.slice(region.b0, region.b1)))
    at = region.a1
  }
  return [...lines, ...shown(' ', a.slice(at, a1))]
}

/** @param {number} from @param {number} to */
function range(from, to) {
  return `${to > from ? from + 1 : from},${to - from}`
}

/** @param {string} sign @param {readonly string[]} lines */
function shown(sign, lines) {
  return lines.flatMap((line) =>
    line.endsWith('\n')
      ? [`${sign}${line.slice(0, -1)}`]
      : [`${sign}${line}`, '\\ No newline at end of file'],
  )
}
