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
import { faultOf, mayPass, type Patience } from '../../exhaustion.js'
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
 * @throws {@link GoalCheckError} when they cannot be run; {@link ExhaustedError} while they cannot
 * be put into the copy; what `run.begin` and `run.tests` throw; the signal's reason.
 */
export async function checkHeldOut(
  run: HoldoutRun,
  copy: HoldoutCopy,
  untilPossible: Patience,
  signal: AbortSignal,
): Promise<string | null> {
  const tests = await run.tests()
  const hashes = await withoutDetails(signal, async () => {
    await placeFiles(tests.files, copy.root)
    return await hashFiles(copy.root, [...tests.files.keys()])
  })
  const number = run.evaluations() + 1
  await run.begin(number)
  // The machine may be at fault: that is waited for, and the evaluation counts once.
  const verdict = await untilPossible(() =>
    withoutDetails(signal, () => copy.checkWith(tests.command, hashes)),
  )
  const skips = verdict.counts?.skipped ?? 0
  if (verdict.achieved && skips <= (tests.allowedSkips ?? Infinity)) return null
  return `${failure(verdict, tests)} (evaluation ${number} of ${MAX_EVALUATIONS})`
}

function failure({ achieved, counts }: GoalVerdict, { tell }: HeldOutTests): string {
  if (tell === 'verdict' || counts === null) return 'held-out tests fail'
  const { failed, total } = counts
  if (achieved) return `${counts.skipped} of ${total} held-out tests are skipped`
  return failed === 0 ? 'held-out tests fail' : `${failed} of ${total} held-out tests fail`
}

/** Errors of the system name files: what is thrown here tells what is wrong with the machine. */
async function withoutDetails<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    signal.throwIfAborted()
    const message = 'the held-out tests could not be run'
    if (mayPass(error)) throw new ExhaustedError(`${message}: ${faultOf(error)}`)
    throw new GoalCheckError(message)
  }
}
