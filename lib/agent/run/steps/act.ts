import { hash } from '../../../internal/bytes.js'
import { type Backoff, backoffDelay, sleep, steadyNow } from '../../../internal/time.js'
import { describeError } from '../../../internal/errors.js'
import type { JsonObject } from '../../../internal/json.js'
import type { RecordDraft } from '../../events.js'
import type { CallState } from '../../log/run-state.js'
import { isExhausted } from '../../exhaustion.js'
import { NOT_TAKEN } from '../../images.js'
import { clip, headAndTail } from '../../output.js'
import type { PlanStep } from '../../plan.js'
import type { Tool, ToolContext, ToolOutput } from '../../tool.js'
import { checkArguments } from '../../check-schema.js'
import { bashTool } from '../../tools/bash.js'
import { commandsOf } from '../../tools/builtin.js'
import { delegateTool } from '../../tools/delegate.js'
import { updatePlanTool } from '../../tools/update-plan.js'
import { ToolStop, ToolTimeout } from '../../tools/tool-stop.js'
import type { FileChange } from '../../workspace/workspace.js'
import { remainingCalls } from '../../log/remaining.js'
import { NO_RUNS } from '../children/call-runs.js'
import { withFiles } from '../result-files.js'
import { soundOutput } from '../sound-output.js'
import { changesAfter, changesIn, toolContext, type StepContext } from '../step-context.js'
import { closingRecord } from './finish.js'

/** Calls of `read` tools that run at the same time. */
const PARALLEL_READS = 8
/** Runs that calls start at the same time. */
const PARALLEL_RUNS = 16
/** Bytes of a tool's output that its event carries. */
const EVENT_OUTPUT_BYTES = 65_536
/** Characters of a command in a refusal. */
const COMMAND_CHARACTERS = 200
/** Exit code of a command that was stopped. */
const STOPPED = 130
/** Milliseconds that an executor may take to stop a command: SIGTERM, 2 s, SIGKILL, and slack. */
const COMMAND_END_MS = 5_000
/** Waits before a tool is tried again. */
const TOOL_BACKOFF: Backoff = { firstMs: 500, maxMs: 8_000 }

/**
 * Runs the calls that have no result yet: reads in parallel, runs that are started as well, and
 * everything else one by one, with results in the order of the calls. A call takes effect only
 * after its `tool_started` is durable.
 *
 * @throws the signal's reason when the run is stopped; the run loop then closes the open calls. A
 * fault of the machine, before the call had any effect: the run loop then repeats the step.
 */
export async function runTools(context: StepContext, calls: readonly CallState[]): Promise<void> {
  let rest = calls
  while (rest.length > 0) {
    const allowed = remainingCalls(context.log.state)
    if (allowed <= 0) return refuseRest(context, rest)
    const most = parallel(context, rest[0] as CallState)
    const others = rest.findIndex((call) => most === 1 || parallel(context, call) !== most)
    const alike = others < 0 ? rest.length : Math.max(others, 1)
    const count = Math.min(alike, most, allowed)
    const batch = rest.slice(0, count)
    const outputs =
      count === 1
        ? [await runCall(context, batch[0] as CallState)]
        : await allOf(batch.map((call) => runCall(context, call)))
    batch.forEach((call, index) => {
      const output = outputs[index] as TimedOutput
      const plan = planRecord(context, call, output)
      if (plan !== null) context.log.note(plan)
      context.log.note(resultRecord(context, call, output))
    })
    // A read whose result is lost can run again; other calls cannot.
    if (most !== PARALLEL_READS) await context.log.flush()
    rest = rest.slice(count)
  }
}

/** What `Promise.all` returns; rejects only when all of them are over. */
async function allOf<T>(work: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(work)
  return await Promise.all(work)
}

/** Calls beyond the budget get a result, as the model expects one for each call, but do not run. */
function refuseRest({ log }: StepContext, calls: readonly CallState[]): void {
  const { head, frozen } = log.state
  const output = `Not run: the run's ${frozen.request.max_tool_calls} tool calls are used up.`
  for (const call of calls) log.note(closingRecord(head.details.iteration, call, 126, output))
}

/** How many calls of this kind run at the same time. */
function parallel(context: StepContext, { call }: CallState): number {
  const tool = context.tools.get(call.tool)
  if (tool === delegateTool) return PARALLEL_RUNS
  return tool?.effect === 'read' ? PARALLEL_READS : 1
}

interface TimedOutput {
  readonly result: ToolOutput
  readonly durationMs: number
}

async function runCall(context: StepContext, state: CallState): Promise<TimedOutput> {
  const began = steadyNow(context.clock)
  const tool = context.tools.get(state.call.tool)
  const refusal = refusalOf(context, tool, state)
  const result = refusal ?? (await executeWithin(context, tool as Tool, state))
  return { result, durationMs: Math.round(steadyNow(context.clock) - began) }
}

/** The result of a call that must not run; null for a call that may. */
function refusalOf(
  { commandOfGoal, tools }: StepContext,
  tool: Tool | undefined,
  { call, args, status, feedback }: CallState,
): ToolOutput | null {
  if (status === 'rejected') {
    const why = feedback === '' ? '' : `: ${feedback}`
    return { output: `A human refused this call${why}`, exitCode: 126 }
  }
  if (call.error !== undefined) return { output: call.error, exitCode: 1 }
  if (tool === undefined) {
    const known = [...tools.keys()].join(', ')
    return { output: `There is no tool ${call.tool}. Tools: ${known}`, exitCode: 127 }
  }
  // A check of the tool's own may take time, of which each call has its share.
  const problem = tool.check === undefined ? checkArguments(tool, args) : null
  if (problem !== null) return { output: problem, exitCode: 1 }
  const [command] = commandsOf(tool, args, commandOfGoal)
  if (command === undefined || tools.has(bashTool.name)) return null
  const shown = clip(command, COMMAND_CHARACTERS)
  const output =
    `${tool.name} was not run: it would run the command ${shown}, and this run may run none, as ` +
    `it does not have the tool ${bashTool.name}.`
  return { output, exitCode: 126 }
}

const NO_PLACE = (): void => undefined

/** Executes a call, unless the runs of the tree have made all calls that they may make. */
async function executeWithin(
  context: StepContext,
  tool: Tool,
  state: CallState,
): Promise<ToolOutput> {
  const { budget } = context
  // A call that had begun is counted.
  const isCounted = budget === null || state.status === 'started'
  const isBegun = isCounted ? NO_PLACE : await budget.reserveCall()
  if (isBegun === null) {
    const output = 'Not run: this run and those it works with have used up their tool calls.'
    return { output, exitCode: 126 }
  }
  try {
    return await execute(context, tool, state, isBegun)
  } finally {
    isBegun()
  }
}

/** `isBegun` is called once the call is in the log. */
async function execute(
  context: StepContext,
  tool: Tool,
  state: CallState,
  isBegun: () => void,
): Promise<ToolOutput> {
  const { clock, log, signal, toolTimeoutMs, trace } = context
  const { call, args, feedback } = state
  if (tool.effect !== 'read') await context.checkpoints?.recordFirst(log, signal)
  const span = trace.beginTool(log.state.head.details.iteration, tool, call.call_id)
  // After its time-out, a command gets the time that its executor needs to stop it.
  const stop = new ToolStop(
    signal,
    clock,
    tool.timeoutMs ?? toolTimeoutMs,
    tool.startsProcess === true ? COMMAND_END_MS : 0,
  )
  const onStart = async (pgid: number): Promise<void> => {
    const durable = begin(context, tool, state, pgid)
    isBegun()
    await stop.pauseFor(durable ?? Promise.resolve())
  }
  let changed: readonly FileChange[] = []
  const onChanges = (changes: readonly FileChange[]): void => {
    changed = changed.length === 0 ? changes : [...changed, ...changes]
  }
  const watch = tool.effect === 'read' ? undefined : onChanges
  const compares = tool.changesFiles === true && watch !== undefined
  const withChanges = async (result: ToolOutput): Promise<ToolOutput> => {
    if (compares) onChanges(await changesAfter(context, signal))
    return changed.length === 0
      ? result
      : { ...result, changes: [...(result.changes ?? []), ...changed] }
  }
  const runs = context.delegates.ofCall(call.call_id, context, stop)
  const working = toolContext(context, call.call_id, stop, runs, onStart, watch)
  try {
    signal.throwIfAborted()
    const problem = tool.check === undefined ? null : await stop.race(tool.check(args))
    if (problem !== null) {
      trace.endTool(span, 1, false)
      return { output: problem, exitCode: 1 }
    }
    signal.throwIfAborted()
    if (tool.startsProcess !== true) {
      const planning = (): ToolContext =>
        toolContext(context, call.call_id, stop, NO_RUNS, onStart, watch)
      const plan = tool.plan === undefined ? undefined : await tool.plan(args, planning())
      const durable = begin(context, tool, state, undefined, plan)
      isBegun()
      if (durable !== undefined) await stop.pauseFor(durable)
      signal.throwIfAborted()
    }
    if (compares) {
      // Resets the comparison: earlier changes are not this call's.
      await changesIn(context.workspace)
      signal.throwIfAborted()
    }
    const own = await stop.race(callTool(context, tool, args, working))
    const { timedOut } = stop
    trace.endTool(span, timedOut ? 124 : own.exitCode, tool.startsProcess === true)
    const whole = signal.aborted && own.exitCode === STOPPED ? stoppedBy(signal, own) : own
    const result = compares || changed.length > 0 ? await withChanges(whole) : whole
    if (feedback === '' && !timedOut) return result
    const output = feedback === '' ? result.output : withRemark(result.output, feedback)
    return { ...result, output, exitCode: timedOut ? 124 : result.exitCode }
  } catch (error) {
    if (error instanceof ToolTimeout) {
      trace.endTool(span, 124, true)
      return await withChanges({ output: error.message, exitCode: 124 })
    }
    trace.fail(span, error)
    signal.throwIfAborted()
    // What has had no effect is repeated as a whole.
    if (isExhausted(error) && (tool.effect !== 'unsafe' || state.status !== 'started')) throw error
    await log.flush() // throws if it was the log that failed, not the tool
    const output = `${tool.name} failed: ${describeError(error)}`
    return await withChanges({ output, exitCode: 1 })
  } finally {
    stop.end()
    await runs.end()
  }
}

/** What the tool answers; a `read` tool that throws is tried again as often as it says. */
async function callTool(
  { clock, random }: StepContext,
  tool: Tool,
  args: JsonObject,
  working: ToolContext,
): Promise<ToolOutput> {
  const most = tool.effect === 'read' ? (tool.retries ?? 0) : 0
  for (let retry = 1; ; retry++) {
    let returned: unknown
    try {
      returned = await tool.execute(args, working)
    } catch (error) {
      if (retry > most || isExhausted(error) || working.signal.aborted) throw error
      await sleep(backoffDelay(retry, TOOL_BACKOFF, random), working.signal, clock)
      continue
    }
    return soundOutput(returned)
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

/** What a call of `update_plan` says, before its result: that it succeeded is then true. */
function planRecord(
  { log, tools }: StepContext,
  { call, args }: CallState,
  { result }: TimedOutput,
): RecordDraft | null {
  if (tools.get(call.tool) !== updatePlanTool || result.exitCode !== 0) return null
  const steps = args['steps'] as unknown as readonly PlanStep[]
  const { iteration } = log.state.head.details
  return { kind: 'plan_updated', iteration, payload: { call_id: call.call_id, steps } }
}

function resultRecord(
  { holdsSecrets, log, models, tools }: StepContext,
  { call }: CallState,
  { result, durationMs }: TimedOutput,
): RecordDraft {
  const { exitCode } = result
  const { output: told, images, infos } = withFiles(result)
  const explores = tools.get(call.tool)?.explores === true
  const whole = models.active(log.state).readsWholeOutputs === true
  // What no model can see needs no room in the log.
  const isSeen = images.length > 0 && models.takeImages(log.state)
  const output = images.length === 0 || isSeen ? told : `${told}\n[not shown: ${NOT_TAKEN}]`
  // Those of a host's tool may be anything; what cannot be stored is found later.
  const changes = result.changes?.map((change: FileChange | null) => {
    const isSecret = typeof change?.path === 'string' && holdsSecrets(change.path)
    return isSecret ? { ...change, diff: '' } : change
  }) as FileChange[] | undefined
  return {
    kind: 'tool_result',
    iteration: log.state.head.details.iteration,
    payload: {
      tool: call.tool,
      output: headAndTail(output, EVENT_OUTPUT_BYTES),
      exit_code: exitCode,
      call_id: call.call_id,
      duration_ms: durationMs,
      ...(changes === undefined || changes.length === 0 ? undefined : { changes }),
      ...(infos.length === 0 ? undefined : { images: infos }),
    },
    ...((isSeen || explores || whole) && {
      private: {
        ...(isSeen && { images }), ...(explores && { explores }), ...(whole && { whole }),
      },
    }),
  }
}

/** The result of a command that was stopped, with the reason for the model. */
function stoppedBy({ reason }: AbortSignal, result: ToolOutput): ToolOutput {
  return { ...result, output: `${result.output}\n\nStopped: ${describeError(reason)}`.trimStart() }
}

function withRemark(output: string, feedback: string): string {
  return `${output}\n\nA human who approved this call says: ${feedback}`
}
