/**
 * Removes the contents that no stored run refers to any more: marks what all checkpoints of all
 * runs refer to, then sweeps what is not marked.
 *
 * 1. It runs in background after this process has removed runs; where others remove some, they see
 *    to that. What a process leaves that dies in between, another one finds within the hour.
 * 2. What captures hold (`ObjectUse`), or what was used within the hour in a store that processes
 *    share, is never removed.
 * 3. While a run or a tree cannot be read, it may refer to anything: nothing is removed, and it is
 *    named. A crash at any point costs nothing: the next sweep begins anew.
 *
 * @module
 */
import { isUnavailable, StoreError } from '../errors.js'
import { objectsOf } from '../workspace/read-tree.js'
import { SeenHashes, type HashSet } from './hash-set.js'
import type { ObjectUse } from './object-use.js'
import { headsOf } from '../log/heads-of.js'
import type { RunHead } from '../run-details.js'
import type { RunStore } from '../store.js'

/** Collaborators of {@link Reclaimer}. */
export interface ReclaimerParts {
  readonly store: StoredRuns
  readonly use: ObjectUse
  /** Called when a sweep failed, once for each reason; the next one may succeed. */
  readonly onProblem: (problem: Error) => void
  /** Called after each sweep in background, and whenever none was needed. */
  readonly onSwept?: (() => void) | undefined
  /** For tests. @defaultValue a timer that does not keep the process alive */
  readonly schedule?: Schedule | undefined
  /** Milliseconds, for tests. @defaultValue `performance.now` */
  readonly now?: (() => number) | undefined
}

/** Calls back after some milliseconds. */
export type Schedule = (callback: () => void, ms: number) => { cancel(): void }

/** What a sweep did. */
export interface Reclaimed {
  /** Blobs that some run refers to, and blobs that were removed. */
  readonly kept: number
  readonly removed: number
}

/** After runs were removed, and after the start. */
const AFTER_DELETE_MS = 1_000
const AFTER_START_MS = 60_000
/** How often it is looked whether runs have gone that nobody has told of. */
const LOOK_MS = 3_600_000
/** Until the next one, a sweep must be over for this many times as long as it took. */
export const REST = 20
/** What a sweep takes for each run, as long as this process has made none. */
const RUN_MS = 5
/** In stores that processes share: what was used within this time stays. */
const UNUSED_MS = 3_600_000
const BATCH = 500

/** See the comment of this file. */
export class Reclaimer {
  readonly #parts: ReclaimerParts
  readonly #now: () => number
  readonly #closing = new AbortController()
  #timer: { cancel(): void } | null = null
  /** When the timer fires, and before when it must not. */
  #at = Infinity
  #notBefore = -Infinity
  #running: Promise<unknown> = Promise.resolve()
  /** The runs as they were when the last sweep that succeeded began. */
  #lastRuns: string | null = null
  #isWanted = false
  /** Of the last sweep, in ms; null before the first. */
  #took: number | null = null
  /** Did the last sweep find what was used too lately? */
  #hasLeft = false
  #missing: readonly string[] = []
  readonly #reported = new Set<string>()

  constructor(parts: ReclaimerParts) {
    this.#parts = parts
    this.#now = parts.now ?? (() => performance.now())
  }

  /** Blobs that runs refer to and that are not there, as the last sweep found. */
  get problems(): readonly string[] {
    return this.#missing
  }

  /** Begins to look from time to time; the first time soon, for what a crash has left. */
  start(): void {
    this.#schedule(AFTER_START_MS)
  }

  /** Says that this process has removed runs. */
  deleted(): void {
    this.#isWanted = true
    this.#schedule(AFTER_DELETE_MS)
  }

  /**
   * Sweeps now, after a sweep that is under way.
   *
   * @throws {@link StoreError} when something cannot be read: nothing was removed then, or not all.
   */
  sweep(): Promise<Reclaimed> {
    const sweep = this.#running.then(() => this.#sweep())
    this.#running = sweep.catch(() => undefined)
    return sweep
  }

  /** Ends a sweep that is under way, and all later ones. */
  async close(): Promise<void> {
    this.#closing.abort()
    this.#timer?.cancel()
    await this.#running
  }

  #schedule(ms: number): void {
    const at = Math.max(this.#now() + ms, this.#notBefore)
    if (this.#closing.signal.aborted || at >= this.#at) return
    this.#timer?.cancel()
    this.#at = at
    this.#timer = (this.#parts.schedule ?? inBackground)(() => this.#wake(), at - this.#now())
  }

  #wake(): void {
    this.#at = Infinity
    this.#timer = null
    const work = this.#running.then(() => this.#look())
    this.#running = work
      .then(() => this.#parts.onSwept?.())
      .catch((error: unknown) => this.#report(error))
      .then(() => this.#schedule(this.#isWanted ? AFTER_DELETE_MS : LOOK_MS))
  }

  /** Sweeps if runs may have gone since the last time. */
  async #look(): Promise<void> {
    const { use } = this.#parts
    const isDue = this.#isWanted || this.#hasLeft
    if (!isDue && (await this.#runsNow()) === this.#lastRuns) return
    if (use.isExclusive) return void (await this.#sweep())
    const everyMs = this.#isWanted ? await this.#restOfAll() : LOOK_MS
    if ((await use.objects.claimSweep?.(everyMs)) ?? true) await this.#sweep()
    else this.#notBefore = this.#now() + everyMs
  }

  /** Milliseconds between sweeps of all processes that share the store. */
  async #restOfAll(): Promise<number> {
    const counts = Object.values(await this.#parts.store.counts())
    const took = this.#took ?? RUN_MS * counts.reduce((sum, count) => sum + count, 0)
    return Math.min(Math.max(REST * took, AFTER_START_MS), LOOK_MS)
  }

  /** Differs when runs were created or dropped. */
  async #runsNow(): Promise<string> {
    const { store } = this.#parts
    const [counts, newest] = [await store.counts(), await store.list({ limit: 1 })]
    return JSON.stringify([counts, newest.heads[0]?.details.run_id])
  }

  async #sweep(): Promise<Reclaimed> {
    const { use } = this.#parts
    const { signal } = this.#closing
    signal.throwIfAborted()
    const began = this.#now()
    this.#isWanted = false
    this.#hasLeft = false
    try {
      // Without contents there is nothing to look for.
      if ((await use.objects.list(null, 1)).length === 0) return { kept: 0, removed: 0 }
      const runs = await this.#runsNow()
      const work = async (): Promise<Reclaimed> => this.#remove(await this.#mark(signal), signal)
      const reclaimed = await use.sweeping(work)
      this.#lastRuns = runs
      this.#hasLeft = !use.isExclusive && reclaimed.removed > 0
      return reclaimed
    } catch (error) {
      this.#isWanted = true
      throw error
    } finally {
      const ended = this.#now()
      this.#took = ended - began
      const least = use.isExclusive && !this.#isWanted ? 0 : AFTER_START_MS
      this.#notBefore = ended + Math.max(this.#took * REST, least)
    }
  }

  /** All that the checkpoints of all runs refer to. */
  async #mark(signal: AbortSignal): Promise<HashSet> {
    const { store, use } = this.#parts
    const seen = new SeenHashes()
    for await (const checkpointId of checkpointsOf(store, signal)) {
      if (seen.has(`${checkpointId}/`)) continue
      for await (const _ of objectsOf(use.objects, checkpointId, seen)) signal.throwIfAborted()
    }
    return seen.objects
  }

  async #remove(marked: HashSet, signal: AbortSignal): Promise<Reclaimed> {
    const { use } = this.#parts
    const counts = { kept: 0, removed: 0 }
    let after: string | null = null
    for (;;) {
      signal.throwIfAborted()
      const page: readonly string[] = await use.objects.list(after, BATCH)
      const last = page.at(-1)
      if (last === undefined) break
      // A store that begins anew each time would be listed for ever.
      if (after !== null && last <= after) throw new TypeError('list() must go on after `after`')
      const garbage = page.filter((hash) => !marked.has(hash))
      counts.kept += page.length - garbage.length
      counts.removed += await use.remove(garbage, UNUSED_MS)
      after = last
    }
    this.#missing = counts.kept < marked.size ? await this.#findMissing(marked) : []
    return counts
  }

  async #findMissing(marked: HashSet): Promise<string[]> {
    const missing: string[] = []
    let batch: string[] = []
    const check = async (): Promise<void> => {
      const found = await this.#parts.use.objects.has(batch)
      missing.push(...batch.filter((hash) => !found.has(hash)))
      batch = []
    }
    for (const hash of marked) if (batch.push(hash) === BATCH) await check()
    await check()
    return missing.map((hash) => `object ${hash}, to which checkpoints refer, is missing`)
  }

  #report(error: unknown): void {
    if (this.#closing.signal.aborted || isUnavailable(error)) return
    const { message } = error as Error
    if (this.#reported.has(message)) return
    this.#reported.add(message)
    const problem = `contents of deleted runs are not removed: ${message}`
    this.#parts.onProblem(new StoreError('ERR_AGENT_STORE_CORRUPT', problem, { cause: error }))
  }
}

export function inBackground(callback: () => void, ms: number): { cancel(): void } {
  const timer = setTimeout(callback, Math.min(ms, 0x7fffffff)).unref()
  return { cancel: () => clearTimeout(timer) }
}

/** The part of a store of runs that is read here. */
export type StoredRuns = Pick<RunStore, 'counts' | 'head' | 'list' | 'read'>

/**
 * The ids of all checkpoints that stored runs refer to, some of them several times. Only the
 * records of checkpoints are read, from the newest one back, and of forks the first record.
 *
 * @throws {@link StoreError} when some run cannot be read, and may refer to anything; the signal's
 * reason.
 */
export async function* checkpointsOf(
  store: StoredRuns,
  signal: AbortSignal,
): AsyncGenerator<string> {
  for await (const head of headsOf(store, {}, signal)) yield* rootsOf(store, head, signal)
}

async function* rootsOf(
  store: StoredRuns,
  { details, checkpointSeq, problem }: RunHead,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const { run_id, forked_from } = details
  if (problem !== undefined) throw unreadable(run_id, problem)
  if (forked_from !== null) {
    const [created] = await store.read(run_id, 0, 1)
    if (created === undefined) return await assertDeleted(store, run_id)
    const fork = created.kind === 'run_created' ? created.private?.fork : undefined
    for (const id of [fork?.checkpoint_id, fork?.applies_from]) if (id != null) yield id
  }
  for (let seq = checkpointSeq; seq !== null; ) {
    signal.throwIfAborted()
    const [record] = await store.read(run_id, seq - 1, 1)
    if (record?.kind !== 'checkpoint') return await assertDeleted(store, run_id)
    yield record.payload.checkpoint_id
    if (record.private?.check_start !== undefined) yield record.private.check_start
    const previous: number | null = record.private?.previous ?? null
    // Whatever the log holds, this ends.
    seq = previous !== null && previous < seq ? previous : null
  }
}

/** A run that was deleted meanwhile refers to nothing. */
async function assertDeleted(store: StoredRuns, runId: string): Promise<void> {
  if ((await store.head(runId)) === null) return
  throw unreadable(runId, 'a checkpoint is missing from its log')
}

function unreadable(runId: string, problem: string): StoreError {
  const message = `run ${runId} cannot be read: ${problem}`
  return new StoreError('ERR_AGENT_STORE_CORRUPT', message)
}
