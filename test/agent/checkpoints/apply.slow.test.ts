import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import type { JsonObject, RunDetails, RunEngine } from 'runwright/agent'
import { bash, write, type Said } from '../../helpers/engine.js'
import { World } from '../../helpers/world.js'

interface Ended {
  readonly world: World
  readonly engine: RunEngine
  readonly details: RunDetails
}

const CHANGES = write({
  a: '1\n2\n3\n4\n5 of the run\n',
  'sub/b': 'b of the run\n',
  c: 'new\n',
})

/** An isolated run that changed `a` and `sub/b`, and added `c`, or did what is given. */
async function isolatedRun(
  t: TestContext,
  request: JsonObject = {},
  said: Said = CHANGES,
): Promise<Ended> {
  const world = new World(t, { files: { a: '1\n2\n3\n4\n5\n', 'sub/b': 'b\n' }, turns: [said] })
  const engine = await world.open()
  const given = { goal: 'shell: grep -q run a', workspace: 'isolated', ...request }
  const { details } = await world.run(given)
  assert.equal(details.status, 'achieved', JSON.stringify(details.error))
  return { world, engine, details }
}

test('changes of an isolated run wait, are shown, and are applied once', async (t) => {
  const { world, engine, details } = await isolatedRun(t)
  const { run_id } = details
  assert.equal(details.changes, 'pending')
  assert.equal(world.read('a'), '1\n2\n3\n4\n5\n')
  assert.equal(world.has(run_id, world.copies), true)
  const seen = await engine.workspaces.apply(run_id, { dry_run: true })
  assert.deepEqual(seen, {
    applied: ['a', 'c', 'sub/b'], merged: [], skipped: [], conflicts: [], held_back: [],
    checkpoint_id: null,
  })
  const applied = await engine.workspaces.apply(run_id, {})
  assert.deepEqual(applied.applied, ['a', 'c', 'sub/b'])
  assert.equal(world.read('a'), '1\n2\n3\n4\n5 of the run\n')
  assert.equal(world.read('c'), 'new\n')
  assert.equal((await engine.get(run_id)).changes, 'applied')
  assert.equal(world.has(run_id, world.copies), false)
  await assert.rejects(engine.workspaces.apply(run_id, {}), { problem: 'no_changes' })
  await assert.rejects(engine.workspaces.discard(run_id), { problem: 'no_changes' })
  const undone = await engine.workspaces.restore(run_id, {
    checkpoint_id: applied.checkpoint_id!,
  })
  assert.deepEqual(undone.paths, ['a', 'c', 'sub/b'])
  assert.equal(world.read('a'), '1\n2\n3\n4\n5\n')
  assert.equal(world.has('c'), false)
  assert.equal((await engine.get(run_id)).changes, 'pending')
  await engine.workspaces.apply(run_id, {})
  assert.equal((await engine.get(run_id)).changes, 'applied')
})

test('lines that both sides changed are merged where they are apart', async (t) => {
  const { world, engine, details } = await isolatedRun(t)
  world.write({ a: '1 of the user\n2\n3\n4\n5\n' })
  const { applied, merged } = await engine.workspaces.apply(details.run_id, {})
  assert.deepEqual([applied, merged], [['a', 'c', 'sub/b'], ['a']])
  assert.equal(world.read('a'), '1 of the user\n2\n3\n4\n5 of the run\n')
  assert.equal((await engine.get(details.run_id)).changes, 'applied')
})

test('a conflict is named, and nothing is written unless it is forced', async (t) => {
  const { world, engine, details } = await isolatedRun(t)
  const { run_id } = details
  world.write({ 'sub/b': 'b of the user\n' })
  await assert.rejects(engine.workspaces.apply(run_id, {}), {
    code: 'ERR_AGENT_WORKSPACE_CHANGED', problem: 'conflict', paths: ['sub/b'],
  })
  assert.equal(world.has('c'), false)
  const seen = await engine.workspaces.apply(run_id, { dry_run: true })
  assert.deepEqual(seen.conflicts, ['sub/b'])
  const some = await engine.workspaces.apply(run_id, { paths: ['a', 'c'] })
  assert.deepEqual(some.applied, ['a', 'c'])
  assert.equal((await engine.get(run_id)).changes, 'pending')
  const rest = await engine.workspaces.apply(run_id, { force: true })
  assert.deepEqual([rest.applied, rest.conflicts], [['sub/b'], ['sub/b']])
  assert.equal(world.read('sub/b'), 'b of the run\n')
  assert.equal((await engine.get(run_id)).changes, 'applied')
})

test('a run that is to apply its changes has done so when it has ended', async (t) => {
  const { world, engine, details } = await isolatedRun(t, { apply: 'on_achieved' })
  assert.equal(details.changes, 'applied')
  assert.equal(world.read('c'), 'new\n')
  const events = await engine.events(details.run_id, { after: 0, limit: 1000 })
  const kinds = events.map(({ kind }) => kind)
  assert.deepEqual(kinds.slice(-6), [
    'checkpoint', 'files_changing', 'files_changed', 'checkpoint', 'changes_decided', 'run_end',
  ])
  await engine.close()
  assert.deepEqual(readdirSync(world.copies), [])
})

test('discarded changes are gone', async (t) => {
  const { world, engine, details } = await isolatedRun(t)
  const { run_id } = details
  await engine.workspaces.discard(run_id)
  assert.equal((await engine.get(run_id)).changes, 'discarded')
  assert.equal(world.has(run_id, world.copies), false)
  assert.equal(world.has('c'), false)
  for (const again of [
    engine.workspaces.apply(run_id, {}),
    engine.workspaces.discard(run_id),
  ]) {
    await assert.rejects(again, { problem: 'no_changes' })
  }
})

test('of a renamed file, both names are applied, whichever is asked for', async (t) => {
  for (const asked of ['a', 'moved']) {
    const command = 'mv a moved; echo of the run > sub/b'
    const request = { goal: 'shell: test -e moved' }
    const { world, engine, details } = await isolatedRun(t, request, bash(command))
    const { applied } = await engine.workspaces.apply(details.run_id, { paths: [asked] })
    assert.deepEqual(applied, ['a', 'moved'])
    assert.equal(world.has('a'), false)
    assert.deepEqual([world.read('moved'), world.read('sub/b')], ['1\n2\n3\n4\n5\n', 'b\n'])
  }
})
