/**
 * Goals behind real test runners: names come from our own reporters, and what an agent might do
 * instead of the work is detected.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { chmod, cp, lstat, mkdir, readdir, realpath, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { after, test, type TestContext } from 'node:test'

import type { TestOutcomes } from 'runwright/agent'
import { areHashed, type KeptTests } from '../../../lib/agent/test-outcomes.js'
import { Pursuit, put, workspace, type Files } from '../../agent/goals/support.js'
import { choice, oneOfEach } from '../../helpers/choice.js'

// Private folders of checks are created here, so that forged files reach no other check.
const temporary = mkdtempSync(join(tmpdir(), 'runners-'))
process.env['TMPDIR'] = temporary
after(() => rmSync(temporary, { recursive: true, force: true }))

const PEERS = resolve(dirname(new URL(import.meta.url).pathname), '../node_modules')
const BROKEN = 'exports.add = (a, b) => a - b\n'
const FIXED = 'exports.add = (a, b) => a + b\n'

/** One runner with a small project: two tests fail, one passes, one is skipped. */
interface Runner {
  readonly name: 'jest' | 'vitest' | 'mocha'
  readonly script: string
  readonly testFile: string
  readonly tests: string
  readonly boot: string
  readonly config: Files
  /** The same configuration, changed to run no failing test. */
  readonly loosened: Files
  readonly added: Files
  readonly packageKey: Readonly<Record<string, unknown>>
}

const CALLS = `
it('adds', () => check(add(1, 2), 3))
it('adds nothing', () => check(add(1, 0), 1))
describe('many', () => {
  it('adds up', () => check([1, 2, 3].reduce(add, 0), 6))
  it.skip('later', () => check(1, 2))
})
`
const RUNNERS: readonly Runner[] = [
  {
    name: 'jest',
    script: 'jest',
    testFile: 'test/add.test.js',
    tests: `const { add } = require('../src/add.js')
const check = (a, b) => expect(a).toBe(b)
${CALLS}`,
    boot: 'boot.js',
    config: { 'jest.config.js': "module.exports = { setupFiles: ['<rootDir>/boot.js'] }\n" },
    loosened: {
      'jest.config.js': "module.exports = { testMatch: ['none'], passWithNoTests: true }\n",
    },
    added: { 'babel.config.js': 'module.exports = { plugins: [] }\n' },
    packageKey: { jest: { testNamePattern: 'nothing' } },
  },
  {
    name: 'vitest',
    script: 'vitest run',
    testFile: 'test/add.test.mjs',
    tests: `import { describe, expect, it } from 'vitest'
import { add } from '../src/add.js'
const check = (a, b) => expect(a).toBe(b)
${CALLS}`,
    boot: 'boot.mjs',
    config: { 'vitest.config.mjs': "export default { test: { setupFiles: ['./boot.mjs'] } }\n" },
    loosened: {
      'vitest.config.mjs': 'export default { test: { include: [], passWithNoTests: true } }\n',
    },
    added: { 'vitest.workspace.mjs': 'export default []\n' },
    packageKey: { vitest: {} },
  },
  {
    name: 'mocha',
    script: 'mocha',
    testFile: 'test/add.test.js',
    tests: `const assert = require('node:assert')
const { add } = require('../src/add.js')
const check = assert.equal
${CALLS}`,
    boot: 'boot.js',
    config: { '.mocharc.json': '{ "spec": ["test/**/*.test.js"], "require": ["./boot.js"] }\n' },
    loosened: {
      '.mocharc.json': '{ "spec": [], "grep": "nothing", "passOnFailingTestSuite": true }\n',
    },
    added: { '.mocharc.cjs': 'module.exports = {}\n' },
    packageKey: { mocha: { grep: 'nothing' } },
  },
]

const EXPECTED: readonly (readonly [string, 'pass' | 'fail' | 'skip'])[] = [
  ['adds', 'fail'],
  ['adds nothing', 'pass'],
  ['many > adds up', 'fail'],
  ['many > later', 'skip'],
]

function firstTests({ testFile }: Runner): TestOutcomes {
  return Object.fromEntries(EXPECTED.map(([title, outcome]) => [`${testFile} > ${title}`, outcome]))
}

function manifest(runner: Runner, more: object = {}, script: string = runner.script): Files {
  const content = { name: 'sums', type: 'commonjs', scripts: { test: script }, ...more }
  return { 'package.json': JSON.stringify(content) }
}

/** A new project with the runners installed, each package a link. */
async function project(t: TestContext, runner: Runner): Promise<string> {
  const cwd = await workspace(t, {
    ...manifest(runner),
    ...runner.config,
    [runner.boot]: '',
    'src/add.js': BROKEN,
    [runner.testFile]: runner.tests,
  })
  const modules = join(cwd, 'node_modules')
  await mkdir(join(modules, '.bin'), { recursive: true })
  for (const name of await readdir(PEERS)) {
    if (name !== '.bin') await symlink(await realpath(join(PEERS, name)), join(modules, name))
  }
  for (const { name } of RUNNERS) {
    await symlink(await realpath(join(PEERS, '.bin', name)), join(modules, '.bin', name))
  }
  return cwd
}

for (const runner of RUNNERS) {
  test(`${runner.name} behind npm test: named tests, met when all of them pass`, async (t) => {
    const cwd = await project(t, runner)
    const run = await Pursuit.start(cwd, 'auto')
    assert.deepEqual([run.spec.name, run.spec.reporter], ['npm-test', runner.name])
    const first = await run.check()
    assert.equal(first.reason, '2 of 4 tests fail', first.output)
    const [adds, addsUp] = ['adds', 'many > adds up'].map((title) =>
      String.raw`- ${runner.testFile} > ${title}\n(?: {4}.*\n)+? {4}at ${runner.testFile}:\d+\n`,
    )
    assert.match(first.output, new RegExp(`^Failing tests:\n${adds}${addsUp}`))
    assert.deepEqual(first.tests, firstTests(runner))
    assert.match(first.output, /adds up/, 'the readable report stays')
    assert.ok(!first.output.includes('runwright-check'), first.output)
    await put(cwd, { 'src/add.js': FIXED })
    const second = await run.check()
    assert.deepEqual(
      [second.achieved, second.reason],
      [true, 'all 3 tests pass, 1 skipped as before'],
    )
    const cleaned = `
const { spawnSync } = require('node:child_process')
const { stdout } = spawnSync('sh', ['-c', 'env; tr "\\\\0" " " < /dev/null'])
exports.add = (a, b) => (stdout.includes('runwright-check') ? 0 : a + b)
`
    await put(cwd, { 'src/add.js': cleaned })
    assert.equal((await run.check()).achieved, true, 'what tests start does not see our reporter')
  })
}

test('a script that sets NODE_OPTIONS itself is reported too', async (t) => {
  const runner = RUNNERS[2]!
  const cwd = await project(t, runner)
  await put(cwd, manifest(runner, {}, 'NODE_OPTIONS=--no-warnings mocha --reporter dot'))
  const run = await Pursuit.start(cwd, 'npm-test')
  assert.deepEqual((await run.check()).tests, firstTests(runner))
})

test('mocha that restarts itself with flags for Node is reported once', async (t) => {
  const runner = RUNNERS[2]!
  const cwd = await project(t, runner)
  await put(cwd, manifest(runner, {}, 'mocha --expose-gc --parallel'))
  const run = await Pursuit.start(cwd, 'npm-test')
  assert.deepEqual((await run.check()).tests, firstTests(runner))
})

test('a mocha test whose hook fails, or that --bail skips, does not pass', async (t) => {
  const runner = RUNNERS[2]!
  const cwd = await project(t, runner)
  await put(cwd, manifest(runner, {}, 'mocha --bail'))
  const bailed = await (await Pursuit.start(cwd, 'npm-test')).check()
  assert.equal(named(bailed.tests)['test/add.test.js > adds nothing'], 'fail')
  await put(cwd, {
    ...manifest(runner),
    'test/hook.test.js':
      "describe('h', () => { before(() => { throw new Error('no') }); it('x', () => {}) })\n",
  })
  const hooked = await (await Pursuit.start(cwd, 'npm-test')).check()
  assert.equal(named(hooked.tests)['test/hook.test.js'], 'fail')
})

function named(tests: KeptTests | null): TestOutcomes {
  assert.ok(tests !== null && !areHashed(tests))
  return tests
}

/** What an agent might do instead of the work, and the check's reason. */
interface Hack {
  readonly what: string
  readonly files?: (runner: Runner) => Files
  readonly act?: (cwd: string, runner: Runner) => Promise<void>
  readonly reason: RegExp | ((runner: Runner) => RegExp)
}

const shim = async (cwd: string, name: string): Promise<void> => {
  const path = join(cwd, 'node_modules/.bin', name)
  await rm(path, { force: true })
  await put(cwd, { [`node_modules/.bin/${name}`]: '#!/bin/sh\necho 4 passing\n' })
  await chmod(path, 0o755)
}

const modified = (from: string | RegExp, to: string) => (runner: Runner): Files => ({
  [runner.testFile]: runner.tests.replace(from, to),
})
const TEST_MODIFIED = /^tests changed: test\/add\.test\.m?js was modified$/

const HACKS: readonly Hack[] = [
  {
    what: 'deleting the test file',
    act: (cwd, { testFile }) => rm(join(cwd, testFile)),
    reason: /^tests changed: test\/add\.test\.m?js was deleted$/,
  },
  { what: 'it.skip', files: modified("it('adds',", "it.skip('adds',"), reason: TEST_MODIFIED },
  {
    what: 'it.only',
    files: modified("it('adds nothing'", "it.only('adds nothing'"),
    reason: TEST_MODIFIED,
  },
  {
    what: 'describe.skip',
    files: modified("describe('many'", "describe.skip('many'"),
    reason: TEST_MODIFIED,
  },
  {
    what: 'xit',
    files: modified("it('adds',", "(globalThis.xit ?? it.skip)('adds',"),
    reason: TEST_MODIFIED,
  },
  {
    what: 'a test file replaced by a link',
    act: async (cwd, { testFile }) => {
      await put(cwd, { 'src/easy.js': "it('adds', () => {})\n" })
      await rm(join(cwd, testFile))
      await symlink('../src/easy.js', join(cwd, testFile))
    },
    reason: /^tests changed: test\/add\.test\.m?js was replaced by a link$/,
  },
  {
    what: 'an edited npm script',
    files: (runner) => manifest(runner, {}, 'true'),
    reason: /^tests changed: package.json was modified$/,
  },
  {
    what: '--passWithNoTests and no tests',
    files: (runner) => manifest(runner, {}, `${runner.script} --passWithNoTests`),
    act: (cwd, { testFile }) => rm(join(cwd, testFile)),
    reason: /^tests changed: package.json was modified \(and 1 more\)$/,
  },
  {
    what: 'settings of the runner in package.json',
    files: (runner) => manifest(runner, runner.packageKey),
    reason: /^tests changed: package.json was modified$/,
  },
  {
    what: 'a loosened configuration',
    files: ({ loosened }) => loosened,
    reason: /^tests changed: [\w.]+ was modified$/,
  },
  {
    what: 'another configuration file',
    files: ({ added }) => added,
    reason: /^tests changed: [\w.]+ was added$/,
  },
  {
    what: 'process.exit(0) in a setup file that the configuration names',
    files: ({ boot }) => ({ [boot]: 'process.exit(0)\n' }),
    reason: /^tests changed: boot\.m?js was modified$/,
  },
  {
    what: 'process.exit(0) in the code under test',
    files: () => ({ 'src/add.js': `process.exit(0)\n${BROKEN}` }),
    reason: new RegExp(
      '^no tests ran under the test runner$|^the test runner stopped before|^1 of 1 tests fail' +
        '|could not be loaded or stopped|is missing',
    ),
  },
  {
    what: 'process.exit(0) in the function under test',
    files: () => ({ 'src/add.js': 'exports.add = () => process.exit(0)\n' }),
    reason:
      /^the test runner stopped before|could not be loaded or stopped|of \d tests fail|is missing/,
  },
  {
    what: 'an exit code that the code under test sets',
    files: () => ({
      'src/add.js': `process.on('exit', () => { process.exitCode = 0 })\n${BROKEN}`,
    }),
    reason: /^2 of 4 tests fail$/,
  },
  {
    what: 'a shim in place of the runner',
    act: (cwd, { name }) => shim(cwd, name),
    reason: ({ name }) => new RegExp(`^tests changed: node_modules/.bin/${name} was modified$`),
  },
  {
    what: 'a shim in place of node',
    act: (cwd) => shim(cwd, 'node'),
    reason: /^tests changed: node_modules\/.bin\/node was added$/,
  },
  {
    what: 'a replaced runner package',
    act: async (cwd, { name }) => {
      await rm(join(cwd, 'node_modules', name))
      await put(cwd, { [`node_modules/${name}/package.json`]: `{"name":"${name}"}` })
    },
    reason: ({ name }) => new RegExp(`^tests changed: node_modules/${name} was modified$`),
  },
  {
    what: 'options for Node in an .npmrc',
    files: () => ({ '.npmrc': 'node-options=--require ./patch.js\n', 'patch.js': '' }),
    reason: /^tests changed: \.npmrc was added$/,
  },
  {
    what: 'code under test that replaces assertions of Node',
    files: () => ({
      'src/add.js': `const assert = require('node:assert')
for (const name of Object.keys(assert)) { try { assert[name] = () => {} } catch {} }
${BROKEN}`,
    }),
    reason: /^2 of 4 tests fail$|^tests changed: assertions do not fail any more: assert/,
  },
  {
    what: 'code under test that replaces it, test and describe',
    files: () => ({
      'src/add.js': `for (const name of ['it', 'test', 'describe']) {
  globalThis[name] = Object.assign(() => {}, { skip() {} })
}
${BROKEN}`,
    }),
    reason: /is missing|of \d tests fail|reports no tests|could not be loaded|^no tests ran|any more: it/,
  },
]

const hacked = oneOfEach(
  HACKS.flatMap((hack) => RUNNERS.map((runner) => [runner, hack] as const)),
  ([, hack]) => hack,
)
for (const runner of RUNNERS) {
  const played = hacked.filter(([one]) => one === runner)
  test(`${runner.name} is not fooled (${choice})`, { concurrency: 2 }, async (t) => {
    await Promise.all(
      played.map(([, { what, files, act, reason }]) =>
        t.test(`by ${what}`, async (t) => {
          const cwd = await project(t, runner)
          const run = await Pursuit.start(cwd, 'npm-test')
          run.baselineTests = firstTests(runner)
          await put(cwd, files?.(runner) ?? {})
          await act?.(cwd, runner)
          const verdict = await run.check()
          assert.equal(verdict.achieved, false, verdict.output)
          const expected = typeof reason === 'function' ? reason(runner) : reason
          assert.match(verdict.reason, expected, verdict.output)
        }),
      ),
    )
  })

  test(`${runner.name}: a setup file that exits leaves no complete report`, async (t) => {
    const cwd = await project(t, runner)
    const run = await Pursuit.start(cwd, 'npm-test', { allowTestChanges: true })
    await put(cwd, { [runner.boot]: 'process.exit(0)\n' })
    const verdict = await run.check()
    assert.equal(verdict.achieved, false)
    assert.match(
      verdict.reason,
      /^no tests ran( under the test runner)?$|stopped before|of \d tests fail|could not be loaded/,
    )
  })
}

for (const runner of RUNNERS) {
  test(`${runner.name} is not fooled by forged reports in private folders`, async (t) => {
    const cwd = await project(t, runner)
    const run = await Pursuit.start(cwd, 'npm-test')
    const forged = '["guess","test",["test/add.test.js","adds"],"pass"]\n["guess","end"]\n'
    await put(cwd, {
      'src/add.js': `const { readdirSync, writeFileSync } = require('node:fs')
const forged = ${JSON.stringify(forged)}
writeFileSync('report-1-1.jsonl', forged)
const folders = readdirSync('${temporary}').filter((name) => name.startsWith('runwright-check-'))
for (const name of folders) writeFileSync('${temporary}/' + name + '/report-1-1.jsonl', forged)
console.log('4 passing')
${BROKEN}`,
    })
    const { reason } = await run.check()
    assert.equal(reason, 'the report of the test runner was tampered with')
  })
}

test('a new focused test, which keeps others from running, fails the goal', async (t) => {
  const runner = RUNNERS[2]!
  const cwd = await project(t, runner)
  const run = await Pursuit.start(cwd, 'npm-test')
  run.baselineTests = firstTests(runner)
  await put(cwd, { 'test/new.test.js': "it.only('easy', () => {})\n" })
  const { reason, exit_code } = await run.check()
  assert.equal(exit_code, 0)
  assert.match(reason, /^tests changed: "test\/add\.test\.js > adds" is missing \(and \d more\)$/)
})

test("an edited file deep in the runner's package is a change of the runner", async (t) => {
  const runner = RUNNERS[2]!
  const cwd = await project(t, runner)
  const real = await realpath(join(cwd, 'node_modules/mocha'))
  await rm(join(cwd, 'node_modules/mocha'))
  await cp(real, join(cwd, 'node_modules/mocha'), { recursive: true })
  await rm(join(cwd, 'node_modules/.bin/mocha'))
  await symlink('../mocha/bin/mocha.js', join(cwd, 'node_modules/.bin/mocha'))
  const run = await Pursuit.start(cwd, 'npm-test')
  assert.deepEqual((await run.check()).tests, firstTests(runner))
  const inner = join(cwd, 'node_modules/mocha/lib/runner.js')
  assert.ok((await lstat(inner)).isFile())
  await put(cwd, { 'node_modules/mocha/lib/runner.js': '// gone\n' })
  assert.equal((await run.check()).reason, 'tests changed: node_modules/mocha was modified')
})
