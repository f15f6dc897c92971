import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { JsonObject } from 'runwright/agent'
import { nextTurn } from '../../../lib/internal/time.js'
import { write } from '../../helpers/engine.js'
import { World } from '../../helpers/world.js'

/** A world whose runs write the file `a`. */
async function opened(t: TestContext) {
  const world = new World(t, {
    files: { a: 'old\n' },
    turns: ({ messages }) =>
      messages.some(({ role }) => role === 'tool') ? { text: 'done' } : write({ a: 'new\n' }),
  })
  const engine = await world.open()
  const ran = async (request: JsonObject = {}): Promise<string> =>
    (await world.run({ goal: 'shell: grep -q new a', ...request })).runId
  return { world, engine, ran }
}

test('no change of files begins while a run is being deleted', async (t) => {
  const { world, engine, ran } = await opened(t)
  const { store } = world
  const start = async (runId: string): Promise<string> =>
    (await engine.workspaces.checkpoints(runId))[0]!.checkpoint_id
  const calls = {
    restore: async (runId: string) => {
      const checkpoint_id = await start(runId)
      return () => engine.workspaces.restore(runId, { checkpoint_id, force: true })
    },
    apply: (runId: string) => () => engine.workspaces.apply(runId, {}),
    discard: (runId: string) => () => engine.workspaces.discard(runId),
  }
  for (const [name, prepare] of Object.entries(calls)) {
    world.write({ a: 'old\n' })
    const run_id = await ran(name === 'restore' ? {} : { workspace: 'isolated' })
    const call = await prepare(run_id)
    const remove = store.delete.bind(store)
    let late: Promise<unknown> | undefined
    store.delete = async (runId) => {
      store.delete = remove
      late = call().catch((error: unknown) => error)
      for (let turn = 0; turn < 50; turn++) await nextTurn()
      await remove(runId)
    }
    await engine.delete(run_id)
    assert.equal(await store.head(run_id), null, name)
    const { code } = (await late) as { code: string }
    assert.match(code, /^ERR_AGENT_(?:UNKNOWN_RUN|CHECKPOINT)$/, name)
    assert.equal(world.read('a'), name === 'restore' ? 'new\n' : 'old\n', name)
  }
})

test('changes that the folder has already count as applied', async (t) => {
  const { world, engine, ran } = await opened(t)
  const run_id = await ran({ workspace: 'isolated' })
  world.write({ a: 'new\n' })
  const tried = await engine.workspaces.apply(run_id, { dry_run: true })
  assert.deepEqual([tried.applied, tried.checkpoint_id], [[], null])
  assert.equal((await engine.get(run_id)).changes, 'pending')
  const { applied, conflicts } = await engine.workspaces.apply(run_id, {})
  assert.deepEqual([applied, conflicts], [[], []])
  assert.equal((await engine.get(run_id)).changes, 'applied')
  await assert.rejects(engine.workspaces.apply(run_id, {}), { problem: 'no_changes' })
})
