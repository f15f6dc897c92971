import { LongWork } from '../../internal/time.js'
import { areHashed, type KeptTests, type TestOutcome } from '../test-outcomes.js'
import { hashOf } from './reports/hash-table.js'
import { fileOf, isFile } from './reports/test-names.js'
import { eachHashed, TestTable } from './reports/test-table.js'
import type { ComparedReport } from './reports/types.js'

/** Tests with which something happened: how many, and the first whose name or file is known. */
export interface ChangedTests {
  readonly count: number
  readonly name: string | null
  readonly file: string | null
}

/** How a report differs from a baseline, of which at least one is kept by hash. */
export interface HashedChanges {
  /** Files of the baseline that report no tests. */
  readonly silent: readonly string[]
  readonly missing: ChangedTests
  readonly skipped: ChangedTests
}

/** Looks each test of the baseline up in the report, and lets other work of the process go on. */
export async function compareHashed(
  { tests, idle }: ComparedReport,
  baseline: KeptTests,
): Promise<HashedChanges> {
  const table = tests instanceof TestTable ? tests : await TestTable.of(tests)
  const missing = new Found()
  const skipped = new Found()
  const note = (
    hash: string,
    before: TestOutcome,
    file: string | null,
    name: string | null,
  ): void => {
    const now = table.outcomeOf(hash)
    if (now === undefined) missing.add(name, file)
    else if (now === 'skip' && before !== 'skip')
      skipped.add(name ?? table.skippedName(hash), file)
  }
  const idleFiles = idle === null ? null : new Set(idle)
  const silent: string[] = []
  const named = Object.entries(areHashed(baseline) ? baseline.hashed.broken : baseline)
  const work = new LongWork()
  for (const [name, before] of named) {
    if (!isFile(name)) note(hashOf(name), before, fileOf(name), name)
    else if (idleFiles?.has(name) ?? !table.hasTestsOf(name)) silent.push(name)
    if (work.isDue) await work.next()
  }
  if (areHashed(baseline))
    await eachHashed(baseline, (hash, before, file) => note(hash, before, file, null))
  return { silent, missing, skipped }
}

class Found implements ChangedTests {
  count = 0
  name: string | null = null
  file: string | null = null

  add(name: string | null, file: string | null): void {
    this.count += 1
    this.name ??= name
    this.file ??= file
  }
}
