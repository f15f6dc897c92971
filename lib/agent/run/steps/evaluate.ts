import { describeError } from '../../../internal/errors.js'
import { shownOf, type CheckedFiles, type FilesAtStart } from '../../check-files.js'
import { findEarlier } from '../../checkpoints/check-start.js'
import { appliesItself } from '../../checkpoints/run-files.js'
import { ExhaustedError, GoalCheckError } from '../../errors.js'
import type { EventPayloads, RecordDraft } from '../../events.js'
import { lacksRoom, mayPass } from '../../exhaustion.js'
import type { GoalVerdict } from '../../goal.js'
import type { SealedVerdict } from '../../goals/sealed/sealing.js'
import type { LastCheck, RunState } from '../../log/run-state.js'
import { outcomeAtBoundary } from '../next-step.js'
import { isResultPending, passedNow, resultCheck } from '../pending-result.js'
import { withCheckpoint, type StepContext } from '../step-context.js'
import { endRecord, netChange } from './finish.js'
import { holdoutRun } from './holdout-run.js'
import { gateRecords } from './human-check.js'
import { judgeGoal, unjudged, type JudgeVerdict } from './judge.js'

/**
 * The check before the first iteration: later checks are compared with its tests. A goal that is
 * already met ends the run with 0 iterations.
 *
 * @throws {@link GoalCheckError}, or the signal's reason.
 */
export async function checkBaseline(context: StepContext): Promise<void> {
  const { checkpoints, log, sealing, signal } = context
  const { frozen } = log.state
  if (frozen.goal.by_result === true) return await log.append([resultCheck(0, log.state)])
  // A judge has no evidence yet.
  if (frozen.goal.judge !== undefined)
    return await appendBaseline(context, [], unsealed(unjudged('nothing was done yet')))
  await recordStart(context)
  const isRecorded = log.state.checkpoints !== null
  if (isRecorded || sealing?.copiesLater !== true || log.state.seal !== null) {
    const stored = (await checkpoints?.leftOutAtStart(log, signal)) ?? null
    return await appendBaseline(context, [], await check(context, stored))
  }
  // What the check writes in the folder must not be in the first checkpoint.
  await withCheckpoint(context, 'start', async (drafts) => {
    const [draft] = drafts
    const checked = await check(context, draft?.kind === 'checkpoint' ? draft.payload : null)
    // A run that is achieved at once has no checkpoint.
    await appendBaseline(context, checked.verdict.achieved ? [] : drafts, checked)
  })
}

/**
 * Records the first checkpoint where the first check needs it: after an earlier run in the folder,
 * and in a fork in place, which takes over how its source was checked.
 */
async function recordStart(
  { checkpoints, log, sealing, signal, store }: StepContext,
): Promise<void> {
  const { fork, request } = log.state.frozen
  if (checkpoints === null || sealing === null || log.state.checkpoints !== null) return
  // The copy of a fork has the files of its source's checkpoint, and no others.
  if (fork !== undefined && request.workspace === 'isolated') return
  const earlier = await findEarlier(store, log.state)
  if (earlier !== null || fork !== undefined) await checkpoints.recordStart(earlier, log, signal)
}

async function appendBaseline(
  context: StepContext,
  drafts: readonly RecordDraft[],
  checked: Checked,
): Promise<void> {
  const { log } = context
  await log.append([...drafts, checkRecord(0, checked)], (state) => {
    if (state.lastCheck?.payload.achieved !== true) return []
    const outcome = outcomeAtBoundary(state, context, log.now())
    return outcome === null ? [] : [endRecord(state, outcome)]
  })
}

/**
 * Closes an iteration: checks the goal (unless nothing has changed since the last check), and
 * appends the verdict together with its consequence: the end of the run, a gate, or nothing.
 *
 * @throws {@link GoalCheckError}, or the signal's reason.
 */
export async function evaluate(context: StepContext, iteration: number): Promise<void> {
  const { log } = context
  if (log.state.node !== 'evaluate') {
    log.note({ kind: 'step_start', iteration, payload: { node: 'evaluate' } })
  }
  const draft = await verdictOf(context, iteration)
  // The next step asks for the result, or ends the iteration.
  if (draft?.payload.achieved === true && isResultPending(log.state) && !isByResult(log.state))
    return await log.append([draft])
  const tokens = log.state.iterationTokens
  const above = await context.budget?.look()
  const closing: readonly RecordDraft[] = [
    ...(draft === null ? [] : [draft]),
    { kind: 'iteration_complete', iteration, payload: { iteration, tokens } },
  ]
  await withCheckpoint(context, 'iteration', async (drafts, compare) => {
    const { hitl_enabled } = log.state.frozen.request
    const achieved = draft === null ? !isResultPending(log.state) : draft.payload.achieved
    const held = draft?.private?.files?.held_back ?? log.state.checkedFiles?.held_back
    const net = achieved ? await netChange(compare, held) : undefined
    const sinceGate = hitl_enabled && !achieved ? await compare('gate') : null
    await log.append([...drafts, ...closing], (state) => {
      const outcome = outcomeAtBoundary(state, context, log.now(), above)
      // What the whole run changed is not known yet: the next step finds that out and ends it.
      if (outcome !== null && state.checkpoints !== null && net?.changes == null) return []
      if (outcome?.status === 'achieved' && appliesItself(log)) return []
      if (outcome !== null) return [endRecord(state, outcome, net)]
      if (!hitl_enabled) return []
      return gateRecords(state, { kind: 'iteration', calls: [], changes: sinceGate }, context)
    })
  })
}

function isByResult({ frozen }: RunState): boolean {
  return frozen.goal.by_result === true
}

type CheckDraft = Extract<RecordDraft, { kind: 'goal_check' }>

/** The verdict with which the iteration ends; null when it is in the log. */
async function verdictOf(context: StepContext, iteration: number): Promise<CheckDraft | null> {
  const { lastCheck, result } = context.log.state
  if (isByResult(context.log.state)) return resultCheck(iteration, context.log.state)
  if (result !== null && passedNow(context.log.state)) return null
  return lastCheck === null || lastCheck.stale
    ? checkRecord(iteration, await check(context))
    : cachedRecord(iteration, lastCheck)
}

/** What the checkpoint before the first check says of the files that it leaves out. */
type Stored = Pick<EventPayloads['checkpoint'], 'left_out'>

/** @param stored the checkpoint before the first check */
async function check(context: StepContext, stored: Stored | null = null): Promise<Checked> {
  const { log, executor, folder, signal, trace } = context
  const { frozen, head } = log.state
  // Commands of this process must not run beside those of another that has taken the store over.
  await log.verify()
  const span = trace.beginCheck(head.details.iteration, frozen.goal.name)
  try {
    // A stray process could change a file for the check and then change it back.
    if (log.state.mayHaveStrays) await executor.killMarked(log.runId)
    const checked =
      frozen.goal.judge !== undefined
        ? unsealed(await judgeGoal(context))
        : await folder.guard(() => checkByCommand(context, stored))
    trace.endCheck(span, frozen.goal.name, checked.verdict)
    return checked
  } catch (error) {
    trace.fail(span, error)
    signal.throwIfAborted()
    if (mayPass(error) || error instanceof GoalCheckError) throw error
    const why = describeError(error)
    const message = `the goal could not be checked: ${why}`
    // All that is written for a check is the engine's, or its executor's.
    if (lacksRoom(error)) throw new ExhaustedError(message, { cause: error })
    throw new GoalCheckError(message, { cause: error })
  }
}

/** Checks in place, and before the goal counts as met in a sealed copy, too. */
async function checkByCommand(context: StepContext, stored: Stored | null): Promise<Checked> {
  const { checkpoints, executor, folder, isolated, log, sealing, signal, untilPossible } = context
  const { areTestsLate, baseline, baselineTests, frozen, head, lastCheck, seal } = log.state
  const given = {
    executor,
    cwd: folder.real,
    via: folder.path,
    mark: log.runId,
    signal,
    untilPossible,
    baselineTests,
    areTestsLate,
    isFirst: lastCheck === null && baselineTests === null,
    baseline: baseline ?? { files: {} },
  }
  const { checkGoal } = await import('../../goals/check.js')
  if (sealing === null) return unsealed(await checkGoal(frozen.goal, given))
  const sealed = await sealing.open(isolated, holdoutRun(context), head.details.may_change ?? [])
  const atStart = checkpoints?.filesAtStart(log, signal) ?? NOTHING_KNOWN
  if (seal === null) {
    if (lastCheck === null && log.state.checkpoints?.checkStart != null)
      return await sealed.firstAfter(frozen.goal, given, stored, atStart)
    // A run of an earlier version has changed files that no check was seen to read.
    return lastCheck === null
      ? await sealed.first(frozen.goal, given, stored)
      : unsealed(await checkGoal(frozen.goal, given))
  }
  return await sealed.later(frozen.goal, given, seal, atStart)
}

/** Without checkpoints. */
const NOTHING_KNOWN: FilesAtStart = {
  hashOf: () => Promise.resolve(undefined),
  stored: () => Promise.resolve(new Map()),
  restore: () => Promise.resolve([]),
  changed: () => Promise.resolve(null),
  rewind: () => Promise.resolve(null),
}

/** A verdict, and what was found out beside it. */
type Checked = Omit<SealedVerdict, 'verdict'> & { readonly verdict: GoalVerdict | JudgeVerdict }

function unsealed(verdict: GoalVerdict | JudgeVerdict): Checked {
  return { verdict, found: null, unavailable: null }
}

function checkRecord(
  iteration: number,
  { verdict, found, unavailable, files, atStart }: Checked,
): CheckDraft {
  const { achieved, reason, assurance, counts, duration_ms, output, tests } = verdict
  const undecided = 'undecided' in verdict ? { undecided: verdict.undecided } : undefined
  const payload: EventPayloads['goal_check'] = {
    achieved,
    reason,
    verified_by: assurance.by === 'judge' ? 'judge' : 'command',
    cached: false,
    counts,
    duration_ms,
    assurance,
    ...(unavailable !== null && { sealed_unavailable: unavailable }),
    ...shownFiles(files),
  }
  return {
    kind: 'goal_check',
    iteration,
    payload,
    private: {
      output,
      // Later checks compare with the tests of the start.
      tests: atStart === undefined ? tests : atStart.tests,
      ...(found?.start && { in_place: found.start }),
      ...(files && { files }),
      ...(atStart && { baseline: atStart.baseline }),
      ...undecided,
    },
  }
}

/** What a verdict tells of the files of a run; a list without files is left out. */
function shownFiles(files: CheckedFiles | undefined): Partial<EventPayloads['goal_check']> {
  const lists = {
    held_back: files?.held_back, changed_tests: files?.changed_tests, allowed: files?.allowed,
  }
  const shown = Object.entries(lists).flatMap(([name, paths = []]) =>
    paths.length === 0 ? [] : [[name, shownOf(paths)]],
  )
  return Object.fromEntries(shown)
}

function cachedRecord(iteration: number, { payload, output }: LastCheck): CheckDraft {
  const undecided = payload.verified_by === 'judge' ? { undecided: false } : undefined
  return {
    kind: 'goal_check',
    iteration,
    payload: { ...payload, cached: true, duration_ms: 0 },
    private: { output, tests: null, ...undecided },
  }
}
