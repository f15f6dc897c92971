/** What a sealed check does, one step after the other: each test is of one of them. */
import assert from 'node:assert/strict'
import {
  existsSync, readFileSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { ExhaustedError, StoreError } from 'runwright/agent'
import type { HoldoutRun } from '../../../../lib/agent/goals/holdout/held-out-tests.js'
import { writeFiles } from '../../../helpers/files.js'
import { FILES, SealedFlow, GOAL, TESTS, type Given, type Play } from './sealed-flow.js'

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

test('the first check of a run that must be sealed is made in a copy alone', async (t) => {
  const world = new SealedFlow(t)
  world.mode = 'require'
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
  const reason = 'sealed check: exit code 1; as at the start: test/new.test.js'
  assert.deepEqual([verdict.achieved, verdict.reason], [false, reason])
  assert.equal(verdict.assurance.sealed, true)
  assert.match(verdict.output, /- test\/new\.test\.js \(left out: folders of tests, snapshots/)
})

test('paths in a copy are shown as relative ones', async (t) => {
  const says = ({ cwd }: Given): string =>
    `${cwd}/a.js:1 file://${cwd}/b.js /other/c.js in ${cwd}\n`
  const shown = /a\.js:1 b\.js \/other\/c\.js in \.\n$/
  const world = await started(new SealedFlow(t))
  world.play = (given) => ({ exitCode: given.copy === null ? 0 : 1, output: says(given) })
  assert.match((await world.later()).verdict.output, shown)
  world.play = (given) => ({ exitCode: 0, output: says(given) })
  assert.match((await world.later()).verdict.output, shown)
  const first = new SealedFlow(t)
  first.mode = 'require'
  first.play = (given) => ({ exitCode: 1, output: says(given) })
  assert.match((await first.first()).verdict.output, shown)
})

test('files of the check that a dying process changes are as at the start in the copy', async (t) => {
  const world = await started(new SealedFlow(t))
  let kills = 0
  world.onKill = () => {
    if (kills++ === 0) world.write({ 'test/a.test.js': 'changed' })
  }
  let seen = ''
  world.play = ({ copy, cwd }) => {
    if (copy !== null) seen = readFileSync(join(cwd, 'test/a.test.js'), 'utf8')
    return 0
  }
  const { verdict } = await world.later()
  assert.deepEqual([verdict.achieved, seen], [true, FILES['test/a.test.js']], verdict.reason)
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

/** Tests alone refer to `data/sums.json`; `tools/make.js` generates it. */
const SUMS = 'data/sums.json'
const WITH_DATA = {
  ...FILES,
  'test/a.test.js': `require('../src/code.js'); open('../${SUMS}')\n`,
  [SUMS]: '[1]',
  'tools/make.js': `write('sums')`,
}

/** Notes what the copies have of a file; the check reads all files. */
function looksAt(world: SealedFlow, file: string): readonly string[] {
  const seen: string[] = []
  world.play = ({ copy, cwd }) => {
    for (const path of Object.keys(WITH_DATA)) {
      const file = join(cwd, path)
      if (statSync(file, { throwIfNoEntry: false })?.isFile() === true) readFileSync(file)
    }
    if (copy !== null) seen.push(readFileSync(join(cwd, file), 'utf8'))
    return 0
  }
  return seen
}

for (const [what, change] of [
  ['changed', (cwd: string) => writeFiles(cwd, { [SUMS]: '[2]' })],
  ['removed', (cwd: string) => rmSync(join(cwd, SUMS))],
  ['replaced by a folder', (cwd: string) => {
    rmSync(join(cwd, SUMS))
    writeFiles(cwd, { [`${SUMS}/deep/file`]: '' })
  }],
  ['replaced by a link', (cwd: string) => {
    rmSync(join(cwd, SUMS))
    symlinkSync('../src/code.js', join(cwd, SUMS))
  }],
] as const) {
  test(`a file of the check is as at the start in the copy, if it was ${what}`, async (t) => {
    const world = await started(new SealedFlow(t, WITH_DATA))
    change(world.cwd)
    world.write({ 'src/code.js': 'exports.a = 2\n' })
    const seen = looksAt(world, SUMS)
    const { verdict, files } = await world.later()
    assert.deepEqual([verdict.achieved, seen], [true, ['[1]']], verdict.reason)
    assert.deepEqual(files!.verified, ['src/code.js'])
    assert.equal(files!.held_back[0]!.startsWith(SUMS), true)
    world.play = ({ copy }) => (copy === null ? 0 : 1)
    const failing = (await world.later()).verdict
    assert.match(failing.reason, /^sealed check: exit code 1; as at the start: data\/sums\.json/)
    assert.match(failing.output, /were as at the start:\n- data\/sums\.json.* \(put back: data that/)
  })
}

test('files that the request lets the run change count as the run\'s, and are told', async (t) => {
  const files = { ...WITH_DATA, 'package.json': '{"imports": {}, "scripts": {"a": "x"}}' }
  const world = await started(new SealedFlow(t, files))
  world.mayChange = ['data/**', 'test/a.*', 'package.json#imports']
  const change = (scripts: object): void => {
    const manifest = { imports: { '#a': './src/code.js' }, scripts }
    world.write({
      [SUMS]: '[2]', 'test/a.test.js': 'edited', 'package.json': JSON.stringify(manifest),
      'check.sh': 'exit 0\n',
    })
  }
  const seen: string[] = []
  world.play = ({ copy, cwd }) => {
    const texts = [SUMS, 'test/a.test.js', 'package.json', 'check.sh'].map((path) =>
      readFileSync(join(cwd, path), 'utf8'),
    )
    if (copy !== null) seen.push(...texts)
    return 0
  }
  change({ a: 'x', more: 'y' })
  const { verdict, files: groups } = await world.later()
  assert.equal(verdict.achieved, true, verdict.reason)
  const [sums, edited, manifest, script] = seen
  assert.deepEqual([sums, edited, script], ['[2]', 'edited', FILES['check.sh']])
  assert.match(manifest!, /#a/)
  assert.deepEqual(groups!.allowed, [SUMS, 'package.json', 'test/a.test.js'])
  assert.deepEqual(groups!.changed_tests, ['test/a.test.js'])
  assert.deepEqual(groups!.held_back, ['check.sh'])
  // A script has changed as well, which no request can allow.
  change({ a: 'z' })
  seen.length = 0
  await world.later()
  assert.equal(seen[2], files['package.json'])
})

test('a check that fails without a change says who can let it count', async (t) => {
  const files = { ...WITH_DATA, 'package.json': '{"imports": {}, "scripts": {"a": "x"}}' }
  const world = await started(new SealedFlow(t, files))
  world.write({
    [SUMS]: '[2]', 'package.json': '{"imports": {"#a": "b"}, "scripts": {"a": "x"}}',
    'jest.config.js': '', 'check.sh': 'exit 0\n',
  })
  world.play = ({ copy }) => (copy === null ? 0 : 1)
  world.mayChange = ['locales/**']
  const { reason, output } = (await world.later()).verdict
  const names = 'check.sh, data/sums.json, jest.config.js (and 1 more)'
  assert.equal(reason, `sealed check: exit code 1; as at the start: ${names}`)
  assert.match(output, /- package\.json: imports \(put back: settings of runners/)
  assert.match(output, /only a human .* this field by PATCH \/api\/runs\/\{run_id\}, in a fork/)
  // It replaces the list of the request.
  const list = /\n\{"may_change":\["locales\/\*\*","data\/sums\.json","package\.json#imports"\]\}\n/
  assert.match(output, list)
})

for (const [what, files] of [
  ['a new program', { 'tools/more.js': `write('${SUMS}')` }],
  ['a changed program', { 'tools/make.js': `write('${SUMS}')` }],
] as const) {
  test(`${what} makes no file of the check the run's`, async (t) => {
    const world = await started(new SealedFlow(t, { ...WITH_DATA, 'test/a.test.js': '' }))
    world.write({ [SUMS]: '[2]', ...files })
    const seen = looksAt(world, SUMS)
    await world.later()
    assert.deepEqual(seen, ['[1]'])
  })
}

test('a program of the start that names data makes it part of the code', async (t) => {
  const files = { ...WITH_DATA, 'test/a.test.js': '', 'tools/make.js': `write('${SUMS}')` }
  const world = await started(new SealedFlow(t, files))
  world.write({ [SUMS]: '[2]' })
  const seen = looksAt(world, SUMS)
  await world.later()
  assert.deepEqual(seen, ['[2]'])
})

test('held-out tests find files of the check as at the start, too', async (t) => {
  const world = await started(new SealedFlow(t, WITH_DATA))
  world.write({ [SUMS]: '[2]' })
  world.holdout = holdoutOf()
  const seen = looksAt(world, SUMS)
  const { verdict } = await world.later()
  assert.equal(verdict.achieved, true, verdict.reason)
  assert.deepEqual(seen, ['[1]', '[1]'])
})

for (const [what, play, isTold] of [
  ['and reads', ({ cwd }: Given) => readFileSync(join(cwd, SUMS)), true],
  ['and does not read', () => undefined, false],
] as const) {
  test(`data of the check that the check rewrites ${what} is ${isTold ? 'told' : 'its result'}`, async (t) => {
    const world = await started(new SealedFlow(t, WITH_DATA))
    world.play = (given) => {
      const { copy, cwd } = given
      if (copy === null) return 0
      writeFileSync(join(cwd, SUMS), '[3]')
      play(given)
      return 0
    }
    const { verdict } = await world.later()
    assert.equal(verdict.achieved, !isTold)
    const reason = `sealed check: tests changed: ${SUMS} was changed while the check ran`
    if (isTold) assert.equal(verdict.reason, reason)
  })
}

test('data that the check writes again as it was is no change', async (t) => {
  const world = await started(new SealedFlow(t, WITH_DATA))
  world.play = ({ copy, cwd }) => {
    if (copy === null) return 0
    writeFileSync(join(cwd, SUMS), '[1]')
    readFileSync(join(cwd, SUMS))
    return 0
  }
  const { verdict } = await world.later()
  assert.equal(verdict.achieved, true, verdict.reason)
})

/** A file of the check that is too large for the checkpoint of the start. */
async function withoutContent(t: TestContext): Promise<SealedFlow> {
  const world = new SealedFlow(t, WITH_DATA)
  await started(world)
  const { restore } = world.atStart
  world.atStart.restore = async (folder, paths) =>
    await restore.call(world.atStart, folder, paths.filter((path) => path !== SUMS))
  world.write({ [SUMS]: '[2]' })
  return world
}

test('a file of the check that cannot be put back stays, and the verdict is not sealed', async (t) => {
  const world = await withoutContent(t)
  const seen = looksAt(world, SUMS)
  const { verdict, unavailable } = await world.later()
  assert.deepEqual([verdict.achieved, verdict.assurance.sealed, seen], [true, false, ['[2]']])
  assert.equal(unavailable, `${SUMS} was changed, and is not stored`)
})

test('a file of the check that cannot be put back changes nothing if it is not read', async (t) => {
  const world = await withoutContent(t)
  world.play = () => 0
  const { verdict, unavailable } = await world.later()
  assert.deepEqual([verdict.achieved, verdict.assurance.sealed, unavailable], [true, true, null])
})

test('where checks must be sealed, a file that cannot be put back is a refusal', async (t) => {
  const world = await withoutContent(t)
  looksAt(world, SUMS)
  world.mode = 'require'
  const { verdict } = await world.later()
  assert.equal(verdict.reason, `sealed check: ${SUMS} was changed, and is not stored`)
})

test('without checkpoints, files of the check must be as at the start', async (t) => {
  const world = new SealedFlow(t, WITH_DATA)
  world.isStored = false
  await started(world)
  world.write({ 'src/code.js': 'exports.a = 2\n', 'conftest.py': '', 'src/more.js': '' })
  const here: boolean[] = []
  const seen = looksAt(world, SUMS)
  const { play } = world
  world.play = (given) => {
    if (given.copy !== null) here.push(has(given, 'conftest.py'), has(given, 'src/more.js'))
    return play(given)
  }
  const { verdict } = await world.later()
  assert.deepEqual([verdict.achieved, verdict.assurance.sealed], [true, true], verdict.reason)
  assert.deepEqual([seen, here], [['[1]'], [false, true]])
  world.write({ [SUMS]: '[2]' })
  const loose = await world.later()
  assert.deepEqual([loose.verdict.achieved, loose.verdict.assurance.sealed], [true, false])
  assert.equal(loose.unavailable, `${SUMS} was changed, and is not stored`)
  world.write({ 'test/a.test.js': 'changed' })
  const { reason } = (await world.later()).verdict
  assert.equal(reason, 'tests changed: test/a.test.js was modified')
})

test('without checkpoints, a folder of many files has no sealed checks', async (t) => {
  const many = Array.from({ length: 10_001 }, (_, i) => [`data/${i}`, ''])
  const world = new SealedFlow(t, { ...FILES, ...Object.fromEntries(many) })
  world.isStored = false
  const { unavailable } = await world.first()
  assert.equal(unavailable, 'the files of the start are too many')
})

test('a file that is put back has the time of the start in the copy', async (t) => {
  const world = new SealedFlow(t, WITH_DATA)
  utimesSync(join(world.cwd, SUMS), 1, 1)
  await started(world)
  const seen: number[] = []
  world.play = ({ copy, cwd }) => {
    if (copy !== null) seen.push(statSync(join(cwd, SUMS)).mtimeMs)
    return 0
  }
  await world.later()
  world.write({ [SUMS]: '[2]' })
  await world.later()
  assert.equal(seen[0], 1000)
  assert.ok(seen[1]! <= Date.now() - 1, 'no newer than the start')
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

const OLD = 'test/a.test.js > adds'
const NEW = 'test/new.test.js > is new'

/** A run with tests, which has written one of its own: what the check in place reports. */
async function withNewTest(
  world: SealedFlow,
  inPlace: (given: Given) => number,
): Promise<readonly [boolean, string]> {
  world.goal = TESTS
  world.play = ({ report }) => {
    report({ [OLD]: 'fail' })
    return 1
  }
  await world.first()
  world.write({ 'test/new.test.js': 'mine', 'test/helpers/mine.js': '', 'conftest.py': '' })
  world.play = (given) => {
    if (given.copy === null) return inPlace(given)
    const has = ['test/new.test.js', 'test/helpers/mine.js'].map((path) =>
      existsSync(join(given.cwd, path)),
    )
    assert.deepEqual(has, [false, false])
    given.report({ [OLD]: 'pass' })
    return 0
  }
  const { verdict, files } = await world.later()
  if (verdict.achieved) {
    assert.deepEqual(files!.added, ['test/helpers/mine.js', 'test/new.test.js'])
    assert.deepEqual(files!.held_back, ['conftest.py'])
  }
  return [verdict.achieved, verdict.reason]
}

test('new tests and their helpers are in the folder alone, and must pass there', async (t) => {
  const world = new SealedFlow(t)
  const [achieved, reason] = await withNewTest(world, ({ report }) => {
    report({ [OLD]: 'pass', [NEW]: 'pass' })
    return 0
  })
  assert.equal(achieved, true, reason)
  assert.deepEqual(world.log, ['in place', 'killed', 'copy', 'in copy', 'killed', 'removed'])
})

for (const [what, outcomes, exitCode, reason] of [
  ['fails', { [OLD]: 'pass', [NEW]: 'fail' }, 1, /^1 of 2 tests fail/],
  ['does not load', { [OLD]: 'pass', 'test/new.test.js': 'fail' }, 1, /new\.test\.js could not be/],
  ['breaks another test', { [OLD]: 'fail', [NEW]: 'pass' }, 1, /^1 of 2 tests fail/],
  ['ends the runner', null, 1, /./],
] as const) {
  test(`a new test that ${what} is a demand that is not met`, async (t) => {
    const world = new SealedFlow(t)
    const [achieved, why] = await withNewTest(world, ({ report }) => {
      if (outcomes !== null) report(outcomes)
      return exitCode
    })
    assert.equal(achieved, false)
    assert.match(why, reason)
    assert.deepEqual(world.log, ['in place'])
  })
}

test('a new test cannot make up for one that fails without it', async (t) => {
  const world = new SealedFlow(t)
  const passes = ({ report }: Given): number => {
    report({ [OLD]: 'pass', [NEW]: 'pass' })
    return 0
  }
  assert.equal((await withNewTest(world, passes))[0], true)
  world.play = (given) => {
    if (given.copy === null) return passes(given)
    given.report({ [OLD]: 'fail' })
    return 1
  }
  const { verdict } = await world.later()
  assert.equal(verdict.achieved, false)
  assert.match(verdict.reason, /^sealed check: 1 of 1 tests fail; as at the start: conftest\.py, /)
})

test('an edited test runs in the folder alone; in the copy it is as at the start', async (t) => {
  const world = new SealedFlow(t)
  world.goal = TESTS
  world.play = ({ report }) => {
    report({ [OLD]: 'fail' })
    return 1
  }
  await world.first()
  world.write({ 'test/a.test.js': 'edited' })
  const seen: string[] = []
  world.play = ({ cwd, report }) => {
    seen.push(readFileSync(join(cwd, 'test/a.test.js'), 'utf8'))
    report({ [OLD]: 'pass' })
    return 0
  }
  const { verdict, files } = await world.later()
  assert.equal(verdict.achieved, true, verdict.reason)
  assert.deepEqual(seen, ['edited', FILES['test/a.test.js']])
  assert.deepEqual(files!.added, ['test/a.test.js'])
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

test('a copy without a report is no copy that ran the tests, though both fail', async (t) => {
  const world = new SealedFlow(t)
  world.isStored = false
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
  world.isStored = false
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
  world.isStored = false
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
  world.isStored = false
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
