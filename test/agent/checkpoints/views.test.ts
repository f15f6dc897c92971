import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { JsonObject, RunEngine } from 'runwright/agent'
import { atGate, follow, write } from '../../helpers/engine.js'
import { World } from '../../helpers/world.js'

const TOKEN = `ghp_${'aB3dE5fG7h'.repeat(4).slice(0, 36)}`
const OTHER = { owner: { id: 'eve', tenant: 'other' } }
const NONE = '0'.repeat(64)

async function ended(
  t: TestContext,
  request: JsonObject = {},
): Promise<{ readonly world: World; readonly engine: RunEngine; readonly runId: string }> {
  const world = new World(t, {
    files: { a: 'old\n', b: 'kept\n' },
    turns: [write({ a: 'new\n', 'sub/deep/c': 'c\n' })],
  })
  const engine = await world.open()
  const { runId, details } = await world.run({ goal: 'shell: grep -q new a', ...request })
  assert.equal(details.status, 'achieved')
  return { world, engine, runId }
}

test('changes, files and patches of checkpoints and of the folder as it is', async (t) => {
  const { world, engine, runId } = await ended(t)
  const { workspaces } = engine
  const paths = async (from?: string, to?: string): Promise<readonly string[]> =>
    (await workspaces.changes(runId, { from, to })).changes.map(
      ({ status, path }) => `${status} ${path}`,
    )
  assert.deepEqual(await paths(), ['modified a', 'added sub/deep/c'])
  world.write({ b: 'of the user\n' })
  assert.deepEqual(await paths('newest', 'now'), ['modified b'])
  assert.deepEqual(await paths('now', 'start'), ['modified a', 'modified b', 'deleted sub/deep/c'])
  const patch = Buffer.from(await workspaces.patch(runId, { to: 'now', raw: false })).toString()
  assert.match(patch, /^\+of the user$/m)
  const names = async (at: string, path?: string): Promise<readonly string[]> =>
    (await workspaces.list(runId, { at, path })).entries.map(
      (entry) => `${entry.type} ${entry.path}`,
    )
  assert.deepEqual(await names('start'), ['file a', 'file b'])
  assert.deepEqual(await names('now'), ['file a', 'file b', 'folder sub'])
  assert.deepEqual(await names('newest', 'sub'), ['folder sub/deep'])
  const text = async (path: string, at: string): Promise<string> =>
    Buffer.from((await workspaces.read(runId, path, { at, raw: false })).content).toString()
  assert.deepEqual(
    [await text('a', 'start'), await text('a', 'newest'), await text('b', 'now')],
    ['old\n', 'new\n', 'of the user\n'],
  )
})

test('secrets are shown to nobody who may not read files', async (t) => {
  const { world, engine, runId } = await ended(t)
  world.write({ b: `key ${TOKEN}\n` })
  const { workspaces } = engine
  const { changes } = await workspaces.changes(runId, { from: 'newest', to: 'now' })
  assert.equal(changes[0]?.redacted, true)
  assert.doesNotMatch(JSON.stringify(changes), new RegExp(TOKEN))
  const range = { from: 'newest', to: 'now' }
  const refused = { problem: 'redacted', paths: ['b'] }
  await assert.rejects(workspaces.patch(runId, { ...range, raw: false }), refused)
  await assert.rejects(workspaces.read(runId, 'b', { at: 'now', raw: false }), refused)
  const raw = await workspaces.patch(runId, { ...range, raw: true })
  assert.match(Buffer.from(raw).toString(), /ghp_/)
})

test('names of files that hold a secret are shown without it', async (t) => {
  const { world, engine, runId } = await ended(t)
  world.write({ [`c-${TOKEN}`]: 'text\n' })
  const { workspaces } = engine
  const range = { from: 'newest', to: 'now' }
  const { changes } = await workspaces.changes(runId, range)
  const { entries } = await workspaces.list(runId, { at: 'now' })
  const refused = await workspaces.patch(runId, { ...range, raw: false }).catch((error) => error)
  for (const shown of [changes, entries, [refused.message, refused.paths]]) {
    assert.doesNotMatch(JSON.stringify(shown), new RegExp(TOKEN))
    assert.match(JSON.stringify(shown), /c-\[secret removed\]/)
  }
  assert.equal(refused.problem, 'redacted')
  assert.equal(changes[0]?.redacted, true)
})

test('a run of which nothing was kept says so', async (t) => {
  const { engine, runId } = await ended(t, { checkpoints: 'off' })
  const { note, changes } = await engine.workspaces.changes(runId)
  assert.deepEqual(changes, [])
  assert.match(note ?? '', /^nothing was kept/)
  assert.deepEqual(await engine.workspaces.checkpoints(runId), [])
  await assert.rejects(engine.workspaces.list(runId), { problem: 'off' })
  await assert.rejects(engine.workspaces.patch(runId, { raw: true }), { problem: 'off' })
})

test('what cannot be done is refused by name', async (t) => {
  const { world, engine, runId } = await ended(t)
  const { workspaces: w } = engine
  const unknown = { code: 'ERR_AGENT_UNKNOWN_RUN' }
  const invalid = { code: 'ERR_AGENT_INVALID_REQUEST' }
  const table: readonly (readonly [string, () => Promise<unknown>, object])[] = [
    ['foreign checkpoints', () => w.checkpoints(runId, OTHER), unknown],
    ['foreign changes', () => w.changes(runId, {}, OTHER), unknown],
    ['foreign patch', () => w.patch(runId, { raw: true }, OTHER), unknown],
    ['foreign list', () => w.list(runId, {}, OTHER), unknown],
    ['foreign read', () => w.read(runId, 'a', { raw: true }, OTHER), unknown],
    ['foreign restore', () => w.restore(runId, { checkpoint_id: NONE }, OTHER), unknown],
    ['foreign apply', () => w.apply(runId, {}, OTHER), unknown],
    ['foreign discard', () => w.discard(runId, OTHER), unknown],
    ['no such run', () => w.restore('none', { checkpoint_id: NONE }), unknown],
    ['no checkpoint named', () => w.restore(runId, {}), invalid],
    ['a field too many', () => w.restore(runId, { checkpoint_id: NONE, at: 1 }), invalid],
    ['an id that is none', () => w.restore(runId, { checkpoint_id: 'x' }), invalid],
    ['an unknown checkpoint', () => w.restore(runId, { checkpoint_id: NONE }), { problem: 'unknown' }],
    ['an unknown range', () => w.changes(runId, { from: NONE }), { problem: 'unknown' }],
    ['no such file', () => w.read(runId, 'none', { raw: true }), { code: 'ERR_AGENT_WORKSPACE' }],
    ['a path outside', () => w.read(runId, '../x', { raw: true }), { code: 'ERR_AGENT_WORKSPACE' }],
    ['no such folder', () => w.list(runId, { path: 'a/b' }), { code: 'ERR_AGENT_WORKSPACE' }],
    ['apply in place', () => w.apply(runId, {}), { problem: 'no_changes' }],
    ['discard in place', () => w.discard(runId), { problem: 'no_changes' }],
    ['a bad apply', () => w.apply(runId, { paths: [] }), invalid],
  ]
  for (const [name, call, error] of table) await assert.rejects(call, error, name)
  const again = { goal: 'shell: false', hitl_enabled: true, max_iterations: 2 }
  const other = await world.run(again, atGate)
  const [start] = await w.checkpoints(runId)
  const request = { checkpoint_id: start!.checkpoint_id, force: true }
  await assert.rejects(w.restore(runId, request), { code: 'ERR_AGENT_CWD_BUSY' })
  await engine.abort(other.runId)
  await follow(engine, other.runId)
  await w.restore(runId, request)
})
