import { type Clock, within } from '../../internal/time.js'
import { EngineClosedError, RunStateError, UnknownRunError } from '../errors.js'
import { isTerminal, type RunStatus } from '../events.js'
import type { OnLog } from '../checkpoints/run-logs.js'
import { RunFeed } from '../log/feed.js'
import { loadState } from '../log/state.js'
import { LogWriter, type LogWriterOptions } from '../log/writer.js'

/**
 * The logs of runs that have ended, for what is done with their files afterwards: one operation per
 * run at a time, in a store that belongs to this process.
 */
export class EndedRuns {
  readonly #options: LogWriterOptions
  /** Settle when the operations so far have, by run. */
  readonly #tails = new Map<string, Promise<void>>()
  readonly #logs = new Set<LogWriter>()
  readonly #lost = new AbortController()
  #isClosing = false

  constructor(options: LogWriterOptions) {
    this.#options = options
  }

  /** Calls `work` with the log of the run, after those that came before. */
  async use<T>(runId: string, work: OnLog<T>): Promise<T> {
    if (this.#isClosing) throw new EngineClosedError()
    this.#lost.signal.throwIfAborted()
    return await this.alone(runId, () => this.#use(runId, work))
  }

  /** Calls `work` while nothing else is done with the files of the run. */
  async alone<T>(runId: string, work: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(runId) ?? Promise.resolve()
    const done = before.then(work)
    const tail = done
      .then(
        () => undefined,
        () => undefined,
      )
      .finally(() => {
        if (this.#tails.get(runId) === tail) this.#tails.delete(runId)
      })
    this.#tails.set(runId, tail)
    return await done
  }

  async #use<T>(runId: string, work: OnLog<T>): Promise<T> {
    const { store } = this.#options
    const { signal } = this.#lost
    signal.throwIfAborted()
    const state = await loadState(store, runId)
    if (state === null) throw new UnknownRunError(runId)
    const { last_seq, status } = state.head.details
    if (!isTerminal(status)) throw liveError(runId, status)
    const log = new LogWriter(this.#options, new RunFeed(runId, store, last_seq, true), state)
    this.#logs.add(log)
    try {
      return await work(log, signal)
    } finally {
      this.#logs.delete(log)
    }
  }

  /** Is something done with the files of the run? */
  isUsed(runId: string): boolean {
    return this.#tails.has(runId)
  }

  /** Resolves when nothing is done with the files of the run. */
  async over(runId: string): Promise<void> {
    await this.#tails.get(runId)
  }

  /** Stops at once, without writing anything more: the next start finishes what has begun. */
  lose(reason: Error): void {
    this.#lost.abort(reason)
    for (const log of this.#logs) log.abandon(reason)
  }

  /** Begins nothing more; what is under way then is stopped after `ms` milliseconds. */
  async close(ms: number, clock: Clock): Promise<void> {
    this.#isClosing = true
    for (const log of this.#logs) log.giveUp()
    const over = (): Promise<unknown> => Promise.all(this.#tails.values())
    if (this.#tails.size > 0) await within(ms, over(), clock)
    this.lose(new EngineClosedError())
    await over()
  }
}

/** The refusal to touch the files of a run that works. */
export function liveError(runId: string, status: string): RunStateError {
  const message = `run ${runId} is ${status}; wait until it waits at a gate or has ended`
  return new RunStateError('live', message)
}

/** The refusal to abort a run that has ended otherwise. */
export function endedError(runId: string, status: RunStatus): RunStateError {
  return new RunStateError('ended', `run ${runId} has already ended: it is ${status}`)
}
