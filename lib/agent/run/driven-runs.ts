/**
 * The runs that this process drives, by their ids: prepared from their logs, driven until they end,
 * wait or are suspended, and then released.
 *
 * @module
 */
import { within } from '../../internal/time.js'
import { StoreError } from '../errors.js'
import type { RunState } from '../log/run-state.js'
import type { OpenSharedFeed, SharedFeeds } from '../log/shared-feeds.js'
import { LogWriter } from '../log/writer.js'
import type { Claim } from '../shared-store.js'
import type { InProcessRuns, OwnClaim, RunClaims } from './in-process-runs.js'
import { RunLoop } from './run-loop.js'
import { runParts } from './run-parts.js'
import type { RunServices } from './services.js'

/** Dependencies of {@link DrivenRuns}, shared with its driver. */
export interface DrivenRunsOptions {
  readonly services: RunServices
  readonly claims: RunClaims
  /** The same, in a store of this process alone; null in a shared one. */
  readonly own: InProcessRuns | null
  readonly feeds: SharedFeeds
  /** Called when a run has been released, or gives up its slot to wait for others. */
  readonly onSlot: () => void
}

/** A run that is about to be driven. */
export interface OpenRun {
  readonly run: RunLoop
  readonly opened: OpenSharedFeed
  /** True if nothing but its first record is in its log. */
  readonly isNew: boolean
}

interface DrivenRun {
  readonly run: RunLoop
  /** Settles when the run is driven no longer and is released. */
  over: Promise<void>
  /** Settles {@link DrivenRun.over} although the run still works. */
  readonly leave: () => void
}

/** See the comment of this file. */
export class DrivenRuns {
  readonly #options: DrivenRunsOptions
  readonly #driven = new Map<string, DrivenRun>()
  /** The service shuts down: a run that comes now goes on with the next start. */
  #suspends = false

  constructor(options: DrivenRunsOptions) {
    this.#options = options
  }

  /** Runs that work: those that wait for others need no slot. */
  get working(): number {
    let working = 0
    for (const { waitsForRuns } of this.#runs()) if (!waitsForRuns) working += 1
    return working
  }

  /** Why the store refuses records of these runs right now; null while it does not. */
  get refusal(): StoreError | null {
    for (const { log } of this.#runs()) if (log.refusal !== null) return log.refusal
    return null
  }

  get(runId: string): RunLoop | undefined {
    return this.#driven.get(runId)?.run
  }

  /** Creates the loop of a claimed run without driving it. */
  open(claim: Claim | OwnClaim, state: RunState): OpenRun {
    const { feeds, onSlot, services } = this.#options
    const { last_seq, run_id: runId } = state.head.details
    const opened = feeds.open(runId, last_seq)
    opened.catchUp(last_seq)
    const gate = 'gate' in claim ? claim.gate : null
    const log = new LogWriter(services, opened.feed, state, gate)
    const isNew = 'created' in claim && claim.created !== null
    const run = new RunLoop(log, services, runParts(services, log, claim), onSlot)
    return { run, opened, isNew }
  }

  /** Drives a run until it ends, waits or is suspended, and releases it. */
  drive(open: OpenRun): void {
    const { run } = open
    const { runId } = run.log
    let leave: () => void = () => undefined
    const left = new Promise<void>((resolve) => (leave = resolve))
    const driven = { run, leave, over: left }
    this.#driven.set(runId, driven)
    this.#options.own?.driven(runId)
    if (this.#suspends) run.suspend()
    driven.over = this.#drive(open, left)
  }

  async #drive({ run, opened, isNew }: OpenRun, left: Promise<void>): Promise<void> {
    const { claims, onSlot, own } = this.#options
    const { runId } = run.log
    let isEnded = false
    // Called once the run has stopped; only its copy may still have to be removed.
    const end = (): void => {
      // The run may look ended here although its end was not stored: the feed is not complete, and
      // another process may append to it.
      if (!isEnded && (opened.feed.isComplete || own !== null)) opened.end()
      isEnded = true
    }
    // Every folder in use is held before a new run begins.
    if (isNew) await own?.listed
    await Promise.race([run.drive(end), left])
    end()
    this.#driven.delete(runId)
    await claims.release(runId).catch(() => undefined)
    opened.catchUp() // others may have appended while this process believed that it held the run
    opened.release()
    onSlot()
  }

  /** Resolves when the run is driven no longer: an ended one still stops its processes. */
  async over(runId: string): Promise<void> {
    await this.#driven.get(runId)?.over
  }

  /** Stops all runs without writing anything more: another process has taken over the store. */
  lose(reason: Error): void {
    for (const run of this.#runs()) run.lose(reason)
  }

  /**
   * Suspends waiting runs at once and the others after `graceMs`; resolves when no run is driven,
   * or when a store that does not answer keeps runs from being suspended for `stopMs`. Runs that
   * others start meanwhile work as those do.
   */
  async close(graceMs: number, stopMs: number): Promise<void> {
    const runs = this.#runs()
    const working = new Set(runs.filter(works).map(({ state }) => rootOf(state)))
    for (const run of runs) if (!works(run) && !working.has(rootOf(run.state))) run.suspend()
    if (graceMs > 0) await this.#allOver(graceMs)
    this.#suspends = true
    for (const run of this.#runs()) run.suspend()
    await this.#allOver(stopMs)
    const message = 'the store did not answer while the service shut down'
    this.lose(new StoreError('ERR_AGENT_STORE_UNAVAILABLE', message))
    for (const { leave, run } of this.#driven.values()) {
      void run.leaveFolder()
      leave()
    }
    await Promise.all(this.#overs())
  }

  /** Resolves when no run is driven, after `ms` milliseconds at the latest. */
  async #allOver(ms: number): Promise<void> {
    if (this.#driven.size === 0) return
    await within(ms, Promise.all(this.#overs()), this.#options.services.clock)
  }

  #runs(): readonly RunLoop[] {
    return [...this.#driven.values()].map(({ run }) => run)
  }

  #overs(): readonly Promise<void>[] {
    return [...this.#driven.values()].map(({ over }) => over)
  }
}

/** True for a run that can still make progress during shutdown, which its tree waits for. */
function works({ state, waitsForRuns }: RunLoop): boolean {
  const { role, status } = state.head.details
  // A run that another one has started gets its slot.
  return status === 'running' ? !waitsForRuns : status === 'pending' && role !== 'root'
}

function rootOf({ head }: RunState): string {
  return head.details.root_run_id
}
