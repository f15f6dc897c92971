/** Held-out tests judge each attempt at a goal. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { follow, payloads } from '../../../helpers/engine.js'
import { filesIn, writeFiles } from '../../../helpers/files.js'
import { openFamily, writes } from '../../run/children/support.js'
import { GOAL, HELD_OUT, MARKERS, PROJECT, RIGHT, WRONG } from './scenario.js'

test('an attempt that passes only the visible tests does not win', async (t) => {
  const { engine, cwd } = await openFamily(
    t,
    { visible: writes('lib/add.js', WRONG[0]), right: writes('lib/add.js', RIGHT) },
    { sealedChecks: 'prefer' },
  )
  writeFiles(cwd, PROJECT)
  const { details } = await engine.create({
    goal: GOAL,
    max_iterations: 1,
    holdout: HELD_OUT,
    // All work to their end, so that the wrong one is judged as well.
    attempts: { count: 2, models: ['test:visible', 'test:right'], choose: 'smallest' },
  })
  const events = await follow(engine, details.run_id)
  const { attempts, assurance, status } = await engine.get(details.run_id)
  const [visible, right] = attempts?.runs ?? []
  assert.deepEqual([visible?.status, right?.status, status], ['failed', 'achieved', 'achieved'])
  assert.equal(attempts?.chosen, 2)
  assert.match(visible?.reason ?? '', /held-out tests fail/)
  assert.deepEqual([right?.assurance?.holdout, assurance?.holdout], [true, true])
  assert.equal(filesIn(join(cwd, 'lib'))['add.js'], RIGHT)
  const child = await follow(engine, visible!.run_id)
  assert.deepEqual(payloads(child, 'holdout_evaluation'), [{ number: 1, of: 3 }])
  const told = JSON.stringify([events, child, await engine.get(visible!.run_id)])
  for (const marker of Object.values(MARKERS)) assert.ok(!told.includes(marker), marker)
})
