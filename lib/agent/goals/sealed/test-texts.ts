/** What the text of a program tells about tests. */
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

/** Does it define tests? */
export function definesTests(text: string): boolean {
  return TESTS.test(text)
}
