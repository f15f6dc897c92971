/**
 * The seam to storage. A store keeps one append-only log of records for each run, and beside it the
 * run's head ({@link RunHead}), which it folds itself with `foldHead`.
 *
 * 1. `append` is atomic: after a crash, either all records of the call exist or none.
 * 2. `append` resolves once the records are durable. Acknowledged records are never lost.
 * 3. Records of one run are appended in order; a record whose `seq` is not the next is refused.
 *
 * `testRunStore()` from `runwright/agent/testing` checks an implementation against this contract.
 *
 * @module
 */
import type { OptionKinds } from '../internal/options.js'
import type { RunSort } from '../internal/run-sorts.js'
import type { EndReason, RunOwner, RunRecord, RunStatus } from './events.js'
import type { HoldoutStore } from './holdout-store.js'
import type { ObjectStore } from './object-store.js'
import type { RunHead } from './run-details.js'
import type { SharedRuns } from './shared-store.js'

/** Which runs to list; a run must meet every condition. */
export interface RunQuery {
  /** Runs of this tenant only; undefined lists the runs of all tenants. */
  readonly tenant?: string | null | undefined
  /** Any of these; undefined or empty means any status. */
  readonly status?: readonly RunStatus[] | undefined
  /** The exact goal. */
  readonly goal?: string | undefined
  readonly modelName?: string | undefined
  /** The exact `cwd`; empty for runs without a folder. */
  readonly cwd?: string | undefined
  /** Any of these; undefined or empty means any, and runs that have not ended. */
  readonly endReason?: readonly EndReason[] | undefined
  /** Names and values that must all be in the metadata of a run: 1 to 32. */
  readonly metadata?: Readonly<Record<string, string>> | undefined
  /** Words that must all occur in the goal, the model's name or the run id; case-insensitive. */
  readonly search?: string | undefined
  /** Runs of the tree with this run at its top, that run included. */
  readonly root?: string | undefined
  /** Runs that this run has started: attempts and delegates, not retries and forks of it. */
  readonly parent?: string | undefined
  /** `root`: only runs that no other run has started. */
  readonly role?: 'root' | undefined
  /** Exclusive lower bound, in float seconds since the epoch. */
  readonly createdAfter?: number | undefined
  /** Exclusive upper bound, in float seconds since the epoch. */
  readonly createdBefore?: number | undefined
  /** See {@link RunSort}. @defaultValue '-created_at', the newest first */
  readonly sort?: RunSort | undefined
  /** Runs per page, 1 or more. */
  readonly limit: number
  /** `next` of an earlier page with the same conditions and order. */
  readonly cursor?: string | undefined
}

/** For `checkOptions()`. */
export const QUERY: OptionKinds<Partial<RunQuery>> = {
  tenant: 'string|null', status: 'array', goal: 'string', modelName: 'string', search: 'string',
  root: 'string', parent: 'string', role: 'string', createdAfter: 'number', createdBefore: 'number',
  limit: 'number', cursor: 'string', cwd: 'string', endReason: 'array', metadata: 'object',
  sort: 'string',
}

/** One page of runs, in the order of the query. */
export interface RunPage {
  readonly heads: readonly RunHead[]
  /** Opaque; null on the last page. */
  readonly next: string | null
}

/** A run that cannot be used, and why. */
export interface QuarantinedRun {
  readonly runId: string
  readonly reason: string
}

/** What a store has found to be damaged or missing in its data; both lists are empty if nothing. */
export interface StoreDamage {
  readonly runs: readonly QuarantinedRun[]
  /** One sentence for each file, or part of a file, that is missing or unreadable. */
  readonly files: readonly string[]
}

/** Stores the logs of runs; the rules are in the comment of this file. */
export interface RunStore {
  /** Folders of the store's data: closed to every tool, even inside a root. */
  readonly closedFolders?: readonly string[]
  /**
   * Where the contents of files are stored; ready once {@link RunStore.open} has resolved, closed
   * with the store. Without it and the engine's option `objects`, runs have no checkpoints.
   */
  readonly objects?: ObjectStore | undefined
  /** Where held-out tests are stored; without it, runs that have some are refused. */
  readonly holdouts?: HoldoutStore | undefined
  /** A folder of this machine, for data beside the store's: copies of folders that runs work in. */
  readonly dataFolder?: string | undefined
  /** Set by stores that several processes share. */
  readonly shared?: SharedRuns | undefined
  /**
   * Aborted once another process has taken this store over. The reason is a {@link StoreError} with
   * `ERR_AGENT_STORE_LOCKED`; no call succeeds any more, and the runs belong to the other process.
   */
  readonly lost?: AbortSignal | undefined
  /**
   * Makes the store ready; called once, before anything else.
   *
   * @throws {@link StoreError} when it cannot be read, is locked by another process, or was
   * written by a newer version.
   */
  open(): Promise<void>
  /**
   * Appends records of one run. `records` is not empty; it is neither kept nor changed.
   *
   * @throws {@link StoreError} with `ERR_AGENT_SEQ_CONFLICT` when the first `seq` is not the next;
   * with `ERR_AGENT_STORE_UNAVAILABLE` when the records could not be made durable: none of them is
   * stored, and the same call may succeed later; with `ERR_AGENT_STORE_LOCKED` when another process
   * has taken the store over.
   */
  append(runId: string, records: readonly RunRecord[]): Promise<void>
  /** At most `limit` records with `seq` greater than `after`, in order; none for an unknown run. */
  read(runId: string, after: number, limit: number): Promise<readonly RunRecord[]>
  /** The current head of a run, or null; later appends do not change the returned object. */
  head(runId: string): Promise<RunHead | null>
  /**
   * A page of runs, newest first, with heads as {@link RunStore.head} returns them. A quarantined
   * run is listed with what is still known of it and with `problem`.
   */
  list(query: RunQuery): Promise<RunPage>
  /** The number of runs in each status. */
  counts(): Promise<Readonly<Record<RunStatus, number>>>
  /**
   * The newest run created with this idempotency key by this owner (id and tenant) at or after
   * `since` (float seconds since the epoch), or null.
   */
  findByKey(owner: RunOwner, key: string, since: number): Promise<RunHead | null>
  /**
   * Does a run of a tenant other than this one work in the folder, in one above or in one below, or
   * has it worked there? All stored runs count. Without this method, the engine reads all of them
   * for each new run of a tenant.
   */
  hasForeignRun?(folder: string, tenant: string | null): Promise<boolean>
  /**
   * The ids of runs whose heads have an `operation`. Without this method, the engine reads the
   * heads of all runs when it starts. Retention never drops such a run.
   */
  operating?(): Promise<readonly string[]>
  /** Permanently removes a run and its log; ignores unknown runs. Durable when it resolves. */
  delete(runId: string): Promise<void>
  /**
   * Calls `listener` within seconds after runs were removed, by {@link RunStore.delete} or because
   * retention has dropped them: once for any number of them, or in vain. `here` tells that this
   * process has removed them, which then sees to the contents that nothing refers to any more.
   * Called once, at the latest when the store is open. Without this method, the engine looks every
   * hour for what is left of runs that it has not deleted itself.
   */
  onRemoved?(listener: (here: boolean) => void): void
  /**
   * Verifies that appends can succeed right now. Without this method, a readable store is taken to
   * be writable.
   *
   * @throws {@link StoreError} with the reason when they cannot.
   */
  check?(): Promise<void>
  /** What is known to be damaged now; without this method, nothing ever is. */
  damage?(): StoreDamage
  /** Waits for appends in flight and frees all resources. Calling it twice is harmless. */
  close(): Promise<void>
}
