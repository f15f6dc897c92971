/** What the text of a program tells about tests. */

const SCRIPT_LIBRARIES = [
  ...['node:test', 'bun:test', 'mocha', 'vitest', '@?jest(?:/globals)?', 'ava', 'tap'],
  ...['tape', 'uvu', 'chai', 'expect', 'should', 'sinon', 'jasmine', 'supertest', 'nock', 'msw'],
  ...['fast-check', '@playwright/test', '@testing-library/[\\w-]+'],
]
const TEST_LIBRARIES = new RegExp(
  `['"](?:${SCRIPT_LIBRARIES.join('|')})(?:/[\\w/-]*)?['"]` +
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

/** Does it define tests, or import what tests are made with? */
export function looksLikeTest(text: string): boolean {
  return testLibraryIn(text) !== null || definesTests(text)
}

/** Does it define tests? */
export function definesTests(text: string): boolean {
  return TESTS.test(text)
}
