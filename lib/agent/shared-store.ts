/**
 * What a store adds when several processes share it. The engine then drives only runs that it has
 * claimed, any process takes any request, and what a process cannot do itself reaches the one that
 * can through the store.
 *
 * 1. One process at a time holds a run. A claim outlives neither its process (a lease runs out) nor
 *    its run's end, and nobody holds a run that waits for a human.
 * 2. Only the holder appends to a run that is held; anybody may append to one that is not. A holder
 *    that lost its claim without noticing is refused (`ERR_AGENT_CLAIM_LOST`), whatever it appends.
 * 3. A run keeps its folder from its first claim to its end.
 *
 * @module
 */
import type { RunCreated, RunOwner } from './events.js'
import type { RunHead } from './run-details.js'

/** The first record of a run, and the terms on which the run may begin. */
export interface Admission {
  readonly created: RunCreated
  /** Runs that may wait for their first claim, of all processes together. */
  readonly maxQueued: number
  /** What a run does about others in its folder: wait for them, be refused, or ignore them. */
  readonly cwdPolicy: 'queue' | 'reject' | 'allow'
  /** Idempotency keys count from here on, in float seconds since the epoch. */
  readonly keysSince: number
}

/** What became of an {@link Admission}. */
export type Admitted =
  | { readonly outcome: 'admitted' }
  /** The owner has used the key for this run before. */
  | { readonly outcome: 'repeated'; readonly head: RunHead }
  | { readonly outcome: 'queue_full' }
  /** A run that has not ended works in the folder, or waits to. */
  | { readonly outcome: 'cwd_busy'; readonly runId: string }

/** A run that this process holds from now on. */
export interface Claim {
  readonly runId: string
  /** True when the process that held it before vanished: its work may be half done. */
  readonly abandoned: boolean
  /** Who wants the run to end, when somebody does. */
  readonly abort: AbortWish | null
  /** True when the run waits for a human whose time is up, by the clock that all processes share. */
  readonly overdue: boolean
}

/** Somebody wants a run to end; `by` is null when the host has no authorization. */
export interface AbortWish {
  readonly by: string | null
}

/** What a store tells the engine of its process. Called one at a time; must not throw. */
export interface SharedRunsListener {
  /** There may be something to claim. */
  claimable(): void
  /** A run that this process holds shall end. */
  abortRequested(runId: string, wish: AbortWish): void
  /** A run that this process held belongs to another now: stop working on it, append nothing. */
  lost(runId: string): void
}

/** What is known of the end of a log: `last_seq` of the run, or that the run was deleted. */
export type LogEnd = number | 'deleted'

/** The part of a store that several processes share. */
export interface SharedRuns {
  /** Begins a run, atomically with the check of its terms. */
  admit(admission: Admission): Promise<Admitted>
  /**
   * Claims runs that may be worked on now: up to `slots` (0 or more), those that had begun first,
   * then the others in the order of their admission, and beyond `slots` those that only have to be
   * ended.
   */
  claim(slots: number): Promise<readonly Claim[]>
  /** Gives a claim back, so that any process may take the run; without a claim nothing happens. */
  release(runId: string): Promise<void>
  /** Notes durably that a run shall end, and tells its holder. Repeating it is harmless. */
  requestAbort(runId: string, by: string | null): Promise<void>
  /** Tells `listener` what happens; called once, before the first claim. */
  listen(listener: SharedRunsListener): void
  /**
   * Calls back whenever the log of a run may have grown, also by other processes. The result ends
   * it.
   */
  watch(runId: string, changed: (end: LogEnd) => void): () => void
  /** Is the run held by this process? */
  holds(runId: string): boolean
}

/** The owner and key under which an admission is remembered; null without a key. */
export function keyOf({
  created,
}: Admission): { readonly owner: RunOwner; readonly key: string } | null {
  const { owner, idempotency } = created.private ?? {}
  return owner === undefined || idempotency == null ? null : { owner, key: idempotency.key }
}
