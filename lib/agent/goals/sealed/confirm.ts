/**
 * Confirms in a sealed copy what passed in place, and tells which of the run's changes that covers.
 *
 * @module
 */
import { dirname } from 'node:path'
import type { FilesAtStart, SealStart, StoredSeal } from '../../check-files.js'
import type { GoalCheckContext, GoalSpec, GoalVerdict, KeptTests } from '../../goal.js'
import { areHashed } from '../../test-outcomes.js'
import { fileSystemTime, touchedFiles } from '../../workspace/touched-files.js'
import { listChanges } from '../compare-tests.js'
import { fileOf, isFile } from '../reports/test-names.js'
import { changedAnswers } from './asked-of-git.js'
import { groupFiles, isOfTests } from './checked-files.js'
import { deedsAgainst } from './deeds.js'
import { existingIn } from './file-states.js'
import { freshResults, rulesOfMake } from './make-results.js'
import { filesToLeaveOut, type LeftOutReason } from './new-files.js'
import { belonging } from './observe.js'
import { TextReader } from './read-texts.js'
import type { SealedCopy } from './sealed-copy.js'
import type { SealedVerdict } from './sealing.js'
import { scriptOf } from './surroundings.js'
import { restoreFiles } from './to-restore.js'
import { failed, leftOutNote, restoredNote } from './words.js'

/** A check that passed in place, and what is known of the start. */
export interface ToConfirm {
  readonly goal: GoalSpec
  readonly context: GoalCheckContext
  readonly seal: StoredSeal
  readonly start: SealStart
  readonly atStart: FilesAtStart
  readonly inPlace: GoalVerdict
}

/** The verdict of a check in a copy of the folder. @throws as `checkGoal` does. */
export async function confirmInCopy(
  copy: SealedCopy,
  { goal, context, seal, start, atStart, inPlace }: ToConfirm,
): Promise<SealedVerdict> {
  const { baseline, signal } = context
  const { root } = copy
  const left = await putAside(copy, goal, context, start)
  const { restored, lost } = await restoreFiles(copy, seal, context, atStart)
  if (lost.length > 0) return refused(failed(inPlace, modified(lost), ''))
  const answers = start.asked === undefined ? []
    : await changedAnswers(copy, await scriptOf(goal, root), start.asked)
  if (answers.length > 0)
    return refused(failed(inPlace, `tests changed: ${listChanges(answers)}`, ''))
  const since = await fileSystemTime(dirname(root))
  const verdict = await copy.check(goal, context.baselineTests)
  const touched = await touchedFiles(root, since, signal)
  if (!verdict.achieved) {
    const note = `${leftOutNote(left)}${restoredNote(restored)}`
    return refused(failed(verdict, verdict.reason, note))
  }
  const written = touched.changed.filter((path) => Object.hasOwn(baseline.files, path))
  if (written.length > 0) {
    const changes = written.map((path) => `${path} was changed while the check ran`)
    return refused(failed(verdict, `tests changed: ${listChanges(changes)}`, ''))
  }
  const problem = await deedsAgainst(verdict, root, start, baseline, atStart)
  if (problem !== null) return refused(failed(verdict, problem, ''))
  const { unclaimed: _, ...more } = await belonging(
    goal, baseline, root, touched, verdict.test_files, signal,
  )
  const late = await changedSince(more.files, atStart)
  if (late.length > 0) return refused(failed(verdict, modified(late), ''))
  const found = Object.keys(more.files).length === 0 ? null : more
  const failing = await newTests(copy, goal, context, left, verdict)
  if (failing !== null) return refused(failing, found)
  const changed = await atStart.changed()
  const read = touched.observes ? touched.read : null
  const { canaries } = verdict.assurance
  const assurance = { ...verdict.assurance, sealed: true, canaries }
  // People know the counts and the time of the folder itself.
  const achieved = { ...inPlace, assurance, output: verdict.output }
  return {
    verdict: achieved, found, unavailable: null,
    ...(changed !== null && { files: groupFiles(changed, { read, left, restored }) }),
  }
}

/** Takes out what the copy must not have, and gives what a runner would load by itself. */
async function putAside(
  copy: SealedCopy,
  goal: GoalSpec,
  { baseline, cwd, signal }: GoalCheckContext,
  start: SealStart,
): Promise<ReadonlyMap<string, LeftOutReason>> {
  const { root } = copy
  const kept = new Set(start.kept)
  const left = await filesToLeaveOut({ root, goal, baseline, kept, signal })
  await copy.putAside([...left.keys()])
  await copy.putAside(await existingIn(root, start.made ?? []))
  await copy.makeExecutable(start.executable ?? [])
  const rules = await rulesOfMake(Object.keys(baseline.files), new TextReader(root))
  await copy.makeOld(await freshResults(cwd, rules, start.since, signal))
  return left
}

/** The verdict when new tests fail; null when they pass, and when there are none. */
async function newTests(
  copy: SealedCopy,
  goal: GoalSpec,
  { baselineTests }: GoalCheckContext,
  left: ReadonlyMap<string, LeftOutReason>,
  before: GoalVerdict,
): Promise<GoalVerdict | null> {
  const isNew = (path: string): boolean => left.get(path) === 'new test'
  const mine = [...left].flatMap(([path, reason]) => (isOfTests(reason) ? [path] : []))
  if (goal.reporter === null || !mine.some(isNew)) return null
  await copy.putBack(mine)
  const { max_duration_ms: _, ...unlimited } = goal
  const verdict = await copy.check({ ...unlimited, allow_test_changes: true }, null)
  const [failing, all] = failingOf(verdict, baselineTests ?? before.tests, isNew)
  if (failing === 0) return null
  return failed(verdict, `${failing} of ${all} new tests fail`, '')
}

/** The files that were there at the start, with other content. */
async function changedSince(
  files: Readonly<Record<string, string>>,
  atStart: FilesAtStart,
): Promise<readonly string[]> {
  const changed: string[] = []
  for (const [path, hash] of Object.entries(files)) {
    const before = await atStart.hashOf(path)
    if (before != null && before !== hash) changed.push(path)
  }
  return changed
}

function refused(verdict: GoalVerdict, found: StoredSeal | null = null): SealedVerdict {
  return { verdict, found, unavailable: null }
}

function modified(paths: readonly string[]): string {
  return `tests changed: ${listChanges(paths.map((path) => `${path} was modified`))}`
}

/** How many new tests fail, of how many. What is hashed has no names: all tests count then. */
function failingOf(
  { counts, tests }: GoalVerdict,
  known: KeptTests | null,
  isNew: (path: string) => boolean,
): readonly [failing: number, all: number] {
  if (tests === null || areHashed(tests) || areHashed(known))
    return [counts?.failed ?? 0, counts?.total ?? 0]
  const all = Object.entries(tests).filter(
    // A file that does not load has the name of the file alone.
    ([name]) => !Object.hasOwn(known ?? {}, name) && isNew(isFile(name) ? name : fileOf(name)),
  )
  return [all.filter(([, outcome]) => outcome === 'fail').length, all.length]
}
