import {
  comparedIn,
  type Failure,
  type Outcomes,
  parseFrames,
  type ReportKind,
  WHOLE_CHECK,
} from './report.js'
import { parsePytest, parsePytestFailures } from './report-pytest.js'
import { parseTap, parseTapFailures } from './report-tap.js'
import { parseUnittest, parseUnittestFailures } from './report-unittest.js'

/** Removes the escape sequences of colours. */
function withoutColors(text: string): string {
  return text.includes('\u001b') ? text.replace(/\u001b\[[\d;]*m/g, '') : text
}

/** The outcomes of tests; empty when `output` contains no report. */
export function parseOutcomes(kind: ReportKind, output: string, exitCode: number): Outcomes {
  const text = withoutColors(output)
  if (kind === 'tap') return parseTap(text)
  if (kind === 'unittest') return parseUnittest(text)
  if (kind === 'pytest') return parsePytest(text)
  return new Map([[WHOLE_CHECK, exitCode === 0 ? ('pass' as const) : ('fail' as const)]])
}

/** The failures that a report describes. */
export function parseFailures(kind: ReportKind, printed: string): Failure[] {
  const output = withoutColors(printed)
  if (kind === 'tap') return parseTapFailures(output)
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
