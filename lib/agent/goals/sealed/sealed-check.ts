/**
 * Checks in a sealed copy: what a goal must pass before it counts as achieved.
 *
 * 1. The copy is made for the check alone and removed with it. It has the folder's files as they
 *    are, but no new ones that a runner would load by itself, and no hooks or settings of git.
 * 2. What belongs to the check must be in it as at the start of the run, before and after the
 *    command. So must be the dependencies, unless the request lets the run change them.
 * 3. No process of the run is alive, and commands run in the strongest executor there is.
 * 4. New tests run afterwards, in a second pass that can only add demands.
 * 5. Held-out tests, of runs that have them, are evaluated last, in a copy of their own.
 * 6. The first check of a run is such a check; what it is seen to read decides what belongs to it.
 *    Where the copy cannot run the suite as such, the check runs in place as well, and if that
 *    tells something else, there are no sealed checks for the run.
 *
 * @module
 */
import { dirname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { describeError } from '../../../internal/errors.js'
import type {
  AskedOfGit, Dependencies, FilesAtStart, SealStart, StoredSeal,
} from '../../check-files.js'
import type { SealedMode } from '../../events.js'
import type { Executor, IsolatedCopy } from '../../executor.js'
import { mayPass, onOwnFiles } from '../../exhaustion.js'
import type {
  GoalBaseline, GoalCheckContext, GoalSpec, GoalVerdict, KeptTests,
} from '../../goal.js'
import {
  captureDependencies, compareDependencies, type DependencyComparison,
} from '../../workspace/dependencies.js'
import type { TouchedFiles } from '../../workspace/find-touched.js'
import { isInside } from '../../workspace/paths.js'
import { fileSystemTime, touchedFiles } from '../../workspace/touched-files.js'
import { checkGoal, patienceOf } from '../check.js'
import { commandGoal } from '../command-goal.js'
import { checkHeldOut, NONE_LEFT } from '../holdout/check-held-out.js'
import { MAX_EVALUATIONS, type HoldoutRun } from '../holdout/held-out-tests.js'
import { hashFiles } from '../protected-files.js'
import { listChanges } from '../compare-tests.js'
import { areHashed } from '../../test-outcomes.js'
import { fileOf, isFile } from '../reports/test-names.js'
import { askGit, changedAnswers } from './asked-of-git.js'
import { whatBelongs, type Belonging } from './belongs.js'
import { couldNotRun } from './could-run.js'
import { deedsAgainst } from './deeds.js'
import { freshResults, rulesOfMake } from './make-results.js'
import { filesToLeaveOut, type LeftOutReason } from './new-files.js'
import { TextReader } from './read-texts.js'
import { SealedCopy } from './sealed-copy.js'
import { executablesIn, existingIn, missingIn, timesOf } from './file-states.js'
import { changesAround, dataIn, scriptOf, surroundingsOf } from './surroundings.js'
import type { RunChecks, SealedVerdict } from './sealing.js'
import { restorableData, restoreFiles } from './to-restore.js'
import {
  DEPENDENCY_RULE, failed, HELD_OUT, leftOutNote, required, restoredNote,
} from './words.js'

/** Where copies are made. */
export interface CopyFolders {
  create(runId: string, cwd: string, options: CopyOptions): Promise<IsolatedCopy>
  /** Resolves before all of its files are gone: a verdict does not wait for that. */
  removeSoon(runId: string): Promise<void>
  /** Resolves when they are gone. */
  remove(runId: string): Promise<void>
}

interface CopyOptions {
  /** May large folders of packages be mounted read-only? */
  readonly mounts: boolean
  /** Are they copied all the same? */
  readonly whole: boolean
  /** What is mounted into the original. */
  readonly mounted: IsolatedCopy['readOnly']
  /** Relative paths that the copy does not have. */
  readonly without: readonly string[]
  /** For a sealed check: nothing in it was read yet, and git finds neither hooks nor settings. */
  readonly sealed: true
  readonly unread: true
  readonly signal: AbortSignal
}

/** What sealed checks of one run need. */
export interface SealedChecksOptions {
  readonly mode: Exclude<SealedMode, 'off'>
  /** Where the copies are made, each by the id of its run. */
  readonly folders: () => Promise<CopyFolders>
  /** Runs the commands; the strongest one at hand. */
  readonly executor: () => Promise<Executor>
  readonly runId: string
  /** May the goal be met with other dependencies than at the start? */
  readonly allowsDependencyChanges: boolean
  /** Folders that commands do not see. */
  readonly closed: readonly string[]
  /** Real path of the packages that are found above a folder; null for none. */
  readonly above: (cwd: string) => Promise<string | null>
  /** Of a run that works in a copy: what is mounted into that. */
  readonly mounted: IsolatedCopy['readOnly']
  /** Null: there are no held-out tests. */
  readonly holdout: HoldoutRun | null
}

/** The sealed checks of one run; see the comment of this file. */
export class SealedChecks implements RunChecks {
  readonly #options: SealedChecksOptions
  /** Did the last copy have mounted packages? */
  #isMounted = false
  /** Do copies get all packages, because the check did not pass where they were mounted? */
  #isWhole = false

  constructor(options: SealedChecksOptions) {
    this.#options = options
  }

  /**
   * The first check of a run, before anything was changed.
   *
   * @throws as {@link checkGoal} does; {@link GoalCheckError} when sealed checks are required and
   * cannot be made.
   */
  async first(goal: GoalSpec, context: GoalCheckContext): Promise<SealedVerdict> {
    const { cwd, signal } = context
    let sealed: Observed
    let dependencies: Dependencies | null
    try {
      ;[sealed, dependencies] = await both(
        this.#inCopies(context, (copy) => this.#observe(goal, context, copy), [], (found) =>
          couldNotRun(found.verdict, goal, found.root) !== null,
        ),
        this.#captureDependencies(cwd, signal),
      )
    } catch (error) {
      signal.throwIfAborted()
      if (mayPass(error)) throw error
      return await this.#unsealed(goal, context, describeError(error))
    }
    const { asked, verdict, since, touched, kept, made, unclaimed } = sealed
    const paths = [...Object.keys(context.baseline.files), ...Object.keys(sealed.files)]
    const start = {
      since, kept, dependencies, observed: touched.observes, unavailable: null,
      ...(made.length <= MAX_PATHS && { made }),
      ...(unclaimed.length > 0 && unclaimed.length <= MAX_PATHS && { unclaimed }),
      ...(await timesOf(cwd, unclaimed.slice(0, MAX_PATHS))),
      ...(verdict.deeds.length > 0 && { deeds: verdict.deeds }),
      ...(asked !== undefined && { asked }),
      executable: await executablesIn(cwd, paths),
      ...(await surroundingsOf(goal, cwd, paths)),
    }
    const { files, reasons } = sealed
    const found: StoredSeal = { files, reasons, start }
    const cause = couldNotRun(verdict, goal, sealed.root)
    const passed = { verdict, found, unavailable: null }
    if (cause === null && goal.max_duration_ms === undefined)
      return await this.#heldOut(goal, context, start, passed)
    const inPlace = await checkGoal(goal, context)
    // Without tests, two failures are the same only where both lack something.
    const isAlike = inPlace.tests !== null || couldNotRun(inPlace, goal, cwd) !== null
    if (cause === null || (isAlike && isSame(inPlace, verdict)))
      return await this.#heldOut(goal, context, start, { ...passed, verdict: inPlace })
    return this.#withoutSeal(inPlace, cause, { ...found, start: { ...start, unavailable: cause } })
  }

  /** A check in place where no copy can be made. */
  async #unsealed(
    goal: GoalSpec,
    context: GoalCheckContext,
    cause: string,
  ): Promise<SealedVerdict> {
    const start: SealStart = {
      since: 0, kept: [], dependencies: null, observed: false, unavailable: cause,
    }
    const found = { files: {}, reasons: {}, start }
    return this.#withoutSeal(await checkGoal(goal, context), cause, found)
  }

  #withoutSeal(verdict: GoalVerdict, cause: string, found: StoredSeal): SealedVerdict {
    if (this.#options.mode === 'require') throw required(cause)
    return { verdict, found, unavailable: cause }
  }

  /**
   * A later check: in place, and when that is passed, in a sealed copy.
   *
   * @throws as {@link checkGoal} does.
   */
  async later(
    goal: GoalSpec,
    context: GoalCheckContext,
    seal: StoredSeal,
    atStart: FilesAtStart,
  ): Promise<SealedVerdict> {
    const { start } = seal
    const isSealed = start?.unavailable === null
    const data = isSealed ? await restorableData(seal, context.baseline, atStart) : new Set()
    const kept = Object.entries(context.baseline.files).filter(([path]) => !data.has(path))
    const verdict = await checkGoal(goal, {
      ...context, baseline: { files: Object.fromEntries(kept) },
    })
    if (!verdict.achieved) return result(verdict)
    const changes = start === undefined ? [] : await changesAround(context, start)
    if (changes.length > 0) {
      const reason = `tests changed: ${listChanges(changes)}`
      return result({ ...verdict, achieved: false, reason })
    }
    if (start === undefined || start.unavailable !== null) {
      const cause = start?.unavailable ?? 'the first check was not made in one'
      // Of a fork: its source had none.
      if (this.#options.mode === 'require') throw required(cause)
      return result(verdict)
    }
    await context.executor.killMarked(context.mark)
    const sealed = await this.#sealed(goal, context, seal, start, atStart, verdict)
    return await this.#heldOut(goal, context, start, sealed, { seal, atStart })
  }

  async #sealed(
    goal: GoalSpec,
    context: GoalCheckContext,
    seal: StoredSeal,
    start: SealStart,
    atStart: FilesAtStart,
    verdict: GoalVerdict,
  ): Promise<SealedVerdict> {
    const { signal } = context
    try {
      const { changes, caches } = await this.#compareDependencies(context, start)
      if (changes.length > 0) {
        const text = `dependencies changed: ${listChanges(changes)}; ${DEPENDENCY_RULE}`
        return result(failed(verdict, text, ''))
      }
      const work = async (copy: SealedCopy): Promise<SealedVerdict> =>
        await this.#confirm(goal, context, copy, seal, start, atStart, verdict)
      return await this.#inCopies(context, work, caches, (found) => !found.verdict.achieved)
    } catch (error) {
      signal.throwIfAborted()
      if (mayPass(error)) throw error
      const text = `no sealed check could be made: ${describeError(error)}`
      return result(failed(verdict, text, ''))
    }
  }

  async #captureDependencies(cwd: string, signal: AbortSignal): Promise<Dependencies> {
    const { above, closed } = this.#options
    return await captureDependencies(cwd, { closed, above: await above(cwd), signal })
  }

  async #compareDependencies(
    { cwd, signal }: GoalCheckContext,
    { dependencies }: SealStart,
  ): Promise<DependencyComparison> {
    const { above, allowsDependencyChanges, closed } = this.#options
    if (dependencies === null) return { changes: [], caches: [] }
    const found = await compareDependencies(cwd, dependencies, {
      closed, above: await above(cwd), signal,
    })
    return allowsDependencyChanges ? { ...found, changes: [] } : found
  }

  async #observe(goal: GoalSpec, context: GoalCheckContext, copy: SealedCopy): Promise<Observed> {
    const { baseline, signal } = context
    const { root } = copy
    const since = await fileSystemTime(dirname(root))
    const verdict = await copy.check(goal, context.baselineTests)
    // Before anything else reads a file of the copy.
    const touched = await touchedFiles(root, since, signal)
    const [kept, found] = await both(
      filesToLeaveOut({ root, goal, baseline, kept: new Set(), signal }),
      belonging(goal, baseline, root, touched, verdict.test_files, signal),
    )
    const made = await missingIn(context.cwd, touched.changed)
    const ofCheck = new Set(made)
    const before = [...kept.keys()].filter((path) => !ofCheck.has(path))
    const asked = await askGit(copy, await scriptOf(goal, root))
    return { root, asked, verdict, since: since.ms, touched, made, kept: before, ...found }
  }

  async #confirm(
    goal: GoalSpec,
    context: GoalCheckContext,
    copy: SealedCopy,
    seal: StoredSeal,
    start: SealStart,
    atStart: FilesAtStart,
    inPlace: GoalVerdict,
  ): Promise<SealedVerdict> {
    const { baseline, signal } = context
    const { root } = copy
    const left = await this.#putAside(goal, context, copy, start)
    const { restored, lost } = await restoreFiles(copy, seal, context, atStart)
    if (lost.length > 0) return result(failed(inPlace, modified(lost), ''))
    const answers = start.asked === undefined ? []
      : await changedAnswers(copy, await scriptOf(goal, root), start.asked)
    if (answers.length > 0) {
      return result(failed(inPlace, `tests changed: ${listChanges(answers)}`, ''))
    }
    const since = await fileSystemTime(dirname(root))
    const verdict = await copy.check(goal, context.baselineTests)
    const touched = await touchedFiles(root, since, signal)
    if (!verdict.achieved) {
      const note = `${leftOutNote(left)}${restoredNote(restored)}`
      return result(failed(verdict, verdict.reason, note))
    }
    const written = touched.changed.filter((path) => Object.hasOwn(baseline.files, path))
    if (written.length > 0) {
      const changes = written.map((path) => `${path} was changed while the check ran`)
      return result(failed(verdict, `tests changed: ${listChanges(changes)}`, ''))
    }
    const problem = await deedsAgainst(verdict, root, start, baseline, atStart)
    if (problem !== null) return result(failed(verdict, problem, ''))
    const { unclaimed: _, ...more } = await belonging(
      goal, baseline, root, touched, verdict.test_files, signal,
    )
    const late = await changedSince(more.files, atStart)
    if (late.length > 0) return result(failed(verdict, modified(late), ''))
    const found = Object.keys(more.files).length === 0 ? null : more
    const failing = await this.#newTests(goal, context, copy, left, verdict)
    if (failing !== null) return result(failing, found)
    const { canaries } = verdict.assurance
    const assurance = { ...verdict.assurance, sealed: true, canaries }
    // People know the counts and the time of the folder itself.
    return result({ ...inPlace, assurance, output: verdict.output }, found)
  }

  /** Takes out what the copy must not have, and gives what a runner would load by itself. */
  async #putAside(
    goal: GoalSpec,
    { baseline, cwd, signal }: GoalCheckContext,
    copy: SealedCopy,
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
  async #newTests(
    goal: GoalSpec,
    { baselineTests }: GoalCheckContext,
    copy: SealedCopy,
    left: ReadonlyMap<string, LeftOutReason>,
    before: GoalVerdict,
  ): Promise<GoalVerdict | null> {
    const isNew = (path: string): boolean => left.get(path) === 'new test'
    const mine = [...left.keys()].filter(
      (path) => isNew(path) || left.get(path) === 'helper of tests',
    )
    if (goal.reporter === null || !mine.some(isNew)) return null
    await copy.putBack(mine)
    const verdict = await copy.check({ ...goal, allow_test_changes: true }, null)
    const [failing, all] = failingOf(verdict, baselineTests ?? before.tests, isNew)
    if (failing === 0) return null
    return failed(verdict, `${failing} of ${all} new tests fail`, '')
  }

  /** What has passed so far must pass the held-out tests as well. */
  async #heldOut(
    goal: GoalSpec,
    context: GoalCheckContext,
    start: SealStart,
    passed: SealedVerdict,
    /** Null before the run has changed anything. */
    changed: { readonly seal: StoredSeal; readonly atStart: FilesAtStart } | null = null,
  ): Promise<SealedVerdict> {
    const { holdout } = this.#options
    const { verdict } = passed
    if (holdout === null || !verdict.achieved) return passed
    const { baseline, signal } = context
    const work = async (copy: SealedCopy): Promise<string | null> => {
      const kept = new Set(start.kept)
      const left = await filesToLeaveOut({ root: copy.root, goal, baseline, kept, signal })
      await copy.putAside([...left.keys()])
      if (changed !== null) await restoreFiles(copy, changed.seal, context, changed.atStart)
      const checkWith = async (command: string, hashes: GoalBaseline['files']) => {
        // The command may bring settings of its own.
        const held = await commandGoal({ name: 'shell', command }, copy.root)
        const verdict = await copy.check({ ...held, sealed: [] }, null, hashes)
        if (changed === null) return verdict
        const files = { ...baseline.files, ...hashes }
        const problem = await deedsAgainst(
          verdict, copy.root, start, { files }, changed.atStart,
        )
        return problem === null ? verdict : { ...verdict, achieved: false }
      }
      const held = { root: copy.root, checkWith }
      return await checkHeldOut(holdout, held, patienceOf(context), signal)
    }
    const isOver = holdout.evaluations() >= MAX_EVALUATIONS
    const { caches } = await this.#compareDependencies(context, start)
    // A copy of its own: nothing that code under test did in the one before counts.
    const problem = isOver ? NONE_LEFT : await this.#inCopy(context, work, caches, true)
    const assurance = { ...verdict.assurance, sealed: true, holdout: problem === null }
    if (problem === null) return { ...passed, verdict: { ...verdict, assurance } }
    const failing = { achieved: false, reason: problem, assurance, output: HELD_OUT }
    return { ...passed, verdict: { ...verdict, ...failing } }
  }

  /**
   * Works in a copy, and if that fails where packages are mounted read-only, once more in a copy of
   * the packages as well: a check may write to them. Where there is no room for that, the failure
   * stands.
   */
  async #inCopies<T>(
    context: GoalCheckContext,
    work: (copy: SealedCopy) => Promise<T>,
    caches: readonly string[],
    hasFailed: (result: T) => boolean,
  ): Promise<T> {
    const result = await this.#inCopy(context, work, caches)
    if (!this.#isMounted || !hasFailed(result)) return result
    this.#isWhole = true
    try {
      return await this.#inCopy(context, work, caches)
    } catch (error) {
      context.signal.throwIfAborted()
      if (mayPass(error)) throw error
      return result
    }
  }

  /**
   * Makes a copy, and removes it when `work` settles; does that again, in another copy, while the
   * machine is at fault: what was checked before is not.
   *
   * @param caches paths in folders of dependencies that the copy must not have
   * @param isSecret whether the run must not find its files, not even during removal
   */
  async #inCopy<T>(
    context: GoalCheckContext,
    work: (copy: SealedCopy) => Promise<T>,
    caches: readonly string[] = [],
    isSecret = false,
  ): Promise<T> {
    return await patienceOf(context)(() => this.#inCopyOnce(context, work, caches, isSecret))
  }

  async #inCopyOnce<T>(
    context: GoalCheckContext,
    work: (copy: SealedCopy) => Promise<T>,
    caches: readonly string[],
    isSecret: boolean,
  ): Promise<T> {
    const { folders, mounted, runId } = this.#options
    const executor = await this.#options.executor()
    const mounts = (await executor.mountsFolders?.()) ?? false
    const all = await folders()
    const made = await all.create(runId, context.cwd, {
      mounts, whole: this.#isWhole, mounted: mounts ? mounted : [], without: caches,
      signal: context.signal, unread: true, sealed: true,
    })
    this.#isMounted = made.readOnly.some(({ from }) => isInside(from, context.cwd))
    try {
      return await onOwnFiles('the copy for a check cannot be used', async () =>
        await work(new SealedCopy(made, executor, context)),
      )
    } finally {
      await executor.killMarked(context.mark).catch(() => 0)
      // What cannot be removed now, the next check or a sweep removes.
      const removing = isSecret
        ? patienceOf(context)(() => all.remove(runId))
        : all.removeSoon(runId)
      await removing.catch(() => undefined)
    }
  }
}

/** Paths of one kind that are kept of a first check; more of them are not. */
const MAX_PATHS = 2_000

interface Observed extends StoredSeal, Pick<Belonging, 'unclaimed'> {
  readonly root: string
  readonly verdict: GoalVerdict
  readonly asked: AskedOfGit | undefined
  readonly since: number
  readonly touched: TouchedFiles
  readonly kept: readonly string[]
  readonly made: readonly string[]
}

/** What belongs to the check beyond what is known, with its hashes. */
async function belonging(
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

function result(verdict: GoalVerdict, found: StoredSeal | null = null): SealedVerdict {
  return { verdict, found, unavailable: null }
}

function modified(paths: readonly string[]): string {
  return `tests changed: ${listChanges(paths.map((path) => `${path} was modified`))}`
}

function isSame(one: GoalVerdict, other: GoalVerdict): boolean {
  return one.achieved === other.achieved && isDeepStrictEqual(one.tests, other.tests)
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

/** Waits for both, also when one rejects: the copy must not be made any more then. */
async function both<A, B>(one: Promise<A>, other: Promise<B>): Promise<[A, B]> {
  await Promise.allSettled([one, other])
  return [await one, await other]
}
