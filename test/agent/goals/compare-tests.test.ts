import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { TestOutcomes } from 'runwright/agent'
import { changeOf, countTests, failureOf } from '../../../lib/agent/goals/compare-tests.js'

const FIRST: TestOutcomes = { 'a > one': 'fail', 'a > two': 'pass', 'a > three': 'skip' }

test('every outcome is counted', () => {
  assert.deepEqual(countTests(FIRST), { total: 3, passed: 1, failed: 1, skipped: 1 })
})

for (const { what, now, before = FIRST, failure = null, change = null } of [
  { what: 'the same tests, all passing', now: { ...FIRST, 'a > one': 'pass' } },
  { what: 'a failure', now: FIRST, failure: '1 of 3 tests fail' },
  {
    what: 'a new failing test',
    now: { 'b > new': 'fail' },
    failure: '1 of 1 tests fail, 3 did not run',
  },
  {
    what: 'a missing test',
    now: { 'a > two': 'pass', 'a > three': 'skip' },
    change: 'tests changed: "a > one" is missing',
  },
  { what: 'nothing left', now: {}, change: 'tests changed: "a > one" is missing (and 2 more)' },
  {
    what: 'a skip that was a failure',
    now: { ...FIRST, 'a > one': 'skip' },
    change: 'tests changed: "a > one" is skipped',
  },
  {
    what: 'a skipped test that runs now',
    now: { 'a > one': 'pass', 'a > two': 'pass', 'a > three': 'pass' },
  },
  {
    what: 'a file that stopped half-way',
    now: { 'a > two': 'pass', a: 'fail' },
    failure: 'a could not be loaded or stopped before its tests were done, 2 did not run',
  },
  { what: 'a file that reports tests now', before: { a: 'fail' }, now: { 'a > one': 'pass' } },
  {
    what: 'a file that reports none',
    before: { a: 'fail', 'b > x': 'pass' },
    now: { 'b > x': 'pass' },
    change: 'tests changed: "a" reports no tests',
  },
  { what: 'a first check without tests', before: null, now: {}, failure: 'no tests ran' },
  {
    what: 'a name that all objects have as a property',
    before: { 'a > toString': 'pass' },
    now: {},
    change: 'tests changed: "a > toString" is missing',
  },
] as readonly {
  what: string
  now: TestOutcomes
  before?: TestOutcomes | null
  failure?: string
  change?: string
}[]) {
  test(`${what}: ${failure ?? change ?? 'fine'}`, async () => {
    assert.equal(await failureOf(now, before), failure)
    if (failure === null && before !== null)
      assert.equal(await changeOf({ tests: now, idle: null }, before), change)
  })
}

test('where the runner reports idle files, tests may be named after another file', async () => {
  const before: TestOutcomes = { 'test/a.js': 'fail' }
  const tests: TestOutcomes = { 'test/shared.js > one': 'pass' }
  assert.equal(await changeOf({ tests, idle: [] }, before), null)
  const idle = 'tests changed: "test/a.js" reports no tests'
  assert.equal(await changeOf({ tests, idle: ['test/a.js'] }, before), idle)
  assert.equal(await changeOf({ tests, idle: null }, before), idle)
})
