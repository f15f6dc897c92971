import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  MemoryStore, type JsonObject, type RestoreResult, type RunEngine,
} from 'runwright/agent'
import type {
  FileOperations, StoredFolder,
} from '../../../lib/agent/checkpoints/file-operations.js'
import { restoreFolder } from '../../../lib/agent/checkpoints/restore.js'
import { TrackedFolder } from '../../../lib/agent/workspace/tracked-folder.js'
import { readTree } from '../../../lib/agent/workspace/read-tree.js'
import { atGate, bash, follow, scratch, write } from '../../helpers/engine.js'
import { foldersOf } from '../../helpers/tree-model.js'
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

/** A run that changes folders, beside files. */
async function foldersChanged(t: TestContext, request: JsonObject = {}) {
  const world = new World(t, {
    files: { 'private/a': '0\n', 'gone/b': '1\n' },
    turns: [bash('chmod 755 private; rmdir empty; rm -r gone; mkdir -p new/deep; touch done')],
  })
  mkdirSync(join(world.cwd, 'empty'))
  chmodSync(join(world.cwd, 'private'), 0o700)
  chmodSync(join(world.cwd, 'gone'), 0o750)
  const engine = await world.open()
  const { runId, details } = await world.run({ goal: 'shell: test -e done', ...request })
  assert.equal(details.status, 'achieved')
  const [start] = await engine.workspaces.checkpoints(runId)
  const modes = (): readonly string[] =>
    foldersOf(world.cwd).map((path) => {
      return `${path} ${(statSync(join(world.cwd, path)).mode & 0o777).toString(8)}`
    })
  return { world, engine, runId, start: start!.checkpoint_id, modes }
}

test('a restore brings back empty folders and permissions of folders', async (t) => {
  const { engine, runId, start, modes } = await foldersChanged(t)
  const { workspaces } = engine
  const after = ['new 755', 'new/deep 755', 'private 755']
  assert.deepEqual(modes(), after)
  const { changes } = await workspaces.changes(runId)
  const told = changes.map(({ path, status, mode }) => [path, status, mode.before, mode.after])
  assert.deepEqual(told, [
    ['done', 'added', null, '100644'],
    ['empty', 'deleted', '040755', null],
    ['gone/b', 'deleted', '100644', null],
    ['new', 'added', null, '040755'],
    ['new/deep', 'added', null, '040755'],
    ['private', 'modified', '040700', '040755'],
  ])
  const patch = Buffer.from(await workspaces.patch(runId, { raw: false })).toString()
  const patched = ['diff --git a/gone/b b/gone/b', 'diff --git a/done b/done']
  assert.deepEqual(patch.match(/^diff .*/gm), patched)
  const { entries } = await workspaces.list(runId, { at: start })
  assert.deepEqual(entries.map(({ path, mode }) => `${path} ${mode}`), [
    'empty 040755', 'gone 040750', 'private 040700',
  ])
  assert.deepEqual((await workspaces.list(runId, { at: start, path: 'empty' })).entries, [])
  const request = { checkpoint_id: start }
  const { checkpoint_id, paths, skipped } = await workspaces.restore(runId, request)
  assert.deepEqual(modes(), ['empty 755', 'gone 750', 'private 700'])
  assert.deepEqual(paths, ['done', 'empty', 'gone/b', 'new', 'new/deep', 'private'])
  assert.deepEqual(skipped, [])
  await workspaces.restore(runId, { checkpoint_id, paths: ['private', 'new'] })
  assert.deepEqual(modes(), ['empty 755', 'gone 750', 'new 755', 'private 755'])
  await workspaces.restore(runId, { checkpoint_id })
  assert.deepEqual(modes(), after)
})

test('an apply brings new empty folders, and no permissions of folders', async (t) => {
  const { engine, runId, modes } = await foldersChanged(t, { workspace: 'isolated' })
  const { applied, conflicts } = await engine.workspaces.apply(runId, {})
  assert.deepEqual([applied, conflicts], [['done', 'gone/b', 'new', 'new/deep'], []])
  assert.deepEqual(modes(), ['empty 755', 'new 755', 'new/deep 755', 'private 700'])
  assert.equal((await engine.get(runId)).changes, 'applied')
})

test('a fork has the folders of its checkpoint, with their permissions', async (t) => {
  const { world, engine, runId } = await foldersChanged(t)
  const request = { at: 'start', max_iterations: 1, message: 'go on' }
  const { details } = await engine.fork(runId, request)
  await follow(engine, details.run_id)
  const copy = realpathSync(world.copyOf(details.run_id))
  const found = foldersOf(copy).map((path) => {
    return `${path} ${(statSync(join(copy, path)).mode & 0o777).toString(8)}`
  })
  assert.deepEqual(found, ['empty 755', 'gone 750', 'private 700'])
})
