import type { EndReason, RunStatus } from '../events.js'
import type { ChildPlace } from './child-place.js'
import type { SortKey } from './ordered-runs.js'

/**
 * The fields by which a run is listed and found. Only `status`, `endedMs`, `endReason`, `operates`
 * and null ever change.
 */
export interface IndexedRun extends SortKey {
  readonly goal: string
  readonly modelName: string
  /** Empty when it cannot be known; null until it has been read. */
  cwd: string | null
  readonly ownerId: string | null
  readonly tenant: string | null
  /** Idempotency key; null for a run that was started without one. */
  readonly key: string | null
  /** Null for a root: one object for each child, and nothing for the many runs without any. */
  readonly child: ChildPlace | null
  status: RunStatus
  /** Epoch milliseconds; 0 until the run has ended. */
  endedMs: number
  /** Null until the run has ended, and while `metadata` is null. */
  endReason: EndReason | null
  /** See `metadataKeys()`; null until it has been read. */
  metadata: readonly string[] | null
  /** Has a restore or apply begun that is not finished? */
  operates: boolean
}
