import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RunServiceClient, type RunTree } from 'runwright/server'
import type { RunSummary } from 'runwright/agent'
import { readTree } from '../../../lib/server/client/tree.js'
import { FakeEngine } from '../fake-engine.js'
import { openService, type Opened } from '../open-service.js'

/** A service with a run of two attempts, of which the second has two delegates. */
async function openTree(): Promise<{
  opened: Opened
  engine: FakeEngine
  runs: RunServiceClient
  ids: { root: string; first: string; second: string; left: string; right: string }
}> {
  const engine = new FakeEngine()
  const root = engine.add()
  const first = engine.addChild(root, 'attempt')
  const second = engine.addChild(root, 'attempt')
  const left = engine.addChild(second, 'delegate')
  const right = engine.addChild(second, 'delegate')
  // Neither another run nor a retry belongs to it.
  engine.set(engine.add(), { parent_run_id: root })
  const opened = await openService({ engine })
  const runs = RunServiceClient.inProcess(opened.service)
  return { opened, engine, runs, ids: { root, first, second, left, right } }
}

type Shape = string | readonly [string, ...Shape[]]

/** The ids of a tree. */
function shapeOf({ details: { run_id }, children }: RunTree): Shape {
  return children.length === 0 ? run_id : [run_id, ...children.map(shapeOf)]
}

test('the tree of a run is read from any run of it', async () => {
  const { opened, runs, ids } = await openTree()
  await using _ = opened
  const expected = [ids.root, ids.first, [ids.second, ids.left, ids.right]]
  for (const id of Object.values(ids)) {
    const tree = await runs.tree(id)
    assert.deepEqual(shapeOf(tree), expected)
    assert.deepEqual(tree.details, await runs.get(ids.root))
  }
})

test('attempts are in their order, whenever they were started', async () => {
  const { opened, engine, runs, ids } = await openTree()
  await using _ = opened
  const { attempts } = engine.runs.get(ids.root)!.details
  const [one, two] = attempts!.runs
  const swapped = [{ ...two!, attempt: 1 }, { ...one!, attempt: 2 }]
  engine.set(ids.root, { attempts: { ...attempts!, runs: swapped } })
  const tree = await runs.tree(ids.root)
  assert.deepEqual(tree.children.map(({ details }) => details.run_id), [ids.second, ids.first])
})

test('a run that is gone meanwhile is left out with those below it', async () => {
  const { opened, engine, runs, ids } = await openTree()
  await using _ = opened
  const { get } = engine
  let deleted = false
  const engineAsListed = Object.assign(engine, {
    get: ((id, caller) => {
      if (id === ids.second && !deleted) deleted = engine.runs.delete(id)
      return get(id, caller)
    }) satisfies FakeEngine['get'],
  })
  assert.deepEqual(shapeOf(await runs.tree(ids.first)), [ids.root, ids.first])
  assert.ok(deleted && engineAsListed.runs.has(ids.left))
})

test('of a list of runs without end, as many are read as a tree can have', async () => {
  const engine = new FakeEngine()
  const root = engine.add()
  const details = engine.runs.get(root)!.details
  let listed = 0
  const list = async function* (): AsyncGenerator<RunSummary> {
    for (; ; listed++) {
      if (listed > 10_000) throw new Error('it goes on for ever')
      yield { ...details, problem: null } as unknown as RunSummary
    }
  }
  const tree = await readTree(root, { get: () => Promise.resolve(details), list })
  assert.deepEqual(shapeOf(tree), root)
  assert.equal(listed, 1 + 16 + 16 ** 2 + 16 ** 3)
})

test('an unknown run has no tree', async () => {
  const { opened, runs } = await openTree()
  await using _ = opened
  await assert.rejects(runs.tree('01930000-0000-7000-8000-00000000ffff'), { status: 404 })
  await assert.rejects(runs.tree(''), TypeError)
})

test('at most sixteen children of a run are read, few at a time', async () => {
  const engine = new FakeEngine()
  const root = engine.add()
  for (let i = 0; i < 20; i++) engine.addChild(root, 'delegate')
  await using opened = await openService({ engine })
  const { get } = engine
  let now = 0
  let most = 0
  Object.assign(engine, {
    get: (async (id, caller) => {
      most = Math.max(most, (now += 1))
      // All calls that are on their way arrive before the first is answered.
      for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
      now -= 1
      return get(id, caller)
    }) satisfies FakeEngine['get'],
  })
  await using runs = new RunServiceClient({
    baseUrl: `http://127.0.0.1:${opened.port}`, trustEnv: false,
  })
  const { children } = await runs.tree(root)
  assert.equal(children.length, 16)
  assert.ok(most > 1 && most <= 8, `${most} at a time`)
})

test('a tree that is not wanted any more is not read on', async () => {
  const { opened, engine, runs, ids } = await openTree()
  await using _ = opened
  const controller = new AbortController()
  const { get } = engine
  let reads = 0
  Object.assign(engine, {
    get: ((id, caller) => {
      if ((reads += 1) === 2) controller.abort(new Error('enough'))
      return get(id, caller)
    }) satisfies FakeEngine['get'],
  })
  await assert.rejects(runs.tree(ids.root, { signal: controller.signal }), /enough/)
})
