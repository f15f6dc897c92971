import { filtered } from './plan.js'
import type { ReportKind } from './report.js'

/** Numbers of tests. */
export interface Counts {
  readonly passed: number
  readonly failed: number
}

/** Lines of reports that tell of a test that passed, and of one that failed. */
const LINES: Readonly<Record<Exclude<ReportKind, 'any'>, readonly [string, string]>> = {
  tap: ['^ *ok [0-9]', '^ *not ok [0-9]'],
  lines: ['\\["pass",[{]"title":', '\\["fail",[{]"title":'],
  pytest: ['^PASSED ', '^(FAILED|ERROR) '],
  unittest: ['( [.][.][.] |^)ok$', '( [.][.][.] |^)(FAIL|ERROR)$'],
}
/** Lines with totals, of runners that may name only the tests that failed. */
const TOTALS: Readonly<Partial<Record<ReportKind, string>>> = {
  pytest: '^(=+ )?[0-9].* in [0-9.]+s',
  unittest: '^Ran [0-9]+ tests?( in|$)|^(OK|FAILED)( \\(|$)',
}

/**
 * A command that only counts the tests: whatever a patch changes, there is room to tell it. Null
 * for a check that has no report.
 */
export function counted(command: string, kind: ReportKind): string | null {
  if (kind === 'any') return null
  const [passed, failed] = LINES[kind]
  const totals = TOTALS[kind] === undefined ? '' : `/${TOTALS[kind]}/{print "total: " $0}`
  // Skipped tests and those to be done are neither.
  const rules = `/ # (SKIP|TODO)/{next} ${totals} /${passed}/{p++} /${failed}/{f++}`
  // As the check itself, it may report where programs complain.
  const line = TOTALS[kind] === undefined ? command : `( ${command} ) 2>&1`
  return filtered(line, ` | awk '${rules} END{print "passed " p+0 ", failed " f+0}'`)
}

/** What {@link counted} tells, by totals if the report has some; null for nothing. */
export function countsIn(output: string): Counts | null {
  const found = /^passed (\d{1,9}), failed (\d{1,9})$/m.exec(output)
  if (found === null) return null
  const totals = [...output.matchAll(/^total: (.*)$/gm)].map(([, line]) => line!)
  if (totals.length === 0) return { passed: Number(found[1]), failed: Number(found[2]) }
  let [ran, passed, failed] = [0, 0, 0]
  for (const line of totals) {
    ran += Number(/^Ran (\d{1,9}) /.exec(line)?.[1] ?? 0)
    passed += numberOf(line, /(\d{1,9}) x?passed\b/g)
    failed += numberOf(line, /(\d{1,9}) (?:failed|errors?)\b/g)
    failed += numberOf(line, FAILED)
    ran -= numberOf(line, /\bskipped=(\d{1,9})/g)
  }
  // Subtests fail one by one, in a test that is counted once.
  return ran === 0 ? { passed, failed } : { passed: Math.max(0, ran - failed), failed }
}

const FAILED = /(?:(?<!expected )\bfailures|\berrors|\bunexpected successes)=(\d{1,9})/g

function numberOf(line: string, pattern: RegExp): number {
  return [...line.matchAll(pattern)].reduce((sum, [, digits]) => sum + Number(digits), 0)
}

/** Whether all tests pass that there were before. */
export function isSuccess(before: Counts, after: Counts): boolean {
  return (
    after.failed === 0 &&
    after.passed > before.passed &&
    after.passed >= before.passed + before.failed
  )
}
