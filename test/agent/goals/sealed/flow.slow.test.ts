/** What a sealed check does, one step after the other: each test is of one of them. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import {
  existsSync, readFileSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { ExhaustedError, StoreError } from 'runwright/agent'
import type { HoldoutRun } from '../../../../lib/agent/goals/holdout/held-out-tests.js'
import { writeFiles } from '../../../helpers/files.js'
import { atStart, FILES, SealedFlow, GOAL, TESTS, type Given, type Play } from './sealed-flow.js'

const has = ({ cwd }: Given, path: string): boolean => existsSync(join(cwd, path))

/** A folder whose goal is not met at the start, and is later. */
async function started(world: SealedFlow): Promise<SealedFlow> {
  const { play } = world
  world.play = (given) => {
    play(given)
    return 1
  }
  const { verdict, unavailable } = await world.first()
  assert.deepEqual([verdict.achieved, unavailable], [false, null])
  world.play = play
  return world
}

test('the steps of a check that passes, in order', async (t) => {
  const world = await started(new SealedFlow(t))
  const { verdict } = await world.later()
  assert.equal(verdict.achieved, true, verdict.reason)
  assert.equal(verdict.assurance.sealed, true)
  assert.deepEqual(world.log, ['in place', 'killed', 'copy', 'in copy', 'killed', 'removed'])
  const [{ sealed, unread, without }] = world.asked as [(typeof world.asked)[0]]
  assert.deepEqual([sealed, unread, without], [true, true, []])
  assert.deepEqual(world.left, [])
})

test('a check that fails in place has no copy, and its verdict is not sealed', async (t) => {
  const world = await started(new SealedFlow(t))
  world.play = () => 1
  const { verdict } = await world.later()
  assert.deepEqual([verdict.achieved, verdict.assurance.sealed], [false, false])
  assert.deepEqual(world.log, ['in place'])
})

test('the first check is made in a copy alone', async (t) => {
  const world = new SealedFlow(t)
  const seen: (number | null)[] = []
  world.play = ({ copy }) => {
    seen.push(copy)
    return 0
  }
  const { verdict } = await world.first()
  assert.deepEqual([verdict.achieved, verdict.assurance.sealed, seen], [true, true, [1]])
})

test('what fails in the copy is no success, and names what was left out', async (t) => {
  const world = await started(new SealedFlow(t))
  world.write({ 'test/new.test.js': '' })
  world.play = ({ copy }) => (copy === null ? 0 : 1)
  const { verdict } = await world.later()
  assert.deepEqual([verdict.achieved, verdict.reason], [false, 'sealed check: exit code 1'])
  assert.equal(verdict.assurance.sealed, true)
  assert.match(verdict.output, /- test\/new\.test\.js \(new test\)/)
})

test('files of the check that a dying process changes are told in the copy', async (t) => {
  const world = await started(new SealedFlow(t))
  let kills = 0
  world.onKill = () => {
    if (kills++ === 0) world.write({ 'test/a.test.js': 'changed' })
  }
  const { verdict } = await world.later()
  assert.equal(verdict.reason, 'sealed check: tests changed: test/a.test.js was modified')
})

test('a file of the check that is rewritten and put back while the command runs is told', async (t) => {
  const world = await started(new SealedFlow(t))
  world.play = ({ copy, cwd }) => {
    if (copy === null) return 0
    const path = join(cwd, 'test/a.test.js')
    const [before, { atime, mtime }] = [readFileSync(path), statSync(path)]
    writeFileSync(path, 'other')
    writeFileSync(path, before)
    utimesSync(path, atime, mtime)
    return 0
  }
  const { verdict } = await world.later()
  assert.equal(
    verdict.reason,
    'sealed check: tests changed: test/a.test.js was changed while the check ran',
  )
  world.play = ({ copy, cwd }) => {
    if (copy !== null) writeFileSync(join(cwd, 'src/code.js'), 'a cache, or a coverage')
    return 0
  }
  assert.equal((await world.later()).verdict.achieved, true, 'other files may be written')
})

test('new files that a check would load by itself are not in the copy; others are', async (t) => {
  const files = { ...FILES, 'sitecustomize.py': 'old', 'jest.config.js': 'old' }
  const world = await started(new SealedFlow(t, files))
  const fresh = ['conftest.py', 'test/new.test.js', 'babel.config.js']
  const kept = ['src/more.js', 'sitecustomize.py', 'jest.config.js', 'src/code.js']
  world.write(Object.fromEntries([...fresh, 'src/more.js'].map((path) => [path, ''])))
  let seen: readonly (readonly string[])[] = []
  world.play = (given) => {
    const here = (paths: readonly string[]): readonly string[] =>
      paths.filter((path) => has(given, path))
    if (given.copy !== null) seen = [here(fresh), here(kept)]
    return 0
  }
  const { verdict } = await world.later()
  assert.equal(verdict.achieved, true, verdict.reason)
  assert.deepEqual(seen, [[], kept])
  assert.deepEqual(fresh.filter((path) => existsSync(join(world.cwd, path))), fresh)
})

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex')

/** What tests read, as a later check is first seen to read it. */
const readsLate: Play = ({ cwd, copy }) => {
  readFileSync(join(cwd, 'test/a.test.js'))
  if (copy !== null) readFileSync(join(cwd, 'qa/late.test.js'))
  return 0
}

test('a file that a later check is first seen to read must be as at the start', async (t) => {
  const world = await started(new SealedFlow(t))
  world.write({ 'qa/late.test.js': 'easier' })
  world.play = readsLate
  world.atStart = atStart((path) => (path === 'qa/late.test.js' ? FILES[path] : undefined))
  const { verdict } = await world.later()
  assert.equal(verdict.reason, 'sealed check: tests changed: qa/late.test.js was modified')
})

for (const [what, text] of [
  ['as it was', FILES['qa/late.test.js']],
  ['that did not exist', null],
  ['that nobody knows of', undefined],
] as const) {
  test(`a file ${what} at the start belongs to the check once it is read`, async (t) => {
    const world = await started(new SealedFlow(t))
    world.play = readsLate
    world.atStart = atStart(() => text)
    const { verdict, found } = await world.later()
    assert.equal(verdict.achieved, true, verdict.reason)
    assert.deepEqual(Object.keys(found?.files ?? {}), ['qa/late.test.js'])
    assert.notEqual(found?.reasons['qa/late.test.js'], undefined)
  })
}

/** Nothing shows whose `src/rates.json` is: tests alone refer to it, but it lies among the code. */
const UNCLAIMED = {
  ...FILES,
  'test/a.test.js': "require('../src/code.js'); require('../src/rates.json').length\n",
  'src/rates.json': '[1]',
}
const RATES = 'src/rates.json'
const HELPER = 'support/testkit.js'

/** A run whose first check reads what nobody claims. */
async function unclaimed(
  world: SealedFlow,
  files: Readonly<Record<string, string>> = UNCLAIMED,
): Promise<SealedFlow> {
  world.play = ({ cwd }) => {
    for (const path of Object.keys(UNCLAIMED)) readFileSync(join(cwd, path))
    if (Object.hasOwn(files, HELPER)) readFileSync(join(cwd, HELPER))
    return 0
  }
  await started(world)
  world.atStart = atStart((path) => files[path] ?? null)
  return world
}

for (const [what, change] of [
  ['changed', (cwd: string) => writeFiles(cwd, { [RATES]: '[2]' })],
  ['removed', (cwd: string) => rmSync(join(cwd, RATES))],
  ['replaced by a folder', (cwd: string) => {
    rmSync(join(cwd, RATES))
    writeFiles(cwd, { [`${RATES}/deep/file`]: '' })
  }],
  ['replaced by a link', (cwd: string) => {
    rmSync(join(cwd, RATES))
    symlinkSync('code.js', join(cwd, RATES))
  }],
] as const) {
  test(`a file that nothing claims is as at the start in the copy, if it was ${what}`, async (t) => {
    const world = await unclaimed(new SealedFlow(t, UNCLAIMED))
    change(world.cwd)
    world.write({ 'src/code.js': 'exports.a = 2\n' })
    const seen: string[] = []
    world.play = ({ copy, cwd }) => {
      if (copy !== null) for (const path of [RATES, 'src/code.js']) {
        seen.push(readFileSync(join(cwd, path), 'utf8'))
      }
      return 0
    }
    const { verdict } = await world.later()
    assert.equal(verdict.achieved, true, verdict.reason)
    assert.deepEqual(seen, ['[1]', 'exports.a = 2\n'])
    world.play = ({ copy }) => (copy === null ? 0 : 1)
    const failing = (await world.later()).verdict
    assert.equal(failing.reason, 'sealed check: exit code 1')
    assert.match(failing.output, /These files were as at the start.*\n- src\/rates\.json\n/)
  })
}

for (const [what, files, isClaimed] of [
  ['a program that generates it', { 'tools/make.js': "write('src/rates.json')" }, true],
  ['a program that writes into its folder', { 'tools/make.js': "join('src', name)" }, true],
  ['a script of package.json', { 'package.json': '{"scripts": {"a": "x > src/rates.json"}}' }, true],
  ['a helper of tests', {
    'test/a.test.js': `${UNCLAIMED['test/a.test.js']}require('../${HELPER}')\n`,
    [HELPER]: "open('src/rates.json')",
  }, false],
  ['a test', { 'qa/late.test.js': "open('src/rates.json')" }, false],
  ['prose', { 'notes.md': 'src/rates.json' }, false],
  ['a dependency', { 'node_modules/a/index.js': "open('src/rates.json')" }, false],
] as const) {
  test(`a file that the check alone uses is ${isClaimed ? '' : 'not '}claimed by ${what}`, async (t) => {
    const all = { ...UNCLAIMED, ...files }
    const world = await unclaimed(new SealedFlow(t, all), all)
    world.write({ [RATES]: '[2]' })
    let seen = ''
    world.play = ({ copy, cwd }) => {
      if (copy !== null) seen = readFileSync(join(cwd, RATES), 'utf8')
      return 0
    }
    const { verdict } = await world.later()
    assert.equal(verdict.achieved, true, verdict.reason)
    assert.equal(seen, isClaimed ? '[2]' : '[1]')
  })
}

test('a new program claims nothing', async (t) => {
  const world = await unclaimed(new SealedFlow(t, UNCLAIMED))
  world.write({ [RATES]: '[2]', 'tools/make.js': "write('src/rates.json')" })
  let seen = ''
  world.play = ({ copy, cwd }) => {
    if (copy !== null) seen = readFileSync(join(cwd, RATES), 'utf8')
    return 0
  }
  await world.later()
  assert.equal(seen, '[1]')
})

test('a file that nothing claims and that cannot be restored must be as at the start', async (t) => {
  const world = await unclaimed(new SealedFlow(t, UNCLAIMED))
  world.write({ [RATES]: '[2]' })
  world.play = () => 0
  world.atStart = { ...world.atStart, restore: () => Promise.resolve([]) }
  const { verdict } = await world.later()
  assert.equal(verdict.reason, `sealed check: tests changed: ${RATES} was modified`)
})

test('a file that nothing claims stays as it is if its content is not stored', async (t) => {
  const world = await unclaimed(new SealedFlow(t, UNCLAIMED))
  world.write({ [RATES]: '[2]' })
  world.atStart = { ...world.atStart, stored: () => Promise.resolve(new Map()) }
  let seen = ''
  world.play = ({ copy, cwd }) => {
    if (copy !== null) seen = readFileSync(join(cwd, RATES), 'utf8')
    return 0
  }
  const { verdict } = await world.later()
  assert.deepEqual([verdict.achieved, seen], [true, '[2]'], verdict.reason)
})

/** Only tests read `data/sums.json`, so it belongs to the check; `tools/make.js` generates it. */
const SUMS = 'data/sums.json'
const WITH_DATA = {
  ...FILES,
  'test/a.test.js': `require('../src/code.js'); open('../${SUMS}')\n`,
  [SUMS]: '[1]',
  'tools/make.js': `write('${SUMS}')`,
}

/** A run that has changed data of the check; what its copies have is noted. */
async function changedData(
  t: TestContext,
  files: Readonly<Record<string, string>> = WITH_DATA,
): Promise<{ readonly world: SealedFlow; readonly seen: string[] }> {
  const world = new SealedFlow(t, WITH_DATA)
  const seen: string[] = []
  world.play = ({ copy, cwd }) => {
    for (const path of Object.keys(FILES)) readFileSync(join(cwd, path))
    const text = readFileSync(join(cwd, SUMS), 'utf8')
    if (copy !== null) seen.push(text)
    return 0
  }
  await started(world)
  assert.notEqual(world.files[SUMS], undefined)
  seen.length = 0
  world.atStart = atStart((path) => files[path] ?? null)
  world.write({ [SUMS]: '[2]' })
  return { world, seen }
}

test('data that tests alone read is as at the start in the copy, whatever generates it', async (t) => {
  const { world, seen } = await changedData(t)
  const { verdict } = await world.later()
  assert.equal(verdict.achieved, true, verdict.reason)
  assert.deepEqual(seen, ['[1]'])
  world.play = ({ copy }) => (copy === null ? 0 : 1)
  const failing = (await world.later()).verdict
  assert.match(failing.output, /These files were as at the start.*\n- data\/sums\.json\n/)
})

test('held-out tests find data that tests alone read as at the start, too', async (t) => {
  const { world, seen } = await changedData(t)
  world.holdout = holdoutOf()
  const { verdict } = await world.later()
  assert.equal(verdict.achieved, true, verdict.reason)
  assert.deepEqual(seen, ['[1]', '[1]'])
})

test('data that tests alone read may not change while the check runs', async (t) => {
  const { world } = await changedData(t)
  world.play = ({ copy, cwd }) => {
    if (copy !== null) writeFiles(cwd, { [SUMS]: '[3]' })
    return 0
  }
  const { verdict } = await world.later()
  assert.equal(verdict.reason, `sealed check: tests changed: ${SUMS} was modified`)
})

for (const [what, files] of [
  ['is not known', {}],
  ['is another', { ...WITH_DATA, [SUMS]: '[3]' }],
] as const) {
  test(`data that tests alone read must stay if that of the start ${what}`, async (t) => {
    const { world } = await changedData(t, files)
    const { verdict } = await world.later()
    assert.equal(verdict.reason, `tests changed: ${SUMS} was modified`)
  })
}

test('a file that nothing claims has the time of the start in the copy', async (t) => {
  const world = new SealedFlow(t, UNCLAIMED)
  utimesSync(join(world.cwd, RATES), 1, 1)
  await unclaimed(world)
  const seen: number[] = []
  world.play = ({ copy, cwd }) => {
    if (copy !== null) seen.push(statSync(join(cwd, RATES)).mtimeMs)
    return 0
  }
  utimesSync(join(world.cwd, RATES), 2, 2)
  await world.later()
  world.write({ [RATES]: '[2]' })
  await world.later()
  assert.deepEqual(seen, [1000, 1000])
})

test('what the first check reads belongs to the check', async (t) => {
  const world = new SealedFlow(t)
  world.play = readsLate
  const { found } = await world.first()
  assert.equal(found!.files['qa/late.test.js'], hashOf(FILES['qa/late.test.js']!))
  assert.equal(found!.start!.observed, true)
})

const PACKAGES = {
  ...FILES,
  'node_modules/one/index.js': '1',
  'node_modules/.cache/tool/entry': 'cached',
}

test('dependencies must be as at the start, unless the request allows others', async (t) => {
  const world = await started(new SealedFlow(t, PACKAGES))
  assert.equal((await world.later()).verdict.achieved, true)
  world.write({ 'node_modules/one/index.js': '2' })
  const { log } = world
  log.length = 0
  const { verdict } = await world.later()
  assert.match(verdict.reason, /^sealed check: dependencies changed: node_modules\/one was modified/)
  assert.deepEqual(log, ['in place', 'killed'])
  world.allowsDependencyChanges = true
  assert.equal((await world.later()).verdict.achieved, true)
})

test('caches that changed since the start are in no copy', async (t) => {
  const world = await started(new SealedFlow(t, PACKAGES))
  world.write({ 'node_modules/.cache/tool/entry': 'other' })
  world.holdout = holdoutOf()
  const seen: boolean[] = []
  world.play = (given) => {
    if (given.copy !== null) seen.push(has(given, 'node_modules/.cache/tool/entry'))
    return 0
  }
  const { verdict } = await world.later()
  assert.equal(verdict.achieved, true, verdict.reason)
  assert.deepEqual(seen, [false, false])
})

test('packages are captured before the check goes on in place', async (t) => {
  const world = new SealedFlow(t)
  world.above = async () => {
    for (let turn = 0; turn < 100; turn++) await setImmediate()
    world.log.push('captured')
    return null
  }
  world.onCreate = () => {
    throw new Error('no room for copies')
  }
  const log: string[] = []
  world.play = () => {
    log.push(...world.log)
    return 0
  }
  await world.first()
  assert.deepEqual(log, ['copy', 'captured', 'in place'])
})

const OLD = 'test/a.test.js > adds'
const NEW = 'test/new.test.js > is new'

/** A run with tests, which has written one of its own: what a pass with that reports. */
async function withNewTest(
  world: SealedFlow,
  second: (given: Given) => number,
): Promise<readonly [boolean, string]> {
  world.goal = TESTS
  world.play = ({ report }) => {
    report({ [OLD]: 'fail' })
    return 1
  }
  await world.first()
  world.write({ 'test/new.test.js': 'mine' })
  world.play = (given) => {
    if (given.copy !== null && has(given, 'test/new.test.js')) return second(given)
    given.report(given.copy === null ? { [OLD]: 'pass', [NEW]: 'pass' } : { [OLD]: 'pass' })
    return 0
  }
  const { verdict } = await world.later()
  return [verdict.achieved, verdict.reason]
}

const FAILS = [false, 'sealed check: 1 of 1 new tests fail'] as const

test('new tests run in a second pass of the same copy, with their helpers alone', async (t) => {
  const world = new SealedFlow(t)
  world.write({ 'test/old.js': '' })
  let seen: readonly boolean[] = []
  const more = ['test/helpers/mine.js', 'babel.config.js', 'conftest.py']
  world.onKill = () => {
    world.write(Object.fromEntries(more.map((path) => [path, ''])))
  }
  const [achieved, reason] = await withNewTest(world, (given) => {
    const { report } = given
    seen = more.map((path) => has(given, path))
    report({ [OLD]: 'pass', [NEW]: 'pass' })
    return 0
  })
  assert.equal(achieved, true, reason)
  assert.deepEqual(seen, [true, false, false])
  const copy = ['copy', 'in copy', 'in copy', 'killed', 'removed']
  assert.deepEqual(world.log, ['in place', 'killed', ...copy])
})

for (const [what, outcomes, exitCode, expected] of [
  ['a new test that fails', { [OLD]: 'pass', [NEW]: 'fail' }, 1, FAILS],
  ['one that fails without an exit code', { [OLD]: 'pass', [NEW]: 'fail' }, 0, FAILS],
  ['a new file that does not load', { [OLD]: 'pass', 'test/new.test.js': 'fail' }, 1, FAILS],
] as const) {
  test(`${what} is a demand that is not met`, async (t) => {
    const ended = await withNewTest(new SealedFlow(t), ({ report }) => {
      report(outcomes)
      return exitCode
    })
    assert.deepEqual(ended, expected)
  })
}

for (const [what, outcomes] of [
  ['breaks another test', { [OLD]: 'fail', [NEW]: 'pass' }],
  ['removes another test', { [NEW]: 'pass' }],
  ['has others skipped', { [OLD]: 'skip', [NEW]: 'pass' }],
  ['ends the runner', null],
] as const) {
  test(`a new test that ${what} changes nothing about the verdict`, async (t) => {
    const ended = await withNewTest(new SealedFlow(t), ({ report }) => {
      if (outcomes !== null) report(outcomes)
      return 1
    })
    assert.deepEqual(ended, [true, 'all 2 tests pass'])
  })
}

test('a new test cannot make up for one that fails without it', async (t) => {
  const world = new SealedFlow(t)
  const ended = await withNewTest(world, ({ report }) => {
    report({ [OLD]: 'pass', [NEW]: 'pass' })
    return 0
  })
  assert.equal(ended[0], true)
  world.play = (given) => {
    const isThere = has(given, 'test/new.test.js')
    given.report(isThere ? { [OLD]: 'pass', [NEW]: 'pass' } : { [OLD]: 'fail' })
    return isThere ? 0 : 1
  }
  const { verdict } = await world.later()
  assert.deepEqual(
    [verdict.achieved, verdict.reason],
    [false, 'sealed check: 1 of 1 tests fail'],
  )
})

test('a test that is missing in the copy alone is told', async (t) => {
  const world = new SealedFlow(t)
  world.goal = TESTS
  world.play = ({ report }) => {
    report({ [OLD]: 'fail', 'test/a.test.js > more': 'pass' })
    return 1
  }
  await world.first()
  world.play = ({ copy, report }) => {
    report(copy === null ? { [OLD]: 'pass', 'test/a.test.js > more': 'pass' } : { [OLD]: 'pass' })
    return 0
  }
  const { verdict } = await world.later()
  assert.match(verdict.reason, /^sealed check: tests changed: "test\/a\.test\.js > more" is missing/)
})

test('canaries count in the copy, counts in place', async (t) => {
  for (const inCopy of [true, false]) {
    const world = new SealedFlow(t)
    world.goal = TESTS
    world.play = ({ report }) => {
      report({ [OLD]: 'fail' })
      return 1
    }
    await world.first()
    world.play = ({ copy, report }) => {
      report({ [OLD]: 'pass', ...(copy === null && { [NEW]: 'pass' }) }, (copy !== null) === inCopy)
      return 0
    }
    const { verdict } = await world.later()
    assert.deepEqual([verdict.achieved, verdict.counts?.total], [true, 2], verdict.reason)
    assert.deepEqual(verdict.assurance, {
      by: 'tests', sealed: true, canaries: inCopy, holdout: false,
    })
  }
})

test('new helpers without a new test need no second pass', async (t) => {
  const world = new SealedFlow(t)
  world.goal = TESTS
  world.play = ({ report }) => {
    report({ [OLD]: 'fail' })
    return 1
  }
  await world.first()
  world.write({ 'test/helpers/mine.js': '' })
  world.play = ({ report }) => {
    report({ [OLD]: 'pass' })
    return 0
  }
  assert.equal((await world.later()).verdict.achieved, true)
  assert.equal(world.log.filter((what) => what === 'in copy').length, 1)
})

test('a copy without a report is no copy that ran the tests, though both fail', async (t) => {
  const world = new SealedFlow(t)
  world.goal = TESTS
  world.play = ({ copy, report }) => {
    if (copy === null) report({ [OLD]: 'fail' })
    return 1
  }
  assert.match((await world.first()).unavailable!, /^the test runner reported no tests/)
})

test('packages are compared where they were installed, and not in the copy', async (t) => {
  const world = new SealedFlow(t, { ...FILES, 'node_modules/runner/index.js': '1' })
  const packages = ['node_modules/runner/**']
  world.goal = { ...GOAL, sealed: packages, runner: ['node_modules/runner'] }
  await started(world)
  assert.notEqual(world.files['node_modules/runner'], undefined)
  // The copy may have them mounted, or not have them all.
  world.onCreate = () => world.write({ 'node_modules/runner/index.js': '2' })
  const { verdict } = await world.later()
  assert.equal(verdict.achieved, true, verdict.reason)
})

test('a report that is too large ends the run at its first check', async (t) => {
  const world = new SealedFlow(t)
  world.goal = TESTS
  world.play = ({ folder }) => {
    for (let i = 0; i <= 200; i++) writeFileSync(join(folder, `report-${i}-1.jsonl`), '')
    return 1
  }
  await assert.rejects(world.first(), /the report of the test runner is too large/)
  assert.deepEqual(world.left, [])
})

test('git in a copy has no settings of the user', async (t) => {
  const world = await started(new SealedFlow(t))
  const settings: unknown[] = []
  world.play = ({ env }) => {
    settings.push([env['GIT_CONFIG_GLOBAL'], env['GIT_CONFIG_NOSYSTEM']])
    return 0
  }
  await world.later()
  assert.deepEqual(settings, [[undefined, undefined], ['/dev/null', '1']])
})

function holdoutOf(evaluations = 0): HoldoutRun & { readonly begun: number[] } {
  const begun: number[] = []
  return {
    begun,
    evaluations: () => evaluations + begun.length,
    tests: () =>
      Promise.resolve({
        files: new Map([['held/check.sh', Buffer.from('exit 0\n')]]),
        command: 'sh held/check.sh',
        tell: 'verdict',
        allowedSkips: 0,
      }),
    begin: (number) => Promise.resolve(void begun.push(number)),
  }
}

for (const [what, deed, reason] of [
  ['changed code', 'src/code.js', /^sealed check: tests changed: src\/code\.js changes what runs/],
  ['new code', 'src/new.js', /^sealed check: tests changed: src\/new\.js changes what runs the te/],
  ['nobody knows who', null, /^sealed check: tests changed: something changes what runs the tests/],
  ['code as it was at the start', 'src/same.js', null],
  ['code that did so at the first check', 'src/helper.js', null],
  ['a file of the check', 'test/a.test.js', null],
  ['a helper in a folder of tests', 'src/tests/helper.js', null],
] as const) {
  test(`hooks of ${what} are ${reason === null ? 'no' : 'a'} reason to refuse`, async (t) => {
    const files = { ...FILES, 'src/same.js': '', 'src/helper.js': '', 'src/tests/helper.js': '' }
    const world = new SealedFlow(t, files)
    world.goal = TESTS
    world.atStart = atStart((path) => (files as Readonly<Record<string, string>>)[path] ?? null)
    const reports = (outcome: 'pass' | 'fail', file: string | null): Play => ({ report }) => {
      report({ 'test/a.test.js > a': outcome }, true, [['beforeEach', file]])
      return outcome === 'pass' ? 0 : 1
    }
    world.play = reports('fail', 'src/helper.js')
    await world.first()
    world.write({
      'src/code.js': 'exports.a = 2\n', 'src/new.js': '1', 'src/helper.js': '1',
      'src/tests/helper.js': '1',
    })
    world.play = reports('pass', deed)
    const { verdict } = await world.later()
    assert.equal(verdict.achieved, reason === null, verdict.reason)
    if (reason !== null) assert.match(verdict.reason, reason)
  })
}

test('code that changes what runs held-out tests alone does not pass them', async (t) => {
  const world = new SealedFlow(t)
  world.goal = TESTS
  world.holdout = holdoutOf()
  world.atStart = atStart((path) => FILES[path] ?? null)
  const plays = (outcome: 'pass' | 'fail'): Play => ({ command, folder, report }) => {
    const isHeldOut = command !== TESTS.command
    if (isHeldOut) deedOfScript(folder, 'src/code.js')
    else report({ 'test/a.test.js > a': outcome }, true)
    return isHeldOut || outcome === 'pass' ? 0 : 1
  }
  world.play = plays('fail')
  await world.first()
  world.write({ 'src/code.js': 'exports.a = 2\n' })
  world.play = plays('pass')
  const { reason } = (await world.later()).verdict
  assert.equal(reason, 'held-out tests fail (evaluation 1 of 3)')
})

/** As our module in a plain script would tell that code has replaced a function. */
function deedOfScript(folder: string, file: string): void {
  const text = readFileSync(join(folder, 'canaries.cjs'), 'utf8')
  const nonce = /NONCE = '(\w+)'/.exec(text)![1]!
  const lines = [['begin', 'held/check.sh'], ['end', 'held/check.sh', [], null, [['fs.open', file]]]]
  const proof = lines.map((line) => `${JSON.stringify([nonce, ...line])}\n`).join('')
  writeFileSync(join(folder, 'canaries/one.jsonl'), proof)
}

test('held-out tests run last, in a copy of their own without what was left out', async (t) => {
  const world = await started(new SealedFlow(t, { ...FILES, 'jest.config.js': 'old' }))
  const holdout = (world.holdout = holdoutOf())
  world.write({ 'conftest.py': '' })
  const seen: unknown[] = []
  world.play = (given) => {
    const { copy, cwd, command } = given
    if (copy !== null) {
      const paths = ['held/check.sh', 'trace', 'conftest.py', 'jest.config.js']
      seen.push([command, copy, ...paths.map((path) => has(given, path))])
      writeFileSync(join(cwd, 'trace'), '')
    }
    return 0
  }
  const { verdict } = await world.later()
  assert.deepEqual([verdict.achieved, verdict.assurance.holdout], [true, true])
  assert.deepEqual(seen, [
    [GOAL.command, 1, false, false, false, true],
    ['sh held/check.sh', 2, true, false, false, true],
  ])
  assert.deepEqual(holdout.begun, [1])
  const copy = ['copy', 'in copy', 'killed']
  // The run goes on once the copy with the held-out tests is gone.
  assert.deepEqual(world.log, ['in place', 'killed', ...copy, 'removed', ...copy, 'gone'])
})

test('held-out tests that fail, or are changed, keep a goal from being achieved', async (t) => {
  const world = await started(new SealedFlow(t))
  world.holdout = holdoutOf()
  world.play = ({ command }) => (command === 'sh held/check.sh' ? 1 : 0)
  const { verdict } = await world.later()
  assert.deepEqual(
    [verdict.achieved, verdict.reason, verdict.assurance.holdout, verdict.assurance.sealed],
    [false, 'held-out tests fail (evaluation 1 of 3)', false, true],
  )
  world.play = ({ command, cwd }) => {
    if (command === 'sh held/check.sh') writeFileSync(join(cwd, 'held/check.sh'), 'exit 0')
    return 0
  }
  assert.equal((await world.later()).verdict.reason, 'held-out tests fail (evaluation 2 of 3)')
})

test('held-out tests of a goal that is met at once are evaluated by the first check', async (t) => {
  const world = new SealedFlow(t)
  world.holdout = holdoutOf()
  world.play = ({ command }) => (command === 'sh held/check.sh' ? 1 : 0)
  assert.equal((await world.first()).verdict.reason, 'held-out tests fail (evaluation 1 of 3)')
})

test('held-out tests are evaluated only when all else passes, and three times', async (t) => {
  const world = await started(new SealedFlow(t))
  const holdout = (world.holdout = holdoutOf())
  world.play = ({ copy }) => (copy === null ? 0 : 1)
  await world.later()
  assert.deepEqual(holdout.begun, [])
  world.play = () => 0
  world.holdout = holdoutOf(3)
  world.log.length = 0
  const { verdict } = await world.later()
  assert.equal(verdict.reason, 'held-out tests were evaluated 3 times and did not pass')
  assert.deepEqual(world.log.filter((what) => what === 'copy'), ['copy'])
})

/** Cannot be run in a copy: what it needs is elsewhere. */
const onlyInPlace: Play = ({ copy }) => (copy === null ? 0 : 127)

test('a check that a copy cannot run counts in place, then and later', async (t) => {
  const world = new SealedFlow(t)
  world.play = onlyInPlace
  const { verdict, unavailable, found } = await world.first()
  assert.deepEqual([verdict.achieved, verdict.assurance.sealed], [true, false])
  assert.equal(unavailable, 'a program of the check was not found')
  assert.equal(found!.start!.unavailable, unavailable)
  const later = await world.later()
  assert.deepEqual([later.verdict.achieved, later.verdict.assurance.sealed], [true, false])
  assert.deepEqual(world.log, ['in place'])
  // A fork may ask for more than its source.
  world.mode = 'require'
  await assert.rejects(world.later(), /sealed checks are required/)
})

test('where sealed checks are required, a check that a copy cannot run is an error', async (t) => {
  const world = new SealedFlow(t)
  world.mode = 'require'
  world.play = onlyInPlace
  await assert.rejects(world.first(), /sealed checks are required.*program of the check/)
  world.play = () => 0
  world.onCreate = () => {
    throw new Error('no room for copies')
  }
  await assert.rejects(world.first(), /sealed checks are required.*no room for copies/)
})

test('what fails in place for the same reason is checked in copies all the same', async (t) => {
  const world = new SealedFlow(t)
  world.play = () => 127
  const { verdict, unavailable } = await world.first()
  assert.deepEqual([verdict.achieved, verdict.assurance.sealed, unavailable], [false, false, null])
  world.play = () => 0
  assert.equal((await world.later()).verdict.assurance.sealed, true)
})

test('two failures without tests are the same only where both lack something', async (t) => {
  const world = new SealedFlow(t)
  world.play = ({ copy }) => (copy === null ? 1 : 127)
  assert.equal((await world.first()).unavailable, 'a program of the check was not found')
})

test('what fails in place where the copy could run it is not asked again', async (t) => {
  const world = new SealedFlow(t)
  world.play = ({ copy }) => (copy === null ? 0 : 1)
  const { verdict, unavailable } = await world.first()
  assert.deepEqual([verdict.achieved, unavailable], [false, null])
})

test('time is measured in place and in the copy, also at the first check', async (t) => {
  const world = new SealedFlow(t)
  world.goal = { ...GOAL, max_duration_ms: 500 }
  const seen: (number | null)[] = []
  world.play = ({ copy }) => {
    seen.push(copy)
    return 0
  }
  const { verdict, unavailable } = await world.first()
  assert.deepEqual([verdict.achieved, unavailable, seen], [true, null, [1, 1, null]])
  assert.match(verdict.reason, /^took 1 ms/)
  // The first run in the copy warms up, and the best of three others counts.
  for (const [times, reason] of [
    [[900, 900, 900, 400], /^took 2 ms/],
    [[100, 900, 800, 900], /^sealed check: took 800 ms, which is more than 500 ms/],
  ] as const) {
    let runs = 0
    world.play = ({ copy }) => ({ exitCode: 0, ms: copy === null ? 2 : times[runs++]! })
    const later = await world.later()
    const isFast = reason.test('took 2 ms')
    assert.deepEqual([later.verdict.achieved, later.verdict.assurance.sealed], [isFast, true])
    assert.match(later.verdict.reason, reason)
    assert.equal(runs, 4)
  }
})

test('a copy that cannot be made costs the first check its seal, and fails a later one', async (t) => {
  const world = new SealedFlow(t)
  const fail = (): never => {
    throw new Error('no room for copies')
  }
  world.onCreate = fail
  const { verdict, unavailable, found } = await world.first()
  assert.deepEqual([verdict.achieved, unavailable], [true, 'no room for copies'])
  assert.equal(found!.start!.unavailable, unavailable)
  const other = await started(new SealedFlow(t))
  other.onCreate = fail
  const later = await other.later()
  assert.deepEqual(
    [later.verdict.achieved, later.verdict.reason],
    [false, 'sealed check: no sealed check could be made: no room for copies'],
  )
})

for (const [what, error] of [
  ['an exhausted machine', new ExhaustedError('no processes')],
  ['an unavailable store', new StoreError('ERR_AGENT_STORE_UNAVAILABLE', 'no store')],
  ['an aborted run', null],
] as const) {
  test(`${what} is no verdict: the error is passed on, and no copy is left`, async (t) => {
    const fail = (world: SealedFlow) => (): never => {
      if (error === null) world.aborting.abort(new Error('aborted'))
      throw error ?? new Error('something else')
    }
    const expected = error ?? { message: 'aborted' }
    for (const place of ['create', 'run'] as const) {
      const first = new SealedFlow(t)
      const later = await started(new SealedFlow(t))
      for (const world of [first, later]) {
        if (place === 'create') world.onCreate = fail(world)
        else world.play = ({ copy }) => (copy === null ? 0 : fail(world)())
      }
      await assert.rejects(first.first(), expected, `first check, ${place}`)
      await assert.rejects(later.later(), expected, `later check, ${place}`)
      if (place === 'run') assert.deepEqual([first.left, later.left], [[], []])
    }
  })
}

for (const [what, fail] of [
  ['be made', (world: SealedFlow) => (world.onCreate = (): never => full())],
  ['be used', (world: SealedFlow) => {
    world.play = ({ copy }) => (copy === null ? 0 : full())
  }],
] as const) {
  test(`while no copy can ${what}, the check waits, and what came before is not repeated`, async (t) => {
    const world = await started(new SealedFlow(t))
    world.untilPossible = async (work) => {
      for (;;) {
        try {
          return await work()
        } catch (error) {
          assert.ok(error instanceof ExhaustedError, String(error))
          world.onCreate = () => undefined
          world.play = () => 0
        }
      }
    }
    fail(world)
    const { verdict } = await world.later()
    assert.deepEqual([verdict.achieved, verdict.assurance.sealed], [true, true])
    assert.equal(world.log.filter((entry) => entry === 'in place').length, 1)
    assert.equal(world.log.filter((entry) => entry === 'copy').length, 2)
  })
}

function full(): never {
  throw new ExhaustedError('the disk is full')
}

test('a copy that cannot be removed changes no verdict', async (t) => {
  const world = await started(new SealedFlow(t))
  world.onRemove = () => {
    throw new Error('busy')
  }
  assert.equal((await world.later()).verdict.achieved, true)
})

test('a removed file of the check is told in place, and no copy is made', async (t) => {
  const world = await started(new SealedFlow(t))
  rmSync(join(world.cwd, 'test/a.test.js'))
  const { verdict } = await world.later()
  assert.match(verdict.reason, /^tests changed: test\/a\.test\.js was deleted/)
  assert.deepEqual(world.log, ['in place'])
})
