/**
 * Where a store keeps the held-out tests of runs: outside of their logs, so that nothing that reads
 * a log has them. They come encrypted, each with a key of its own that only the log of its run has.
 *
 * 1. `put` resolves once the content is durable. It comes before the run of this id is created.
 * 2. `RunStore.delete`, and retention, remove the content together with the run.
 * 3. What was put for a run that was never created is removed by the store, some time later.
 *
 * @module
 */

/** Encrypted held-out tests, by run; the rules are in the comment of this file. */
export interface HoldoutStore {
  /**
   * Stores the held-out tests of a run that is about to be created.
   *
   * @throws {@link StoreError} when that cannot be made durable.
   */
  put(runId: string, content: Uint8Array): Promise<void>
  /** Null when the run has none. */
  get(runId: string): Promise<Uint8Array | null>
  /** Takes back what was put for a run that was not created after all. */
  remove(runId: string): Promise<void>
}
