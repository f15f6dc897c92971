/**
 * Three-way merge of texts by lines: what one side changed and the other did not is taken; equal
 * changes of both are taken once; changes that overlap or touch are a conflict.
 *
 * @module
 */
import { compareLines, linesOf, type LineChange } from '../../internal/line-diff.js'

/**
 * The merged content, null for a conflict. Contents with NUL bytes are never merged. Lines are
 * compared byte by byte with their ends, so that these are kept. A generator, see
 * `internal/time.ts`.
 */
export function* mergeTexts(
  base: Uint8Array,
  ours: Uint8Array,
  theirs: Uint8Array,
): Generator<void, Buffer | null> {
  if ([base, ours, theirs].some((content) => content.includes(0))) return null
  const [o, a, b] = [
    yield* linesOf(latin1(base)),
    yield* linesOf(latin1(ours)),
    yield* linesOf(latin1(theirs)),
  ]
  const [fromOurs, fromTheirs] = [yield* compareLines(o, a), yield* compareLines(o, b)]
  const merged: string[] = []
  let [at, i, j] = [0, 0, 0]
  while (i < fromOurs.length || j < fromTheirs.length) {
    const [x, y] = [fromOurs[i], fromTheirs[j]]
    let change = x ?? y!
    let lines = x === undefined ? b : a
    if (x !== undefined && y !== undefined) {
      if (isBefore(y, x)) [change, lines] = [y, b]
      else if (!isBefore(x, y) && !isEqual(x, a, y, b)) return null
      else if (!isBefore(x, y)) j += 1
    }
    if (lines === a) i += 1
    else j += 1
    merged.push(o.slice(at, change.aStart).join(''))
    merged.push(lines.slice(change.bStart, change.bEnd).join(''))
    at = change.aEnd
    yield
  }
  merged.push(o.slice(at).join(''))
  return Buffer.from(merged.join(''), 'latin1')
}

/** One character per byte. */
function latin1(content: Uint8Array): string {
  return Buffer.from(content.buffer, content.byteOffset, content.length).toString('latin1')
}

/** True when at least one line of the old text is between the changes. */
function isBefore(first: LineChange, second: LineChange): boolean {
  return first.aEnd < second.aStart
}

function isEqual(
  x: LineChange,
  a: readonly string[],
  y: LineChange,
  b: readonly string[],
): boolean {
  const length = x.bEnd - x.bStart
  if (x.aStart !== y.aStart || x.aEnd !== y.aEnd || length !== y.bEnd - y.bStart) return false
  for (let i = 0; i < length; i++) if (a[x.bStart + i] !== b[y.bStart + i]) return false
  return true
}
