/**
 * The runs that this process drives, by their ids: prepared from their logs, and driven until they
 * end or are suspended.
 *
 * @module
 */
import { within } from '../../internal/time.js'
import { StoreError } from '../errors.js'
import type { RunState } from '../log/run-state.js'
import type { LogWriter } from '../log/writer.js'
import type { RunDetails } from '../run-details.js'
import { RunLoop } from './run-loop.js'
import { runParts, type Origin } from './run-parts.js'
import type { RunServices } from './services.js'

/** Bound of the wait for suspended runs: their commands get 4 s to end. */
const STOP_MS = 15_000

/** The runs that this process drives. */
export class ActiveRuns {
  /** Called when a run gives up its slot to wait for others. */
  onWaiting: () => void = () => undefined
  readonly #services: RunServices
  readonly #runs = new Map<string, RunLoop>()
  /** The service shuts down: what is added goes on with the next start. */
  #suspends = false
  /** The runs being driven: resolves when that is over, or at once when `leave` is called. */
  readonly #drives = new Map<string, { readonly over: Promise<void>; readonly leave: () => void }>()

  constructor(services: RunServices) {
    this.#services = services
  }

  /** Runs that wait for a slot. */
  get queued(): number {
    let queued = 0
    for (const { state } of this) if (isQueued(state.head.details)) queued += 1
    return queued
  }

  /** The same for the runs of a tenant. */
  queuedOf(tenant: string | null): number {
    let queued = 0
    for (const { state } of this)
      if (state.head.owner.tenant === tenant && isQueued(state.head.details)) queued += 1
    return queued
  }

  /** Why the store refuses records of these runs right now; null while it does not. */
  get refusal(): StoreError | null {
    for (const { log } of this) if (log.refusal !== null) return log.refusal
    return null
  }

  get(runId: string): RunLoop | undefined {
    return this.#runs.get(runId)
  }

  [Symbol.iterator](): Iterator<RunLoop> {
    return this.#runs.values()
  }

  /** Creates the loop of a run without driving it. */
  prepare(log: LogWriter, origin: Origin): RunLoop {
    const parts = runParts(this.#services, log, origin)
    return new RunLoop(log, this.#services, parts, () => this.onWaiting())
  }

  /** Registers a run before it is driven, so that it counts as queued. */
  add(run: RunLoop): void {
    this.#runs.set(run.log.runId, run)
    if (this.#suspends) run.suspend()
  }

  /** Undoes {@link ActiveRuns.add}. */
  remove(run: RunLoop): void {
    this.#runs.delete(run.log.runId)
  }

  /**
   * Drives a run; resolves when that is over: the run has ended, waits, or was suspended. `onLeft`
   * is called once, as soon as nothing of it happens any more, but for the removal of its copy.
   */
  async drive(run: RunLoop, onLeft: () => void): Promise<void> {
    this.add(run)
    let leave: () => void = () => undefined
    const over = new Promise<void>((resolve) => (leave = resolve))
    this.#drives.set(run.log.runId, { over, leave })
    let hasLeft = false
    const left = (): void => {
      if (!hasLeft) onLeft()
      hasLeft = true
    }
    void run.drive(left).then(leave)
    await over
    left()
    this.#drives.delete(run.log.runId)
    this.remove(run)
  }

  /** Resolves when the run is driven no longer: an ended one still stops its processes. */
  async over(runId: string): Promise<void> {
    await this.#drives.get(runId)?.over
  }

  /** Stops all runs without writing anything more: another process has taken over the store. */
  lose(reason: Error): void {
    for (const run of this) run.lose(reason)
  }

  /**
   * Suspends waiting runs at once and the others after `graceMs`; resolves when no run is driven,
   * or when a store that does not answer keeps runs from being suspended for `stopMs`. Runs that
   * others start meanwhile work as those do.
   */
  async close(graceMs: number, stopMs: number = STOP_MS): Promise<void> {
    const working = new Set([...this].filter(works).map(({ state }) => rootOf(state)))
    for (const run of this) if (!works(run) && !working.has(rootOf(run.state))) run.suspend()
    if (graceMs > 0) await this.#over(graceMs)
    this.#suspends = true
    for (const run of this) run.suspend()
    await this.#over(stopMs)
    const message = 'the store did not answer while the service shut down'
    this.lose(new StoreError('ERR_AGENT_STORE_UNAVAILABLE', message))
    for (const run of this) void run.leaveFolder()
    for (const { leave } of this.#drives.values()) leave()
  }

  /** Resolves when no run is driven, after `ms` milliseconds at the latest. */
  async #over(ms: number): Promise<void> {
    if (this.#drives.size === 0) return
    const over = Promise.all([...this.#drives.values()].map((drive) => drive.over))
    await within(ms, over, this.#services.clock)
  }
}

/** Does the run make progress while the service shuts down? Its tree then waits for it. */
function works({ state, waitsForRuns }: RunLoop): boolean {
  const { role, status } = state.head.details
  // A run that another one has started gets its slot.
  return status === 'running' ? !waitsForRuns : status === 'pending' && role !== 'root'
}

function rootOf({ head }: RunState): string {
  return head.details.root_run_id
}

/** A run that another one starts has been let in with that one. */
function isQueued({ role, status }: RunDetails): boolean {
  return status === 'pending' && role === 'root'
}
