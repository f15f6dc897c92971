/**
 * Tries patches at the same time, each in a private copy of the workspace, which itself never
 * changes.
 *
 * 1. There is one copy for each slot, and one for watching tests. Copies are kept for later
 *    requests of the run while the workspace stays as it is.
 * 2. The run without a patch is what runs with a patch are compared with, and limits their time.
 *    Patches don't wait for it. Its result is kept while the workspace stays as it is.
 * 3. A copy in which a run has changed more than runs without a patch do is not used again.
 *
 * @module
 */
import { performance } from 'node:perf_hooks'
import type {
  CommandResult, ToolCommandOptions, ToolContext, WorkspaceCopies, WorkspaceCopy,
} from '../../agent/index.js'
import {
  MAX_EDITS, MAX_PATCHES, type TestedLines, type Trial, type TrialReport, type TrialRequest,
} from './trial.js'

/** Milliseconds after which a request starts no further patch, from the run without one on. */
const REQUEST_MS = 60_000
/** Milliseconds for a run without a patch, whose duration is unknown. */
const BASE_MS = 600_000
/** Milliseconds that a run with a patch has in any case. */
const LEAST_MS = 2_000
/** How much longer than without a patch a run may take. */
const FACTOR = 3
const MAX_OUTPUT_BYTES = 65_536
/** Exit codes of commands that were stopped; see `CommandResult`. */
const [ABORTED, TIMED_OUT] = [130, 124]
/** Commands of which the result without a patch is kept. */
const MAX_BASES = 32
/** Python finds stale bytecode by size and second of the source, which a patch may not change. */
const ENVIRONMENT: Readonly<Record<string, string>> = { PYTHONDONTWRITEBYTECODE: '1' }
/** The copy of the run without a patch, and the one in which tests are watched. */
const [FIRST, WATCHED] = ['trial-0', 'watched']

/** The part of a tool's context that trials use. */
export type TrialContext = Pick<ToolContext, 'copies' | 'signal'>

/** One request while it works. */
interface Work {
  readonly command: string
  readonly copies: WorkspaceCopies
  readonly signal: AbortSignal
  /** Runs the command in a copy. */
  run(copy: WorkspaceCopy, options: ToolCommandOptions): Promise<CommandResult>
}

/** The trials of one run; see the comment of this file. */
export class Trials {
  /** Of the workspace whose results are kept. */
  #version: number | null = null
  readonly #bases = new Map<string, CommandResult>()
  /** Files that commands change without a patch as well. */
  readonly #written = new Set<string>()
  /** The last request: the next one waits for it. */
  #last: Promise<unknown> = Promise.resolve()

  /**
   * Tries patches.
   *
   * @throws TypeError for a request beyond the limits; as {@link WorkspaceCopies.open}.
   */
  async try(request: TrialRequest, context: TrialContext): Promise<TrialReport> {
    checkRequest(request)
    const report = this.#last.then(async () => {
      context.signal.throwIfAborted()
      return await this.#try(request, context)
    })
    this.#last = report.catch(() => undefined)
    return await report
  }

  async #try(
    { command, patches, timeoutMs, watch = false, maxOutputBytes = MAX_OUTPUT_BYTES }: TrialRequest,
    { copies, signal }: TrialContext,
  ): Promise<TrialReport> {
    const { version } = await copies.open(FIRST)
    if (version !== this.#version) {
      this.#version = version
      this.#bases.clear()
      this.#written.clear()
    }
    const work: Work = {
      command, copies, signal,
      run: async (copy, options) => {
        const env = { ...ENVIRONMENT, ...options.env }
        const result = await copy.run(command, { maxOutputBytes, ...options, env })
        signal.throwIfAborted()
        return result
      },
    }
    const working = async (): Promise<Omit<TrialReport, 'tested'>> => {
      const isBusy = !this.#bases.has(command)
      const base = this.#base(work)
      const limit = base.then(
        ({ durationMs }) => timeoutMs ?? Math.ceil(FACTOR * durationMs + LEAST_MS),
      )
      const [result, ms, trials] = await settled(
        base,
        limit,
        this.#tryAll(patches, work, {
          limit, busy: isBusy ? base : null, timeoutMs: timeoutMs ?? BASE_MS,
        }),
      )
      return { base: result, timeoutMs: ms, trials }
    }
    // What takes longer comes first.
    const watching = watch ? this.#watched(work) : null
    const [tested, report] = await settled(watching, working())
    return { ...report, tested }
  }

  /** The run without a patch. */
  async #base({ command, copies, run }: Work): Promise<CommandResult> {
    const known = this.#bases.get(command)
    if (known !== undefined) return known
    const copy = await copies.open(FIRST)
    const result = await run(copy, { timeoutMs: BASE_MS })
    for (const path of await copy.changed()) this.#written.add(path)
    if (this.#bases.size >= MAX_BASES) this.#bases.clear()
    this.#bases.set(command, result)
    return result
  }

  /**
   * `limit` is the milliseconds for each patch, known once the run without a patch is over; `busy`
   * is that run, which has the first copy until then.
   */
  async #tryAll(
    patches: TrialRequest['patches'],
    work: Work,
    { limit, busy, timeoutMs }: {
      readonly limit: Promise<number>
      readonly busy: Promise<unknown> | null
      readonly timeoutMs: number
    },
  ): Promise<readonly Trial[]> {
    const trials: Trial[] = patches.map(() => ({ state: 'not tried' }))
    let until = Infinity
    const begin = (): void => void (until = performance.now() + REQUEST_MS)
    if (busy === null) begin()
    else void busy.then(begin, begin)
    let next = 0
    const worker = async (number: number): Promise<void> => {
      if (number === 0 && busy !== null) await busy
      while (next < patches.length && performance.now() < until) {
        const at = next++
        const copy = await work.copies.open(`trial-${number}`)
        const edited = await copy.withEdits(patches[at]!, () =>
          runWithin(limit, (options) => work.run(copy, { timeoutMs, ...options })),
        )
        trials[at] = edited.made
          ? { state: 'ran', result: edited.value }
          : { state: 'impossible', problem: edited.problem }
        if (await this.#isSound(copy)) continue
        // What a command writes without a patch as well is known once that has run.
        await busy
        if (!(await this.#isSound(copy))) await copy.remove()
      }
    }
    const workers = Math.min(work.copies.slots, patches.length + (busy === null ? 0 : 1))
    await settled(...Array.from({ length: workers }, (_, at) => worker(at)))
    return trials
  }

  /** False when a run has changed more in the copy than runs without a patch do. */
  async #isSound(copy: WorkspaceCopy): Promise<boolean> {
    return (await copy.changed()).every((path) => this.#written.has(path))
  }

  async #watched({ copies, run }: Work): Promise<TestedLines | null> {
    const { watchTests } = await import('../trace/watch-tests.js')
    const copy = await copies.open(WATCHED)
    const tested = await watchTests(copy, (options) =>
      run(copy, { timeoutMs: BASE_MS, ...options }),
    )
    // Watching is rare, and it may have left something.
    await copy.remove()
    return tested
  }
}

/**
 * Runs a command that is stopped `limit` milliseconds after its start, also where the limit becomes
 * known later.
 */
async function runWithin(
  limit: Promise<number>,
  run: (options: Pick<ToolCommandOptions, 'onStart' | 'signal'>) => Promise<CommandResult>,
): Promise<CommandResult> {
  const late = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let isOver = false
  const stop = (): void => late.abort()
  const onStart = async (): Promise<void> => {
    const started = performance.now()
    void limit.then((ms) => {
      if (!isOver) timer = setTimeout(stop, Math.max(0, started + ms - performance.now()))
    }, stop)
  }
  const result = await run({ onStart, signal: late.signal }).finally(() => {
    isOver = true
    clearTimeout(timer)
  })
  const isLate = late.signal.aborted && result.exitCode === ABORTED
  return isLate ? { ...result, exitCode: TIMED_OUT, timedOut: true } : result
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
