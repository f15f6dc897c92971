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
  unittest: [' [.][.][.] ok$', ' [.][.][.] (FAIL|ERROR)$'],
}

/**
 * A command that only counts the tests: whatever a patch changes, there is room to tell it. Null
 * for a check that has no report.
 */
export function counted(command: string, kind: ReportKind): string | null {
  if (kind === 'any') return null
  const [passed, failed] = LINES[kind]
  // Skipped tests and those to be done are neither.
  const rules = `/ # (SKIP|TODO)/{next} /${passed}/{p++} /${failed}/{f++}`
  return filtered(command, ` | awk '${rules} END{print "passed " p+0 ", failed " f+0}'`)
}

/** What {@link counted} tells; null for none. */
export function countsIn(output: string): Counts | null {
  const found = /^passed (\d{1,9}), failed (\d{1,9})$/m.exec(output)
  return found === null ? null : { passed: Number(found[1]), failed: Number(found[2]) }
}

/** Whether all tests pass that there were before. */
export function isSuccess(before: Counts, after: Counts): boolean {
  return (
    after.failed === 0 &&
    after.passed > before.passed &&
    after.passed >= before.passed + before.failed
  )
}
