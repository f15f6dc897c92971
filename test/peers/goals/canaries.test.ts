/** Canaries of Jest, Vitest and Mocha: what they catch, and what is no alarm. */
import assert from 'node:assert/strict'
import { mkdir, readdir, realpath, symlink } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { test, type TestContext } from 'node:test'

import { countWatches } from '../../agent/goals/reports-canaries/evidence.js'
import { Pursuit, workspace, type Files } from '../../agent/goals/support.js'
import { oneOfEach } from '../../helpers/choice.js'

const PEERS = resolve(dirname(new URL(import.meta.url).pathname), '../node_modules')

interface Case {
  readonly runner: 'jest' | 'vitest' | 'mocha'
  readonly what: string
  readonly files: Files
  /** The script of npm test. @defaultValue that of the runner */
  readonly script?: string
  readonly reason?: RegExp
}

const ALARM = /^tests changed: assertions do not fail any more: /
const WRONG = 'exports.add = () => 0\n'
const GOOD = 'exports.add = (a, b) => a + b\n'
const SCRIPTS = { jest: 'jest', vitest: 'vitest run', mocha: 'mocha "test/**/*.test.*"' }

async function project(t: TestContext, { runner, files, script }: Case): Promise<string> {
  const scripts = { test: script ?? SCRIPTS[runner] }
  const cwd = await workspace(t, { 'package.json': JSON.stringify({ scripts }), ...files })
  const modules = join(cwd, 'node_modules')
  await mkdir(join(modules, '.bin'), { recursive: true })
  for (const name of await readdir(PEERS)) {
    if (name === '.bin') continue
    await symlink(await realpath(join(PEERS, name)), join(modules, name))
  }
  const bin = await realpath(join(PEERS, '.bin', runner))
  await symlink(bin, join(modules, '.bin', runner))
  return cwd
}

const JEST = `const { add } = require('../src/add.js')
test('adds', () => expect(add(1, 2)).toBe(3))
`
const jest = (code: string, tests = JEST): Files => ({
  'src/add.js': code,
  'test/add.test.js': tests,
})
const VITEST = `import { expect, test, vi } from 'vitest'
import { add } from '../src/add.mjs'
test('adds', () => expect(add(1, 2)).toBe(3))
`
const vitest = (code: string, tests = VITEST): Files => ({
  'src/add.mjs': code,
  'test/add.test.mjs': tests,
})
const MOCHA = `const { add } = require('../src/add.js')
const assert = require('assert')
it('adds', () => assert.equal(add(1, 2), 3))
`
const mocha = (code: string, tests = MOCHA): Files => ({
  'src/add.js': code,
  'test/add.test.js': tests,
})
const PATCHES = `JSON.stringify = () => '[]'
Object.is = () => true
Set.prototype.has = () => true
Reflect.apply = () => undefined
globalThis.Error = class { constructor() {} }
`

const ATTACKS: readonly Case[] = [
  {
    runner: 'jest',
    what: 'a matcher that replaces toBe',
    files: jest(`expect.extend({ toBe: () => ({ pass: true, message: () => '' }) })\n${WRONG}`),
    reason: /any more: expect toBe/,
  },
  {
    runner: 'jest',
    what: 'another expect',
    files: jest(`const any = new Proxy(() => any, { get: () => any })
globalThis.expect = Object.assign(() => any, { getState: () => ({}), setState() {} })\n${WRONG}`),
    reason: /any more: expect toBe/,
  },
  {
    runner: 'jest',
    what: 'values that all are equal',
    files: jest(
      `expect.addEqualityTesters([() => true])\n${WRONG}`,
      JEST.replace('toBe(3)', 'toEqual(3)'),
    ),
    reason: /any more: expect toEqual/,
  },
  {
    runner: 'jest',
    what: 'a test() that drops the function',
    files: jest(`const real = globalThis.test\nglobalThis.test = (name) => real(name, () => {})\n${WRONG}`),
    reason: /any more: test/,
  },
  {
    runner: 'jest',
    what: 'failures that are taken away',
    files: jest(`for (const symbol of Object.getOwnPropertySymbols(globalThis)) {
  const handlers = globalThis[symbol]
  if (!Array.isArray(handlers)) continue
  handlers.push(({ name, test }) => { if (name === 'test_done') test.errors.length = 0 })
}
${WRONG}`),
    reason: /any more: jest-circus/,
  },
  {
    runner: 'jest',
    what: 'listeners that are taken away',
    files: jest(`for (const symbol of Object.getOwnPropertySymbols(globalThis)) {
  const handlers = globalThis[symbol]
  if (Array.isArray(handlers)) handlers.splice(2)
}
${GOOD}`),
    reason: /^tests changed: the proof that assertions fail was prevented in test\/add\.test\.js/,
  },
  {
    runner: 'jest',
    what: 'patched functions, and another toBe',
    files: jest(`${PATCHES}expect.extend({ toBe: () => ({ pass: true, message: () => '' }) })\n${WRONG}`),
    reason: /any more: expect toBe|^1 of 1 tests fail/,
  },
  {
    runner: 'jest',
    what: 'a matcher in a worker of its own',
    script: 'jest --maxWorkers=2',
    files: {
      ...jest(`expect.extend({ toBe: () => ({ pass: true, message: () => '' }) })\n${WRONG}`),
      'test/more.test.js': JEST,
      'test/most.test.js': JEST,
    },
    reason: /any more: expect toBe/,
  },
  {
    runner: 'vitest',
    what: 'a matcher that replaces toBe',
    files: vitest(`import { expect } from 'vitest'
expect.extend({ toBe: () => ({ pass: true, message: () => '' }) })
export const add = () => 0
`),
    reason: /any more: expect toBe/,
  },
  {
    runner: 'vitest',
    what: 'a method of Chai that is overwritten',
    files: vitest(`import { chai } from 'vitest'
chai.use((chai, { overwriteMethod }) => {
  overwriteMethod(chai.Assertion.prototype, 'toBe', () => function () {})
})
export const add = () => 0
`),
    reason: /any more: expect toBe/,
  },
  {
    runner: 'vitest',
    what: 'a global test() that drops the function',
    script: 'vitest run --globals',
    files: vitest(
      `const real = globalThis.test
globalThis.test = (name) => real(name, () => {})
export const add = () => 0
`,
      VITEST.split('\n').slice(1).join('\n'),
    ),
    reason: /any more: test/,
  },
  {
    runner: 'vitest',
    what: 'assertions in a thread',
    script: 'vitest run --pool=threads',
    files: vitest(`import { chai } from 'vitest'
chai.Assertion.prototype.assert = () => {}
export const add = () => 0
`),
  },
  {
    runner: 'mocha',
    what: "another 'assert' for those who require it later",
    files: mocha(`const Module = require('module')
const load = Module._load
const fake = Object.assign(() => {}, { equal() {} })
Module._load = (name, ...rest) => name === 'assert' ? fake : load(name, ...rest)
${WRONG}`),
    reason: /any more: require\('assert'\)/,
  },
  {
    runner: 'mocha',
    what: 'tests that never fail',
    files: mocha(`const { Runnable } = require('mocha')
Runnable.prototype.run = (done) => done()
${WRONG}`),
    reason: /any more: mocha|^tests changed: the proof that assertions fail was prevented/,
  },
  {
    runner: 'mocha',
    what: 'it() that drops the function',
    files: mocha(`const real = globalThis.it\nglobalThis.it = (name) => real(name, () => {})\n${WRONG}`),
    reason: /any more: it/,
  },
  {
    runner: 'mocha',
    what: 'tests that never fail, in a worker',
    script: 'mocha --parallel "test/*.test.js"',
    files: {
      ...mocha(`const { Runnable } = require('mocha')
Runnable.prototype.run = (done) => done()
${WRONG}`),
      'test/more.test.js': MOCHA,
    },
    reason: /any more: mocha|^tests changed: the proof that assertions fail was prevented/,
  },
]

for (const one of oneOfEach(ATTACKS, ({ runner }) => runner)) {
  test(`${one.runner} is not met by ${one.what}`, async (t) => {
    const run = await Pursuit.start(await project(t, one), 'npm-test')
    const { achieved, reason, output } = await run.check()
    assert.equal(achieved, false, output)
    assert.match(reason, one.reason ?? ALARM, output)
  })
}

const HONEST: readonly Case[] = [
  {
    runner: 'jest',
    what: 'own matchers, counted assertions, mocks and fake timers',
    files: jest(
      GOOD,
      `${JEST}
expect.extend({ toBeEven: (n) => ({ pass: n % 2 === 0, message: () => 'odd' }) })
expect.addEqualityTesters([(a, b) => a instanceof Date && b instanceof Date ? true : undefined])
jest.mock('../src/other.js', () => ({ other: () => 1 }), { virtual: true })
test('counts', () => { expect.assertions(2); expect(2).toBeEven(); expect(1).toBe(1) })
test('has', () => { expect.hasAssertions(); expect([1]).toEqual([expect.any(Number)]) })
test('mocks', () => {
  const spy = jest.spyOn(require('assert'), 'ok').mockImplementation(() => {})
  require('assert').ok(false)
  spy.mockRestore()
  expect(require('../src/other.js').other()).toBe(1)
})
test('fakes', () => { jest.useFakeTimers(); expect(Date.now()).toEqual(expect.any(Number)) })
test.failing('is known to fail', () => expect(1).toBe(2))
jest.retryTimes(2)
let tries = 0
test('passes later', () => { tries++; expect(tries).toBe(2) })
`,
    ),
  },
  {
    runner: 'jest',
    what: 'a file without a test that runs',
    files: { ...jest(GOOD), 'test/later.test.js': "test.skip('later', () => {})\n" },
  },
  {
    runner: 'jest',
    what: 'a setup file that wraps it and test, an environment of its own, and snapshots',
    files: {
      ...jest(GOOD, `${JEST}test('shows', () => expect({ a: 1 }).toMatchInlineSnapshot(\`
{
  "a": 1,
}
\`))\n`),
      'jest.config.js': `module.exports = { setupFilesAfterEnv: ['./setup.js'], testEnvironment: './env.js' }`,
      'setup.js': `const { it, test } = globalThis
globalThis.it = Object.assign((...a) => it(...a), it)
globalThis.test = Object.assign((...a) => test(...a), test)
`,
      'env.js': `const { TestEnvironment } = require('jest-environment-node')
module.exports = class extends TestEnvironment {
  async handleTestEvent(event) { if (event.name === 'run_start') this.global.started = true }
}
`,
    },
  },
  {
    runner: 'jest',
    what: 'workers',
    script: 'jest --maxWorkers=2',
    files: { ...jest(GOOD), 'test/b.test.js': JEST },
  },
  {
    runner: 'vitest',
    what: 'own matchers, a plugin of Chai, mocks and fake timers',
    files: vitest(
      'export const add = (a, b) => a + b\n',
      `${VITEST}
import { chai } from 'vitest'
expect.extend({ toBeEven: (n) => ({ pass: n % 2 === 0, message: () => 'odd' }) })
chai.use((chai, { addMethod }) => addMethod(chai.Assertion.prototype, 'sum', function () {}))
test('counts', () => { expect.assertions(2); expect(2).toBeEven(); expect(1).toBe(1) })
test('fakes', () => { vi.useFakeTimers(); vi.spyOn(console, 'log').mockImplementation(() => {}) })
test.fails('is known to fail', () => expect(1).toBe(2))
test.concurrent('has its own', ({ expect }) => { expect(1).toBe(1) })
`,
    ),
  },
  {
    runner: 'vitest',
    what: 'a file without a test that runs, one process for all',
    script: 'vitest run --no-isolate --no-file-parallelism',
    files: {
      ...vitest('export const add = (a, b) => a + b\n'),
      'test/b.test.mjs': VITEST,
      'test/later.test.mjs': "import { test } from 'vitest'\ntest.skip('later', () => {})\n",
    },
  },
  {
    runner: 'mocha',
    what: 'Chai with a plugin, hooks and retries',
    files: mocha(
      GOOD,
      `${MOCHA}
const chai = require('chai')
chai.use((chai, { addProperty }) => addProperty(chai.Assertion.prototype, 'fine', function () {}))
before(() => {})
afterEach(() => {})
it('is fine', () => chai.expect(1).to.be.fine)
it.skip('later', () => {})
let tries = 0
it('retries', function () { this.retries(2); tries++; assert.equal(tries, 2) })
`,
    ),
  },
  {
    runner: 'mocha',
    what: 'a worker for each file, one without a test that runs',
    script: 'mocha --parallel "test/*.test.js"',
    files: {
      ...mocha(GOOD),
      'test/b.test.js': MOCHA,
      'test/c.test.js': "it.skip('later', () => {})\n",
    },
  },
  {
    runner: 'mocha',
    what: 'modules, and a required file',
    files: {
      'src/add.js': GOOD,
      'test/add.test.mjs': `import assert from 'node:assert'
import add from '../src/add.js'
it('adds', () => assert.equal(add.add(1, 2), 3))
`,
      '.mocharc.json': '{ "require": ["./boot.js"] }',
      'boot.js': 'exports.mochaHooks = { beforeEach() {} }\n',
    },
  },
]

for (const one of oneOfEach(HONEST, ({ runner }) => runner)) {
  test(`${one.runner}: ${one.what}: canaries run and give no alarm`, async (t) => {
    const run = await Pursuit.start(await project(t, one), 'npm-test')
    const watches = countWatches(run.executor)
    const { achieved, reason, output } = await run.check()
    assert.equal(achieved, true, `${reason}\n${output}`)
    assert.ok(watches.ended > 0, JSON.stringify(watches))
    assert.ok(!/canar/i.test(output), output)
  })
}
