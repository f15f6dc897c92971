/** The output of a check begins with the tests that fail: why, and where in the project. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Pursuit, workspace, type Files } from './support.js'

const SUM_JS = `exports.add = (a, b) => {
  if (a === 9) throw new TypeError('nine is odd')
  return a - b
}
`
const SUM_PY = `def add(a, b):
    if a == 9:
        raise ValueError('nine is odd')
    return a - b
`
const NODE = `const { test } = require('node:test')
const assert = require('node:assert')
const { add } = require('./sum.js')
test('adds', () => assert.strictEqual(add(1, 2), 3))
test('adds nine', async (t) => { await t.test('and one', () => add(9, 1)) })
test('adds nothing', () => assert.strictEqual(add(1, 0), 1))
`
const UNITTEST = `import unittest
from sum import add
class TestAdd(unittest.TestCase):
    def test_adds(self):
        self.assertEqual(add(1, 2), 3)
    def test_nine(self):
        for other in (1, 2):
            with self.subTest(other=other):
                add(9, other)
    def test_nothing(self):
        self.assertEqual(add(1, 0), 1)
`
const PYTEST = `import pytest
from sum import add
def test_adds():
    assert add(1, 2) == 3
@pytest.fixture
def nine():
    return add(9, 1)
def test_nine(nine):
    pass
def test_nothing():
    assert add(1, 0) == 1
`

const RUNNERS: readonly [string, Files, string][] = [
  ['node --test sum.test.js', { 'sum.js': SUM_JS, 'sum.test.js': NODE }, `Failing tests:
- sum.test.js > adds
    AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:
    
    -1 !== 3
    at sum.test.js:4
- sum.test.js > adds nine > and one
    TypeError: nine is odd
    at sum.js:2
- sum.test.js > adds nine

`],
  ['python3 -m unittest test_sum', { 'sum.py': SUM_PY, 'test_sum.py': UNITTEST }, `Failing tests:
- test_sum.py > TestAdd > test_adds
    AssertionError: -1 != 3
    at test_sum.py:5
- test_sum.py > TestAdd > test_nine
    ValueError: nine is odd
    at sum.py:3

`],
  ['python3 -m pytest -q test_sum.py', { 'sum.py': SUM_PY, 'test_sum.py': PYTEST },
    `Failing tests:
- test_sum.py > test_adds
    assert -1 == 3
     +  where -1 = add(1, 2)
    at test_sum.py:4
- test_sum.py > test_nine
    ValueError: nine is odd
    at sum.py:3

`],
]

for (const [command, files, expected] of RUNNERS) {
  test(`${command}: failing tests come first`, async (t) => {
    const run = await Pursuit.start(await workspace(t, files), `shell: ${command}`)
    const { output } = await run.check()
    assert.equal(output.slice(0, expected.length), expected)
    assert.match(output.slice(expected.length), /nine is odd/, 'the report of the runner follows')
  })
}

test('quiet options of pytest leave the place of an error', async (t) => {
  const files = { 'sum.py': SUM_PY, 'test_sum.py': PYTEST }
  for (const option of ['--tb=short', '--tb=line', '--tb=native', '--tb=no']) {
    const run = await Pursuit.start(await workspace(t, files), `shell: python3 -m pytest ${option}`)
    const { output } = await run.check()
    assert.match(output, /^Failing tests:\n- test_sum.py > test_adds\n/, option)
    if (option !== '--tb=no') assert.match(output, /^ {4}.*nine is odd$/m, option)
  }
})
