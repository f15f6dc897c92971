import assert from 'node:assert/strict'
import { mkdirSync, rmSync } from 'node:fs'
import { test } from 'node:test'
import type { AgentEvent } from 'runwright/agent'
import { follow } from '../../helpers/engine.js'
import { content, fill, GOAL, killEverywhere, ranOnce } from './killed-operations.js'

test('a run that applies its changes and is killed at any write has applied them once', async (t) => {
  const world = await ranOnce(t, {})
  for (const folder of [world.cwd, world.template]) rmSync(folder, { recursive: true })
  mkdirSync(world.template)
  fill(world.cwd)
  const request = { goal: GOAL, cwd: world.cwd, workspace: 'isolated', apply: 'on_achieved' }
  await killEverywhere(t, world, world.after, {
    operation: 'run',
    request,
    recovers: async (engine, hint) => {
      const [{ run_id: runId } = assert.fail()] = (await engine.list()).runs
      const events = await follow(engine, runId)
      assert.deepEqual(content(world.cwd), world.after, hint)
      const { changes, status } = await engine.get(runId)
      assert.deepEqual([status, changes], ['achieved', 'applied'], hint)
      const applied = events.filter((event) => event.kind === 'files_changed')
      assert.deepEqual(applied.map(({ payload }) => payload.skipped), [[]], hint)
      const isWarning = (one: AgentEvent): boolean =>
        one.kind === 'log' && one.payload.level === 'warn'
      assert.deepEqual(events.filter(isWarning), [], hint)
      await assert.rejects(engine.workspaces.apply(runId, {}), { problem: 'no_changes' })
      return events.some(({ kind }) => kind === 'run_recovered')
    },
  })
})
