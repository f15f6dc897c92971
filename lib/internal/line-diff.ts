/**
 * Which lines of a text became which lines of another (E. Myers, "An O(ND) difference algorithm and
 * its variations", 1986). The work is bounded, and done in parts: these functions are generators
 * that yield often, see `internal/time.ts`.
 *
 * @module
 */

/** Insertions and deletions after which two texts count as wholly different. */
const MAX_EDITS = 1_000
/** Comparisons of lines after which two texts count as wholly different. */
const MAX_COMPARISONS = 5_000_000
/** Lines that are read, or compared, between two yields. */
const SLICE = 5_000

/** Lines aStart…aEnd of the old text became lines bStart…bEnd of the new one. */
export interface LineChange {
  readonly aStart: number
  readonly aEnd: number
  readonly bStart: number
  readonly bEnd: number
}

/** Lines with their terminators: `a` and `a\n` are different lines. */
export function* linesOf(text: string): Generator<void, readonly string[]> {
  const lines: string[] = []
  for (let start = 0; start < text.length; ) {
    const end = text.indexOf('\n', start) + 1 || text.length
    lines.push(text.slice(start, end))
    start = end
    if (lines.length % SLICE === 0) yield
  }
  return lines
}

/**
 * The shortest changes from `a` to `b`, in order, with at least one equal line between two of them.
 * Texts with more than 1000 differing lines are one block replaced by another.
 */
export function* compareLines(
  a: readonly string[],
  b: readonly string[],
): Generator<void, readonly LineChange[]> {
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) {
    start += 1
    if (start % SLICE === 0) yield
  }
  let [aEnd, bEnd] = [a.length, b.length]
  while (aEnd > start && bEnd > start && a[aEnd - 1] === b[bEnd - 1]) {
    aEnd -= 1
    bEnd -= 1
    if (aEnd % SLICE === 0) yield
  }
  if (start === aEnd && start === bEnd) return []
  const whole = [{ aStart: start, aEnd, bStart: start, bEnd }]
  if (start === aEnd || start === bEnd) return whole
  const numbers = new Map<string, number>()
  const old = yield* numbered(a, start, aEnd, numbers)
  const now = yield* numbered(b, start, bEnd, numbers)
  const trace = yield* search(old, now)
  return trace === null ? whole : retrace(trace, aEnd - start, bEnd - start, start)
}

/** The number of lines in changes, as `added` and `removed`. */
export function countLines(changes: readonly LineChange[]): {
  readonly added: number
  readonly removed: number
} {
  let [added, removed] = [0, 0]
  for (const { aStart, aEnd, bStart, bEnd } of changes) {
    removed += aEnd - aStart
    added += bEnd - bStart
  }
  return { added, removed }
}

/** Equal lines get equal numbers: those are compared faster. */
function* numbered(
  lines: readonly string[],
  start: number,
  end: number,
  numbers: Map<string, number>,
): Generator<void, Int32Array> {
  const result = new Int32Array(end - start)
  for (let i = start; i < end; i++) {
    const line = lines[i]!
    let number = numbers.get(line)
    if (number === undefined) numbers.set(line, (number = numbers.size))
    result[i - start] = number
    if (i % SLICE === 0) yield
  }
  return result
}

/** For each number of edits, how far along `a` each diagonal got (offset by that number). */
type Trace = readonly Int32Array[]

/** Finds the smallest number of edits; null when that exceeds the bounds. */
function* search(a: Int32Array, b: Int32Array): Generator<void, Trace | null> {
  const trace: Int32Array[] = []
  const bound = Math.min(a.length + b.length, MAX_EDITS)
  // reach[k + bound + 1]: the furthest x on diagonal k, where k = x - y.
  const reach = new Int32Array(2 * bound + 3)
  const middle = bound + 1
  let comparisons = 0
  let yielded = 0
  for (let edits = 0; edits <= bound; edits++) {
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && reach[middle + k - 1]! < reach[middle + k + 1]!)
      let x = down ? reach[middle + k + 1]! : reach[middle + k - 1]! + 1
      let y = x - k
      const from = x
      while (x < a.length && y < b.length && a[x] === b[y]) {
        x += 1
        y += 1
      }
      comparisons += x - from + 1
      reach[middle + k] = x
      if (x >= a.length && y >= b.length) {
        trace.push(reach.slice(middle - edits, middle + edits + 1))
        return trace
      }
    }
    trace.push(reach.slice(middle - edits, middle + edits + 1))
    if (comparisons > MAX_COMPARISONS) return null
    if (comparisons - yielded < SLICE) continue
    yielded = comparisons
    yield
  }
  return null
}

/** Walks the trace back from the end and joins neighbouring edits into changes. */
function retrace(
  trace: Trace,
  aLength: number,
  bLength: number,
  shift: number,
): readonly LineChange[] {
  const changes: LineChange[] = []
  let [x, y] = [aLength, bLength]
  const add = (aStart: number, aEnd: number, bStart: number, bEnd: number): void => {
    const next = changes.at(-1)
    const joins = next !== undefined && next.aStart === aEnd + shift && next.bStart === bEnd + shift
    if (joins) changes.pop()
    changes.push({
      aStart: aStart + shift,
      bStart: bStart + shift,
      aEnd: joins ? next.aEnd : aEnd + shift,
      bEnd: joins ? next.bEnd : bEnd + shift,
    })
  }
  for (let edits = trace.length - 1; edits > 0; edits--) {
    const before = trace[edits - 1]!
    const at = (k: number): number => before[k + edits - 1] ?? -1
    const k = x - y
    const down = k === -edits || (k !== edits && at(k - 1) < at(k + 1))
    const fromX = down ? at(k + 1) : at(k - 1)
    const fromY = fromX - (down ? k + 1 : k - 1)
    if (down) add(fromX, fromX, fromY, fromY + 1)
    else add(fromX, fromX + 1, fromY, fromY)
    ;[x, y] = [fromX, fromY]
  }
  return changes.reverse()
}
