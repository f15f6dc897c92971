/** A folder that a run of one tenant has used is closed to others; `roots` for each principal. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  FileStore,
  ForeignFolderError,
  MemoryStore,
  type EngineOptions,
  type JsonObject,
  type RunEngine,
  type RunOwner,
} from 'runwright/agent'
import { follow, openEngine, scratch, testProvider } from '../../helpers/engine.js'

const BUNDLE = new URL('../../fixtures/versions/agent-1.mjs', import.meta.url)
const ann = { owner: { id: 'ann', tenant: 'a' } }
const bob = { owner: { id: 'bob', tenant: 'b' } }
const nobody = { owner: { id: null, tenant: null } }
const FOREIGN = {
  name: 'ForeignFolderError',
  code: 'ERR_AGENT_FOREIGN_FOLDER',
  message: 'this directory is not available to you; use another one',
}

function folders(t: TestContext): string {
  const root = scratch(t)
  for (const name of ['a/inner', 'ab', 'b']) mkdirSync(join(root, name), { recursive: true })
  writeFileSync(join(root, 'a', 'file'), 'x')
  symlinkSync(join(root, 'a'), join(root, 'b', 'link'))
  return root
}

async function start(
  engine: RunEngine,
  cwd: string,
  caller: { readonly owner: RunOwner },
  more: JsonObject = {},
): Promise<string> {
  const request = { goal: 'shell: false', max_iterations: 1, cwd, ...more }
  return (await engine.create(request, { caller })).details.run_id
}

const model: Partial<EngineOptions> = {
  providers: [testProvider(() => ({}))],
  defaultModel: 'test:m',
}

for (const cwdPolicy of ['queue', 'reject', 'allow'] as const) {
  test(`the folder of another tenant's run is refused, and what is in it: ${cwdPolicy}`, async (t) => {
    const root = folders(t)
    const { engine } = await openEngine(t, { cwd: root, cwdPolicy, ...model })
    const runId = await start(engine, join(root, 'a'), ann)
    await follow(engine, runId)
    const refused = ['', 'a', 'a/inner', 'b/link', 'a/file', 'a/none', 'a/none/deeper', 'a/inner/no']
    for (const name of refused) {
      for (const goal of ['shell: false', 'npm-test', 'no such goal']) {
        await assert.rejects(start(engine, join(root, name), bob, { goal }), FOREIGN, name)
        await assert.rejects(start(engine, join(root, name), nobody, { goal }), FOREIGN, name)
      }
    }
    await assert.rejects(engine.create({ goal: 'shell: false' }, { caller: bob }), FOREIGN)
    for (const name of ['ab', 'b']) await follow(engine, await start(engine, join(root, name), bob))
    await follow(engine, await start(engine, join(root, 'a'), ann))
    // It stays so until no run of that tenant is stored.
    const { runs } = await engine.list({ tenant: 'a' })
    for (const { run_id } of runs) await engine.delete(run_id, ann)
    await start(engine, join(root, 'a', 'inner'), bob)
    await assert.rejects(start(engine, join(root, 'a'), ann), FOREIGN)
  })
}

test('of two tenants that begin in overlapping folders at once, one is refused', async (t) => {
  const root = folders(t)
  const { engine } = await openEngine(t, { cwd: root, ...model })
  const outcomes = await Promise.allSettled([
    start(engine, join(root, 'a', 'inner'), ann),
    start(engine, join(root, 'a'), bob),
    start(engine, join(root, 'a', 'inner'), ann),
  ])
  const refused = outcomes.map((outcome) => outcome.status === 'rejected')
  for (const outcome of outcomes)
    if (outcome.status === 'rejected') assert.ok(outcome.reason instanceof ForeignFolderError)
  // Whichever came first: its folder has no run of the other.
  assert.notEqual(refused[0], refused[1])
  assert.equal(refused[0], refused[2])
})

test('a restart knows whose folders they are', async (t) => {
  const [root, directory] = [folders(t), scratch(t)]
  for (const times of [1, 2]) {
    const store = new FileStore({ directory })
    const { engine } = await openEngine(t, { cwd: root, store, ...model })
    if (times === 1) await follow(engine, await start(engine, join(root, 'a'), ann))
    await assert.rejects(start(engine, root, bob), FOREIGN)
    await start(engine, join(root, 'b'), bob)
    await engine.close()
  }
})

test('the folders of runs are known from an index that an earlier version wrote', async (t) => {
  const [root, directory] = [folders(t), scratch(t)]
  const { FileStore: Earlier } = (await import(BUNDLE.href)) as typeof import('runwright/agent')
  const old = new Earlier({ directory, segmentBytes: 4096 })
  const earlier = await openEngine(t, { cwd: root, store: old, ...model })
  for (const [name, caller] of [['a', ann], ['b', bob]] as const)
    await follow(earlier.engine, await start(earlier.engine, join(root, name), caller))
  await earlier.engine.close()
  assert.ok(!readFileSync(join(directory, 'checkpoint'), 'utf8').includes(`"${root}/a"]`))
  for (let times = 0; times < 2; times++) {
    const store = new FileStore({ directory })
    const { engine } = await openEngine(t, { cwd: root, store, ...model })
    await assert.rejects(start(engine, join(root, 'a'), bob), FOREIGN)
    await assert.rejects(start(engine, join(root, 'b'), ann), FOREIGN)
    await engine.close()
  }
})

test('a store without an index of folders is searched', async (t) => {
  const root = folders(t)
  const store = Object.assign(new MemoryStore(), { hasForeignRun: undefined })
  const { engine } = await openEngine(t, { cwd: root, store: store as MemoryStore, ...model })
  await start(engine, join(root, 'a'), ann)
  for (const name of ['', 'a', 'a/inner'])
    await assert.rejects(start(engine, join(root, name), bob), FOREIGN)
  await start(engine, join(root, 'ab'), bob)
})

test('a damaged run is unknown to other tenants', async (t) => {
  const root = folders(t)
  const directory = scratch(t)
  const store = new FileStore({ directory, onWarning: () => undefined })
  const { engine } = await openEngine(t, { cwd: root, store, ...model })
  const runId = await start(engine, join(root, 'a'), ann)
  await follow(engine, runId)
  const head = store.head.bind(store)
  store.head = async (id) => {
    const found = await head(id)
    if (found === null) return null
    const { StoreError } = await import('runwright/agent')
    throw new StoreError('ERR_AGENT_STORE_CORRUPT', 'damaged')
  }
  await assert.rejects(engine.get(runId, ann), { code: 'ERR_AGENT_STORE_CORRUPT' })
  await assert.rejects(engine.get(runId), { code: 'ERR_AGENT_STORE_CORRUPT' })
  await assert.rejects(engine.get(runId, bob), { code: 'ERR_AGENT_UNKNOWN_RUN' })
})

test('roots can depend on the principal: at create, for the default folder, and in a retry', async (t) => {
  const root = folders(t)
  const asked: (RunOwner | null)[] = []
  let ofBob = 'b'
  const roots = (principal: RunOwner | null): string[] => {
    asked.push(principal)
    return [join(root, principal === null ? 'ab' : principal.tenant === 'a' ? 'a' : ofBob)]
  }
  const { engine } = await openEngine(t, { roots, ...model })
  const request = { goal: 'shell: false', max_iterations: 1 }
  for (const [caller, name] of [[ann, 'a'], [bob, 'b'], [undefined, 'ab']] as const) {
    const { details } = await engine.create(request, { caller })
    assert.equal(details.cwd, join(root, name))
    assert.equal((await follow(engine, details.run_id)).at(-1)?.kind, 'run_end')
    assert.equal((await engine.get(details.run_id)).end_reason, 'max_iterations')
    assert.deepEqual(asked.splice(0), [caller?.owner ?? null, caller?.owner ?? null])
  }
  await assert.rejects(start(engine, join(root, 'a'), bob), {
    code: 'ERR_AGENT_INVALID_REQUEST',
    message: /outside the roots/,
  })
  const { runs } = await engine.list({ tenant: 'b' })
  await engine.retry(runs[0]!.run_id, bob)
  ofBob = 'ab'
  await assert.rejects(engine.retry(runs[0]!.run_id, bob), { message: /outside the roots/ })
})

const WRONG: readonly (readonly [string, () => unknown, RegExp])[] = [
  ['nothing', () => undefined, /must return a list/],
  ['a text', () => '/', /must return a list/],
  ['no folder', () => [], /at least one folder/],
  ['something else', () => [1], /must return absolute paths, got 1/],
  ['a relative path', () => ['.'], /must return absolute paths, got "\."/],
  ['an empty path', () => [''], /must return absolute paths/],
  ['a missing folder', () => ['/no/such/folder'], /which does not exist/],
  ['a NUL', () => ['/\0'], /which does not exist/],
  ['a file', () => [import.meta.filename ?? process.execPath], /which is not a folder/],
  ['a late mistake', () => Promise.resolve(['/', 'x']), /must return absolute paths/],
  ['an error', () => { throw new TypeError('it broke') }, /it broke/],
  ['a rejection', () => Promise.reject(new TypeError('it broke')), /it broke/],
]

for (const [what, roots, message] of WRONG) {
  test(`roots that return ${what} start nothing`, async (t) => {
    const { engine } = await openEngine(t, { roots: roots as () => string[] })
    const cwd = scratch(t)
    for (const request of [{ goal: 'shell: true' }, { goal: 'shell: true', cwd }])
      await assert.rejects(engine.create(request), { name: 'TypeError', message })
    assert.deepEqual((await engine.list()).runs, [])
  })
}

test('a run whose roots fail when it begins to work ends without the error of the host', async (t) => {
  const cwd = scratch(t)
  let calls = 0
  const roots = (): string[] => {
    if (++calls > 1) throw new Error('postgres://secret')
    return [cwd]
  }
  const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
  const { engine } = await openEngine(t, { roots, ...model })
  const { details } = await engine.create({ goal: 'shell: false' })
  const events = await follow(engine, details.run_id)
  assert.equal(events.at(-1)?.kind, 'run_end')
  assert.doesNotMatch(JSON.stringify(events), /secret/)
  const { error } = await engine.get(details.run_id)
  assert.match(error!.message, /folders that this run may work in/)
  assert.match((await warned).message, /secret/)
})
