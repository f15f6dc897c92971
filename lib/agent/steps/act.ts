import { hash } from 'node:crypto'
import type { JsonObject } from '../../internal/json.js'
import { onAbort } from '../../internal/abort.js'
import type { Timer } from '../../internal/clock.js'
import { checkArguments } from '../define-tool.js'
import type { RecordDraft } from '../events.js'
import { headAndTail } from '../output.js'
import { toolContext, type RunContext } from '../run-context.js'
import type { CallState } from '../state.js'
import type { Tool, ToolOutput } from '../tool.js'

/** Reads that run at the same time. */
const PARALLEL_READS = 8
/** Octets of a tool's output that its event carries. */
const EVENT_OUTPUT_BYTES = 65_536
/** Milliseconds in which an executor ends a command: SIGTERM, 2 s, SIGKILL, and some room. */
const COMMAND_END_MS = 5_000

/**
 * Runs the calls that have no result yet: reads side by side, everything else one by one, results
 * in the order of the calls. What a call does begins only after its `tool_started` is durable.
 *
 * @throws the signal's reason when the run is stopped; calls without a result are then closed by
 * whoever stops it.
 */
export async function runTools(context: RunContext, calls: readonly CallState[]): Promise<void> {
  let rest = calls
  while (rest.length > 0) {
    const reads = rest.findIndex((call) => !isRead(context, call))
    const count = Math.min(reads < 0 ? rest.length : Math.max(reads, 1), PARALLEL_READS)
    const outputs = await Promise.all(rest.slice(0, count).map((call) => runCall(context, call)))
    const { iteration } = context.log.state.head.details
    for (const [index, output] of outputs.entries()) {
      context.log.note(resultRecord(iteration, rest[index] as CallState, output))
    }
    // A read whose result is lost runs again; nothing else may.
    if (reads === 0) await context.log.flush()
    rest = rest.slice(count)
  }
}

function isRead(context: RunContext, { call }: CallState): boolean {
  return context.tools.get(call.tool)?.effect === 'read'
}

interface TimedOutput extends ToolOutput {
  readonly durationMs: number
}

async function runCall(context: RunContext, state: CallState): Promise<TimedOutput> {
  const began = context.clock.now()
  const output = await outcomeOf(context, state)
  return { ...output, durationMs: Math.max(0, Math.round(context.clock.now() - began)) }
}

async function outcomeOf(context: RunContext, state: CallState): Promise<ToolOutput> {
  const { call, args } = state
  if (state.status === 'rejected') {
    const why = state.feedback === '' ? '' : `: ${state.feedback}`
    return { output: `A human refused this call${why}`, exitCode: 126 }
  }
  if (call.error !== undefined) return { output: call.error, exitCode: 1 }
  const tool = context.tools.get(call.tool)
  if (tool === undefined) {
    const known = [...context.tools.keys()].join(', ')
    return { output: `There is no tool ${call.tool}. Tools: ${known}`, exitCode: 127 }
  }
  const problem = checkArguments(tool, args)
  if (problem !== null) return { output: problem, exitCode: 1 }
  const output = await execute(context, tool, state)
  return state.feedback === '' ? output : { ...output, output: withRemark(output.output, state.feedback) }
}

async function execute(context: RunContext, tool: Tool, state: CallState): Promise<ToolOutput> {
  const { log } = context
  const { call, args } = state
  const stop = new ToolStop(context, tool)
  const started = async (pgid?: number, plan?: JsonObject): Promise<void> => {
    if (state.status === 'started') return
    const record = startRecord(context, tool, state, pgid, plan)
    // Nothing is lost when a read runs and its start is not in the log: it may run again.
    if (tool.effect === 'read') log.note(record)
    else await log.append([record])
  }
  const working = toolContext(context, call.call_id, stop, started)
  try {
    context.signal.throwIfAborted()
    if (tool.startsProcess !== true) await started(undefined, await tool.plan?.(args, working))
    const output = await stop.race(tool.execute(args, working))
    return stop.timedOut ? { ...output, exitCode: 124 } : output
  } catch (error) {
    if (error instanceof ToolTimeout) return { output: error.message, exitCode: 124 }
    context.signal.throwIfAborted()
    await log.flush() // a log that cannot be written is no failure of the tool
    return { output: `${tool.name} failed: ${errorText(error)}`, exitCode: 1 }
  } finally {
    stop.end()
  }
}

/** Stops one tool: when the run is stopped, or when its time is up. */
class ToolStop {
  readonly #context: RunContext
  readonly #graceMs: number
  readonly #forget: () => void
  #timer: Timer
  /** Made for tools that look at their signal; most are done before anybody could stop them. */
  #controller: AbortController | undefined
  #stopped: { readonly reason: unknown } | undefined
  #abandoned = false
  #abandon: ((reason: unknown) => void) | undefined

  constructor(context: RunContext, tool: Tool) {
    const { clock, signal, toolTimeoutMs } = context
    this.#context = context
    // A command is given the time in which its executor ends it; then nobody waits any longer.
    this.#graceMs = tool.startsProcess === true ? COMMAND_END_MS : 0
    this.#timer = clock.setTimeout(() => this.#stop(new ToolTimeout(toolTimeoutMs)), toolTimeoutMs)
    this.#forget = onAbort(signal, () => this.#stop(signal.reason))
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#stopped !== undefined) this.#controller.abort(this.#stopped.reason)
    }
    return this.#controller.signal
  }

  get timedOut(): boolean {
    return this.#stopped?.reason instanceof ToolTimeout
  }

  /** Settles as the tool does, or rejects once it was stopped and its grace is over. */
  race<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      work.then(resolve, reject)
      if (this.#abandoned) reject(this.#stopped?.reason)
      else this.#abandon = reject
    })
  }

  /** The tool has ended. */
  end(): void {
    this.#timer.cancel()
    this.#forget()
  }

  #stop(reason: unknown): void {
    if (this.#stopped !== undefined) return
    this.#stopped = { reason }
    this.#controller?.abort(reason)
    this.#timer.cancel()
    this.#timer = this.#context.clock.setTimeout(() => {
      this.#abandoned = true
      this.#abandon?.(reason)
    }, this.#graceMs)
  }
}

/** The reason with which a tool is stopped that takes too long. */
class ToolTimeout extends Error {
  override name = 'ToolTimeout'
  constructor(ms: number) {
    super(`the tool did not end within ${ms / 1000} s and was stopped`)
  }
}

function startRecord(
  context: RunContext,
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

function resultRecord(iteration: number, { call }: CallState, result: TimedOutput): RecordDraft {
  const { changes, durationMs, exitCode, output } = result
  return {
    kind: 'tool_result',
    iteration,
    payload: {
      tool: call.tool,
      output: headAndTail(output, EVENT_OUTPUT_BYTES),
      exit_code: exitCode,
      call_id: call.call_id,
      duration_ms: durationMs,
      ...(changes === undefined || changes.length === 0 ? undefined : { changes }),
    },
  }
}

/** The result of a call that got none of its own. */
export function closingRecord(
  iteration: number,
  { call }: CallState,
  exitCode: number,
  output: string,
): RecordDraft {
  const payload = { tool: call.tool, output, exit_code: exitCode, call_id: call.call_id, duration_ms: 0 }
  return { kind: 'tool_result', iteration, payload }
}

function withRemark(output: string, feedback: string): string {
  return `${output}\n\nA human who approved this call says: ${feedback}`
}

function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
