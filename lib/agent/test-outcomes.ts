/** The test runners whose results are collected by a reporter of this package. */
export type TestReporter =
  'node-test' | 'jest' | 'vitest' | 'mocha' | 'pytest' | 'unittest' | 'cargo' | 'go' | 'bun'

/** The result of one test, in the same words for every runner. */
export type TestOutcome = 'pass' | 'fail' | 'skip'

/** All tests of one check by full name (file, suites and title, joined by ` > `). */
export type TestOutcomes = { readonly [name: string]: TestOutcome }

/** How many tests one check ran, by result. */
export interface TestCounts {
  readonly total: number
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}
