import {
  comparedIn,
  type Failure,
  type Outcomes,
  parseFrames,
  type ReportKind,
  WHOLE_CHECK,
} from './report.js'
import { parseLines, parseLinesFailures } from './report-lines.js'
import { parsePytest, parsePytestFailures } from './report-pytest.js'
import { parseTap, parseTapFailures } from './report-tap.js'
import { parseUnittest, parseUnittestFailures } from './report-unittest.js'

/** Removes the escape sequences of colours and the carriage returns of Windows. */
export function plainText(text: string): string {
  const lines = text.includes('\r') ? text.replaceAll('\r\n', '\n') : text
  return lines.includes('\u001b') ? lines.replace(/\u001b\[[\d;]*[mK]/g, '') : lines
}

/** The outcomes of tests; empty when `output` contains no report. */
export function parseOutcomes(kind: ReportKind, output: string, exitCode: number): Outcomes {
  const text = plainText(output)
  if (kind === 'tap') return parseTap(text)
  if (kind === 'lines') return parseLines(text)
  if (kind === 'unittest') return parseUnittest(text)
  if (kind === 'pytest') return parsePytest(text)
  return new Map([[WHOLE_CHECK, exitCode === 0 ? ('pass' as const) : ('fail' as const)]])
}

/** The failures that a report describes. */
export function parseFailures(kind: ReportKind, printed: string): Failure[] {
  const output = plainText(printed)
  if (kind === 'tap') return parseTapFailures(output)
  if (kind === 'lines') return parseLinesFailures(output)
  if (kind === 'unittest') return parseUnittestFailures(output)
  if (kind === 'pytest') return parsePytestFailures(output)
  for (const parse of [parseTapFailures, parseUnittestFailures, parsePytestFailures]) {
    const found = parse(output)
    if (found.length > 0) return found
  }
  const frames = parseFrames(output)
  const message =
    output.split('\n').find((line) => /(Error|Exception|Failed|FAIL)\b/.test(line)) ?? ''
  return [{ name: WHOLE_CHECK, message: message.trim(), frames, ...comparedIn(output) }]
}

/**
 * The kind of report that a command printed which was not known to print one; null when it is none.
 * One line that looks like a test is not enough: a report also says where it starts or ends.
 */
export function recogniseOutput(printed: string): ReportKind | null {
  const output = plainText(printed)
  const hasTapFrame = /^TAP version \d+$/m.test(output) || /^1\.\.\d+$/m.test(output)
  if (hasTapFrame && parseTap(output).size > 0) return 'tap'
  if (/^Ran \d+ tests? in /m.test(output)) return 'unittest'
  if (/^=+ (test session starts|short test summary info) =+$/m.test(output)) return 'pytest'
  return null
}
