/** Runs whose files are stored: no copy is made before a check passes in place. */
import assert from 'node:assert/strict'
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
  world.play = () => 1
  const { verdict, unavailable, found } = await world.first()
  assert.deepEqual([verdict.achieved, verdict.assurance.sealed, unavailable], [false, false, null])
  assert.equal(found!.start!.pending!.lacks, null)
  return world
}

test('a first check that fails is made in place, and later ones that fail too', async (t) => {
  const world = new SealedFlow(t)
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
  const copies: (number | null)[] = []
  world.play = ({ copy }) => {
    copies.push(copy)
    return 0
  }
  const { verdict, found } = await world.first()
  assert.deepEqual([verdict.achieved, verdict.assurance.sealed], [true, true])
  assert.deepEqual([copies, found!.start!.pending], [[null, 1], undefined])
})

test('a check that passes in its copy needs no copy of the start', async (t) => {
  const world = await started(t)
  world.play = () => 0
  assert.equal((await world.later()).verdict.achieved, true)
  assert.deepEqual(world.log, ['in place', 'killed', 'copy', 'in copy', 'killed', 'removed'])
})

test('the first check that fails in its copy is followed by one of the start', async (t) => {
  const world = await started(t, COMPARES)
  world.write({
    'src/code.js': 'changed', 'src/new.js': 'new', 'src/deep/new.js': 'new',
  })
  rmSync(join(world.cwd, 'src/old.js'))
  mkdirSync(join(world.cwd, 'empty'))
  chmodSync(join(world.cwd, 'src/code.js'), 0o755)
  const seen: unknown[] = []
  const look: Play = (given) => {
    const { copy, cwd } = given
    if (copy === null) return 0
    const has = (path: string): boolean => existsSync(join(cwd, path))
    const isProgram = (statSync(join(cwd, 'src/code.js')).mode & 0o111) !== 0
    seen.push([
      read(given, 'src/code.js'), isProgram,
      ['src/new.js', 'src/deep', 'src/old.js', 'empty', 'out'].map(has),
    ])
    mkdirSync(join(cwd, 'out'))
    return 1
  }
  world.play = look
  world.playStart = look
  const { verdict, found } = await world.later()
  assert.equal(verdict.reason, 'sealed check: exit code 1')
  const atStart = [COMPARES['src/code.js'], false, [false, false, true, false, false]]
  const left = ['changed', true, [true, true, false, true, false]]
  assert.deepEqual(seen, [left, atStart])
  assert.equal(found!.start!.pending, undefined)
  assert.deepEqual(world.left, [])
  // The next one needs no copy of the start, whatever its result.
  world.log.length = 0
  await world.later()
  assert.deepEqual(seen.at(-1), left)
  assert.deepEqual(world.log, ['in place', 'killed', 'copy', 'in copy', 'killed', 'removed'])
  world.play = () => 0
  assert.equal((await world.later()).verdict.achieved, true)
})

/** Met once the code was changed. */
const compares: Play = (given) =>
  read(given, 'src/code.js') === COMPARES['src/code.js'] ? 1 : 0

test('a script of the check that the run has changed is as at the start in the copy', async (t) => {
  const world = await started(t, COMPARES)
  world.write({ 'src/code.js': 'done' })
  appendFileSync(join(world.cwd, 'tools/verify.sh'), 'true\n')
  const seen: string[] = []
  world.play = (given) => {
    if (given.copy !== null) seen.push(read(given, 'tools/verify.sh'))
    return compares(given)
  }
  const { verdict, files } = await world.later()
  assert.equal(verdict.achieved, true, verdict.reason)
  assert.deepEqual(seen, [COMPARES['tools/verify.sh']])
  assert.deepEqual(files!.held_back, ['tools/verify.sh'])
})

/** Reads the settings that checkpoints leave out, if there are any. */
const readsEnv: Play = (given) => {
  const isThere = existsSync(join(given.cwd, '.env'))
  return isThere && /skip/.test(read(given, '.env')) ? 0 : compares(given)
}

for (const [what, before, after, expected] of [
  ['made', null, 'skip', [false, true, null]],
  ['changed', 'a=1', 'skip', [true, false, '.env was changed, and is not stored']],
  ['removed', 'a=1', null, [true, false, '.env was changed, and is not stored']],
  ['kept', 'skip', 'skip', [true, true, null]],
] as const) {
  test(`settings that checkpoints leave out, ${what} by the run`, async (t) => {
    const script = 'test -e .env && . ./.env\nnode test/a.test.js\n'
    const files = { ...COMPARES, 'check.sh': script, ...(before && { '.env': before }) }
    const world = await started(t, files)
    if (after === null) rmSync(join(world.cwd, '.env'))
    else world.write({ '.env': after })
    // In place the check passes anyway, and without settings as well.
    world.play = (given) => (given.copy === null || after === null ? 0 : readsEnv(given))
    const { verdict, unavailable } = await world.later()
    assert.deepEqual([verdict.achieved, verdict.assurance.sealed, unavailable], expected)
  })
}

test('files in folders that checkpoints leave out are known, too', async (t) => {
  const world = await started(t, { ...FILES, '.aws/config': 'a', '.aws/deep/more': 'a' })
  world.play = ({ cwd, copy }) => {
    if (copy !== null) readFileSync(join(cwd, '.aws/deep/more'))
    return 0
  }
  assert.equal((await world.later()).verdict.assurance.sealed, true)
  world.write({ '.aws/deep/more': 'b' })
  const { verdict, unavailable } = await world.later()
  assert.equal(verdict.assurance.sealed, false)
  assert.equal(unavailable, '.aws/deep/more was changed, and is not stored')
})

test('a suite that no copy can run is not held against the run', async (t) => {
  const world = await started(t)
  world.play = ({ copy }) => (copy === null ? 0 : 127)
  world.playStart = () => 127
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
    world.play = ({ copy }) => (copy === null ? 0 : 1)
    const { verdict, unavailable } = await world.later()
    assert.deepEqual([verdict.achieved, verdict.assurance.sealed], [true, false])
    assert.equal(unavailable, expected)
  }
})

test('a check that asks git for files is made in a copy at once', async (t) => {
  const world = new SealedFlow(t, { ...FILES, 'check.sh': 'git show main:want.txt | diff - out\n' })
  world.play = () => 1
  const { found } = await world.first()
  assert.equal(found!.start!.pending, undefined)
})

test('tests that a runner reported in place are those of later checks', async (t) => {
  const world = new SealedFlow(t)
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
  assert.match(verdict.reason, /^sealed check: tests changed: .*b/)
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
