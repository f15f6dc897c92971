/**
 * Admission and claims in a store that belongs to this process alone, as `SharedRuns` has them for
 * stores that processes share.
 *
 * 1. No other process can claim a run, so a claim is always granted: it writes nothing and starts
 *    no timer. The scheduler alone limits the runs that work.
 * 2. Runs of an earlier process are claimed in the background: first those that were working, by
 *    age, then those that have not begun, each when it has a slot. A run that waits at a gate is
 *    claimed when the gate expires. An answer, an abort or a message claims its run at once.
 * 3. A new run comes behind all of these.
 *
 * @module
 */
import { steadyNow, type Timer } from '../../internal/time.js'
import { describeError } from '../../internal/errors.js'
import type { QueueUse, Waiting } from '../../internal/queues.js'
import { isTerminal, type RunCreated, type RunStatus } from '../events.js'
import { untilAvailable } from '../exhaustion.js'
import { headsOf } from '../log/heads-of.js'
import { expiryOf, type OpenGate } from '../log/run-time.js'
import { warn } from '../output.js'
import type { Gate, RunHead } from '../run-details.js'
import type { Admission, Admitted, Claim, Occupied, SharedRuns } from '../shared-store.js'
import type { RunStore } from '../store.js'
import type { DrivenRuns } from './driven-runs.js'
import { InProcessAdmission } from './in-process-admission.js'
import { folderKey, waitingOf } from './queue-keys.js'
import type { RunServices } from './services.js'

/** A claim, with what this process already knows about the run. */
export interface OwnClaim extends Claim {
  /** The only record of a new run, whose log need not be read. */
  readonly created: RunCreated | null
  /** The gate at which the run waits, where this process knows when it expires. */
  readonly gate: OpenGate | null
}

/** A run of an earlier process. */
interface ListedRun {
  readonly waiting: Waiting
  readonly folder: string
  readonly gate: Gate | null
  readonly isWorking: boolean
}

/** A gate of a run that is not claimed, and what claims the run when it expires. */
interface WaitingGate {
  readonly gate: OpenGate | null
  readonly timer: Timer | null
}

/** The part of `SharedRuns` that every store needs; the rest is for several processes. */
export type RunClaims = Pick<
  SharedRuns,
  'admit' | 'claim' | 'holds' | 'occupy' | 'release' | 'watch'
>

/** See the comment of this file. */
export class InProcessRuns implements RunClaims {
  readonly #services: RunServices
  readonly #driven: () => DrivenRuns
  readonly #stopped: AbortSignal
  /** Called when there is something to claim. */
  readonly #onClaimable: () => void
  readonly #admission: InProcessAdmission
  /** Runs that are claimed or occupied. */
  readonly #held = new Set<string>()
  /** What the next call of `claim()` returns. */
  readonly #due = new Map<string, OwnClaim>()
  /** Runs that are created or have not begun, and that are not driven yet, with their tenants. */
  readonly #pending = new Map<string, string | null>()
  /** Runs that wait at a gate since before this process. */
  readonly #gates = new Map<string, WaitingGate>()
  /** Runs that have not begun and are not listed yet. */
  #unlisted = 0
  #listed: Promise<void> = Promise.resolve()

  /** `stopped` aborts when this process drives no runs any more. */
  constructor(
    services: RunServices,
    driven: () => DrivenRuns,
    stopped: AbortSignal,
    onClaimable: () => void,
  ) {
    this.#services = services
    this.#driven = driven
    this.#stopped = stopped
    this.#onClaimable = onClaimable
    stopped.addEventListener('abort', () => this.#forget(), { once: true })
    this.#admission = new InProcessAdmission(services, {
      waiting: (tenant) => this.#waiting(tenant),
      listed: () => this.#listed,
      stopped,
      begins: ({ details, owner }) => {
        this.#pending.set(details.run_id, owner.tenant)
        return () => this.#pending.delete(details.run_id)
      },
    })
  }

  /** Settles when every run of an earlier process has its folder and its place in the queue. */
  get listed(): Promise<void> {
    return this.#listed
  }

  /** Runs that wait for their first slot and are not driven yet. */
  get queued(): number {
    return this.#pending.size + this.#unlisted
  }

  /** Begins to list the runs of earlier processes. @throws {@link StoreError} */
  async start(): Promise<void> {
    this.#unlisted = (await this.#services.store.counts()).pending
    this.#listed = this.#list().finally(() => (this.#unlisted = 0))
  }

  async admit(admission: Admission): Promise<Admitted> {
    const admitted = await this.#admission.admit(admission)
    if (admitted.outcome !== 'admitted') return admitted
    const { created } = admission
    const isNew = { abandoned: false, created, gate: null }
    void this.#listed.then(() => this.#makeDue(created.run_id, isNew))
    return admitted
  }

  claim(): Promise<readonly OwnClaim[]> {
    const claims = [...this.#due.values()]
    this.#due.clear()
    for (const { runId } of claims) this.#held.add(runId)
    return Promise.resolve(claims)
  }

  /** Claims a run of which its log was read; null while it is claimed already. */
  claimNow(runId: string): OwnClaim | null {
    if (this.#held.has(runId)) return null
    const due = this.#due.get(runId)
    this.#due.delete(runId)
    this.#held.add(runId)
    return due ?? claimOf(runId, { abandoned: true, created: null, gate: this.#gateOf(runId) })
  }

  /** Called when a claimed run is driven: it counts among the active runs from now on. */
  driven(runId: string): void {
    this.#pending.delete(runId)
    this.#gates.get(runId)?.timer?.cancel()
    this.#gates.delete(runId)
  }

  holds(runId: string): boolean {
    return this.#held.has(runId)
  }

  async occupy(runId: string, folder: boolean): Promise<Occupied> {
    // Folders of an earlier process's runs are known from then on.
    await this.#listed
    const head = folder ? await this.#services.store.head(runId) : null
    const busy = head && this.#services.scheduler.reserve(runId, head.details.cwd)
    if (busy !== null) return { outcome: 'cwd_busy', runId: busy }
    this.#held.add(runId)
    return { outcome: 'occupied' }
  }

  /** Frees the folder that `occupy()` gave to a run that is driven. */
  vacate(runId: string): void {
    this.#services.scheduler.release(runId)
  }

  release(runId: string): Promise<void> {
    this.driven(runId)
    this.#held.delete(runId)
    this.#admission.removeUser(runId)
    this.#services.scheduler.leave(runId)
    this.vacate(runId)
    return Promise.resolve()
  }

  /** No other process writes to the log of a run. */
  watch(): () => void {
    return () => undefined
  }

  #waiting(tenant: string | null): QueueUse {
    let ofTenant = this.#driven().queuedOf(tenant)
    for (const other of this.#pending.values()) if (other === tenant) ofTenant += 1
    return { all: this.#driven().queued + this.queued, ofTenant }
  }

  #gateOf(runId: string): OpenGate | null {
    return this.#gates.get(runId)?.gate ?? null
  }

  #makeDue(runId: string, claim: Pick<OwnClaim, 'abandoned' | 'created' | 'gate'>): void {
    if (this.#held.has(runId) || (this.#stopped.aborted && !isChild(claim))) return
    this.#due.set(runId, claimOf(runId, claim))
    this.#onClaimable()
  }

  /** Makes a run of an earlier process claimable. */
  #takeOver(runId: string): void {
    this.#makeDue(runId, { abandoned: true, created: null, gate: this.#gateOf(runId) })
  }

  /** Lists the runs that have not ended. Never rejects. */
  async #list(): Promise<void> {
    const { scheduler } = this.#services
    const operating = await this.#listOperating()
    const begun = await this.#listWith(['running', 'awaiting_human'])
    // Every folder in use is held before any run begins.
    for (const { folder, waiting } of begun) {
      this.#addUser(waiting.runId, folder)
      scheduler.hold(waiting.runId, folder)
    }
    for (const { folder, gate, isWorking, waiting } of begun) {
      const { runId } = waiting
      if (isWorking) scheduler.queue(waiting, folder, () => undefined)
      else this.#waitForGate(runId, gate)
      // Also without a slot: a run that waits for one says so.
      if (isWorking || operating.has(runId)) this.#takeOver(runId)
    }
    for (const { folder, waiting } of await this.#listWith(['pending'])) {
      const { runId, tenant } = waiting
      if (this.#held.has(runId) || this.#pending.has(runId)) continue
      this.#pending.set(runId, tenant)
      this.#addUser(runId, folder)
      scheduler.queue(waiting, folder, () => this.#takeOver(runId))
    }
  }

  #addUser(runId: string, folder: string): void {
    if (this.#services.cwdPolicy === 'reject') this.#admission.addUser(runId, folder)
  }

  /** Claims the run when its gate expires. */
  #waitForGate(runId: string, gate: Gate | null): void {
    if (this.#held.has(runId)) return
    if (gate === null || gate.deadline === null)
      return void this.#gates.set(runId, { gate: null, timer: null })
    const { clock } = this.#services
    const expiresAt = expiryOf(gate.deadline, clock)
    const open = { gateId: gate.gate_id, expiresAt }
    const left = expiresAt - steadyNow(clock)
    const timer = left > 0 ? clock.setTimeout(() => this.#takeOver(runId), left) : null
    this.#gates.set(runId, { gate: open, timer })
    if (timer === null) this.#takeOver(runId)
  }

  /**
   * Makes the runs claimable whose files were being changed when the last process died: for one
   * that has ended, that is finished now, in a folder that no run gets before.
   */
  async #listOperating(): Promise<ReadonlySet<string>> {
    const { files, scheduler, store } = this.#services
    if (files === null) return new Set()
    const problem = 'no restore or apply that was cut off is finished'
    const heads = (await this.#retryWhileUnavailable(problem, () => operatingHeads(store))) ?? []
    for (const { details } of heads) {
      if (!isTerminal(details.status)) continue
      scheduler.reserve(details.run_id, details.cwd)
      this.#takeOver(details.run_id)
    }
    return new Set(heads.map(({ details }) => details.run_id))
  }

  /** The runs with one of these statuses that can be driven, oldest first. */
  async #listWith(status: readonly RunStatus[]): Promise<readonly ListedRun[]> {
    const { store } = this.#services
    const problem = `no ${status.join(' or ')} run of the last process is resumed`
    const list = async (): Promise<ListedRun[]> => {
      const runs: ListedRun[] = []
      for await (const head of headsOf(store, { status }, this.#stopped)) {
        const { gate, status } = head.details
        if (head.problem !== undefined) continue
        const folder = folderKey(head.details)
        runs.push({ waiting: waitingOf(head), folder, gate, isWorking: status === 'running' })
      }
      return runs.reverse()
    }
    return (await this.#retryWhileUnavailable(problem, list)) ?? []
  }

  /** Repeats `attempt` while the store is unavailable; warns and resolves with null if it fails. */
  async #retryWhileUnavailable<T>(problem: string, attempt: () => Promise<T>): Promise<T | null> {
    if (this.#stopped.aborted) return null
    try {
      return await untilAvailable(attempt, this.#services.clock, this.#stopped)
    } catch (error) {
      if (!this.#stopped.aborted) warn(`${problem}: ${describeError(error)}`)
      return null
    }
  }

  #forget(): void {
    for (const { timer } of this.#gates.values()) timer?.cancel()
    this.#gates.clear()
    this.#pending.clear()
    for (const [runId, claim] of this.#due) if (!isChild(claim)) this.#due.delete(runId)
  }
}

/** True for a run that another one starts: it begins also while the service shuts down. */
export function isChild({ created }: Pick<OwnClaim, 'created'>): boolean {
  return created?.payload.role !== undefined
}

function claimOf(
  runId: string,
  known: Pick<OwnClaim, 'abandoned' | 'created' | 'gate'>,
): OwnClaim {
  return { runId, ...known, abort: null, hasMessages: false, overdue: false }
}

/** The heads of the runs whose files were being changed when their process died. */
async function operatingHeads(store: RunStore): Promise<readonly RunHead[]> {
  const heads: (RunHead | null)[] = []
  if (store.operating !== undefined) {
    for (const runId of await store.operating()) heads.push(await store.head(runId))
  } else {
    for await (const head of headsOf(store)) if (head.operation && !head.problem) heads.push(head)
  }
  return heads.filter((head) => head !== null)
}
