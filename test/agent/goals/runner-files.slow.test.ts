import assert from 'node:assert/strict'
import { lstat, mkdir, rm, symlink, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'

import { HashCache } from '../../../lib/agent/goals/hash-cache.js'
import { TEST_RUNNERS } from '../../../lib/agent/goals/reports/registry.js'
import { configuredFiles } from '../../../lib/agent/goals/runner-files.js'
import { Pursuit, put, workspace } from './support.js'

test("a runner's packages and programs are found, and assertion libraries", async (t) => {
  const cwd = await workspace(t, {
    'node_modules/jest/package.json': '{}',
    'node_modules/@jest/core/index.js': '',
    'node_modules/jest-circus/index.js': '',
    'node_modules/expect/index.js': '',
    'node_modules/lodash/index.js': '',
    'node_modules/.bin/jest': '',
    'node_modules/.bin/tsc': '',
    '.venv/lib/python3.11/site-packages/_pytest/runner.py': '',
    '.venv/lib/python3.11/site-packages/x.pth': '',
    '.venv/lib/python3.11/site-packages/numpy/a.py': '',
  })
  assert.deepEqual(await TEST_RUNNERS.jest.packages(cwd), [
    'node_modules/.bin/jest',
    'node_modules/@jest/core',
    'node_modules/expect',
    'node_modules/jest',
    'node_modules/jest-circus',
  ])
  assert.deepEqual(await TEST_RUNNERS.pytest.packages(cwd), [
    '.venv/lib/python3.11/site-packages/_pytest',
    '.venv/lib/python3.11/site-packages/x.pth',
  ])
  assert.deepEqual(await TEST_RUNNERS.go.packages(cwd), ['node_modules/expect'])
})

test("files that a runner's configuration names belong to the check; sources do not", async (t) => {
  const cwd = await workspace(t, {
    'jest.config.ts':
      "export default { setupFilesAfterEnv: ['<rootDir>/a.ts', 'b'], rootDir: 'src' }",
    'vite.config.mjs': "export default { build: { lib: { entry: './src/index.js' } } }",
    '.mocharc.yml': 'require:\n  - ./d.js\n',
    'package.json': '{"main":"./src/index.js","mocha":{"require":"./e.cjs"}}',
    'a.ts': '',
    'b.js': '',
    'd.js': '',
    'e.cjs': '',
    'src/index.js': '',
  })
  assert.deepEqual(await configuredFiles(cwd), ['a.ts', 'd.js', 'e.cjs'])
})

test('packages linked inside the workspace count by content, others by their link', async (t) => {
  const outside = await workspace(t, { 'pkg/index.js': '1' })
  const cwd = await workspace(t, {
    'package.json': '{"scripts":{"test":"mocha"}}',
    'store/mocha/lib/runner.js': '1',
  })
  await mkdir(join(cwd, 'node_modules'))
  await symlink('../store/mocha', join(cwd, 'node_modules/mocha'))
  await symlink(join(outside, 'pkg'), join(cwd, 'node_modules/chai'))
  const run = await Pursuit.start(cwd, 'npm-test')
  assert.deepEqual(run.spec.runner, ['node_modules/chai', 'node_modules/mocha'])
  await put(outside, { 'pkg/index.js': '2' })
  assert.doesNotMatch((await run.check()).reason, /^tests changed/)
  await put(cwd, { 'store/mocha/lib/runner.js': '2' })
  assert.equal((await run.check()).reason, 'tests changed: node_modules/mocha was modified')
  await put(cwd, { 'store/mocha/lib/runner.js': '1' })
  await rm(join(cwd, 'node_modules/chai'))
  await symlink(cwd, join(cwd, 'node_modules/chai'))
  assert.equal((await run.check()).reason, 'tests changed: node_modules/chai was modified')
})

test('a hash is cached while lstat reports the same, but not right after a change', async (t) => {
  const cwd = await workspace(t, { a: '1' })
  const path = join(cwd, 'a')
  const hashes = new HashCache()
  const fresh = await lstat(path, { bigint: true })
  hashes.set(path, fresh, 'one')
  assert.equal(hashes.get(path, fresh), null, 'it may change again within one tick')
  const old = Object.assign(Object.create(fresh), { ...fresh, ctimeMs: fresh.ctimeMs - 10_000n })
  hashes.set(path, old, 'one')
  assert.equal(hashes.get(path, old), 'one')
  await put(cwd, { a: '2' })
  await utimes(path, fresh.atime, fresh.mtime)
  const reset = await lstat(path, { bigint: true })
  assert.ok(reset.mtimeMs <= fresh.mtimeMs, 'the time of modification can be set back')
  assert.equal(hashes.get(path, reset), null, 'the time of change cannot')
})
