/**
 * Drives one run from its present state to its end.
 *
 * 1. What is done next is decided by `nextStep()` on the state alone.
 * 2. One step runs at a time; answers of humans are appended beside it, and only while it waits.
 * 3. An abort is durable before it takes effect; it ends whatever the step is doing.
 * 4. Whatever throws ends the run with an `error` and a `run_end`. Only a log that cannot be written
 *    keeps a run from its end: it is read again and its end appended as soon as that is possible.
 *
 * @module
 */
import { backoffDelay, type Backoff } from '../../internal/backoff.js'
import { sleep } from '../../internal/sleep.js'
import { nextTurn } from '../../internal/next-turn.js'
import { StoreError } from '../errors.js'
import type { RecordDraft } from '../events.js'
import { ABORTED, nextStep, type Outcome, type Step, type StepLimits } from './next-step.js'
import { isTerminal } from '../log/head.js'
import { failureOf } from './steps/failure.js'
import { promptOf, type RunContext } from './step-context.js'
import { RunLog, type RunLogOptions } from '../log/writer.js'
import { remainingMs } from './budgets.js'
import type { Scheduler } from './scheduler.js'
import { foldState, type CallState, type RunState } from '../log/state.js'
import { closingRecord, runTools } from './steps/act.js'
import { checkBaseline, evaluate } from './steps/evaluate.js'
import { finishRun, type Failure } from './steps/finish.js'
import { askForCalls } from './steps/human-check.js'
import { takeTurn } from './steps/turn.js'
import { recoverRun } from './steps/recover.js'
import { startRun } from './steps/start.js'
import type { RunStore } from '../store.js'
import type { Tool } from '../tool.js'
import type { Workspace } from '../workspace/workspace.js'

/** What a live run needs of its engine. */
export interface LiveRunOptions
  extends RunLogOptions, Omit<RunContext, 'fit' | 'log' | 'prompt' | 'signal' | 'workspace'> {
  readonly scheduler: Scheduler
  readonly maxTurnsPerIteration: number
  /** Opened when the run begins to work: the folder may be gone by then. */
  readonly openWorkspace: (cwd: string) => Promise<Workspace>
  /** True when a process that is gone drove the run before. */
  readonly takenOver: boolean
  /** The gate whose time is known to be up; else this process's clock decides. */
  readonly overdueGate: string | null
  /** True when nobody holds a run that waits for a human: whoever takes it up next goes on with it. */
  readonly parksAtGates: boolean
}

/** The reason with which a run is stopped to go on later, when the service shuts down. */
class Suspended extends Error {
  override name = 'Suspended'
}

/** Steps after which a run whose steps wait for nothing lets others have the thread. */
const STEPS_PER_TURN = 32
/** Waits before the end of a run is appended again to a store that failed. */
const STORE_BACKOFF: Backoff = { firstMs: 100, maxMs: 5_000 }

/** One run that has not ended. */
export class LiveRun {
  readonly #options: LiveRunOptions
  #log: RunLog
  #stop = new AbortController()
  #suspending = false
  #takenOver: boolean
  /** True once the run is somebody else's business: it waits at a gate, or was taken away. */
  #left = false
  #wake: (() => void) | undefined
  #context: RunContext | undefined
  readonly #limits: StepLimits

  constructor(log: RunLog, options: LiveRunOptions) {
    this.#log = log
    this.#options = options
    const needsApproval = (call: CallState): boolean => this.#needsApproval(call)
    const { maxTurnsPerIteration, detectStuck } = options
    this.#limits = { maxTurnsPerIteration, detectStuck, needsApproval }
    const { status } = log.state.head.details
    this.#takenOver = options.takenOver && status === 'running' && !log.state.suspended
  }

  get log(): RunLog {
    return this.#log
  }

  /** The tools that the run may use. */
  get tools(): ReadonlyMap<string, Tool> {
    return this.#options.tools
  }

  get state(): RunState {
    return this.#log.state
  }

  /** Drives the run until it ends or is suspended; never rejects. */
  async drive(): Promise<void> {
    const { trace } = this.#options
    trace.beginRun(this.state.head.details)
    try {
      if (this.#options.takenOver) await this.#options.executor.killMarked(this.#log.runId)
      await this.#driveSteps()
    } catch (error) {
      await this.#fail(error).catch((second: unknown) => {
        process.emitWarning(`run ${this.#log.runId} could not be ended: ${String(second)}`)
      })
    } finally {
      // Whoever has the run now may have commands of its own under the same mark.
      const strays = this.state.mayHaveStrays && !this.#left
      if (strays) await this.#options.executor.killMarked(this.#log.runId).catch(() => 0)
      this.#options.scheduler.leave(this.#log.runId)
      trace.endRun(this.state.head.details)
    }
  }

  /** Appends records beside the step that waits, and lets the run look at its state again. */
  async answer(
    drafts: readonly RecordDraft[],
    more?: (state: RunState) => readonly RecordDraft[],
  ): Promise<void> {
    const appended = this.#log.append(drafts, more)
    this.#wake?.()
    await appended
  }

  /** Asks for the run's end; resolves once the wish is durable. */
  async abort(by: string | null): Promise<void> {
    const { iteration } = this.state.head.details
    await this.#log.append([{ kind: 'abort_requested', iteration, payload: { by } }])
    this.#interrupt(new Error('the run was aborted'))
  }

  /** Stops the run where it is, so that it goes on when the service starts again. */
  suspend(): void {
    this.#suspending = true
    this.#interrupt(new Suspended('the service shuts down'))
  }

  /** Stops working and writes nothing more: the run belongs to another process. */
  lose(): void {
    this.#left = true
    this.#interrupt(new Suspended('another process works on the run'))
  }

  #interrupt(reason: Error): void {
    this.#stop.abort(reason)
    this.#wake?.()
  }

  async #driveSteps(): Promise<void> {
    for (let steps = 1; ; steps++) {
      if (steps % STEPS_PER_TURN === 0) await nextTurn()
      if (this.#left) return
      if (this.#suspending) return this.#suspendNow()
      const step = this.#nextStep()
      if (step.kind === 'ended') return
      try {
        await this.#perform(step)
      } catch (error) {
        if (!this.#stop.signal.aborted || error instanceof StoreError) throw error
        const over = this.#suspending || this.#left
        if (!over) this.#stop = new AbortController() // the next step tells why
      }
    }
  }

  #nextStep(): Step {
    return nextStep(this.state, this.#limits, this.#options.clock.now())
  }

  #needsApproval({ call }: CallState): boolean {
    const { approval } = this.state.frozen.request
    const tool = this.#options.tools.get(call.tool)
    if (approval === 'never' || tool === undefined || call.error !== undefined) return false
    return approval === 'all' || tool.effect !== 'read'
  }

  async #perform(step: Exclude<Step, { kind: 'ended' }>): Promise<void> {
    if (step.kind === 'wait') return this.#waitForHuman()
    if (step.kind === 'finish') return finishRun(this.#log, step.outcome)
    const { scheduler, clock } = this.#options
    const { signal } = this.#stop
    const { runId } = this.#log
    if (!scheduler.isWorking(runId)) {
      await scheduler.enter(runId, this.state.frozen.request.cwd, signal)
      if (this.#nextStep().kind !== step.kind) return
    }
    const context = this.#contextFor(signal) ?? (await this.#makeContext(signal))
    if (this.#takenOver) {
      this.#takenOver = false
      return recoverRun(context)
    }
    const left = remainingMs(this.state, clock.now())
    const timer =
      left === Infinity
        ? undefined
        : clock.setTimeout(() => this.#interrupt(new Error('out of time')), left)
    try {
      await performStep(step, context)
    } finally {
      timer?.cancel()
    }
  }

  /** What the last steps worked with, when it still holds. */
  #contextFor(signal: AbortSignal): RunContext | undefined {
    return this.#context?.signal === signal ? this.#context : undefined
  }

  async #makeContext(signal: AbortSignal): Promise<RunContext> {
    const { openWorkspace, tools } = this.#options
    const { cwd } = this.state.frozen.request
    const workspace = this.#context?.workspace ?? (await openWorkspace(cwd))
    const prompt =
      this.#context?.prompt ?? promptOf(cwd, this.state.frozen.goal.judge !== undefined, tools)
    const fit = this.#context?.fit ?? { tokens: Infinity }
    this.#context = { ...this.#options, prompt, fit, workspace, log: this.#log, signal }
    return this.#context
  }

  /** Waits for an answer, an abort or the gate's deadline, without holding a slot. */
  async #waitForHuman(): Promise<void> {
    const { scheduler, clock, trace } = this.#options
    scheduler.pause(this.#log.runId)
    const { gate } = this.state.head.details
    if (gate === null) return
    const left = gate.deadline === null ? null : Date.parse(gate.deadline) - clock.now()
    const overdue = gate.gate_id === this.#options.overdueGate
    if (overdue || (left !== null && left <= 0)) {
      const reason = `nobody answered gate ${gate.gate_id} until ${gate.deadline}`
      return finishRun(this.#log, { status: 'aborted', endReason: 'gate_timeout', reason })
    }
    if (this.#options.parksAtGates) {
      this.#left = true
      return
    }
    const span = trace.beginGate(gate.gate_id, gate.kind)
    let timer: { cancel(): void } | undefined
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      if (left !== null) timer = clock.setTimeout(resolve, left)
      if (this.#stop.signal.aborted) resolve()
    })
    this.#wake = undefined
    timer?.cancel()
    const { lastDecision } = this.state.head
    trace.endGate(span, lastDecision?.gate_id === gate.gate_id ? lastDecision.decision : null)
    this.#stop = this.#suspending ? this.#stop : new AbortController()
    await this.#log.flush()
  }

  async #suspendNow(): Promise<void> {
    const { head, calls } = this.state
    const { iteration, status } = head.details
    if (isTerminal(status)) return
    const stopped = calls
      .filter((call) => call.status === 'started')
      .map((call) =>
        closingRecord(iteration, call, 130, 'Stopped: the service shut down while this ran.'),
      )
    if (status === 'pending' || status === 'awaiting_human') return this.#log.flush()
    await this.#log.append([...stopped, { kind: 'run_suspended', iteration, payload: {} }])
  }

  async #fail(error: unknown): Promise<void> {
    if (this.#left || isClaimLost(error)) return void (this.#left = true)
    const { outcome, failure } = failureOf(error, this.state.frozen.request.cwd)
    if (error instanceof StoreError) return this.#endFromStore(outcome, failure)
    if (isTerminal(this.state.head.details.status)) throw error
    try {
      await finishRun(this.#log, outcome, failure)
    } catch (second) {
      if (!(second instanceof StoreError)) throw second
      await this.#endFromStore(outcome, failure)
    }
  }

  /**
   * Ends a run whose log could not be written: what was not stored never happened, so that the
   * state is read anew, and its end is appended once the store takes it. Given up when the service
   * shuts down; the next start takes the run up again.
   */
  async #endFromStore(outcome: Outcome, failure: Failure): Promise<void> {
    const { store, clock } = this.#options
    for (let retry = 1; !this.#suspending; retry++) {
      try {
        const state = await loadState(store, this.#log.runId)
        if (state === null || isTerminal(state.head.details.status)) return
        this.#log = new RunLog(this.#options, this.#log.feed, state)
        const end = state.abortRequested ? ABORTED : outcome
        return await finishRun(this.#log, end, failure)
      } catch (error) {
        if (!(error instanceof StoreError)) throw error
        if (isClaimLost(error)) return void (this.#left = true)
        const delay = backoffDelay(retry, STORE_BACKOFF)
        await sleep(delay, this.#stop.signal, clock).catch(() => undefined)
        if (!this.#suspending) this.#stop = new AbortController()
      }
    }
  }
}

/** Does another process work on the run? */
function isClaimLost(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'ERR_AGENT_CLAIM_LOST'
}

/** Performs one step that works; each stands in a file of its own. */
function performStep(
  step: Exclude<Step, { kind: 'ended' | 'wait' | 'finish' }>,
  context: RunContext,
): Promise<void> {
  switch (step.kind) {
    case 'start':
      return startRun(context)
    case 'baseline':
      return checkBaseline(context)
    case 'turn':
      return takeTurn(context, step.iteration, step.begins)
    case 'ask':
      return askForCalls(context, step.calls)
    case 'tools':
      return runTools(context, step.calls)
    case 'evaluate':
      return evaluate(context, step.iteration)
  }
}

/** Records read from the store at once. */
const PAGE = 1_000

/** The state of a run from its whole log; null when there is none. */
export async function loadState(store: RunStore, runId: string): Promise<RunState | null> {
  let state: RunState | null = null
  for (let after = 0; ; ) {
    const records = await store.read(runId, after, PAGE)
    for (const record of records) state = foldState(state, record)
    const last = records.at(-1)
    if (last === undefined || records.length < PAGE) return state
    after = last.seq
  }
}
