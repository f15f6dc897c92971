import { steadyNow } from '../../../internal/time.js'
import type { RecordDraft } from '../../events.js'
import type { CallState } from '../../log/run-state.js'
import { NOT_TAKEN } from '../../images.js'
import { clip, headAndTail } from '../../output.js'
import type { PlanStep } from '../../plan.js'
import type { Tool, ToolOutput } from '../../tool.js'
import { checkArguments } from '../../check-schema.js'
import { bashTool } from '../../tools/bash.js'
import { commandsOf } from '../../tools/builtin.js'
import { delegateTool } from '../../tools/delegate.js'
import { updatePlanTool } from '../../tools/update-plan.js'
import type { FileChange } from '../../workspace/workspace.js'
import { remainingCalls } from '../../log/remaining.js'
import { withFiles } from '../result-files.js'
import type { StepContext } from '../step-context.js'
import { closingRecord } from './finish.js'
import { ToolExecution } from './tool-execution.js'

/** Calls of `read` tools that run at the same time. */
const PARALLEL_READS = 8
/** Runs that calls start at the same time. */
const PARALLEL_RUNS = 16
/** Bytes of a tool's output that its event carries. */
const EVENT_OUTPUT_BYTES = 65_536
/** Characters of a command in a refusal. */
const COMMAND_CHARACTERS = 200

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
    return await new ToolExecution(context, tool, state, isBegun).run()
  } finally {
    isBegun()
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
