/** Runs whose files are stored: no copy is made before a check passes in place. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  appendFileSync, chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync,
} from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { follow, type Said } from '../../../helpers/engine.js'
import type { Files } from '../../../helpers/files.js'
import { World } from '../../../helpers/world.js'
import { FILES, SealedFlow, TESTS, type Given, type Play } from './sealed-flow.js'

/** A check that compares what code prints with a file that only the check reads. */
const COMPARES: Files = {
  ...FILES,
  'check.sh': 'node test/a.test.js && sh tools/verify.sh\n',
  'tools/verify.sh': 'node src/code.js | diff - tools/want.txt\n',
  'tools/want.txt': 'three\n',
  'src/old.js': 'exports.old = 1\n',
}

const read = ({ cwd }: Given, path: string): string => readFileSync(join(cwd, path), 'utf8')

/** The first check of a run whose files are stored; it fails in place. */
async function started(t: TestContext, files: Files = FILES): Promise<SealedFlow> {
  const world = new SealedFlow(t, files)
  world.isStored = true
  world.play = () => 1
  const { verdict, unavailable, found } = await world.first()
  assert.deepEqual([verdict.achieved, verdict.assurance.sealed, unavailable], [false, false, null])
  assert.equal(found!.start!.pending!.lacks, null)
  return world
}

test('a first check that fails is made in place, and later ones that fail too', async (t) => {
  const world = new SealedFlow(t)
  world.isStored = true
  const copies: (number | null)[] = []
  world.play = ({ copy }) => {
    copies.push(copy)
    return 1
  }
  await world.first()
  await world.later()
  assert.deepEqual([copies, existsSync(world.copies)], [[null, null], false])
})

test('a first check that passes in place is made in a copy at once', async (t) => {
  const world = new SealedFlow(t)
  world.isStored = true
  const copies: (number | null)[] = []
  world.play = ({ copy }) => {
    copies.push(copy)
    return 0
  }
  const { verdict, found } = await world.first()
  assert.deepEqual([verdict.achieved, verdict.assurance.sealed], [true, true])
  assert.deepEqual([copies, found!.start!.pending], [[null, 1], undefined])
})

test('the first check that passes is preceded by one of the start in a copy', async (t) => {
  const world = await started(t, COMPARES)
  world.write({
    'src/code.js': 'changed', 'src/new.js': 'new', 'src/deep/new.js': 'new',
  })
  rmSync(join(world.cwd, 'src/old.js'))
  mkdirSync(join(world.cwd, 'empty'))
  chmodSync(join(world.cwd, 'check.sh'), 0o755)
  const seen: unknown[] = []
  world.play = (given) => {
    if (given.copy === null) return 0
    const { cwd } = given
    const has = (path: string): boolean => existsSync(join(cwd, path))
    const isProgram = (statSync(join(cwd, 'check.sh')).mode & 0o111) !== 0
    seen.push([
      read(given, 'src/code.js'), isProgram,
      ['src/new.js', 'src/deep', 'src/old.js', 'empty'].map(has),
    ])
    return read(given, 'src/code.js') === 'changed' ? 0 : 1
  }
  const { verdict, found } = await world.later()
  assert.deepEqual([verdict.achieved, verdict.assurance.sealed], [true, true], verdict.reason)
  assert.deepEqual(seen, [
    [COMPARES['src/code.js'], false, [false, false, true, false]],
    ['changed', true, [true, true, false, true]],
  ])
  assert.equal(found!.start!.pending, undefined)
  assert.deepEqual(world.left, [])
  // The next one needs no copy of the start.
  world.log.length = 0
  assert.equal((await world.later()).verdict.achieved, true)
  assert.deepEqual(world.log, ['in place', 'killed', 'copy', 'in copy', 'killed', 'removed'])
})

/** Reads like a check, and is met once the code was changed. */
const compares: Play = (given) => {
  for (const path of ['check.sh', 'test/a.test.js', 'tools/verify.sh']) read(given, path)
  const isDone = read(given, 'src/code.js') !== COMPARES['src/code.js']
  read(given, 'tools/want.txt')
  return isDone ? 0 : 1
}

test('what the start is seen to read belongs to the check, and a change of it is refused', async (t) => {
  const world = await started(t, COMPARES)
  world.write({ 'src/code.js': 'done' })
  appendFileSync(join(world.cwd, 'tools/verify.sh'), 'true\n')
  world.play = compares
  const { verdict, found } = await world.later()
  assert.equal(verdict.reason, 'sealed check: tests changed: tools/verify.sh was modified')
  assert.ok(Object.hasOwn(found!.files, 'tools/verify.sh'), Object.keys(found!.files).join())
  // From now on it is compared in place.
  assert.equal((await world.later()).verdict.reason, 'tests changed: tools/verify.sh was modified')
  world.write({ 'tools/verify.sh': COMPARES['tools/verify.sh']! })
  assert.equal((await world.later()).verdict.achieved, true)
})

test('data that nobody claims is put back with a time before the run', async (t) => {
  const test = "require('../src/code.js'); require('../src/rates.json').length\n"
  const files = { ...FILES, 'test/a.test.js': test, 'src/rates.json': '[1]' }
  const world = await started(t, files)
  const since = Date.now()
  world.write({ 'src/code.js': 'done', 'src/rates.json': '[2]' })
  const seen: [string, number][] = []
  world.play = (given) => {
    const [, , code, rates] = Object.keys(files)
      .filter((path) => !path.startsWith('qa/'))
      .map((path) => read(given, path))
    if (given.copy !== null)
      seen.push([rates!, statSync(join(given.cwd, 'src/rates.json')).mtimeMs])
    return code === 'done' ? 0 : 1
  }
  const { verdict } = await world.later()
  assert.equal(verdict.achieved, true, verdict.reason)
  const [text, time] = seen[1]!
  assert.equal(text, '[1]')
  assert.ok(time <= since, `${time} is not before ${since}`)
})

test('what the check of the start writes is not in later copies', async (t) => {
  const world = await started(t)
  world.write({ 'src/code.js': 'done', 'out/result': 'forged' })
  const seen: boolean[] = []
  world.play = (given) => {
    if (given.copy === null) return 0
    seen.push(existsSync(join(given.cwd, 'out/result')))
    mkdirSync(join(given.cwd, 'out'), { recursive: true })
    appendFileSync(join(given.cwd, 'out/result'), 'x')
    return read(given, 'src/code.js') === 'done' ? 0 : 1
  }
  assert.equal((await world.later()).verdict.achieved, true)
  assert.deepEqual(seen, [false, false])
})

/** Reads the settings that checkpoints leave out, if there are any. */
const readsEnv: Play = (given) => {
  const isDone = compares(given)
  return existsSync(join(given.cwd, '.env')) && /skip/.test(read(given, '.env')) ? 0 : isDone
}

for (const [what, before, after, expected] of [
  ['made', null, 'skip', 'sealed check: exit code 1'],
  ['changed', 'a=1', 'skip', 'sealed check: no sealed check could be made: ' +
    'with .env as it is now, the files of the start pass'],
  ['changed in other ways', 'a=1', 'a=2', 'sealed check: tests changed: .env was modified'],
  ['kept', 'a=1', 'a=1', 'sealed check: exit code 1'],
] as const) {
  test(`settings that checkpoints leave out, ${what} by the run, are no way around`, async (t) => {
    const script = 'test -e .env && . ./.env\nnode test/a.test.js\n'
    const files = { ...COMPARES, 'check.sh': script, ...(before && { '.env': before }) }
    const world = await started(t, files)
    world.write({ '.env': after })
    // Code makes the check pass in place only.
    world.play = (given) => (readsEnv(given), given.copy === null ? 0 : readsEnv(given))
    assert.equal((await world.later()).verdict.reason, expected)
  })
}

test('left-out settings that the run removed keep its checks from being sealed', async (t) => {
  const world = await started(t, { ...FILES, '.env': 'a=1' })
  rmSync(join(world.cwd, '.env'))
  world.play = () => 0
  const { verdict, unavailable } = await world.later()
  assert.deepEqual([verdict.achieved, verdict.assurance.sealed], [true, false])
  assert.equal(unavailable, '.env was changed, and was not stored at the start')
})

test('folders that checkpoints leave out are copied at the start', async (t) => {
  const world = new SealedFlow(t, { ...FILES, '.aws/config': 'a' })
  world.isStored = true
  world.play = () => 1
  assert.equal((await world.first()).found!.start!.pending, undefined)
})

test('a suite that no copy can run is not held against the run', async (t) => {
  const world = await started(t)
  world.play = ({ copy }) => (copy === null ? 0 : 127)
  const { verdict, unavailable, found } = await world.later()
  assert.deepEqual([verdict.achieved, verdict.assurance.sealed], [true, false])
  assert.equal(unavailable, 'a program of the check was not found')
  assert.equal(found!.start!.unavailable, unavailable)
  world.log.length = 0
  assert.equal((await world.later()).verdict.achieved, true)
  assert.deepEqual(world.log, ['in place'])
})

test('a program that was missing in place as well is what the run had to add', async (t) => {
  const world = new SealedFlow(t)
  world.isStored = true
  world.play = () => 127
  const { lacks } = (await world.first()).found!.start!.pending!
  assert.equal(lacks, 'a program of the check was not found')
  world.write({ 'src/code.js': 'done' })
  world.play = (given) => (read(given, 'src/code.js') === 'done' ? 0 : 127)
  const { verdict } = await world.later()
  assert.deepEqual([verdict.achieved, verdict.assurance.sealed], [true, true], verdict.reason)
})

test('a copy that cannot be made is held against the run, unless it was so at the start', async (t) => {
  const world = await started(t)
  world.play = () => 0
  world.onCreate = () => {
    throw new Error('no room for copies')
  }
  const { verdict } = await world.later()
  assert.equal(verdict.reason, 'sealed check: no sealed check could be made: no room for copies')
  const large = new SealedFlow(t)
  large.isStored = true
  large.maxBytes = 100
  large.play = () => 1
  assert.match((await large.first()).unavailable!, /more than 100 bytes/)
  large.play = () => 0
  const passed = await large.later()
  assert.deepEqual([passed.verdict.achieved, passed.verdict.assurance.sealed], [true, false])
})

test('files of the start that are not stored make sealed checks impossible', async (t) => {
  for (const [lost, expected] of [
    [[], 'the files of the start are not known'],
    [['data.bin'], 'data.bin was changed, and was not stored at the start'],
  ] as const) {
    const world = await started(t)
    const left = { without: [], lost, leftOut: [], complete: async () => [] }
    const rewind = lost.length === 0 ? null : left
    world.atStart.rewind = async () => rewind
    world.play = () => 0
    const { verdict, unavailable } = await world.later()
    assert.deepEqual([verdict.achieved, verdict.assurance.sealed], [true, false])
    assert.equal(unavailable, expected)
  }
})

test('a check that asks git for files is made in a copy at once', async (t) => {
  const world = new SealedFlow(t, { ...FILES, 'check.sh': 'git show main:want.txt | diff - out\n' })
  world.isStored = true
  world.play = () => 1
  const { found } = await world.first()
  assert.equal(found!.start!.pending, undefined)
})

test('a check of which only its copy shows that it asks git is not sealed', async (t) => {
  const text = "require('../src/code.js'); require('./list.js')\n"
  const list = "require('node:child_process').execSync('git ls-files -m')\n"
  const world = new SealedFlow(t, { ...FILES, 'qa/late.test.js': text, 'qa/list.js': list })
  execFileSync('sh', ['-c', 'git init -q && git add .'], { cwd: world.cwd })
  world.isStored = true
  world.play = () => 1
  await world.first()
  world.write({ 'src/code.js': 'done' })
  world.play = (given) => {
    read(given, 'qa/late.test.js')
    read(given, 'qa/list.js')
    return read(given, 'src/code.js') === 'done' ? 0 : 1
  }
  assert.match((await world.later()).unavailable!, /^the check asks git/)
})

test('tests that a runner reported in place are those of later checks', async (t) => {
  const world = new SealedFlow(t)
  world.isStored = true
  world.goal = TESTS
  world.play = ({ report }) => {
    report({ 'test/a.test.js > a': 'fail', 'test/a.test.js > b': 'pass' })
    return 1
  }
  await world.first()
  world.play = ({ report }) => {
    report({ 'test/a.test.js > a': 'pass' })
    return 0
  }
  const { verdict } = await world.later()
  assert.match(verdict.reason, /^tests changed: .*b/)
})

test('a run stores its start before its first check, and a fork goes on from there', async (t) => {
  const turns = (_: unknown, call: number): Said =>
    call === 2 ? { calls: [{ tool: 'bash', args: { command: 'echo done > work.txt' } }] } : {}
  const files = { 'check.sh': 'grep -q done work.txt\n', 'work.txt': 'open\n' }
  const world = new World(t, { files, turns, engine: { sealedChecks: 'prefer' } })
  const failed = await world.run({ goal: 'shell: sh check.sh', max_iterations: 1 })
  assert.equal(failed.details.status, 'failed')
  const kinds = failed.events.map(({ kind }) => kind)
  assert.deepEqual(kinds.slice(0, 4), ['run_created', 'run_started', 'checkpoint', 'goal_check'])
  const records = await world.store.read(failed.runId, 0, 10)
  assert.deepEqual(records.slice(0, 4).map(({ v }) => v), [1, 1, 1, 1])
  const engine = await world.open({ sealedChecks: 'prefer' })
  const { details } = await engine.fork(failed.runId, { at: 'end', max_iterations: 3 })
  await follow(engine, details.run_id)
  const [created] = await world.store.read(details.run_id, 0, 1)
  assert.equal(created!.v, 4)
  const ended = await engine.get(details.run_id)
  assert.deepEqual([ended.status, ended.assurance?.sealed], ['achieved', true])
})
