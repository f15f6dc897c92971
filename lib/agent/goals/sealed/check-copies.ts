import type { Executor, IsolatedCopy } from '../../executor.js'
import { mayPass, onOwnFiles } from '../../exhaustion.js'
import type { GoalCheckContext } from '../../goal.js'
import { isInside } from '../../workspace/paths.js'
import { patienceOf } from '../check.js'
import { SealedCopy } from './sealed-copy.js'

/** Where copies are made. */
export interface CopyFolders {
  /** Throws if no copy of this folder can be made. */
  assertFits(cwd: string, mounts: boolean): Promise<void>
  create(runId: string, cwd: string, options: CopyOptions): Promise<IsolatedCopy>
  /** Resolves before all of its files are gone: a verdict does not wait for that. */
  removeSoon(runId: string): Promise<void>
  /** Resolves when they are gone. */
  remove(runId: string): Promise<void>
}

interface CopyOptions {
  /** May large folders of packages be mounted read-only? */
  readonly mounts: boolean
  /** Copy those folders even though they could be mounted? */
  readonly whole: boolean
  /** Mounts of the original folder. */
  readonly mounted: IsolatedCopy['readOnly']
  /** Relative paths that the copy does not have. */
  readonly without: readonly string[]
  /** For a sealed check: nothing in it was read yet, and git finds neither hooks nor settings. */
  readonly sealed: true
  readonly unread: true
  readonly signal: AbortSignal
}

/** How copies are made, and who works in them. */
export interface CheckCopiesOptions {
  /** Where the copies are made, each by the id of its run. */
  readonly folders: () => Promise<CopyFolders>
  /** Runs the commands; the strongest one at hand. */
  readonly executor: () => Promise<Executor>
  readonly runId: string
  /** Of a run that works in a copy: what is mounted into that. */
  readonly mounted: IsolatedCopy['readOnly']
}

/** The copies in which one run is checked, one after the other. */
export class CheckCopies {
  readonly #options: CheckCopiesOptions
  /** Did the last copy have mounted packages? */
  #isMounted = false
  /** Do copies get all packages, because the check did not pass where they were mounted? */
  #isWhole = false

  constructor(options: CheckCopiesOptions) {
    this.#options = options
  }

  /** @throws if no copy of this folder can be made. */
  async assertPossible(cwd: string): Promise<void> {
    const executor = await this.#options.executor()
    const folders = await this.#options.folders()
    await folders.assertFits(cwd, (await executor.mountsFolders?.()) ?? false)
  }

  /**
   * Works in a copy. If that fails and packages are mounted read-only, works once more in a copy
   * that includes the packages, since a check may write to them. Without room for it, the first
   * result counts.
   */
  async withPackages<T>(
    context: GoalCheckContext,
    work: (copy: SealedCopy) => Promise<T>,
    caches: readonly string[],
    hasFailed: (result: T) => boolean,
  ): Promise<T> {
    const result = await this.once(context, work, caches)
    if (!this.#isMounted || !hasFailed(result)) return result
    this.#isWhole = true
    try {
      return await this.once(context, work, caches)
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
  async once<T>(
    context: GoalCheckContext,
    work: (copy: SealedCopy) => Promise<T>,
    caches: readonly string[] = [],
    isSecret = false,
  ): Promise<T> {
    return await patienceOf(context)(() => this.#make(context, work, caches, isSecret))
  }

  async #make<T>(
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
      // If this fails, the next check or a sweep removes the copy.
      const removing = isSecret
        ? patienceOf(context)(() => all.remove(runId))
        : all.removeSoon(runId)
      await removing.catch(() => undefined)
    }
  }
}
