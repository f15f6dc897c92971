/**
 * The in-memory index of runs: lists, counts and lookup by idempotency key. Shared by MemoryStore
 * and FileStore, so that both return the same pages.
 *
 * 1. Runs are in sorted arrays, oldest first: one of all runs, one per status, one per tenant; runs
 *    that others started also in one per root and one per parent, and once there are any, roots in
 *    one of roots. Those by folder, end reason and metadata are made when one is first asked for. A
 *    page reads the shortest of them that contain its runs, from a binary search on; in another
 *    order than that of creation, those of one text after the other.
 * 2. A cursor names the last run of its page rather than an offset: runs added or removed in the
 *    meantime cause neither repeats nor gaps.
 *
 * @module
 */
import { FolderIndex } from '../../internal/folder-index.js'
import { checkOptions, describeValue, type OptionKinds } from '../../internal/options.js'
import { isTerminal, type EndReason, type RunOwner, type RunStatus } from '../events.js'
import type { RunHead } from '../run-details.js'
import type { RunQuery } from '../store.js'
import { childPlaceOf } from './child-place.js'
import type { IndexedRun } from './indexed-run.js'
import { LazyLists } from './lazy-lists.js'
import { metadataKeys } from './list-keys.js'
import {
  checkSort, compareTexts, decodeCursor, encodeCursor, folderOrder, orderOf, type OrderField,
} from './list-order.js'
import { compareRuns, merged, OrderedRuns, type SortKey } from './ordered-runs.js'

/** One page of {@link RunIndex.page}. */
export interface IndexPage<R> {
  readonly runs: readonly R[]
  readonly next: string | null
}

/**
 * Which ended runs are kept. An omitted or undefined field sets no bound. Runs that others started
 * are kept and dropped with the root of their tree, which is kept as long as one of them lives.
 */
export interface Retention {
  /** The number of ended roots to keep; the oldest by creation are dropped first. */
  readonly runs?: number | undefined
  /** Roots that ended more days ago are dropped. */
  readonly days?: number | undefined
}

const RETENTION: OptionKinds<Retention> = { runs: 'number', days: 'number' }

/** @throws TypeError that names an invalid part of `retain`. */
export function checkRetention(retain: Retention): Retention {
  checkOptions(retain, RETENTION, 'retain')
  const { runs, days } = retain
  if (runs !== undefined && !(Number.isInteger(runs) && runs >= 0)) {
    throw new TypeError(`retain.runs must be an integer of 0 or more, got ${runs}`)
  }
  if (days !== undefined && !(days >= 0)) {
    throw new TypeError(`retain.days must be 0 or more, got ${days}`)
  }
  return { ...retain }
}

const MS_PER_DAY = 86_400_000

/** The index fields of a run, from its head. */
export function indexFields(head: RunHead): IndexedRun {
  const { details, owner, idempotency } = head
  return {
    runId: details.run_id,
    createdMs: Date.parse(details.created_at),
    goal: details.goal,
    modelName: details.model_name,
    cwd: details.cwd,
    ownerId: owner.id,
    tenant: owner.tenant,
    key: idempotency?.key ?? null,
    child: childPlaceOf(details),
    status: details.status,
    endedMs: details.ended_at === null ? 0 : Date.parse(details.ended_at),
    endReason: details.end_reason,
    metadata: metadataKeys(details.metadata),
    operates: isOperating(head),
  }
}

/** Heads of earlier versions do not have the field. */
function isOperating({ operation }: { readonly operation?: string | null }): boolean {
  return (operation ?? null) !== null
}

export class RunIndex<R extends IndexedRun> {
  readonly #byId = new Map<string, R>()
  readonly #all = new OrderedRuns<R>()
  readonly #byTenant = new Map<string | null, OrderedRuns<R>>()
  readonly #byStatus: Readonly<Record<RunStatus, OrderedRuns<R>>> = {
    pending: new OrderedRuns(),
    running: new OrderedRuns(),
    awaiting_human: new OrderedRuns(),
    achieved: new OrderedRuns(),
    failed: new OrderedRuns(),
    aborted: new OrderedRuns(),
  }
  /** Children by the root of their tree, and by the run that started them. */
  readonly #byRoot = new Map<string, OrderedRuns<R>>()
  readonly #byParent = new Map<string, OrderedRuns<R>>()
  /** Null as long as all runs are roots. */
  #roots: OrderedRuns<R> | null = null
  #endedRoots = 0
  readonly #byKey = new Map<string, R[]>()
  readonly #operating = new Set<R>()
  readonly #byFolder = new LazyLists<R>(({ cwd }) => (cwd === null ? [] : [cwd]))
  readonly #byEndReason = new LazyLists<R>(({ endReason }) => endReason === null ? [] : [endReason])
  readonly #byMetadata = new LazyLists<R>(({ metadata }) => metadata ?? [])
  /** In the orders of a list: all runs, by the text that comes first in the order. */
  readonly #ordered: Readonly<Record<OrderField, LazyLists<R>>> = {
    cwd: new LazyLists<R>(({ cwd }) => [folderOrder(cwd ?? '')]),
    end_reason: new LazyLists<R>(({ endReason }) => [endReason ?? '']),
    parent: new LazyLists<R>(({ child }) => [child?.parent ?? '']),
  }
  /** The tenants of each folder; null until there has been a need for them. */
  #folders: FolderIndex<string | null> | null = null

  get size(): number {
    return this.#all.size
  }

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
    this.#all.add(run)
    this.#byStatus[run.status].add(run)
    if (run.operates) this.#operating.add(run)
    addTo(this.#byTenant, run.tenant, run)
    this.#addToTree(run)
    this.#byFolder.add(run)
    this.#byEndReason.add(run)
    this.#byMetadata.add(run)
    for (const lists of Object.values(this.#ordered)) lists.add(run)
    if (run.cwd) this.#folders?.add(run.tenant, run.cwd)
    if (run.key === null) return
    const name = ownedKey({ id: run.ownerId, tenant: run.tenant }, run.key)
    const same = this.#byKey.get(name)
    if (same === undefined) this.#byKey.set(name, [run])
    else same.push(run)
  }

  /** Removes a run, or does nothing when it is not in the index. */
  remove(run: R): void {
    if (this.#byId.get(run.runId) !== run) return
    this.#byId.delete(run.runId)
    this.#all.remove(run)
    this.#byStatus[run.status].remove(run)
    this.#operating.delete(run)
    removeFrom(this.#byTenant, run.tenant, run)
    this.#removeFromTree(run)
    this.#byFolder.remove(run)
    this.#byEndReason.remove(run)
    this.#byMetadata.remove(run)
    for (const lists of Object.values(this.#ordered)) lists.remove(run)
    if (run.cwd) this.#folders?.remove(run.tenant, run.cwd)
    if (run.key === null) return
    const name = ownedKey({ id: run.ownerId, tenant: run.tenant }, run.key)
    const others = (this.#byKey.get(name) ?? []).filter((other) => other !== run)
    if (others.length === 0) this.#byKey.delete(name)
    else this.#byKey.set(name, others)
  }

  #addToTree(run: R): void {
    const { child, status } = run
    if (child === null) {
      this.#roots?.add(run)
      if (isTerminal(status)) this.#endedRoots += 1
      return
    }
    addTo(this.#byRoot, child.root, run)
    if (child.parent !== null) addTo(this.#byParent, child.parent, run)
    if (this.#roots !== null) return
    this.#roots = new OrderedRuns()
    for (const one of this.#all.all()) if (one.child === null) this.#roots.add(one)
  }

  #removeFromTree(run: R): void {
    const { child, status } = run
    if (child === null) {
      this.#roots?.remove(run)
      if (isTerminal(status)) this.#endedRoots -= 1
      return
    }
    removeFrom(this.#byRoot, child.root, run)
    if (child.parent !== null) removeFrom(this.#byParent, child.parent, run)
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
    this.#setEndReason(run, end_reason)
  }

  #setEndReason(run: R, endReason: EndReason | null): void {
    if (run.endReason !== null || endReason === null) return
    this.#ordered.end_reason.remove(run)
    run.endReason = endReason
    this.#ordered.end_reason.add(run)
    this.#byEndReason.add(run)
  }

  /** Fills in what is not known of a run, whose index was written by an earlier version. */
  complete(run: R, { details }: RunHead): void {
    if (run.cwd === null) {
      this.#ordered.cwd.remove(run)
      run.cwd = details.cwd
      this.#ordered.cwd.add(run)
      this.#byFolder.add(run)
    }
    if (run.metadata !== null) return
    run.metadata = metadataKeys(details.metadata)
    this.#byMetadata.add(run)
    this.#setEndReason(run, details.end_reason)
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
  findByKey(owner: RunOwner, key: string, since: number): R | undefined {
    let newest: R | undefined
    for (const run of this.#byKey.get(ownedKey(owner, key)) ?? []) {
      if (run.createdMs < Math.floor(toMs(since))) continue
      if (newest === undefined || compareRuns(newest, run) < 0) newest = run
    }
    return newest
  }

  /**
   * One page, in the order of the query.
   *
   * @throws as {@link checkQuery}; {@link InvalidRequestError} for an invalid cursor.
   */
  page(query: RunQuery): IndexPage<R> {
    checkQuery(query)
    const { limit, sort } = query
    const matches = matcher(query)
    const runs: R[] = []
    let end = ''
    for (const [order, run] of this.#inOrder(query)) {
      if (!matches(run)) continue
      const last = runs.at(-1)
      if (runs.length === limit && last !== undefined) {
        const { createdMs, runId } = last
        return { runs, next: encodeCursor({ createdMs, runId, order: end }, sort) }
      }
      runs.push(run)
      end = order
    }
    return { runs, next: null }
  }

  /** Runs that may match, in the order of the query, and the text that each is ordered by. */
  *#inOrder(query: RunQuery): Generator<readonly [order: string, run: R]> {
    const { sort, cursor } = query
    const { field, step } = orderOf(sort)
    const last = cursor === undefined ? null : decodeCursor(cursor, sort)
    if (field === null) {
      const [after, before] = boundsOf(query, last, step)
      for (const run of merged(this.#candidates(query), before, after, step)) yield ['', run]
      return
    }
    const lists = this.#ordered[field]
    for (const order of lists.keys(this.#all, last?.order ?? null, step, compareTexts)) {
      const [after, before] = boundsOf(query, order === last?.order ? last : null, step)
      const list = lists.get(order, this.#all)
      if (list === undefined) continue
      for (const run of merged([list], before, after, step)) yield [order, run]
    }
  }

  /** The shortest lists that contain every matching run. */
  #candidates(query: RunQuery): readonly OrderedRuns<R>[] {
    const { tenant, status = [], root, parent, role, cwd, endReason = [], metadata = {} } = query
    const all = this.#all
    const choices: (readonly (OrderedRuns<R> | undefined)[])[] = [[all]]
    if (tenant !== undefined) choices.push([this.#byTenant.get(tenant)])
    if (status.length > 0) choices.push([...new Set(status)].map((one) => this.#byStatus[one]))
    if (root !== undefined) choices.push([this.#byRoot.get(root), this.#listOf(root)])
    if (parent !== undefined) choices.push([this.#byParent.get(parent)])
    if (role !== undefined) choices.push([this.#roots ?? all])
    if (cwd !== undefined) choices.push([this.#byFolder.get(cwd, all)])
    if (endReason.length > 0)
      choices.push([...new Set(endReason)].map((one) => this.#byEndReason.get(one, all)))
    for (const key of metadataKeys(metadata)) choices.push([this.#byMetadata.get(key, all)])
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

/** @throws RangeError or TypeError that names an invalid part of `query`. */
export function checkQuery({ limit, role, sort, metadata }: RunQuery): void {
  if (!Number.isInteger(limit) || limit < 1) {
    throw new RangeError(`limit must be an integer of 1 or more, got ${String(limit)}`)
  }
  if (role !== undefined && role !== 'root') {
    throw new TypeError(`role must be 'root' or undefined, got ${JSON.stringify(role)}`)
  }
  checkSort(sort)
  if (metadata !== undefined) checkMetadata(metadata)
}

/** Names in one query: as many as a run has. */
const MAX_NAMES = 32

function checkMetadata(metadata: Readonly<Record<string, unknown>>): void {
  const entries = Object.entries(metadata)
  if (entries.length === 0 || entries.length > MAX_NAMES) {
    throw new RangeError(`metadata must have 1 to ${MAX_NAMES} names, got ${entries.length}`)
  }
  for (const [name, value] of entries) {
    if (typeof value === 'string') continue
    throw new TypeError(`metadata.${name} must be a string, got ${describeValue(value)}`)
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

/** Float seconds to milliseconds, rounded to microseconds to drop floating-point noise. */
export function toMs(seconds: number): number {
  return Math.round(seconds * 1e6) / 1e3
}

function ownedKey({ id, tenant }: RunOwner, key: string): string {
  return JSON.stringify([tenant, id, key])
}

/** Tests a run against every condition of a query except time and cursor. */
function matcher(query: RunQuery): (run: IndexedRun) => boolean {
  const { tenant, goal, modelName, root, parent, role, cwd, metadata = {} } = query
  const statuses = query.status === undefined || query.status.length === 0 ? null : query.status
  const { endReason = [] } = query
  const keys = metadataKeys(metadata)
  const words = searchWords(query).map(ignoringCase)
  return (run) =>
    (tenant === undefined || run.tenant === tenant) &&
    (statuses === null || statuses.includes(run.status)) &&
    (goal === undefined || run.goal === goal) &&
    (modelName === undefined || run.modelName === modelName) &&
    (root === undefined || (run.child?.root ?? run.runId) === root) &&
    (parent === undefined || run.child?.parent === parent) &&
    (role === undefined || run.child === null) &&
    (cwd === undefined || run.cwd === cwd) &&
    (endReason.length === 0 || (run.endReason !== null && endReason.includes(run.endReason))) &&
    keys.every((key) => run.metadata?.includes(key)) &&
    (words.length === 0 || containsAll(run, words))
}

/** The words that a query searches for, in lower case. */
export function searchWords({ search = '' }: RunQuery): string[] {
  return search.toLowerCase().split(/\s+/).filter(Boolean)
}

function containsAll({ goal, modelName, runId }: IndexedRun, words: readonly RegExp[]): boolean {
  return words.every((word) => word.test(goal) || word.test(modelName) || word.test(runId))
}

/** Matches a word in any case, without a lower-case copy of every goal. */
function ignoringCase(word: string): RegExp {
  return new RegExp(word.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'), 'i')
}

/** The first key of a page that follows `last`, and the first behind it; null sets no bound. */
function boundsOf(
  { createdAfter, createdBefore }: RunQuery,
  last: SortKey | null,
  step: 1 | -1,
): [after: SortKey | null, before: SortKey | null] {
  let before = createdBefore === undefined ? null : startOfMs(Math.ceil(toMs(createdBefore)))
  let after = createdAfter === undefined ? null : startOfMs(Math.floor(toMs(createdAfter)) + 1)
  if (last === null) return [after, before]
  if (step === -1) {
    if (before === null || compareRuns(last, before) < 0) before = last
  } else {
    // The next key that a run can have.
    const next = { ...last, runId: `${last.runId}\0` }
    if (after === null || compareRuns(after, next) < 0) after = next
  }
  return [after, before]
}

/** Sorts before every run created in this millisecond. */
function startOfMs(createdMs: number): SortKey {
  return { createdMs, runId: '' }
}
