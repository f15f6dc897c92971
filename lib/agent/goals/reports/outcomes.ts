
import { hash } from '../../../internal/hash.js'
import { LongWork } from '../../../internal/time.js'
import { storableText } from '../../../internal/text.js'
import { redactor } from '../../redaction/redactor.js'
import type { TestOutcome } from '../../test-outcomes.js'
import { MAX_FAILED, NO_DETAILS, type FailedTest, type FailureDetails } from './failed-tests.js'
import { isFile, NAME_SEPARATOR } from './test-names.js'
import { TestTable } from './test-table.js'
import type { CanaryReport, ReportedTest, ReportProblem, TestReport } from './types.js'

/** More tests than this are too many for one report. */
export const MAX_TESTS = 1_000_000
/** The same for a report that is read as a whole: of Bun, Go, and each program of Cargo. */
export const MAX_LISTED = 250_000
/** Tests of a report, and characters of their names, that are kept by name; others are hashed. */
const MAX_NAMED = 20_000
const MAX_STORED = 8 * 1024 * 1024
/** Files that are broken, or report no test: those are kept by name in any report. */
const MAX_FILES = 50_000
/** Characters of a test's name; a longer one is cut and ends in a digest. */
const MAX_NAME = 400
/** Characters of a name before it is cut, and suites around a test. */
const MAX_FULL_NAME = 64 * 1024
const MAX_PARTS = 200

const NO_CANARIES: CanaryReport = { ended: 0, unfinished: [], broken: [], seen: null, deeds: [] }

/** The report that these tests make. */
export async function collectTests(
  tests: readonly ReportedTest[] | ReportProblem,
): Promise<TestReport | ReportProblem> {
  if (typeof tests === 'string') return tests
  const collector = new TestCollector()
  return (await collector.addAll(tests)) ? collector.report(false) : 'too_large'
}

/**
 * The tests of one report, up to {@link MAX_TESTS}: by name, or from a number of tests on by hash,
 * so that they take a bounded part of the memory. Additions wait for other work of the process.
 */
export class TestCollector {
  isTooLarge = false
  #tests: NamedTests | TestTable = new NamedTests()
  readonly #idle: string[] = []
  readonly #failed: FailedTest[] = []
  readonly #work = new LongWork()
  /** Characters of the names of tests, and of files. */
  #stored = 0
  #storedFiles = 0
  #files = 0
  /** Files with tests, and whether one of those passes. */
  readonly #testFiles: Map<string, boolean> = new Map()

  /** Adds tests, of which a single name is a file; false when the report is too large. */
  async addAll(tests: Iterable<ReportedTest>): Promise<boolean> {
    for (const { names, outcome, message = '' } of tests) {
      if (names.length === 1) await this.addFile(names[0]!, outcome)
      else await this.addTest(names, outcome, { message, at: null })
      if (this.isTooLarge) return false
    }
    return true
  }

  /** Adds a test. Names need not be unique: later ones are numbered, in the order of the report. */
  async addTest(
    names: readonly string[],
    outcome: TestOutcome,
    details: FailureDetails = NO_DETAILS,
  ): Promise<void> {
    // Checked first: a few long names of suites would be copied into the name of each test.
    if (!fits(names)) this.isTooLarge = true
    if (this.isTooLarge) return
    this.#noteFile(names[0]!, outcome)
    const full = shorten(names.map(oneLine).join(NAME_SEPARATOR))
    await this.#set(await this.#untaken(full), outcome, details)
  }

  #noteFile(name: string, outcome: TestOutcome): void {
    const passes = this.#testFiles.get(name)
    if (passes === true || (passes === false && outcome !== 'pass')) return
    if (passes === undefined) this.#countFile(name)
    this.#testFiles.set(name, outcome === 'pass')
  }

  /** Adds a file or package that is broken as a whole. */
  async addFile(name: string, outcome: TestOutcome = 'fail'): Promise<void> {
    if (!fits([name])) this.isTooLarge = true
    else await this.#set(shorten(name), outcome, NO_DETAILS)
  }

  /** Adds a file that ran and reported no test. */
  addIdle(name: string): void {
    if (!fits([name])) this.isTooLarge = true
    else this.#idle.push(this.#countFile(shorten(name)))
  }

  report(reportsIdle: boolean, canaries: CanaryReport = NO_CANARIES): TestReport {
    const tests = this.#tests
    const silenced = canaries.unfinished.filter((subject) => this.#passesIn(subject))
    return {
      tests: tests instanceof TestTable ? tests : tests.outcomes,
      failed: this.#failed,
      files: [...this.#testFiles.keys()],
      idle: reportsIdle ? this.#idle : null,
      canaries: canaries.ended > 0 && silenced.length === 0,
      broken: canaries.broken,
      deeds: canaries.deeds,
      silenced,
    }
  }

  /** Whether a test of the file passes, or any test for `*`; what failed or never ran is told. */
  #passesIn(subject: string): boolean {
    if (subject !== '*') return this.#testFiles.get(subject) === true
    return [...this.#testFiles.values()].includes(true)
  }

  /** The name, or if it is taken its first numbered form that is not: the second, the third, … */
  async #untaken(name: string): Promise<string> {
    const tests = this.#tests
    if (!tests.has(name)) return name
    let number = Math.max(1, tests.reached(name))
    let untaken: string
    do {
      number += 1
      untaken = `${name} (${number})`
      if (this.#work.isDue) await this.#work.next()
    } while (tests.has(untaken))
    tests.noteReached(name, number)
    return untaken
  }

  async #set(name: string, outcome: TestOutcome, details: FailureDetails): Promise<void> {
    if (this.#work.isDue) await this.#work.next()
    const { size } = this.#tests
    if (!this.#tests.has(name)) {
      this.#stored += name.length
      if (isFile(name)) this.#countFile(name)
      if (size >= MAX_TESTS) this.isTooLarge = true
      // A file may be reported more than once.
      if (outcome === 'fail' && this.#failed.length < MAX_FAILED)
        this.#failed.push({ name, ...details })
    }
    if (this.isTooLarge) return
    const isBig = size >= MAX_NAMED || this.#stored > MAX_STORED
    if (isBig && this.#tests instanceof NamedTests) this.#tests = await this.#hash(this.#tests)
    this.#tests.set(name, outcome)
  }

  async #hash(tests: NamedTests): Promise<TestTable> {
    const table = new TestTable(MAX_TESTS)
    for (const [name, outcome] of tests) {
      table.set(name, outcome)
      if (this.#work.isDue) await this.#work.next()
    }
    return table
  }

  #countFile(name: string): string {
    this.#files += 1
    this.#storedFiles += name.length
    if (this.#files > MAX_FILES || this.#storedFiles > MAX_STORED) this.isTooLarge = true
    return name
  }
}

/** The tests of a small report. */
class NamedTests {
  readonly #outcomes = new Map<string, TestOutcome>()
  /** Of names that several tests have: how far they are numbered. */
  readonly #reached = new Map<string, number>()

  get size(): number {
    return this.#outcomes.size
  }

  get outcomes(): { readonly [name: string]: TestOutcome } {
    return Object.fromEntries(this.#outcomes)
  }

  [Symbol.iterator](): Iterator<[string, TestOutcome]> {
    return this.#outcomes.entries()
  }

  has(name: string): boolean {
    return this.#outcomes.has(name)
  }

  set(name: string, outcome: TestOutcome): void {
    this.#outcomes.set(name, outcome)
  }

  reached(name: string): number {
    return this.#reached.get(name) ?? 0
  }

  noteReached(name: string, number: number): void {
    this.#reached.set(name, number)
  }
}

function oneLine(name: string): string {
  return name.replaceAll(/[\s\p{Cc}]+/gu, ' ')
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
  const shown = storableText(redactor.text(name))
  if (shown === name && name.length <= MAX_NAME) return name
  const start = storableText(shown.slice(0, MAX_NAME - 20))
  return `${start}…${hash('sha256', name).slice(0, 16)}`
}
