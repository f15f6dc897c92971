import { hash } from 'node:crypto'
import type { JsonObject } from '../../internal/json.js'
import { raceAbort } from '../../internal/abort.js'
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
    void context.log.append(
      outputs.map((output, index) => resultRecord(iteration, rest[index] as CallState, output)),
    )
    rest = rest.slice(count)
  }
  await context.log.flush()
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
  const { log, toolTimeoutMs, clock } = context
  const { call, args } = state
  const stop = new AbortController()
  const abandon = new AbortController()
  const end = (reason: unknown): void => {
    stop.abort(reason)
    // A command is given the time in which its executor ends it; then nobody waits any longer.
    const grace = tool.startsProcess === true ? COMMAND_END_MS : 0
    timers.push(clock.setTimeout(() => abandon.abort(reason), grace))
  }
  const timers = [clock.setTimeout(() => end(new ToolTimeout(toolTimeoutMs)), toolTimeoutMs)]
  const onAbort = (): void => end(context.signal.reason)
  context.signal.addEventListener('abort', onAbort, { once: true })
  const started = (pgid?: number, plan?: JsonObject): Promise<void> =>
    state.status === 'started' ? Promise.resolve() : log.append([startRecord(context, tool, state, pgid, plan)])
  const working = toolContext(context, call.call_id, stop.signal, started)
  try {
    context.signal.throwIfAborted()
    if (tool.startsProcess !== true) {
      const durable = started(undefined, await tool.plan?.(args, working))
      // Nothing is lost when a read runs and its start is not in the log: it may run again.
      if (tool.effect !== 'read') await durable
    }
    const output = await raceAbort(tool.execute(args, working), abandon.signal)
    return stop.signal.reason instanceof ToolTimeout ? { ...output, exitCode: 124 } : output
  } catch (error) {
    if (error instanceof ToolTimeout) return { output: error.message, exitCode: 124 }
    context.signal.throwIfAborted()
    await log.flush() // a log that cannot be written is no failure of the tool
    return { output: `${tool.name} failed: ${errorText(error)}`, exitCode: 1 }
  } finally {
    for (const timer of timers) timer.cancel()
    context.signal.removeEventListener('abort', onAbort)
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
