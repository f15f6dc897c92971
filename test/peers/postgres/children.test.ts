/** Trees of runs in a store that several processes share: any of them drives any run. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { PostgresStore, type JsonObject, type RunEngine } from 'runwright/agent'
import { untilAborted } from '../../helpers/abort.js'
import { filesIn, writeFiles } from '../../helpers/files.js'
import { openFamily, writes, type Brain } from '../../agent/run/children/support.js'
import { follow, payloads, scratch } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { noPostgres, openDatabase } from './postgres.js'

const { newSchema, pool } = await openDatabase()

/** Goals `write FILE WORD` write that file; others are delegated in three parts. */
const boss: Brain = (request, turn) => {
  const [first] = request.messages
  const part = /Goal: write (\S+) (\S+)/.exec(first?.role === 'user' ? first.text : '')
  if (part !== null) return writes(`${part[1]}.txt`, `${part[2]}\n`)(request, turn)
  if (turn > 0) return { text: 'done' }
  const calls = ['a', 'b', 'c'].map((name) => ({
    tool: 'delegate',
    args: { goal: `write ${name} ${name}`, check: `grep -q ${name} ${name}.txt` },
  }))
  return { calls, tokens: [1, 1] }
}

/** Two engines that share a store and a folder. */
async function openTwo(
  t: TestContext,
  models: Readonly<Record<string, Brain>>,
  maxRunning?: number,
): Promise<{ readonly engines: readonly [RunEngine, RunEngine]; readonly cwd: string }> {
  const schema = newSchema()
  const cwd = scratch(t)
  const open = async (): Promise<RunEngine> => {
    const store = new PostgresStore({ pool, schema, maxRunning, leaseMs: 600_000 })
    return (await openFamily(t, models, { store, cwd, maxConcurrentRuns: 1 })).engine
  }
  return { engines: [await open(), await open()], cwd }
}

async function runTree(
  [one, other]: readonly [RunEngine, RunEngine],
  request: JsonObject,
): Promise<Awaited<ReturnType<typeof follow>>> {
  const { details } = await one.create(request)
  const events = await follow(other, details.run_id)
  assertInvariants(events)
  const { runs } = await one.list()
  for (const { run_id, status } of runs) assert.match(status, /achieved|failed|aborted/, run_id)
  return events
}

describe('trees of runs in a PostgresStore', { skip: noPostgres }, () => {
  for (const choose of ['first', 'smallest'] as const) {
    test(`attempts run on two processes with one slot each: ${choose}`, async (t) => {
      const { engines, cwd } = await openTwo(t, {
        long: writes('answer.txt', 'good\nlong\n'),
        bad: writes('answer.txt', 'bad\n'),
        short: writes('answer.txt', 'good\n'),
      })
      writeFiles(cwd, { 'answer.txt': 'none\n' })
      const events = await runTree(engines, {
        goal: 'shell: grep -q good answer.txt',
        attempts: { count: 3, models: ['test:long', 'test:bad', 'test:short'], choose },
        max_iterations: 1,
      })
      const [chosen] = payloads(events, 'attempt_chosen')
      if (choose === 'smallest') assert.equal(chosen?.attempt, 3)
      const expected = chosen?.attempt === 3 ? 'good\n' : 'good\nlong\n'
      assert.deepEqual(filesIn(cwd), { 'answer.txt': expected })
      assert.equal(payloads(events, 'attempt_ended').length, 3)
    })
  }

  const bounds = [['two processes with one each', undefined], ['one of all processes', 1]] as const
  for (const [slots, maxRunning] of bounds) test(`waiting parents hold no slot: ${slots}`, (t) =>
    assertNoDeadlock(t, maxRunning))

  async function assertNoDeadlock(t: TestContext, maxRunning?: number): Promise<void> {
    const { engines, cwd } = await openTwo(t, { boss }, maxRunning)
    writeFiles(cwd, { 'start.txt': 'start\n' })
    const runs = await Promise.all(
      [1, 2, 3].map(() =>
        engines[0].create({
          goal: 'shell: grep -q a a.txt && grep -q b b.txt && grep -q c c.txt',
          workspace: 'isolated',
          delegation: { children: 3 },
        }),
      ),
    )
    for (const { details } of runs) {
      const events = await follow(engines[1], details.run_id)
      assertInvariants(events)
      const [end] = payloads(events, 'run_end')
      assert.equal(end?.status, 'achieved', JSON.stringify(events))
      assert.equal(payloads(events, 'delegate_ended').length, 3)
    }
    assert.deepEqual(filesIn(cwd), { 'start.txt': 'start\n' })
  }

  test('another answer to a choice than the first is refused, wherever it is given', async (t) => {
    const { engines, cwd } = await openTwo(t, { good: writes('answer.txt', 'good\n') })
    writeFiles(cwd, { 'answer.txt': 'none\n' })
    const goal = 'shell: grep -q good answer.txt'
    const attempts = { count: 2, choose: 'human' }
    const { details } = await engines[0].create({ goal, attempts, max_iterations: 1 })
    const runId = details.run_id
    await follow(engines[1], runId, ({ kind }) => kind === 'human_check_required')
    const answers = await Promise.allSettled(
      engines.map((engine, i) => engine.resume(runId, { decision: 'approve', attempt: i + 1 })),
    )
    assert.deepEqual(answers.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    await follow(engines[1], runId)
    const { chosen } = (await engines[0].get(runId)).attempts ?? {}
    assert.equal(chosen, answers.findIndex(({ status }) => status === 'fulfilled') + 1)
    for (const engine of engines) {
      for (const attempt of [1, 2]) {
        const again = engine.resume(runId, { decision: 'approve', attempt })
        if (attempt === chosen) await again
        else await assert.rejects(again, { problem: 'already_decided' })
      }
    }
  })

  test('an abort goes down the tree, wherever its runs are', async (t) => {
    const { engines, cwd } = await openTwo(t, {
      slow: ({ signal }) => untilAborted(signal),
    })
    writeFiles(cwd, { 'answer.txt': 'none\n' })
    const attempts = { count: 2 }
    const { details } = await engines[0].create({ goal: 'shell: false', attempts })
    let working = 0
    while (working === 0) {
      const { runs } = await engines[0].list({ status: ['running'] })
      working = runs.filter(({ role }) => role === 'attempt').length
      const { ended_at, error } = await engines[0].get(details.run_id)
      assert.equal(ended_at, null, JSON.stringify(error))
      await new Promise((resolve) => setImmediate(resolve))
    }
    await engines[1].abort(details.run_id)
    const events = await follow(engines[1], details.run_id)
    assert.equal(payloads(events, 'run_end')[0]?.status, 'aborted')
    const { runs } = await engines[0].list()
    assert.deepEqual(runs.map(({ status }) => status), ['aborted', 'aborted', 'aborted'])
  })
})
