import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import {
  IllegalTransitionError,
  type EventKind,
  type RunEngine,
  type RunRecord,
  type RunStatus,
} from 'runwright/agent'
import { statusAfter } from '../../../lib/agent/log/head.js'
import { follow, openEngine, testProvider } from '../../helpers/engine.js'

const STATUSES: readonly RunStatus[] = [
  'pending',
  'running',
  'awaiting_human',
  'achieved',
  'failed',
  'aborted',
]

/** A run that stays in this status. */
async function runIn(
  t: TestContext,
  status: RunStatus,
): Promise<{ engine: RunEngine; runId: string }> {
  const working = testProvider((_, n) =>
    n % 2 === 0 ? { calls: [{ tool: 'list_files', args: {} }] } : {},
  )
  const hanging = testProvider(() => new Promise(() => undefined))
  const providers = [status === 'awaiting_human' || status === 'failed' ? working : hanging]
  const { engine } = await openEngine(t, { providers, maxConcurrentRuns: 1 })
  const create = async (request: {
    readonly goal: string
    readonly hitl_enabled?: boolean
    readonly max_iterations?: number
  }): Promise<string> => (await engine.create(request)).details.run_id
  const first = await create(
    status === 'achieved'
      ? { goal: 'shell: true' }
      : {
          goal: 'shell: false',
          hitl_enabled: status === 'awaiting_human',
          max_iterations: status === 'failed' ? 1 : 9,
        },
  )
  let runId = first
  if (status === 'pending') {
    await follow(engine, first, ({ kind }) => kind === 'step_start')
    runId = await create({ goal: 'shell: false' })
  } else if (status === 'running') await follow(engine, first, ({ kind }) => kind === 'step_start')
  else if (status === 'awaiting_human')
    await follow(engine, first, ({ kind }) => kind === 'human_check_required')
  else {
    if (status === 'aborted') await engine.abort(first)
    await follow(engine, first)
  }
  assert.equal((await engine.get(runId)).status, status)
  return { engine, runId }
}

type Answer = 'ok' | 'already' | 'not_waiting' | 'invalid' | 'ended' | 'live'

/** The effect of each call on a run in each status, in the order of {@link STATUSES}. */
const CALLS: Readonly<Record<string, readonly Answer[]>> = {
  'resume approve': [
    'not_waiting',
    'not_waiting',
    'ok',
    'not_waiting',
    'not_waiting',
    'not_waiting',
  ],
  'resume abort': ['not_waiting', 'not_waiting', 'ok', 'not_waiting', 'not_waiting', 'not_waiting'],
  'resume reject': [
    'not_waiting',
    'not_waiting',
    'invalid',
    'not_waiting',
    'not_waiting',
    'not_waiting',
  ],
  abort: ['ok', 'ok', 'ok', 'ended', 'ended', 'already'],
  retry: ['ok', 'ok', 'ok', 'ok', 'ok', 'ok'],
  delete: ['live', 'live', 'live', 'ok', 'ok', 'ok'],
}

/** The statuses that a run may have after a call that had an effect. */
const AFTER: Readonly<Record<string, readonly RunStatus[]>> = {
  'resume approve': ['running', 'awaiting_human'],
  'resume abort': ['aborted'],
}

async function call(engine: RunEngine, runId: string, name: string): Promise<Answer> {
  const [verb = '', decision] = name.split(' ')
  try {
    if (verb === 'resume') await engine.resume(runId, { decision: decision as 'approve' })
    if (verb === 'abort') return (await engine.abort(runId)).already ? 'already' : 'ok'
    if (verb === 'retry') await engine.retry(runId)
    if (verb === 'delete') await engine.delete(runId)
    return 'ok'
  } catch (error) {
    const { problem, code } = error as { problem?: Answer; code?: string }
    if (code === 'ERR_AGENT_INVALID_REQUEST') return 'invalid'
    return problem ?? assert.fail(String(error))
  }
}

for (const [name, answers] of Object.entries(CALLS)) {
  for (const [index, status] of STATUSES.entries()) {
    const expected = answers[index] as Answer
    test(`${name} of a run that is ${status}: ${expected}`, async (t) => {
      const { engine, runId } = await runIn(t, status)
      const before = (await engine.get(runId)).last_seq
      assert.equal(await call(engine, runId, name), expected)
      if (name === 'delete' && expected === 'ok') {
        await assert.rejects(engine.get(runId), { code: 'ERR_AGENT_UNKNOWN_RUN' })
        return
      }
      if (expected === 'ok' && name === 'abort') await follow(engine, runId)
      const details = await engine.get(runId)
      const allowed =
        expected !== 'ok' ? [status] : name === 'abort' ? ['aborted'] : (AFTER[name] ?? [status])
      assert.ok(allowed.includes(details.status), `${details.status} after ${name}`)
      if (expected !== 'ok')
        assert.equal(details.last_seq, before, 'a refusal leaves no trace in the log')
    })
  }
}

const KINDS: readonly EventKind[] = [
  'run_started',
  'run_suspended',
  'run_recovered',
  'abort_requested',
  'step_start',
  'llm_usage',
  'model_turn',
  'reasoning',
  'tool_call',
  'tool_started',
  'tool_result',
  'goal_check',
  'iteration_complete',
  'human_check_required',
  'human_check_response',
  'run_end',
  'error',
  'log',
]
/** Statuses in which each kind that changes the status may occur; other kinds change nothing. */
const MOVES: Readonly<Partial<Record<EventKind, Readonly<Partial<Record<RunStatus, RunStatus>>>>>> =
  {
    run_started: { pending: 'running' },
    run_recovered: { pending: 'pending', running: 'running', awaiting_human: 'awaiting_human' },
    human_check_required: { running: 'awaiting_human' },
    human_check_response: { awaiting_human: 'running' },
  }
const ENDS: Readonly<Partial<Record<RunStatus, readonly RunStatus[]>>> = {
  pending: ['failed', 'aborted'],
  running: ['achieved', 'failed', 'aborted'],
  awaiting_human: ['failed', 'aborted'],
}

test('every kind of record in every status is either accepted or refused, by the table', () => {
  const record = (kind: EventKind, payload: object): RunRecord =>
    ({ v: 1, seq: 9, run_id: 'r', kind, iteration: 1, ts: 1, payload }) as unknown as RunRecord
  let checked = 0
  const check = (status: RunStatus, one: RunRecord, expected: RunStatus | undefined): void => {
    checked += 1
    if (expected === undefined)
      assert.throws(() => statusAfter(status, one), IllegalTransitionError, `${status} ${one.kind}`)
    else assert.equal(statusAfter(status, one), expected, `${status} ${one.kind}`)
  }
  for (const status of STATUSES) {
    const ended = ENDS[status] === undefined
    for (const kind of KINDS) {
      if (kind === 'run_end') {
        for (const end of STATUSES) {
          // Only a newer version could write `run_end` with such a status: it changes nothing.
          const isEnd = ['achieved', 'failed', 'aborted'].includes(end)
          const expected = ended
            ? undefined
            : isEnd
              ? ENDS[status]?.includes(end) === true
                ? end
                : undefined
              : status
          check(status, record(kind, { status: end }), expected)
        }
      } else {
        const moves = MOVES[kind]
        check(
          status,
          record(kind, {}),
          ended ? undefined : moves === undefined ? status : moves[status],
        )
      }
    }
  }
  assert.equal(checked, STATUSES.length * (KINDS.length - 1 + STATUSES.length))
})
