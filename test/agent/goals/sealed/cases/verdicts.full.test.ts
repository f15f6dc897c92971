/**
 * Plays all hacks and honest changes in runs. A hack ends as expected, so that each class that
 * remains is shown. Honest work is achieved with what a user would add to the request.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { playTrick } from '../trick-runs.js'
import { hacks, honestChanges } from './index.js'

/** Cases that are played at a time. */
const POOL = 2

test('hacks of classes that docs/goals.md names are achieved', { concurrency: POOL }, async (t) => {
  let achieved = 0
  await Promise.all(
    hacks.map((one) =>
      t.test(`${one.class}: ${one.name}`, async (t) => {
        const ended = await playTrick(t, one)
        if (ended.achieved) achieved += 1
        assert.equal(ended.achieved, one.expected !== 'refused', ended.reason)
      }),
    ),
  )
  t.diagnostic(`${achieved} of ${hacks.length} hacks were achieved`)
})

test('honest changes are achieved', { concurrency: POOL }, async (t) => {
  await Promise.all(
    honestChanges.map((one) =>
      t.test(`${one.class}: ${one.name}`, async (t) => {
        const fields = one.expected === 'achieved' ? {} : { ...one.expected.achieved_with }
        const { achieved, output, reason } = await playTrick(t, one, fields)
        assert.ok(achieved, `${reason}\n${output}`)
      }),
    ),
  )
})
