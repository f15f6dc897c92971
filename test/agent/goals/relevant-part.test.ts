import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'

import { isSameContent } from '../../../lib/agent/goals/package-hash.js'
import {
  hasRelevantPart, hashRelevantPart, sampleKey, samplesIn, splitPart,
} from '../../../lib/agent/goals/relevant-part.js'

const PACKAGE = {
  name: 'a',
  version: '1.0.0',
  scripts: { test: 'x', build: 'y' },
  dependencies: { b: '1' },
}

const hashOf = (value: unknown): string => hashRelevantPart('package.json', JSON.stringify(value))!

test('in package.json scripts and runner settings count, in any order and layout', () => {
  const before = hashOf(PACKAGE)
  const moved = { dependencies: {}, scripts: { build: 'y', test: 'x' }, name: 'z' }
  const text = `\uFEFF${JSON.stringify(moved, null, 4)}`
  assert.equal(hashRelevantPart('package.json', text), before)
  for (const change of [
    { scripts: { test: 'x' } }, { scripts: { test: 'y', build: 'x' } }, { scripts: 'x' },
    { jest: {} }, { mocha: { grep: 'a' } }, { imports: {} },
    { scripts: { ...PACKAGE.scripts, pretest: 'z' } },
    { scripts: { ...PACKAGE.scripts, postbuild: 'z' } },
  ]) {
    const now = hashOf({ ...PACKAGE, ...change })
    assert.ok(!isSameContent(before, now), JSON.stringify(change))
  }
})

test('scripts may be added to a package.json, and then count', () => {
  const more = { ...PACKAGE, scripts: { ...PACKAGE.scripts, start: 'z', 'lint:all': 'z' } }
  assert.ok(isSameContent(hashOf(PACKAGE), hashOf(more)))
  assert.ok(!isSameContent(hashOf(more), hashOf(PACKAGE)))
  assert.ok(!isSameContent(hashOf({ jest: {} }), hashOf({ jest: {}, scripts: { pretest: 'z' } })))
  const many = Object.fromEntries(Array.from({ length: 201 }, (_, at) => [`s${at}`, 'x']))
  assert.ok(isSameContent(hashOf({ scripts: many }), hashOf({ scripts: many, name: 'a' })))
  assert.ok(!isSameContent(hashOf({ scripts: many }), hashOf({ scripts: { ...many, a: 'x' } })))
})

test('a package.json is compared with what earlier versions stored of it', () => {
  const stored = hash('sha256', '{"jest":{"a":[1]},"scripts":{"test":"x"}}')
  const now = { scripts: { test: 'x' }, jest: { a: [1] }, name: 'a', imports: {} }
  assert.ok(isSameContent(stored, hashOf(now)))
  assert.ok(!isSameContent(stored, hashOf({ ...now, scripts: { ...now.scripts, start: 'x' } })))
  assert.ok(!isSameContent(stored, hashOf({ imports: {} })))
  assert.ok(!isSameContent('', hashOf({ scripts: {} })))
})

test('an invalid package.json counts as a whole, and without settings it does not count', () => {
  const deep = `{"jest": ${'['.repeat(50_000)}${']'.repeat(50_000)}}`
  for (const whole of ['{,}', '1', 'null', deep]) {
    assert.equal(hashRelevantPart('package.json', whole), hash('sha256', whole))
  }
  assert.equal(hashRelevantPart('package.json', '[]'), null)
  assert.equal(hashRelevantPart('package.json', '{"name": "a"}'), null)
})

test('keys of package.json that describe no package count, whatever they are for', () => {
  const described = { ...PACKAGE, version: '2.0.0', exports: './a.js', files: [], prettier: {} }
  assert.equal(hashOf(described), hashOf(PACKAGE))
  assert.notEqual(hashOf({ ...PACKAGE, cases: [] }), hashOf(PACKAGE))
})

test('a part of package.json is the value of a key, or what its imports lead to', () => {
  const part = (key: string, more: object = {}): string | null =>
    hashRelevantPart(`package.json#${key}`, JSON.stringify({ ...PACKAGE, ...more }))
  assert.equal(part('version'), hash('sha256', '"1.0.0"'))
  assert.equal(part('exports'), hash('sha256', 'null'))
  assert.notEqual(part('entry', { main: './b.js' }), part('entry'))
  assert.equal(part('entry', { version: '2.0.0' }), part('entry'))
  assert.deepEqual(splitPart('a/package.json#version'), ['a/package.json', 'version'])
  assert.equal(splitPart('a#b.js'), null)
})

test('a sample is fenced or indented code, in which prose around it does not count', () => {
  const text = '# A\n\n```js\nadd(1)\n\nadd(2)\n```\nMore\n\n    add(3)\n'
  assert.deepEqual(samplesIn(text), ['add(1)', 'add(2)', 'add(3)'])
  const session = 'Use\n\n>>> add(1)\n2\n\n```\n>>> add(2)\n3\n```\nMore\n'
  assert.deepEqual(samplesIn(session), ['>>> add(1)\n2', '>>> add(2)\n3'])
  const key = `a.md#${sampleKey('add(3)')}`
  assert.notEqual(hashRelevantPart(key, text), null)
  assert.equal(hashRelevantPart(key, `Other\n${text}\n    add(4)\n`), hashRelevantPart(key, text))
  assert.equal(hashRelevantPart(key, text.replace('(3)', '(4)')), null)
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
    assert.equal(hashRelevantPart(name, without), null)
    const before = hashRelevantPart(name, file)
    assert.notEqual(before, null)
    for (const change of changes) {
      const now = hashRelevantPart(name, change)
      assert.ok(now !== null && now !== before, change)
    }
  })
}

test('every other file counts as a whole', () => {
  assert.equal(hasRelevantPart('a.test.js'), false)
  assert.equal(hashRelevantPart('a.test.js', 'x'), hash('sha256', 'x'))
})
