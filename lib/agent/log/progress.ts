/**
 * Pure: does a run get anywhere? A fold over its turns that notices
 *
 * 1. the same calls with the same results, turn after turn: four times, or three when they fail;
 * 2. turns that repeat what the run has seen before, in whatever order (edit, take back, edit again):
 *    four in a row;
 * 3. turns that could not be used at all (calls that cannot be read): three in a row.
 *
 * A goal check with an answer that was not heard before, or a word of a human, is news and begins
 * the count anew. Durations within outputs do not make a difference.
 *
 * @module
 */
import { hash } from 'node:crypto'
import type { ToolCall } from '../model.js'

/** Turns in a row with the very same calls and results. */
const SAME_TURNS = 4
/** As many when all of the calls failed. */
const SAME_FAILED_TURNS = 3
/** Turns in a row that repeat something of the run, the first time not counted. */
const REPEATING_TURNS = 4
/** Turns in a row that could not be used. */
const UNUSABLE_TURNS = 3
/**
 * Results of calls, and answers of checks, that are remembered; the oldest are forgotten. A model
 * that asks again for what it asked for so long ago may well have lost it from its context.
 */
const REMEMBERED = 256
/** Characters up to which a text stands for itself; a longer one is remembered by its hash. */
const SHORT = 64

/** How a call ended, as the model sees it. */
export interface Result {
  readonly output: string
  readonly exitCode: number
}

/** What is remembered of a run's turns. */
export interface Progress {
  /** Calls with their results, as marks: a run that goes on for long takes no more memory. */
  readonly results: Set<string>
  readonly checks: Set<string>
  /** The calls of the turn that runs and of the one before, as keys. */
  turn: string[]
  turnBefore: string
  /** Did the turn that runs bring a call or a result that was not there before? */
  hasNews: boolean
  /** Did every call of the turn that runs fail? */
  allFailed: boolean
  /** Turns in a row without news; with the very same calls; in which all calls failed. */
  repeating: number
  same: number
  sameFailed: number
  unusable: number
}

/** Where a run begins. */
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
  }
}

/** A turn of the model has come. */
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
 * A call of the turn has its result. `isLast`: all calls of the turn have theirs now.
 *
 * @returns true when the model should hear that it repeats itself.
 */
export function noteResult(
  progress: Progress,
  call: { readonly tool: string; readonly args: unknown },
  result: Result,
  isLast: boolean,
): boolean {
  const key = markOf(`${call.tool} ${JSON.stringify(call.args)}`)
  const mark = markOf(`${key} ${result.exitCode} ${withoutDurations(result.output)}`)
  const isNew = !progress.results.has(mark)
  if (isNew) remember(progress.results, mark)
  progress.turn.push(key)
  progress.hasNews ||= isNew
  progress.allFailed &&= result.exitCode !== 0
  const warns = !isNew && progress.repeating > 0
  if (isLast) endTurn(progress)
  return warns
}

/** A check has been made that was not made before in this state of things. */
export function noteCheck(progress: Progress, reason: string): void {
  const answer = markOf(withoutDurations(reason))
  if (progress.checks.has(answer)) return
  remember(progress.checks, answer)
  startAnew(progress)
}

/** Something came from outside: what is repeated now may make sense. */
export function startAnew(progress: Progress): void {
  progress.repeating = progress.same = progress.sameFailed = progress.unusable = 0
}

/** Why the run is stuck, for people; null while it may go on. */
export function stuckReason({ repeating, same, sameFailed, unusable }: Progress): string | null {
  if (unusable >= UNUSABLE_TURNS) return `${unusable} turns of the model in a row could not be used`
  if (sameFailed >= SAME_FAILED_TURNS) return `the same calls failed ${sameFailed} times in a row`
  if (same >= SAME_TURNS) return `the same calls gave the same results ${same} times in a row`
  if (repeating >= REPEATING_TURNS)
    return `${repeating} turns in a row repeated what had been done before`
  return null
}

function endTurn(progress: Progress): void {
  const turn = progress.turn.join('\n')
  const same = turn === progress.turnBefore && !progress.hasNews
  progress.turnBefore = turn
  progress.repeating = progress.hasNews ? 0 : progress.repeating + 1
  progress.same = same ? progress.same + 1 : 1
  progress.sameFailed = !progress.allFailed ? 0 : same ? progress.sameFailed + 1 : 1
}

/** The same for the same text, and short. */
function markOf(text: string): string {
  return text.length <= SHORT ? text : hash('sha256', text, 'base64')
}

function remember(memory: Set<string>, mark: string): void {
  memory.add(mark)
  if (memory.size > REMEMBERED) memory.delete(memory.keys().next().value!)
}

/** `12.3 ms`, `1s`, `duration_ms 7.2` are other in every run of a command. */
function withoutDurations(text: string): string {
  return text.replaceAll(/duration_ms:? \d+(?:\.\d+)?|\d+(?:\.\d+)? ?(?:ms|s|sec|seconds)\b/g, '#')
}
