/** Trees of runs over HTTP: lists of them, and what DELETE does. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { MemoryStore, RunEngine } from 'runwright/agent'
import { RunServiceClient } from 'runwright/server'
import { sampleRun } from '../../lib/agent/testing/sample-records.js'
import { follow, scratch } from '../helpers/engine.js'
import { writeFiles } from '../helpers/files.js'
import { openFamily, writes } from '../agent/run/children/support.js'
import { openService } from './open-service.js'

const uuid = (n: number): string => `01890000-0000-7000-8000-00000000000${n}`
const [ROOT, ONE, TWO, THREE, OTHER] = [1, 2, 3, 4, 5].map(uuid) as [
  string, string, string, string, string,
]

/** A service with a root, two attempts, a delegate of one of them, and another root. */
async function opened(t: TestContext): Promise<RunServiceClient> {
  const store = new MemoryStore()
  await store.open()
  const add = (id: string, createdAt: number, parentRunId?: string): Promise<void> => {
    const place = parentRunId === undefined ? {} : { parentRunId, rootRunId: ROOT }
    return store.append(id, sampleRun(id, { createdAt, ...place }))
  }
  await add(ROOT, 1)
  await add(ONE, 2, ROOT)
  await add(TWO, 3, ROOT)
  await add(THREE, 4, ONE)
  await add(OTHER, 5)
  const engine = await RunEngine.open({ store, roots: [scratch(t)] })
  t.after(() => engine.close())
  const opened = await openService({ engine })
  t.after(() => opened[Symbol.asyncDispose]())
  return RunServiceClient.inProcess(opened.service)
}

test('trees are listed by root, parent and role, page by page', async (t) => {
  await using runs = await opened(t)
  const ids = async (filter: Parameters<typeof runs.runs>[0]): Promise<string[]> => {
    const found: string[] = []
    for await (const { run_id } of runs.runs({ ...filter, limit: 1 })) found.push(run_id)
    return found
  }
  assert.deepEqual(await ids({}), [OTHER, THREE, TWO, ONE, ROOT])
  assert.deepEqual(await ids({ root: ROOT }), [THREE, TWO, ONE, ROOT])
  assert.deepEqual(await ids({ parent: ROOT }), [TWO, ONE])
  assert.deepEqual(await ids({ parent: ONE, root: ROOT }), [THREE])
  assert.deepEqual(await ids({ role: 'root' }), [OTHER, ROOT])
  assert.deepEqual(await ids({ root: 'nobody' }), [])
})

test('an empty id of a tree is refused, as it is never meant', async (t) => {
  await using runs = await opened(t)
  for (const name of ['root', 'parent'])
    await assert.rejects(runs.list({ [name]: '' }), { status: 422, message: new RegExp(name) })
})

test('DELETE removes the tree of a root, and refuses a child with the id of its root', async (t) => {
  await using runs = await opened(t)
  await assert.rejects(runs.delete(ONE), {
    status: 409,
    code: 'child_run',
    message: new RegExp(`delete its root ${ROOT}`),
  })
  await runs.delete(ROOT)
  assert.deepEqual((await runs.list()).runs.map(({ run_id }) => run_id), [OTHER])
})

test('another answer to a choice than the first is a 409, and an abort of an attempt a 422', async (t) => {
  const { engine, cwd } = await openFamily(t, { a: writes('answer.txt', 'good\n') })
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const opened = await openService({ engine })
  t.after(() => opened[Symbol.asyncDispose]())
  await using runs = RunServiceClient.inProcess(opened.service)
  const goal = 'shell: grep -q good answer.txt'
  const { run_id } = await runs.create({ goal, attempts: { count: 2, choose: 'human' } })
  await follow(engine, run_id, ({ kind }) => kind === 'human_check_required')
  await assert.rejects(runs.resume(run_id, { decision: 'abort', attempt: 2 }), {
    status: 422,
    message: /attempt/,
  })
  const first = { decision: 'approve', attempt: 2 } as const
  const { gate_id } = await runs.resume(run_id, first)
  await follow(engine, run_id)
  assert.equal((await runs.resume(run_id, { ...first, gate_id })).gate_id, gate_id)
  for (const attempt of [1, 14, undefined]) {
    const named = attempt === undefined ? {} : { attempt }
    const other = { decision: 'approve', gate_id, ...named } as const
    await assert.rejects(runs.resume(run_id, other), { status: 409, code: 'already_decided' })
  }
})
