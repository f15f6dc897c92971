/** Deleting a root deletes its tree; deleting a child is refused. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import {
  FileStore,
  MemoryStore,
  StoreError,
  type RunEngine,
  type RunQuery,
  type RunRecord,
  type RunStore,
} from 'runwright/agent'
import { sampleRun, type SampleRunOptions } from '../../../lib/agent/testing/sample-records.js'
import { follow, openEngine, scratch } from '../../helpers/engine.js'
import { journalFiles } from '../stores/store-files.js'
import { writeFiles } from '../../helpers/files.js'
import { openFamily, writes } from './children/support.js'

const T = 1_700_000_000

/** A root with two attempts, of which one has a delegate; a retry of the root; another tree. */
const RUNS: Readonly<Record<string, SampleRunOptions>> = {
  root: {},
  one: { createdAt: T + 1, rootRunId: 'root', parentRunId: 'root' },
  two: { createdAt: T + 1, rootRunId: 'root', parentRunId: 'root' },
  three: { createdAt: T + 2, rootRunId: 'root', parentRunId: 'two', role: 'delegate' },
  retry: { createdAt: T + 3, parentRunId: 'root' },
  other: { createdAt: T + 4 },
  child: { createdAt: T + 5, rootRunId: 'other', parentRunId: 'other' },
}
const TREE = ['three', 'two', 'one', 'root']
const OTHERS = ['child', 'other', 'retry']

/** The log of a run, which names those that it has started. */
function logOf(id: string, more: SampleRunOptions = {}): RunRecord[] {
  const records = sampleRun(id, { ...RUNS[id], ...more })
  const { iteration, ts } = records[1]!
  const fields = { v: 4, run_id: id, iteration, ts } as const
  const children = Object.keys(RUNS).filter((child) => {
    const { rootRunId, parentRunId } = RUNS[child]!
    return rootRunId !== undefined && parentRunId === id
  })
  const started = children.map((run_id, i): RunRecord => ({
    ...fields, seq: 3 + i, kind: 'attempt_started', payload: { attempt: 1, run_id, model_name: 'm' },
  }))
  const rest = records.slice(2)
    .map((record) => ({ ...record, seq: record.seq + started.length }) as RunRecord)
  return [...records.slice(0, 2), ...started, ...rest]
}

async function filled<S extends RunStore>(
  store: S,
  more: Readonly<Record<string, SampleRunOptions>> = {},
): Promise<S> {
  await store.open()
  for (const id of Object.keys(RUNS)) await store.append(id, logOf(id, more[id]))
  return store
}

async function opened(
  t: TestContext,
  more: Readonly<Record<string, SampleRunOptions>> = {},
): Promise<{ readonly engine: RunEngine; readonly store: MemoryStore }> {
  const store = await filled(new MemoryStore(), more)
  const { engine } = await openEngine(t, { store })
  return { engine, store }
}

async function idsIn(engine: RunEngine, query: Partial<RunQuery> = {}): Promise<string[]> {
  return (await engine.list(query)).runs.map(({ run_id }) => run_id)
}

test('deleting a root deletes its tree, with its held-out tests, and nothing else', async (t) => {
  const { engine, store } = await opened(t)
  for (const id of Object.keys(RUNS)) await store.holdouts.put(id, Buffer.from(id))
  await engine.delete('root')
  assert.deepEqual(await idsIn(engine), OTHERS)
  for (const id of TREE) {
    assert.equal(await store.holdouts.get(id), null)
    assert.deepEqual(await store.read(id, 0, 9), [])
  }
  for (const id of OTHERS) assert.notEqual(await store.holdouts.get(id), null)
})

test('attempts that ran go with their run, and not without it', async (t) => {
  const models = { good: writes('a', 'good\n'), bad: writes('a', 'bad\n') }
  const { engine, cwd } = await openFamily(t, models)
  writeFiles(cwd, { a: 'none\n' })
  const attempts = { count: 2, models: ['test:good', 'test:bad'], choose: 'smallest' }
  const request = { goal: 'shell: grep -q good a', attempts, max_iterations: 1 }
  const { details } = await engine.create(request)
  await follow(engine, details.run_id)
  const children = await idsIn(engine, { parent: details.run_id })
  assert.equal(children.length, 2)
  for (const id of children) await assert.rejects(engine.delete(id), { problem: 'child' })
  await engine.delete(details.run_id)
  assert.deepEqual(await idsIn(engine), [])
})

test('a child is not deleted by itself: the refusal names its root', async (t) => {
  const { engine } = await opened(t, { one: { status: 'awaiting_human' } })
  for (const id of ['one', 'three', 'child']) {
    const root = RUNS[id]!.rootRunId!
    const message = `run ${id} goes with the tree that it is in; delete its root ${root}`
    const refused = { code: 'ERR_AGENT_RUN_STATE', problem: 'child', message }
    await assert.rejects(engine.delete(id), refused)
  }
  assert.deepEqual(await idsIn(engine), [...OTHERS, ...TREE].sort(byCreation))
})

function byCreation(a: string, b: string): number {
  const [x, y] = [RUNS[a]!.createdAt ?? T, RUNS[b]!.createdAt ?? T]
  return y - x || (a < b ? 1 : -1)
}

test('a tree with a live run is not deleted, and the refusal names that run', async (t) => {
  const { engine } = await opened(t, { one: { status: 'awaiting_human' } })
  const message = 'run one of its tree is awaiting_human; abort it first'
  await assert.rejects(engine.delete('root'), { problem: 'live', message })
  assert.equal((await idsIn(engine)).length, 7)
  await engine.abort('one')
  await follow(engine, 'one')
  await engine.delete('root')
  assert.deepEqual(await idsIn(engine), OTHERS)
})

test('a child whose root is gone can be deleted', async (t) => {
  const { engine, store } = await opened(t)
  await store.delete('root')
  await engine.delete('two')
  assert.deepEqual(await idsIn(engine, { root: 'root' }), ['three', 'one'])
})

test('a tree that is deleted halfway keeps its root, and deleting it again ends it', async (t) => {
  for (let fails = 0; fails < TREE.length; fails++) {
    const { engine, store } = await opened(t)
    const remove = store.delete.bind(store)
    let calls = 0
    store.delete = async (runId) => {
      if (calls++ === fails) throw new StoreError('ERR_AGENT_STORE_UNAVAILABLE', 'not now')
      await remove(runId)
    }
    await assert.rejects(engine.delete('root'), { code: 'ERR_AGENT_STORE_UNAVAILABLE' })
    assert.deepEqual(await idsIn(engine, { root: 'root' }), TREE.slice(fails))
    await engine.delete('root')
    assert.deepEqual(await idsIn(engine), OTHERS)
  }
})

test('runs of other trees stay, also in a store that knows no trees', async (t) => {
  const { engine, store } = await opened(t)
  const list = store.list.bind(store)
  store.list = ({ root: _, ...query }) => list(query)
  await engine.delete('root')
  store.list = list
  assert.deepEqual(await idsIn(engine), OTHERS)
})

test('a tree is deleted by its tenant only', async (t) => {
  const blue = Object.fromEntries(TREE.map((id) => [id, { tenant: 'blue' }]))
  const { engine } = await opened(t, blue)
  const of = (tenant: string) => ({ owner: { id: 'ann', tenant } })
  for (const id of ['root', 'one'])
    await assert.rejects(engine.delete(id, of('red')), { code: 'ERR_AGENT_UNKNOWN_RUN' })
  await engine.delete('root', of('blue'))
  assert.deepEqual(await idsIn(engine), OTHERS)
})

/** Damages the line of a run in the journal of a store that is closed. */
function damage(directory: string, runId: string): void {
  for (const path of journalFiles(directory)) {
    const [before, rest = ''] = readFileSync(path, 'utf8').split(`"run":"${runId}"`)
    writeFileSync(path, `${before}"run":"${runId}"${rest.replace('npm', 'mpn')}`)
  }
}

for (const damaged of [['one'], ['three'], ['root'], ['one', 'two', 'three'], ['root', 'one']]) {
  test(`a tree is deleted whose logs of ${damaged.join(' and ')} are damaged`, async (t) => {
    const directory = scratch(t)
    await (await filled(new FileStore({ directory }))).close()
    for (const id of damaged) damage(directory, id)
    const store = new FileStore({ directory, onWarning: () => undefined })
    const { engine } = await openEngine(t, { store })
    assert.deepEqual(engine.damage().runs.map(({ runId }) => runId).sort(), damaged.toSorted())
    await engine.delete('root')
    // Nothing says any more in which trees the damaged ones were.
    const lost = damaged.includes('root') ? damaged.filter((id) => id !== 'root') : []
    if (damaged.length === 3) lost.push('three')
    assert.deepEqual((await idsIn(engine)).sort(), [...OTHERS, ...lost].sort())
    for (const id of lost) await engine.delete(id)
    assert.deepEqual(await idsIn(engine), OTHERS)
    assert.deepEqual(engine.damage().runs, [])
  })
}

test('a child is not deleted by itself when its root is damaged', async (t) => {
  const directory = scratch(t)
  await (await filled(new FileStore({ directory }))).close()
  damage(directory, 'root')
  const store = new FileStore({ directory, onWarning: () => undefined })
  const { engine } = await openEngine(t, { store })
  await assert.rejects(engine.delete('one'), { problem: 'child' })
})
