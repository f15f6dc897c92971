/**
 * Admission and claims in a store that belongs to this process alone, as `SharedRuns` has them for
 * stores that processes share.
 *
 * 1. No other process can claim a run, so a claim is always granted: it writes nothing and starts
 *    no timer. The scheduler alone limits the runs that work.
 * 2. A run that has not begun is claimed when it has a slot; one that another run starts, at once.
 *    An answer, an abort or a message claims its run at once as well.
 * 3. Runs of an earlier process that were working are claimed in the background, by age; one that
 *    waits at a gate, when the gate expires. New runs queue behind all of an earlier process.
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

/** The part of a claim that this process already knows. */
type KnownOfClaim = Pick<OwnClaim, 'abandoned' | 'created' | 'gate'>

const OF_EARLIER_PROCESS: KnownOfClaim = { abandoned: true, created: null, gate: null }

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
  readonly #stopped: AbortSignal
  /** Called when there is something to claim. */
  readonly #onClaimable: () => void
  readonly #admission: InProcessAdmission
  /** Runs that are claimed or occupied. */
  readonly #held = new Set<string>()
  /** Claims to be returned by the next call of `claim()`. */
  readonly #due = new Map<string, OwnClaim>()
  /** Runs that are being created, until they queue. */
  readonly #beginning = new Map<string, RunHead>()
  /** Runs that queue and are not driven. */
  readonly #undriven = new Set<string>()
  /** Runs that wait at a gate since before this process. */
  readonly #gates = new Map<string, WaitingGate>()
  /** Runs that have not begun and are not listed yet. */
  #unlisted = 0
  #listed: Promise<void> = Promise.resolve()

  /** `stopped` aborts when this process drives no runs any more. */
  constructor(
    services: RunServices,
    stopped: AbortSignal,
    onClaimable: () => void,
  ) {
    this.#services = services
    this.#stopped = stopped
    this.#onClaimable = onClaimable
    stopped.addEventListener('abort', () => this.#forget(), { once: true })
    this.#admission = new InProcessAdmission(services, {
      waiting: (tenant) => this.#waiting(tenant),
      listed: () => this.#listed,
      stopped,
      begins: (head) => {
        const { run_id: runId } = head.details
        this.#beginning.set(runId, head)
        return () => this.#beginning.delete(runId)
      },
    })
  }

  /** Settles when every run of an earlier process has its folder and its place in the queue. */
  get listed(): Promise<void> {
    return this.#listed
  }

  /** Runs that will wait for their first slot: the scheduler does not know them yet. */
  get queued(): number {
    return this.#rootsBeginning().length + this.#unlisted
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
    void this.#listed.then(() => this.#enqueueNew(created))
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
    return due ?? claimOf(runId, { ...OF_EARLIER_PROCESS, gate: this.#gateOf(runId) })
  }

  /** Called when a claimed run is driven: it queues itself from now on. */
  driven(runId: string): void {
    this.#beginning.delete(runId)
    this.#undriven.delete(runId)
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
    const { all, ofTenant } = this.#services.scheduler.queued(tenant)
    const beginning = this.#rootsBeginning().filter(({ owner }) => owner.tenant === tenant)
    return { all: all + this.queued, ofTenant: ofTenant + beginning.length }
  }

  #rootsBeginning(): readonly RunHead[] {
    return [...this.#beginning.values()].filter(({ details }) => details.role === 'root')
  }

  /** Has a run that was just created claimed, unless a request has claimed it meanwhile. */
  #enqueueNew(created: RunCreated): void {
    const { run_id: runId } = created
    const head = this.#beginning.get(runId)
    if (head === undefined) return
    this.#beginning.delete(runId)
    const claim = { abandoned: false, created, gate: null }
    if (isChild(claim)) this.#makeDue(runId, claim)
    else this.#enqueue(waitingOf(head), folderKey(head.details), claim)
  }

  /** Has a run claimed when it has a slot. */
  #enqueue(waiting: Waiting, folder: string, claim: KnownOfClaim): void {
    if (this.#stopped.aborted) return
    this.#undriven.add(waiting.runId)
    this.#services.scheduler.queue(waiting, folder, () => this.#makeDue(waiting.runId, claim))
  }

  #gateOf(runId: string): OpenGate | null {
    return this.#gates.get(runId)?.gate ?? null
  }

  #makeDue(runId: string, claim: KnownOfClaim): void {
    if (this.#held.has(runId) || (this.#stopped.aborted && !isChild(claim))) return
    this.#due.set(runId, claimOf(runId, claim))
    this.#onClaimable()
  }

  /** Makes a run of an earlier process claimable. */
  #takeOver(runId: string): void {
    this.#makeDue(runId, { ...OF_EARLIER_PROCESS, gate: this.#gateOf(runId) })
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
      const { runId } = waiting
      if (this.#held.has(runId) || this.#beginning.has(runId)) continue
      this.#addUser(runId, folder)
      this.#enqueue(waiting, folder, OF_EARLIER_PROCESS)
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
    // Runs that others start may still need their slots.
    for (const runId of this.#undriven) this.#services.scheduler.leave(runId)
    this.#undriven.clear()
    for (const [runId, claim] of this.#due) if (!isChild(claim)) this.#due.delete(runId)
  }
}

/** True for a run that another one starts: it begins also while the service shuts down. */
export function isChild({ created }: Pick<OwnClaim, 'created'>): boolean {
  return created?.payload.role !== undefined
}

function claimOf(runId: string, known: KnownOfClaim): OwnClaim {
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
