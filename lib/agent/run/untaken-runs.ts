/**
 * The runs of an earlier process that have not ended and that this process does not drive yet: what
 * is known of them by their heads alone. Their logs are read when they are taken up.
 *
 * @module
 */
import { steadyNow, type Clock, type Timer } from '../../internal/time.js'
import type { Waiting } from '../../internal/queues.js'
import type { RunStatus } from '../events.js'
import { headsOf } from '../log/heads-of.js'
import { expiryOf, type OpenGate } from '../log/run-time.js'
import type { Gate, RunHead } from '../run-details.js'
import type { RunStore } from '../store.js'
import { placeOf } from './place-of.js'
import { waitingOf } from './waiting-of.js'

/** A run that has not ended. */
export interface UnfinishedRun extends Waiting {
  /** See `placeOf`. */
  readonly place: string
  readonly status: RunStatus
  readonly gate: Gate | null
}

/** What is kept of a run that has begun. */
interface Begun {
  /** Its gate, if that expires. */
  readonly gate: OpenGate | null
  readonly timer: Timer | null
}

/** Bookkeeping of runs that are not taken up; it starts nothing itself. */
export class UntakenRuns {
  readonly #clock: Clock
  /** Tenants of the runs that have not begun. */
  readonly #pending = new Map<string, string | null>()
  readonly #begun = new Map<string, Begun>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Runs that have not begun, each with its tenant. */
  get pending(): ReadonlyMap<string, string | null> {
    return this.#pending
  }

  /** Adds a run; `onOverdue` is called at the deadline of its gate. */
  add({ runId, tenant, status, gate }: UnfinishedRun, onOverdue: () => void): void {
    if (status === 'pending') {
      this.#pending.set(runId, tenant)
      return
    }
    if (gate === null || gate.deadline === null) {
      this.#begun.set(runId, { gate: null, timer: null })
      return
    }
    const expiresAt = expiryOf(gate.deadline, this.#clock)
    const left = expiresAt - steadyNow(this.#clock)
    const timer = left > 0 ? this.#clock.setTimeout(onOverdue, left) : null
    this.#begun.set(runId, { gate: { gateId: gate.gate_id, expiresAt }, timer })
    if (timer === null) onOverdue()
  }

  /** The gate of a run that is not taken up; null if it never expires. */
  gateOf(runId: string): OpenGate | null {
    return this.#begun.get(runId)?.gate ?? null
  }

  /** Removes a run that is taken up, or cannot be. */
  remove(runId: string): void {
    this.#pending.delete(runId)
    this.#begun.get(runId)?.timer?.cancel()
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
  for await (const head of headsOf(store, { status }, signal)) {
    const { details, problem } = head
    const { status, gate } = details
    if (problem !== undefined) continue
    runs.push({ ...waitingOf(head), place: placeOf(details), status, gate })
  }
  return runs.reverse()
}

/** The heads of the runs whose files were being changed when their process died. */
export async function operatingHeads(store: RunStore): Promise<readonly RunHead[]> {
  const heads: (RunHead | null)[] = []
  if (store.operating !== undefined) {
    for (const runId of await store.operating()) heads.push(await store.head(runId))
  } else {
    for await (const head of headsOf(store)) if (head.operation && !head.problem) heads.push(head)
  }
  return heads.filter((head) => head !== null)
}
