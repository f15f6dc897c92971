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
 * 6. A check of the files of the start in a copy shows what it reads, which decides what belongs to
 *    it. Where sealed checks are required, that is the first check of a run. Otherwise it is made
 *    once a check passes in place, with the stored files of the start.
 * 7. Where that copy cannot run the suite as such, but the folder itself could at the start, there
 *    are no sealed checks for the run.
 *
 * @module
 */
import { isDeepStrictEqual } from 'node:util'
import { describeError } from '../../../internal/errors.js'
import {
  joinSeals, type Dependencies, type FilesAtStart, type PendingSeal, type SealStart,
  type StoredSeal,
} from '../../check-files.js'
import { GoalCheckError } from '../../errors.js'
import type { SealedMode } from '../../events.js'
import { mayPass } from '../../exhaustion.js'
import type { GoalBaseline, GoalCheckContext, GoalSpec, GoalVerdict } from '../../goal.js'
import {
  captureDependencies, compareDependencies, type DependencyComparison,
} from '../../workspace/dependencies.js'
import type { LeftOut } from '../../tree.js'
import { pathsLeftOut } from '../../workspace/left-out.js'
import { makeUnread } from '../../workspace/touched-files.js'
import { checkGoal, patienceOf } from '../check.js'
import { commandGoal } from '../command-goal.js'
import { checkHeldOut, NONE_LEFT } from '../holdout/check-held-out.js'
import { MAX_EVALUATIONS, type HoldoutRun } from '../holdout/held-out-tests.js'
import { compareFiles } from '../protected-files.js'
import { listChanges } from '../compare-tests.js'
import { asksForFiles } from './asked-of-git.js'
import { CheckCopies, type CheckCopiesOptions } from './check-copies.js'
import { confirmInCopy } from './confirm.js'
import { couldNotRun } from './could-run.js'
import { gitState } from './git-index.js'
import { deedsAgainst } from './deeds.js'
import { filesToLeaveOut } from './new-files.js'
import { listFiles } from './list-files.js'
import { both, MAX_PATHS, observe, startOf, type Observed } from './observe.js'
import type { SealedCopy } from './sealed-copy.js'
import { missingIn, stateOf, timesOf } from './file-states.js'
import { changesAround, dataIn, scriptOf, surroundingsOf } from './surroundings.js'
import type { RunChecks, SealedVerdict } from './sealing.js'
import { restorableData, restoreFiles } from './to-restore.js'
import { DEPENDENCY_RULE, failed, HELD_OUT, required } from './words.js'

/** What sealed checks of one run need. */
export interface SealedChecksOptions extends CheckCopiesOptions {
  readonly mode: Exclude<SealedMode, 'off'>
  /** May the goal be met with other dependencies than at the start? */
  readonly allowsDependencyChanges: boolean
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
    const waits = stored !== null && this.#options.mode === 'prefer'
    const leftOut = waits ? await this.#statesLeftOut(context.cwd, stored.left_out) : null
    // What git told at the start, a copy of it would not tell later.
    if (leftOut === null || asksForFiles(await scriptOf(goal, context.cwd)))
      return await this.#firstInCopy(goal, context, null)
    const since = Date.now() - CLOCK_MS
    const verdict = await checkGoal(goal, context)
    if (verdict.achieved) return await this.#firstInCopy(goal, context, verdict)
    const start = await orUnavailable(context, () => this.#startInPlace(goal, context, since))
    if (start instanceof Unavailable) return this.#unsealed(verdict, start.cause)
    const pending = { lacks: couldNotRun(verdict, goal, context.cwd), leftOut }
    return result(verdict, { files: {}, reasons: {}, start: { ...start, pending } })
  }

  /** The states of files that are not stored; null for folders, and for too many. */
  async #statesLeftOut(
    cwd: string,
    leftOut: readonly LeftOut[],
  ): Promise<PendingSeal['leftOut'] | null> {
    const states: Record<string, string> = {}
    for (const path of pathsLeftOut(leftOut) ?? ['.']) {
      const state = await stateOf(cwd, path)
      if (state === null) return null
      if (state !== undefined) states[path] = state
    }
    return states
  }

  /** What only the start shows. */
  async #startInPlace(
    goal: GoalSpec,
    { baseline, cwd, signal }: GoalCheckContext,
    since: number,
  ): Promise<SealStart> {
    // Whether a copy can be made must not depend on the run.
    await this.#copies.assertPossible(cwd)
    const files = (await listFiles(cwd, signal)).map(({ path }) => path)
    const dependencies = await this.#captureDependencies(cwd, signal)
    const around = await surroundingsOf(goal, cwd, Object.keys(baseline.files), files)
    const { times } = await timesOf(cwd, await dataIn(await scriptOf(goal, cwd), cwd))
    return {
      since, kept: [], dependencies, observed: false, unavailable: null, ...around,
      ...(times !== undefined && { times }),
    }
  }

  async #firstInCopy(
    goal: GoalSpec,
    context: GoalCheckContext,
    known: GoalVerdict | null,
  ): Promise<SealedVerdict> {
    const { baseline, cwd, signal } = context
    const isNew = async (path: string): Promise<boolean> =>
      (await missingIn(cwd, [path])).length > 0
    const work = (copy: SealedCopy): Promise<Observed> => observe(goal, context, copy, isNew)
    const seen = await orUnavailable(context, () =>
      both(
        this.#copies.withPackages(context, work, [], (found) => lacking(found, goal) !== null),
        this.#captureDependencies(cwd, signal),
      ),
    )
    if (seen instanceof Unavailable)
      return this.#unsealed(known ?? (await checkGoal(goal, context)), seen.cause)
    const [sealed, dependencies] = seen
    const { files, reasons, since, unclaimed, verdict } = sealed
    const paths = [...Object.keys(baseline.files), ...Object.keys(files)]
    const start = {
      ...startOf(sealed), since, dependencies, unavailable: null,
      ...(await timesOf(cwd, unclaimed.slice(0, MAX_PATHS))),
      ...(await surroundingsOf(goal, cwd, paths)),
    }
    const found: StoredSeal = { files, reasons, start }
    const cause = lacking(sealed, goal)
    const passed = { verdict, found, unavailable: null }
    if (cause === null && goal.max_duration_ms === undefined)
      return await this.#heldOut(goal, context, start, passed)
    const inPlace = known ?? (await checkGoal(goal, context))
    // Without tests, two failures are the same only where both lack something.
    const isAlike = inPlace.tests !== null || couldNotRun(inPlace, goal, cwd) !== null
    if (cause === null || (isAlike && isSame(inPlace, verdict)))
      return await this.#heldOut(goal, context, start, { ...passed, verdict: inPlace })
    return this.#withoutSeal(inPlace, cause, { ...found, start: { ...start, unavailable: cause } })
  }

  /** The verdict of a check in place where no copy can be made. */
  #unsealed(verdict: GoalVerdict, cause: string): SealedVerdict {
    const start: SealStart = {
      since: 0, kept: [], dependencies: null, observed: false, unavailable: cause,
    }
    return this.#withoutSeal(verdict, cause, { files: {}, reasons: {}, start })
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
    const sealed = await this.#orRefused(context, verdict, async () => {
      const { changes, caches } = await this.#compareDependencies(context, start)
      if (changes.length > 0) {
        const text = `dependencies changed: ${listChanges(changes)}; ${DEPENDENCY_RULE}`
        return result(failed(verdict, text, ''))
      }
      const passed = { goal, context, atStart, caches, inPlace: verdict }
      return start.pending === undefined
        ? await this.#sealed(passed, seal, start)
        : await this.#firstPassed(passed, start, start.pending)
    })
    const known = sealed.found === null ? seal : joinSeals(seal, sealed.found)
    const changed = { seal: known, atStart }
    return await this.#heldOut(goal, context, known.start ?? start, sealed, changed)
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

  async #sealed(passed: Passed, seal: StoredSeal, start: SealStart): Promise<SealedVerdict> {
    const { goal, context, atStart, caches, inPlace } = passed
    const work = (copy: SealedCopy): Promise<SealedVerdict> =>
      confirmInCopy(copy, { goal, context, seal, start, atStart, inPlace })
    const hasFailed = ({ verdict }: SealedVerdict): boolean => !verdict.achieved
    return await this.#copies.withPackages(context, work, caches, hasFailed)
  }

  /** A check in a copy of the start, and then the sealed check of what passed in place. */
  async #firstPassed(
    passed: Passed,
    before: SealStart,
    pending: PendingSeal,
  ): Promise<SealedVerdict> {
    const { goal, context, atStart, inPlace } = passed
    const seal = await this.#checkStart(passed, before, pending)
    const { start } = seal
    if (start.unavailable !== null) return this.#withoutSeal(inPlace, start.unavailable, seal)
    const baseline = { files: { ...seal.files, ...context.baseline.files } }
    const data = await restorableData(seal, baseline, atStart)
    const own = Object.entries(seal.files).filter(([path]) => !data.has(path))
    const onlyThese = { ...goal, protected: [], sealed: [], runner: [] }
    const files = { files: Object.fromEntries(own) }
    const changes = [
      ...(await compareFiles(onlyThese, context.cwd, files, context.via)),
      ...(await changedOf(context.cwd, pending.leftOut, [
        ...Object.keys(seal.files), ...(start.unclaimed ?? []),
      ])).map((path) => `${path} was modified`),
    ]
    if (changes.length > 0)
      return result(failed(inPlace, `tests changed: ${listChanges(changes)}`, ''), seal)
    const now = { ...passed, context: { ...context, baseline } }
    const { found, ...sealed } = await this.#sealed(now, seal, start)
    return { ...sealed, found: found === null ? seal : joinSeals(seal, found) }
  }

  /** Checks a copy that has the files of the start. */
  async #checkStart(
    { goal, context, atStart, caches }: Passed,
    before: SealStart,
    pending: PendingSeal,
  ): Promise<StoredSeal & { readonly start: SealStart }> {
    const { baseline, baselineTests, cwd } = context
    const { pending: _, ...start } = before
    const without = (cause: string) => ({
      files: {}, reasons: {}, start: { ...start, unavailable: cause },
    })
    const rewind = await atStart.rewind()
    if (rewind === null) return without('the files of the start are not known')
    const { leftOut: left } = rewind
    const gone = Object.keys(pending.leftOut).filter((path) => left?.includes(path) === false)
    const [lost] = [...rewind.lost, ...gone]
    if (lost !== undefined) return without(`${lost} was changed, and was not stored at the start`)
    if (left === null) throw new Error('too much in the folder is left out of checkpoints')
    const added = left.filter((path) => !Object.hasOwn(pending.leftOut, path))
    const work = async (copy: SealedCopy): Promise<Observed> => {
      await makeUnread(copy.root, await rewind.complete(copy.root))
      await copy.setTimes(start.times ?? {})
      const isNew = async (path: string): Promise<boolean> => {
        const hash = await atStart.hashOf(path)
        return hash === undefined ? (await missingIn(cwd, [path])).length > 0 : hash === null
      }
      return await observe(goal, { ...context, baselineTests: null }, copy, isNew)
    }
    const absent = [...caches, ...rewind.without, ...added]
    const hasFailed = (it: Observed): boolean => lacking(it, goal) !== null
    const seen = await this.#copies.withPackages(context, work, absent, hasFailed)
    const { files, reasons, unclaimed } = seen
    const { achieved, tests } = seen.verdict
    if (achieved) {
      const [changed] = await changedOf(cwd, pending.leftOut, seen.touched.read)
      if (changed !== undefined)
        throw new Error(`with ${changed} as it is now, the files of the start pass`)
      return without('the check failed at the start, but passes in a copy of it')
    }
    const cause = lacking(seen, goal)
    // As in place: without tests, two failures are the same only where both lack something.
    const isAlike = tests !== null || pending.lacks !== null
    if (cause !== null && !(isAlike && isDeepStrictEqual(tests, baselineTests)))
      return without(cause)
    const all = [...Object.keys(baseline.files), ...Object.keys(files)]
    const asked = start.git ?? (await gitState(cwd, await scriptOf(goal, cwd), all))
    if (asked !== null && start.git === undefined)
      return without('the check asks git, and the index of git at the start is not known')
    // What the run gave a newer time was older at the start.
    const { times = {} } = await timesOf(cwd, unclaimed.slice(0, MAX_PATHS), start.since)
    for (const path of Object.keys(times)) times[path] = start.times?.[path] ?? times[path]!
    return { files, reasons, start: { ...start, ...startOf(seen), times } }
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
    const problem = isOver ? NONE_LEFT : await this.#copies.once(context, work, caches, true)
    const assurance = { ...verdict.assurance, sealed: true, holdout: problem === null }
    if (problem === null) return { ...passed, verdict: { ...verdict, assurance } }
    const failing = { achieved: false, reason: problem, assurance, output: HELD_OUT }
    return { ...passed, verdict: { ...verdict, ...failing } }
  }
}

/** Those of `paths` that checkpoints leave out and that are not as they were at the start. */
async function changedOf(
  cwd: string,
  leftOut: PendingSeal['leftOut'],
  paths: readonly string[],
): Promise<readonly string[]> {
  const changed: string[] = []
  for (const path of paths) {
    const state = leftOut[path]
    if (state !== undefined && (await stateOf(cwd, path)) !== state) changed.push(path)
  }
  return changed
}

/** A check that passed in place. */
interface Passed {
  readonly goal: GoalSpec
  readonly context: GoalCheckContext
  readonly atStart: FilesAtStart
  /** Paths in folders of dependencies that a copy must not have. */
  readonly caches: readonly string[]
  readonly inPlace: GoalVerdict
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

/** Why the copy could not run the suite as such; null if it could. */
function lacking({ root, verdict }: Observed, goal: GoalSpec): string | null {
  return couldNotRun(verdict, goal, root)
}

/** File systems count in steps of up to two seconds. */
const CLOCK_MS = 2_000

function result(verdict: GoalVerdict, found: StoredSeal | null = null): SealedVerdict {
  return { verdict, found, unavailable: null }
}

function isSame(one: GoalVerdict, other: GoalVerdict): boolean {
  return one.achieved === other.achieved && isDeepStrictEqual(one.tests, other.tests)
}
