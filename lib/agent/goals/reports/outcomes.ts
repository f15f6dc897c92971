import { hash } from 'node:crypto'

import { redactor } from '../../redaction/redactor.js'
import type { TestOutcome } from '../../test-outcomes.js'
import { LongWork } from '../../../internal/next-turn.js'
import { untakenName } from '../../../internal/untaken-name.js'
import type { ReportedTest, ReportProblem, TestReport } from './types.js'

/** More tests than this are too many for one report. */
export const MAX_TESTS = 50_000
/** Characters of a test's name; a longer one is cut and ends in a digest. */
const MAX_NAME = 400
/** Characters of a name before it is cut, and suites around a test. */
const MAX_FULL_NAME = 64 * 1024
const MAX_PARTS = 200
/** Characters of all names together, as the log stores them. */
const MAX_STORED = 8 * 1024 * 1024

/** Joins the parts of a test's name: file, suites, title. */
export const NAME_SEPARATOR = ' > '

/** The report that these tests make. */
export async function collectTests(
  tests: readonly ReportedTest[] | ReportProblem,
): Promise<TestReport | ReportProblem> {
  if (typeof tests === 'string') return tests
  const collector = new TestCollector()
  const work = new LongWork()
  for (const { names, outcome } of tests) {
    if (names.length === 1) collector.addFile(names[0]!, outcome)
    else collector.addTest(names, outcome)
    if (collector.isTooLarge) return 'too_large'
    if (work.isDue) await work.next()
  }
  return collector.report(false)
}

/** The tests of one report, up to {@link MAX_TESTS}; names are bounded one by one and together. */
export class TestCollector {
  isTooLarge = false
  readonly #outcomes = new Map<string, TestOutcome>()
  readonly #idle: string[] = []
  #stored = 0

  /** Adds a test. Names need not be unique: later ones are numbered, in the order of the report. */
  addTest(names: readonly string[], outcome: TestOutcome): void {
    // Checked first: a few long names of suites would be copied into the name of each test.
    if (!fits(names)) this.isTooLarge = true
    if (this.isTooLarge) return
    const full = shorten(
      names.map((name) => name.replaceAll(/[\s\p{Cc}]+/gu, ' ')).join(NAME_SEPARATOR),
    )
    const number = (name: string, i: number): string => `${name} (${i})`
    this.#set(untakenName(full, this.#outcomes, number), outcome)
  }

  /** Adds a file or package that is broken as a whole. */
  addFile(name: string, outcome: TestOutcome = 'fail'): void {
    if (!fits([name])) this.isTooLarge = true
    else this.#set(shorten(name), outcome)
  }

  addIdle(name: string): void {
    if (!fits([name])) this.isTooLarge = true
    else this.#idle.push(this.#count(shorten(name)))
  }

  report(reportsIdle: boolean): TestReport {
    return { tests: Object.fromEntries(this.#outcomes), idle: reportsIdle ? this.#idle : null }
  }

  #set(name: string, outcome: TestOutcome): void {
    this.#outcomes.set(this.#count(name), outcome)
  }

  #count(name: string): string {
    this.#stored += name.length
    const count = this.#outcomes.size + this.#idle.length
    if (this.#stored > MAX_STORED || count >= MAX_TESTS) this.isTooLarge = true
    return name
  }
}

function fits(names: readonly string[]): boolean {
  if (names.length > MAX_PARTS) return false
  return names.reduce((sum, { length }) => sum + length, 0) <= MAX_FULL_NAME
}

/**
 * Bounds the length of a name and removes secrets, keeping different names different. Names are
 * compared with those of stored reports, so they must be as the log will store them.
 */
export function shorten(name: string): string {
  const shown = redactor.text(name)
  if (shown === name && name.length <= MAX_NAME) return name
  return `${shown.slice(0, MAX_NAME - 20)}…${hash('sha256', name).slice(0, 16)}`
}
