/** What retention drops goes from the disk soon: copies of isolated runs, and contents. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { test, type TestContext } from 'node:test'
import { FileStore, MemoryStore, RunEngine, type RunStore } from 'runwright/agent'
import { blob, listAll } from '../../../lib/agent/testing/object-contract/suite.js'
import { openEngine, runToEnd, scratch, testProvider } from '../../helpers/engine.js'

/** Each run writes a content of its own, which its copy and the store of contents then have. */
async function open(
  t: TestContext,
  store: RunStore,
  workspaceFolder: string,
): Promise<{ readonly engine: RunEngine; readonly run: (more?: object) => Promise<string> }> {
  const { engine, cwd } = await openEngine(t, {
    store,
    workspaceFolder,
    checkpoints: 'auto',
    providers: [
      testProvider(({ run }) => {
        const args = { path: 'work.txt', content: run.run_id.repeat(100) }
        return run.turn > 0 ? {} : { calls: [{ tool: 'write_file', args }] }
      }),
    ],
  })
  if (!existsSync(join(cwd, 'a.txt'))) writeFileSync(join(cwd, 'a.txt'), 'a')
  const request = { goal: 'shell: test -f work.txt', workspace: 'isolated', max_iterations: 1 }
  const run = async (): Promise<string> => (await runToEnd(engine, request)).details.run_id
  return { engine, run }
}

/** Waits for what happens within seconds. */
async function soon(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await delay(20)
}

const STORES: Readonly<Record<string, (folder: string) => RunStore>> = {
  MemoryStore: () => new MemoryStore({ retain: { runs: 1 } }),
  FileStore: (folder) => new FileStore({ directory: folder, retain: { runs: 1 } }),
}

for (const [name, make] of Object.entries(STORES)) {
  test(`copies and contents of runs that a ${name} drops are gone soon`, async (t) => {
    const root = scratch(t)
    const copies = join(root, 'copies')
    mkdirSync(copies)
    const store = make(join(root, 'data'))
    const { run } = await open(t, store, copies)
    const dropped = await run()
    assert.ok(existsSync(join(copies, dropped)))
    const contents = await listAll(store.objects!)
    const kept = await run()
    await soon(() => !existsSync(join(copies, dropped)))
    assert.ok(existsSync(join(copies, kept)), 'changes that are pending are kept')
    await soon(async () => {
      const left = new Set(await listAll(store.objects!))
      // The folder itself is in both runs.
      return contents.filter((hash) => !left.has(hash)).length === 2 && left.size > 0
    })
    await soon(() => readdirSync(copies).every((entry) => !entry.startsWith('.old-')))
  })
}

test('what a fork needs of a run that was dropped stays', async (t) => {
  const root = scratch(t)
  const [copies, directory] = [join(root, 'copies'), join(root, 'data')]
  mkdirSync(copies)
  const { engine, run } = await open(t, new FileStore({ directory }), copies)
  const [other, source] = [await run(), await run()]
  const { details } = await engine.fork(source, {})
  for await (const _ of await engine.subscribe(details.run_id)) continue
  await engine.close()
  const store = new FileStore({ directory, retain: { runs: 1 } })
  await open(t, store, copies)
  await soon(() => [other, source].every((runId) => !existsSync(join(copies, runId))))
  assert.equal(await store.head(source), null)
  // Its own copy, and the contents with which it began.
  const content = source.repeat(100)
  const [name] = readdirSync(join(copies, details.run_id)).filter((one) => one.startsWith('run'))
  const file = join(copies, details.run_id, name!, 'work.txt')
  assert.equal(readFileSync(file, 'utf8'), content)
  const { hash } = blob(content)
  await soon(async () => (await store.objects.has([blob(other.repeat(100)).hash])).size === 0)
  assert.equal((await store.objects.has([hash])).size, 1)
})

test('what a crash leaves between a drop and the removal goes with the next start', async (t) => {
  const root = scratch(t)
  const [copies, directory] = [join(root, 'copies'), join(root, 'data')]
  mkdirSync(copies)
  const first = await open(t, new FileStore({ directory }), copies)
  const dropped = await first.run()
  const kept = await first.run()
  await first.engine.close()
  // It drops the run, and nothing else happens before its end.
  const store = new FileStore({ directory, retain: { runs: 1 } })
  await store.open()
  while ((await store.head(dropped)) !== null) await delay(1)
  await store.close()
  assert.ok(existsSync(join(copies, dropped)))
  await open(t, new FileStore({ directory }), copies)
  await soon(() => !existsSync(join(copies, dropped)))
  assert.ok(existsSync(join(copies, kept)))
})
