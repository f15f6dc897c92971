/**
 * The order in which runs are listed, and what they are found by. Shared by the stores that keep
 * their runs in this process, so that they answer alike.
 *
 * 1. Runs stand in arrays, oldest first: one of all, one for each status and each tenant. A page is
 *    a walk backwards from a place found by bisection, through the shortest that hold its runs.
 * 2. A cursor names the last run of its page, not a position: runs that are added or removed in the
 *    meantime neither repeat nor hide another.
 *
 * @module
 */
import { InvalidRequestError } from '../errors.js'
import { isTerminal, type RunOwner, type RunStatus } from '../events.js'
import type { RunHead } from '../run-details.js'
import type { RunQuery } from '../store.js'
import { compareRuns, newestFirst, OrderedRuns, type Dated } from './ordered-runs.js'

/** What a run is listed and found by. All but `status` and `endedMs` stay as they were created. */
export interface IndexedRun extends Dated {
  readonly goal: string
  readonly modelName: string
  readonly ownerId: string | null
  readonly tenant: string | null
  /** The idempotency key it was created with. */
  readonly key: string | null
  status: RunStatus
  /** Epoch milliseconds; 0 until the run has ended. */
  endedMs: number
}

/** One page of {@link RunIndex.page}. */
export interface IndexPage<R> {
  readonly runs: readonly R[]
  readonly next: string | null
}

/** Which ended runs are kept. Omitted or undefined keeps all. */
export interface Retention {
  /** At most so many ended runs: those created first are dropped first. */
  readonly runs?: number | undefined
  /** Runs that ended longer ago are dropped. */
  readonly days?: number | undefined
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
    ownerId: owner.id,
    tenant: owner.tenant,
    key: idempotency?.key ?? null,
    status: details.status,
    endedMs: details.ended_at === null ? 0 : Date.parse(details.ended_at),
  }
}

/** Runs in the order of their creation, with counts by status and a lookup by idempotency key. */
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
  readonly #byKey = new Map<string, R[]>()

  get size(): number {
    return this.#all.size
  }

  get(runId: string): R | undefined {
    return this.#byId.get(runId)
  }

  /** All runs, oldest first; the array is a copy. */
  all(): R[] {
    return this.#all.all()
  }

  /** Adds a run whose id is not in the index. */
  add(run: R): void {
    this.#byId.set(run.runId, run)
    this.#all.add(run)
    this.#byStatus[run.status].add(run)
    let ofTenant = this.#byTenant.get(run.tenant)
    if (ofTenant === undefined) {
      ofTenant = new OrderedRuns()
      this.#byTenant.set(run.tenant, ofTenant)
    }
    ofTenant.add(run)
    if (run.key === null) return
    const name = keyName({ id: run.ownerId, tenant: run.tenant }, run.key)
    const same = this.#byKey.get(name)
    if (same === undefined) this.#byKey.set(name, [run])
    else same.push(run)
  }

  /** Takes a run out; one that is not in the index is no error. */
  remove(run: R): void {
    if (this.#byId.get(run.runId) !== run) return
    this.#byId.delete(run.runId)
    this.#all.remove(run)
    this.#byStatus[run.status].remove(run)
    const ofTenant = this.#byTenant.get(run.tenant)
    ofTenant?.remove(run)
    if (ofTenant?.size === 0) this.#byTenant.delete(run.tenant)
    if (run.key === null) return
    const name = keyName({ id: run.ownerId, tenant: run.tenant }, run.key)
    const others = (this.#byKey.get(name) ?? []).filter((other) => other !== run)
    if (others.length === 0) this.#byKey.delete(name)
    else this.#byKey.set(name, others)
  }

  /** Notes what has changed in a run since it was added. */
  update(run: R, head: RunHead): void {
    const { status, ended_at } = head.details
    if (run.status === status) return
    this.#byStatus[run.status].remove(run)
    this.#byStatus[status].add(run)
    run.status = status
    run.endedMs = ended_at === null ? 0 : Date.parse(ended_at)
  }

  /** Number of runs by status. */
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
   * The newest run that `owner` created with this key at or after `since` (float seconds since the
   * epoch).
   */
  findByKey(owner: RunOwner, key: string, since: number): R | undefined {
    let newest: R | undefined
    for (const run of this.#byKey.get(keyName(owner, key)) ?? []) {
      if (run.createdMs < Math.floor(toMs(since))) continue
      if (newest === undefined || compareRuns(newest, run) < 0) newest = run
    }
    return newest
  }

  /**
   * One page, newest first.
   *
   * @throws {@link InvalidRequestError} for a cursor that no page gave, RangeError for a limit
   * that is not an integer of 1 or more.
   */
  page(query: RunQuery): IndexPage<R> {
    const { limit, createdAfter, createdBefore, cursor } = query
    if (!Number.isInteger(limit) || limit < 1) {
      throw new RangeError(`limit must be an integer of 1 or more, got ${String(limit)}`)
    }
    let before = createdBefore === undefined ? null : beginningOf(Math.ceil(toMs(createdBefore)))
    if (cursor !== undefined) {
      const last = decodeCursor(cursor)
      if (before === null || compareRuns(last, before) < 0) before = last
    }
    const after =
      createdAfter === undefined ? null : beginningOf(Math.floor(toMs(createdAfter)) + 1)
    const matches = matcher(query)
    const runs: R[] = []
    for (const run of newestFirst(this.#candidates(query), before, after)) {
      if (!matches(run)) continue
      const last = runs.at(-1)
      if (runs.length === limit && last !== undefined) return { runs, next: encodeCursor(last) }
      runs.push(run)
    }
    return { runs, next: null }
  }

  /** The shortest lists that hold every run of the query. */
  #candidates({ tenant, status }: RunQuery): readonly OrderedRuns<R>[] {
    const ofTenant = tenant === undefined ? this.#all : this.#byTenant.get(tenant)
    if (ofTenant === undefined) return []
    if (status === undefined || status.length === 0) return [ofTenant]
    const ofStatus = [...new Set(status)].map((one) => this.#byStatus[one])
    const size = ofStatus.reduce((sum, list) => sum + list.size, 0)
    return size < ofTenant.size ? ofStatus : [ofTenant]
  }

  /** Ended runs that the rule no longer keeps, oldest first. `now` in epoch milliseconds. */
  expired({ runs, days }: Retention, now: number): R[] {
    const { achieved, failed, aborted } = this.#byStatus
    let surplus = runs === undefined ? 0 : achieved.size + failed.size + aborted.size - runs
    const limit = days === undefined ? -Infinity : now - days * MS_PER_DAY
    const expired: R[] = []
    for (let i = 0; i < this.#all.size; i++) {
      const run = this.#all.at(i) as R
      // Nothing that was created later has ended longer ago than this.
      if (surplus <= 0 && run.createdMs >= limit) break
      if (!isTerminal(run.status)) continue
      if (surplus > 0 || run.endedMs < limit) {
        expired.push(run)
        surplus -= 1
      }
    }
    return expired
  }
}

/** Milliseconds of float seconds, without what the multiplication adds behind the microseconds. */
export function toMs(seconds: number): number {
  return Math.round(seconds * 1e6) / 1e3
}

function keyName({ id, tenant }: RunOwner, key: string): string {
  return JSON.stringify([tenant, id, key])
}

/** The conditions of a query that the order of runs does not answer. */
function matcher(query: RunQuery): (run: IndexedRun) => boolean {
  const { tenant, goal, modelName } = query
  const statuses = query.status === undefined || query.status.length === 0 ? null : query.status
  const words = searchWords(query).map(anyCase)
  return (run) =>
    (tenant === undefined || run.tenant === tenant) &&
    (statuses === null || statuses.includes(run.status)) &&
    (goal === undefined || run.goal === goal) &&
    (modelName === undefined || run.modelName === modelName) &&
    (words.length === 0 || holdsAll(run, words))
}

/** What a query searches for, in lower case. */
export function searchWords({ search = '' }: RunQuery): string[] {
  return search.toLowerCase().split(/\s+/).filter(Boolean)
}

function holdsAll({ goal, modelName, runId }: IndexedRun, words: readonly RegExp[]): boolean {
  return words.every((word) => word.test(goal) || word.test(modelName) || word.test(runId))
}

/** Finds a word in any case; unlike lower-casing each text it makes no copy of every goal. */
function anyCase(word: string): RegExp {
  return new RegExp(word.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'), 'i')
}

/** Stands before every run that was created at this millisecond. */
function beginningOf(createdMs: number): Dated {
  return { createdMs, runId: '' }
}

/** The cursor of a page whose last run is this one. */
export function encodeCursor({ createdMs, runId }: Dated): string {
  return Buffer.from(JSON.stringify([createdMs, runId])).toString('base64url')
}

/** The last run of the page that a cursor was given with. @throws {@link InvalidRequestError} */
export function decodeCursor(cursor: string): Dated {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (Array.isArray(value) && value.length === 2) {
      const [createdMs, runId] = value as unknown[]
      if (typeof createdMs === 'number' && typeof runId === 'string') return { createdMs, runId }
    }
  } catch {
    // Not JSON: said below.
  }
  throw new InvalidRequestError([
    { pointer: '/cursor', detail: 'is not the cursor of an earlier page; start again without it' },
  ])
}
