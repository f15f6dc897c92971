/**
 * One evaluation of the held-out tests of a run, in a sealed copy that is removed afterwards.
 *
 * 1. Nothing of them leaves this file but whether they pass and, if the run is told, how many do
 *    not: no output, no name, no path and no message of an error.
 * 2. An evaluation counts from before its command begins, also when a crash cuts it off.
 *
 * @module
 */
import { ExhaustedError, GoalCheckError } from '../../errors.js'
import { codeBehind, isExhausted, NO_SPACE, untilPossible } from '../../exhaustion.js'
import type { GoalBaseline, GoalVerdict } from '../../goal.js'
import { hashFiles } from '../protected-files.js'
import { MAX_EVALUATIONS, type HeldOutTests, type HoldoutRun } from './held-out-tests.js'
import { placeFiles } from './place-files.js'

/** The copy in which they are evaluated. */
export interface HoldoutCopy {
  readonly root: string
  /** Checks with a command; files that were put into the copy must have these `hashes`. */
  checkWith(command: string, hashes: GoalBaseline['files']): Promise<GoalVerdict>
}

/** Why held-out tests do not count as passed, for people and for the model. */
export const NONE_LEFT: string =
  `held-out tests were evaluated ${MAX_EVALUATIONS} times and did not pass`

/**
 * Evaluates the held-out tests; resolves with null when they pass, otherwise with one line.
 *
 * @throws {@link GoalCheckError} when they cannot be run; what `run.begin` and `run.tests` throw;
 * the signal's reason.
 */
export async function checkHeldOut(
  run: HoldoutRun,
  copy: HoldoutCopy,
  signal: AbortSignal,
): Promise<string | null> {
  const tests = await run.tests()
  const hashes = await withoutDetails(signal, async () => {
    await placeFiles(tests.files, copy.root)
    return await hashFiles(copy.root, [...tests.files.keys()])
  })
  const number = run.evaluations() + 1
  await run.begin(number)
  const verdict = await withoutDetails(signal, () =>
    // The machine may be at fault: that is waited for, and the evaluation counts once.
    untilPossible(async () => await checkOnce(copy, tests, hashes), signal),
  )
  if (verdict.achieved) return null
  return `${failure(verdict, tests)} (evaluation ${number} of ${MAX_EVALUATIONS})`
}

async function checkOnce(
  copy: HoldoutCopy,
  { command }: HeldOutTests,
  hashes: GoalBaseline['files'],
): Promise<GoalVerdict> {
  try {
    return await copy.checkWith(command, hashes)
  } catch (error) {
    if (codeBehind(error, NO_SPACE) === null) throw error
    throw new ExhaustedError('the disk is full', { cause: error })
  }
}

function failure({ counts }: GoalVerdict, { tell }: HeldOutTests): string {
  if (tell === 'verdict' || counts === null || counts.failed === 0) return 'held-out tests fail'
  return `${counts.failed} of ${counts.total} held-out tests fail`
}

/** Errors of the system name files: what is thrown here tells their codes at most. */
async function withoutDetails<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    signal.throwIfAborted()
    const message = 'the held-out tests could not be run'
    const full = codeBehind(error, NO_SPACE)
    if (full !== null) throw Object.assign(new Error(`${message}: ${full}`), { code: full })
    if (isExhausted(error)) throw new ExhaustedError(`${message}: the machine is exhausted`)
    throw new GoalCheckError(message)
  }
}
