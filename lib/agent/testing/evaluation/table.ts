/**
 * Pure: the report of an evaluation as a table for a terminal, at most 100 columns wide.
 *
 * @module
 */
import { escapeInvisible } from '../../../internal/text.js'
import { checkObject } from '../../../internal/options.js'
import type { AssuranceCount, EvaluationReport, EvaluationSummary, PassEstimate } from './report.js'

const MAX_WIDTH = 100
const GAP = '  '
/** Columns that names of models get before another text is cut, and what that text keeps. */
const NAME = 24
const MIN_TEXT = 12
/** Different errors that are listed. */
const MAX_ERRORS = 10

/** A line about a task, or a row about a model. */
type Line =
  | { readonly title: string }
  | { readonly name: string; readonly values: readonly string[] }

/**
 * The report as a table: for each task, and for all of them, a row per model. Names are cut to fit
 * into 100 columns; characters that cannot be seen become escapes.
 *
 * @throws TypeError for anything but a report of version 1.
 */
export function formatEvaluation(report: EvaluationReport): string {
  checkObject('a report', report)
  if (report.version !== 1 || !Array.isArray(report.cells)) {
    throw new TypeError('a report must be one of evaluate(), with version 1')
  }
  // The first and the last `k` have room.
  const ks = [...new Set([report.pass_at[0] ?? 1, report.pass_at.at(-1) ?? 1])]
  const hasErrors = report.totals.some(({ errors }) => errors > 0)
  const head = [
    'achieved', ...(hasErrors ? ['errors'] : []), ...ks.map((k) => `pass@${k}`), 'rests on',
    'tokens', 'cost', 'time',
  ]
  const row = (summary: EvaluationSummary & { readonly model: string }): Line => ({
    name: `  ${plain(summary.model)}`,
    values: [
      `${summary.achieved}/${summary.achieved + summary.failed}`,
      ...(hasErrors ? [String(summary.errors)] : []),
      ...ks.map((k) => percent(summary.pass[report.pass_at.indexOf(k)] ?? null)),
      restsOn(summary.assurance),
      ...meansOf(summary),
    ],
  })
  const lines: readonly Line[] = [
    { name: '', values: head },
    ...report.tasks.flatMap((task): Line[] => [
      { title: plain(task) },
      ...report.cells.filter((cell) => cell.task === task).map(row),
    ]),
    ...(report.tasks.length > 1
      ? [{ title: `all ${report.tasks.length} tasks` }, ...report.totals.map(row)]
      : []),
  ]
  const table = drawn(lines, head.length, head.indexOf('rests on'))
  return [...table, '', ...notesOf(report), ''].join('\n')
}

/** @param texts - the column whose values are texts, which may be cut as names may. */
function drawn(lines: readonly Line[], columns: number, texts: number): string[] {
  const rows = lines.flatMap((line) => ('title' in line ? [] : [line]))
  const widths = Array.from({ length: columns }, (_, i) =>
    Math.max(...rows.map(({ values }) => textWidth(values[i] ?? ''))),
  )
  const longest = Math.max(...rows.map(({ name }) => textWidth(name)))
  const numbers = widths.reduce((sum, width, i) => sum + GAP.length + (i === texts ? 0 : width), 0)
  const left = MAX_WIDTH - numbers
  const text = Math.min(widths[texts]!, Math.max(MIN_TEXT, left - Math.min(longest, NAME)))
  widths[texts] = text
  const name = Math.min(longest, left - text)
  return lines.map((line) => {
    if ('title' in line) return fitted(line.title, MAX_WIDTH).trimEnd()
    const values = line.values.map((value, i) => fitted(value, widths[i]!))
    return [fitted(line.name, name), ...values].join(GAP).trimEnd()
  })
}

/** What the numbers mean, what is missing, and what went wrong. */
function notesOf(report: EvaluationReport): string[] {
  const notes = [
    'pass@k: the chance that one of k attempts achieves the task, and its 95 % interval.',
    'Tokens, cost and time are means of the attempts that ended by themselves.',
  ]
  const attempts = report.cells.flatMap((cell) => cell.attempts)
  const isMissing = report.cells.some(({ pass }) => pass.includes(null))
  if (isMissing) notes.push('-: some task has fewer than k attempts that ended by themselves.')
  if (!report.complete) {
    const planned = report.tasks.length * report.models.length * report.attempts
    const ended = attempts.filter(({ outcome }) => outcome !== 'aborted').length
    notes.push(`Aborted: ${ended} of ${planned} attempts have ended.`)
  }
  const errors = new Map<string, number>()
  for (const { outcome, model, reason, task } of attempts) {
    if (outcome !== 'error') continue
    const text = `  ${plain(task)}, ${plain(model)}: ${plain(reason)}`
    errors.set(text, (errors.get(text) ?? 0) + 1)
  }
  if (errors.size > 0) notes.push('Errors, which do not count:')
  const listed = [...errors].slice(0, MAX_ERRORS)
  for (const [text, times] of listed) {
    const suffix = times === 1 ? '' : ` (${times} times)`
    notes.push(`${fitted(text, MAX_WIDTH - suffix.length).trimEnd()}${suffix}`)
  }
  if (errors.size > listed.length) notes.push(`  and ${errors.size - listed.length} more`)
  return notes
}

function plain(text: string): string {
  return escapeInvisible(text.replaceAll(/\s+/g, ' ').trim())
}

function percent(pass: PassEstimate | null): string {
  if (pass === null) return '-'
  const whole = (share: number): string => (100 * share).toFixed(0)
  return `${whole(pass.estimate)}% ${whole(pass.low)}-${whole(pass.high)}`
}

function restsOn(counts: readonly AssuranceCount[]): string {
  const word = ({ by, sealed }: AssuranceCount): string =>
    `${by === 'exit_code' ? 'exit code' : (by ?? 'unknown')}${sealed ? ', sealed' : ''}`
  if (counts.length === 0) return '-'
  if (counts.length === 1) return word(counts[0]!)
  return counts.map((count) => `${count.runs} ${word(count)}`).join('; ')
}

function meansOf({ mean }: EvaluationSummary): readonly string[] {
  return mean === null
    ? ['-', '-', '-']
    : [amount(mean.tokens), dollars(mean.cost_usd), duration(mean.seconds)]
}

function amount(tokens: number): string {
  if (tokens < 10_000) return tokens.toFixed(0)
  return tokens < 1e6 ? `${(tokens / 1e3).toFixed(1)}k` : `${(tokens / 1e6).toFixed(1)}M`
}

function dollars(usd: number | null): string {
  if (usd === null) return 'unknown'
  return usd === 0 ? '$0' : `$${usd.toFixed(usd < 0.1 ? 4 : 2)}`
}

function duration(seconds: number): string {
  if (seconds < 100) return `${seconds.toFixed(1)} s`
  return seconds < 6000 ? `${(seconds / 60).toFixed(1)} min` : `${(seconds / 3600).toFixed(1)} h`
}

/**
 * How many columns of a terminal a text takes.
 */

/** Characters that take two columns: East Asian Width W and F (Unicode Standard Annex #11). */
const WIDE = new RegExp(
  '^[\\u{1100}-\\u{115f}\\u{2329}\\u{232a}\\u{2e80}-\\u{303e}\\u{3041}-\\u{4dbf}' +
    '\\u{4e00}-\\u{a4cf}\\u{a960}-\\u{a97c}\\u{ac00}-\\u{d7a3}\\u{f900}-\\u{faff}' +
    '\\u{fe10}-\\u{fe19}\\u{fe30}-\\u{fe6f}\\u{ff01}-\\u{ff60}\\u{ffe0}-\\u{ffe6}' +
    '\\u{16fe0}-\\u{18dff}\\u{1aff0}-\\u{1b2ff}\\u{1f200}-\\u{1f2ff}\\u{20000}-\\u{3fffd}' +
    '\\p{Emoji_Presentation}]',
  'u',
)
const NONE = /^[\p{M}\p{Cf}\p{Cc}]/u

let segmenter: Intl.Segmenter | undefined

/** The characters as people see them, each with its columns: an accent belongs to its letter. */
function* characters(text: string): Generator<readonly [character: string, columns: number]> {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  for (const { segment } of segmenter.segment(text)) {
    const isWide = WIDE.test(segment) || segment.includes('\ufe0f')
    yield [segment, isWide ? 2 : NONE.test(segment) ? 0 : 1]
  }
}

export function textWidth(text: string): number {
  let width = 0
  for (const [, columns] of characters(text)) width += columns
  return width
}

/** The text in exactly `width` columns, at least one: filled with blanks, or cut to end in `…`. */
export function fitted(text: string, width: number): string {
  const own = textWidth(text)
  if (own <= width) return text + ' '.repeat(width - own)
  let kept = ''
  let used = 0
  for (const [character, columns] of characters(text)) {
    if (used + columns > width - 1) break
    kept += character
    used += columns
  }
  return `${kept}…${' '.repeat(width - 1 - used)}`
}
