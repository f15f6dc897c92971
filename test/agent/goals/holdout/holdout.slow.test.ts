/** Held-out tests in whole runs: what they decide, and what the run hears. */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { FileStore, type EngineOptions, type JsonObject } from 'runwright/agent'
import { follow, payloads, scratch } from '../../../helpers/engine.js'
import type { World } from '../../../helpers/world.js'
import { GOAL, HELD_OUT, PROJECT, pursue, RIGHT, worldOf, WRONG } from './scenario.js'

test('a goal is achieved when the held-out tests pass as well', async (t) => {
  const { world, details, checks, evaluations } = await pursue(t, { steps: [RIGHT] })
  assert.equal(details.status, 'achieved', details.final_state.goal_reason)
  assert.deepEqual(checks.map(({ assurance }) => [assurance?.sealed, assurance?.holdout]), [
    [true, false], [true, true],
  ])
  assert.deepEqual(evaluations, [{ number: 1, of: 3 }])
  assert.equal(details.assurance?.holdout, true)
  // An earlier version would take the goal for met without them.
  const [first] = await world.store.read(details.run_id, 0, 1)
  assert.equal(first!.v, 3)
})

test('a goal that is met at once must pass them, too', async (t) => {
  const met = await pursue(t, { files: { ...PROJECT, 'lib/add.js': RIGHT } })
  assert.deepEqual([met.details.status, met.details.iteration], ['achieved', 0])
  assert.equal(met.details.assurance?.holdout, true)
  const wrong = await pursue(t, { files: { ...PROJECT, 'lib/add.js': WRONG[0] }, steps: [RIGHT] })
  assert.deepEqual(wrong.checks.map(({ achieved }) => achieved), [false, true])
  assert.equal(wrong.evaluations.length, 2)
})

test('what passes only the visible tests is told that held-out tests fail', async (t) => {
  const { world, details, checks } = await pursue(t, { steps: [WRONG[0], RIGHT] })
  assert.equal(details.status, 'achieved')
  assert.equal(checks[1]!.reason, 'held-out tests fail (evaluation 1 of 3)')
  assert.equal(checks[1]!.assurance?.holdout, false)
  const heard = JSON.stringify(world.requests.at(-1))
  assert.match(heard, /tests besides that you cannot read/)
  assert.doesNotMatch(heard, /of 4/)
})

test('with `count`, the run hears how many of how many fail', async (t) => {
  const holdout = { ...HELD_OUT, tell: 'count' }
  const steps = [WRONG[0], WRONG[1], RIGHT]
  const { world, details, checks } = await pursue(t, { steps, request: { holdout } })
  assert.equal(details.status, 'achieved')
  assert.deepEqual(checks.slice(1, 3).map(({ reason }) => reason), [
    '3 of 4 held-out tests fail (evaluation 1 of 3)',
    '2 of 4 held-out tests fail (evaluation 2 of 3)',
  ])
  assert.match(JSON.stringify(world.requests.at(-1)), /2 of 4 held-out tests fail/)
})

for (const [runner, files, command] of [
  ['node:test', {
    'held/a.test.js': `const test = require('node:test'); const { add } = require('../lib/add.js')
test('adds', (t) => (add(2, 2) === 4 ? undefined : t.skip('broken')))
test('adds nothing', () => {})`,
  }, 'node --test held/'],
  ['unittest', {
    'held/test_add.py': `import subprocess, unittest
class Adds(unittest.TestCase):
    def test_adds(self):
        code = "process.exit(require('./lib/add.js').add(2, 2) === 4 ? 0 : 1)"
        if subprocess.call(['node', '-e', code]) != 0:
            raise unittest.SkipTest('broken')
    def test_adds_nothing(self):
        pass
`,
  }, 'python3 -m unittest held/test_add.py'],
] as const) {
  test(`a held-out test of ${runner} that is skipped has not passed, unless allowed`, async (t) => {
    const holdout = { files, command, tell: 'count' }
    const [wrong] = WRONG
    const strict = await pursue(t, { steps: [wrong, RIGHT], request: { holdout } })
    const { reason } = strict.checks[1]!
    assert.match(reason, /^1 of 2 held-out tests are skipped \(evaluation 1 of 3\)/)
    assert.equal(strict.details.status, 'achieved')
    assert.equal(strict.evaluations.length, 2)
    const lax = await pursue(t, {
      steps: [wrong], request: { holdout: { ...holdout, allowed_skips: 1 } },
    })
    assert.equal(lax.details.status, 'achieved')
    assert.equal(lax.evaluations.length, 1)
  })
}

test('a command without a known runner has no count', async (t) => {
  const holdout = {
    files: { 'held/check.js': "process.exitCode = require('../lib/add.js').add(2, 3) === 5 ? 0 : 1" },
    command: 'node held/check.js',
    tell: 'count',
  }
  const { details, checks } = await pursue(t, { steps: [WRONG[0], RIGHT], request: { holdout } })
  assert.equal(checks[1]!.reason, 'held-out tests fail (evaluation 1 of 3)')
  assert.equal(details.status, 'achieved')
})

test('after three evaluations the run ends: more would tell what they are', async (t) => {
  const steps = [...WRONG, RIGHT]
  const { world, details, evaluations } = await pursue(t, { steps })
  assert.deepEqual([details.status, details.end_reason], ['failed', 'holdout_exhausted'])
  assert.deepEqual(evaluations.map(({ number }) => number), [1, 2, 3])
  assert.match(details.final_state.goal_reason, /\(evaluation 3 of 3\)/)
  assert.equal(details.iteration, 3)
  assert.equal(world.requests.length, 6)
})

test('they are evaluated only when all else passes', async (t) => {
  const broken = 'exports.add = () => 0\n'
  const { details, evaluations, checks } = await pursue(t, { steps: [broken, WRONG[0], broken] })
  assert.equal(details.end_reason, 'max_iterations')
  assert.deepEqual(checks.map(({ achieved }) => achieved), [false, false, false, false])
  assert.deepEqual(evaluations, [{ number: 1, of: 3 }])
})

test('the files exist in no folder of the run, and replace what the run puts there', async (t) => {
  const outside = scratch(t)
  const path = Object.keys(HELD_OUT.files)[0]!
  // A link in place of the folder, and a test that always passes.
  const plant = `$ mkdir -p other && ln -s ${outside} held && cat > lib/add.js <<'END'\n${WRONG[0]}END`
  const planted = await pursue(t, { steps: [plant] })
  assert.match(planted.details.final_state.goal_reason, /^held-out tests fail/)
  assert.deepEqual(readdirSync(outside), [])
  const empty = "require('node:test').test('case', () => {})"
  const copy = `$ mkdir -p $(dirname ${path}) && echo "${empty}" > ${path}\n` +
    `cat > lib/add.js <<'END'\n${WRONG[0]}END`
  const copied = await pursue(t, { steps: [copy] })
  assert.equal(copied.details.status, 'failed', copied.details.final_state.goal_reason)
})

test('code under test that ends the process early does not pass them', async (t) => {
  const early = `
exports.add = () => 3
if (require('node:fs').existsSync('held')) process.exit(0)
`
  const { details } = await pursue(t, { steps: [early] })
  assert.equal(details.status, 'failed')
  assert.match(details.final_state.goal_reason, /held-out tests fail/)
})

test('code under test that rewrites them while they run does not pass them', async (t) => {
  const path = Object.keys(HELD_OUT.files)[0]!
  const rewriting = `
const fs = require('node:fs')
exports.add = () => 3
const passing = "require('node:test').test('case 1', () => {})"
if (fs.existsSync('${path}')) fs.writeFileSync('${path}', passing)
`
  // Loads the code before the tests.
  const files = { ...HELD_OUT.files, 'held/load.js': "require('../lib/add.js')\n" }
  const holdout = { files, command: `node held/load.js && node --test ${path}` }
  const { details } = await pursue(t, { steps: [rewriting], request: { holdout } })
  assert.match(details.final_state.goal_reason, /held-out tests fail/)
})

/** A project whose check runs nowhere but in its own folder. */
function boundWorld(t: TestContext, options: Partial<EngineOptions> = {}): World {
  const world = worldOf(t, { options })
  world.write({
    'place.js': `if (__dirname !== ${JSON.stringify(world.cwd)}) process.exit(127)\n`,
    'check.sh': 'node place.js && node --test test/\n',
  })
  return world
}

test('where no sealed check can be made, the run ends at its first check', async (t) => {
  const world = boundWorld(t)
  const { details: ended } = await world.run({ goal: 'shell: sh check.sh', holdout: HELD_OUT })
  assert.deepEqual([ended.status, ended.end_reason], ['failed', 'goal_check_error'])
  assert.match(ended.error!.message, /sealed checks are required/)
})

test('a fork of a run without sealed checks cannot go on without its held-out tests', async (t) => {
  let given: typeof HELD_OUT | null = null
  const world = boundWorld(t, { checkpoints: 'auto', holdout: () => given })
  world.write({ 'lib/add.js': RIGHT })
  const engine = await world.open()
  const { runId, details: source } = await world.run({ goal: 'shell: sh check.sh' })
  assert.deepEqual([source.status, source.assurance?.sealed], ['achieved', false])
  given = HELD_OUT
  const { details: fork } = await engine.fork(runId, { workspace: 'in_place' })
  await follow(engine, fork.run_id)
  const { status, end_reason } = await engine.get(fork.run_id)
  assert.deepEqual([status, end_reason], ['failed', 'goal_check_error'])
})

test('a repeated run has the held-out tests of the first', async (t) => {
  const { world, engine, details } = await pursue(t, { steps: [WRONG[0]] })
  assert.equal(details.status, 'failed')
  const again = await engine.retry(details.run_id)
  const events = await follow(engine, again.run_id)
  // The folder is as the first run left it.
  assert.equal(world.read('lib/add.js'), WRONG[0])
  assert.deepEqual(payloads(events, 'holdout_evaluation'), [{ number: 1, of: 3 }])
})

test('a fork has them, too, counts from 1, and does not need its source', async (t) => {
  const store = new FileStore({ directory: scratch(t) })
  const options = { store, checkpoints: 'auto' } as const
  const world = worldOf(t, { steps: [...WRONG, RIGHT], options })
  const engine = await world.open()
  const { details } = await world.run({ goal: GOAL, max_iterations: 3, holdout: HELD_OUT })
  assert.equal(details.end_reason, 'holdout_exhausted')
  const { details: fork } = await engine.fork(details.run_id, { at: 'end', max_iterations: 2 })
  await engine.delete(details.run_id)
  const evaluations = payloads(await follow(engine, fork.run_id), 'holdout_evaluation')
  const ended = await engine.get(fork.run_id)
  assert.equal(ended.status, 'achieved', ended.error?.message ?? ended.final_state.goal_reason)
  assert.equal(ended.assurance?.holdout, true)
  assert.deepEqual(evaluations.map(({ number }) => number), [1, 2])
})

test('the same idempotency key with other held-out tests is another request', async (t) => {
  const world = worldOf(t, { files: { ...PROJECT, 'lib/add.js': RIGHT } })
  const engine = await world.open()
  const create = (holdout: JsonObject): ReturnType<typeof engine.create> =>
    engine.create({ goal: GOAL, holdout }, { idempotencyKey: 'k' })
  const first = await create(HELD_OUT)
  const second = await create({ ...HELD_OUT, tell: 'verdict' }).catch((error: unknown) => error)
  assert.equal((second as { code?: string }).code, 'ERR_AGENT_IDEMPOTENCY')
  const repeated = await create(HELD_OUT)
  assert.deepEqual([first.created, repeated.created], [true, false])
  assert.equal(repeated.details.run_id, first.details.run_id)
  await follow(engine, first.details.run_id)
})

test('held-out tests that hold what looks like a key are no reason to refuse a run', async (t) => {
  const key = `sk-ant-${'a1B2'.repeat(12)}`
  const files = { ...HELD_OUT.files, 'held/key.txt': key }
  const request = { holdout: { ...HELD_OUT, files } }
  const { details } = await pursue(t, { steps: [RIGHT], request })
  assert.equal(details.status, 'achieved')
})
