/**
 * Unified diffs, made here because a workspace's version control must not be run: its configuration
 * can start programs.
 *
 * @module
 */
import { hash } from 'node:crypto'
import { checkString } from '../../internal/options.js'
import { redactor } from '../redaction/redactor.js'
import { decodeText } from './text.js'
import type { FileChange } from './workspace.js'

/** A diff of two texts; those that differ too much are shown as one replaced block. */
export interface TextDiff {
  /** Unified format with three lines of context; empty when the texts are equal. */
  readonly diff: string
  readonly added_lines: number
  readonly removed_lines: number
}

/** Lines of context around a change. */
const CONTEXT = 3
/** Bytes of a diff, unless the caller sets another limit. */
const MAX_DIFF_BYTES = 16 * 1024
/** Insertions and deletions after which two texts count as wholly different. */
const MAX_EDITS = 1_000
/** Comparisons of lines after which two texts count as wholly different. */
const MAX_COMPARISONS = 5_000_000
/** Content larger than this is not compared. */
const MAX_COMPARED_BYTES = 4 * 1024 * 1024

/**
 * The change from `before` to `after`; null stands for a file that does not exist. Content that is
 * not UTF-8 text, or over 4 MiB, is not compared: its diff is empty and its counts are 0.
 */
export function fileChange(
  path: string,
  before: Uint8Array | null,
  after: Uint8Array | null,
): FileChange {
  const change = before === null ? 'created' : after === null ? 'deleted' : 'modified'
  const [old, now] = [comparableText(before), comparableText(after)]
  const hashes = { before_sha256: hashOf(before), after_sha256: hashOf(after) }
  if (old === null || now === null) {
    return { path, change, added_lines: 0, removed_lines: 0, diff: '', ...hashes }
  }
  const names = {
    before: before === null ? '/dev/null' : `a/${path}`,
    after: after === null ? '/dev/null' : `b/${path}`,
  }
  return { path, change, ...diffText(old, now, names), ...hashes }
}

/** The redacted text of a file; empty for none, null when it is binary or too large. */
function comparableText(content: Uint8Array | null): string | null {
  if (content === null) return ''
  const text = content.length > MAX_COMPARED_BYTES ? null : decodeText(content)
  // A diff shows some lines of a secret in several lines, which could not be recognized.
  return text === null ? null : redactor.lines(text)
}

function hashOf(content: Uint8Array | null): string | null {
  return content === null ? null : hash('sha256', content)
}

/**
 * Compares two texts line by line (E. Myers, "An O(ND) difference algorithm", 1986). The work is
 * bounded: texts with more than 1000 differing lines are shown as one block replaced by another.
 *
 * @param names the file names after `---` and `+++`
 * @param maxBytes bytes of the diff; a last line tells how many lines did not fit
 */
export function diffText(
  before: string,
  after: string,
  names: { readonly before: string; readonly after: string },
  maxBytes: number = MAX_DIFF_BYTES,
): TextDiff {
  checkString('before', before)
  checkString('after', after)
  const [a, b] = [linesOf(before), linesOf(after)]
  const changes = compare(a, b)
  if (changes.length === 0) return { diff: '', added_lines: 0, removed_lines: 0 }
  let [added, removed] = [0, 0]
  for (const change of changes) {
    removed += change.aEnd - change.aStart
    added += change.bEnd - change.bStart
  }
  const diff = render(a, b, changes, names, maxBytes)
  return { diff, added_lines: added, removed_lines: removed }
}

/** Lines with their terminators: `a` and `a\n` are different lines. */
function linesOf(text: string): readonly string[] {
  return text === '' ? [] : text.split(/(?<=\n)/)
}

/** Lines aStart…aEnd of the old text became lines bStart…bEnd of the new one. */
interface Change {
  readonly aStart: number
  readonly aEnd: number
  readonly bStart: number
  readonly bEnd: number
}

function compare(a: readonly string[], b: readonly string[]): readonly Change[] {
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1
  let [aEnd, bEnd] = [a.length, b.length]
  while (aEnd > start && bEnd > start && a[aEnd - 1] === b[bEnd - 1]) {
    aEnd -= 1
    bEnd -= 1
  }
  if (start === aEnd && start === bEnd) return []
  const whole = [{ aStart: start, aEnd, bStart: start, bEnd }]
  if (start === aEnd || start === bEnd) return whole
  const numbers = new Map<string, number>()
  const inner = (lines: readonly string[], end: number): Int32Array =>
    Int32Array.from(lines.slice(start, end), (line) => {
      const number = numbers.get(line) ?? numbers.size
      numbers.set(line, number)
      return number
    })
  const trace = search(inner(a, aEnd), inner(b, bEnd))
  return trace === null ? whole : retrace(trace, aEnd - start, bEnd - start, start)
}

/** For each number of edits, how far along `a` each diagonal got (offset by that number). */
type Trace = readonly Int32Array[]

/** Finds the smallest number of edits; null when that exceeds the bounds. */
function search(a: Int32Array, b: Int32Array): Trace | null {
  const trace: Int32Array[] = []
  const bound = Math.min(a.length + b.length, MAX_EDITS)
  // reach[k + bound + 1]: the furthest x on diagonal k, where k = x - y.
  const reach = new Int32Array(2 * bound + 3)
  const middle = bound + 1
  let comparisons = 0
  for (let edits = 0; edits <= bound; edits++) {
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && reach[middle + k - 1]! < reach[middle + k + 1]!)
      let x = down ? reach[middle + k + 1]! : reach[middle + k - 1]! + 1
      let y = x - k
      while (x < a.length && y < b.length && a[x] === b[y]) {
        x += 1
        y += 1
        comparisons += 1
      }
      reach[middle + k] = x
      comparisons += 1
      if (x >= a.length && y >= b.length) {
        trace.push(reach.slice(middle - edits, middle + edits + 1))
        return trace
      }
    }
    trace.push(reach.slice(middle - edits, middle + edits + 1))
    if (comparisons > MAX_COMPARISONS) return null
  }
  return null
}

/** Walks the trace back from the end and joins neighbouring edits into changes. */
function retrace(trace: Trace, aLength: number, bLength: number, shift: number): readonly Change[] {
  const changes: Change[] = []
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

function render(
  a: readonly string[],
  b: readonly string[],
  changes: readonly Change[],
  names: { readonly before: string; readonly after: string },
  maxBytes: number,
): string {
  const writer = new DiffWriter(maxBytes)
  writer.line('--- ', oneLine(names.before))
  writer.line('+++ ', oneLine(names.after))
  for (let i = 0; i < changes.length; ) {
    let last = i
    while (
      last + 1 < changes.length &&
      changes[last + 1]!.aStart - changes[last]!.aEnd <= 2 * CONTEXT
    ) {
      last += 1
    }
    renderHunk(writer, a, b, changes.slice(i, last + 1))
    i = last + 1
  }
  return writer.finish()
}

function renderHunk(
  writer: DiffWriter,
  a: readonly string[],
  b: readonly string[],
  changes: readonly Change[],
): void {
  const [first, last] = [changes[0]!, changes.at(-1)!]
  const lead = Math.min(CONTEXT, first.aStart)
  const end = Math.min(a.length, last.aEnd + CONTEXT)
  const bStart = first.bStart - lead
  const bEnd = last.bEnd + (end - last.aEnd)
  const aSpan = span(first.aStart - lead, end)
  writer.line(`@@ -${aSpan} +${span(bStart, bEnd)} @@`, '')
  let at = first.aStart - lead
  for (const change of changes) {
    for (; at < change.aStart; at++) writer.line(' ', a[at]!)
    for (; at < change.aEnd; at++) writer.line('-', a[at]!)
    for (let j = change.bStart; j < change.bEnd; j++) writer.line('+', b[j]!)
  }
  for (; at < end; at++) writer.line(' ', a[at]!)
}

/** `start,count` in the notation of unified diffs, where an empty range names the line before. */
function span(start: number, end: number): string {
  const count = end - start
  return `${count === 0 ? start : start + 1}${count === 1 ? '' : `,${count}`}`
}

/** Quotes a file name with control characters, so that it cannot break its header line. */
export function oneLine(name: string): string {
  return /[\u0000-\u001f\u007f]/.test(name) ? JSON.stringify(name) : name
}

/** Collects lines up to a number of bytes, and counts the lines that do not fit. */
class DiffWriter {
  readonly #parts: string[] = []
  #bytesLeft: number
  #skipped = 0

  constructor(maxBytes: number) {
    this.#bytesLeft = maxBytes - 64
  }

  line(prefix: string, line: string): void {
    const ended = line.endsWith('\n') || !/^[-+ ]$/.test(prefix)
    const text = `${prefix}${line}${line.endsWith('\n') ? '' : '\n'}`
    const part = ended ? text : `${text}\\ No newline at end of file\n`
    const size = Buffer.byteLength(part)
    if (this.#skipped > 0 || size > this.#bytesLeft) this.#skipped += 1
    else {
      this.#bytesLeft -= size
      this.#parts.push(part)
    }
  }

  finish(): string {
    if (this.#skipped > 0) this.#parts.push(`… ${this.#skipped} more lines of this diff\n`)
    return this.#parts.join('')
  }
}
