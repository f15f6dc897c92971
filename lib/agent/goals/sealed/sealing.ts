import type { FilesAtStart, StoredSeal } from '../../check-files.js'
import type { PrivatePayloads } from '../../events.js'
import type { Executor, IsolatedCopy } from '../../executor.js'
import type { GoalCheckContext, GoalSpec, GoalVerdict } from '../../goal.js'
import type { HoldoutRun } from '../holdout/held-out-tests.js'

/** A verdict, and what was found out beside it. */
export interface SealedVerdict {
  readonly verdict: GoalVerdict
  /** What is new about what belongs to the check; null for nothing. */
  readonly found: StoredSeal | null
  /** Why no sealed check can be made; null when one can. */
  readonly unavailable: string | null
}

/** The sealed checks of one run; see `sealed-check.ts`. */
export interface RunChecks {
  /** The first check of a run. */
  first(goal: GoalSpec, context: GoalCheckContext): Promise<SealedVerdict>
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

/**
 * Gives the sealed checks of a run, once the copy is known in which it works, null for none; and
 * its held-out tests, null for none.
 */
export type Sealing = (
  isolated: IsolatedCopy | null,
  holdout: HoldoutRun | null,
) => Promise<RunChecks>
