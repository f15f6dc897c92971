/** The test runners whose reports we can read, with a reporter of our own. */
export type TestReporter =
  'node-test' | 'jest' | 'vitest' | 'mocha' | 'pytest' | 'unittest' | 'cargo' | 'go' | 'bun'

/** How one test ended. */
export type TestOutcome = 'pass' | 'fail' | 'skip'

/** Every test of one check by its full name (file, suites and title, joined by ` > `). */
export type TestOutcomes = { readonly [name: string]: TestOutcome }

/** Numbers of tests of one check. */
export interface TestCounts {
  readonly total: number
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}
