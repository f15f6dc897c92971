import { hash } from '../../../internal/hash.js'
import { type Backoff, backoffDelay, sleep } from '../../../internal/time.js'
import { describeError } from '../../../internal/errors.js'
import type { JsonObject } from '../../../internal/json.js'
import type { RecordDraft } from '../../events.js'
import { isExhausted } from '../../exhaustion.js'
import { STOPPED } from '../../log/progress.js'
import type { CallState } from '../../log/run-state.js'
import type { Tool, ToolContext, ToolOutput } from '../../tool.js'
import { ToolStop, ToolTimeout } from '../../tools/tool-stop.js'
import type { FileChange } from '../../workspace/workspace.js'
import { NO_RUNS, type CallRuns } from '../children/call-runs.js'
import { changesAfter, changesIn, toolContext, type StepContext } from '../step-context.js'

/** Exit code of a call that took too long. */
const TIMED_OUT = 124
/** Milliseconds that an executor may take to stop a command: SIGTERM, 2 s, SIGKILL, and slack. */
const COMMAND_END_MS = 5_000
/** Waits before a tool is tried again. */
const TOOL_BACKOFF: Backoff = { firstMs: 500, maxMs: 8_000 }

/** One execution of a call: from its first record to its result. */
export class ToolExecution {
  readonly #context: StepContext
  readonly #tool: Tool
  readonly #state: CallState
  readonly #isBegun: () => void
  readonly #stop: ToolStop
  /** True if the folder is compared before and after the call, whatever the tool runs. */
  readonly #compares: boolean
  /** True once recording the start of the call has begun. */
  #hasBegun = false
  /** The files that the call has changed so far. */
  #changed: readonly FileChange[] = []

  /** `isBegun` is called once the call is in the log. */
  constructor(context: StepContext, tool: Tool, state: CallState, isBegun: () => void) {
    this.#context = context
    this.#tool = tool
    this.#state = state
    this.#isBegun = isBegun
    this.#compares = tool.changesFiles === true && tool.effect !== 'read'
    const { clock, signal, toolTimeoutMs } = context
    // After its time-out, a command gets the time that its executor needs to stop it.
    const endMs = tool.startsProcess === true ? COMMAND_END_MS : 0
    this.#stop = new ToolStop(signal, clock, tool.timeoutMs ?? toolTimeoutMs, endMs)
  }

  /**
   * Executes the call.
   *
   * @throws the signal's reason; a fault of the machine before the call had any effect.
   */
  async run(): Promise<ToolOutput> {
    const { checkpoints, delegates, log, signal, trace } = this.#context
    const { call } = this.#state
    try {
      if (this.#tool.effect !== 'read') await checkpoints?.recordFirst(log, signal)
    } catch (error) {
      this.#stop.end()
      throw error
    }
    const span = trace.beginTool(log.state.head.details.iteration, this.#tool, call.call_id)
    const runs = delegates.ofCall(call.call_id, this.#context, this.#stop)
    try {
      const problem = await this.#start()
      if (problem !== null) {
        trace.endTool(span, 1, false)
        return { output: problem, exitCode: 1 }
      }
      const output = await this.#stop.race(this.#call(runs))
      const exitCode = this.#stop.timedOut ? TIMED_OUT : output.exitCode
      trace.endTool(span, exitCode, this.#tool.startsProcess === true)
      return await this.#finish(output)
    } catch (error) {
      if (error instanceof ToolTimeout) trace.endTool(span, TIMED_OUT, true)
      else trace.fail(span, error)
      return await this.#fail(error)
    } finally {
      this.#stop.end()
      await runs.end()
    }
  }

  /** Checks the arguments and records the start; resolves with what is wrong with them. */
  async #start(): Promise<string | null> {
    const { signal, workspace } = this.#context
    const { args } = this.#state
    const tool = this.#tool
    signal.throwIfAborted()
    const problem = tool.check === undefined ? null : await this.#stop.race(tool.check(args))
    if (problem !== null) return problem
    signal.throwIfAborted()
    // A call that starts processes begins with the first of them.
    if (tool.startsProcess !== true) {
      const plan = await tool.plan?.(args, this.#working(NO_RUNS))
      await this.#begin(undefined, plan)
      signal.throwIfAborted()
    }
    if (this.#compares) {
      // Resets the comparison: earlier changes are not this call's.
      await changesIn(workspace)
      signal.throwIfAborted()
    }
    return null
  }

  /** Calls the tool; a `read` tool that throws is tried again as often as it says. */
  async #call(runs: Pick<CallRuns, 'startRun'>): Promise<ToolOutput> {
    const { clock, random } = this.#context
    const { effect, retries = 0 } = this.#tool
    const working = this.#working(runs)
    const most = effect === 'read' ? retries : 0
    for (let retry = 1; ; retry++) {
      let returned: unknown
      try {
        returned = await this.#tool.execute(this.#state.args, working)
      } catch (error) {
        if (retry > most || isExhausted(error) || working.signal.aborted) throw error
        await sleep(backoffDelay(retry, TOOL_BACKOFF, random), working.signal, clock)
        continue
      }
      return checkedOutput(returned)
    }
  }

  /** The result of a call that has returned, also one that was stopped. */
  async #finish(own: ToolOutput): Promise<ToolOutput> {
    const { signal } = this.#context
    const { feedback } = this.#state
    const { timedOut } = this.#stop
    const isStopped = signal.aborted && own.exitCode === STOPPED
    // A command that never began has not failed: it runs later, unless the run ends.
    if (isStopped && !this.#hasBegun && this.#state.status !== 'started') signal.throwIfAborted()
    const result = await this.#withChanges(isStopped ? stoppedBy(signal, own) : own)
    if (feedback === '' && !timedOut) return result
    const output = feedback === '' ? result.output : withRemark(result.output, feedback)
    return { ...result, output, exitCode: timedOut ? TIMED_OUT : result.exitCode }
  }

  /** The result of a call that has thrown. */
  async #fail(error: unknown): Promise<ToolOutput> {
    const { log, signal } = this.#context
    const { effect, name } = this.#tool
    if (error instanceof ToolTimeout)
      return await this.#withChanges({ output: error.message, exitCode: TIMED_OUT })
    signal.throwIfAborted()
    // What has had no effect is repeated as a whole.
    if (isExhausted(error) && (effect !== 'unsafe' || this.#state.status !== 'started')) throw error
    await log.flush() // throws if it was the log that failed, not the tool
    const output = `${name} failed: ${describeError(error)}`
    return await this.#withChanges({ output, exitCode: 1 })
  }

  /** The context in which the tool works. */
  #working(runs: Pick<CallRuns, 'startRun'>): ToolContext {
    const { call_id } = this.#state.call
    const onStart = (pgid: number): Promise<void> => this.#begin(pgid)
    const onChanges = (changes: readonly FileChange[]): void => this.#addChanges(changes)
    const watch = this.#tool.effect === 'read' ? undefined : onChanges
    return toolContext(this.#context, call_id, this.#stop, runs, onStart, watch)
  }

  /** Records the start of the call. Its time does not run while it waits for the store. */
  async #begin(pgid?: number, plan?: JsonObject): Promise<void> {
    this.#hasBegun = true
    const durable = begin(this.#context, this.#tool, this.#state, pgid, plan)
    this.#isBegun()
    if (durable !== undefined) await this.#stop.pauseFor(durable)
  }

  #addChanges(changes: readonly FileChange[]): void {
    this.#changed = this.#changed.length === 0 ? changes : [...this.#changed, ...changes]
  }

  async #withChanges(result: ToolOutput): Promise<ToolOutput> {
    const { signal } = this.#context
    if (this.#compares) this.#addChanges(await changesAfter(this.#context, signal))
    if (this.#changed.length === 0) return result
    return { ...result, changes: [...(result.changes ?? []), ...this.#changed] }
  }
}

/** Records the start of a call; returns a promise if the call has to wait for the store. */
function begin(
  context: StepContext,
  tool: Tool,
  state: CallState,
  pgid?: number,
  plan?: JsonObject,
): Promise<void> | undefined {
  const { log } = context
  // No command runs before the store has confirmed that the run is still this process's.
  if (state.status === 'started') return pgid === undefined ? undefined : log.verify()
  const record = startRecord(context, tool, state, pgid, plan)
  if (tool.effect !== 'read' || pgid !== undefined) return log.append([record])
  // A read whose start was lost can simply run again.
  log.note(record)
  return undefined
}

function startRecord(
  context: StepContext,
  tool: Tool,
  state: CallState,
  pgid?: number,
  plan?: JsonObject,
): RecordDraft {
  return {
    kind: 'tool_started',
    iteration: context.log.state.head.details.iteration,
    payload: {
      call_id: state.call.call_id,
      args_hash: hash('sha256', JSON.stringify(state.args)),
      effect: tool.effect,
      ...(pgid === undefined ? undefined : { pgid }),
    },
    ...(plan === undefined ? undefined : { private: { plan } }),
  }
}

function stoppedBy({ reason }: AbortSignal, result: ToolOutput): ToolOutput {
  return { ...result, output: `${result.output}\n\nStopped: ${describeError(reason)}`.trimStart() }
}

function withRemark(output: string, feedback: string): string {
  return `${output}\n\nA human who approved this call says: ${feedback}`
}

/**
 * Reads once what a tool of the host has returned.
 *
 * @throws TypeError that says what it should have returned.
 */
function checkedOutput(returned: unknown): ToolOutput {
  if (typeof returned !== 'object' || returned === null)
    throw wrong(`${returned === null ? 'null' : typeof returned}, not an object`)
  const { output, exitCode, changes, files } = returned as { [name in keyof ToolOutput]?: unknown }
  if (typeof output !== 'string') throw wrong('an object whose `output` is no string')
  if (!Number.isSafeInteger(exitCode)) throw wrong('an `exitCode` that is no whole number')
  if (changes !== undefined && !Array.isArray(changes)) throw wrong('`changes` that are no list')
  return {
    output,
    exitCode: exitCode as number,
    ...(changes !== undefined && { changes }),
    ...(files !== undefined && { files: files as ToolOutput['files'] }),
  }
}

function wrong(what: string): TypeError {
  const expected = 'a tool returns {output: string, exitCode: number}'
  return new TypeError(`it returned ${what}; ${expected}. What it did is done`)
}
