/**
 * The seam between what an engine offers and how its runs are driven: by this process alone, or by
 * several processes that share a store.
 *
 * @module
 */
import type { RunLogs } from '../checkpoints/run-logs.js'
import type { StoreError } from '../errors.js'
import type { RunCreated, RunStatus } from '../events.js'
import type { OpenFeed } from '../log/feed.js'
import type { Model } from '../model.js'
import type { ResumeAnswer } from '../request/gate-answer.js'
import type { NewMessage } from '../request/message.js'
import type { RunDetails, RunHead } from '../run-details.js'

export interface BegunRun {
  readonly head: RunHead
  /** False when the request repeats one that began this run earlier. */
  readonly created: boolean
}

export interface AnsweredGate {
  readonly status: RunStatus
  readonly gateId: string
}

export interface RunDriver extends RunLogs {
  /**
   * Begins to take over the runs that have not ended, and accepts new ones from now on.
   *
   * @throws {@link StoreError}
   */
  start(): Promise<void>
  /**
   * Begins a run; resolves once its first record is durable. `model` is used if this process drives
   * the run at once. Idempotency keys older than `keysSince` (float seconds since the epoch) have
   * expired.
   *
   * @throws {@link QueueFullError}, {@link CwdBusyError}, {@link ForeignFolderError},
   * {@link IdempotencyError}, {@link StoreError}
   */
  begin(created: RunCreated, model: Model, keysSince: number): Promise<BegunRun>
  /**
   * Answers the open gate; resolves once the answer is durable.
   *
   * @throws as the engine's `resume`.
   */
  answer(stored: RunHead, answer: ResumeAnswer, by: string | null): Promise<AnsweredGate>
  /**
   * Aborts a run; resolves once the request is durable, with true when it was aborted before.
   * `why`: for its log, when its tree asks for it; a store that processes share does not pass it
   * on.
   *
   * @throws {@link RunStateError} when the run has ended otherwise; {@link StoreError}.
   */
  abort(stored: RunDetails, by: string | null, why?: string): Promise<boolean>
  /**
   * Sends a message to the model of a run; resolves with its id once it is durable.
   *
   * @throws as the engine's `message`.
   */
  message(stored: RunDetails, message: NewMessage): Promise<string>
  /** The feed of a run, up to date with its log. */
  follow(stored: RunDetails): Promise<OpenFeed>
  /**
   * Calls `work` while nobody drives the run or does anything with its files.
   *
   * @param isKnown false for a run whose log cannot be read: other processes are not waited for
   */
  alone(runId: string, isKnown: boolean, work: () => Promise<void>): Promise<void>
  /** Runs of this process that wait for their first slot. */
  readonly queued: number
  /** Why the store refuses records of runs right now; null while it does not. */
  readonly refusal: StoreError | null
  /** Begins nothing more, waits up to `graceMs` for running work, and suspends the rest. */
  close(graceMs: number): Promise<void>
}
