/**
 * The engine's part in a store that several processes share: claims runs and hands them over to be
 * driven, begins runs, answers gates and asks for ends wherever the run is, and follows logs that
 * others write.
 *
 * @module
 */
import { sleep } from '../internal/abort.js'
import {
  CwdBusyError,
  EngineClosedError,
  IdempotencyError,
  QueueFullError,
  StoreError,
  UnknownRunError,
} from './errors.js'
import type { RunStatus } from './events.js'
import { ABORTED_BY_HUMAN, gateFor, responseRecord, type ResumeAnswer } from './gate-answer.js'
import { loadState, type LiveRun } from './live-run.js'
import { foldHead, isTerminal, type RunHead } from './run-details.js'
import { RunFeed } from './run-feed.js'
import { RunLog, type RunLogOptions } from './run-log.js'
import { RunTails, type OpenTail } from './run-tails.js'
import type { Admission, Claim, SharedRuns } from './shared-runs.js'
import type { RunState } from './state.js'
import { endingRecords } from './steps/finish.js'
import type { Tool } from './tool.js'

/** Times that an answer is tried again because the run has changed in between. */
const MAX_RACES = 20
const RACE_DELAY_MS = 25

/** What {@link SharedDriver} needs of its engine. */
export interface SharedDriverOptions extends RunLogOptions {
  readonly shared: SharedRuns
  /** Runs that this process works on at a time. */
  readonly slots: number
  /** Makes a run that shall be driven here; `abandoned` when a process that vanished drove it before. */
  readonly prepare: (state: RunState, feed: RunFeed, abandoned: boolean) => LiveRun
  /** Drives it; resolves when that is over. */
  readonly drive: (run: LiveRun) => Promise<void>
}

/** Drives what this process has claimed. */
export class SharedDriver {
  readonly #tails: RunTails
  readonly #options: SharedDriverOptions
  /** Runs that are driven here, with the end of their drive. */
  readonly #driven = new Map<string, { readonly run: LiveRun; readonly over: Promise<void> }>()
  #asking: Promise<void> | undefined
  #askAgain = false
  readonly #stopped = new AbortController()

  constructor(options: SharedDriverOptions) {
    this.#options = options
    this.#tails = new RunTails(options.store, options.shared, options.clock)
  }

  /** Begins to claim. */
  start(): void {
    this.#options.shared.listen({
      claimable: () => this.#ask(),
      abortRequested: (runId, { by }) => void this.#driven.get(runId)?.run.abort(by).catch(() => undefined),
      lost: (runId) => this.#driven.get(runId)?.run.lose(),
    })
    this.#ask()
  }

  /** Claims no more; resolves when no claim is on its way. */
  async stop(): Promise<void> {
    this.#stopped.abort(new EngineClosedError())
    await this.#asking
  }

  /** Ends all streams and waits for the claims to be given back; nothing is driven any more. */
  async close(): Promise<void> {
    await Promise.all([...this.#driven.values()].map(({ over }) => over))
    this.#tails.close()
  }

  /** Begins a run, or gives the one that its owner began with the same key. @throws as the engine's `create`. */
  async admit(admission: Admission): Promise<{ readonly head: RunHead; readonly created: boolean }> {
    const { created, maxQueued } = admission
    const admitted = await this.#options.shared.admit(admission)
    switch (admitted.outcome) {
      case 'admitted':
        return { head: foldHead(null, created), created: true }
      case 'repeated': {
        const { head } = admitted
        const same = head.idempotency?.body_hash === created.private?.idempotency?.body_hash
        if (!same) throw new IdempotencyError()
        return { head, created: false }
      }
      case 'queue_full':
        throw new QueueFullError(maxQueued)
      case 'cwd_busy':
        throw new CwdBusyError(admitted.runId)
    }
  }

  /**
   * Answers the gate of a run, which nobody works on while it waits. Tried again when somebody else
   * was faster.
   *
   * @throws as the engine's `resume`.
   */
  async answer(
    runId: string,
    answer: ResumeAnswer,
    tools: ReadonlyMap<string, Tool>,
    by: string | null,
  ): Promise<{ readonly status: RunStatus; readonly gateId: string }> {
    const { store, clock } = this.#options
    for (let races = 0; ; races++) {
      const state = await loadState(store, runId)
      if (state === null) throw new UnknownRunError(runId)
      const { head } = state
      const gate = gateFor(head, answer, tools)
      if (gate === null) {
        return { status: head.details.status, gateId: answer.gate_id ?? head.lastDecision?.gate_id ?? '' }
      }
      const feed = new RunFeed(runId, store, head.details.last_seq)
      const log = new RunLog(this.#options, feed, state)
      try {
        await log.append([responseRecord(gate, answer, by)], (next) =>
          answer.decision === 'abort' ? endingRecords(next, ABORTED_BY_HUMAN) : [],
        )
        return { status: log.state.head.details.status, gateId: gate.gate_id }
      } catch (error) {
        if (!wasOvertaken(error) || races === MAX_RACES) throw error
      }
      await sleep(clock, RACE_DELAY_MS, this.#stopped.signal)
    }
  }

  /** The feed of a run that has not ended, up to date. */
  async follow(runId: string, lastSeq: number): Promise<OpenTail> {
    const tail = this.#tails.open(runId, lastSeq)
    if (!tail.fresh) return tail
    try {
      // Whatever was appended before the watch began is seen now, the rest by the watch.
      const head = await this.#options.store.head(runId)
      if (head === null) tail.feed.finish('deleted')
      else tail.catchUp(head.details.last_seq)
      return tail
    } catch (error) {
      tail.release()
      throw error
    }
  }

  #ask(): void {
    if (this.#stopped.signal.aborted) return
    this.#askAgain = true
    this.#asking ??= this.#claim().finally(() => (this.#asking = undefined))
  }

  async #claim(): Promise<void> {
    const { shared, slots } = this.#options
    while (this.#askAgain && !this.#stopped.signal.aborted) {
      this.#askAgain = false
      const claims = await shared.claim(Math.max(0, slots - this.#driven.size)).catch(() => [])
      if (claims.length > 0) this.#askAgain = true
      for (const claim of claims) await this.#take(claim)
    }
  }

  async #take({ runId, abandoned, abort }: Claim): Promise<void> {
    const { store, shared } = this.#options
    try {
      await this.#driven.get(runId)?.over
      const state = await loadState(store, runId)
      if (state === null || isTerminal(state.head.details.status) || this.#stopped.signal.aborted) {
        return await shared.release(runId)
      }
      const tail = this.#tails.open(runId, state.head.details.last_seq)
      tail.catchUp(state.head.details.last_seq)
      const run = this.#options.prepare(state, tail.feed, abandoned)
      if (abort !== null && !state.abortRequested) void run.abort(abort.by).catch(() => undefined)
      const over = this.#drive(run, tail)
      this.#driven.set(runId, { run, over })
    } catch (error) {
      process.emitWarning(`run ${runId} is not taken up here: ${error instanceof Error ? error.message : String(error)}`)
      await shared.release(runId).catch(() => undefined)
    }
  }

  async #drive(run: LiveRun, tail: OpenTail): Promise<void> {
    const { drive, shared } = this.#options
    const { runId } = run.log
    await drive(run)
    if (isTerminal(run.state.head.details.status)) tail.feed.finish('run_end')
    tail.release()
    this.#driven.delete(runId)
    await shared.release(runId).catch(() => undefined)
    this.#ask()
  }
}

/** Was another process faster, or does it work on the run just now? */
function wasOvertaken(error: unknown): boolean {
  return (
    error instanceof StoreError && ['ERR_AGENT_SEQ_CONFLICT', 'ERR_AGENT_CLAIM_LOST'].includes(error.code)
  )
}
