import assert from 'node:assert/strict'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { RunEngine } from 'runwright/agent'
import { follow, openEngine, testProvider } from '../../helpers/engine.js'

/** A run that writes `one` and then `two` to the file `a`, with a gate after each iteration. */
async function gatedRun(
  t: TestContext,
): Promise<{ readonly engine: RunEngine; readonly cwd: string; readonly runId: string }> {
  const provider = testProvider((_, n) =>
    n % 2 === 0
      ? { calls: [{ tool: 'write_file', args: { path: 'a', content: `${n / 2 + 1}\n` } }] }
      : { text: 'done' },
  )
  const { engine, cwd } = await openEngine(t, { providers: [provider], checkpoints: 'auto' })
  writeFileSync(join(cwd, 'a'), '0\n')
  writeFileSync(join(cwd, 'kept'), 'kept\n')
  const request = { goal: 'shell: false', cwd, hitl_enabled: true, max_iterations: 3 }
  const { details } = await engine.create(request)
  await follow(engine, details.run_id, ({ kind }) => kind === 'human_check_required')
  return { engine, cwd, runId: details.run_id }
}

function read(...names: readonly string[]): string {
  return readFileSync(join(...names), 'utf8')
}

test('files are restored at a gate, and that is taken back by the checkpoint made before', async (t) => {
  const { engine, cwd, runId } = await gatedRun(t)
  assert.equal(read(cwd, 'a'), '1\n')
  writeFileSync(join(cwd, 'unrelated'), 'of somebody else\n')
  const [start] = await engine.workspaces.checkpoints(runId)
  assert.equal(start?.reason, 'start')
  const id = start.checkpoint_id
  await assert.rejects(engine.workspaces.restore(runId, { checkpoint_id: id }), {
    code: 'ERR_AGENT_WORKSPACE_CHANGED',
    paths: ['unrelated'],
  })
  rmSync(join(cwd, 'unrelated'))
  const restored = await engine.workspaces.restore(runId, { checkpoint_id: id })
  assert.equal(read(cwd, 'a'), '0\n')
  assert.deepEqual(restored.paths, ['a'])
  assert.equal(restored.restored, id)
  assert.deepEqual((await engine.workspaces.changes(runId)).changes, [])
  const undone = await engine.workspaces.restore(runId, { checkpoint_id: restored.checkpoint_id })
  assert.equal(read(cwd, 'a'), '1\n')
  assert.deepEqual(undone.paths, ['a'])
  assert.equal((await engine.get(runId)).status, 'awaiting_human')
  const { changes } = await engine.workspaces.changes(runId)
  assert.deepEqual(changes.map(({ path, additions, deletions }) => [path, additions, deletions]), [
    ['a', 1, 1],
  ])
})

test('files are restored after the end, again and again', async (t) => {
  const { engine, cwd, runId } = await gatedRun(t)
  await engine.resume(runId, { decision: 'abort' })
  await follow(engine, runId)
  const all = await engine.workspaces.checkpoints(runId)
  const [start] = all
  for (let round = 0; round < 3; round++) {
    const { checkpoint_id } = await engine.workspaces.restore(runId, {
      checkpoint_id: start!.checkpoint_id,
    })
    assert.equal(read(cwd, 'a'), '0\n')
    await engine.workspaces.restore(runId, { checkpoint_id })
    assert.equal(read(cwd, 'a'), '1\n')
  }
  const events = await engine.events(runId, { after: 0, limit: 1000 })
  const kinds = events.map(({ kind }) => kind)
  assert.deepEqual(kinds.slice(kinds.indexOf('run_end') + 1, kinds.indexOf('run_end') + 5), [
    'checkpoint', 'files_changing', 'files_changed', 'checkpoint',
  ])
  assert.equal(read(cwd, 'kept'), 'kept\n')
})
