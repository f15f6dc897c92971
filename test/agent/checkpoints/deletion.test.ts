import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { MemoryStore, RunEngine, type JsonObject } from 'runwright/agent'
import { nextTurn } from '../../../lib/internal/next-turn.js'
import { runToEnd, scratch, testProvider } from '../../helpers/engine.js'

/** An engine whose runs write the file `a`. */
async function opened(t: TestContext) {
  const [cwd, store] = [scratch(t), new MemoryStore()]
  writeFileSync(join(cwd, 'a'), 'old\n')
  const provider = testProvider(({ messages }) =>
    messages.some(({ role }) => role === 'tool')
      ? { text: 'done' }
      : { calls: [{ tool: 'write_file', args: { path: 'a', content: 'new\n' } }] },
  )
  const engine = await RunEngine.open({
    store,
    roots: [cwd],
    sealedChecks: 'off',
    providers: [provider],
    defaultModel: 'test:m',
    workspaceFolder: scratch(t),
  })
  t.after(() => engine.close())
  const ran = async (request: JsonObject = {}): Promise<string> =>
    (await runToEnd(engine, { goal: 'shell: grep -q new a', cwd, ...request })).details.run_id
  return { cwd, store, engine, ran }
}

test('no change of files begins while a run is being deleted', async (t) => {
  const { cwd, store, engine, ran } = await opened(t)
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
    writeFileSync(join(cwd, 'a'), 'old\n')
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
    const content = readFileSync(join(cwd, 'a'), 'utf8')
    assert.equal(content, name === 'restore' ? 'new\n' : 'old\n', name)
  }
})

test('changes that the folder has already count as applied', async (t) => {
  const { cwd, engine, ran } = await opened(t)
  const run_id = await ran({ workspace: 'isolated' })
  writeFileSync(join(cwd, 'a'), 'new\n')
  const tried = await engine.workspaces.apply(run_id, { dry_run: true })
  assert.deepEqual([tried.applied, tried.checkpoint_id], [[], null])
  assert.equal((await engine.get(run_id)).changes, 'pending')
  const { applied, conflicts } = await engine.workspaces.apply(run_id, {})
  assert.deepEqual([applied, conflicts], [[], []])
  assert.equal((await engine.get(run_id)).changes, 'applied')
  await assert.rejects(engine.workspaces.apply(run_id, {}), { problem: 'no_changes' })
})
