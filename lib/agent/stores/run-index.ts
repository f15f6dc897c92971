/**
 * The order in which runs are listed, and what they are found by. Shared by the stores that keep
 * their runs in this process, so that they answer alike.
 *
 * 1. Runs stand in one array, oldest first, by (`createdMs`, `runId`). New runs nearly always go to
 *    its end; a page is a walk backwards from a place found by bisection.
 * 2. A cursor names the last run of its page, not a position: runs that are added or removed in the
 *    meantime neither repeat nor hide another.
 *
 * @module
 */
import { InvalidRequestError } from '../errors.js'
import type { RunStatus } from '../events.js'
import { isTerminal, type RunHead } from '../run-details.js'
import type { RunQuery } from '../store.js'

/** What a run is listed and found by. All but `status` and `endedMs` stay as they were created. */
export interface IndexedRun {
  readonly runId: string
  /** Epoch milliseconds, as precise as `created_at` is shown. */
  readonly createdMs: number
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
  readonly #ordered: R[] = []
  readonly #byKey = new Map<string, R[]>()
  readonly #counts: Record<RunStatus, number> = {
    pending: 0,
    running: 0,
    awaiting_human: 0,
    achieved: 0,
    failed: 0,
    aborted: 0,
  }

  get size(): number {
    return this.#ordered.length
  }

  get(runId: string): R | undefined {
    return this.#byId.get(runId)
  }

  /** All runs, oldest first; the array is a copy. */
  all(): R[] {
    return this.#ordered.slice()
  }

  /** Adds a run whose id is not in the index. */
  add(run: R): void {
    this.#byId.set(run.runId, run)
    const last = this.#ordered.at(-1)
    if (last === undefined || compare(last, run.createdMs, run.runId) < 0) this.#ordered.push(run)
    else this.#ordered.splice(this.#place(run.createdMs, run.runId), 0, run)
    this.#counts[run.status] += 1
    if (run.key === null) return
    const name = keyName(run.ownerId, run.key)
    const same = this.#byKey.get(name)
    if (same === undefined) this.#byKey.set(name, [run])
    else same.push(run)
  }

  /** Takes a run out; one that is not in the index is no error. */
  remove(run: R): void {
    if (this.#byId.get(run.runId) !== run) return
    this.#byId.delete(run.runId)
    this.#ordered.splice(this.#place(run.createdMs, run.runId), 1)
    this.#counts[run.status] -= 1
    if (run.key === null) return
    const name = keyName(run.ownerId, run.key)
    const others = (this.#byKey.get(name) ?? []).filter((other) => other !== run)
    if (others.length === 0) this.#byKey.delete(name)
    else this.#byKey.set(name, others)
  }

  /** Notes what has changed in a run since it was added. */
  update(run: R, head: RunHead): void {
    const { status, ended_at } = head.details
    if (run.status === status) return
    this.#counts[run.status] -= 1
    this.#counts[status] += 1
    run.status = status
    run.endedMs = ended_at === null ? 0 : Date.parse(ended_at)
  }

  /** Number of runs by status; a copy. */
  counts(): Record<RunStatus, number> {
    return { ...this.#counts }
  }

  /**
   * The newest run that `owner` created with this key at or after `since` (float seconds since the
   * epoch).
   */
  findByKey(ownerId: string | null, key: string, since: number): R | undefined {
    let newest: R | undefined
    for (const run of this.#byKey.get(keyName(ownerId, key)) ?? []) {
      if (run.createdMs < Math.floor(toMs(since))) continue
      if (newest === undefined || compare(newest, run.createdMs, run.runId) < 0) newest = run
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
    const { limit } = query
    if (!Number.isInteger(limit) || limit < 1) {
      throw new RangeError(`limit must be an integer of 1 or more, got ${String(limit)}`)
    }
    const matches = matcher(query)
    const runs: R[] = []
    let at = this.#ordered.length
    if (query.cursor !== undefined) {
      const { createdMs, runId } = parseCursor(query.cursor)
      at = this.#place(createdMs, runId)
    } else if (query.createdBefore !== undefined) {
      at = this.#place(Math.ceil(toMs(query.createdBefore)), '')
    }
    const oldest = query.createdAfter === undefined ? -Infinity : toMs(query.createdAfter)
    for (at -= 1; at >= 0; at--) {
      const run = this.#ordered[at]
      if (run === undefined || run.createdMs <= oldest) break
      if (!matches(run)) continue
      const last = runs.at(-1)
      if (runs.length === limit && last !== undefined) return { runs, next: encodeCursor(last) }
      runs.push(run)
    }
    return { runs, next: null }
  }

  /** Ended runs that the rule no longer keeps, oldest first. `now` in epoch milliseconds. */
  expired({ runs, days }: Retention, now: number): R[] {
    const ended = this.#counts.achieved + this.#counts.failed + this.#counts.aborted
    let surplus = runs === undefined ? 0 : ended - runs
    const limit = days === undefined ? -Infinity : now - days * MS_PER_DAY
    const expired: R[] = []
    for (const run of this.#ordered) {
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

  /** Index of the first run that is not older than (`createdMs`, `runId`). */
  #place(createdMs: number, runId: string): number {
    let low = 0
    let high = this.#ordered.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const run = this.#ordered[middle]
      if (run !== undefined && compare(run, createdMs, runId) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** Negative when `run` stands before (`createdMs`, `runId`), 0 when it is the same. */
function compare(run: IndexedRun, createdMs: number, runId: string): number {
  if (run.createdMs !== createdMs) return run.createdMs - createdMs
  return run.runId < runId ? -1 : run.runId === runId ? 0 : 1
}

/** Milliseconds of float seconds, without what the multiplication adds behind the microseconds. */
function toMs(seconds: number): number {
  return Math.round(seconds * 1e6) / 1e3
}

function keyName(ownerId: string | null, key: string): string {
  return JSON.stringify([ownerId, key])
}

/** The conditions of a query that the order of runs does not answer. */
function matcher(query: RunQuery): (run: IndexedRun) => boolean {
  const { tenant, goal, modelName, createdBefore } = query
  const statuses = query.status === undefined || query.status.length === 0 ? null : query.status
  const newest = createdBefore === undefined ? Infinity : toMs(createdBefore)
  return (run) =>
    (tenant === undefined || run.tenant === tenant) &&
    (statuses === null || statuses.includes(run.status)) &&
    (goal === undefined || run.goal === goal) &&
    (modelName === undefined || run.modelName === modelName) &&
    run.createdMs < newest
}

function encodeCursor({ createdMs, runId }: IndexedRun): string {
  return Buffer.from(JSON.stringify([createdMs, runId])).toString('base64url')
}

function parseCursor(cursor: string): { readonly createdMs: number; readonly runId: string } {
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
