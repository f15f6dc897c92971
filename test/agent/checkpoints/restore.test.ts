import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { MemoryStore, type RestoreResult, type RunEngine } from 'runwright/agent'
import type {
  FileOperations, StoredFolder,
} from '../../../lib/agent/checkpoints/file-operations.js'
import { restoreFolder } from '../../../lib/agent/checkpoints/restore.js'
import { TrackedFolder } from '../../../lib/agent/workspace/tracked-folder.js'
import { readTree } from '../../../lib/agent/workspace/read-tree.js'
import { atGate, bash, follow, scratch, write } from '../../helpers/engine.js'
import { World } from '../../helpers/world.js'

/** A run that writes `one` and then `two` to the file `a`, with a gate after each iteration. */
async function gatedRun(
  t: TestContext,
): Promise<{ readonly world: World; readonly engine: RunEngine; readonly runId: string }> {
  const world = new World(t, {
    files: { a: '0\n', kept: 'kept\n' },
    turns: [write({ a: '1\n' }), { text: 'done' }, write({ a: '2\n' })],
  })
  const engine = await world.open()
  const request = { goal: 'shell: false', hitl_enabled: true, max_iterations: 3 }
  const { runId } = await world.run(request, atGate)
  return { world, engine, runId }
}

test('files are restored at a gate, and that is taken back by the checkpoint made before', async (t) => {
  const { world, engine, runId } = await gatedRun(t)
  assert.equal(world.read('a'), '1\n')
  world.write({ unrelated: 'of another program\n' })
  const [start] = await engine.workspaces.checkpoints(runId)
  assert.equal(start?.reason, 'start')
  const id = start.checkpoint_id
  await assert.rejects(engine.workspaces.restore(runId, { checkpoint_id: id }), {
    code: 'ERR_AGENT_WORKSPACE_CHANGED',
    paths: ['unrelated'],
  })
  rmSync(join(world.cwd, 'unrelated'))
  const restored = await engine.workspaces.restore(runId, { checkpoint_id: id })
  assert.equal(world.read('a'), '0\n')
  assert.deepEqual(restored.paths, ['a'])
  assert.equal(restored.restored, id)
  assert.deepEqual((await engine.workspaces.changes(runId)).changes, [])
  const undone = await engine.workspaces.restore(runId, { checkpoint_id: restored.checkpoint_id })
  assert.equal(world.read('a'), '1\n')
  assert.deepEqual(undone.paths, ['a'])
  assert.equal((await engine.get(runId)).status, 'awaiting_human')
  const { changes } = await engine.workspaces.changes(runId)
  assert.deepEqual(changes.map(({ path, additions, deletions }) => [path, additions, deletions]), [
    ['a', 1, 1],
  ])
})

test('files are restored after the end, again and again', async (t) => {
  const { world, engine, runId } = await gatedRun(t)
  await engine.resume(runId, { decision: 'abort' })
  await follow(engine, runId)
  const all = await engine.workspaces.checkpoints(runId)
  const [start] = all
  for (let round = 0; round < 3; round++) {
    const { checkpoint_id } = await engine.workspaces.restore(runId, {
      checkpoint_id: start!.checkpoint_id,
    })
    assert.equal(world.read('a'), '0\n')
    await engine.workspaces.restore(runId, { checkpoint_id })
    assert.equal(world.read('a'), '1\n')
  }
  const events = await engine.events(runId, { after: 0, limit: 1000 })
  const kinds = events.map(({ kind }) => kind)
  assert.deepEqual(kinds.slice(kinds.indexOf('run_end') + 1, kinds.indexOf('run_end') + 5), [
    'checkpoint', 'files_changing', 'files_changed', 'checkpoint',
  ])
  assert.equal(world.read('kept'), 'kept\n')
})

test('content that a checkpoint could not store is overwritten only by force', async (t) => {
  const { objects } = new MemoryStore()
  const cwd = scratch(t)
  const { signal } = new AbortController()
  const stored = async (content: string): Promise<string> => {
    writeFileSync(join(cwd, 'a'), content)
    const tracker = new TrackedFolder({})
    const { checkpoint_id } = await tracker.capture(cwd, objects, { previous: null, signal })
    await tracker[Symbol.asyncDispose]()
    return checkpoint_id
  }
  const [checkpointId, newest] = [await stored('old'), await stored('new')]
  const tree = await readTree(objects, newest)
  const entries = new Map([['a', { ...tree.entries.get('a')!, stored: false }]])
  const now = { captured: { checkpoint_id: newest }, tree: { ...tree, entries } }
  const folder = { capture: () => Promise.resolve(now) } as unknown as StoredFolder
  const operations = {
    objects, change: () => Promise.resolve({ paths: ['a'], skipped: [] }),
  } as unknown as FileOperations
  const restore = (force: boolean): Promise<RestoreResult> =>
    restoreFolder(operations, folder, {
      checkpointId, paths: null, newest, reason: 'restore', force, by: null,
    })
  await assert.rejects(restore(false), { problem: 'not_kept', paths: ['a'] })
  assert.deepEqual((await restore(true)).paths, ['a'])
})

test('a folder that was closed after the checkpoint is not entered', async (t) => {
  const world = new World(t, {
    files: { a: '0\n', 'sub/b': 'old' },
    turns: [bash('rm sub/b; touch done')],
  })
  const engine = await world.open()
  const { runId, details } = await world.run({ goal: 'shell: test -e done' })
  assert.equal(details.status, 'achieved')
  await engine.close()
  const next = await world.open({ workspaceFolder: join(world.cwd, 'sub') })
  const [start] = await next.workspaces.checkpoints(runId)
  const request = { checkpoint_id: start!.checkpoint_id, force: true }
  const { paths, skipped } = await next.workspaces.restore(runId, request)
  assert.deepEqual([paths, skipped], [['done'], ['sub/b']])
  assert.equal(world.has('sub/b'), false)
})
