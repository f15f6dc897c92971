/**
 * The seam to storage. A store keeps one append-only list of records for each run, and beside it
 * the run's head ({@link RunHead}), which it folds itself with `foldHead`.
 *
 * 1. `append` is atomic: after a crash either all records of the call are there, or none.
 * 2. `append` resolves once the records are durable. What was acknowledged is never lost.
 * 3. Records of one run are appended in order; a record whose `seq` is not the next one is refused.
 *
 * `testRunStore()` from `runwright/agent/testing` checks an implementation against this contract.
 *
 * @module
 */
import type { RunOwner, RunRecord, RunStatus } from './events.js'
import type { RunHead } from './run-details.js'
import type { SharedRuns } from './shared-store.js'

/** Which runs to list. All conditions must hold. */
export interface RunQuery {
  /** Runs of this tenant only; undefined lists the runs of all tenants. */
  readonly tenant?: string | null | undefined
  /** Any of these; undefined or empty means any status. */
  readonly status?: readonly RunStatus[] | undefined
  /** The exact goal. */
  readonly goal?: string | undefined
  readonly modelName?: string | undefined
  /** Words that must all stand in the goal, the model's name or the run id, in any case. */
  readonly search?: string | undefined
  /** Created later than this, in float seconds since the epoch. */
  readonly createdAfter?: number | undefined
  /** Created earlier than this, in float seconds since the epoch. */
  readonly createdBefore?: number | undefined
  /** How many at most, 1 or more. */
  readonly limit: number
  /** `next` of an earlier page with the same conditions. */
  readonly cursor?: string | undefined
}

/** One page of runs, newest first (`created_at`, then `run_id`, both descending). */
export interface RunPage {
  readonly heads: readonly RunHead[]
  /** Opaque; null on the last page. */
  readonly next: string | null
}

/** Where the logs of runs are kept. */
export interface RunStore {
  /** Folders that hold the store's data: closed to every tool, also inside a root. */
  readonly closedFolders?: readonly string[]
  /** Set by stores that several processes share. */
  readonly shared?: SharedRuns | undefined
  /**
   * Makes the store ready; called once, before anything else.
   *
   * @throws {@link StoreError} when it cannot be read, is locked by another process, or was
   * written by a newer version.
   */
  open(): Promise<void>
  /**
   * Appends records of one run. `records` is not empty and is not kept or changed.
   *
   * @throws {@link StoreError} with `ERR_AGENT_SEQ_CONFLICT` when the first `seq` is not the next;
   * with `ERR_AGENT_STORE` when the records could not be made durable.
   */
  append(runId: string, records: readonly RunRecord[]): Promise<void>
  /** Records with `seq` greater than `after`, in order, at most `limit`; empty for an unknown run. */
  read(runId: string, after: number, limit: number): Promise<readonly RunRecord[]>
  /** The head of a run as it is now, or null; what is appended later does not change the object. */
  head(runId: string): Promise<RunHead | null>
  /** Runs by condition, newest first; their heads as {@link RunStore.head} gives them. */
  list(query: RunQuery): Promise<RunPage>
  /** Number of runs by status. */
  counts(): Promise<Readonly<Record<RunStatus, number>>>
  /**
   * The newest run that was created with this idempotency key by this owner (id and tenant) at or after `since` (float
   * seconds since the epoch), or null.
   */
  findByKey(owner: RunOwner, key: string, since: number): Promise<RunHead | null>
  /** Removes a run and its log for good; unknown runs are no error. Durable on resolve. */
  delete(runId: string): Promise<void>
  /**
   * Makes sure that appends can succeed right now; where it is absent, a store that can be read is
   * taken to be writable.
   *
   * @throws {@link StoreError} saying why not.
   */
  check?(): Promise<void>
  /** Waits for appends in flight and frees everything. Calling it twice is harmless. */
  close(): Promise<void>
}
