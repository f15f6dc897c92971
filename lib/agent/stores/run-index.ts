/**
 * The in-memory index of runs: lists, counts and lookup by idempotency key. Shared by MemoryStore
 * and FileStore, so that both return the same pages.
 *
 * 1. Runs are in sorted arrays, oldest first: one of all runs, one per status, tenant, root and
 *    folder. A page looks at the shortest of them that contain its runs, in slices: the next one
 *    begins at the key where the last one ended, so no run is looked at twice.
 * 2. Other conditions and orders have no lists: a page of them looks at every run.
 * 3. A cursor names the last run of its page rather than an offset: runs added or removed in the
 *    meantime cause neither repeats nor gaps.
 *
 * @module
 */
import { FolderIndex } from '../../internal/folder-index.js'
import { isTerminal, type RunOwner, type RunStatus } from '../events.js'
import type { RunHead } from '../run-details.js'
import type { RunQuery } from '../store.js'
import { isOperating, type IndexedRun } from './indexed-run.js'
import { checkQuery, metadataKeys, toMs } from './list-query.js'
import { merged, OrderedRuns, type SortKey } from './ordered-runs.js'
import { PageScan, type IndexPage } from './page-scan.js'
import type { Retention } from './retention.js'

const MS_PER_DAY = 86_400_000
/** Runs that a page looks at between two chances for other work of the process. */
const SLICE = 256
/** Scans of a page with pauses between their slices. */
const MAX_PAUSED_SCANS = 2

export class RunIndex<R extends IndexedRun> {
  readonly #byId = new Map<string, R>()
  readonly #byKey = new Map<string, OrderedRuns<R>>()
  readonly #all = new OrderedRuns<R>()
  readonly #byStatus: Readonly<Record<RunStatus, OrderedRuns<R>>> = {
    pending: new OrderedRuns(),
    running: new OrderedRuns(),
    awaiting_human: new OrderedRuns(),
    achieved: new OrderedRuns(),
    failed: new OrderedRuns(),
    aborted: new OrderedRuns(),
  }
  /**
   * Every list that a service with tenants returns is of one tenant, and so is what admission asks
   * for each new run: this must not cost a look at the runs of all others.
   */
  readonly #byTenant = new Map<string | null, OrderedRuns<R>>()
  /** Children by the root of their tree: runs look for them, as do deletion and retention. */
  readonly #byRoot = new Map<string, OrderedRuns<R>>()
  /** Each run that begins looks for earlier ones in its folder. */
  readonly #byFolder = new Map<string, OrderedRuns<R>>()
  #endedRoots = 0
  readonly #operating = new Set<R>()
  /** The tenants of each folder; null until there has been a need for them. */
  #folders: FolderIndex<string | null> | null = null

  get(runId: string): R | undefined {
    return this.#byId.get(runId)
  }

  /** As `RunStore.operating`. */
  operating(): string[] {
    return [...this.#operating].map(({ runId }) => runId)
  }

  /** All runs, oldest first; the array is a copy. */
  all(): R[] {
    return this.#all.all()
  }

  /** Adds a run whose id is not in the index yet. */
  add(run: R): void {
    this.#byId.set(run.runId, run)
    if (run.key !== null) addTo(this.#byKey, keyOf(run, run.key), run)
    this.#all.add(run)
    this.#byStatus[run.status].add(run)
    addTo(this.#byTenant, run.tenant, run)
    if (run.child !== null) addTo(this.#byRoot, run.child.root, run)
    else if (isTerminal(run.status)) this.#endedRoots += 1
    if (run.operates) this.#operating.add(run)
    if (run.cwd !== null) addTo(this.#byFolder, run.cwd, run)
    if (run.cwd) this.#folders?.add(run.tenant, run.cwd)
  }

  /** Removes a run, or does nothing when it is not in the index. */
  remove(run: R): void {
    if (this.#byId.get(run.runId) !== run) return
    this.#byId.delete(run.runId)
    if (run.key !== null) removeFrom(this.#byKey, keyOf(run, run.key), run)
    this.#all.remove(run)
    this.#byStatus[run.status].remove(run)
    removeFrom(this.#byTenant, run.tenant, run)
    if (run.child !== null) removeFrom(this.#byRoot, run.child.root, run)
    else if (isTerminal(run.status)) this.#endedRoots -= 1
    this.#operating.delete(run)
    if (run.cwd !== null) removeFrom(this.#byFolder, run.cwd, run)
    if (run.cwd) this.#folders?.remove(run.tenant, run.cwd)
  }

  /** Brings what can change of a run up to date with its head. */
  update(run: R, head: RunHead): void {
    const { status, ended_at, end_reason } = head.details
    run.operates = isOperating(head)
    if (run.operates) this.#operating.add(run)
    else this.#operating.delete(run)
    if (run.status === status) return
    this.#byStatus[run.status].remove(run)
    this.#byStatus[status].add(run)
    // No status follows the end.
    if (run.child === null && isTerminal(status)) this.#endedRoots += 1
    run.status = status
    run.endedMs = ended_at === null ? 0 : Date.parse(ended_at)
    run.endReason ??= end_reason
  }

  /** Fills in what is not known of a run, whose index was written by an earlier version. */
  complete(run: R, { details }: RunHead): void {
    if (run.cwd === null) {
      run.cwd = details.cwd
      if (this.#byId.get(run.runId) === run) addTo(this.#byFolder, run.cwd, run)
    }
    if (run.metadata !== null) return
    run.metadata = metadataKeys(details.metadata)
    run.endReason ??= details.end_reason
  }

  /** Are there runs of tenants other than this one? */
  hasOtherTenants(tenant: string | null): boolean {
    return this.#byTenant.size > (this.#byTenant.has(tenant) ? 1 : 0)
  }

  /** As `RunStore.hasForeignRun`. Costs nothing as long as all runs are of one tenant. */
  hasForeignRun(folder: string, tenant: string | null): boolean {
    if (!this.hasOtherTenants(tenant)) return false
    if (this.#folders === null) {
      this.#folders = new FolderIndex()
      for (const run of this.#all.all()) {
        if (run.cwd) this.#folders.add(run.tenant, run.cwd)
      }
    }
    return this.#folders.find(folder, tenant) !== undefined
  }

  counts(): Record<RunStatus, number> {
    const { pending, running, awaiting_human, achieved, failed, aborted } = this.#byStatus
    return {
      pending: pending.size,
      running: running.size,
      awaiting_human: awaiting_human.size,
      achieved: achieved.size,
      failed: failed.size,
      aborted: aborted.size,
    }
  }

  /**
   * The newest run that `owner` created with this key at or after `since`, in float seconds since
   * the epoch.
   */
  findByKey({ id, tenant }: RunOwner, key: string, since: number): R | undefined {
    const runs = this.#byKey.get(keyOf({ ownerId: id, tenant }, key))
    const newest = runs?.at(runs.size - 1)
    return newest && newest.createdMs >= Math.floor(toMs(since)) ? newest : undefined
  }

  /**
   * Finds one page, in the order of the query; yields between slices.
   *
   * The runs of a page are as they are when it is returned: if one was removed or changed during a
   * pause, the scan starts again, the last time without pauses. Runs that were added or changed
   * after the scan passed them may be missing.
   *
   * @throws as {@link checkQuery}; {@link InvalidRequestError} for an invalid cursor.
   */
  *page(query: RunQuery): Generator<void, IndexPage<R>> {
    checkQuery(query)
    for (let scans = 1; ; scans++) {
      const scan = new PageScan<R>(query)
      while (this.#scanSlice(scan, query)) {
        if (scans <= MAX_PAUSED_SCANS) yield
      }
      if (scan.end((run) => this.#byId.get(run.runId) === run)) return scan.page()
    }
  }

  /** Returns false once there are no more runs to look at. */
  #scanSlice(scan: PageScan<R>, query: RunQuery): boolean {
    let left = SLICE
    for (const run of merged(this.#candidates(query), ...scan.bounds, scan.step)) {
      if (scan.add(run)) return false
      if (--left === 0) return true
    }
    return false
  }

  /** The shortest lists that contain every matching run. */
  #candidates({ cwd, tenant, status = [], root }: RunQuery): readonly OrderedRuns<R>[] {
    const choices: (readonly (OrderedRuns<R> | undefined)[])[] = [[this.#all]]
    if (tenant !== undefined) choices.push([this.#byTenant.get(tenant)])
    // Before this question, every run is asked for its folder.
    if (cwd !== undefined) choices.push([this.#byFolder.get(cwd)])
    if (status.length > 0) choices.push([...new Set(status)].map((one) => this.#byStatus[one]))
    if (root !== undefined) choices.push([this.#byRoot.get(root), this.#listOf(root)])
    const sizes = choices.map((lists) => lists.reduce((sum, list) => sum + (list?.size ?? 0), 0))
    const shortest = choices[sizes.indexOf(Math.min(...sizes))] ?? []
    return shortest.filter((list) => list !== undefined)
  }

  /** A list of this run, if there is one. */
  #listOf(runId: string): OrderedRuns<R> {
    const list = new OrderedRuns<R>()
    const run = this.#byId.get(runId)
    if (run !== undefined) list.add(run)
    return list
  }

  /**
   * The trees to be dropped, oldest first. Each ends with its root, so that whoever drops its runs
   * in this order leaves none without a root. A child without one is a tree of its own, which does
   * not count. `now` is in epoch milliseconds.
   */
  expired({ runs, days }: Retention, now: number): R[][] {
    let surplus = runs === undefined ? 0 : this.#endedRoots - runs
    const limit = days === undefined ? -Infinity : now - days * MS_PER_DAY
    const expired: R[][] = []
    for (let i = 0; i < this.#all.size; i++) {
      const run = this.#all.at(i) as R
      // A run created after the limit cannot have ended before it.
      if (surplus <= 0 && run.createdMs >= limit) break
      const { child } = run
      if (!isTerminal(run.status) || (child !== null && this.#byId.has(child.root))) continue
      const isDue = surplus > 0 || run.endedMs < limit
      if (child === null) surplus -= 1
      if (!isDue) continue
      const children = child === null ? this.#byRoot.get(run.runId)?.all() : undefined
      const tree = [...(children?.reverse() ?? []), run]
      if (tree.every(({ status, operates }) => isTerminal(status) && !operates)) expired.push(tree)
    }
    return expired
  }
}

function addTo<K, R extends SortKey>(lists: Map<K, OrderedRuns<R>>, key: K, run: R): void {
  const list = lists.get(key) ?? new OrderedRuns()
  if (list.size === 0) lists.set(key, list)
  list.add(run)
}

function removeFrom<K, R extends SortKey>(lists: Map<K, OrderedRuns<R>>, key: K, run: R): void {
  const list = lists.get(key)
  list?.remove(run)
  if (list?.size === 0) lists.delete(key)
}

function keyOf({ ownerId, tenant }: Pick<IndexedRun, 'ownerId' | 'tenant'>, key: string): string {
  return JSON.stringify([tenant, ownerId, key])
}
