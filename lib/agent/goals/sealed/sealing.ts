import type { CheckedFiles, FilesAtStart, StoredSeal } from '../../check-files.js'
import type { PrivatePayloads } from '../../events.js'
import type { Executor, IsolatedCopy } from '../../executor.js'
import type { LeftOut } from '../../tree.js'
import type {
  GoalBaseline, GoalCheckContext, GoalSpec, GoalVerdict, KeptTests,
} from '../../goal.js'
import type { HoldoutRun } from '../holdout/held-out-tests.js'

/** A verdict, and what was found out beside it. */
export interface SealedVerdict {
  readonly verdict: GoalVerdict
  /** What is new about what belongs to the check; null for nothing. */
  readonly found: StoredSeal | null
  /** Why no sealed check can be made; null when one can. */
  readonly unavailable: string | null
  /** Of a sealed check that was passed, if it is known what the run has changed. */
  readonly files?: CheckedFiles
  /** Of a first check after an earlier run: what a check of the start has shown. */
  readonly atStart?: { readonly baseline: GoalBaseline; readonly tests: KeptTests | null }
}

/** The sealed checks of one run; see `sealed-check.ts`. */
export interface RunChecks {
  /**
   * The first check of a run.
   *
   * @param stored the checkpoint with the files as they are now; null if there is none
   */
  first(
    goal: GoalSpec,
    context: GoalCheckContext,
    stored: { readonly left_out: readonly LeftOut[] } | null,
  ): Promise<SealedVerdict>
  /**
   * The first check of a run in whose folder an earlier one has left changes.
   *
   * @param stored as for {@link RunChecks.first}
   */
  firstAfter(
    goal: GoalSpec,
    context: GoalCheckContext,
    stored: { readonly left_out: readonly LeftOut[] } | null,
    atStart: FilesAtStart,
  ): Promise<SealedVerdict>
  /** A later check. */
  later(
    goal: GoalSpec,
    context: GoalCheckContext,
    seal: StoredSeal,
    atStart: FilesAtStart,
  ): Promise<SealedVerdict>
}

/**
 * Tells which sealed checks a run has, by its first record; null for one that has none.
 *
 * @param claimed makes an executor that works as long as the run is this process's
 */
export type SealingFor = (
  runId: string,
  frozen: PrivatePayloads['run_created'],
  claimed: (executor: Executor) => Executor,
) => Sealing | null

/** How a run gets its sealed checks. */
export interface Sealing {
  /** True if a run whose files are stored needs no copy before a check passes in place. */
  readonly copiesLater: boolean
  /**
   * The checks, once it is known in which copy the run works, null for none; with which held-out
   * tests, null for none; and which files of the check count as the run's, as globs.
   */
  open(
    isolated: IsolatedCopy | null,
    holdout: HoldoutRun | null,
    mayChange: readonly string[],
  ): Promise<RunChecks>
}
