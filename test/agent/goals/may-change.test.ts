import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  changedKeys, globProblem, isKeyOfWork, isNamed, isOfRunners,
} from '../../../lib/agent/goals/may-change.js'

test('globs are relative, and name keys of a package.json alone', () => {
  const problems = [
    'test/**', '**/package.json#exports', 'a/../b', '/etc/passwd', '', '!a', 'a.json#exports',
    'package.json#', 'package.json#a#b', 'package.json#scripts', 'package.json#jest',
  ].filter((glob) => globProblem(glob) !== null)
  assert.deepEqual(problems, [
    'a/../b', '/etc/passwd', '', '!a', 'a.json#exports', 'package.json#', 'package.json#a#b',
    'package.json#scripts', 'package.json#jest',
  ])
})

test('a file is named by a path, and a package.json by each key that has changed', () => {
  const globs = ['test/**', 'cases.json', 'packages/*/package.json#imports']
  assert.equal(isNamed(globs, 'test/deep/a.js'), true)
  assert.equal(isNamed(globs, 'src/cases.json'), false)
  assert.equal(isNamed(globs, 'packages/a/package.json', ['imports']), true)
  assert.equal(isNamed(globs, 'packages/a/package.json', ['imports', 'workspaces']), false)
  assert.equal(isNamed(globs, 'package.json', ['imports']), false)
  assert.equal(isNamed(['**'], 'package.json', ['imports']), false)
})

test('settings and hooks of runners are never covered, and neither are scripts', () => {
  const paths = [
    'jest.config.js', 'conftest.py', 'test/conftest.py', '.mocharc.yml', 'pytest.ini', 'x.pth',
    'src/__mocks__/fs.js', 'babel.config.js', 'package.json', 'tsconfig.json', 'cases.json',
  ]
  assert.deepEqual(paths.filter((path) => !isOfRunners(path)), ['tsconfig.json', 'cases.json'])
  const keys = ['scripts.test', 'jest', 'mocha', 'imports', 'exports']
  assert.deepEqual(keys.filter(isKeyOfWork), ['imports', 'exports'])
})

test('keys that decide a check have changed, or have not', () => {
  const before = { name: 'a', scripts: { test: 'mocha', old: 'x' }, imports: { '#a': './a.js' } }
  const of = (after: object | null): readonly string[] =>
    changedKeys(JSON.stringify(before), after === null ? null : JSON.stringify(after))
  assert.deepEqual(of(before), [])
  assert.deepEqual(of({ ...before, version: '2', dependencies: { b: '1' } }), [])
  assert.deepEqual(of({ ...before, scripts: { ...before.scripts, more: 'y' } }), [])
  assert.deepEqual(of({ ...before, scripts: { test: 'true' } }), ['scripts.test', 'scripts.old'])
  assert.deepEqual(of({ ...before, imports: {}, jest: {} }), ['imports', 'jest'])
  assert.deepEqual(of(null), ['imports', 'scripts.test', 'scripts.old'])
  assert.deepEqual(changedKeys('{', 'not JSON'), [])
})
