import assert from 'node:assert/strict'
import { test } from 'node:test'
import { finishes, killEverywhere, ranOnce } from './killed-operations.js'

test('an apply that is killed at any write is finished by the next start', async (t) => {
  const world = await ranOnce(t, { workspace: 'isolated' })
  assert.deepEqual(world.after, world.before)
  const { after } = await ranOnce(t, {})
  await killEverywhere(t, world, after, {
    operation: 'apply',
    request: {},
    recovers: finishes(world, world.before, after, async (engine) => {
      await assert.rejects(engine.workspaces.apply(world.runId, {}), { problem: 'no_changes' })
    }),
  })
})
