/** Processes that are killed during a sealed check, and others that take their run over. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertWhole, KilledWorld, MOMENTS } from './killed-world.js'

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
