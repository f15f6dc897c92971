/**
 * The seam to the storage of file contents: blobs by the SHA-256 of their bytes. A store of runs
 * brings one (`RunStore.objects`); a host may give its own, for example over an S3 bucket.
 *
 * 1. `put` resolves once all of its blobs are durable, and `has` finds no others.
 * 2. Blobs never change. Damage is found by the hash when a blob is read, and named.
 * 3. What is not referred to any more is removed by the engine with `list` and `delete`: what the
 *    runs of one store do not refer to. So one object store belongs to one store of runs.
 * 4. Storing blobs and then referring to them is safe for blobs that were each found by `has` or
 *    stored by `put` for that purpose: in an {@link ObjectStore.exclusive} store while
 *    `ObjectUse.capturing` waits for it, in others for an hour. That a blob is there says nothing
 *    about the blobs that it names.
 *
 * `testObjectStore()` from `runwright/agent/testing` checks an implementation against this.
 *
 * @module
 */

/** A blob to be stored. */
export interface StoredObject {
  /** SHA-256 of `content` in hexadecimal, lower case. */
  readonly hash: string
  readonly content: Uint8Array
}

/**
 * Stores blobs; the rules are in the comment of this file. Every method that takes hashes throws a
 * TypeError for one that is none.
 */
export interface ObjectStore {
  /**
   * True when no other process uses the blobs, and they stay on this machine. Otherwise files that
   * hold secrets are never stored, even if the host allows it, and blobs are removed only when they
   * have not been used for an hour.
   */
  readonly exclusive?: boolean | undefined
  /**
   * Stores blobs, all of them or, when it fails, some; those that are there already are only used
   * anew, in the sense of {@link ObjectStore.delete}.
   *
   * @throws {@link StoreError} with `ERR_AGENT_STORE_UNAVAILABLE` when the same call may succeed
   * later: the disk is full, the server cannot be reached.
   */
  put(objects: readonly StoredObject[]): Promise<void>
  /**
   * The content of a blob; null when there is none.
   *
   * @throws {@link StoreError} with `ERR_AGENT_STORE_CORRUPT` that names the blob, when its content
   * does not have its hash.
   */
  get(hash: string): Promise<Uint8Array | null>
  /** Which of these there are. They are used anew, in the sense of {@link ObjectStore.delete}. */
  has(hashes: readonly string[]): Promise<ReadonlySet<string>>
  /** At most `limit` hashes in ascending order, from the first one after `after` (null: all). */
  list(after: string | null, limit: number): Promise<readonly string[]>
  /**
   * Removes blobs that were neither stored nor found by `has` within the last `unusedMs`
   * milliseconds, by the store's own clock; 0 removes all. Ignores those that are not there.
   */
  delete(hashes: readonly string[], unusedMs: number): Promise<void>
  /**
   * True for one of all processes that share the blobs, once in `everyMs` milliseconds: this one
   * may remove what is not referred to. Absent: every process may.
   */
  claimSweep?(everyMs: number): Promise<boolean>
  /** Frees all resources. Calling it twice is harmless. Absent: there is nothing to free. */
  close?(): Promise<void>
}
