/**
 * The runs that this process drives: made from their state, driven to their end or until they are
 * stopped, and known by their ids meanwhile.
 *
 * @module
 */
import type { EngineConfig } from '../config.js'
import { LiveRun } from './run-loop.js'
import type { Model, ModelPrices } from '../model.js'
import type { ModelRegistry } from '../models/registry.js'
import type { Observers } from '../log/observer.js'
import type { Redactor } from '../redaction/redactor.js'
import { isTerminal } from '../log/head.js'
import type { RunFeed } from '../log/feed.js'
import { RunLog, type RunLogOptions } from '../log/writer.js'
import { RunTrace } from '../tracing/run-trace.js'
import { Scheduler } from './scheduler.js'
import type { RunState } from '../log/state.js'
import type { Tool } from '../tool.js'
import type { Tracing } from '../tracing/tracing.js'
import { openWorkspace } from '../workspace/open.js'

/** What {@link LiveRuns} work with. */
export interface LiveRunsOptions {
  readonly config: EngineConfig
  readonly models: ModelRegistry
  readonly redactor: Redactor
  readonly observers: Observers
  readonly tracing: Tracing
  /** The tools of a run that is made now. */
  readonly tools: () => ReadonlyMap<string, Tool>
}

/** How a run comes to be driven here. */
export interface Origin {
  /** A process that vanished drove it before. */
  readonly abandoned: boolean
  /** It had begun before, in whatever process. */
  readonly resumed: boolean
  /** It waits for a human whose time is up, whatever the clock of this process says. */
  readonly overdue?: boolean
}

/** The runs that this process drives. */
export class LiveRuns {
  readonly scheduler: Scheduler
  readonly #options: LiveRunsOptions
  readonly #live = new Map<string, LiveRun>()
  readonly #drives = new Set<Promise<void>>()

  constructor(options: LiveRunsOptions) {
    this.#options = options
    const { maxConcurrentRuns, cwdPolicy, store } = options.config
    // Folders are kept apart by the store when other processes have runs in them as well.
    const exclusive = cwdPolicy !== 'allow' && store.shared === undefined
    this.scheduler = new Scheduler(maxConcurrentRuns, exclusive)
  }

  /** What the logs of these runs are written with. */
  get logOptions(): RunLogOptions {
    const { config, redactor, observers } = this.#options
    return { store: config.store, clock: config.clock, redactor, observers }
  }

  /** Runs that wait for a slot. */
  get queued(): number {
    let queued = 0
    for (const { state } of this.#live.values())
      if (state.head.details.status === 'pending') queued += 1
    return queued
  }

  get(runId: string): LiveRun | undefined {
    return this.#live.get(runId)
  }

  /** All of them. */
  [Symbol.iterator](): Iterator<LiveRun> {
    return this.#live.values()
  }

  /** Makes a run that is not driven yet; its model is found by its name unless it is given. */
  prepare(state: RunState, feed: RunFeed, origin: Origin, model?: Model): LiveRun {
    const { abandoned, resumed, overdue = false } = origin
    const { config, tracing, tools } = this.#options
    const { store, roots } = config
    const { frozen, head } = state
    if (resumed) state.downSince = head.last_ts * 1000
    const { judge } = frozen.goal
    return new LiveRun(new RunLog(this.logOptions, feed, state), {
      ...config,
      ...this.logOptions,
      tools: tools(),
      judge: judge === undefined ? null : this.#modelNamed(judge.model, judge.prices),
      trace: new RunTrace(tracing, head.details.run_id, frozen.trace ?? null),
      model: model ?? this.#modelNamed(frozen.request.model_name, frozen.prices),
      scheduler: this.scheduler,
      openWorkspace: (cwd) => openWorkspace(cwd, { roots, closed: store.closedFolders ?? [] }),
      takenOver: abandoned,
      overdueGate: overdue ? (head.details.gate?.gate_id ?? null) : null,
      parksAtGates: store.shared !== undefined,
    })
  }

  /** Makes a run known before it is driven, so that its place in the queue is taken. */
  add(run: LiveRun): void {
    this.#live.set(run.log.runId, run)
  }

  /** Takes back {@link LiveRuns.add}. */
  remove(run: LiveRun): void {
    this.#live.delete(run.log.runId)
  }

  /** Drives a run; resolves when that is over, with true when the run has ended. */
  async drive(run: LiveRun): Promise<boolean> {
    this.add(run)
    const drive = run.drive()
    this.#drives.add(drive)
    await drive
    this.#drives.delete(drive)
    this.remove(run)
    return isTerminal(run.state.head.details.status)
  }

  /** Stops runs that wait at once, and the others after `graceMs`; resolves when nothing is driven. */
  async close(graceMs: number): Promise<void> {
    const idle = [...this].filter(({ state }) => state.head.details.status !== 'running')
    for (const run of idle) run.suspend()
    if (graceMs > 0 && this.#drives.size > 0) {
      let timer: { cancel(): void } | undefined
      const grace = new Promise<void>((resolve) => {
        timer = this.#options.config.clock.setTimeout(resolve, graceMs)
      })
      await Promise.race([Promise.all(this.#drives), grace])
      timer?.cancel()
    }
    for (const run of this) run.suspend()
    await Promise.all(this.#drives)
  }

  /** A model by its name; one that is gone since the run began fails when it is called. */
  #modelNamed(name: string, prices: ModelPrices | null): Model {
    try {
      return this.#options.models.resolve(name)
    } catch (error) {
      const failing = (): Promise<never> => Promise.reject(error as Error)
      return { name, isLanguageModel: true, contextWindow: null, prices, complete: failing }
    }
  }
}
