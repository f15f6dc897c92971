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
import { nextTurn } from '../../internal/time.js'
import type { OnLog } from '../checkpoints/run-logs.js'
import { isUnavailable, StoreError } from '../errors.js'
import { isTerminal } from '../events.js'
import { MachineWait, mayPass } from '../exhaustion.js'
import type { CallState, RunState } from '../log/run-state.js'
import { LogWriter } from '../log/writer.js'
import { warn } from '../output.js'
import { gateFor, type ResumeAnswer } from '../request/gate-answer.js'
import type { NewMessage } from '../request/message.js'
import type { Gate } from '../run-details.js'
import type { Tool } from '../tool.js'
import { liveChildren, PARENT_ENDED } from './children/child-runs.js'
import { Delegates } from './children/delegates.js'
import { RunChildren } from './children/run-children.js'
import { CallApprovals } from './call-approvals.js'
import { TreeBudget } from './children/tree-budget.js'
import { endedError, liveError } from './refusals.js'
import { endFromStore, isTakenAway, type EndingRun } from './end-from-records.js'
import { Inbox } from './inbox.js'
import { Interruption } from './interruption.js'
import { MachinePause } from './machine-pause.js'
import { nextStep, type Step, type StepLimits } from './next-step.js'
import type { Outcome } from './outcome.js'
import { folderKey, waitingOf } from './queue-keys.js'
import type { RunFolder } from './run-folder.js'
import type { RunParts } from './run-parts.js'
import { promptOf } from './prompt.js'
import type { RunServices } from './services.js'
import type { StepContext } from './step-context.js'
import { limitTime } from './time-limit.js'
import {
  answerGate, endingRecords, failureOf, finishRun, startedResults, type Failure,
} from './steps/finish.js'
import { performStep } from './steps/perform.js'
import { suspendRun } from './steps/suspend.js'

/** Steps after which a run that never waits yields to the event loop. */
const STEPS_PER_TURN = 32

/** The loop of one run; see the comment of this file. */
export class RunLoop {
  readonly #services: RunServices
  readonly #parts: RunParts
  /** Called when the run gives up its slot to wait for other runs. */
  readonly #onWaiting: () => void
  #log: LogWriter
  readonly #interruption: Interruption
  /** The gate that has expired by the store's clock, which decides if the run parks at gates. */
  readonly #overdueGate: string | null
  /** True when no process holds a run that waits for a human: any process continues it later. */
  readonly #releasesAtGates: boolean
  #takenOver: boolean
  /** Settles when what must happen alone has: an answer, the end of the run, a restore. */
  #answering: Promise<void> | undefined
  readonly #inbox = new Inbox()
  /** True while a step runs tools or checks. */
  #acts = false
  readonly #machine: MachinePause
  #folder: RunFolder | undefined
  #context: StepContext | undefined
  readonly #limits: StepLimits
  readonly #approvals: CallApprovals
  readonly #children: RunChildren
  readonly #delegates: Delegates
  readonly #budget: TreeBudget | null

  constructor(log: LogWriter, services: RunServices, parts: RunParts, onWaiting: () => void) {
    this.#log = log
    this.#services = services
    this.#parts = parts
    this.#onWaiting = onWaiting
    const { childRuns: runs, clock, operations } = services
    const { head, calls, suspended } = log.state
    const { abandoned, overdue = false } = parts.origin
    this.#interruption = new Interruption(clock)
    this.#overdueGate = overdue ? (head.details.gate?.gate_id ?? null) : null
    this.#releasesAtGates = services.store.shared !== undefined
    this.#machine = new MachinePause(clock)
    this.#approvals = new CallApprovals(services, parts.tools)
    const needsApproval = (call: CallState): boolean => this.#approvals.needs(call, this.state)
    const { detectStuck, maxTurnsPerIteration } = services
    this.#limits = { maxTurnsPerIteration, detectStuck, needsApproval }
    const slot = {
      pause: () => this.#pause(),
      enter: (signal: AbortSignal) => this.#enter(signal),
    }
    const { lost } = this.#interruption
    this.#children = new RunChildren({ runs, clock, log: () => this.#log, slot, lost })
    this.#delegates = new Delegates({ children: this.#children, operations, lost })
    this.#budget = TreeBudget.of(() => this.#log, runs, services.trees)
    // A store can forget that a process died; the log cannot forget a call that has no result.
    const hasOpenCall = calls.some((call) => call.status === 'started')
    const cutOff = hasOpenCall || (abandoned && !suspended)
    this.#takenOver = cutOff && head.details.status === 'running'
  }

  get log(): LogWriter {
    return this.#log
  }

  /** The tools that the run may use. */
  get tools(): ReadonlyMap<string, Tool> {
    return this.#parts.tools
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
    await this.#parts.copies.close().catch(() => undefined)
    await this.#folder?.checkpoints?.[Symbol.asyncDispose]().catch(() => undefined)
    await this.#folder?.folder[Symbol.asyncDispose]().catch(() => undefined)
  }

  /**
   * Drives the run until it ends or is suspended; never rejects. `onLeft` is called when nothing
   * of it happens any more, but for the removal of its copy.
   */
  async drive(onLeft: () => void): Promise<void> {
    const { files, scheduler } = this.#services
    const { executor, origin, trace } = this.#parts
    const { runId } = this.#log
    trace.beginRun(this.state.head.details)
    this.#budget?.enter()
    try {
      const begun = origin.abandoned && this.state.head.details.started_at !== null
      if (begun || this.#takenOver) await executor.killMarked(runId)
      await this.#finishFiles()
      await this.#driveSteps()
    } catch (error) {
      await this.#fail(error).catch((second: unknown) => {
        warn(`run ${runId} could not be ended: ${String(second)}`)
      })
    } finally {
      this.#budget?.leave()
      const { hasLeft } = this.#interruption
      // A process that has taken the run over may run commands with the same mark.
      const strays = this.state.mayHaveStrays && !hasLeft
      if (strays) await executor.killMarked(runId).catch(() => 0)
      this.#machine.end()
      await this.leaveFolder()
      scheduler.leave(runId)
      scheduler.release(runId)
      const { details } = this.state.head
      if (isTerminal(details.status) && !hasLeft) await this.#children.abandon(this.state)
      trace.endRun(details)
      onLeft()
      if (!hasLeft) await files?.left(details)
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
      if (!(error instanceof StoreError)) this.#interruption.wake()
      throw error
    }
    const { trace } = this.#parts
    // Taken up for this answer, the run does not wait any more.
    if (!this.#interruption.isWaiting)
      trace.endGate(trace.beginGate(gate.gate_id, gate.kind), answer.decision)
    this.#interruption.wake()
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
    const { isOver, lost } = this.#interruption
    if (status !== 'awaiting_human' || abortRequested || isOver)
      throw liveError(this.#log.runId, status)
    return await this.#alone(async () => ({ result: await work(this.#log, lost) }))
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
      this.#interruption.stop(new Error('the run was aborted'))
      const message = `the run was stopped, but that is not stored yet: ${error.message}`
      throw new StoreError(error.code, message, { cause: error })
    }
    if (!already) this.#interruption.stop(new Error('the run was aborted'))
    return already
  }

  /**
   * Stops the run where it is, to be resumed by the next start. If the store is unavailable, what
   * it has not taken yet is lost, as in a crash.
   */
  suspend(): void {
    this.#log.giveUp()
    this.#interruption.suspend()
  }

  /** Stops without writing anything more: the run belongs to another process, or to none. */
  lose(reason: Error): void {
    this.#log.abandon(reason)
    this.#interruption.lose(reason)
  }

  /**
   * Stops tools and checks, because another process may soon run some of this run. The run goes on
   * once the store can be reached, if it is still this process's.
   */
  halt(): void {
    if (!this.#acts) return
    this.#interruption.isHalted = true
    this.#interruption.stop(new Error('the store could not be reached'))
  }

  /** Is something happening to the folder that must come to its end before the run does? */
  get #changesFiles(): boolean {
    const isOpen = this.state.head.operation !== null && this.#services.files !== null
    return isOpen || this.#delegates.isBusy
  }

  async #settleFiles(): Promise<void> {
    await this.#delegates.atRest()
    await this.#finishFiles()
  }

  /** Finishes what a crash or an abort cut off in the folder. */
  async #finishFiles(): Promise<void> {
    if (this.state.head.operation === null) return
    const { files } = this.#services
    await this.#alone(async () => files?.finish(this.#log, this.#interruption.lost))
  }

  /** Applies the changes of a run that has achieved its goal, if it is to do so. */
  async #applyChanges(): Promise<void> {
    const { lost, signal } = this.#interruption
    const { attempts } = this.state.head.details
    const winner = attempts?.runs.find(({ attempt }) => attempt === attempts.chosen)
    if (winner !== undefined && (winner.changes?.files ?? 0) === 0) return
    const hold = async (): Promise<boolean> => {
      signal.throwIfAborted()
      return await this.#parts.holdFolder(this.state.head.details.cwd)
    }
    await this.#services.files?.applyAchieved(this.#log, hold, lost)
  }

  async #driveSteps(): Promise<void> {
    const interruption = this.#interruption
    for (let steps = 1; ; steps++) {
      if (steps % STEPS_PER_TURN === 0) await nextTurn()
      while (this.#answering !== undefined) await this.#answering
      if (interruption.hasLeft) return
      if (interruption.isSuspending) return this.#suspendNow()
      if (interruption.lostFolder !== undefined) throw interruption.lostFolder
      if (interruption.isHalted) await this.#closeHalted()
      if (this.#services.approval !== null) {
        await this.#approvals.decide(this.state, interruption.signal)
        if (interruption.signal.aborted) {
          interruption.renew()
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
        const waits = mayPass(error) && !this.#log.hasFailed
        if (waits) await this.#machine.wait(this.#log, error, interruption.signal)
        else if (!interruption.signal.aborted || error instanceof StoreError) throw error
        interruption.renew() // nextStep() sees the reason in the state
      }
    }
  }

  #nextStep(): Step {
    const nowMs = this.#interruption.isOutOfTime ? Infinity : this.#log.now()
    return nextStep(this.state, this.#limits, nowMs, this.#budget?.spent)
  }

  async #perform(step: Exclude<Step, { kind: 'ended' }>): Promise<void> {
    if (step.kind === 'wait') return this.#waitForHuman()
    if (step.kind === 'awaitChildren') {
      return this.#children.awaitChildren(step.children, step.ends, this.#interruption.signal)
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
    const { signal } = this.#interruption
    if (!this.#services.scheduler.isWorking(this.#log.runId)) {
      await this.#enter(signal)
      if (this.#nextStep().kind !== step.kind) return
    }
    const isUse = step.kind === 'start' || asksModel || step.kind === 'ask'
    if (isUse && this.#budget?.spent === null && (await this.#budget.look()) !== null) return
    const context = this.#contextFor(signal) ?? (await this.#makeContext(signal))
    if (this.#takenOver) {
      this.#takenOver = false
      return performStep({ kind: 'recover' }, context)
    }
    // A copy that was made now may have to be set up first.
    if (this.state.setup === 'due' && this.#nextStep().kind !== step.kind) return
    const stopTimer = limitTime(this.#services.clock, this.#log, () => {
      this.#interruption.isOutOfTime = true
      this.#interruption.stop(new Error('out of time'))
    })
    try {
      this.#acts = !asksModel
      await performStep(step, context)
    } finally {
      this.#acts = false
      stopTimer()
    }
  }

  /** Has the run that started this one ended, or is it gone? It ends its children, if it can. */
  async #isOrphan(): Promise<boolean> {
    const { parent_run_id: parent, role } = this.state.head.details
    if (role === 'root' || parent === null) return false
    const head = await this.#services.childRuns.head(parent)
    return head === null || isTerminal(head.details.status)
  }

  /** Gives up the slot until the run enters again. */
  #pause(): void {
    this.#services.scheduler.pause(this.#log.runId)
    this.#onWaiting()
  }

  /** Waits for a slot; a run that has begun says so in its log, as its status does not show it. */
  async #enter(signal: AbortSignal): Promise<void> {
    const { scheduler } = this.#services
    const { details } = this.state.head
    const { iteration, started_at } = details
    if (scheduler.isWorking(this.#log.runId)) return
    if (started_at !== null && scheduler.isFull) {
      const payload = { level: 'info', message: 'waiting for a slot: all are taken' } as const
      this.#log.note({ kind: 'log', iteration, payload })
    }
    const entered = scheduler.enter(waitingOf(this.state.head), folderKey(details), signal)
    await (started_at === null ? entered : this.#log.idleWhile(entered))
  }

  /** The context of the last step, while its signal is current. */
  #contextFor(signal: AbortSignal): StepContext | undefined {
    return this.#context?.signal === signal ? this.#context : undefined
  }

  async #makeContext(signal: AbortSignal): Promise<StepContext> {
    this.#folder ??= await this.#parts.openFolder(this.#log, signal, (error) => {
      this.#interruption.lostFolder = error
      this.#interruption.stop(error)
    })
    this.#context = {
      ...this.#services,
      ...this.#parts,
      ...this.#folder,
      log: this.#log,
      prompt: this.#context?.prompt ?? promptOf(this.state, this.tools),
      fit: this.#context?.fit ?? { tokens: Infinity, refusal: null },
      untilPossible: this.#machine.patience(this.#log, signal),
      children: this.#children,
      budget: this.#budget,
      delegates: this.#delegates,
      signal,
    }
    return this.#context
  }

  /** Waits for an answer, an abort or the deadline of the gate, without a slot. */
  async #waitForHuman(): Promise<void> {
    const interruption = this.#interruption
    const { trace } = this.#parts
    this.#services.scheduler.pause(this.#log.runId)
    const { gate } = this.state.head.details
    if (gate === null) return
    const left = this.#log.untilExpiry()
    const isParked = this.#releasesAtGates
    const isOverdue = isParked ? gate.gate_id === this.#overdueGate : left !== null && left <= 0
    if (isOverdue) {
      const reason = `gate ${gate.gate_id} was not answered by ${gate.deadline}`
      return this.#finish({ status: 'aborted', endReason: 'gate_timeout', reason })
    }
    if (isParked) return interruption.park()
    const span = trace.beginGate(gate.gate_id, gate.kind)
    await interruption.wait(left)
    const { lastDecision } = this.state.head
    trace.endGate(span, lastDecision?.gate_id === gate.gate_id ? lastDecision.decision : null)
    interruption.renew()
    await this.#log.flush()
  }

  async #closeHalted(): Promise<void> {
    this.#interruption.isHalted = false
    const stopped = startedResults(this.state, 'Stopped: the store could not be reached')
    if (stopped.length > 0) await this.#log.append(stopped)
  }

  /** A copy stays here: another process makes its own, of the newest checkpoint. */
  async #suspendNow(): Promise<void> {
    const movesOn = this.#releasesAtGates && this.state.frozen.request.workspace === 'isolated'
    const checkpoints = movesOn ? (this.#context?.checkpoints ?? null) : null
    await this.#delegates.atRest()
    const leftMs = (): number => this.#interruption.handOverMs
    const goesOn = (call: CallState): boolean => this.#goesOnLater(call)
    await suspendRun(this.#log, this.#parts.executor, checkpoints, leftMs, goesOn)
  }

  /** A call that starts runs finds them again, if it may be repeated. */
  #goesOnLater({ call, plan }: CallState): boolean {
    const tool = this.tools.get(call.tool)
    const isRepeatable = tool?.effect === 'idempotent' && tool.verify !== undefined && plan !== null
    return isRepeatable && this.state.frozen.request.delegation !== undefined
  }

  /** Ends the run; its processes change nothing after the last checkpoint. */
  async #finish(outcome: Outcome, failure?: Failure): Promise<void> {
    const { attempts } = this.state.head.details
    if (attempts !== null) {
      // It has not changed its folder itself.
      const winner = attempts.runs.find(({ attempt }) => attempt === attempts.chosen)
      const changes = winner?.changes ?? null
      const net = { changes, delivered: null }
      return this.#log.append(endingRecords(this.state, outcome, failure, net))
    }
    const checkpoints = this.#context?.checkpoints ?? null
    const kills = checkpoints !== null && this.state.mayHaveStrays
    await this.#alone(async () => {
      if (kills) await this.#parts.executor.killMarked(this.#log.runId).catch(() => 0)
      await finishRun(this.#log, outcome, failure, checkpoints)
    })
  }

  async #fail(error: unknown): Promise<void> {
    const interruption = this.#interruption
    if (interruption.hasLeft) return
    if (isTakenAway(error)) return this.lose(error)
    // What the store has not taken did not happen: the next start continues from what it has.
    if (interruption.isSuspending && isUnavailable(error)) return
    const { outcome, failure } = failureOf(error, this.state.frozen.request.cwd)
    // A state that is ahead of the log may say that the run has ended.
    const isAhead = error instanceof StoreError || isTerminal(this.state.head.details.status)
    if (!isAhead) {
      try {
        if (this.#changesFiles) await this.#settleFiles()
        const live = liveChildren(this.state)
        if (live.length > 0) await this.#children.awaitChildren(live, true, interruption.signal)
        while (this.#answering !== undefined) await this.#answering
        return await this.#finish(outcome, failure)
      } catch {
        // The state or the log is at fault.
      }
    }
    const wait = new MachineWait()
    const run: EndingRun = {
      log: this.#log,
      isOver: () => interruption.isOver,
      reload: (state) => (this.#log = new LogWriter(this.#services, this.#log.feed, state)),
      pause: async (why) => {
        const { clock } = this.#services
        await wait.pause(why, interruption.signal, clock).catch(() => undefined)
        interruption.renew()
      },
    }
    try {
      await endFromStore(this.#services, run, outcome, failure)
    } catch (second) {
      if (!isTakenAway(second)) throw second
      this.lose(second)
    } finally {
      wait.end()
    }
  }
}
