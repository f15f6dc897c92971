/** Runs whose processes are killed during sealed checks, one after the other. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Random } from '../../../helpers/random.js'
import { assertWhole, KilledRun, MOMENTS, type Moment } from './killed-run.js'

test('processes are killed in every check of a run, with copies in temporary folders', async (t) => {
  const run = await KilledRun.start(t, { hasSandbox: false })
  const place = 'temporary'
  for (const moment of MOMENTS) {
    const before: readonly Moment[] = await run.killAt(moment, { place })
    assert.equal(before.includes('first'), moment === 'in place', 'no check is made twice')
  }
  const end = await assertWhole(run, await run.goOn({ place }))
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

/** Kills the processes of a run while they make or remove copies, until one run was hit. */
async function dieAndGoOn(
  t: TestContext,
  random: Random,
  what: 'making' | 'removing',
): Promise<void> {
  for (let runs = 1; ; runs++) {
    const run = await KilledRun.start(t, { hasSandbox: random.chance(0.5), files: FILES })
    let deaths = 0
    for (const copy of [1, 2]) {
      const files = random.integer(50, FILES)
      if ((await run.goOn({ dies: { what, copy, files } })) === null) deaths += 1
    }
    await assertWhole(run, await run.goOn())
    if (deaths > 0) return
    // A fast disk may make or remove a copy between two polls.
    assert.ok(runs < 10, `no process died while ${what} a copy`)
  }
}
