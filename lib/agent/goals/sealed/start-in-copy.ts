import type { AskedOfGit, FilesAtStart } from '../../check-files.js'
import type { GoalBaseline, GoalCheckContext, GoalSpec, GoalVerdict } from '../../goal.js'
import { askGit } from './asked-of-git.js'
import type { CheckCopies } from './check-copies.js'
import { couldNotRun } from './could-run.js'
import type { SealedCopy } from './sealed-copy.js'
import { silencingIn, type Silencing } from './silencing.js'
import { scriptOf } from './surroundings.js'

/** What a check of the files of the start shows. */
export interface StartInCopy {
  readonly verdict: GoalVerdict
  /** Why the copy could not run the suite as such; null if it could. */
  readonly cause: string | null
  readonly asked: AskedOfGit | undefined
  readonly silencing: Silencing | null
  /** Hashes of all files that the goal protects, without dependencies. */
  readonly files: GoalBaseline['files']
}

/**
 * Checks the stored files of the start in a copy of a folder that has changed since.
 *
 * @throws if they are not known; if no copy can be made; as `checkGoal` does.
 */
export async function checkStart(
  copies: CheckCopies,
  goal: GoalSpec,
  context: GoalCheckContext,
  atStart: FilesAtStart,
): Promise<StartInCopy> {
  const rewind = await atStart.rewind()
  if (rewind === null) throw new Error('the files of the start are not known')
  const [lost] = rewind.lost
  if (lost !== undefined) throw new Error(`${lost} was changed, and was not stored at the start`)
  const { max_duration_ms: _, ...unlimited } = goal
  const work = async (copy: SealedCopy): Promise<StartInCopy> => {
    await rewind.complete(copy.root)
    const files = await copy.protectedFiles(goal)
    const verdict = await copy.check(unlimited, null, { hashes: files })
    const script = await scriptOf(goal, copy.root)
    return {
      verdict,
      cause: couldNotRun(verdict, goal, copy.root),
      asked: await askGit(copy, script),
      silencing: await silencingIn(goal, script, copy.root, context.signal),
      files,
    }
  }
  // What was found in the folder is not of the start.
  const alone = { ...context, baseline: { files: {} }, baselineTests: null }
  return await copies.withPackages(alone, work, rewind.without, ({ cause }) => cause !== null)
}
