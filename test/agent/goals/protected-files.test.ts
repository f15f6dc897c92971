import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, rename, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'

import { commandGoal } from 'runwright/agent'
import {
  captureBaseline,
  compareFiles,
  hashFiles,
} from '../../../lib/agent/goals/protected-files.js'
import { put, workspace } from './support.js'
import type { Files } from './support.js'

const PROJECT: Files = {
  'package.json': '{"name": "a", "scripts": {"test": "mocha"}}',
  'src/a.js': '1',
  'test/a.test.js': '1',
  'test/fixtures/data.json': '{}',
  'tests/test_a.py': '1',
  'pyproject.toml': '[project]\nname = "a"\n',
  'node_modules/x/test/x.test.js': '1',
}

/** Captures the baseline of a workspace; `changes` compares the workspace with it. */
async function watch(
  cwd: string,
): Promise<{ files: string[]; changes: () => Promise<readonly string[]> }> {
  const spec = await commandGoal({ name: 'npm-test', command: 'npm test' }, cwd)
  const baseline = await captureBaseline(spec, cwd)
  return {
    files: Object.keys(baseline.files).sort(),
    changes: () => compareFiles(spec, cwd, baseline),
  }
}

test('tests, fixtures and configuration are protected, code and dependencies not', async (t) => {
  const { files, changes } = await watch(await workspace(t, PROJECT))
  assert.deepEqual(files, [
    'package.json',
    'test/a.test.js',
    'test/fixtures/data.json',
    'tests/test_a.py',
  ])
  assert.deepEqual(await changes(), [])
})

for (const { what, files, changes } of [
  { what: 'a changed source', files: { 'src/a.js': '2', 'src/b.js': '1' }, changes: [] },
  {
    what: 'a changed dependency in package.json',
    files: { 'package.json': '{"scripts":{"test":"mocha"},"dependencies":{"b":"1"}}' },
    changes: [],
  },
  { what: 'a new test', files: { 'test/b.test.js': '1' }, changes: [] },
  {
    what: 'another project version',
    files: { 'pyproject.toml': '[project]\nname = "b"\n' },
    changes: [],
  },
  {
    what: 'a file in test/tmp',
    files: { 'test/tmp/out.txt': '1', 'test/run.log': '1' },
    changes: [],
  },
  {
    what: 'a changed test',
    files: { 'test/a.test.js': '2' },
    changes: ['test/a.test.js was modified'],
  },
  {
    what: 'a changed fixture',
    files: { 'test/fixtures/data.json': '[]' },
    changes: ['test/fixtures/data.json was modified'],
  },
  {
    what: 'a changed script',
    files: { 'package.json': '{"scripts":{"test":"true"}}' },
    changes: ['package.json was modified'],
  },
  {
    what: 'removed scripts',
    files: { 'package.json': '{}' },
    changes: ['package.json was modified'],
  },
  {
    what: 'new pytest options',
    files: { 'pyproject.toml': '[tool.pytest.ini_options]\n' },
    changes: ['pyproject.toml was added'],
  },
  {
    what: 'a new .mocharc',
    files: { '.mocharc.json': '{}' },
    changes: ['.mocharc.json was added'],
  },
  {
    what: 'a new node.config.json',
    files: { 'node.config.json': '{}' },
    changes: ['node.config.json was added'],
  },
  {
    what: 'a new conftest.py',
    files: { 'tests/conftest.py': '' },
    changes: ['tests/conftest.py was added'],
  },
  { what: 'a new pytest.ini', files: { 'pytest.ini': '' }, changes: ['pytest.ini was added'] },
  {
    what: 'a module that replaces unittest',
    files: { 'unittest/__init__.py': '' },
    changes: ['unittest/__init__.py was added'],
  },
  {
    what: 'a new jest config',
    files: { 'jest.config.mjs': '' },
    changes: ['jest.config.mjs was added'],
  },
]) {
  test(`${what} is ${changes.length === 0 ? 'not ' : ''}a change of the check`, async (t) => {
    const cwd = await workspace(t, PROJECT)
    const watched = await watch(cwd)
    await put(cwd, files)
    assert.deepEqual(await watched.changes(), changes)
  })
}

test('a deleted folder of tests is one change for each file', async (t) => {
  const cwd = await workspace(t, PROJECT)
  const { changes } = await watch(cwd)
  await rm(join(cwd, 'test'), { recursive: true })
  assert.deepEqual(await changes(), [
    'test/a.test.js was deleted',
    'test/fixtures/data.json was deleted',
  ])
})

test('a test, or its folder, replaced by a link of the same content is a change', async (t) => {
  const cwd = await workspace(t, PROJECT)
  const { changes } = await watch(cwd)
  await rename(join(cwd, 'tests'), join(cwd, 'src/moved'))
  await symlink('src/moved', join(cwd, 'tests'))
  await rename(join(cwd, 'test/a.test.js'), join(cwd, 'src/x.js'))
  await symlink('../src/x.js', join(cwd, 'test/a.test.js'))
  assert.deepEqual(await changes(), [
    'test/a.test.js was replaced by a link',
    'tests/test_a.py was replaced by a link',
  ])
})

test('existing links are no change; the content of their targets inside counts', async (t) => {
  const cwd = await workspace(t, PROJECT)
  await symlink('../src/a.js', join(cwd, 'test/linked.test.js'))
  await symlink('..', join(cwd, 'test/loop'))
  await symlink('nowhere', join(cwd, 'test/dangling.test.js'))
  const { changes } = await watch(cwd)
  assert.deepEqual(await changes(), [])
  await put(cwd, { 'src/a.js': 'changed' })
  assert.deepEqual(
    (await changes()).filter((change) => !change.startsWith('test/loop/')),
    ['test/linked.test.js was modified'],
  )
})

test('a link out of the workspace is never followed: only its target path counts', async (t) => {
  const outside = await workspace(t, { 'secret.test.js': '1', 'folder/a.test.js': '1' })
  const cwd = await workspace(t, PROJECT)
  await symlink(join(outside, 'secret.test.js'), join(cwd, 'test/out.test.js'))
  await symlink(join(outside, 'folder'), join(cwd, 'test/out'))
  const { files, changes } = await watch(cwd)
  assert.ok(!files.includes('test/out/a.test.js'))
  await put(outside, { 'secret.test.js': '2', 'folder/a.test.js': '2' })
  assert.deepEqual(await changes(), [])
  await rm(join(cwd, 'test/out.test.js'))
  await symlink(join(outside, 'folder/a.test.js'), join(cwd, 'test/out.test.js'))
  assert.deepEqual(await changes(), ['test/out.test.js was modified'])
})

test('a pipe in place of a test does not block the check', async (t) => {
  const cwd = await workspace(t, PROJECT)
  const { changes } = await watch(cwd)
  await rm(join(cwd, 'test/a.test.js'))
  execFileSync('mkfifo', [join(cwd, 'test/a.test.js')])
  assert.deepEqual(await changes(), ['test/a.test.js was modified'])
})

test('a path named without wildcards is protected even below node_modules', async (t) => {
  const cwd = await workspace(t, { ...PROJECT, 'node_modules/typescript/lib/tsc.js': '1' })
  const spec = await commandGoal(
    { name: 'x', command: 'true', protected: ['node_modules/typescript/lib/tsc.js', '../out.js'] },
    cwd,
  )
  const baseline = await captureBaseline(spec, cwd)
  await put(cwd, { 'node_modules/typescript/lib/tsc.js': '2' })
  assert.deepEqual(await compareFiles(spec, cwd, baseline), [
    'node_modules/typescript/lib/tsc.js was modified',
  ])
})

test('folders that nest too deeply are refused; the error says what to do', async (t) => {
  const cwd = await workspace(t, PROJECT)
  await mkdir(join(cwd, ...Array.from({ length: 45 }, () => 'd')), { recursive: true })
  const spec = await commandGoal({ name: 'x', command: 'true' }, cwd)
  await assert.rejects(captureBaseline(spec, cwd), {
    code: 'ERR_AGENT_GOAL',
    problem: 'unsuitable',
    message: /start the run in the package's own folder/,
  })
})

test('in a deleted workspace every protected file counts as deleted', async (t) => {
  const cwd = await workspace(t, PROJECT)
  const { files, changes } = await watch(cwd)
  await rm(cwd, { recursive: true })
  assert.deepEqual(
    await changes(),
    files.map((file) => `${file} was deleted`),
  )
})

test('a change is one line, whatever the name of the file', async (t) => {
  const cwd = await workspace(t, { 'test/a\nb\u001b[31m.js': '1' })
  const { changes } = await watch(cwd)
  await rm(join(cwd, 'test'), { recursive: true })
  assert.deepEqual(await changes(), ['test/a?b?[31m.js was deleted'])
})

test('a huge file of settings is not parsed, but protected as a whole', async (t) => {
  const huge = '[project]\n' + 'a = 1\n'.repeat(100_000)
  const cwd = await workspace(t, { ...PROJECT, 'pyproject.toml': huge })
  const { changes } = await watch(cwd)
  await put(cwd, { 'pyproject.toml': `${huge}b = 1\n` })
  assert.deepEqual(await changes(), ['pyproject.toml was modified'])
})

const ODD_NAMES = ['qa/[a]*.js', 'qa/{b,c}.js', '!qa.js', 'qa/**', 'data/d?.json', '__proto__']

test('what the baseline names is compared whether or not a glob names it', async (t) => {
  const files = Object.fromEntries(ODD_NAMES.map((path) => [path, '1']))
  const cwd = await workspace(t, { ...PROJECT, ...files, 'qa/a.js': '1', 'data/do.json': '1' })
  const spec = await commandGoal({ name: 'npm-test', command: 'npm test' }, cwd)
  const baseline = await captureBaseline(spec, cwd)
  assert.deepEqual(ODD_NAMES.filter((path) => Object.hasOwn(baseline.files, path)), [])
  const added = await hashFiles(cwd, ODD_NAMES)
  assert.deepEqual(Object.keys(added).sort(), [...ODD_NAMES].sort())
  const grown = { files: { ...baseline.files, ...added } }
  assert.deepEqual(await compareFiles(spec, cwd, grown), [])

  await put(cwd, { 'qa/a.js': '2', 'data/do.json': '2' })
  assert.deepEqual(await compareFiles(spec, cwd, grown), [])

  await put(cwd, Object.fromEntries(ODD_NAMES.map((path) => [path, '2'])))
  const changes = await compareFiles(spec, cwd, grown)
  assert.deepEqual(changes, [...ODD_NAMES].sort().map((path) => `${path} was modified`))
})

test('hashes of named files are those of a baseline', async (t) => {
  const cwd = await workspace(t, PROJECT)
  await symlink('a.test.js', join(cwd, 'test/linked.test.js'))
  const spec = await commandGoal({ name: 'npm-test', command: 'npm test' }, cwd)
  const { files } = await captureBaseline(spec, cwd)
  assert.deepEqual(await hashFiles(cwd, Object.keys(files)), files)
  assert.deepEqual(await hashFiles(cwd, ['nowhere', '../outside', 'test', 'pyproject.toml']), {})
})

test('a folder replaced by a link to the same content is a change of its files', async (t) => {
  const cwd = await workspace(t, { ...PROJECT, 'qa/total.js': '1' })
  const spec = await commandGoal({ name: 'npm-test', command: 'npm test' }, cwd)
  const baseline = { files: await hashFiles(cwd, ['package.json', 'qa/total.js']) }
  await rename(join(cwd, 'qa'), join(cwd, 'moved'))
  await symlink('moved', join(cwd, 'qa'))
  assert.deepEqual(await compareFiles(spec, cwd, baseline), ['qa/total.js was replaced by a link'])
})
