/** Runs while the time of day is set: what takes time takes as long as before. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import {
  defineTool, MemoryStore, type AgentEvent, type RunDetails, type RunEngine, type RunRecord,
} from 'runwright/agent'
import { follow, keepOpen, openEngine, runToEnd, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { HOUR, ShiftedClock } from '../../helpers/shifted-clock.js'

const GATED = { goal: 'shell: false', hitl_enabled: true, max_iterations: 2 }

/** A store that survives a close, and calls `onGate` while a gate is being stored. */
async function gateStore(onGate: () => void = () => undefined): Promise<MemoryStore> {
  class GateStore extends MemoryStore {
    override async append(runId: string, records: readonly RunRecord[]): Promise<void> {
      if (records.some(({ kind }) => kind === 'human_check_required')) onGate()
      await super.append(runId, records)
    }
  }
  return keepOpen(new GateStore())
}

const isGate = ({ kind }: AgentEvent): boolean => kind === 'human_check_required'

for (const jump of [5 * HOUR, -5 * HOUR]) {
  const set = `with the time of day set by ${jump / HOUR} h`

  test(`the time budget of a run is what it was, ${set}`, async (t) => {
    const clock = new ShiftedClock()
    const steps = [
      () => (clock.shiftMs = jump),
      () => clock.advance(59_000),
      () => (clock.shiftMs = 0),
      () => clock.advance(999),
      () => clock.advance(1),
    ]
    let calls = 0
    const provider = testProvider((_, n) => {
      calls += 1
      steps[n]!()
      return {}
    })
    const { engine } = await openEngine(t, { providers: [provider], clock, detectStuck: false })
    const request = { goal: 'shell: false', max_seconds: 60 }
    const { details, events } = await runToEnd(engine, request)
    assertInvariants(events)
    assert.deepEqual([details.end_reason, calls], ['time_budget', 5])
  })

  test(`a call takes as long as it took, and no longer than it may, ${set}`, async (t) => {
    const clock = new ShiftedClock()
    const timed = defineTool({
      name: 'timed',
      description: 'Takes time.',
      parameters: { type: 'object', properties: { ms: { type: 'integer' } }, required: ['ms'] },
      async execute({ ms }, { signal }) {
        clock.shiftMs += jump
        clock.advance(ms as number)
        signal.throwIfAborted()
        return 'done'
      },
    })
    const provider = testProvider((_, n) => ({
      calls: n > 1 ? [] : [{ tool: 'timed', args: { ms: [59_999, 60_000][n]! } }],
    }))
    const options = { providers: [provider], tools: [timed], clock, toolTimeoutMs: 60_000 }
    const { engine } = await openEngine(t, options)
    const { events } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 2 })
    const results = events.flatMap((event) =>
      event.kind === 'tool_result' ? [[event.payload.exit_code, event.payload.duration_ms]] : [],
    )
    assert.deepEqual(results, [[0, 59_999], [124, 60_000]])
  })

  test(`a gate expires in its time, ${set} while it opens`, async (t) => {
    const clock = new ShiftedClock()
    const store = await gateStore(() => (clock.shiftMs = jump))
    const options = { store, providers: [testProvider(() => ({}))], clock, gateTimeoutMs: HOUR }
    const { engine } = await openEngine(t, options)
    const { details } = await engine.create(GATED)
    await follow(engine, details.run_id, isGate)
    await clock.whenPending()
    clock.advance(HOUR - 1)
    await settled()
    assert.equal((await engine.get(details.run_id)).status, 'awaiting_human')
    clock.advance(1)
    await follow(engine, details.run_id)
    assert.equal((await engine.get(details.run_id)).end_reason, 'gate_timeout')
  })

  for (const answered of [true, false]) {
    const how = answered ? 'takes an answer' : 'expires'
    test(`a gate of an earlier process ${how} in its time, ${set}`, async (t) => {
      const { clock, engine, runId } = await secondProcess(t, HOUR / 2)
      clock.shiftMs = jump
      clock.advance(HOUR / 2 - 1)
      await settled()
      if (answered) await engine.resume(runId, { decision: 'approve' })
      else clock.advance(1)
      const { end_reason } = await ended(engine, runId)
      assert.equal(end_reason, answered ? 'max_iterations' : 'gate_timeout')
    })
  }
}

test('for a gate of an earlier process, the time of day counts: 48 h later', async (t) => {
  const { engine, runId } = await secondProcess(t, 48 * HOUR)
  assert.equal((await ended(engine, runId)).end_reason, 'gate_timeout')
})

test('for a gate of an earlier process, the time of day counts: 48 h earlier', async (t) => {
  const { clock, engine, runId } = await secondProcess(t, -48 * HOUR)
  clock.advance(49 * HOUR - 1)
  await settled()
  assert.equal((await engine.get(runId)).status, 'awaiting_human')
  clock.advance(1)
  const { end_reason } = await ended(engine, runId)
  assert.equal(end_reason, 'gate_timeout')
})

/** A process that begins `gapMs` after a gate of an hour was opened, which it knows. */
async function secondProcess(
  t: TestContext,
  gapMs: number,
): Promise<{
  readonly clock: ShiftedClock
  readonly engine: RunEngine
  readonly runId: string
}> {
  const store = await gateStore()
  const before = new ShiftedClock()
  const options = { store, providers: [testProvider(() => ({}))], gateTimeoutMs: HOUR }
  const { engine: first, cwd } = await openEngine(t, { ...options, clock: before })
  const { details } = await first.create(GATED)
  await follow(first, details.run_id, isGate)
  await first.close()
  const clock = new ShiftedClock(before.now() + gapMs)
  const { engine } = await openEngine(t, { ...options, cwd, clock })
  if (gapMs < HOUR) await clock.whenPending()
  return { clock, engine, runId: details.run_id }
}

async function ended(engine: RunEngine, runId: string): Promise<RunDetails> {
  const events = await follow(engine, runId)
  assertInvariants(events)
  return await engine.get(runId)
}

/** Lets what a timer has begun come to rest. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
}
