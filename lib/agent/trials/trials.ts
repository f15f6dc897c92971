/**
 * Patches that are tried beside each other, each in a copy of the workspace, which itself never
 * changes: what stops in the middle of it leaves nothing behind.
 *
 * 1. One copy for each command that may run at the same time, made when it is first needed and kept
 *    for later requests of the run; new ones once the workspace has changed.
 * 2. The run without a patch tells what is different with one, and how long a run may take. Patches
 *    do not wait for it, and its result is kept for as long as the workspace stays as it is.
 * 3. A copy in which a run has changed more than runs without a patch do is not used again.
 *
 * @module
 */
import { performance } from 'node:perf_hooks'
import type { CommandResult, Executor, IsolatedCopy } from '../executor.js'
import {
  MAX_EDITS, MAX_PATCHES, type TestedLines, type Trial, type TrialReport, type TrialRequest,
} from '../trial.js'
import { folderState, isSameState, type FolderState } from './folder-state.js'
import type { Slots } from './slots.js'
import { TrialCopy, type TrialOptions } from './trial-copy.js'
import type { TrialControl, TrialPlace, Trying } from './trying.js'

/** Milliseconds after which a request starts no further patch, from the run without one on. */
const REQUEST_MS = 60_000
/** Milliseconds for a run without a patch, which nothing is known about. */
const BASE_MS = 600_000
/** Milliseconds that a run with a patch has in any case. */
const LEAST_MS = 2_000
/** How much longer than without a patch a run may take. */
const FACTOR = 3
const MAX_OUTPUT_BYTES = 65_536
/** Exit codes of commands that were stopped; see {@link CommandResult}. */
const [ABORTED, TIMED_OUT] = [130, 124]
/** Commands of which the result without a patch is kept. */
const MAX_BASES = 32

/** Where copies are made; see `IsolatedFolders`. */
export interface TrialFolders {
  create(name: string, cwd: string, options: {
    readonly mounts: boolean
    readonly mounted: IsolatedCopy['readOnly']
    readonly sealed: true
    readonly signal: AbortSignal
  }): Promise<IsolatedCopy>
  removeSoon(name: string): Promise<void>
}

/** What watches tests, see `trace.ts`. */
export interface TestWatch {
  /** Runs the command watched; null when nothing could be seen. */
  watch(
    root: string,
    run: (options: Pick<TrialOptions, 'env' | 'writable'>) => Promise<CommandResult>,
  ): Promise<TestedLines | null>
}

/** What the trials of one run need. */
export interface TrialsOptions {
  readonly runId: string
  readonly folders: () => Promise<TrialFolders>
  /** Runs the commands: as for sealed checks, the strongest one at hand. */
  readonly executor: () => Promise<Executor>
  readonly slots: Slots
  /** Commands of this run that may run at the same time. */
  readonly jobs: number
  readonly watch: () => Promise<TestWatch>
}

/** The trials of one run; see the comment of this file. */
export class Trials implements Trying {
  readonly #options: TrialsOptions
  #state: FolderState | null = null
  /** By worker. */
  readonly #copies = new Map<number, TrialCopy>()
  readonly #bases = new Map<string, CommandResult>()
  /** Files that commands change without a patch as well. */
  readonly #written = new Set<string>()
  /** The last request: another one waits for it. */
  #last: Promise<unknown> = Promise.resolve()
  #made = 0
  #isClosed = false

  constructor(options: TrialsOptions) {
    this.#options = options
  }

  /**
   * Tries patches.
   *
   * @throws {@link WorkspaceError} when no copy can be made; the signal's reason.
   */
  async try(
    request: TrialRequest,
    place: TrialPlace,
    control: TrialControl,
  ): Promise<TrialReport> {
    checkRequest(request)
    const report = this.#last.then(async () => {
      control.signal.throwIfAborted()
      return await this.#try(request, place, control)
    })
    this.#last = report.catch(() => undefined)
    return await report
  }

  /** Removes the copies; nothing can be tried any more. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#last
    await this.#forget()
  }

  async #try(
    { command, patches, timeoutMs, watch = false, maxOutputBytes = MAX_OUTPUT_BYTES }: TrialRequest,
    place: TrialPlace,
    control: TrialControl,
  ): Promise<TrialReport> {
    const state = await folderState(place.cwd)
    if (!isSameState(state, this.#state)) await this.#forget()
    this.#state = state
    const { runId: mark } = this.#options
    const options = (limit: number): TrialOptions => ({
      ...control, mark, maxOutputBytes, timeoutMs: limit, env: {}, writable: [],
    })
    const working = async (): Promise<Omit<TrialReport, 'tested'>> => {
      const isBusy = !this.#bases.has(command)
      const base = this.#base(command, place, options(BASE_MS))
      const limit = base.then(
        ({ durationMs }) => timeoutMs ?? Math.ceil(FACTOR * durationMs + LEAST_MS),
      )
      const [result, ms, trials] = await settled(
        base,
        limit,
        this.#tryAll(patches, command, place, options(timeoutMs ?? BASE_MS), {
          limit, busy: isBusy ? base : null,
        }),
      )
      return { base: result, timeoutMs: ms, trials }
    }
    // What takes longer comes first.
    const watching = watch ? this.#watched(command, place, options(BASE_MS)) : null
    const [tested, report] = await settled(watching, working())
    return { ...report, tested }
  }

  /** The run without a patch. */
  async #base(command: string, place: TrialPlace, options: TrialOptions): Promise<CommandResult> {
    const known = this.#bases.get(command)
    if (known !== undefined) return known
    const copy = await this.#copy(0, place, options.signal)
    const result = await this.#options.slots.use(() => copy.run(command, options))
    options.signal.throwIfAborted()
    await copy.learn()
    if (this.#bases.size >= MAX_BASES) this.#bases.clear()
    this.#bases.set(command, result)
    return result
  }

  /**
   * `limit` are the milliseconds for each patch, known once the run without a patch is over; `busy`
   * is that run, which has the first copy until then.
   */
  async #tryAll(
    patches: TrialRequest['patches'],
    command: string,
    place: TrialPlace,
    options: TrialOptions,
    { limit, busy }: { readonly limit: Promise<number>; readonly busy: Promise<unknown> | null },
  ): Promise<readonly Trial[]> {
    const trials: Trial[] = patches.map(() => ({ state: 'not tried' }))
    let until = Infinity
    const begin = (): void => void (until = performance.now() + REQUEST_MS)
    if (busy === null) begin()
    else void busy.then(begin, begin)
    let next = 0
    const work = async (worker: number): Promise<void> => {
      if (worker === 0 && busy !== null) await busy
      while (next < patches.length && performance.now() < until) {
        const at = next++
        const copy = await this.#copy(worker, place, options.signal)
        trials[at] = await this.#options.slots.use(async () => {
          options.signal.throwIfAborted()
          return await within(limit, options, (more) => copy.try(patches[at]!, command, more))
        })
        options.signal.throwIfAborted()
        if (await copy.isSound()) continue
        // What a command writes without a patch as well is known once that has run.
        await busy
        if (!(await copy.isSound())) await this.#remove(worker)
      }
    }
    const workers = Math.min(this.#options.jobs, patches.length + (busy === null ? 0 : 1))
    await settled(...Array.from({ length: workers }, (_, at) => work(at)))
    return trials
  }

  async #watched(
    command: string,
    place: TrialPlace,
    options: TrialOptions,
  ): Promise<TestedLines | null> {
    const { jobs, slots } = this.#options
    const tests = await this.#options.watch()
    const copy = await this.#copy(jobs, place, options.signal)
    const run: Parameters<TestWatch['watch']>[1] = (more) =>
      copy.run(command, { ...options, ...more })
    const tested = await slots.use(async () => await tests.watch(copy.root, run))
    options.signal.throwIfAborted()
    // Watching is rare, and what watches may have left something.
    await this.#remove(jobs)
    return tested
  }

  async #copy(
    worker: number,
    { cwd, isolated }: TrialPlace,
    signal: AbortSignal,
  ): Promise<TrialCopy> {
    const known = this.#copies.get(worker)
    if (known !== undefined) return known
    const [folders, executor] = await Promise.all([
      this.#options.folders(), this.#options.executor(),
    ])
    if (this.#isClosed) throw new Error('the run is over')
    const mounts = (await executor.mountsFolders?.()) ?? false
    const name = `try-${this.#made++}-${this.#options.runId}`
    const mounted = mounts ? (isolated?.readOnly ?? []) : []
    const made = await folders.create(name, cwd, { mounts, mounted, sealed: true, signal })
    try {
      const copy = await TrialCopy.open(name, made, executor, this.#written)
      this.#copies.set(worker, copy)
      return copy
    } catch (error) {
      await folders.removeSoon(name)
      throw error
    }
  }

  async #remove(worker: number): Promise<void> {
    const copy = this.#copies.get(worker)
    this.#copies.delete(worker)
    // What cannot be removed now, a sweep removes.
    if (copy !== undefined) {
      await (await this.#options.folders()).removeSoon(copy.name).catch(() => undefined)
    }
  }

  async #forget(): Promise<void> {
    this.#bases.clear()
    this.#written.clear()
    await Promise.all([...this.#copies.keys()].map((worker) => this.#remove(worker)))
  }
}

/** Tries a patch, which is stopped after `limit` milliseconds, also where that is known later. */
async function within(
  limit: Promise<number>,
  options: TrialOptions,
  tryPatch: (options: TrialOptions) => Promise<Trial>,
): Promise<Trial> {
  const started = performance.now()
  const late = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let isOver = false
  const stop = (): void => late.abort()
  void limit.then((ms) => {
    if (!isOver) timer = setTimeout(stop, Math.max(0, started + ms - performance.now()))
  }, stop)
  const signal = AbortSignal.any([options.signal, late.signal])
  const trial = await tryPatch({ ...options, signal }).finally(() => {
    isOver = true
    clearTimeout(timer)
  })
  const isLate = trial.state === 'ran' && late.signal.aborted && trial.result.exitCode === ABORTED
  return isLate
    ? { ...trial, result: { ...trial.result, exitCode: TIMED_OUT, timedOut: true } }
    : trial
}

function checkRequest({ patches }: TrialRequest): void {
  if (patches.length > MAX_PATCHES) {
    throw new TypeError(`patches must be at most ${MAX_PATCHES}, got ${patches.length}`)
  }
  const at = patches.findIndex((edits) => edits.length > MAX_EDITS)
  if (at < 0) return
  throw new TypeError(`patches[${at}] must have at most ${MAX_EDITS} edits`)
}

/** What `Promise.all` returns; rejects only when all of them are over. */
async function settled<T extends readonly unknown[]>(
  ...work: { [K in keyof T]: Promise<T[K]> | T[K] }
): Promise<T> {
  await Promise.allSettled(work)
  return (await Promise.all(work)) as unknown as T
}
