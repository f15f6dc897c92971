import assert from 'node:assert/strict'
import { existsSync, statSync } from 'node:fs'
import { chmod, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'

import type { TestOutcomes } from 'runwright/agent'
import { Pursuit, put, workspace } from './support.js'
import type { Files } from './support.js'

const BROKEN = 'export const add = (a, b) => a - b\n'
const FIXED = 'export const add = (a, b) => a + b\n'
const TESTS = `
import assert from 'node:assert/strict'
import { describe, it, test } from 'node:test'
import { add } from '../src/add.js'

test('adds', () => assert.equal(add(1, 2), 3))
test('adds nothing', () => assert.equal(add(1, 0), 1))
describe('many', () => {
  it('adds up', () => assert.equal([1, 2, 3].reduce(add, 0), 6))
})
`
const PACKAGE = { name: 'sums', type: 'module', scripts: { test: 'node --test' } }
const PROJECT: Files = {
  'package.json': JSON.stringify(PACKAGE, null, 2),
  'src/add.js': BROKEN,
  'test/add.test.js': TESTS,
}

/** What the first check reports. */
const FIRST: TestOutcomes = {
  'test/add.test.js > adds': 'fail',
  'test/add.test.js > adds nothing': 'pass',
  'test/add.test.js > many > adds up': 'fail',
}

for (const goal of ['node-test', 'npm-test', 'shell: node --test test/add.test.js']) {
  test(`${goal} is met when the failing tests pass, and counts them by name`, async (t) => {
    const run = await Pursuit.start(await workspace(t, PROJECT), goal)
    const first = await run.check()
    assert.equal(first.achieved, false)
    assert.equal(first.reason, '2 of 3 tests fail')
    assert.deepEqual(first.counts, { total: 3, passed: 1, failed: 2, skipped: 0 })
    assert.deepEqual(first.tests, FIRST)
    assert.match(first.output, /adds nothing/, 'the readable report stays on standard output')
    await put(run.cwd, { 'src/add.js': FIXED })
    const second = await run.check()
    assert.deepEqual(
      [second.achieved, second.reason, second.exit_code],
      [true, 'all 3 tests pass', 0],
    )
  })
}

/** What an agent might do instead of the work; each would make the plain command exit with 0. */
const HACKS: readonly {
  what: string
  goal?: string
  files: Files
  remove?: string
  reason: RegExp
}[] = [
  {
    what: 'deleting the test file',
    files: {},
    remove: 'test/add.test.js',
    reason: /^tests changed: test\/add.test.js was deleted$/,
  },
  {
    what: 'skipping the failing tests',
    files: {
      'test/add.test.js': TESTS.replace("test('adds',", "test.skip('adds',").replace(
        "it('",
        "it.skip('",
      ),
    },
    reason: /^tests changed: test\/add.test.js was modified$/,
  },
  {
    what: 'running only the test that passes',
    files: { 'test/add.test.js': TESTS.replace("test('adds nothing'", "test.only('adds nothing'") },
    reason: /^tests changed: test\/add.test.js was modified$/,
  },
  {
    what: 'editing the npm script',
    goal: 'npm-test',
    files: { 'package.json': JSON.stringify({ ...PACKAGE, scripts: { test: 'true' } }) },
    reason: /^tests changed: package.json was modified$/,
  },
  {
    what: 'an npm script that prints a fake TAP report',
    goal: 'npm-test',
    files: {
      'package.json': JSON.stringify({
        ...PACKAGE,
        scripts: { test: 'printf "ok 1 - adds\\n1..1\\n# pass 3\\n"' },
      }),
    },
    reason: /^tests changed: package.json was modified$/,
  },
  {
    what: 'another runner that passes with no tests',
    goal: 'npm-test',
    files: {
      'package.json': JSON.stringify({
        ...PACKAGE,
        scripts: { test: 'sh jest --passWithNoTests' },
      }),
      jest: 'echo "No tests found, exiting with code 0"\n',
    },
    remove: 'test/add.test.js',
    reason: /^tests changed: package.json was modified \(and 1 more\)$/,
  },
  {
    what: 'an .npmrc that changes the shell of scripts',
    goal: 'npm-test',
    files: { '.npmrc': 'script-shell=/bin/true\n' },
    reason: /^tests changed: \.npmrc was added$/,
  },
  {
    what: 'process.exit(0) in the module under test',
    files: { 'src/add.js': `process.exit(0)\n${BROKEN}` },
    reason: /^tests changed: "test\/add.test.js > adds" is missing \(and 2 more\)$/,
  },
  {
    what: 'process.exit(0) in the function under test',
    files: { 'src/add.js': 'export const add = (a, b) => process.exit(0)\n' },
    reason: /^test\/add.test.js could not be loaded or stopped .*, 3 did not run$|is missing/,
  },
  {
    what: 'an exit code that the module under test sets',
    files: { 'src/add.js': `process.on('exit', () => { process.exitCode = 0 })\n${BROKEN}` },
    reason: /^2 of 3 tests fail$/,
  },
  {
    what: 'a module under test that exits in a hook of the runner',
    files: {
      'src/add.js': `import { before } from 'node:test'\nbefore(() => process.exit(0))\n${BROKEN}`,
    },
    reason: /is missing|3 did not run$/,
  },
  {
    what: 'a module under test that replaces assertions',
    files: {
      'src/add.js': `import assert from 'node:assert'
try { assert.equal = assert.strict.equal = assert.strictEqual = () => {} } catch {}
${BROKEN}`,
    },
    reason: /^2 of 3 tests fail$/,
  },
  {
    what: 'process.exit(0) in a test where tests and runner share a process',
    goal: 'shell: node test/add.test.js',
    files: { 'src/add.js': 'export const add = () => process.exit(0)\n' },
    reason: /^no tests ran under the test runner$|^the test runner stopped before its report /,
  },
  {
    what: 'a program called node in node_modules/.bin',
    goal: 'npm-test',
    files: { 'node_modules/.bin/node': '#!/bin/sh\necho "# pass 3"\n' },
    reason: /^tests changed: node_modules\/.bin\/node was added$/,
  },
]

for (const { what, goal = 'node-test', files, remove, reason } of HACKS) {
  test(`${goal} is not met by ${what}`, async (t) => {
    const run = await Pursuit.start(await workspace(t, PROJECT), goal)
    run.baselineTests = FIRST
    await put(run.cwd, files)
    if ('node_modules/.bin/node' in files)
      await chmod(join(run.cwd, 'node_modules/.bin/node'), 0o755)
    if (remove !== undefined) await rm(join(run.cwd, remove))
    const verdict = await run.check()
    assert.equal(verdict.achieved, false)
    assert.match(verdict.reason, reason)
  })
}

test('a test file replaced by a link to another file is a change', async (t) => {
  const run = await Pursuit.start(await workspace(t, PROJECT), 'node-test')
  await run.check()
  await put(run.cwd, {
    'src/easy.js': "import { test } from 'node:test'\ntest('adds', () => {})\n",
  })
  await rm(join(run.cwd, 'test/add.test.js'))
  await symlink('../src/easy.js', join(run.cwd, 'test/add.test.js'))
  const verdict = await run.check()
  assert.deepEqual(
    [verdict.achieved, verdict.reason],
    [false, 'tests changed: test/add.test.js was replaced by a link'],
  )
  assert.match(
    verdict.output,
    /must be as they were:\n- test\/add.test.js was replaced by a link\n/,
  )
})

test('process.exit(0) in a setup file of the test script leaves no complete report', async (t) => {
  const setup = { 'boot.mjs': 'export {}\n' }
  const scripts = { test: 'node --import ./boot.mjs --test' }
  const cwd = await workspace(t, {
    ...PROJECT,
    ...setup,
    'package.json': JSON.stringify({ ...PACKAGE, scripts }),
  })
  const run = await Pursuit.start(cwd, 'npm-test')
  assert.ok(run.spec.protected.includes('boot.mjs'), 'the setup file belongs to the check')
  await put(cwd, { 'boot.mjs': 'process.exit(0)\n' })
  assert.equal((await run.check()).reason, 'tests changed: boot.mjs was modified')
  const loose = await Pursuit.start(cwd, 'npm-test', { allowTestChanges: true })
  const verdict = await loose.check()
  assert.deepEqual([verdict.achieved, verdict.exit_code, verdict.tests], [false, 0, null])
  assert.match(verdict.reason, /^no tests ran( under the test runner)?$/)
})

test('an .npmrc in the home folder does not affect the check', async (t) => {
  const home = await workspace(t, { '.npmrc': 'script-shell=/bin/true\n' })
  const run = await Pursuit.start(await workspace(t, PROJECT), 'npm-test')
  run.executor.env = { HOME: home }
  assert.equal((await run.check()).reason, '2 of 3 tests fail')
})

test('a forged report in the workspace is ignored', async (t) => {
  const forged = '["x","test",["test/add.test.js","adds"],"pass"]\n["x","end"]\n'
  const run = await Pursuit.start(await workspace(t, PROJECT), 'node-test')
  await put(run.cwd, {
    'report-1-1.jsonl': forged,
    'src/add.js': `import { writeFileSync } from 'node:fs'
writeFileSync('report-2-2.jsonl', ${JSON.stringify(forged)})
console.log('ok 1 - adds')
${BROKEN}`,
  })
  const verdict = await run.check()
  assert.deepEqual([verdict.achieved, verdict.reason], [false, '2 of 3 tests fail'])
})

test('a report file without the nonce of the check fails the check', async (t) => {
  const cwd = await workspace(t, PROJECT)
  const run = await Pursuit.start(cwd, 'node-test')
  const { run: execute } = run.executor
  run.executor.run = async (command, options) => {
    const result = await execute.call(run.executor, command, options)
    await put(options.writable[0]!, { 'report-999-1.jsonl': '["guess","end"]\n' })
    return result
  }
  await put(cwd, { 'src/add.js': FIXED })
  assert.equal((await run.check()).reason, 'the report of the test runner was tampered with')
})

test('a test skipped at the start may stay skipped; no other test may become so', async (t) => {
  const flag =
    "const pending = process.env.PENDING ?? (await import('../src/add.js')).pending ?? false\n"
  const tests = `${TESTS}${flag}
test('later', { skip: true }, () => {})
test('now', { skip: pending }, () => {})
`
  const run = await Pursuit.start(
    await workspace(t, { ...PROJECT, 'test/add.test.js': tests }),
    'node-test',
  )
  assert.equal((await run.check()).counts?.skipped, 1)
  await put(run.cwd, { 'src/add.js': `${FIXED}export const pending = true\n` })
  assert.equal((await run.check()).reason, 'tests changed: "test/add.test.js > now" is skipped')
  await put(run.cwd, { 'src/add.js': FIXED })
  assert.equal((await run.check()).reason, 'all 4 tests pass, 1 skipped as before')
})

test('tests skipped in a file that the first check could not load lower the assurance', async (t) => {
  const tests = `${TESTS}test('later', { skip: true }, () => {})\n`
  const files = { ...PROJECT, 'src/add.js': 'export const add = (\n', 'test/add.test.js': tests }
  const run = await Pursuit.start(await workspace(t, files), 'node-test')
  assert.deepEqual((await run.check()).tests, { 'test/add.test.js': 'fail' })
  await put(run.cwd, { 'src/add.js': FIXED })
  const { achieved, reason, assurance } = await run.check()
  assert.equal(achieved, true, reason)
  assert.match(reason, /^all \d tests pass, 1 skipped; the first check could not load them/)
  assert.equal(assurance.by, 'exit_code')
})

test('without a test at the start, the run has tests of its own alone', async (t) => {
  const { 'test/add.test.js': _, ...files } = PROJECT as Readonly<Record<string, string>>
  const run = await Pursuit.start(await workspace(t, files), 'node-test: test/add.test.js')
  await run.check()
  await put(run.cwd, { 'src/add.js': FIXED, 'test/add.test.js': TESTS })
  const { achieved, reason, assurance } = await run.check()
  assert.equal(achieved, true, reason)
  assert.match(reason, /; all of them are the run's own$/)
  assert.deepEqual([assurance.by, assurance.own_tests], ['tests', true])
})

test('tests that a step before them kept from the first check lower the assurance', async (t) => {
  const scripts = { pretest: 'node lint.js', test: 'node --test' }
  const files = {
    ...PROJECT, 'package.json': JSON.stringify({ type: 'module', scripts }),
    'lint.js': "import './src/add.js'\n", 'src/add.js': 'export const add = (\n',
  }
  const run = await Pursuit.start(await workspace(t, files), 'npm-test')
  assert.equal((await run.check()).tests, null)
  await put(run.cwd, { 'src/add.js': FIXED })
  const { achieved, reason, assurance } = await run.check()
  assert.equal(achieved, true, reason)
  assert.match(reason, /; the first check could not load them/)
  assert.deepEqual([assurance.by, assurance.own_tests], ['exit_code', undefined])
})

test('a file that could not be loaded must later report tests, not just exit with 0', async (t) => {
  const run = await Pursuit.start(
    await workspace(t, { ...PROJECT, 'src/add.js': 'export const add = (\n' }),
    'node-test',
  )
  const first = await run.check()
  assert.deepEqual(first.tests, { 'test/add.test.js': 'fail' })
  await put(run.cwd, { 'src/add.js': `process.exit(0)\n${FIXED}` })
  const verdict = await run.check()
  assert.deepEqual(
    [verdict.achieved, verdict.reason],
    [false, 'tests changed: "test/add.test.js" reports no tests'],
  )
  await put(run.cwd, { 'src/add.js': FIXED })
  assert.equal((await run.check()).reason, 'all 3 tests pass')
})

test('an announced test that never ends keeps its file from passing', async (t) => {
  const tests = `${TESTS}test('waits', async () => { await null; if (leave) process.exit(0) })\n`
  const leaving = tests.replace(
    "from '../src/add.js'",
    "from '../src/add.js'\nimport { leave } from '../src/leave.js'",
  )
  const cwd = await workspace(t, {
    ...PROJECT,
    'src/add.js': FIXED,
    'src/leave.js': 'export const leave = true\n',
    'test/add.test.js': leaving,
  })
  const verdict = await (await Pursuit.start(cwd, 'node-test')).check()
  assert.equal(verdict.achieved, false)
  assert.match(
    verdict.reason,
    /^test\/add.test.js could not be loaded or stopped |^no tests ran$|1 of 4 tests fail/,
  )
})

test('new tests are allowed, and counted', async (t) => {
  const run = await Pursuit.start(await workspace(t, PROJECT), 'node-test')
  await run.check()
  await put(run.cwd, {
    'src/add.js': FIXED,
    'test/more.test.js': "import { test } from 'node:test'\ntest('more', () => {})\n",
  })
  assert.equal((await run.check()).reason, 'all 4 tests pass')
})

test('with allow_test_changes tests may change, but some must run and all must pass', async (t) => {
  const run = await Pursuit.start(await workspace(t, PROJECT), 'node-test', {
    allowTestChanges: true,
  })
  await run.check()
  await put(run.cwd, {
    'test/add.test.js': "import { test } from 'node:test'\ntest('easy', () => {})\n",
  })
  assert.deepEqual(
    [(await run.check()).reason, run.spec.allow_test_changes],
    ['the only test passes', true],
  )
  await put(run.cwd, { 'test/add.test.js': '\n' })
  assert.equal((await run.check()).reason, 'no tests ran')
})

test('a test script that names a reporter of its own keeps it beside ours', async (t) => {
  const scripts = { test: 'npm run unit', unit: 'node --test --test-reporter=tap' }
  const cwd = await workspace(t, {
    ...PROJECT,
    'package.json': JSON.stringify({ ...PACKAGE, scripts }),
  })
  const verdict = await (await Pursuit.start(cwd, 'npm-test')).check()
  assert.equal(verdict.reason, '2 of 3 tests fail')
  assert.match(verdict.output, /^TAP version 13$/m)
})

test('a runner started twice by one command is reported as one', async (t) => {
  const cwd = await workspace(t, {
    ...PROJECT,
    'src/add.js': FIXED,
    'spec/more.test.js': "import { test } from 'node:test'\ntest('more', () => {})\n",
  })
  const run = await Pursuit.start(cwd, 'shell: node --test test/ && node --test spec/more.test.js')
  const verdict = await run.check()
  if (verdict.counts === null) assert.fail(verdict.output)
  assert.ok(verdict.counts.total >= 1, verdict.reason)
  const both = await Pursuit.start(
    cwd,
    'shell: node --test test/add.test.js && node --test spec/more.test.js',
  )
  assert.deepEqual((await both.check()).reason, 'all 4 tests pass')
})

test('runs of node:test that a test starts are not part of the report', async (t) => {
  const nested = `
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
test('starts a runner', () => {
  const { NODE_TEST_CONTEXT, ...env } = process.env
  assert.equal(env.NODE_OPTIONS, undefined)
  const { status, stdout } = spawnSync(process.execPath, ['--test', 'inner/red.test.mjs'], { env })
  assert.match(String(stdout), /fail 1/)
  assert.equal(status, 1)
})
`
  const cwd = await workspace(t, {
    'test/outer.test.mjs': nested,
    'inner/red.test.mjs':
      "import { test } from 'node:test'\ntest('red', () => { throw new Error('red') })\n",
  })
  const verdict = await (await Pursuit.start(cwd, 'shell: node --test test/outer.test.mjs')).check()
  assert.deepEqual(
    [verdict.reason, Object.keys(verdict.tests ?? {})],
    ['the only test passes', ['test/outer.test.mjs > starts a runner']],
  )
})

test('the private folder is outside the workspace, has mode 0700, and is removed', async (t) => {
  const run = await Pursuit.start(await workspace(t, PROJECT), 'node-test')
  const modes: number[] = []
  run.executor.onRun = ({ writable }) =>
    modes.push(...writable.map((path) => statSync(path).mode & 0o777))
  await run.check()
  assert.deepEqual(modes, [0o700])
  const [folder] = run.executor.calls[0]!.options.writable
  assert.ok(!folder!.startsWith(run.cwd))
  assert.equal(existsSync(folder!), false)
})

test('tests that a helper defines belong to the file that could not be loaded', async (t) => {
  const cwd = await workspace(t, {
    ...PROJECT,
    'src/add.js': 'export const add = (\n',
    'test/helpers/shared.mjs': `import assert from 'node:assert/strict'
import { test } from 'node:test'
export const shared = (add) => test('adds', () => assert.equal(add(1, 2), 3))
`,
    'test/add.test.js': `import { add } from '../src/add.js'
import { shared } from './helpers/shared.mjs'
shared(add)
`,
  })
  const run = await Pursuit.start(cwd, 'shell: node --test test/add.test.js')
  assert.deepEqual((await run.check()).tests, { 'test/add.test.js': 'fail' })
  await put(cwd, { 'src/add.js': FIXED })
  const verdict = await run.check()
  assert.deepEqual(
    [verdict.reason, Object.keys(verdict.tests ?? {})],
    ['the only test passes', ['test/helpers/shared.mjs > adds']],
  )
})
