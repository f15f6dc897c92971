/** Processes that are killed during a sealed check, and others that take their run over. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { processExecutor } from 'runwright/agent'
import { Random } from '../../../helpers/random.js'
import { KilledWorld, MOMENTS, type KilledEnd, type Moment } from './killed-world.js'

/** Asserts that a run was achieved as if nothing had happened, and that nothing is left of it. */
async function assertWhole(world: KilledWorld, end: KilledEnd | null): Promise<KilledEnd> {
  assert.ok(end !== null, 'it went on to the end')
  const { runId, status, end_reason, assurance, checks, goal_reason } = end
  assert.deepEqual([status, end_reason], ['achieved', 'goal_achieved'], goal_reason)
  assert.deepEqual(assurance, { by: 'tests', sealed: true, canaries: true, holdout: true })
  assert.deepEqual(checks, [[0, false], [1, true]], 'one check of each iteration')
  assert.deepEqual(world.left(), [], 'no copy, no report and no pipe is left')
  assert.equal(await processExecutor().killMarked(runId), 0, 'no process of the run is left')
  return end
}

for (const moment of MOMENTS) {
  test(`a run whose process is killed in a check (${moment}) is achieved by another`, async (t) => {
    const world = await KilledWorld.open(t, { hasSandbox: true })
    const before = await world.killAt(moment)
    assert.deepEqual([...new Set(before)], MOMENTS.slice(0, MOMENTS.indexOf(moment)))
    const end = await assertWhole(world, await world.goOn())
    assert.equal(end.recoveries, 1)
    // One that was cut off counts.
    assert.deepEqual(end.evaluations, moment === 'held-out' ? [1, 2] : [1])
  })
}

test('processes are killed in every check of a run, with copies in temporary folders', async (t) => {
  const world = await KilledWorld.open(t, { hasSandbox: false })
  const place = 'temporary'
  for (const moment of MOMENTS) {
    const before: readonly Moment[] = await world.killAt(moment, { place })
    assert.equal(before.includes('first'), moment === 'in place', 'no check is made twice')
  }
  const end = await assertWhole(world, await world.goOn({ place }))
  assert.equal(end.recoveries, MOMENTS.length)
  assert.deepEqual(end.evaluations, [1, 2])
})

const FILES = 600

test('processes are killed while copies are made and removed, at seeded moments', async (t) => {
  const seed = Number(process.env['RUNWRIGHT_SEED'] ?? Date.now() % 1_000_000)
  t.diagnostic(`seed ${seed}`)
  const random = new Random(seed)
  for (const what of ['making', 'removing'] as const) await dieAndGoOn(t, random, what)
})

/** One run for each kind of death; several processes die until one comes to the end. */
async function dieAndGoOn(
  t: TestContext,
  random: Random,
  what: 'making' | 'removing',
): Promise<void> {
  const world = await KilledWorld.open(t, { hasSandbox: random.chance(0.5), files: FILES })
  let deaths = 0
  for (const copy of [1, 1, 2]) {
    const files = random.integer(1, FILES)
    if ((await world.goOn({ dies: { what, copy, files } })) === null) deaths += 1
  }
  assert.ok(deaths > 0, `no process died while ${what} a copy`)
  await assertWhole(world, await world.goOn())
}
