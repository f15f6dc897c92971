import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { nextTurn } from '../../../lib/internal/next-turn.js'
import { content, killEverywhere, ranOnce } from './killed-operations.js'

test('a discard that is killed at any write is done or not begun', async (t) => {
  const world = await ranOnce(t, { workspace: 'isolated' })
  const { runId, cwd, before } = world
  const copy = join(world.root, 'data/workspaces', runId)
  await killEverywhere(t, world, before, {
    operation: 'discard',
    request: {},
    step: 1,
    recovers: async (engine, hint) => {
      assert.deepEqual(content(cwd), before, hint)
      const isDone = (await engine.get(runId)).changes === 'discarded'
      if (isDone) {
        await assert.rejects(engine.workspaces.discard(runId), { problem: 'no_changes' })
        while (existsSync(copy)) await nextTurn()
      } else {
        assert.equal(existsSync(copy), true, hint)
        assert.ok((await engine.workspaces.apply(runId, { dry_run: true })).applied.length > 0)
        await engine.workspaces.discard(runId)
      }
      assert.equal(existsSync(copy), false, hint)
      return isDone
    },
  })
})
