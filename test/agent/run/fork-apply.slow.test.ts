/** Forks of changes that wait: what applying them brings into the folder that was meant. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { MemoryStore, type JsonObject, type RunEngine } from 'runwright/agent'
import { ObjectUse } from '../../../lib/agent/checkpoints/object-use.js'
import { Reclaimer } from '../../../lib/agent/checkpoints/reclaim.js'
import { follow, openEngine, runToEnd, scratch, testProvider } from '../../helpers/engine.js'

type Files = { readonly [path: string]: string }

interface World {
  readonly engine: RunEngine
  readonly store: MemoryStore
  readonly cwd: string
  readonly source: string
  /** Forks a run; the fork writes what its message says, as JSON. */
  fork(runId: string, files: Files, more?: JsonObject): Promise<string>
  apply(runId: string): Promise<readonly string[]>
  files(): Files
}

/** A run that made a.txt and b.txt of the files of a folder; its changes wait. */
async function waiting(t: TestContext): Promise<World> {
  const store = new MemoryStore()
  const { engine, cwd } = await openEngine(t, {
    store,
    checkpoints: 'auto',
    workspaceFolder: scratch(t),
    providers: [
      testProvider(({ messages }) => {
        const last = messages.at(-1)
        if (last?.role !== 'user') return {}
        const asked = messages.filter((one) => one.role === 'user').at(-1)
        const said = asked?.role === 'user' ? (/\{.*\}/.exec(asked.text)?.[0] ?? null) : null
        const files = said === null ? MADE : (JSON.parse(said) as Files)
        const calls = Object.entries(files).map(([path, content = '']) => ({
          tool: 'write_file', args: { path, content },
        }))
        return { calls }
      }),
    ],
  })
  writeFileSync(join(cwd, 'a.txt'), 'a0\n')
  const request = { goal: 'shell: test -f b.txt', workspace: 'isolated', max_iterations: 2 }
  const { details } = await runToEnd(engine, request)
  assert.deepEqual([details.status, details.changes], ['achieved', 'pending'])
  return {
    engine, store, cwd,
    source: details.run_id,
    fork: async (runId, files, more = {}) => {
      const request = { message: JSON.stringify(files), max_iterations: 2, ...more }
      const made = await engine.fork(runId, request)
      await follow(engine, made.details.run_id)
      assert.equal((await engine.get(made.details.run_id)).status, 'achieved')
      return made.details.run_id
    },
    apply: async (runId) => (await engine.workspaces.apply(runId, {})).applied,
    files: () =>
      Object.fromEntries(
        readdirSync(cwd).sort().map((name) => [name, readFileSync(join(cwd, name), 'utf8')]),
      ),
  }
}

const MADE: Files = { 'a.txt': 'a1\n', 'b.txt': 'b1\n' }

test('applying a fork brings what its source had not applied', async (t) => {
  const { engine, source, fork, apply, files } = await waiting(t)
  const again = await fork(source, { 'a.txt': 'a2\n' })
  const { changes } = await engine.workspaces.changes(again)
  assert.deepEqual(changes.map(({ path, status }) => [path, status]), [
    ['a.txt', 'modified'], ['b.txt', 'added'],
  ])
  const patch = Buffer.from(await engine.workspaces.patch(again, { raw: false })).toString()
  assert.match(patch, /^-a0\n\+a2$/m)
  assert.match(patch, /^\+b1$/m)
  assert.deepEqual(await apply(again), ['a.txt', 'b.txt'])
  assert.deepEqual(files(), { 'a.txt': 'a2\n', 'b.txt': 'b1\n' })
  assert.equal((await engine.get(again)).changes, 'applied')
})

test('a fork that changes nothing itself waits with the changes of its source', async (t) => {
  const { engine, source, fork, apply, files } = await waiting(t)
  const again = await fork(source, { 'a.txt': MADE['a.txt']! })
  assert.equal((await engine.get(again)).changes, 'pending')
  assert.deepEqual(await apply(again), ['a.txt', 'b.txt'])
  assert.deepEqual(files(), MADE)
})

test('a fork of a fork brings the changes of all three', async (t) => {
  const { source, fork, apply, files } = await waiting(t)
  const second = await fork(source, { 'c.txt': 'c2\n' })
  const third = await fork(second, { 'a.txt': 'a3\n' })
  assert.deepEqual(await apply(third), ['a.txt', 'b.txt', 'c.txt'])
  assert.deepEqual(files(), { 'a.txt': 'a3\n', 'b.txt': 'b1\n', 'c.txt': 'c2\n' })
})

test('what a source applied after its fork began is brought once', async (t) => {
  const { engine, cwd, source, fork, apply, files } = await waiting(t)
  // Without a copy of its own, the source keeps its changes.
  const again = await fork(source, { 'a.txt': 'a2\n', 'c.txt': 'c2\n' })
  await engine.workspaces.apply(source, { paths: ['a.txt'] })
  assert.deepEqual(await apply(again), ['a.txt', 'b.txt', 'c.txt'])
  assert.deepEqual(files(), { 'a.txt': 'a2\n', 'b.txt': 'b1\n', 'c.txt': 'c2\n' })
  writeFileSync(join(cwd, 'b.txt'), 'mine\n')
  await assert.rejects(engine.workspaces.apply(again, {}), { paths: ['b.txt'] })
})

test('a file that the user changed as well is a conflict, also of the source', async (t) => {
  const { engine, cwd, source, fork, files } = await waiting(t)
  const again = await fork(source, { 'c.txt': 'c2\n' })
  writeFileSync(join(cwd, 'a.txt'), 'mine\n')
  await assert.rejects(engine.workspaces.apply(again, {}), { paths: ['a.txt'] })
  assert.deepEqual(files(), { 'a.txt': 'mine\n' })
  assert.deepEqual((await engine.workspaces.apply(again, { paths: ['b.txt'] })).applied, ['b.txt'])
  assert.deepEqual(files(), { 'a.txt': 'mine\n', 'b.txt': 'b1\n' })
})

test('a fork is applied after its source was deleted', async (t) => {
  const { engine, store, source, fork, apply, files } = await waiting(t)
  const again = await fork(source, { 'a.txt': 'a2\n' })
  await engine.delete(source)
  const use = new ObjectUse(store.objects, false)
  await new Reclaimer({ store, use, onProblem: assert.ifError }).sweep()
  assert.deepEqual(await apply(again), ['a.txt', 'b.txt'])
  assert.deepEqual(files(), { 'a.txt': 'a2\n', 'b.txt': 'b1\n' })
})

test('a fork of changes that were applied brings its own', async (t) => {
  const { engine, source, fork, apply, files } = await waiting(t)
  await apply(source)
  const again = await fork(source, { 'c.txt': 'c2\n' })
  const { changes } = await engine.workspaces.changes(again)
  assert.deepEqual(changes.map(({ path }) => path), ['c.txt'])
  assert.deepEqual(await apply(again), ['c.txt'])
  assert.deepEqual(files(), { ...MADE, 'c.txt': 'c2\n' })
})

test('a fork of changes that were discarded brings them after all', async (t) => {
  const { engine, source, fork, apply, files } = await waiting(t)
  await engine.workspaces.discard(source)
  const again = await fork(source, { 'c.txt': 'c2\n' })
  assert.deepEqual(await apply(again), ['a.txt', 'b.txt', 'c.txt'])
  assert.deepEqual(files(), { ...MADE, 'c.txt': 'c2\n' })
})

test('a fork that applies by itself brings the changes of its source', async (t) => {
  const { engine, source, fork, files } = await waiting(t)
  const again = await fork(source, { 'c.txt': 'c2\n' }, { apply: 'on_achieved' })
  assert.equal((await engine.get(again)).changes, 'applied')
  assert.deepEqual(files(), { ...MADE, 'c.txt': 'c2\n' })
})

test('a fork in place has what its source brought, and nothing to apply', async (t) => {
  const { engine, source, fork, apply } = await waiting(t)
  await apply(source)
  const again = await fork(source, { 'c.txt': 'c2\n' }, { workspace: 'in_place' })
  assert.equal((await engine.get(again)).changes, null)
  const { changes } = await engine.workspaces.changes(again)
  assert.deepEqual(changes.map(({ path }) => path), ['c.txt'])
})
