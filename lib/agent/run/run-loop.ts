/**
 * Drives one run from its current state to its end.
 *
 * 1. `nextStep()` decides from the state alone what is done next.
 * 2. One step runs at a time. Answers of humans are appended beside it, only while it waits.
 * 3. An abort interrupts the current step once it is durable, or at once if the store is
 *    unavailable: a command that fills the disk must be stopped then.
 * 4. When its folder is not the same any more, the current step is interrupted and the run ends.
 * 5. While the store is unavailable, the run waits and stays as it is; see the log writer.
 * 6. Any exception ends the run with an `error` and a `run_end`. If the log cannot be written for
 *    another reason, the state is loaded again and the end appended as soon as the store accepts
 *    it. When another process has taken over the run or the store, nothing more is written.
 *
 * @module
 */
import { nextTurn, steadyNow } from '../../internal/time.js'
import type { ApproveCall } from '../approval.js'
import type { FileOperations } from '../checkpoints/file-operations.js'
import type { OnLog, RunFiles } from '../checkpoints/run-logs.js'
import { isUnavailable, StoreError } from '../errors.js'
import { isTerminal } from '../events.js'
import { MachineWait, mayPass } from '../exhaustion.js'
import type { CallState, RunState } from '../log/run-state.js'
import { LogWriter, type LogWriterOptions } from '../log/writer.js'
import { warn } from '../output.js'
import { gateFor, type ResumeAnswer } from '../request/gate-answer.js'
import type { NewMessage } from '../request/message.js'
import type { Gate } from '../run-details.js'
import type { Tool } from '../tool.js'
import { liveChildren, PARENT_ENDED, type ChildRuns } from './children/child-runs.js'
import { Delegates } from './children/delegates.js'
import { RunChildren } from './children/run-children.js'
import { CallApprovals } from './call-approvals.js'
import { TreeBudget, type LocalTrees } from './children/tree-budget.js'
import { endedError, liveError } from './ended-runs.js'
import { endFromStore, isTakenAway, type EndingRun } from './end-from-records.js'
import { Inbox } from './inbox.js'
import { MachinePause } from './machine-pause.js'
import { nextStep, type Step, type StepLimits, type WorkStep } from './next-step.js'
import type { Outcome } from './outcome.js'
import { placeOf } from './place-of.js'
import type { RunFolder } from './run-folder.js'
import type { Scheduler } from './scheduler.js'
import { promptOf } from './prompt.js'
import type { StepContext } from './step-context.js'
import { limitTime } from './time-limit.js'
import {
  answerGate, endingRecords, failureOf, finishRun, startedResults, type Failure,
} from './steps/finish.js'
import { HAND_OVER_MS, suspendRun } from './steps/suspend.js'
import { waitingOf } from './waiting-of.js'

/** What a run needs of its engine. */
export interface RunLoopOptions
  extends
    LogWriterOptions,
    Omit<
      StepContext,
      | keyof RunFolder
      | 'budget' | 'children' | 'delegates' | 'fit' | 'log' | 'prompt' | 'signal' | 'untilPossible'
    >,
    Pick<StepContext, 'executor'> {
  readonly scheduler: Scheduler
  readonly performStep: (step: WorkStep, context: StepContext) => Promise<void>
  readonly maxTurnsPerIteration: number
  /** Decides which calls wait for a human; null: their request does. */
  readonly approval: ApproveCall | null
  /** Called when the run first works; `onLost` when its folder must not be used any more. */
  readonly openFolder: (
    log: LogWriter,
    signal: AbortSignal,
    onLost: (error: Error) => void,
  ) => Promise<RunFolder>
  /** True when a process that has died drove the run before. */
  readonly takenOver: boolean
  /** The gate that has expired by the store's clock, which decides if the run parks at gates. */
  readonly overdueGate: string | null
  /** True when no process holds a run that waits for a human: any process continues it later. */
  readonly parksAtGates: boolean
  /** Null: there are no checkpoints, so nothing is restored or applied. */
  readonly files: RunFiles | null
  /** The runs that it may start. */
  readonly childRuns: ChildRuns
  readonly trees: LocalTrees
  /** Null: there are no checkpoints. */
  readonly operations: FileOperations | null
  /** Called when it gives up its slot to wait for other runs. */
  readonly onWaiting: () => void
  /** Keeps a folder for the run until it ends; false while another one has it. */
  readonly holdFolder: (folder: string) => Promise<boolean>
}

/** The abort reason of a run that is stopped now and resumed later. */
class Suspended extends Error {
  override name = 'Suspended'
}

/** Steps after which a run that never waits yields to the event loop. */
const STEPS_PER_TURN = 32

/** The loop of one run; see the comment of this file. */
export class RunLoop {
  readonly #options: RunLoopOptions
  #log: LogWriter
  #stop = new AbortController()
  /**
   * Until when (ms, by the steady clock) its files may be stored, once it is to stop here and go on
   * elsewhere.
   */
  #suspendBy: number | null = null
  #takenOver: boolean
  /** True when this process must not touch the run any more: it is parked, or was taken away. */
  #left = false
  /** Aborted when the log must not be used any more. */
  readonly #lost = new AbortController()
  #outOfTime = false
  /** Settles when what must happen alone has: an answer, the end of the run, a restore. */
  #answering: Promise<void> | undefined
  readonly #inbox = new Inbox()
  /** True while a step runs tools or checks. */
  #acts = false
  #halted = false
  #wake: (() => void) | undefined
  readonly #machine: MachinePause
  #folder: RunFolder | undefined
  /** Why its folder must not be used any more. */
  #lostFolder: Error | undefined
  #context: StepContext | undefined
  readonly #limits: StepLimits
  readonly #approvals: CallApprovals
  readonly #children: RunChildren
  readonly #delegates: Delegates
  readonly #budget: TreeBudget | null

  constructor(log: LogWriter, options: RunLoopOptions) {
    this.#log = log
    this.#options = options
    this.#machine = new MachinePause(options.clock)
    this.#approvals = new CallApprovals(options)
    const needsApproval = (call: CallState): boolean => this.#approvals.needs(call, this.state)
    const { maxTurnsPerIteration, detectStuck } = options
    this.#limits = { maxTurnsPerIteration, detectStuck, needsApproval }
    const { childRuns: runs, clock, operations } = options
    const pause = (): void => {
      options.scheduler.pause(this.#log.runId)
      options.onWaiting()
    }
    const slot = { pause, enter: (signal: AbortSignal) => this.#enter(signal) }
    const lost = (): AbortSignal => this.#lost.signal
    this.#children = new RunChildren({ runs, clock, log: () => this.#log, slot, lost })
    this.#delegates = new Delegates({ children: this.#children, operations, lost })
    this.#budget = TreeBudget.of(() => this.#log, runs, options.trees)
    const { head, calls, suspended } = log.state
    // A store can forget that a process died; the log cannot forget a call that has no result.
    const hasOpenCall = calls.some((call) => call.status === 'started')
    const cutOff = hasOpenCall || (options.takenOver && !suspended)
    this.#takenOver = cutOff && head.details.status === 'running'
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

  /** Does it wait for runs that it has started? It has no slot then. */
  get waitsForRuns(): boolean {
    return this.#children.isWaiting
  }

  /** Closes the run's folder, which must not be used any more; never rejects. */
  async leaveFolder(): Promise<void> {
    await this.#options.copies.close().catch(() => undefined)
    await this.#folder?.checkpoints?.[Symbol.asyncDispose]().catch(() => undefined)
    await this.#folder?.folder[Symbol.asyncDispose]().catch(() => undefined)
  }

  get #suspending(): boolean {
    return this.#suspendBy !== null
  }

  /**
   * Drives the run until it ends or is suspended; never rejects. `onLeft` is called when nothing
   * of it happens any more, but for the removal of its copy.
   */
  async drive(onLeft: () => void): Promise<void> {
    const { trace } = this.#options
    trace.beginRun(this.state.head.details)
    this.#budget?.enter()
    try {
      const begun = this.#options.takenOver && this.state.head.details.started_at !== null
      if (begun || this.#takenOver) await this.#options.executor.killMarked(this.#log.runId)
      await this.#finishFiles()
      await this.#driveSteps()
    } catch (error) {
      await this.#fail(error).catch((second: unknown) => {
        warn(`run ${this.#log.runId} could not be ended: ${String(second)}`)
      })
    } finally {
      this.#budget?.leave()
      // A process that has taken the run over may run commands with the same mark.
      const strays = this.state.mayHaveStrays && !this.#left
      if (strays) await this.#options.executor.killMarked(this.#log.runId).catch(() => 0)
      this.#machine.end()
      await this.leaveFolder()
      this.#options.scheduler.leave(this.#log.runId)
      this.#options.scheduler.release(this.#log.runId)
      const isOver = isTerminal(this.state.head.details.status) && !this.#left
      if (isOver) await this.#children.abandon(this.state)
      trace.endRun(this.state.head.details)
      onLeft()
      if (!this.#left) await this.#options.files?.left(this.state.head.details)
    }
  }

  /**
   * Answers the gate at which the run waits, and wakes it; resolves with the gate once that is
   * durable, with null when the same answer was given before.
   *
   * @throws as {@link gateFor} does; {@link StoreError} when the answer could not be stored: it was
   * not given then.
   */
  async answer(answer: ResumeAnswer, by: string | null): Promise<Gate | null> {
    while (this.#answering !== undefined) await this.#answering
    const gate = gateFor(this.state.head, answer, this.tools)
    if (gate === null) {
      await this.#log.confirm()
      return null
    }
    try {
      await this.#alone(() => answerGate(this.#log, gate, answer, by))
    } catch (error) {
      // Durable, and it cannot be folded: the loop then ends the run.
      if (!(error instanceof StoreError)) this.#wake?.()
      throw error
    }
    const { trace } = this.#options
    // Taken up for this answer, the run does not wait any more.
    if (this.#wake === undefined)
      trace.endGate(trace.beginGate(gate.gate_id, gate.kind), answer.decision)
    this.#wake?.()
    return gate
  }

  /** Lets nothing else happen to the run until `work` settles. */
  async #alone<T>(work: () => Promise<T>): Promise<T> {
    const done = work()
    const settled = done.then(() => undefined, () => undefined)
    this.#answering = settled.finally(() => (this.#answering = undefined))
    return await done
  }

  /**
   * As `RunLogs.operate`, while the run waits at a gate; resolves with null when it has ended.
   *
   * @throws {@link RunStateError} with `live` when it works.
   */
  async operate<T>(work: OnLog<T>): Promise<{ readonly result: T } | null> {
    while (this.#answering !== undefined) await this.#answering
    const { abortRequested, head } = this.state
    const { status } = head.details
    if (isTerminal(status)) return null
    const isOver = abortRequested || this.#suspending || this.#left
    if (status !== 'awaiting_human' || isOver) throw liveError(this.#log.runId, status)
    return await this.#alone(async () => ({ result: await work(this.#log, this.#lost.signal) }))
  }

  /**
   * Sends a message to the model, which hears it with its next call; resolves with its id once it
   * is durable.
   *
   * @throws as {@link Inbox.add} does.
   */
  async message(message: NewMessage): Promise<string> {
    return await this.#inbox.add(() => this.#log, message, () => this.#answering)
  }

  /**
   * Aborts the run; resolves once the request is durable, with true when it was aborted before.
   *
   * @throws {@link RunStateError} when the run has ended otherwise; {@link StoreError} when the
   * store is unavailable: the run is stopped then, and the request stored when that is over.
   */
  async abort(by: string | null, why?: string): Promise<boolean> {
    while (this.#answering !== undefined) await this.#answering
    const { iteration, status } = this.state.head.details
    const already = status === 'aborted'
    if (isTerminal(status) && !already) throw endedError(this.#log.runId, status)
    if (!already && !this.state.abortRequested) {
      const payload = { by, ...(why !== undefined && { why }) }
      const requested = { kind: 'abort_requested', iteration, payload } as const
      this.#log.append([requested]).catch(() => undefined) // confirm() gets the rejection
    }
    try {
      await this.#log.confirm()
    } catch (error) {
      if (!isUnavailable(error) || this.#log.hasFailed) throw error
      this.#interrupt(new Error('the run was aborted'))
      const message = `the run was stopped, but that is not stored yet: ${error.message}`
      throw new StoreError(error.code, message, { cause: error })
    }
    if (!already) this.#interrupt(new Error('the run was aborted'))
    return already
  }

  /**
   * Stops the run where it is, to be resumed by the next start. If the store is unavailable, what
   * it has not taken yet is lost, as in a crash.
   */
  suspend(): void {
    this.#suspendBy ??= steadyNow(this.#options.clock) + HAND_OVER_MS
    this.#log.giveUp()
    this.#interrupt(new Suspended('the service is shutting down'))
  }

  /** Stops without writing anything more: the run belongs to another process, or to none. */
  lose(reason: Error): void {
    this.#left = true
    this.#lost.abort(reason)
    this.#log.abandon(reason)
    this.#interrupt(new Suspended(reason.message))
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

  /** Is something happening to the folder that must come to its end before the run does? */
  get #changesFiles(): boolean {
    const isOpen = this.state.head.operation !== null && this.#options.files !== null
    return isOpen || this.#delegates.isBusy
  }

  async #settleFiles(): Promise<void> {
    await this.#delegates.atRest()
    await this.#finishFiles()
  }

  /** Finishes what a crash or an abort cut off in the folder. */
  async #finishFiles(): Promise<void> {
    if (this.state.head.operation === null) return
    const { files } = this.#options
    await this.#alone(async () => files?.finish(this.#log, this.#lost.signal))
  }

  /** Applies the changes of a run that has achieved its goal, if it is to do so. */
  async #applyChanges(): Promise<void> {
    const { files, holdFolder } = this.#options
    const { attempts } = this.state.head.details
    const winner = attempts?.runs.find(({ attempt }) => attempt === attempts.chosen)
    if (winner !== undefined && (winner.changes?.files ?? 0) === 0) return
    const { signal } = this.#stop
    const hold = async (): Promise<boolean> => {
      signal.throwIfAborted()
      return await holdFolder(this.state.head.details.cwd)
    }
    await files?.applyAchieved(this.#log, hold, this.#lost.signal)
  }

  async #driveSteps(): Promise<void> {
    for (let steps = 1; ; steps++) {
      if (steps % STEPS_PER_TURN === 0) await nextTurn()
      while (this.#answering !== undefined) await this.#answering
      if (this.#left) return
      if (this.#suspending) return this.#suspendNow()
      if (this.#lostFolder !== undefined) throw this.#lostFolder
      if (this.#halted) await this.#closeHalted()
      if (this.#options.approval !== null) {
        const { signal } = this.#stop
        await this.#approvals.decide(this.state, signal)
        if (signal.aborted && signal === this.#stop.signal) {
          const isOver = this.#suspending || this.#left
          if (!isOver) this.#stop = new AbortController()
          continue
        }
      }
      const step = this.#nextStep()
      if (step.kind === 'ended') return
      try {
        await this.#perform(step)
        this.#machine.over(this.#log)
      } catch (error) {
        // An error of the log, which itself waits for the store, ends this drive.
        if (mayPass(error) && !this.#log.hasFailed) {
          await this.#machine.wait(this.#log, error, this.#stop.signal)
          const isOver = this.#suspending || this.#left
          if (!isOver && this.#stop.signal.aborted) this.#stop = new AbortController()
          continue
        }
        if (!this.#stop.signal.aborted || error instanceof StoreError) throw error
        const over = this.#suspending || this.#left
        if (!over) this.#stop = new AbortController() // nextStep() sees the reason in the state
      }
    }
  }

  #nextStep(): Step {
    const nowMs = this.#outOfTime ? Infinity : this.#log.now()
    return nextStep(this.state, this.#limits, nowMs, this.#budget?.spent)
  }

  async #perform(step: Exclude<Step, { kind: 'ended' }>): Promise<void> {
    if (step.kind === 'wait') return this.#waitForHuman()
    if (step.kind === 'attend') {
      return this.#children.attend(step.children, step.ends, this.#stop.signal)
    }
    if (step.kind === 'choose') return this.#children.choose(step.attempt, step.why)
    if (step.kind === 'finish') {
      // Afterwards all is asked anew: an answer to a gate may have come meanwhile.
      if (this.#changesFiles) return this.#settleFiles()
      if (step.outcome.status === 'achieved') await this.#applyChanges()
      return this.#finish(step.outcome)
    }
    const asksModel = step.kind === 'turn' || step.kind === 'result'
    if (asksModel && (await this.#isOrphan())) {
      const { iteration } = this.state.head.details
      const payload = { by: null, why: PARENT_ENDED }
      return this.#log.append([{ kind: 'abort_requested', iteration, payload }])
    }
    const { signal } = this.#stop
    if (!this.#options.scheduler.isWorking(this.#log.runId)) {
      await this.#enter(signal)
      if (this.#nextStep().kind !== step.kind) return
    }
    const isUse = step.kind === 'start' || asksModel || step.kind === 'ask'
    if (isUse && this.#budget?.spent === null && (await this.#budget.look()) !== null) return
    const context = this.#contextFor(signal) ?? (await this.#makeContext(signal))
    if (this.#takenOver) {
      this.#takenOver = false
      return this.#options.performStep({ kind: 'recover' }, context)
    }
    const stopTimer = limitTime(this.#options.clock, this.#log, () => {
      this.#outOfTime = true
      this.#interrupt(new Error('out of time'))
    })
    try {
      this.#acts = !asksModel
      await this.#options.performStep(step, context)
    } finally {
      this.#acts = false
      stopTimer()
    }
  }

  /** Has the run that started this one ended, or is it gone? It ends its children, if it can. */
  async #isOrphan(): Promise<boolean> {
    const { parent_run_id: parent, role } = this.state.head.details
    if (role === 'root' || parent === null) return false
    const head = await this.#options.childRuns.head(parent)
    return head === null || isTerminal(head.details.status)
  }

  /** Waits for a slot; a run that has begun says so in its log, as its status does not show it. */
  async #enter(signal: AbortSignal): Promise<void> {
    const { scheduler } = this.#options
    const { details } = this.state.head
    const { iteration, started_at } = details
    if (scheduler.isWorking(this.#log.runId)) return
    if (started_at !== null && scheduler.isFull) {
      const payload = { level: 'info', message: 'waiting for a slot: all are taken' } as const
      this.#log.note({ kind: 'log', iteration, payload })
    }
    const entered = scheduler.enter(waitingOf(this.state.head), placeOf(details), signal)
    await (started_at === null ? entered : this.#log.idleWhile(entered))
  }

  /** The context of the last step, while its signal is current. */
  #contextFor(signal: AbortSignal): StepContext | undefined {
    return this.#context?.signal === signal ? this.#context : undefined
  }

  async #makeContext(signal: AbortSignal): Promise<StepContext> {
    const options = this.#options
    const { openFolder, tools } = options
    this.#folder ??= await openFolder(this.#log, signal, (error) => {
      this.#lostFolder = error
      this.#interrupt(error)
    })
    const { checkpoints, executor, folder, isolated, workspace } = this.#folder
    this.#context = {
      log: this.#log,
      models: options.models,
      limits: options.limits,
      judge: options.judge,
      store: options.store,
      tools,
      commandOfGoal: options.commandOfGoal,
      prompt: this.#context?.prompt ?? promptOf(this.state, tools),
      fit: this.#context?.fit ?? { tokens: Infinity, refusal: null },
      untilPossible: this.#machine.patience(this.#log, signal),
      workspace,
      folder,
      checkpoints,
      isolated,
      executor,
      sealing: options.sealing,
      copies: options.copies,
      holdsSecrets: options.holdsSecrets,
      children: this.#children,
      budget: this.#budget,
      delegates: this.#delegates,
      clock: options.clock,
      trace: options.trace,
      random: options.random,
      signal,
      toolTimeoutMs: options.toolTimeoutMs,
      gateTimeoutMs: options.gateTimeoutMs,
      detectStuck: options.detectStuck,
      maxRecoveries: options.maxRecoveries,
    }
    return this.#context
  }

  /** Waits for an answer, an abort or the deadline of the gate, without a slot. */
  async #waitForHuman(): Promise<void> {
    const { scheduler, clock, trace } = this.#options
    scheduler.pause(this.#log.runId)
    const { gate } = this.state.head.details
    if (gate === null) return
    const { overdueGate, parksAtGates } = this.#options
    const left = this.#log.untilExpiry()
    const isOverdue = parksAtGates ? gate.gate_id === overdueGate : left !== null && left <= 0
    if (isOverdue) {
      const reason = `gate ${gate.gate_id} was not answered by ${gate.deadline}`
      return this.#finish({ status: 'aborted', endReason: 'gate_timeout', reason })
    }
    if (parksAtGates) {
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

  async #closeHalted(): Promise<void> {
    this.#halted = false
    const stopped = startedResults(this.state, 'Stopped: the store could not be reached')
    if (stopped.length > 0) await this.#log.append(stopped)
  }

  /** A copy stays here: another process makes its own, of the newest checkpoint. */
  async #suspendNow(): Promise<void> {
    const { executor, parksAtGates: isShared } = this.#options
    const movesOn = isShared && this.state.frozen.request.workspace === 'isolated'
    const checkpoints = movesOn ? (this.#context?.checkpoints ?? null) : null
    await this.#delegates.atRest()
    const leftMs = (): number => (this.#suspendBy ?? 0) - steadyNow(this.#options.clock)
    const goesOn = (call: CallState): boolean => this.#goesOnLater(call)
    await suspendRun(this.#log, executor, checkpoints, leftMs, goesOn)
  }

  /** A call that starts runs finds them again, if it may be repeated. */
  #goesOnLater({ call, plan }: CallState): boolean {
    const tool = this.#options.tools.get(call.tool)
    const isRepeatable = tool?.effect === 'idempotent' && tool.verify !== undefined && plan !== null
    return isRepeatable && this.state.frozen.request.delegation !== undefined
  }

  /** Ends the run; its processes change nothing after the last checkpoint. */
  async #finish(outcome: Outcome, failure?: Failure): Promise<void> {
    const { executor } = this.#options
    const { attempts } = this.state.head.details
    if (attempts !== null) {
      // It has not changed its folder itself.
      const winner = attempts.runs.find(({ attempt }) => attempt === attempts.chosen)
      const changes = winner?.changes ?? null
      return this.#log.append(endingRecords(this.state, outcome, failure, changes))
    }
    const checkpoints = this.#context?.checkpoints ?? null
    const kills = checkpoints !== null && this.state.mayHaveStrays
    await this.#alone(async () => {
      if (kills) await executor.killMarked(this.#log.runId).catch(() => 0)
      await finishRun(this.#log, outcome, failure, checkpoints)
    })
  }

  async #fail(error: unknown): Promise<void> {
    if (this.#left) return
    if (isTakenAway(error)) return this.lose(error)
    // What the store has not taken did not happen: the next start continues from what it has.
    if (this.#suspending && isUnavailable(error)) return
    const { outcome, failure } = failureOf(error, this.state.frozen.request.cwd)
    // A state that is ahead of the log may say that the run has ended.
    const isAhead = error instanceof StoreError || isTerminal(this.state.head.details.status)
    if (!isAhead) {
      try {
        if (this.#changesFiles) await this.#settleFiles()
        const live = liveChildren(this.state)
        if (live.length > 0) await this.#children.attend(live, true, this.#stop.signal)
        while (this.#answering !== undefined) await this.#answering
        return await this.#finish(outcome, failure)
      } catch {
        // The state or the log is at fault.
      }
    }
    const { clock } = this.#options
    const wait = new MachineWait()
    const run: EndingRun = {
      log: this.#log,
      isSuspending: () => this.#suspending,
      reload: (state) => (this.#log = new LogWriter(this.#options, this.#log.feed, state)),
      pause: async (why) => {
        await wait.pause(why, this.#stop.signal, clock).catch(() => undefined)
        if (!this.#suspending) this.#stop = new AbortController()
      },
    }
    try {
      await endFromStore(this.#options, run, outcome, failure)
    } catch (second) {
      if (!isTakenAway(second)) throw second
      this.lose(second)
    } finally {
      wait.end()
    }
  }
}
