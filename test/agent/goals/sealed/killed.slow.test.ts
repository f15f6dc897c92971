/** Processes that are killed during sealed checks, and others that take their run over. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertWhole, KilledRun, MOMENTS } from './killed-run.js'

for (const moment of MOMENTS) {
  test(`a run whose process is killed in a check (${moment}) is achieved by another`, async (t) => {
    const run = await KilledRun.start(t, { hasSandbox: true })
    const before = await run.killAt(moment)
    assert.deepEqual([...new Set(before)], MOMENTS.slice(0, MOMENTS.indexOf(moment)))
    const end = await assertWhole(run, await run.goOn())
    assert.equal(end.recoveries, 1)
    // One that was cut off counts.
    assert.deepEqual(end.evaluations, moment === 'held-out' ? [1, 2] : [1])
  })
}
