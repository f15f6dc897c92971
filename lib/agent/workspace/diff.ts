/**
 * Unified diffs, made here because a workspace's version control must not be run: its configuration
 * can start programs.
 *
 * Texts are compared as they are, and the lines that a diff shows are redacted afterwards, with
 * what stands around them: so a changed secret is a change, and none is shown.
 *
 * @module
 */
import { hash } from '../../internal/hash.js'
import { atOnce, inSlices } from '../../internal/time.js'
import { checkString } from '../../internal/options.js'
import { redactor } from '../redaction/redactor.js'
import { compareLines, countLines, linesOf, type LineChange } from '../../internal/line-diff.js'
import { decodeText, oneLine } from './text.js'
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
/** Content larger than this is not compared. */
export const MAX_COMPARED_BYTES: number = 4 * 1024 * 1024
/** UTF-16 units that are redacted at once, and those around them that may belong to a secret. */
const [REDACTED_AT_ONCE, MARGIN] = [128 * 1024, 32 * 1024]
/** Lines that are written between two yields. */
const SLICE = 5_000

/**
 * The change from `before` to `after`; null stands for a file that does not exist. Content that is
 * not UTF-8 text, or over 4 MiB, is not compared: its diff is empty and its counts are 0.
 */
export async function fileChange(
  path: string,
  before: Uint8Array | null,
  after: Uint8Array | null,
): Promise<FileChange> {
  const change = before === null ? 'created' : after === null ? 'deleted' : 'modified'
  const [old, now] = [comparableText(before), comparableText(after)]
  const hashes = { before_sha256: hashOf(before), after_sha256: hashOf(after) }
  if (old === null || now === null) {
    return { path, change, added_lines: 0, removed_lines: 0, diff: '', ...hashes }
  }
  const names = diffNames(path, path, before === null, after === null)
  const { added, removed, text } = await inSlices(renderDiff(old, now, names, MAX_DIFF_BYTES))
  return { path, change, added_lines: added, removed_lines: removed, diff: text, ...hashes }
}

/** The text of a file; empty for none, null when it is binary or too large. */
export function comparableText(content: Uint8Array | null): string | null {
  if (content === null) return ''
  return content.length > MAX_COMPARED_BYTES ? null : decodeText(content)
}

function hashOf(content: Uint8Array | null): string | null {
  return content === null ? null : hash('sha256', content)
}

/** The names of a file before and after, as diffs have them. */
export interface DiffNames {
  readonly before: string
  readonly after: string
}

/** The names after `---` and `+++`. */
export function diffNames(
  oldPath: string,
  path: string,
  isNew: boolean,
  isGone: boolean,
): DiffNames {
  return {
    before: isNew ? '/dev/null' : `a/${oldPath}`,
    after: isGone ? '/dev/null' : `b/${path}`,
  }
}

/**
 * Compares two texts line by line. The work is bounded: texts with more than 1000 differing lines
 * are shown as one block replaced by another.
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
  const { added, removed, text } = atOnce(renderDiff(before, after, names, maxBytes, 'as it is'))
  return { diff: text, added_lines: added, removed_lines: removed }
}

/** A diff as it is shown. */
export interface RenderedDiff {
  /** In the unified format; empty without changes. */
  readonly text: string
  /** True when lines are missing, because of the limit. */
  readonly cut: boolean
  readonly added: number
  readonly removed: number
  /** True when shown lines held secrets. */
  readonly redacted: boolean
}

/** Renders what changed between two texts. @param maxBytes bytes of the diff */
export function* renderDiff(
  before: string,
  after: string,
  names: DiffNames,
  maxBytes: number,
  how: 'redacted' | 'as it is' = 'redacted',
): Generator<void, RenderedDiff> {
  const { comparison, redacted } = how === 'redacted'
    ? yield* compareRedacted(before, after)
    : { comparison: yield* compareTexts(before, after), redacted: false }
  const { text, cut } = yield* unifiedDiff(comparison, names, maxBytes)
  return { text, cut, ...countLines(comparison.changes), redacted }
}

/** The lines of two texts, and which of them changed. */
export interface Comparison {
  readonly a: readonly string[]
  readonly b: readonly string[]
  readonly changes: readonly LineChange[]
}

/** See `line-diff.ts`. */
export function* compareTexts(before: string, after: string): Generator<void, Comparison> {
  const a = yield* linesOf(before)
  const b = yield* linesOf(after)
  return { a, b, changes: yield* compareLines(a, b) }
}

/** The same with the lines redacted that a diff shows; `redacted` when that altered any. */
export function* compareRedacted(
  before: string,
  after: string,
): Generator<void, { readonly comparison: Comparison; readonly redacted: boolean }> {
  const comparison = yield* compareTexts(before, after)
  const hunks = hunksOf(comparison)
  const a = yield* redactShown(comparison.a, hunks.map(({ aStart, aEnd }) => [aStart, aEnd]))
  const b = yield* redactShown(comparison.b, hunks.map(({ bStart, bEnd }) => [bStart, bEnd]))
  if (a === comparison.a && b === comparison.b) return { comparison, redacted: false }
  // A line of both texts may be part of a secret in one of them only.
  const shown = [...a]
  for (const { aStart, bStart, changes, aEnd } of hunks) {
    let [at, other] = [aStart, bStart]
    for (const change of [...changes, { aStart: aEnd, aEnd, bStart: 0, bEnd: 0 }]) {
      for (; at < change.aStart; at++, other++) {
        if (b[other] !== comparison.b[other]) shown[at] = b[other]!
      }
      ;[at, other] = [change.aEnd, change.bEnd]
    }
  }
  return { comparison: { ...comparison, a: shown, b }, redacted: true }
}

/** Redacts the lines in these ranges; the same array when that alters none. */
function* redactShown(
  lines: readonly string[],
  ranges: readonly (readonly [start: number, end: number])[],
): Generator<void, readonly string[]> {
  let shown: string[] | undefined
  let range = 0
  for (let start = 0, end: number; start < lines.length; start = end) {
    end = endOf(lines, start, REDACTED_AT_ONCE, 1)
    while (range < ranges.length && ranges[range]![1] <= start) range += 1
    if (range === ranges.length) break
    if (ranges[range]![0] >= end) continue
    const from = endOf(lines, start - 1, MARGIN, -1) + 1
    const text = lines.slice(from, endOf(lines, end, MARGIN, 1)).join('')
    const redacted = redactor.lines(text)
    yield
    if (redacted === text) continue
    const parts = yield* linesOf(redacted)
    for (let next = range; next < ranges.length && ranges[next]![0] < end; next++) {
      const [first, last] = ranges[next]!
      for (let i = Math.max(first, start); i < Math.min(last, end); i++) {
        const part = parts[i - from]!
        if (part !== lines[i]) (shown ??= [...lines])[i] = part
      }
    }
  }
  return shown ?? lines
}

/** The index behind (or, backwards, before) as many lines as have about this many units. */
function endOf(lines: readonly string[], start: number, units: number, step: 1 | -1): number {
  let [at, left] = [start, units]
  while (at >= 0 && at < lines.length && left > 0) {
    left -= lines[at]!.length
    at += step
  }
  return at
}

/** Changes whose context touches, with that context. */
interface Hunk extends LineChange {
  readonly changes: readonly LineChange[]
}

function hunksOf({ a, changes }: Comparison): readonly Hunk[] {
  const hunks: Hunk[] = []
  for (let i = 0; i < changes.length; ) {
    let next = i + 1
    while (
      next < changes.length &&
      changes[next]!.aStart - changes[next - 1]!.aEnd <= 2 * CONTEXT
    ) {
      next += 1
    }
    const [first, last] = [changes[i]!, changes[next - 1]!]
    const lead = Math.min(CONTEXT, first.aStart)
    const trail = Math.min(CONTEXT, a.length - last.aEnd)
    hunks.push({
      aStart: first.aStart - lead,
      bStart: first.bStart - lead,
      aEnd: last.aEnd + trail,
      bEnd: last.bEnd + trail,
      changes: changes.slice(i, next),
    })
    i = next
  }
  return hunks
}

function* unifiedDiff(
  comparison: Comparison,
  names: DiffNames,
  maxBytes: number,
): Generator<void, { readonly text: string; readonly cut: boolean }> {
  if (comparison.changes.length === 0) return { text: '', cut: false }
  const writer = new DiffWriter(maxBytes)
  writer.line('--- ', oneLine(names.before))
  writer.line('+++ ', oneLine(names.after))
  const { a, b } = comparison
  for (const { aStart, aEnd, bStart, bEnd, changes } of hunksOf(comparison)) {
    writer.line(`@@ -${span(aStart, aEnd)} +${span(bStart, bEnd)} @@`, '')
    let at = aStart
    for (const change of changes) {
      for (; at < change.aStart; at++) writer.line(' ', a[at]!)
      for (; at < change.aEnd; at++) if (writer.line('-', a[at]!)) yield
      for (let j = change.bStart; j < change.bEnd; j++) if (writer.line('+', b[j]!)) yield
    }
    for (; at < aEnd; at++) writer.line(' ', a[at]!)
    yield
  }
  return writer.finish()
}

/** `start,count` in the notation of unified diffs, where an empty range names the line before. */
function span(start: number, end: number): string {
  const count = end - start
  return `${count === 0 ? start : start + 1}${count === 1 ? '' : `,${count}`}`
}

/** Collects lines up to a number of bytes, and counts the lines that do not fit. */
class DiffWriter {
  readonly #parts: string[] = []
  #bytesLeft: number
  #lines = 0
  #skipped = 0

  constructor(maxBytes: number) {
    this.#bytesLeft = maxBytes - 64
  }

  /** Returns true now and then, when it is time to yield. */
  line(prefix: string, line: string): boolean {
    const ended = line.endsWith('\n') || !/^[-+ ]$/.test(prefix)
    const text = `${prefix}${line}${line.endsWith('\n') ? '' : '\n'}`
    const part = ended ? text : `${text}\\ No newline at end of file\n`
    const size = Buffer.byteLength(part)
    if (this.#skipped > 0 || size > this.#bytesLeft) this.#skipped += 1
    else {
      this.#bytesLeft -= size
      this.#parts.push(part)
    }
    this.#lines += 1
    return this.#lines % SLICE === 0
  }

  finish(): { readonly text: string; readonly cut: boolean } {
    if (this.#skipped > 0) this.#parts.push(`… ${this.#skipped} more lines of this diff\n`)
    return { text: this.#parts.join(''), cut: this.#skipped > 0 }
  }
}
