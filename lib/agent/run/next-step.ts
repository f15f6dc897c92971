/**
 * Pure: what a run does next, decided by its state alone. The loop performs the step and asks
 * again; after a crash, another process asks the same question and continues.
 *
 * @module
 */
import { isTerminal, type EventPayloads } from '../events.js'
import { MAX_EVALUATIONS } from '../goals/holdout/held-out-tests.js'
import { dueMessages } from '../log/messages.js'
import { stuckReason } from '../log/progress.js'
import type { CallState, RunState } from '../log/run-state.js'
import { remainingCalls } from '../log/remaining.js'
import { exhausted, type Exhausted } from './budgets.js'
import { attemptsStep, type AttemptsStep } from './children/attempts.js'
import { leftBehind, liveChildren } from './children/child-runs.js'
import { aborted, type Outcome } from './outcome.js'
import { shouldRequestResult, isResultPending, resultFailure } from './pending-result.js'

export type Step =
  | { readonly kind: 'start' }
  | { readonly kind: 'setup' }
  | { readonly kind: 'baseline' }
  /** One model call; `begins`: the first of its iteration. */
  | { readonly kind: 'turn'; readonly iteration: number; readonly begins: boolean }
  | { readonly kind: 'ask'; readonly calls: readonly CallState[] }
  | { readonly kind: 'tools'; readonly calls: readonly CallState[] }
  | { readonly kind: 'evaluate'; readonly iteration: number }
  /** One model call that asks for the result of the run. */
  | { readonly kind: 'result'; readonly iteration: number }
  | Exclude<AttemptsStep, { kind: 'finish' }>
  | { readonly kind: 'wait' }
  | { readonly kind: 'finish'; readonly outcome: Outcome }
  | { readonly kind: 'ended' }

/** A step that needs a slot and a context. `recover` precedes the steps that the state asks for. */
export type WorkStep =
  | { readonly kind: 'recover' }
  | Exclude<Step, { kind: 'awaitChildren' | 'choose' | 'wait' | 'finish' | 'ended' }>

/** The part of the engine's configuration that decides on steps. */
export interface StepLimits {
  readonly maxTurnsPerIteration: number
  /** End runs that make no progress? */
  readonly detectStuck: boolean
  /** Does this call wait for a human's approval? */
  needsApproval(call: CallState): boolean
}

/** A run is stuck after this many consecutive iterations without a tool call. */
const MAX_IDLE_ITERATIONS = 3

/**
 * `nowMs` is the time by which budgets are measured; `above`: a budget of the runs above is used
 * up, which ends the run as its own would. Runs that it has started and that nobody waits for are
 * ended first; before the run ends, all of them.
 */
export function nextStep(
  state: RunState,
  limits: StepLimits,
  nowMs: number,
  above: Exhausted | null = null,
): Step {
  const step = stepOf(state, limits, nowMs, above)
  if (state.children.size === 0 || step.kind === 'ended') return step
  const left = step.kind === 'finish' ? liveChildren(state) : leftBehind(state)
  return left.length > 0 ? { kind: 'awaitChildren', ends: true, children: left } : step
}

function stepOf(
  state: RunState,
  limits: StepLimits,
  nowMs: number,
  above: Exhausted | null,
): Step {
  const { status } = state.head.details
  if (state.abortRequested && !isTerminal(status)) return finish(aborted(state.abortWhy))
  switch (status) {
    case 'pending':
      return above === null ? { kind: 'start' } : finish({ status: 'failed', ...above })
    case 'awaiting_human':
      return { kind: 'wait' }
    case 'running':
      return runningStep(state, limits, nowMs, above)
    default:
      return { kind: 'ended' }
  }
}

function runningStep(
  state: RunState,
  limits: StepLimits,
  nowMs: number,
  above: Exhausted | null,
): Step {
  const { setup } = state
  if (setup !== null && setup !== 'due')
    return finish({ status: 'failed', endReason: 'setup_failed', reason: setupReason(setup) })
  const spent = exhausted(state, nowMs) ?? above
  const isOutOfTime = spent?.endReason === 'time_budget'
  if (setup === 'due')
    return isOutOfTime ? finish({ status: 'failed', ...spent }) : { kind: 'setup' }
  if (state.frozen.request.attempts !== undefined) return attemptsStep(state, nowMs)
  const { iteration } = state.head.details
  const open = state.calls.filter(({ status }) => status !== 'done')
  if (isOutOfTime) return finish({ status: 'failed', ...spent })
  if (state.lastCheck === null) return { kind: 'baseline' }
  if (open.length > 0) {
    // Calls beyond the budget are refused without asking a human.
    const gated =
      remainingCalls(state) <= 0 || above?.endReason === 'tool_call_budget'
        ? []
        : open.filter((call) => call.status === 'requested' && limits.needsApproval(call))
    return gated.length > 0 ? { kind: 'ask', calls: gated } : { kind: 'tools', calls: open }
  }
  switch (state.node) {
    case 'plan':
    case 'act': {
      const hasPendingMessages = dueMessages(state.messages, state.turns === 0).length > 0
      const another = state.turns === 0 || state.wantsTurn || hasPendingMessages
      if (!another || state.turns >= limits.maxTurnsPerIteration) return closingStep(state, spent)
      const end = spent ?? (hasPendingMessages ? null : stuck(state, limits.detectStuck))
      if (end === null) return { kind: 'turn', iteration, begins: false }
      // Work that was paid for is checked before the run ends.
      return state.turns > 0
        ? closingStep(state, spent)
        : finish({ status: 'failed', ...end })
    }
    case 'evaluate':
      return closingStep(state, spent)
    case 'human_check':
    case null: {
      const outcome = outcomeAtBoundary(state, limits, nowMs, above)
      return outcome === null
        ? { kind: 'turn', iteration: iteration + 1, begins: true }
        : finish(outcome)
    }
  }
}

/** What ends an iteration: the check of its goal, and the result if it is time for that. */
function closingStep(state: RunState, spent: Exhausted | null): Step {
  const { iteration } = state.head.details
  // The request for the result calls no tool.
  const hasCalled = spent?.endReason === 'tool_call_budget'
  const asks = (spent === null || hasCalled) && shouldRequestResult(state, hasCalled)
  return { kind: asks ? 'result' : 'evaluate', iteration }
}

/**
 * How the run ends between two iterations, where `state.node` is null; null when another iteration
 * follows. `above`: see {@link nextStep}.
 */
export function outcomeAtBoundary(
  state: RunState,
  { detectStuck }: Pick<StepLimits, 'detectStuck'>,
  nowMs: number,
  above: Exhausted | null = null,
): Outcome | null {
  const { iteration, max_iterations } = state.head.details
  const check = state.lastCheck?.payload
  const hasPendingMessages = state.messages.waiting.length > 0
  // A fork of a run that has met its goal begins with what to do besides.
  const goesOn = hasPendingMessages && iteration === 0 && state.frozen.fork !== undefined
  const owes = isResultPending(state)
  if (check?.achieved === true && !owes && !goesOn) {
    return { status: 'achieved', endReason: 'goal_achieved', reason: check.reason }
  }
  const reason = check?.reason ?? ''
  const invalid = resultFailure(state)
  if (invalid !== null) return { status: 'failed', endReason: 'result_invalid', reason: invalid }
  if (check?.achieved === true && owes) {
    const spent = exhausted(state, nowMs) ?? above
    const missing = `${spent?.reason ?? ''}, before the result was given`
    if (spent !== null)
      return { status: 'failed', endReason: spent.endReason, reason: missing }
  }
  // Whatever has failed now: nothing can meet the goal any more.
  if (state.holdoutEvaluations >= MAX_EVALUATIONS && check?.achieved === false)
    return { status: 'failed', endReason: 'holdout_exhausted', reason: exhaustedReason(reason) }
  const lacks = check?.achieved === true && owes ? 'it gave no result' : reason
  if (state.gaveUp !== null && !hasPendingMessages) return gaveUp(state.gaveUp, lacks)
  // Calls that the tree had no room for repeat themselves; that is not the model's fault.
  const round = hasPendingMessages || above !== null ? null : stuck(state, detectStuck)
  if (round !== null)
    return { status: 'failed', endReason: 'stuck', reason: `${round.reason}: ${reason}` }
  if (iteration >= max_iterations) {
    return {
      status: 'failed',
      endReason: 'max_iterations',
      reason: `after ${iteration} iterations: ${reason}`,
    }
  }
  const spent = exhausted(state, nowMs) ?? above
  return spent === null ? null : { status: 'failed', ...spent }
}

/** Characters of the output of a failed setup. */
const SETUP_CHARACTERS = 2_000

function setupReason({ exit_code: code, output }: EventPayloads['setup_ended']): string {
  const what = code === 124 ? 'did not end in time' : `failed with exit code ${code}`
  const end = output.trimEnd().slice(-SETUP_CHARACTERS)
  return end === '' ? `the setup ${what}` : `the setup ${what}: ${end}`
}

function gaveUp(why: NonNullable<RunState['gaveUp']>, reason: string): Outcome {
  const [endReason, what] =
    why === 'refusal'
      ? (['stuck', 'the model gave up'] as const)
      : ([why, 'the content filter of the provider stopped the model'] as const)
  return { status: 'failed', endReason, reason: `${what}: ${reason}` }
}

function exhaustedReason(reason: string): string {
  return `the held-out tests were evaluated ${MAX_EVALUATIONS} times, and do not pass: ${reason}`
}

/** Why a run makes no progress; null while it may continue. */
function stuck(
  { idleIterations, progress }: RunState,
  detect: boolean,
): { readonly endReason: 'stuck'; readonly reason: string } | null {
  if (!detect) return null
  const idle = idleIterations >= MAX_IDLE_ITERATIONS
  const reason = idle
    ? `the model called no tool in ${MAX_IDLE_ITERATIONS} iterations`
    : stuckReason(progress)
  return reason === null ? null : { endReason: 'stuck', reason }
}

function finish(outcome: Outcome): Step {
  return { kind: 'finish', outcome }
}
