import { hash } from 'node:crypto'

import { redactor } from '../../redaction/redactor.js'
import type { TestOutcome } from '../../test-outcomes.js'
import { untakenName } from '../../../internal/untaken-name.js'
import type { ReportedTest, ReportProblem, TestReport } from './types.js'

/** More tests than this are too many for one report. */
export const MAX_TESTS = 50_000
/** Characters of a test's name; a longer one is cut and ends in a digest. */
const MAX_NAME = 400

/** Joins the parts of a test's name: file, suites, title. */
export const NAME_SEPARATOR = ' > '

/** The report that these tests make. */
export function collectTests(
  tests: readonly ReportedTest[] | ReportProblem,
): TestReport | ReportProblem {
  if (typeof tests === 'string') return tests
  if (tests.length > MAX_TESTS) return 'too_large'
  const outcomes = new Map<string, TestOutcome>()
  for (const { names, outcome } of tests) {
    if (names.length === 1) outcomes.set(shorten(names[0]!), outcome)
    else addTest(outcomes, names, outcome)
  }
  return { tests: Object.fromEntries(outcomes), idle: null }
}

/** Adds a test. Names need not be unique: later ones are numbered, in the order of the report. */
export function addTest(
  outcomes: Map<string, TestOutcome>,
  names: readonly string[],
  outcome: TestOutcome,
): void {
  const full = shorten(
    names.map((name) => name.replaceAll(/[\s\p{Cc}]+/gu, ' ')).join(NAME_SEPARATOR),
  )
  const number = (name: string, i: number): string => `${name} (${i})`
  outcomes.set(untakenName(full, outcomes, number), outcome)
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
