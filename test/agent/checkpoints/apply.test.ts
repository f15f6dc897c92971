import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { JsonObject, RunDetails, RunEngine } from 'runwright/agent'
import { openEngine, runToEnd, scratch, testProvider, type Said } from '../../helpers/engine.js'

interface Ended {
  readonly engine: RunEngine
  readonly cwd: string
  readonly copies: string
  readonly details: RunDetails
}

const SAID: Said = {
  calls: [
    { tool: 'write_file', args: { path: 'a', content: '1\n2\n3\n4\n5 of the run\n' } },
    { tool: 'write_file', args: { path: 'sub/b', content: 'b of the run\n' } },
    { tool: 'write_file', args: { path: 'c', content: 'new\n' } },
  ],
}

/** An isolated run that changed `a` and `sub/b`, and added `c`, or did what is given. */
async function isolatedRun(
  t: TestContext,
  request: JsonObject = {},
  said: Said = SAID,
): Promise<Ended> {
  const provider = testProvider((_, n) => (n === 0 ? said : { text: 'done' }))
  const folder = scratch(t)
  const copies = join(folder, 'copies')
  const cwd = join(folder, 'work')
  mkdirSync(join(cwd, 'sub'), { recursive: true })
  writeFileSync(join(cwd, 'a'), '1\n2\n3\n4\n5\n')
  writeFileSync(join(cwd, 'sub', 'b'), 'b\n')
  const { engine } = await openEngine(t, {
    cwd,
    providers: [provider],
    checkpoints: 'auto',
    workspaceFolder: copies,
  })
  const given = { goal: 'shell: grep -q run a', cwd, workspace: 'isolated', ...request }
  const { details } = await runToEnd(engine, given)
  assert.equal(details.status, 'achieved', JSON.stringify(details.error))
  return { engine, cwd, copies, details }
}

function read(...names: readonly string[]): string {
  return readFileSync(join(...names), 'utf8')
}

test('changes of an isolated run wait, are shown, and are applied once', async (t) => {
  const { engine, cwd, copies, details } = await isolatedRun(t)
  const { run_id } = details
  assert.equal(details.changes, 'pending')
  assert.equal(read(cwd, 'a'), '1\n2\n3\n4\n5\n')
  assert.equal(existsSync(join(copies, run_id)), true)
  const seen = await engine.workspaces.apply(run_id, { dry_run: true })
  assert.deepEqual(seen, {
    applied: ['a', 'c', 'sub/b'], merged: [], skipped: [], conflicts: [], checkpoint_id: null,
  })
  const applied = await engine.workspaces.apply(run_id, {})
  assert.deepEqual(applied.applied, ['a', 'c', 'sub/b'])
  assert.equal(read(cwd, 'a'), '1\n2\n3\n4\n5 of the run\n')
  assert.equal(read(cwd, 'c'), 'new\n')
  assert.equal((await engine.get(run_id)).changes, 'applied')
  assert.equal(existsSync(join(copies, run_id)), false)
  await assert.rejects(engine.workspaces.apply(run_id, {}), { problem: 'no_changes' })
  await assert.rejects(engine.workspaces.discard(run_id), { problem: 'no_changes' })
  const undone = await engine.workspaces.restore(run_id, {
    checkpoint_id: applied.checkpoint_id!,
  })
  assert.deepEqual(undone.paths, ['a', 'c', 'sub/b'])
  assert.equal(read(cwd, 'a'), '1\n2\n3\n4\n5\n')
  assert.equal(existsSync(join(cwd, 'c')), false)
  assert.equal((await engine.get(run_id)).changes, 'pending')
  await engine.workspaces.apply(run_id, {})
  assert.equal((await engine.get(run_id)).changes, 'applied')
})

test('lines that both sides changed are merged where they are apart', async (t) => {
  const { engine, cwd, details } = await isolatedRun(t)
  writeFileSync(join(cwd, 'a'), '1 of the user\n2\n3\n4\n5\n')
  const { applied, merged } = await engine.workspaces.apply(details.run_id, {})
  assert.deepEqual([applied, merged], [['a', 'c', 'sub/b'], ['a']])
  assert.equal(read(cwd, 'a'), '1 of the user\n2\n3\n4\n5 of the run\n')
  assert.equal((await engine.get(details.run_id)).changes, 'applied')
})

test('a conflict is named, and nothing is written unless it is forced', async (t) => {
  const { engine, cwd, details } = await isolatedRun(t)
  const { run_id } = details
  writeFileSync(join(cwd, 'sub', 'b'), 'b of the user\n')
  await assert.rejects(engine.workspaces.apply(run_id, {}), {
    code: 'ERR_AGENT_WORKSPACE_CHANGED', problem: 'conflict', paths: ['sub/b'],
  })
  assert.equal(existsSync(join(cwd, 'c')), false)
  const seen = await engine.workspaces.apply(run_id, { dry_run: true })
  assert.deepEqual(seen.conflicts, ['sub/b'])
  const some = await engine.workspaces.apply(run_id, { paths: ['a', 'c'] })
  assert.deepEqual(some.applied, ['a', 'c'])
  assert.equal((await engine.get(run_id)).changes, 'pending')
  const rest = await engine.workspaces.apply(run_id, { force: true })
  assert.deepEqual([rest.applied, rest.conflicts], [['sub/b'], ['sub/b']])
  assert.equal(read(cwd, 'sub', 'b'), 'b of the run\n')
  assert.equal((await engine.get(run_id)).changes, 'applied')
})

test('a run that is to apply its changes has done so when it has ended', async (t) => {
  const { engine, cwd, copies, details } = await isolatedRun(t, { apply: 'on_achieved' })
  assert.equal(details.changes, 'applied')
  assert.equal(read(cwd, 'c'), 'new\n')
  const events = await engine.events(details.run_id, { after: 0, limit: 1000 })
  const kinds = events.map(({ kind }) => kind)
  assert.deepEqual(kinds.slice(-6), [
    'checkpoint', 'files_changing', 'files_changed', 'checkpoint', 'changes_decided', 'run_end',
  ])
  await engine.close()
  assert.deepEqual(readdirSync(copies), [])
})

test('discarded changes are gone', async (t) => {
  const { engine, cwd, copies, details } = await isolatedRun(t)
  const { run_id } = details
  await engine.workspaces.discard(run_id)
  assert.equal((await engine.get(run_id)).changes, 'discarded')
  assert.equal(existsSync(join(copies, run_id)), false)
  assert.equal(existsSync(join(cwd, 'c')), false)
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
    const said = { calls: [{ tool: 'bash', args: { command } }] }
    const { engine, cwd, details } = await isolatedRun(t, { goal: 'shell: test -e moved' }, said)
    const { applied } = await engine.workspaces.apply(details.run_id, { paths: [asked] })
    assert.deepEqual(applied, ['a', 'moved'])
    assert.equal(existsSync(join(cwd, 'a')), false)
    assert.deepEqual([read(cwd, 'moved'), read(cwd, 'sub/b')], ['1\n2\n3\n4\n5\n', 'b\n'])
  }
})
