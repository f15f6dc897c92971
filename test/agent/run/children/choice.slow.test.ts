/** What an answer to a gate of kind `choice` means: the first counts, and no other is confirmed. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { RunStateError, type ResumeAnswer, type RunEngine, type RunHead } from 'runwright/agent'
import { gateFor } from '../../../../lib/agent/request/gate-answer.js'
import { follow, payloads } from '../../../helpers/engine.js'
import { filesIn, writeFiles } from '../../../helpers/files.js'
import { openFamily, writes } from './support.js'

/** A run that waits for a human who chooses among two attempts. */
async function atChoice(t: TestContext): Promise<{
  readonly engine: RunEngine
  readonly cwd: string
  readonly runId: string
  readonly gateId: string
}> {
  const { engine, cwd } = await openFamily(t, {
    a: writes('answer.txt', 'good a\n'),
    b: writes('answer.txt', 'good b\n'),
  })
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const attempts = { count: 2, models: ['test:a', 'test:b'], choose: 'human' }
  const goal = 'shell: grep -q good answer.txt'
  const { details } = await engine.create({ goal, attempts, max_iterations: 1 })
  const runId = details.run_id
  await follow(engine, runId, ({ kind }) => kind === 'human_check_required')
  return { engine, cwd, runId, gateId: (await engine.get(runId)).gate?.gate_id ?? '' }
}

const decided = (error: unknown): boolean =>
  error instanceof RunStateError && error.problem === 'already_decided'

test('the first answer to a choice counts; the same again is harmless, others are refused', async (t) => {
  const { engine, cwd, runId, gateId } = await atChoice(t)
  await engine.resume(runId, { decision: 'approve', attempt: 1 })
  const check = async (): Promise<void> => {
    for (const gate of [{}, { gate_id: gateId }]) {
      const same = await engine.resume(runId, { decision: 'approve', attempt: 1, ...gate })
      assert.equal(same.gate_id, gateId)
      const others: ResumeAnswer[] = [
        { decision: 'approve', attempt: 2 },
        { decision: 'approve', attempt: 14 },
        { decision: 'approve' },
        { decision: 'abort' },
        { decision: 'abort', attempt: 1 },
      ]
      for (const other of others)
        await assert.rejects(engine.resume(runId, { ...other, ...gate }), decided)
    }
  }
  await check()
  const events = await follow(engine, runId)
  await check()
  assert.deepEqual(filesIn(cwd), { 'answer.txt': 'good a\n' })
  assert.equal(payloads(events, 'human_check_response').length, 1)
})

test('of two answers at the same time that choose different attempts, one is refused', async (t) => {
  const { engine, runId, gateId } = await atChoice(t)
  const results = await Promise.allSettled(
    [2, 1].map((attempt) =>
      engine.resume(runId, { decision: 'approve', attempt, gate_id: gateId }),
    ),
  )
  assert.deepEqual(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  const refused = results.find((one) => one.status === 'rejected')
  assert.match(String(refused?.reason), /was already answered with approve of attempt [12]/)
  await follow(engine, runId)
})

test('an answer that aborts names no attempt', async (t) => {
  const { engine, runId } = await atChoice(t)
  const answer = { decision: 'abort', attempt: 2 } as const
  await assert.rejects(engine.resume(runId, answer), /attempt: must be left out when the decision/)
  await engine.resume(runId, { decision: 'abort' })
  assert.equal((await engine.resume(runId, { decision: 'abort' })).status, 'aborted')
  await assert.rejects(engine.resume(runId, { decision: 'approve', attempt: 1 }), decided)
})

test('the head of an earlier version tells by the chosen attempt which answer was given', async (t) => {
  const { engine, runId, gateId } = await atChoice(t)
  await engine.resume(runId, { decision: 'approve', attempt: 2 })
  await follow(engine, runId)
  const details = await engine.get(runId)
  const lastDecision = { gate_id: gateId, decision: 'approve' }
  const head = { details, lastDecision } as RunHead
  const tools = new Map()
  assert.equal(gateFor(head, { decision: 'approve', attempt: 2 }, tools), null)
  assert.throws(() => gateFor(head, { decision: 'approve', attempt: 1 }, tools), decided)
})
