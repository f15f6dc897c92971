/**
 * Drives one run from its current state to its end.
 *
 * 1. `nextStep()` decides from the state alone what is done next.
 * 2. One step runs at a time. Answers of humans are appended beside it, only while it waits.
 * 3. An abort is durable before it takes effect; then it interrupts the current step.
 * 4. Any exception ends the run with an `error` and a `run_end`. If the log cannot be written, the
 *    state is loaded again and the end appended as soon as the store accepts it.
 *
 * @module
 */
import { backoffDelay, type Backoff } from '../../internal/backoff.js'
import { nextTurn } from '../../internal/next-turn.js'
import { sleep } from '../../internal/sleep.js'
import { StoreError } from '../errors.js'
import { isTerminal, type RecordDraft } from '../events.js'
import { loadState, type CallState, type RunState } from '../log/state.js'
import { LogWriter, type LogWriterOptions } from '../log/writer.js'
import type { ResumeAnswer } from '../request/gate-answer.js'
import type { Gate } from '../run-details.js'
import type { Tool } from '../tool.js'
import type { Workspace } from '../workspace/workspace.js'
import { remainingMs } from './budgets.js'
import { nextStep, type Step, type StepLimits, type WorkStep } from './next-step.js'
import { ABORTED, type Outcome } from './outcome.js'
import type { Scheduler } from './scheduler.js'
import { promptOf, type StepContext } from './step-context.js'
import {
  answerGate,
  closingRecord,
  failureOf,
  finishRun,
  type Failure,
} from './steps/finish.js'

/** What a run needs of its engine. */
export interface RunLoopOptions
  extends LogWriterOptions, Omit<StepContext, 'fit' | 'log' | 'prompt' | 'signal' | 'workspace'> {
  readonly scheduler: Scheduler
  readonly performStep: (step: WorkStep, context: StepContext) => Promise<void>
  readonly maxTurnsPerIteration: number
  /** Called when the run first works: its folder may not exist any more. */
  readonly openWorkspace: (cwd: string) => Promise<Workspace>
  /** True when a process that has died drove the run before. */
  readonly takenOver: boolean
  /** The gate that has expired by the store's clock; for others this process's clock decides. */
  readonly overdueGate: string | null
  /** True when no process holds a run that waits for a human: any process continues it later. */
  readonly parksAtGates: boolean
}

/** The abort reason of a run that is stopped now and resumed later. */
class Suspended extends Error {
  override name = 'Suspended'
}

/** Steps after which a run that never waits yields to the event loop. */
const STEPS_PER_TURN = 32
/** Delays between attempts to append the end of a run to a failing store. */
const STORE_BACKOFF: Backoff = { firstMs: 100, maxMs: 5_000 }

/** The loop of one run; see the comment of this file. */
export class RunLoop {
  readonly #options: RunLoopOptions
  #log: LogWriter
  #stop = new AbortController()
  #suspending = false
  #takenOver: boolean
  /** True when this process must not touch the run any more: it is parked, or was claimed away. */
  #left = false
  /** True while a step runs tools or checks. */
  #acts = false
  #halted = false
  #wake: (() => void) | undefined
  #context: StepContext | undefined
  readonly #limits: StepLimits

  constructor(log: LogWriter, options: RunLoopOptions) {
    this.#log = log
    this.#options = options
    const needsApproval = (call: CallState): boolean => this.#needsApproval(call)
    const { maxTurnsPerIteration, detectStuck } = options
    this.#limits = { maxTurnsPerIteration, detectStuck, needsApproval }
    const { status } = log.state.head.details
    this.#takenOver = options.takenOver && status === 'running' && !log.state.suspended
  }

  get log(): LogWriter {
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
      // A process that has taken the run over may run commands with the same mark.
      const strays = this.state.mayHaveStrays && !this.#left
      if (strays) await this.#options.executor.killMarked(this.#log.runId).catch(() => 0)
      this.#options.scheduler.leave(this.#log.runId)
      trace.endRun(this.state.head.details)
    }
  }

  /** Answers the gate at which the run waits, and wakes it; see {@link answerGate}. */
  async answer(gate: Gate, answer: ResumeAnswer, by: string | null): Promise<void> {
    const appended = answerGate(this.#log, gate, answer, by)
    this.#wake?.()
    await appended
  }

  /** Aborts the run; resolves once the request is durable. */
  async abort(by: string | null): Promise<void> {
    const { iteration } = this.state.head.details
    await this.#log.append([{ kind: 'abort_requested', iteration, payload: { by } }])
    this.#interrupt(new Error('the run was aborted'))
  }

  /** Stops the run where it is, to be resumed by the next start. */
  suspend(): void {
    this.#suspending = true
    this.#interrupt(new Suspended('the service is shutting down'))
  }

  /** Stops without writing anything: another process holds the run. */
  lose(): void {
    this.#left = true
    this.#interrupt(new Suspended('another process has taken the run over'))
  }

  /**
   * Stops tools and checks, because another process may soon run some of this run. The run goes on
   * once the store can be reached, if it is still this process's.
   */
  halt(): void {
    if (!this.#acts) return
    this.#halted = true
    this.#interrupt(new Error('the store could not be reached'))
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
      if (this.#halted) await this.#closeHalted()
      const step = this.#nextStep()
      if (step.kind === 'ended') return
      try {
        await this.#perform(step)
      } catch (error) {
        if (!this.#stop.signal.aborted || error instanceof StoreError) throw error
        const over = this.#suspending || this.#left
        if (!over) this.#stop = new AbortController() // nextStep() sees the reason in the state
      }
    }
  }

  #nextStep(): Step {
    return nextStep(this.state, this.#limits, this.#log.now())
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
      return this.#options.performStep({ kind: 'recover' }, context)
    }
    const left = remainingMs(this.state, this.#log.now())
    const timer =
      left === Infinity
        ? undefined
        : clock.setTimeout(() => this.#interrupt(new Error('out of time')), left)
    try {
      this.#acts = step.kind !== 'turn'
      await this.#options.performStep(step, context)
    } finally {
      this.#acts = false
      timer?.cancel()
    }
  }

  /** The context of the last step, while its signal is current. */
  #contextFor(signal: AbortSignal): StepContext | undefined {
    return this.#context?.signal === signal ? this.#context : undefined
  }

  async #makeContext(signal: AbortSignal): Promise<StepContext> {
    const { openWorkspace, tools } = this.#options
    const { cwd } = this.state.frozen.request
    const workspace = this.#context?.workspace ?? (await openWorkspace(cwd))
    const prompt =
      this.#context?.prompt ?? promptOf(cwd, this.state.frozen.goal.judge !== undefined, tools)
    const fit = this.#context?.fit ?? { tokens: Infinity }
    this.#context = { ...this.#options, prompt, fit, workspace, log: this.#log, signal }
    return this.#context
  }

  /** Waits for an answer, an abort or the deadline of the gate, without a slot. */
  async #waitForHuman(): Promise<void> {
    const { scheduler, clock, trace } = this.#options
    scheduler.pause(this.#log.runId)
    const { gate } = this.state.head.details
    if (gate === null) return
    const left = gate.deadline === null ? null : Date.parse(gate.deadline) - clock.now()
    const overdue = gate.gate_id === this.#options.overdueGate
    if (overdue || (left !== null && left <= 0)) {
      const reason = `gate ${gate.gate_id} was not answered by ${gate.deadline}`
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

  /** Results for calls that were stopped while they ran. */
  #closeStarted(output: string): RecordDraft[] {
    const { head, calls } = this.state
    return calls
      .filter((call) => call.status === 'started')
      .map((call) => closingRecord(head.details.iteration, call, 130, output))
  }

  async #closeHalted(): Promise<void> {
    this.#halted = false
    const stopped = this.#closeStarted('Stopped: the store could not be reached')
    if (stopped.length > 0) await this.#log.append(stopped)
  }

  async #suspendNow(): Promise<void> {
    const { iteration, status } = this.state.head.details
    if (isTerminal(status)) return
    const stopped = this.#closeStarted('Stopped: the service shut down while this ran.')
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
   * Ends a run whose log could not be written. What was not stored never happened, so the state is
   * loaded again, and the end appended once the store accepts it. Stops when the service shuts
   * down: the next start resumes the run.
   */
  async #endFromStore(outcome: Outcome, failure: Failure): Promise<void> {
    const { store, clock } = this.#options
    for (let retry = 1; !this.#suspending; retry++) {
      try {
        const state = await loadState(store, this.#log.runId)
        if (state === null || isTerminal(state.head.details.status)) return
        this.#log = new LogWriter(this.#options, this.#log.feed, state)
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

/** Has another process claimed the run? */
function isClaimLost(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'ERR_AGENT_CLAIM_LOST'
}
