/**
 * Pure: what a run does whose goal others attempt, decided by its log alone.
 *
 * @module
 */
import type { Candidate, ChildEnd } from '../../run-tree.js'
import type { ChildState, RunState } from '../../log/run-state.js'
import { clip } from '../../output.js'
import { exhausted } from '../budgets.js'
import type { Outcome } from '../outcome.js'
import { liveChildren } from './child-runs.js'

/** What comes next for a run with attempts. */
export type AttemptsStep =
  /** Store the files with which all attempts begin, and name the attempts in the log. */
  | { readonly kind: 'prepare' }
  /** Wait until one of these has ended; `ends`: end all of them. */
  | {
      readonly kind: 'awaitChildren'
      readonly ends: boolean
      readonly children: readonly ChildState[]
    }
  /** Ask a human which one is taken. */
  | { readonly kind: 'offer' }
  | { readonly kind: 'choose'; readonly attempt: number; readonly why: string }
  | { readonly kind: 'finish'; readonly outcome: Outcome }

interface EndedAttempt extends ChildState {
  readonly end: ChildEnd
}

/** Characters of an attempt's reason within the reason of its run. */
const REASON_CHARACTERS = 300

/** `nowMs` is the time by which budgets are measured. */
export function attemptsStep(state: RunState, nowMs: number): AttemptsStep {
  const { attempts } = state.head.details
  const all = [...state.children.values()]
  const live = liveChildren(state)
  const chosen = attempts?.chosen ?? null
  if (chosen !== null) {
    if (live.length > 0) return { kind: 'awaitChildren', ends: true, children: live }
    const reason = all.find(({ number }) => number === chosen)?.end?.reason ?? ''
    return finish({ status: 'achieved', endReason: 'goal_achieved', reason })
  }
  if (state.choice !== null)
    return { kind: 'choose', attempt: state.choice, why: 'a human has chosen it' }
  if (all.length === 0) return { kind: 'prepare' }
  const ended = all.filter((one): one is EndedAttempt => one.end !== null)
  const achieved = ended.filter(({ end }) => end.status === 'achieved')
  const [first] = achieved
  if (attempts?.choose === 'first' && first !== undefined)
    return { kind: 'choose', attempt: first.number, why: 'it was the first to achieve the goal' }
  const spent = exhausted(state, nowMs)
  // A used-up budget of another kind ends attempts where it would end a run by itself.
  const ends = spent?.endReason === 'time_budget'
  if (live.length > 0) return { kind: 'awaitChildren', ends, children: live }
  if (achieved.length === 0) {
    const { endReason, reason } = spent ?? { endReason: 'attempts_failed', reason: NOBODY }
    return finish({ status: 'failed', endReason, reason: failedReason(reason, ended) })
  }
  if (attempts?.choose === 'human') return { kind: 'offer' }
  const { attempt, why } = smallest(achieved)
  return { kind: 'choose', attempt, why }
}

function finish(outcome: Outcome): AttemptsStep {
  return { kind: 'finish', outcome }
}

/**
 * The smallest net change: the fewest files whose lines do not count, then the fewest lines, then
 * the fewest files; then the fewest tokens.
 */
function smallest(achieved: readonly EndedAttempt[]): {
  readonly attempt: number
  readonly why: string
} {
  const keys = ({ end, number }: EndedAttempt): readonly number[] => [
    end.changes === null ? Infinity : (end.changes.uncounted ?? 0),
    linesOf(end),
    end.changes?.files ?? Infinity,
    tokensOf(end),
    number,
  ]
  const [best] = [...achieved].sort((a, b) => compare(keys(a), keys(b)))
  const { additions = 0, deletions = 0, files = 0, uncounted = 0 } = best!.end.changes ?? {}
  const { length } = achieved
  const others = length === 1 ? 'the only one' : `the smallest change of ${length}`
  const large = uncounted === 0 ? '' : `, ${uncounted} binary or too large to count`
  const size = `${files} files, +${additions} -${deletions}${large}`
  const why = `${others} that achieved the goal: ${size}`
  return { attempt: best!.number, why }
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [i, value] of a.entries()) {
    const other = b[i] as number
    if (value !== other) return value < other ? -1 : 1
  }
  return 0
}

function linesOf({ changes }: ChildEnd): number {
  return changes === null ? Infinity : changes.additions + changes.deletions
}

function tokensOf({ usage }: ChildEnd): number {
  return usage.input_tokens + usage.output_tokens
}

const NOBODY = 'no attempt achieved the goal'

/** Why each attempt failed, and which one came nearest. */
function failedReason(why: string, ended: readonly EndedAttempt[]): string {
  const each = ended.map(
    ({ number, end: { reason, status } }) =>
      `attempt ${number} ${status}: ${clip(reason.replaceAll('\n', ' '), REASON_CHARACTERS)}`,
  )
  const counted = ended.filter(({ end }) => end.counts !== null)
  const keys = ({ end, number }: EndedAttempt): readonly number[] => [
    -(end.counts?.passed ?? 0),
    end.counts?.failed ?? 0,
    number,
  ]
  const [nearest] = [...counted].sort((a, b) => compare(keys(a), keys(b)))
  const last =
    nearest === undefined
      ? ''
      : `. The nearest is attempt ${nearest.number} with ${nearest.end.counts?.passed} of ` +
        `${nearest.end.counts?.total} tests passing; its changes can be applied by hand, ` +
        `as those of run ${nearest.runId}`
  return `${why}; ${each.join('; ')}${last}`
}

/** The attempts as a human sees them who chooses one. */
export function candidatesOf({ children, head }: RunState): readonly Candidate[] {
  const models = new Map(head.details.attempts?.runs.map((one) => [one.attempt, one.model_name]))
  return [...children.values()].flatMap(({ number, end }) => {
    if (end === null) return []
    const { assurance, changed_tests, changes, held_back, reason, run_id, status, usage } = end
    const { cost_known, cost_usd } = usage
    const model_name = models.get(number) ?? head.details.model_name
    const total_tokens = tokensOf(end)
    const used = { total_tokens, cost_usd, cost_known }
    const files = { ...(held_back && { held_back }), ...(changed_tests && { changed_tests }) }
    const verdict = { status, reason, assurance, changes, ...files }
    return [{ attempt: number, run_id, model_name, ...verdict, ...used }]
  })
}
