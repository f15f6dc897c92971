/**
 * What a store adds when several processes share it. The engine then drives only runs that it has
 * claimed; any process accepts any request, and forwards through the store what only the holder of
 * a claim can do.
 *
 * 1. At most one process holds the claim on a run. A claim ends with its process (its lease
 *    expires) and with its run, and a run that waits for a human is not claimed.
 * 2. Only the holder appends to a claimed run; any process may append to an unclaimed one. A holder
 *    that lost its claim without noticing is refused (`ERR_AGENT_CLAIM_LOST`).
 * 3. A holder starts nothing unless it is certain of its claim, and stops what runs before its
 *    lease ends: two processes never run commands of one run at the same time.
 * 4. A restore or apply is a claim as well: of a run that waits for a human or has ended, by the
 *    process that changes its files. One whose holder died is claimed again, and finished.
 * 5. A run keeps its folder from its first claim to its end. While it does, no run is claimed whose
 *    folder is the same, above or below, unless both had been claimed by a version that knew less.
 *
 * @module
 */
import type { EventPayloads, RunCreated, RunOwner } from './events.js'
import type { RunHead } from './run-details.js'

/** The first record of a run, and the conditions under which the run may begin. */
export interface Admission {
  readonly created: RunCreated
  /** Limit of runs that wait for their first claim, across all processes. */
  readonly maxQueued: number
  /** What happens when another run uses the folder: wait, be refused, or run anyway. */
  readonly cwdPolicy: 'queue' | 'reject' | 'allow'
  /** Older idempotency keys have expired; in float seconds since the epoch. */
  readonly keysSince: number
  /**
   * The run that starts this one, which this process must hold: the log of a run that another
   * process drives may tell of this one already that it never began. @defaultValue none
   */
  readonly parent?: string | undefined
}

/** The result of an {@link Admission}. */
export type Admitted =
  | { readonly outcome: 'admitted' }
  /** The owner has already used the key, for this run. */
  | { readonly outcome: 'repeated'; readonly head: RunHead }
  /** So many runs, of all or of its tenant, wait already. */
  | { readonly outcome: 'queue_full'; readonly limit: number }
  /** The folder, one above or one below has a run of another tenant. */
  | { readonly outcome: 'foreign_folder' }
  /** This run works in the folder, in one above or in one below, or waits to. */
  | { readonly outcome: 'cwd_busy'; readonly runId: string }
  /** This process does not hold the run that starts this one. */
  | { readonly outcome: 'parent_lost' }

/** The result of {@link SharedRuns.occupy}. */
export type Occupied =
  | { readonly outcome: 'occupied' }
  /** Another process holds the run, or there is none. */
  | { readonly outcome: 'held' }
  /** This run works in the folder, in one above or in one below. */
  | { readonly outcome: 'cwd_busy'; readonly runId: string }

/** A run that this process has claimed. */
export interface Claim {
  readonly runId: string
  /**
   * True when the previous holder is known to have died: its work may be half done. The engine does
   * not rely on it alone, since a claim whose answer was lost hides the holder before.
   */
  readonly abandoned: boolean
  /** Set when an abort was requested. */
  readonly abort: AbortWish | null
  /** True when messages were left for the run. */
  readonly hasMessages: boolean
  /** True when the run's gate has expired, by the clock that all processes share. */
  readonly overdue: boolean
}

/** A request to abort a run; `by` is null when the host has no authorization. */
export interface AbortWish {
  readonly by: string | null
}

/**
 * What became of a message that was left for the holder of a run. `accepted`: it is in the log;
 * `kept`: no process holds the run now, and the next holder gets the message, before it
 * works; `unclaimed`: nobody holds the run, so any process may append to it; `unanswered`: the
 * holder did not take the message in time, and does not get it any more. The others are refusals.
 */
export type LeftMessage =
  | 'accepted' | 'kept' | 'unclaimed' | 'unanswered' | 'ended' | 'too_many' | 'key_reused'

/** How a store notifies the engine in its process. Called one at a time; must not throw. */
export interface SharedRunsListener {
  /** Some run may have become claimable. */
  claimable(): void
  /** Abort this run, which this process holds. */
  abortRequested(runId: string, wish: AbortWish): void
  /** Messages were left for this run, which this process holds. */
  messagesLeft(runId: string): void
  /** The claim on this run was lost: stop working on it and append nothing. */
  lost(runId: string): void
  /**
   * The lease of this process could not be renewed and may end soon: stop the commands and tools of
   * this run before another process may start any. The run goes on once its claim is confirmed.
   */
  doubtful(runId: string): void
}

/** The end of a log: `last_seq` of the run, or that the run was deleted. */
export type LogEnd = number | 'deleted'

/** Admission, claims and notifications of a store that several processes share. */
export interface SharedRuns {
  /** Begins a run, atomically with checking its conditions. */
  admit(admission: Admission): Promise<Admitted>
  /**
   * Claims runs that can be driven now: up to `slots` (0 or more), begun runs first, then the
   * others in the order of their admission; and, beyond `slots`, runs that only have to be ended.
   * Never runs of `except`, which this process cannot drive.
   */
  claim(slots: number, except?: readonly string[]): Promise<readonly Claim[]>
  /**
   * Claims a run that waits for a human or has ended, or keeps the claim that this process has, for
   * a change of files; with `folder`, the run gets its folder as well. The claim ends with the
   * append of `files_changed`, or with {@link SharedRuns.release}, and is not lost before by an
   * append that leaves `operation` of the head open. Without this method, files of runs cannot be
   * restored or applied.
   */
  occupy?(runId: string, folder: boolean): Promise<Occupied>
  /** Releases a claim, so that any process may claim the run; does nothing without a claim. */
  release(runId: string): Promise<void>
  /** Durably requests the end of a run and notifies its holder. Repeating it is harmless. */
  requestAbort(runId: string, by: string | null): Promise<void>
  /**
   * Leaves a message for the process that holds the run, and waits for its answer. Repeating it
   * with the same id is harmless.
   */
  leaveMessage(runId: string, message: EventPayloads['user_message']): Promise<LeftMessage>
  /**
   * The messages that were left for a run and not answered yet, in order: for its holder, and for a
   * process that appends to it while there is none. Those taken before are among them.
   */
  takeMessages(runId: string): Promise<readonly EventPayloads['user_message'][]>
  /** Answers a message that was taken. */
  answerMessage(
    runId: string,
    messageId: string,
    answer: Extract<LeftMessage, 'accepted' | 'too_many' | 'key_reused'>,
  ): Promise<void>
  /** Registers the listener; called once, before the first claim. */
  listen(listener: SharedRunsListener): void
  /**
   * Calls `changed` whenever the log of a run may have grown, by any process; the returned function
   * stops that.
   */
  watch(runId: string, changed: (end: LogEnd) => void): () => void
  /** Does this process hold the claim on the run, as far as it knows? */
  holds(runId: string): boolean
  /**
   * Resolves once it is certain that this process holds the claim on the run: at once while its
   * lease is valid, else after asking the store, however long that takes.
   *
   * @throws {@link StoreError} with `ERR_AGENT_CLAIM_LOST` when it does not.
   */
  confirm(runId: string): Promise<void>
}

/** The owner and idempotency key of an admission; null without a key. */
export function keyOf({
  created,
}: Admission): { readonly owner: RunOwner; readonly key: string } | null {
  const { owner, idempotency } = created.private ?? {}
  return owner === undefined || idempotency == null ? null : { owner, key: idempotency.key }
}
