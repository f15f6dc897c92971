/**
 * What a report means for the goal; pure. Tests are named `file > suite > title`; a name without a
 * separator is a file that could not be loaded, or stopped before its tests were done.
 *
 * @module
 */
import type { TestCounts, TestOutcomes } from '../test-outcomes.js'
import { NAME_SEPARATOR } from './reports/outcomes.js'
import type { TestReport } from './reports/types.js'

/** The numbers of tests by outcome. */
export function countTests(tests: TestOutcomes): TestCounts {
  const outcomes = Object.values(tests)
  const count = (wanted: string): number => outcomes.filter((outcome) => outcome === wanted).length
  const [passed, failed, skipped] = [count('pass'), count('fail'), count('skip')]
  return { total: outcomes.length, passed, failed, skipped }
}

/** Why the outcomes do not meet the goal, as one line; null when all tests that ran passed. */
export function failureOf(tests: TestOutcomes, baseline: TestOutcomes | null): string | null {
  const { total, passed, failed } = countTests(tests)
  if (failed > 0) {
    const files = Object.keys(tests).filter((name) => tests[name] === 'fail' && isFile(name))
    if (files.length < failed || total === 1 || files.length > 1) {
      return `${failed} of ${total} tests fail${notRun(tests, baseline)}`
    }
    const what = 'could not be loaded or stopped before its tests were done'
    return `${files[0]!} ${what}${notRun(tests, baseline)}`
  }
  return passed === 0 && baseline === null ? 'no tests ran' : null
}

/** How the set of tests differs from the baseline; null when no test is missing or skipped. */
export function changeOf(report: TestReport, baseline: TestOutcomes): string | null {
  const { tests, idle } = report
  const changes: string[] = []
  const idleFiles = idle === null ? null : new Set(idle)
  const withTests = new Set(Object.keys(tests).filter((name) => !isFile(name)).map(fileOf))
  for (const [name, before] of Object.entries(baseline)) {
    const now = tests[name]
    if (isFile(name)) {
      if (idleFiles?.has(name) ?? !withTests.has(name))
        changes.push(`"${name}" reports no tests`)
    } else if (now === undefined) changes.push(`"${name}" is missing`)
    else if (now === 'skip' && before !== 'skip') changes.push(`"${name}" is skipped`)
  }
  return changes.length === 0 ? null : `tests changed: ${listChanges(changes)}`
}

/** The first change, and the number of the others. */
export function listChanges(changes: readonly string[]): string {
  return changes.length > 1 ? `${changes[0]!} (and ${changes.length - 1} more)` : (changes[0] ?? '')
}

function isFile(name: string): boolean {
  return !name.includes(NAME_SEPARATOR)
}

/** The file that holds a test. */
function fileOf(test: string): string {
  return test.slice(0, test.indexOf(NAME_SEPARATOR))
}

function notRun(tests: TestOutcomes, baseline: TestOutcomes | null): string {
  const left = Object.keys(baseline ?? {}).filter(
    (name) => !isFile(name) && !Object.hasOwn(tests, name),
  )
  return left.length === 0 ? '' : `, ${left.length} did not run`
}
