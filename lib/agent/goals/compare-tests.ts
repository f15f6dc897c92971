/**
 * What a report means for the goal. Tests are named `file > suite > title`; a name without a
 * separator is a file that could not be loaded, or stopped before its tests were done. The tests of
 * a big suite are known by the hashes of their names: then one that is missing can only be counted.
 *
 * @module
 */
import { areHashed, type KeptTests, type TestCounts, type TestOutcomes } from '../test-outcomes.js'
import { compareHashed, type HashedChanges } from './compare-hashed.js'
import { fileOf, isFile } from './reports/test-names.js'
import { TestTable } from './reports/test-table.js'
import type { ComparedReport, TestReport } from './reports/types.js'

/** The numbers of tests by outcome. */
export function countTests(tests: TestOutcomes | TestTable): TestCounts {
  if (tests instanceof TestTable) return tests.counts
  const outcomes = Object.values(tests)
  const count = (wanted: string): number => outcomes.filter((outcome) => outcome === wanted).length
  const [passed, failed, skipped] = [count('pass'), count('fail'), count('skip')]
  return { total: outcomes.length, passed, failed, skipped }
}

/** Why the outcomes do not meet the goal, as one line; null when all tests that ran passed. */
export async function failureOf(
  tests: TestOutcomes | TestTable,
  baseline: KeptTests | null,
): Promise<string | null> {
  const { total, passed, failed } = countTests(tests)
  if (failed === 0) return passed === 0 && baseline === null ? 'no tests ran' : null
  const broken = tests instanceof TestTable ? tests.broken : Object.entries(tests)
  const files = [...broken].filter(([name, outcome]) => outcome === 'fail' && isFile(name))
  const notRun = baseline === null ? 0 : await countMissing({ tests, idle: null }, baseline)
  const after = notRun === 0 ? '' : `, ${notRun} did not run`
  if (files.length < failed || total === 1 || files.length > 1)
    return `${failed} of ${total} tests fail${after}`
  return `${files[0]![0]} could not be loaded or stopped before its tests were done${after}`
}

/** Does a verdict's reason say that the tests are not what they were? Then they count nothing. */
export function saysTestsChanged(reason: string): boolean {
  return /^(?:sealed check: )?tests changed: /.test(reason)
}

/** Why assertions prove nothing; null when those that must fail did. */
export function brokenAssertions({ broken }: Pick<TestReport, 'broken'>): string | null {
  return broken.length === 0
    ? null
    : `tests changed: assertions do not fail any more: ${listChanges(broken)}`
}

/** Why nobody knows whether assertions failed; null when that is known, or never was asked. */
export function silencedCanaries({ silenced }: Pick<TestReport, 'silenced'>): string | null {
  if (silenced.length === 0) return null
  const where = silenced[0] === '*' ? '' : ` in ${listChanges(silenced)}`
  return `tests changed: the proof that assertions fail was prevented${where}`
}

/** How the set of tests differs from the baseline; null when no test is missing or skipped. */
export async function changeOf(
  report: ComparedReport,
  baseline: KeptTests,
): Promise<string | null> {
  const { tests, idle } = report
  if (tests instanceof TestTable || areHashed(baseline)) {
    const changes = describe(await compareHashed(report, baseline))
    return changes === null ? null : `tests changed: ${changes}`
  }
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
export function listChanges(changes: readonly string[], total: number = changes.length): string {
  return total > 1 ? `${changes[0]!} (and ${total - 1} more)` : (changes[0] ?? '')
}

/** Tests of the baseline that did not run. */
async function countMissing(report: ComparedReport, baseline: KeptTests): Promise<number> {
  const { tests } = report
  if (tests instanceof TestTable || areHashed(baseline))
    return (await compareHashed(report, baseline)).missing.count
  const names = Object.keys(baseline)
  return names.filter((name) => !isFile(name) && !Object.hasOwn(tests, name)).length
}

/** The changes as one line: by name as far as names are known. */
function describe({ silent, missing, skipped }: HashedChanges): string | null {
  const total = silent.length + missing.count + skipped.count
  if (total === 0) return null
  if (silent.length > 0) return listChanges([`"${silent[0]!}" reports no tests`], total)
  const [{ count, name, file }, verb] =
    missing.count > 0 ? [missing, 'missing'] : [skipped, 'skipped']
  if (name !== null) return listChanges([`"${name}" is ${verb}`], total)
  const tests = count === 1 ? 'test of the first check is' : 'tests of the first check are'
  const place = file === null ? '' : count === 1 ? ` in "${file}"` : `, one of them in "${file}"`
  const others = total === count ? '' : ` (and ${total - count} more)`
  return `${count} ${tests} ${verb}${place}${others}`
}
