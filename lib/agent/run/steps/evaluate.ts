import { GoalCheckError } from '../../errors.js'
import type { EventPayloads, RecordDraft } from '../../events.js'
import { checkGoal } from '../../goals/check.js'
import { NOT_JUDGED } from '../../goals/judge.js'
import type { GoalVerdict } from '../../goal.js'
import { outcomeAtBoundary } from '../next-step.js'
import type { RunContext } from '../step-context.js'
import type { LastCheck, RunState } from '../../log/state.js'
import { endRecord } from './finish.js'
import { gateRecords } from './human-check.js'
import { judgeGoal, unjudged } from './judge.js'

/**
 * The check before the first iteration: its tests are what later checks are measured by. A goal
 * that is met already ends the run with 0 iterations.
 *
 * @throws {@link GoalCheckError}, or the signal's reason.
 */
export async function checkBaseline(context: RunContext): Promise<void> {
  const { log } = context
  const { goal } = log.state.frozen
  // There is nothing yet that a judge could see.
  const verdict = goal.judge === undefined ? await check(context) : unjudged('nothing was done yet')
  await log.append([checkRecord(0, verdict)], (state) => ending(context, state))
}

/**
 * Closes an iteration: checks the goal (unless nothing was changed since the last check), and
 * appends with the answer what follows from it: the end of the run, a gate, or nothing.
 *
 * @throws {@link GoalCheckError}, or the signal's reason.
 */
export async function evaluate(context: RunContext, iteration: number): Promise<void> {
  const { log } = context
  if (log.state.node !== 'evaluate') {
    log.note({ kind: 'step_start', iteration, payload: { node: 'evaluate' } })
  }
  const { lastCheck } = log.state
  const draft =
    lastCheck === null || lastCheck.stale || lastCheck.payload.reason.startsWith(NOT_JUDGED)
      ? checkRecord(iteration, await check(context))
      : cachedRecord(iteration, lastCheck)
  const tokens = log.state.iterationTokens
  await log.append(
    [draft, { kind: 'iteration_complete', iteration, payload: { iteration, tokens } }],
    (state) => {
      const end = ending(context, state)
      if (end.length > 0 || !state.frozen.request.hitl_enabled) return end
      return gateRecords(state, { kind: 'iteration', calls: [] }, context)
    },
  )
}

function ending(context: RunContext, state: RunState): RecordDraft[] {
  const achieved = state.lastCheck?.payload.achieved === true
  if (state.head.details.iteration === 0 && !achieved) return []
  const outcome = outcomeAtBoundary(state, context, context.clock.now())
  return outcome === null ? [] : [endRecord(state, outcome)]
}

async function check(context: RunContext): Promise<GoalVerdict> {
  const { log, executor, workspace, signal, trace } = context
  const { frozen, baseline, baselineTests, head } = log.state
  const span = trace.beginCheck(head.details.iteration, frozen.goal.name)
  try {
    // A process that was left behind could change a file for the check and change it back.
    if (log.state.mayHaveStrays) await executor.killMarked(log.runId)
    const verdict =
      frozen.goal.judge !== undefined
        ? await judgeGoal(context)
        : await checkGoal(frozen.goal, {
            executor,
            cwd: workspace.root,
            mark: log.runId,
            signal,
            baselineTests,
            baseline: baseline ?? { files: {} },
          })
    trace.endCheck(span, frozen.goal.name, verdict)
    return verdict
  } catch (error) {
    trace.fail(span, error)
    signal.throwIfAborted()
    const message = error instanceof Error ? error.message : String(error)
    throw new GoalCheckError(`the goal could not be checked: ${message}`, { cause: error })
  }
}

function checkRecord(iteration: number, verdict: GoalVerdict): RecordDraft {
  const { achieved, reason, verified_by, counts, duration_ms, output, tests } = verdict
  const payload: EventPayloads['goal_check'] = {
    achieved,
    reason,
    verified_by,
    cached: false,
    counts,
    duration_ms,
  }
  return { kind: 'goal_check', iteration, payload, private: { output, tests } }
}

function cachedRecord(iteration: number, { payload, output }: LastCheck): RecordDraft {
  return {
    kind: 'goal_check',
    iteration,
    payload: { ...payload, cached: true, duration_ms: 0 },
    private: { output, tests: null },
  }
}
