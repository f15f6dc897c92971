/** What the text of a program tells about tests. */
import type { Import } from './imports.js'

const SCRIPT_RUNNERS = [
  ...['node:test', 'bun:test', 'mocha', 'vitest', '@?jest(?:/globals)?', 'ava', 'tap', 'tape'],
  ...['uvu', 'jasmine', '@playwright/test'],
]
const SCRIPT_LIBRARIES = [
  ...['chai', 'expect', 'should', 'sinon', 'supertest', 'nock', 'msw', 'fast-check'],
  '@testing-library/[\\w-]+',
]
const quoted = (names: readonly string[]): string => `['"](?:${names.join('|')})(?:/[\\w/-]*)?['"]`
const TEST_LIBRARIES = new RegExp(
  `${quoted([...SCRIPT_RUNNERS, ...SCRIPT_LIBRARIES])}` +
    '|^[ \\t]*(?:from|import)[ \\t]+(?:pytest|unittest|hypothesis|nose)\\b',
  'm',
)
const RUNNER = new RegExp(`^(?:${SCRIPT_RUNNERS.join('|')})(?:/|$)`)
const TESTS = new RegExp(
  [
    String.raw`(?:^|[\s;])(?:describe|it|test|suite)(?:\.\w+)?\(`,
    String.raw`^[ \t]*(?:async[ \t]+)?def test|^class Test|\bTestCase\b`,
  ].join('|'),
  'm',
)

/** The import of a library for tests; null without one. */
export function testLibraryIn(text: string): string | null {
  return TEST_LIBRARIES.exec(text)?.[0] ?? null
}

/** Does it define tests, or import what tests are made with? */
export function looksLikeTest(text: string): boolean {
  return testLibraryIn(text) !== null || definesTests(text)
}

/** Does it define tests? */
export function definesTests(text: string): boolean {
  return TESTS.test(text)
}

/** Does this JavaScript define tests with what it imports from a runner? */
export function usesRunner(text: string, imports: readonly Import[]): boolean {
  const runners = imports.filter(({ specifier }) => RUNNER.test(specifier))
  if (runners.length === 0) return false
  if (definesTests(text)) return true
  // A runner is often a function itself: `t('adds', …)`, `t.test(…)`, `require('tape')(…)`.
  const whole = runners.filter(({ start, end }) => !text.slice(start, end).includes('{'))
  const names = new Set(whole.flatMap((one) => one.names))
  const calls = text.matchAll(/(?<![\w$.])([\w$]{1,80})(?:\.\w{1,20})?\(/g)
  if ([...calls].some(([, name]) => names.has(name!))) return true
  return whole.some(({ end }) => text.startsWith(')(', end))
}
