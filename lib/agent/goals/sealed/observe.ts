/**
 * Runs a check in a copy of the start files. Records the files that belong to the check, and the
 * baseline for later checks.
 *
 * @module
 */
import { dirname } from 'node:path'
import type { AskedOfGit, SealStart, StoredSeal } from '../../check-files.js'
import type { GoalBaseline, GoalCheckContext, GoalSpec, GoalVerdict } from '../../goal.js'
import type { TouchedFiles } from '../../workspace/find-touched.js'
import { fileSystemTime, touchedFiles } from '../../workspace/touched-files.js'
import { hashFiles } from '../protected-files.js'
import { askGit } from './asked-of-git.js'
import { whatBelongs, type Belonging } from './belongs.js'
import { executablesIn } from './file-states.js'
import { filesToLeaveOut } from './new-files.js'
import type { SealedCopy } from './sealed-copy.js'
import { dataIn, scriptOf } from './surroundings.js'

/** What a check was seen to do in a copy of the start. */
export interface Observed extends StoredSeal, Pick<Belonging, 'unclaimed'> {
  readonly root: string
  readonly verdict: GoalVerdict
  readonly asked: AskedOfGit | undefined
  readonly since: number
  readonly touched: TouchedFiles
  readonly kept: readonly string[]
  readonly made: readonly string[]
  readonly executable: readonly string[]
}

/** Paths of one kind that are kept of a first check; more of them are not. */
export const MAX_PATHS = 2_000

/**
 * Checks in a copy of the start, and looks at what the check did there.
 *
 * @param isNew did a file that it wrote not exist before?
 */
export async function observe(
  goal: GoalSpec,
  { baseline, baselineTests, signal }: GoalCheckContext,
  copy: SealedCopy,
  isNew: (path: string) => Promise<boolean>,
): Promise<Observed> {
  const { root } = copy
  const since = await fileSystemTime(dirname(root))
  const verdict = await copy.check(goal, baselineTests)
  // Before anything else reads a file of the copy.
  const touched = await touchedFiles(root, since, signal)
  const [kept, found] = await both(
    filesToLeaveOut({ root, goal, baseline, kept: new Set(), signal }),
    belonging(goal, baseline, root, touched, verdict.test_files, signal),
  )
  const made: string[] = []
  for (const path of touched.changed) if (await isNew(path)) made.push(path)
  const ofCheck = new Set(made)
  const before = [...kept.keys()].filter((path) => !ofCheck.has(path))
  const asked = await askGit(copy, await scriptOf(goal, root))
  const paths = [...Object.keys(baseline.files), ...Object.keys(found.files)]
  const executable = await executablesIn(root, paths)
  const seen = { root, asked, verdict, touched, made, executable }
  return { ...seen, since: since.ms, kept: before, ...found }
}

/** What it shows for later checks, beside what surrounds the folder. */
export function startOf(
  { asked, executable, kept, made, touched, unclaimed, verdict }: Observed,
): Omit<SealStart, 'since' | 'dependencies' | 'unavailable'> {
  return {
    kept, executable, observed: touched.observes,
    ...(made.length <= MAX_PATHS && { made }),
    ...(unclaimed.length > 0 && unclaimed.length <= MAX_PATHS && { unclaimed }),
    ...(verdict.deeds.length > 0 && { deeds: verdict.deeds }),
    ...(asked !== undefined && { asked }),
  }
}

/** What belongs to the check beyond what is known, with its hashes. */
export async function belonging(
  goal: GoalSpec,
  baseline: GoalBaseline,
  root: string,
  { changed, listed, read }: TouchedFiles,
  testFiles: readonly string[],
  signal: AbortSignal,
): Promise<StoredSeal & Pick<Belonging, 'unclaimed'>> {
  const known = new Set(Object.keys(baseline.files))
  const script = await scriptOf(goal, root)
  const all = [...new Set([...read, ...(goal.reporter === null ? await dataIn(script, root) : [])])]
  const { belongs, unclaimed } = await whatBelongs(
    { root, read: all, changed, listed, testFiles, goal, known, script },
    signal,
  )
  return {
    reasons: Object.fromEntries(belongs),
    files: await hashFiles(root, [...belongs.keys()]),
    unclaimed,
  }
}

/** Waits for both, also when one rejects: the copy must not be made any more then. */
export async function both<A, B>(one: Promise<A>, other: Promise<B>): Promise<[A, B]> {
  await Promise.allSettled([one, other])
  return [await one, await other]
}
