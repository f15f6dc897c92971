/**
 * What this process does with the files of runs that wait or have ended, in a store that several
 * processes share. The run is claimed for that, as for driving it: no other process appends to it
 * or claims it, and one that finds a claim whose holder died finishes what that has begun.
 *
 * @module
 */
import { sleep } from '../../internal/time.js'
import type { OnLog, RunFiles } from '../checkpoints/run-logs.js'
import {
  CheckpointError,
  CwdBusyError,
  RunStateError,
  UnknownRunError,
} from '../errors.js'
import { isTerminal } from '../events.js'
import type { SharedFeeds } from '../log/shared-feeds.js'
import type { RunState } from '../log/run-state.js'
import { loadState } from '../log/state.js'
import { LogWriter, type LogWriterOptions } from '../log/writer.js'
import { liveError } from './refusals.js'
import type { RunClaims } from './in-process-runs.js'

/** Pauses and their number, while another process holds the run for a moment. */
const HELD_DELAY_MS = 250
const MAX_HELD = 120

interface Operating {
  readonly stop: AbortController
  readonly over: Promise<void>
  log: LogWriter | null
}

/** See the comment of this file. */
export class RunOperations {
  readonly #services: LogWriterOptions
  readonly #claims: RunClaims
  readonly #feeds: SharedFeeds
  readonly #onReleased: () => void
  readonly #operating = new Map<string, Operating>()

  /** `onReleased` is called when a run may be claimed again. */
  constructor(
    services: LogWriterOptions,
    claims: RunClaims,
    feeds: SharedFeeds,
    onReleased: () => void,
  ) {
    this.#services = services
    this.#claims = claims
    this.#feeds = feeds
    this.#onReleased = onReleased
  }

  /** As `RunLogs.operate`; `folder`: the run must have its folder for itself. */
  async operate<T>(runId: string, folder: boolean, work: OnLog<T>): Promise<T> {
    return await this.#exclusively(runId, async (operating) => {
      await this.occupy(runId, folder, operating.stop.signal)
      const state = await loadState(this.#services.store, runId)
      return await this.#work(runId, state, operating, work)
    })
  }

  /** Finishes what is open in the log of a run that this process has claimed. */
  async finish(runId: string, state: RunState, files: RunFiles): Promise<void> {
    await this.#exclusively(runId, (operating) =>
      this.#work(runId, state, operating, (log, signal) => files.finish(log, signal)),
    )
  }

  /** As `RunDriver.exclusively`. */
  async exclusively(runId: string, isKnown: boolean, work: () => Promise<void>): Promise<void> {
    await this.#exclusively(runId, async ({ stop }) => {
      const canClaim = isKnown && this.#claims.occupy !== undefined
      if (canClaim) await this.occupy(runId, false, stop.signal)
      await work()
    })
  }

  /** No log waits for a store that is unavailable any longer. */
  giveUp(): void {
    for (const { log } of this.#operating.values()) log?.giveUp()
  }

  has(runId: string): boolean {
    return this.#operating.has(runId)
  }

  async allOver(): Promise<void> {
    await Promise.all([...this.#operating.values()].map(({ over }) => over))
  }

  /** Stops without writing anything more: another process finishes it. */
  lose(runId: string, reason: Error): void {
    const operating = this.#operating.get(runId)
    operating?.stop.abort(reason)
    operating?.log?.abandon(reason)
  }

  loseAll(reason: Error): void {
    for (const runId of this.#operating.keys()) this.lose(runId, reason)
  }

  async #exclusively<T>(runId: string, work: (operating: Operating) => Promise<T>): Promise<T> {
    for (let other; (other = this.#operating.get(runId)) !== undefined; ) await other.over
    let end: () => void = () => undefined
    const over = new Promise<void>((resolve) => (end = resolve))
    const operating = { stop: new AbortController(), over, log: null }
    this.#operating.set(runId, operating)
    try {
      return await work(operating)
    } finally {
      await this.#claims.release(runId).catch(() => undefined)
      this.#operating.delete(runId)
      end()
      this.#onReleased()
    }
  }

  async #work<T>(
    runId: string,
    state: RunState | null,
    operating: Operating,
    work: OnLog<T>,
  ): Promise<T> {
    if (state === null) throw new UnknownRunError(runId)
    const { last_seq, status } = state.head.details
    if (!isTerminal(status) && status !== 'awaiting_human') throw liveError(runId, status)
    const opened = this.#feeds.open(runId, last_seq)
    try {
      opened.catchUp(last_seq)
      operating.log = new LogWriter(this.#services, opened.feed, state)
      return await work(operating.log, operating.stop.signal)
    } finally {
      opened.release()
    }
  }

  /** Claims the run, after the process that holds it for a moment. */
  async occupy(runId: string, folder: boolean, signal: AbortSignal): Promise<void> {
    const { clock, store } = this.#services
    const claims = this.#claims
    if (claims.occupy === undefined) {
      throw new CheckpointError('unsupported', 'this store cannot restore or apply files')
    }
    for (let attempt = 1; ; attempt++) {
      signal.throwIfAborted()
      const occupied = await claims.occupy(runId, folder)
      if (occupied.outcome === 'occupied') return
      if (occupied.outcome === 'cwd_busy') {
        const holder = await store.head(occupied.runId)
        // One that has ended only restores or applies files.
        const isEnding = holder === null || isTerminal(holder.details.status)
        if (!isEnding || attempt === MAX_HELD) throw new CwdBusyError(occupied.runId)
      } else {
        const head = await store.head(runId)
        if (head === null) throw new UnknownRunError(runId)
        const { status } = head.details
        if (!isTerminal(status) && status !== 'awaiting_human') throw liveError(runId, status)
        if (attempt === MAX_HELD) break
      }
      await sleep(HELD_DELAY_MS, signal, clock)
    }
    const message = `files of run ${runId} are being changed by another request; try again`
    throw new RunStateError('live', message)
  }
}
