/** Restores in a store that several processes share. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { PostgresStore, RunEngine, type EngineOptions } from 'runwright/agent'
import { nextTurn } from '../../../lib/internal/time.js'
import { follow, runToEnd, scratch, testProvider } from '../../helpers/engine.js'
import { Children, deaths, KILLS, type Ending } from '../../helpers/kill.js'
import type { OperationPlan } from './kill-children.js'
import { noPostgres, openDatabase } from './postgres.js'

const children = new Children<typeof import('./kill-children.js')>(
  new URL('kill-children.ts', import.meta.url),
)

const { connection, newSchema, pool } = await openDatabase()

const OLD = ['old a\n', 'old b\n']
const NEW = ['new a\n', 'new b\n']

describe('restores in a PostgresStore', { skip: noPostgres }, () => {
  test('any process restores any run, and finishes what one that died has begun', async (t) => {
    const { engines, cwd, schema } = await open(t, 2, 600_000)
    const [first, second] = engines as [RunEngine, RunEngine]
    const { details } = await runToEnd(first, { goal: 'shell: grep -q new a', cwd })
    assert.equal(details.status, 'achieved')
    const runId = details.run_id
    const [start] = await second.workspaces.checkpoints(runId)
    const wanted = { checkpoint_id: start!.checkpoint_id }
    const { checkpoint_id } = await second.workspaces.restore(runId, wanted)
    assert.deepEqual(read(cwd), OLD)
    const redo = () => first.workspaces.restore(runId, { checkpoint_id })
    await redo()
    assert.deepEqual(read(cwd), NEW)
    const plan = { schema, root: cwd, runId, operation: 'restore', request: wanted } as const
    let before = await finished(first, runId)
    for await (const { dieAt, signal } of deaths(operating(t, plan), KILLS / 5)) {
      const isBegun = (await finished(first, runId)) > before
      assert.ok(isBegun || signal !== null)
      assert.deepEqual(read(cwd), isBegun ? OLD : NEW, `killed at write ${dieAt}`)
      // What is done again changes nothing, and what was done before it can be taken back.
      const { paths } = await second.workspaces.restore(runId, wanted)
      assert.deepEqual(paths, isBegun ? [] : ['a', 'b'])
      await redo()
      assert.deepEqual(read(cwd), NEW)
      before = await finished(first, runId)
    }
    // The folder is free again.
    const next = await runToEnd(second, { goal: 'shell: grep -q new a', cwd })
    assert.equal(next.details.status, 'achieved')
  })

  test('any process applies the changes of any run, and finishes what one that died has begun', async (t) => {
    const { engines, cwd, schema } = await open(t, 2, 600_000)
    const [first, second] = engines as [RunEngine, RunEngine]
    const goal = 'shell: grep -q new a'
    const { details } = await runToEnd(first, { goal, cwd, workspace: 'isolated' })
    assert.deepEqual([details.status, read(cwd)], ['achieved', OLD])
    const runId = details.run_id
    const plan = { schema, root: cwd, runId, operation: 'apply', request: {} } as const
    let before = await finished(first, runId)
    for await (const { dieAt, signal } of deaths(operating(t, plan), KILLS / 5)) {
      const isBegun = (await finished(first, runId)) > before
      assert.ok(isBegun || signal !== null)
      assert.deepEqual(read(cwd), isBegun ? NEW : OLD, `killed at write ${dieAt}`)
      assert.equal((await second.get(runId)).changes, isBegun ? 'applied' : 'pending')
      if (!isBegun) continue
      await assert.rejects(second.workspaces.apply(runId, {}), { problem: 'no_changes' })
      const known = await second.workspaces.checkpoints(runId)
      const undo = known.filter(({ reason }) => reason === 'apply').at(-2)
      await second.workspaces.restore(runId, { checkpoint_id: undo!.checkpoint_id })
      assert.deepEqual(read(cwd), OLD)
      before = await finished(first, runId)
    }
  })

  for (const cwdPolicy of ['queue', 'allow'] as const) {
    test(`no run begins in a folder that is being restored: ${cwdPolicy}`, async (t) => {
      const { engines, cwd, stores } = await open(t, 2, 600_000, cwdPolicy)
      const [first, second] = engines as [RunEngine, RunEngine]
      const { details } = await runToEnd(first, { goal: 'shell: grep -q new a', cwd })
      const runId = details.run_id
      const [start] = await first.workspaces.checkpoints(runId)
      let reached: () => void = () => undefined
      const atIntent = new Promise<void>((resolve) => (reached = resolve))
      let goOn: () => void = () => undefined
      const held = new Promise<void>((resolve) => (goOn = resolve))
      const append = stores[0]!.append.bind(stores[0])
      stores[0]!.append = async (id, records) => {
        await append(id, records)
        if (!records.some(({ kind }) => kind === 'files_changing')) return
        reached()
        await held
      }
      const request = { checkpoint_id: start!.checkpoint_id }
      const restoring = first.workspaces.restore(runId, request)
      await atIntent
      // Which first waits half a minute for the restore.
      if (cwdPolicy === 'queue') await assert.rejects(second.delete(runId), { problem: 'live' })
      const sub = join(cwd, 'sub')
      const waiting = await second.create({ goal: 'shell: true', cwd: sub })
      await second.counts()
      // A run that has a copy does not wait.
      const copied = { goal: 'shell: grep -q new a', cwd, workspace: 'isolated' } as const
      const { details: isolated } = await runToEnd(second, copied)
      assert.equal(isolated.status, 'achieved')
      assert.equal((await second.get(waiting.details.run_id)).status, 'pending')
      goOn()
      await restoring
      await follow(second, waiting.details.run_id)
      assert.equal((await second.get(waiting.details.run_id)).status, 'achieved')
      assert.deepEqual(read(cwd), ['old a\n', 'old b\n'])
    })

    test(`a run that works keeps its folder from being restored: ${cwdPolicy}`, async (t) => {
      const { engines, cwd } = await open(t, 2, 600_000, cwdPolicy)
      const [first, second] = engines as [RunEngine, RunEngine]
      const { details } = await runToEnd(first, { goal: 'shell: grep -q new a', cwd })
      const [start] = await first.workspaces.checkpoints(details.run_id)
      const other = await first.create({ goal: 'shell: false', cwd, hitl_enabled: true })
      const otherId = other.details.run_id
      await follow(first, otherId, ({ kind }) => kind === 'human_check_required')
      const request = { checkpoint_id: start!.checkpoint_id, force: true }
      await assert.rejects(second.workspaces.restore(details.run_id, request), {
        code: 'ERR_AGENT_CWD_BUSY',
      })
      const [own] = await second.workspaces.checkpoints(otherId)
      const same = { checkpoint_id: own!.checkpoint_id }
      const { paths } = await second.workspaces.restore(otherId, same)
      assert.deepEqual(paths, [])
      await second.resume(otherId, { decision: 'abort' })
      await second.workspaces.restore(details.run_id, request)
      assert.deepEqual(read(cwd), ['old a\n', 'old b\n'])
    })
  }
})

/** How many operations on the files of a run are over; waits until none is open. */
async function finished(engine: RunEngine, runId: string): Promise<number> {
  for (;;) {
    const events = await engine.events(runId, { after: 0, limit: 1_000 })
    const count = (wanted: string): number => events.filter(({ kind }) => kind === wanted).length
    if (count('files_changing') === count('files_changed')) return count('files_changed')
    await nextTurn()
  }
}

/** Starts children that change files, each of which dies at a write or at none. */
function operating(
  t: TestContext,
  plan: Omit<OperationPlan, 'connection' | 'leaseMs' | 'workspaceFolder'>,
): (dieAt: number) => Promise<Ending> {
  return (dieAt) => {
    const place = { connection, leaseMs: 1_000, workspaceFolder: scratch(t) }
    return children.run('operate', { ...place, ...plan }, { dieAt })
  }
}

function read(cwd: string): readonly string[] {
  return ['a', 'b'].map((name) => readFileSync(join(cwd, name), 'utf8'))
}

async function open(
  t: TestContext,
  count: number,
  leaseMs: number,
  cwdPolicy: EngineOptions['cwdPolicy'] = 'queue',
): Promise<{
  readonly engines: readonly RunEngine[]
  readonly stores: readonly PostgresStore[]
  readonly cwd: string
  readonly schema: string
}> {
  const cwd = scratch(t)
  mkdirSync(join(cwd, 'sub'))
  for (const name of ['a', 'b']) writeFileSync(join(cwd, name), `old ${name}\n`)
  const schema = newSchema()
  const engines: RunEngine[] = []
  const stores: PostgresStore[] = []
  for (let i = 0; i < count; i++) {
    const provider = testProvider(({ messages }) =>
      messages.every(({ role }) => role !== 'tool')
        ? {
            calls: ['a', 'b'].map((name) => ({
              tool: 'write_file',
              args: { path: name, content: `new ${name}\n` },
            })),
          }
        : { text: 'done' },
    )
    const store = new PostgresStore({ pool, schema, leaseMs })
    const engine = await RunEngine.open({
      store,
      roots: [cwd],
      sealedChecks: 'off',
      workspaceFolder: scratch(t),
      cwdPolicy,
      providers: [provider],
      defaultModel: 'test:m',
    })
    t.after(() => engine.close())
    engines.push(engine)
    stores.push(store)
  }
  return { engines, stores, cwd, schema }
}
