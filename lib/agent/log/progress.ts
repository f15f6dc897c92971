/**
 * Pure: does a run make progress? A fold over its turns that detects
 *
 * 1. the same calls with the same results in consecutive turns: four times, or three if they fail;
 * 2. consecutive turns that repeat what the run has seen before, in any order (edit, undo, edit
 *    again): four;
 * 3. consecutive unusable turns (unreadable calls): three;
 * 4. consecutive turns that changed the plan and nothing else: four.
 *
 * A goal check with a new reason and a human's answer reset the counts. Calls that were stopped do
 * not count. Durations within outputs are ignored. What a tool that explores answers is ignored as
 * well: its call repeats another one if it tries the same on the same files.
 *
 * @module
 */
import { hash } from '../../internal/hash.js'
import type { ToolCall } from '../model.js'

/** Consecutive turns with the same calls and results. */
const SAME_TURNS = 4
/** The same, if all of the calls failed. */
const SAME_FAILED_TURNS = 3
/** Consecutive turns in which nothing is new. */
const REPEATING_TURNS = 4
/** Consecutive turns whose output was unusable. */
const UNUSABLE_TURNS = 3
/** Consecutive turns that did nothing but plan. */
const PLANNING_TURNS = 4
/**
 * Results of calls, and reasons of checks, that are remembered. The oldest are forgotten: a model
 * that repeats such an old call may have lost its result from the context.
 */
const REMEMBERED = 256
/** Exit code of a call that was stopped from outside, such as by a shutdown or a lost store. */
export const STOPPED = 130
/** Longer texts are remembered by their hash. */
const SHORT = 64

/** The result of a call as the model sees it. */
export interface Result {
  readonly output: string
  readonly exitCode: number
}

/** The counts and memories of the fold; bounded, however long the run. */
export interface Progress {
  /** Fingerprints of calls with their results. */
  readonly results: Set<string>
  /** Fingerprints of the reasons of checks. */
  readonly checks: Set<string>
  /** Fingerprints of the calls of the current turn, and of the previous one together. */
  turn: string[]
  turnBefore: string
  /** Did the current turn bring a new call or result? */
  hasNews: boolean
  /** Did every call of the current turn fail so far? */
  allFailed: boolean
  /** Consecutive turns without anything new. */
  repeating: number
  /** Consecutive turns with the same calls and results. */
  same: number
  /** The same, in which all calls failed. */
  sameFailed: number
  unusable: number
  /** Consecutive turns whose calls all changed the plan. */
  planning: number
}

export function newProgress(): Progress {
  return {
    results: new Set(),
    checks: new Set(),
    turn: [],
    turnBefore: '',
    hasNews: false,
    allFailed: true,
    repeating: 0,
    same: 0,
    sameFailed: 0,
    unusable: 0,
    planning: 0,
  }
}

/** Folds a turn of the model; `isMistake`: its output was unusable. */
export function noteTurn(progress: Progress, calls: readonly ToolCall[], isMistake: boolean): void {
  const usable =
    !isMistake && (calls.length === 0 || calls.some(({ error }) => error === undefined))
  progress.unusable = usable ? 0 : progress.unusable + 1
  if (calls.length === 0) return
  progress.turn = []
  progress.hasNews = false
  progress.allFailed = true
}

/**
 * Folds the result of a call. `isLast`: all calls of the turn have their results now.
 *
 * @returns true when the model should be warned that it repeats itself.
 */
export function noteResult(
  progress: Progress,
  call: { readonly tool: string; readonly args: unknown },
  result: Result,
  isLast: boolean,
): boolean {
  if (result.exitCode === STOPPED) {
    if (isLast && progress.turn.length > 0) endTurn(progress)
    return false
  }
  const key = fingerprintOf(`${call.tool} ${JSON.stringify(call.args)}`)
  const outcome = fingerprintOf(`${key} ${result.exitCode} ${withoutDurations(result.output)}`)
  const isNew = !progress.results.has(outcome)
  if (isNew) remember(progress.results, outcome)
  progress.turn.push(key)
  progress.hasNews ||= isNew
  progress.allFailed &&= result.exitCode !== 0
  const warns = !isNew && progress.repeating > 0
  if (isLast) endTurn(progress)
  return warns
}

/** What stands in place of the output of a tool that explores: the files that differ by now. */
export function filesAsTheyAre(
  changed: ReadonlyMap<string, { readonly first: string | null; readonly now: string | null }>,
): string {
  const files = [...changed].filter(([, { first, now }]) => first !== now)
  return JSON.stringify(files.map(([path, { now }]) => [path, now]).sort())
}

/** Folds the result of a call that has set the plan: nothing that others could make of is new. */
export function notePlan(progress: Progress, isLast: boolean): false {
  if (isLast) endTurn(progress)
  return false
}

/** Folds a check that was not cached; a new reason resets the counts. */
export function noteCheck(progress: Progress, reason: string): void {
  const answer = fingerprintOf(withoutDurations(reason))
  if (progress.checks.has(answer)) return
  remember(progress.checks, answer)
  resetCounts(progress)
}

/** Resets the counts: after something new from outside, repeating a call may make sense. */
export function resetCounts(progress: Progress): void {
  progress.repeating = progress.same = progress.sameFailed = progress.unusable = 0
  progress.planning = 0
}

/** Why the run is stuck, for people; null while it is not. */
export function stuckReason(progress: Progress): string | null {
  const { planning, repeating, same, sameFailed, unusable } = progress
  if (unusable >= UNUSABLE_TURNS) return `${unusable} turns of the model in a row could not be used`
  if (sameFailed >= SAME_FAILED_TURNS) return `the same calls failed ${sameFailed} times in a row`
  if (same >= SAME_TURNS) return `the same calls gave the same results ${same} times in a row`
  if (repeating >= REPEATING_TURNS)
    return `${repeating} turns in a row repeated what had been done before`
  if (planning >= PLANNING_TURNS) return `${planning} turns in a row did nothing but plan`
  return null
}

function endTurn(progress: Progress): void {
  // Plans are not in `turn`, and leave the other counts as they are.
  progress.planning = progress.turn.length === 0 ? progress.planning + 1 : 0
  if (progress.planning > 0) return
  const turn = progress.turn.join('\n')
  const same = turn === progress.turnBefore && !progress.hasNews
  progress.turnBefore = turn
  progress.repeating = progress.hasNews ? 0 : progress.repeating + 1
  progress.same = same ? progress.same + 1 : 1
  progress.sameFailed = !progress.allFailed ? 0 : same ? progress.sameFailed + 1 : 1
}

/** A short text that is equal for equal texts. */
function fingerprintOf(text: string): string {
  return text.length <= SHORT ? text : hash('sha256', text, 'base64')
}

function remember(memory: Set<string>, fingerprint: string): void {
  memory.add(fingerprint)
  if (memory.size > REMEMBERED) memory.delete(memory.keys().next().value!)
}

/** Durations such as `12.3 ms`, `1s` and `duration_ms 7.2` differ in every run of a command. */
function withoutDurations(text: string): string {
  const durations =
    /duration_ms:? \d+(?:\.\d+)?|(?<!\d)\d+(?:\.\d+)? ?(?:ms|s|sec|seconds)\b/g
  return text.replaceAll(durations, '#')
}
