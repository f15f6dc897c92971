/**
 * The seam between what an engine offers and the way its runs are worked on: by this process alone,
 * or by several that share a store.
 *
 * @module
 */
import type { RunCreated, RunStatus } from '../events.js'
import type { ResumeAnswer } from '../request/gate-answer.js'
import type { Model } from '../model.js'
import type { RunDetails, RunHead } from '../run-details.js'
import type { OpenFeed } from '../log/feed.js'
import type { Observers } from '../log/observer.js'
import type { RunStore } from '../store.js'
import type { Tool } from '../tool.js'

/** The run that an attempt to begin one led to. */
export interface BegunRun {
  readonly head: RunHead
  /** False for the run that its owner began before with the same key. */
  readonly created: boolean
}

/** What both drivers need of the engine. */
export interface DriverOptions {
  readonly store: RunStore
  readonly cwdPolicy: 'queue' | 'reject' | 'allow'
  readonly maxQueuedRuns: number
  readonly observers: Observers
  /** The tools that are offered now. */
  readonly offeredTools: () => ReadonlyMap<string, Tool>
}

/** Works on runs. */
export interface RunDriver {
  /** Takes up the runs that have not ended, and takes new ones from now on. */
  start(): Promise<void>
  /**
   * Begins a run; resolves once its first record is durable. `model` is used where the run is driven
   * here at once. `keysSince`: idempotency keys count from here on, in float seconds since the epoch.
   *
   * @throws {@link QueueFullError}, {@link CwdBusyError}, {@link IdempotencyError}, {@link StoreError}
   */
  begin(created: RunCreated, model: Model, keysSince: number): Promise<BegunRun>
  /**
   * Answers the open gate; resolves once the answer is durable.
   *
   * @throws as the engine's `resume`.
   */
  answer(
    stored: RunHead,
    answer: ResumeAnswer,
    by: string | null,
  ): Promise<{ readonly status: RunStatus; readonly gateId: string }>
  /**
   * Stops a run; resolves once the wish is durable, with true when it was aborted before.
   *
   * @throws {@link RunStateError} when the run has ended otherwise.
   */
  abort(stored: RunDetails, by: string | null): Promise<boolean>
  /** The feed of a run, with everything that is durable now. */
  follow(stored: RunDetails): Promise<OpenFeed>
  /** Does this process work on the run? */
  isLive(runId: string): boolean
  /** Runs of this process that wait for a slot. */
  readonly queued: number
  /** Begins nothing more, waits up to `graceMs` for what works, and leaves the rest to go on later. */
  close(graceMs: number): Promise<void>
}
