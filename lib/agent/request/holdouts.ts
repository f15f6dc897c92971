/**
 * The held-out tests of new runs: where they come from, which runs can have some, and how they are
 * kept. The log of a run has a key; what it encrypts is in the store beside the log.
 *
 * @module
 */
import { InvalidRequestError, StoreError } from '../errors.js'
import type { PrivatePayloads, RunOwner, SealedMode } from '../events.js'
import { encrypt, readHeldOutTests } from '../goals/holdout/encrypted.js'
import {
  checkHoldout, heldOutTests, type HeldOutTests, type Holdout, type HoldoutRequest,
} from '../goals/holdout/held-out-tests.js'
import { readHoldoutFolder } from '../goals/holdout/read-folder.js'
import { sealedModeOf } from '../goals/sealed/sealed-mode.js'
import type { RunStore } from '../store.js'
import type { RequestedRun } from './instructions.js'
import type { NewRun } from './new-run.js'
import type { RootsOf } from './roots.js'

/**
 * The option `holdout` of {@link EngineOptions}: the held-out tests of every run, or a function of
 * the run, which returns null for none.
 */
export type HoldoutOption =
  | Holdout
  | ((run: RequestedRun) => Holdout | null | Promise<Holdout | null>)

/** What {@link Holdouts} needs of its engine. */
export interface HoldoutsOptions {
  readonly store: RunStore
  readonly holdout: HoldoutOption | undefined
  readonly rootsOf: RootsOf
  /** Folders that do not exist for runs. */
  readonly closed: readonly string[]
  readonly sealedChecks: SealedMode
}

/** See the comment of this file. */
export class Holdouts {
  readonly #options: HoldoutsOptions

  constructor(options: HoldoutsOptions) {
    this.#options = options
  }

  /**
   * The held-out tests of a new run: those of the run that it repeats or forks, the host's, or
   * those of its request; null for none.
   *
   * @throws {@link InvalidRequestError} for a run that cannot have any; TypeError for what the host
   * gave; {@link StoreError}.
   */
  async of(
    newRun: NewRun,
    asked: HoldoutRequest | undefined,
    source: string | undefined,
    owner: RunOwner,
  ): Promise<HeldOutTests | null> {
    const before = source === undefined ? null : await this.#stored(source)
    const tests = before ?? (await this.#ofHost(newRun, owner))
    if (tests !== null && asked !== undefined)
      refuse('must be left out: the host has held-out tests for this run')
    const all = tests ?? (asked === undefined ? null : heldOutTests(asked))
    if (all !== null) this.#assertPossible(newRun)
    return all
  }

  #assertPossible({ goal, request }: NewRun): void {
    const { sealedChecks, store } = this.#options
    if (goal.command === '') refuse('needs a goal that a command checks')
    if (goal.allow_test_changes) refuse('cannot be had here: the host lets runs change tests')
    if (sealedModeOf({ goal, request }, sealedChecks) === 'off')
      refuse('needs sealed checks, which are off: ask for `sealed_checks`')
    if (store.holdouts === undefined)
      refuse("cannot be had here: the host's store has no place for held-out tests")
  }

  async #ofHost({ request }: NewRun, owner: RunOwner): Promise<HeldOutTests | null> {
    const { closed, holdout: option, rootsOf } = this.#options
    if (option === undefined) return null
    const isNobody = owner.id === null && owner.tenant === null
    const given =
      typeof option === 'function'
        ? await option({ request, principal: isNobody ? null : owner })
        : option
    if (given === null) return null
    checkHoldout(given)
    const { allowed_skips = 0, command, files = {}, folder, tell = 'verdict' } = given
    const tests = heldOutTests({ command, files, tell, allowed_skips })
    if (folder === undefined) return tests
    const roots = [...(await rootsOf(owner)), request.cwd].filter((root) => root !== '')
    return { ...tests, files: await readHoldoutFolder(folder, roots, closed) }
  }

  /** The held-out tests of a run; null when it has none. */
  async #stored(runId: string): Promise<HeldOutTests | null> {
    const { store } = this.#options
    const [first] = await store.read(runId, 0, 1)
    const key = first?.kind === 'run_created' ? first.private?.holdout?.key : undefined
    if (key === undefined) return null
    return await readHeldOutTests(store.holdouts, runId, key)
  }

  /**
   * Calls `begin`, which creates the run, once its held-out tests are stored; they are taken back
   * when it creates none.
   */
  async keep<T extends { readonly created: boolean }>(
    runId: string,
    tests: HeldOutTests | null,
    holdout: PrivatePayloads['run_created']['holdout'],
    begin: () => Promise<T>,
  ): Promise<T> {
    const { holdouts } = this.#options.store
    if (tests === null || holdout === undefined || holdouts === undefined) return await begin()
    await holdouts.put(runId, encrypt(tests, holdout.key, runId))
    // What is left, the store removes by itself.
    const takeBack = (): Promise<void> => holdouts.remove(runId).catch(() => undefined)
    try {
      const begun = await begin()
      if (!begun.created) await takeBack()
      return begun
    } catch (error) {
      // After an error of the store, the run may exist all the same.
      if (!(error instanceof StoreError)) await takeBack()
      throw error
    }
  }
}

function refuse(detail: string): never {
  throw new InvalidRequestError([{ pointer: '/holdout', detail }])
}
