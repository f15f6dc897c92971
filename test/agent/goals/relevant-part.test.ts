import assert from 'node:assert/strict'
import { test } from 'node:test'

import {
  hasRelevantPart, relevantPart, sampleKey, samplesIn, splitPart,
} from '../../../lib/agent/goals/relevant-part.js'

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

test('keys of package.json that describe no package count, whatever they are for', () => {
  const described = { ...PACKAGE, version: '2.0.0', exports: './a.js', files: [], prettier: {} }
  const before = relevantPart('package.json', JSON.stringify(PACKAGE))
  assert.equal(relevantPart('package.json', JSON.stringify(described)), before)
  assert.notEqual(relevantPart('package.json', JSON.stringify({ ...PACKAGE, cases: [] })), before)
})

test('a part of package.json is the value of a key, or what its imports lead to', () => {
  const part = (key: string, more: object = {}): string | null =>
    relevantPart(`package.json#${key}`, JSON.stringify({ ...PACKAGE, ...more }))
  assert.equal(part('version'), '"1.0.0"')
  assert.equal(part('exports'), 'null')
  assert.notEqual(part('entry', { main: './b.js' }), part('entry'))
  assert.equal(part('entry', { version: '2.0.0' }), part('entry'))
  assert.deepEqual(splitPart('a/package.json#version'), ['a/package.json', 'version'])
  assert.equal(splitPart('a#b.js'), null)
})

test('a sample is fenced or indented code, in which prose around it does not count', () => {
  const text = '# A\n\n```js\nadd(1)\n\nadd(2)\n```\nMore\n\n    add(3)\n'
  assert.deepEqual(samplesIn(text), ['add(1)', 'add(2)', 'add(3)'])
  const key = `a.md#${sampleKey('add(3)')}`
  assert.notEqual(relevantPart(key, text), null)
  assert.equal(relevantPart(key, `Other\n${text}\n    add(4)\n`), relevantPart(key, text))
  assert.equal(relevantPart(key, text.replace('(3)', '(4)')), null)
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
