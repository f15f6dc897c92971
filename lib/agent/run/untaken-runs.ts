/**
 * The runs of an earlier process that have not ended and that this process does not drive yet: what
 * is known of them by their heads alone. Their logs are read when they are taken up.
 *
 * @module
 */
import type { Clock, Timer } from '../../internal/clock.js'
import type { Waiting } from '../../internal/fair-queue.js'
import { nextTurn } from '../../internal/next-turn.js'
import type { RunStatus } from '../events.js'
import type { RunHead } from '../run-details.js'
import type { RunStore } from '../store.js'
import { placeOf } from './place-of.js'
import { waitingOf } from './waiting-of.js'

/** Runs that are listed at once: more would block the event loop. */
const PAGE = 100

/** A run that has not ended. */
export interface UnfinishedRun extends Waiting {
  /** See `placeOf`. */
  readonly place: string
  readonly status: RunStatus
  /** Of its gate, in ISO 8601; null without one. */
  readonly deadline: string | null
}

/** Bookkeeping of runs that are not taken up; it starts nothing itself. */
export class UntakenRuns {
  readonly #clock: Clock
  /** Tenants of the runs that have not begun. */
  readonly #pending = new Map<string, string | null>()
  /** The timers of the others, for the deadlines of their gates. */
  readonly #begun = new Map<string, Timer | null>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Runs that have not begun, each with its tenant. */
  get pending(): ReadonlyMap<string, string | null> {
    return this.#pending
  }

  /** Adds a run; `onOverdue` is called at the deadline of its gate. */
  add({ runId, tenant, status, deadline }: UnfinishedRun, onOverdue: () => void): void {
    if (status === 'pending') {
      this.#pending.set(runId, tenant)
      return
    }
    const left = deadline === null ? null : Date.parse(deadline) - this.#clock.now()
    const waits = left !== null && left > 0
    this.#begun.set(runId, waits ? this.#clock.setTimeout(onOverdue, left) : null)
    if (left !== null && !waits) onOverdue()
  }

  /** Removes a run that is taken up, or cannot be. */
  remove(runId: string): void {
    this.#pending.delete(runId)
    this.#begun.get(runId)?.cancel()
    this.#begun.delete(runId)
  }

  clear(): void {
    for (const runId of this.#begun.keys()) this.remove(runId)
    this.#pending.clear()
  }
}

/**
 * The runs with one of these statuses that can be driven, oldest first. Yields to the event loop
 * between pages.
 *
 * @throws the signal's reason once it aborts.
 */
export async function listOldestFirst(
  store: RunStore,
  status: readonly RunStatus[],
  signal: AbortSignal,
): Promise<UnfinishedRun[]> {
  const runs: UnfinishedRun[] = []
  for (let cursor: string | null | undefined; cursor !== null; await nextTurn()) {
    signal.throwIfAborted()
    const page = await store.list({ status, limit: PAGE, cursor })
    for (const head of page.heads) {
      const { details, problem } = head
      const { status, gate } = details
      if (problem !== undefined) continue
      const deadline = gate?.deadline ?? null
      runs.push({ ...waitingOf(head), place: placeOf(details), status, deadline })
    }
    cursor = page.next
  }
  return runs.reverse()
}

/** The heads of the runs whose files were being changed when their process died. */
export async function operatingHeads(store: RunStore): Promise<readonly RunHead[]> {
  const heads: (RunHead | null)[] = []
  if (store.operating !== undefined) {
    for (const runId of await store.operating()) heads.push(await store.head(runId))
  } else {
    for (let cursor: string | null | undefined; cursor !== null; await nextTurn()) {
      const page = await store.list({ limit: PAGE, cursor })
      heads.push(...page.heads.filter(({ operation, problem }) => operation && !problem))
      cursor = page.next
    }
  }
  return heads.filter((head) => head !== null)
}
