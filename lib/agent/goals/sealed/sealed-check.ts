/**
 * Checks in a sealed copy: what a goal must pass before it counts as achieved.
 *
 * 1. The copy is made for the check alone and removed with it. It has the start of the run with its
 *    changes to code, and no hooks or settings of git.
 * 2. What the check owns is in it as at the start, before and after the command. So must be the
 *    dependencies, unless the request lets the run change them.
 * 3. No process of the run is alive, and commands run in the strongest executor there is.
 * 4. Tests that the run has written or edited are not in it: they had to pass in place.
 * 5. Held-out tests, of runs that have them, are evaluated last, in a copy of their own.
 * 6. The first check of a run is made in a copy where sealed checks are required. Otherwise no copy
 *    is made before a check passes in place. The first one that then fails in a copy is followed by
 *    a check of the stored files of the start in one.
 * 7. Where that copy cannot run the suite as such, but the folder itself could at the start, there
 *    are no sealed checks for the run.
 * 8. In a folder in which an earlier run has left changes, a copy of the start comes first. Then
 *    the folder is checked as by a later check: what is left in files of the check meets no goal.
 *
 * @module
 */
import { isDeepStrictEqual } from 'node:util'
import { describeError } from '../../../internal/errors.js'
import type {
  AskedOfGit, Dependencies, FilesAtStart, PendingSeal, SealStart, StoredSeal,
} from '../../check-files.js'
import { GoalCheckError } from '../../errors.js'
import type { SealedMode } from '../../events.js'
import { mayPass } from '../../exhaustion.js'
import type { GoalBaseline, GoalCheckContext, GoalSpec, GoalVerdict } from '../../goal.js'
import type { LeftOut } from '../../tree.js'
import {
  captureDependencies, compareDependencies, type DependencyComparison,
} from '../../workspace/dependencies.js'
import { pathsLeftOut } from '../../workspace/left-out.js'
import { checkGoal, patienceOf } from '../check.js'
import { commandGoal } from '../command-goal.js'
import { listChanges } from '../compare-tests.js'
import { checkHeldOut, NONE_LEFT } from '../holdout/check-held-out.js'
import { MAX_EVALUATIONS, type HoldoutRun } from '../holdout/held-out-tests.js'
import { askGit, asksForFiles } from './asked-of-git.js'
import { CheckCopies, type CheckCopiesOptions } from './check-copies.js'
import { confirmInCopy, type Confirmed, type ToConfirm } from './confirm.js'
import { couldNotRun } from './could-run.js'
import { deedsAgainst } from './deeds.js'
import { changedOf, statesOf, timesOf } from './file-states.js'
import { listFiles } from './list-files.js'
import { isOfTests } from './owners.js'
import { ownOf, putBack, type Start } from './put-back.js'
import { isInstalled, type SealedCopy } from './sealed-copy.js'
import type { RunChecks, SealedVerdict } from './sealing.js'
import { checkStart } from './start-in-copy.js'
import { changesAround, dataIn, scriptOf, surroundingsOf } from './surroundings.js'
import { DEPENDENCY_RULE, failed, HELD_OUT, required } from './words.js'

/** What sealed checks of one run need. */
export interface SealedChecksOptions extends CheckCopiesOptions {
  readonly mode: Exclude<SealedMode, 'off'>
  /** May the goal be met with other dependencies than at the start? */
  readonly allowsDependencyChanges: boolean
  /** Files of the check that count as the run's, as globs. */
  readonly mayChange: readonly string[]
  /** Folders that commands do not see. */
  readonly closed: readonly string[]
  /** Real path of the packages that are found above a folder; null for none. */
  readonly above: (cwd: string) => Promise<string | null>
  /** Null: there are no held-out tests. */
  readonly holdout: HoldoutRun | null
}

/** The sealed checks of one run; see the comment of this file. */
export class SealedChecks implements RunChecks {
  readonly #options: SealedChecksOptions
  readonly #copies: CheckCopies

  constructor(options: SealedChecksOptions) {
    this.#options = options
    this.#copies = new CheckCopies(options)
  }

  /**
   * The first check of a run, before anything was changed: in a copy, unless that can wait.
   *
   * @param stored see {@link RunChecks}
   * @throws as {@link checkGoal} does; {@link GoalCheckError} when sealed checks are required and
   * cannot be made.
   */
  async first(
    goal: GoalSpec,
    context: GoalCheckContext,
    stored: { readonly left_out: readonly LeftOut[] } | null,
  ): Promise<SealedVerdict> {
    const { cwd } = context
    const known = await knownFiles(context, stored)
    if (known === null)
      return this.#unsealed(await checkGoal(goal, context), 'the files of the start are too many')
    const waits = stored !== null && this.#options.mode === 'prefer'
    const since = Date.now() - CLOCK_MS
    // What git told at the start, a copy of it would not tell later.
    if (!waits || asksForFiles(await scriptOf(goal, cwd)))
      return await this.#firstInCopy(goal, context, { since, known }, null)
    const verdict = await checkGoal(goal, context)
    if (verdict.achieved) return await this.#firstInCopy(goal, context, { since, known }, verdict)
    const start = await orUnavailable(context, async () => {
      // Whether a copy can be made must not depend on the run.
      await this.#copies.assertPossible(cwd)
      return await this.#startOf(goal, context, verdict, since)
    })
    if (start instanceof Unavailable) return this.#unsealed(verdict, start.cause)
    const pending = { lacks: couldNotRun(verdict, goal, cwd) }
    return result(verdict, sealOf({ ...start, ...known, pending }))
  }

  /**
   * The first check in a folder in which an earlier run has left changes.
   *
   * @param stored see {@link RunChecks}
   * @throws as {@link SealedChecks.first} does.
   */
  async firstAfter(
    goal: GoalSpec,
    context: GoalCheckContext,
    stored: { readonly left_out: readonly LeftOut[] } | null,
    atStart: FilesAtStart,
  ): Promise<SealedVerdict> {
    const since = Date.now() - CLOCK_MS
    const known = await knownFiles(context, stored)
    const seen = known && (await orUnavailable(context, async () => {
      const found = await checkStart(this.#copies, goal, context, atStart)
      const { asked, silencing, verdict } = found
      const start = {
        ...(await this.#startOf(goal, context, verdict, since)), ...known,
        ...(silencing !== null && { silencing }), ...(asked !== undefined && { asked }),
      }
      return { ...found, start }
    }))
    // Without a copy of the start, the folder as it is counts.
    if (seen === null) return await this.first(goal, context, stored)
    if (seen instanceof Unavailable)
      return this.#unsealed(await checkGoal(goal, context), seen.cause)
    if (seen.cause !== null) {
      // Nothing shows how the start fared in place, but the folder as it is can be asked.
      const now = await this.#firstInCopy(goal, context, { since, known: known! }, null)
      if (now.unavailable !== null) return now
    }
    const installed = Object.entries(context.baseline.files).filter(([path]) => isInstalled(path))
    const baseline = { files: { ...seen.files, ...Object.fromEntries(installed) } }
    const { tests } = seen.verdict
    const later = { ...context, baseline, baselineTests: tests, isFirst: false }
    const found = sealOf(seen.start)
    const checked = await this.later(goal, later, found, atStart)
    return { ...checked, found, atStart: { baseline, tests } }
  }

  /** What only the start shows. */
  async #startOf(
    goal: GoalSpec,
    { cwd, signal }: GoalCheckContext,
    { deeds, test_files: tests }: GoalVerdict,
    since: number,
  ): Promise<SealStart> {
    const script = await scriptOf(goal, cwd)
    const files = (await listFiles(cwd, signal)).map(({ path }) => path)
    return {
      since,
      unavailable: null,
      dependencies: await this.#captureDependencies(cwd, signal),
      ...(await surroundingsOf(goal, cwd, files)),
      ...(await timesOf(cwd, await dataIn(script, cwd))),
      ...(deeds.length > 0 && { deeds }),
      ...oddTests(tests),
    }
  }

  async #firstInCopy(
    goal: GoalSpec,
    context: GoalCheckContext,
    { since, known }: { readonly since: number; readonly known: KnownFiles },
    inPlaceBefore: GoalVerdict | null,
  ): Promise<SealedVerdict> {
    const { baselineTests, cwd } = context
    const seen = await orUnavailable(context, async () => {
      const work = async (copy: SealedCopy): Promise<InCopy> => {
        const verdict = await copy.check(goal, baselineTests)
        const cause = couldNotRun(verdict, goal, copy.root)
        const asked = await askGit(copy, await scriptOf(goal, copy.root))
        return { verdict: copy.withoutPlace(verdict), cause, asked }
      }
      const hasFailed = ({ cause }: InCopy): boolean => cause !== null
      const found = await this.#copies.withPackages(context, work, [], hasFailed)
      return { ...found, start: await this.#startOf(goal, context, found.verdict, since) }
    })
    if (seen instanceof Unavailable)
      return this.#unsealed(inPlaceBefore ?? (await checkGoal(goal, context)), seen.cause)
    const { asked, cause, verdict } = seen
    const start = { ...seen.start, ...known, ...(asked !== undefined && { asked }) }
    const passed = result(verdict, sealOf(start))
    const given = { goal, context, start, mayChange: [] }
    if (cause === null && goal.max_duration_ms === undefined)
      return await this.#heldOut(given, passed)
    const inPlace = inPlaceBefore ?? (await checkGoal(goal, context))
    // Without tests, two failures are the same only where both lack something.
    const isAlike = inPlace.tests !== null || couldNotRun(inPlace, goal, cwd) !== null
    if (cause === null || (isAlike && isSame(inPlace, verdict)))
      return await this.#heldOut(given, { ...passed, verdict: inPlace })
    return this.#withoutSeal(inPlace, { ...start, unavailable: cause }, cause)
  }

  /** The verdict of a check in place where no copy can be made. */
  #unsealed(verdict: GoalVerdict, cause: string): SealedVerdict {
    return this.#withoutSeal(verdict, { since: 0, dependencies: null, unavailable: cause }, cause)
  }

  #withoutSeal(verdict: GoalVerdict, start: SealStart, cause: string): SealedVerdict {
    if (this.#options.mode === 'require') throw required(cause)
    return { verdict, found: sealOf(start), unavailable: cause }
  }

  /**
   * A later check: in place with all tests as the run left them, and when that is passed, in a
   * sealed copy.
   *
   * @throws as {@link checkGoal} does.
   */
  async later(
    goal: GoalSpec,
    context: GoalCheckContext,
    { start }: StoredSeal,
    atStart: FilesAtStart,
  ): Promise<SealedVerdict> {
    if (start === undefined || start.unavailable !== null) {
      const verdict = await checkGoal(goal, context)
      const cause = start?.unavailable ?? 'the first check was not made in one'
      // Of a fork: its source had none.
      if (verdict.achieved && this.#options.mode === 'require') throw required(cause)
      return result(verdict)
    }
    // Without checkpoints, nothing can be put back.
    const isLenient = start.files === undefined
    const lenient = isLenient ? { ...goal, allow_test_changes: true } : goal
    const verdict = await checkGoal(lenient, context)
    if (!verdict.achieved) return result(verdict)
    const changes = await changesAround(context, start)
    if (changes.length > 0) {
      const reason = `tests changed: ${listChanges(changes)}`
      return result({ ...verdict, achieved: false, reason })
    }
    await context.executor.killMarked(context.mark)
    const { mayChange } = this.#options
    const sealed = await this.#orRefused(context, verdict, async () => {
      const { changes, caches } = await this.#compareDependencies(context, start)
      if (changes.length > 0) {
        const text = `dependencies changed: ${listChanges(changes)}; ${DEPENDENCY_RULE}`
        return result(failed(verdict, text, ''))
      }
      const passed = { goal, context, start, atStart, mayChange, caches, inPlace: verdict }
      const confirmed = await this.#sealed(passed)
      const { hasFailed, unavailable } = confirmed
      if (unavailable !== null && this.#options.mode === 'require')
        return result(failed(verdict, unavailable, ''))
      const { pending } = start
      const isOpen = hasFailed && pending !== undefined
      return isOpen ? await this.#afterStart(passed, pending, confirmed) : confirmed
    })
    return await this.#heldOut({ goal, context, start, atStart, mayChange }, sealed)
  }

  /** Refuses what passed in place if no copy can be made: the run may be the reason. */
  async #orRefused(
    { signal }: GoalCheckContext,
    verdict: GoalVerdict,
    work: () => Promise<SealedVerdict>,
  ): Promise<SealedVerdict> {
    try {
      return await work()
    } catch (error) {
      signal.throwIfAborted()
      if (mayPass(error) || error instanceof GoalCheckError) throw error
      const text = `no sealed check could be made: ${describeError(error)}`
      return result(failed(verdict, text, ''))
    }
  }

  async #sealed(passed: Passed): Promise<Confirmed> {
    const work = (copy: SealedCopy): Promise<Confirmed> => confirmInCopy(copy, passed)
    const hasFailed = ({ verdict }: Confirmed): boolean => !verdict.achieved
    return await this.#copies.withPackages(passed.context, work, passed.caches, hasFailed)
  }

  /**
   * The first time that a check fails in a copy only: a copy of the start tells whether that is
   * because of the work, or because no copy can run the suite.
   */
  async #afterStart(
    passed: Passed,
    pending: PendingSeal,
    confirmed: SealedVerdict,
  ): Promise<SealedVerdict> {
    const { goal, context } = passed
    const { pending: _, ...start } = passed.start
    const cause = await this.#startLacks(passed, pending)
    if (cause === null) return { ...confirmed, found: sealOf(start) }
    const verdict = await checkGoal(goal, context)
    return this.#withoutSeal(verdict, { ...start, unavailable: cause }, cause)
  }

  /** Why a copy of the start cannot run the suite as the folder could; null if it can. */
  async #startLacks(
    { goal, context, start, atStart, caches }: Passed,
    pending: PendingSeal,
  ): Promise<string | null> {
    const { baselineTests, cwd } = context
    const rewind = await atStart.rewind()
    if (rewind === null) return 'the files of the start are not known'
    const { leftOut: left } = rewind
    const states = start.leftOut ?? {}
    const gone = Object.keys(states).filter((path) => left?.includes(path) === false)
    const [lost] = [...rewind.lost, ...gone]
    if (lost !== undefined) return `${lost} was changed, and was not stored at the start`
    if (left === null) throw new Error('too much in the folder is left out of checkpoints')
    const added = left.filter((path) => !Object.hasOwn(states, path))
    const work = async (copy: SealedCopy): Promise<InCopy> => {
      await rewind.complete(copy.root)
      await copy.setTimes(start.times ?? {})
      const verdict = await copy.check(goal, null)
      return { verdict, cause: couldNotRun(verdict, goal, copy.root), asked: undefined }
    }
    const absent = [...caches, ...rewind.without, ...added]
    const { verdict, cause } = await this.#copies.withPackages(
      context, work, absent, (seen) => seen.cause !== null,
    )
    if (verdict.achieved) {
      const [changed] = await changedOf(cwd, states, Object.keys(states))
      if (changed !== undefined)
        throw new Error(`with ${changed} as it is now, the files of the start pass`)
      return 'the check failed at the start, but passes in a copy of it'
    }
    // As in place: without tests, two failures are the same only where both lack something.
    const isAlike = verdict.tests !== null || pending.lacks !== null
    const isSameAsBefore = isAlike && isDeepStrictEqual(verdict.tests, baselineTests)
    return isSameAsBefore ? null : cause
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

  /** What has passed so far must pass the held-out tests as well. */
  async #heldOut(
    /** Without the files of the start: nothing was changed yet. */
    { atStart, ...given }: Omit<Start, 'atStart'> & Partial<Pick<Start, 'atStart'>>,
    passed: SealedVerdict,
  ): Promise<SealedVerdict> {
    const { holdout } = this.#options
    const { verdict } = passed
    if (holdout === null || !verdict.achieved) return passed
    const { context, start } = given
    const { baseline, signal } = context
    const work = async (copy: SealedCopy): Promise<string | null> => {
      const put = atStart === undefined ? null : await putBack(copy, { ...given, atStart })
      const own = new Set(put === null ? [] : ownOf(put.files, baseline))
      const checkWith = async (command: string, hashes: GoalBaseline['files']) => {
        // The command may bring settings of its own.
        const held = await commandGoal({ name: 'shell', command }, copy.root)
        const verdict = await copy.check({ ...held, sealed: [] }, null, { hashes, own })
        if (atStart === undefined) return verdict
        const files = { ...baseline.files, ...hashes }
        const problem = await deedsAgainst(verdict, copy.root, start, { files }, atStart)
        return problem === null ? verdict : { ...verdict, achieved: false }
      }
      const held = { root: copy.root, checkWith }
      return await checkHeldOut(holdout, held, patienceOf(context), signal)
    }
    const isOver = holdout.evaluations() >= MAX_EVALUATIONS
    const { caches } = await this.#compareDependencies(context, start)
    // A copy of its own: nothing that code under test did in the one before counts.
    const problem = isOver ? NONE_LEFT : await this.#copies.once(context, work, caches, true)
    const assurance = { ...verdict.assurance, sealed: true, holdout: problem === null }
    if (problem === null) return { ...passed, verdict: { ...verdict, assurance } }
    const failing = { achieved: false, reason: problem, assurance, output: HELD_OUT }
    return { ...passed, verdict: { ...verdict, ...failing } }
  }
}

/** What the start showed; nothing else is stored of sealed checks. */
function sealOf(start: SealStart): StoredSeal {
  return { files: {}, reasons: {}, start }
}

const MAX_TESTS = 10_000

/** Tests that only the runner's report tells. */
function oddTests(reported: readonly string[]): Pick<SealStart, 'tests'> {
  const tests = reported.filter((path) => !isOfTests(path)).slice(0, MAX_TESTS)
  return tests.length === 0 ? {} : { tests }
}

/** A check in a copy. */
interface InCopy {
  readonly verdict: GoalVerdict
  /** Why the copy could not run the suite as such; null if it could. */
  readonly cause: string | null
  readonly asked: AskedOfGit | undefined
}

/** Files of the start whose content no checkpoint has. */
type KnownFiles = Pick<SealStart, 'leftOut' | 'files'>

const MAX_FILES = 10_000

/** The states of files that are not stored; null for too many. */
async function knownFiles(
  { cwd, signal }: GoalCheckContext,
  stored: { readonly left_out: readonly LeftOut[] } | null,
): Promise<KnownFiles | null> {
  const listed = stored !== null ? pathsLeftOut(stored.left_out)
    : (await listFiles(cwd, signal)).flatMap(({ path, kind }) => (kind === 'cache' ? [] : [path]))
  const states = listed && (await statesOf(cwd, listed, MAX_FILES))
  if (states === null) return null
  return stored === null ? { files: states } : { leftOut: states }
}

/** A check that passed in place. */
interface Passed extends ToConfirm {
  /** Paths in folders of dependencies that a copy must not have. */
  readonly caches: readonly string[]
}

/** Why no sealed check can be made. */
class Unavailable {
  readonly cause: string

  constructor(cause: string) {
    this.cause = cause
  }
}

async function orUnavailable<T>(
  { signal }: GoalCheckContext,
  work: () => Promise<T>,
): Promise<T | Unavailable> {
  try {
    return await work()
  } catch (error) {
    signal.throwIfAborted()
    if (mayPass(error)) throw error
    return new Unavailable(describeError(error))
  }
}

/** File systems count in steps of up to two seconds. */
const CLOCK_MS = 2_000

function result(verdict: GoalVerdict, found: StoredSeal | null = null): SealedVerdict {
  return { verdict, found, unavailable: null }
}

function isSame(one: GoalVerdict, other: GoalVerdict): boolean {
  return one.achieved === other.achieved && isDeepStrictEqual(one.tests, other.tests)
}
