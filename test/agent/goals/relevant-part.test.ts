import assert from 'node:assert/strict'
import { test } from 'node:test'

import { hasRelevantPart, relevantPart } from '../../../lib/agent/goals/relevant-part.js'

const PACKAGE = {
  name: 'a',
  version: '1.0.0',
  scripts: { test: 'x', build: 'y' },
  dependencies: { b: '1' },
}

test('in package.json scripts and runner settings count, in any order and layout', () => {
  const before = relevantPart('package.json', JSON.stringify(PACKAGE))
  const moved = { dependencies: {}, scripts: { build: 'y', test: 'x' }, name: 'z' }
  assert.equal(relevantPart('package.json', `\uFEFF${JSON.stringify(moved, null, 4)}`), before)
  for (const change of [{ scripts: { test: 'x' } }, { jest: {} }, { mocha: { grep: 'a' } }]) {
    assert.notEqual(relevantPart('package.json', JSON.stringify({ ...PACKAGE, ...change })), before)
  }
})

test('an invalid package.json counts as a whole, and without settings it does not count', () => {
  assert.equal(relevantPart('package.json', '{,}'), '{,}')
  assert.equal(relevantPart('package.json', '[]'), null)
  const deep = `{"jest": ${'['.repeat(50_000)}${']'.repeat(50_000)}}`
  assert.equal(relevantPart('package.json', deep), deep)
  assert.equal(relevantPart('package.json', '1'), '1')
  assert.equal(relevantPart('package.json', '{"name": "a"}'), null)
})

for (const { name, file, without, changes } of [
  {
    name: 'pyproject.toml',
    file: '[project]\nversion = "1"\n[tool.pytest.ini_options]\naddopts = "-q"\n[build]\nx = 1\n',
    without: '[project]\nversion = "2"\n# [tool.pytest]\n',
    changes: [
      '[tool.pytest.ini_options]\naddopts = "-k no"\n',
      '[ tool . "pytest".ini_options ]\naddopts = "-k no"\n',
      '[tool]\npytest.ini_options.addopts = "-k no"\n',
      'tool.pytest.ini_options.addopts = "-k no"\n',
      '[tool."\\u0070ytest".ini_options]\naddopts = "-k no"\n',
    ],
  },
  {
    name: 'setup.cfg',
    file: '[metadata]\nname = a\n[tool:pytest]\naddopts = -q\n',
    without: '[metadata]\nname = b\n',
    changes: ['[tool:pytest]\naddopts = -k no\n'],
  },
  {
    name: 'tox.ini',
    file: '[pytest]\naddopts = -q\n',
    without: '[tox]\nenvlist = py\n',
    changes: ['[pytest]\n'],
  },
  {
    name: 'Cargo.toml',
    file: '[package]\nname = "a"\n[lib]\npath = "a.rs"\n',
    without: '[dependencies]\nlibc = "1"\n',
    changes: ['[lib]\ntest = false\n', '[[test]]\nname = "x"\n'],
  },
]) {
  test(`in ${name} the sections of test runners count, however they are spelled`, () => {
    assert.ok(hasRelevantPart(name))
    assert.equal(relevantPart(name, without), null)
    const before = relevantPart(name, file)
    assert.notEqual(before, null)
    for (const change of changes) {
      const now = relevantPart(name, change)
      assert.ok(now !== null && now !== before, change)
    }
  })
}

test('every other file counts as a whole', () => {
  assert.equal(hasRelevantPart('a.test.js'), false)
  assert.equal(relevantPart('a.test.js', 'x'), 'x')
})
