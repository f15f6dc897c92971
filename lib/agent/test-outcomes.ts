/** The test runners whose results are collected by a reporter of this package. */
export type TestReporter =
  'node-test' | 'jest' | 'vitest' | 'mocha' | 'pytest' | 'unittest' | 'cargo' | 'go' | 'bun'

/** The result of one test, in the same words for every runner. */
export type TestOutcome = 'pass' | 'fail' | 'skip'

/** All tests of one check by full name (file, suites and title, joined by ` > `). */
export type TestOutcomes = { readonly [name: string]: TestOutcome }

/** The tests of a suite that is too big to be kept by name. */
export interface HashedTests {
  readonly hashed: {
    /**
     * Files whose names are kept, and how many tests each has by outcome. The hashes of a file's
     * tests stand together, in the order of this list; those of all other files come last.
     */
    readonly files: readonly (readonly [file: string, pass: number, fail: number, skip: number])[]
    /** Hashes of the tests' names by outcome, of 12 characters each: 9 bytes in base64. */
    readonly pass: string
    readonly fail: string
    readonly skip: string
    /** Files that could not be loaded, or stopped before their tests were done. */
    readonly broken: TestOutcomes
  }
}

/** The tests of one check as its run keeps them: by name, or of a big suite by hash. */
export type KeptTests = TestOutcomes | HashedTests

/** True for tests that are kept by hash: the outcome of a test named `hashed` would be a word. */
export function areHashed(tests: KeptTests | null | undefined): tests is HashedTests {
  return typeof (tests as Partial<HashedTests> | null | undefined)?.hashed === 'object'
}

/** How many tests one check ran, by result. */
export interface TestCounts {
  readonly total: number
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}
