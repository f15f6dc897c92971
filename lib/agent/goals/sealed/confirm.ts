/**
 * Confirms in a sealed copy what passed in place, and tells which of the run's changes that covers.
 *
 * @module
 */
import { dirname } from 'node:path'
import type { GoalVerdict, KeptTests } from '../../goal.js'
import { areHashed } from '../../test-outcomes.js'
import { fileSystemTime, touchedFiles } from '../../workspace/touched-files.js'
import { listChanges } from '../compare-tests.js'
import { fileOf, isFile } from '../reports/test-names.js'
import { changedAnswers } from './asked-of-git.js'
import { groupFiles, isAllowed } from './checked-files.js'
import { deedsAgainst } from './deeds.js'
import { changedOf, missingIn } from './file-states.js'
import { ownOf, putBack, rewrittenIn, type Start } from './put-back.js'
import type { SealedCopy } from './sealed-copy.js'
import type { SealedVerdict } from './sealing.js'
import { scriptOf } from './surroundings.js'
import { asAtStart, failed, restoredNote } from './words.js'

/** A check that passed in place, and what is known of the start. */
export interface ToConfirm extends Start {
  readonly inPlace: GoalVerdict
}

/** The verdict of a check in a copy. */
export interface Confirmed extends SealedVerdict {
  /** Did the check fail, which may be because no copy can run it? */
  readonly hasFailed: boolean
}

/** The verdict of a check in a copy of the folder. @throws as `checkGoal` does. */
export async function confirmInCopy(copy: SealedCopy, given: ToConfirm): Promise<Confirmed> {
  const { goal, context, start, atStart, inPlace } = given
  const { baseline, baselineTests, cwd, signal } = context
  const { root } = copy
  const { files, lost } = await putBack(copy, given)
  const answers = start.asked === undefined ? []
    : await changedAnswers(copy, await scriptOf(goal, root), start.asked)
  if (answers.length > 0) return refused(inPlace, answers)
  const since = await fileSystemTime(dirname(root))
  const allowed = new Set(files.filter(isAllowed).map(({ path }) => path))
  const own = new Set(ownOf(files, baseline))
  const checked = await copy.check(goal, testsOutside(baselineTests, allowed), { own })
  const verdict = copy.withoutPlace(checked)
  const { changed, observes, read } = await touchedFiles(root, since, signal)
  if (!verdict.achieved) {
    const back = files.filter(({ isRuns }) => !isRuns)
    const reason = `${verdict.reason}${asAtStart(back)}`
    return outcome(failed(verdict, reason, restoredNote(back, given.mayChange)), true)
  }
  const wasRead = observes ? new Set(read) : null
  const isRead = (path: string): boolean => wasRead?.has(path) !== false
  const others = changed.filter((path) => !own.has(path))
  const isKnown = (path: string): boolean => Object.hasOwn(baseline.files, path)
  const more = others.filter((path) => !isKnown(path) && isRead(path))
  const written = [...others.filter(isKnown), ...(await rewrittenIn(copy, given, more))]
  if (written.length > 0)
    return refused(verdict, written.map((path) => `${path} was changed while the check ran`))
  const problem = await deedsAgainst(verdict, root, start, baseline, atStart)
  if (problem !== null) return outcome(failed(verdict, problem, ''))
  const loose = await unsettled(cwd, start.leftOut ?? {}, lost, isRead)
  const { canaries } = verdict.assurance
  const assurance = { ...verdict.assurance, sealed: loose.length === 0, canaries }
  return {
    // People know the counts and the time of the folder itself.
    verdict: { ...inPlace, assurance, output: verdict.output },
    found: null,
    hasFailed: false,
    unavailable: loose.length === 0 ? null : `${loose[0]} was changed, and is not stored`,
    files: groupFiles(files, observes ? read : null),
  }
}

/** The tests of the start that are in other files than these. */
function testsOutside(tests: KeptTests | null, paths: ReadonlySet<string>): KeptTests | null {
  if (tests === null || paths.size === 0) return tests
  // What is hashed has no names.
  if (areHashed(tests)) return null
  const kept = Object.entries(tests).filter(
    ([name]) => !paths.has(isFile(name) ? name : fileOf(name)),
  )
  return Object.fromEntries(kept)
}

/** Files that may decide the check, and are not as at the start: they are read, or gone. */
async function unsettled(
  cwd: string,
  states: { readonly [path: string]: string },
  lost: readonly string[],
  isRead: (path: string) => boolean,
): Promise<readonly string[]> {
  const gone = new Set(await missingIn(cwd, [...lost, ...Object.keys(states)]))
  const matters = (path: string): boolean => isRead(path) || gone.has(path)
  const changed = await changedOf(cwd, states, Object.keys(states).filter(matters))
  return [...lost.filter(matters), ...changed]
}

function outcome(verdict: GoalVerdict, hasFailed = false): Confirmed {
  return { verdict, found: null, unavailable: null, hasFailed }
}

function refused(verdict: GoalVerdict, changes: readonly string[]): Confirmed {
  return outcome(failed(verdict, `tests changed: ${listChanges(changes)}`, ''))
}
