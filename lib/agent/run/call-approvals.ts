/**
 * Which calls of a run wait for a human: what its request says, unless the host decides otherwise.
 *
 * 1. A call is judged as a whole and by each command that it would run, which counts as a call of
 *    `bash`. It waits if one of them does.
 * 2. The host is asked once for each of them, before anything of the call happens; again only if
 *    the process ends before the call has begun.
 * 3. Whatever goes wrong with the host's answer, a human is asked.
 *
 * @module
 */
import { LATE, raceAbort, within } from '../../internal/time.js'
import { describeError } from '../../internal/errors.js'
import type { CallToApprove } from '../approval.js'
import type { Approval, ApprovalMode, ApprovalRules } from '../events.js'
import { copyHead } from '../log/head.js'
import { remainingCalls } from '../log/remaining.js'
import type { CallState, RunState } from '../log/run-state.js'
import { warn } from '../output.js'
import type { Tool } from '../tool.js'
import { bashTool } from '../tools/bash.js'
import { commandsOf } from '../tools/builtin.js'
import { editFileTool } from '../tools/edit-file.js'
import { updatePlanTool } from '../tools/update-plan.js'
import { writeFileTool } from '../tools/write-file.js'
import type { RunServices } from './services.js'

/** Milliseconds that the host may take for one call. */
const DECISION_MS = 60_000

/** The tools whose `always` covers every call that may write. */
const WRITERS: readonly string[] = [writeFileTool.name, editFileTool.name]

type Answer = 'ask' | 'allow' | undefined

/** Which kinds wait where a request has no exception for the tool. */
const KINDS_ASKED: Readonly<Record<ApprovalMode, readonly Asked['kind'][]>> = {
  never: [], writes: ['write'], all: ['write', 'read'],
}

/** A call, or a command that it would run. */
interface Asked {
  readonly call: CallToApprove
  /** Commands write, also those that run in copies. A plan does nothing that could be approved. */
  readonly kind: 'write' | 'read' | 'plan'
}

/** See the comment of this file. */
export class CallApprovals {
  readonly #services: Pick<RunServices, 'approval' | 'clock' | 'commandOfGoal'>
  readonly #tools: ReadonlyMap<string, Tool>
  /** What the host has said about the calls of this turn, and about the commands of each. */
  #decided: ReadonlyMap<string, readonly Answer[]> = new Map()

  constructor(
    services: Pick<RunServices, 'approval' | 'clock' | 'commandOfGoal'>,
    tools: ReadonlyMap<string, Tool>,
  ) {
    this.#services = services
    this.#tools = tools
  }

  /** Does this call wait for a human? */
  needs(state: CallState, { frozen }: RunState): boolean {
    const decided = this.#decided.get(state.call.call_id)
    const asked = this.#askedOf(state)
    if (asked.length === 0) return false
    if (this.#services.approval !== null && decided === undefined) return true
    const { approval } = frozen.request
    return asked.some((one, i) => (decided?.[i] ?? ruleFor(one, approval)) === 'ask')
  }

  /** Asks the host about the calls that are about to run; resolves at once when `signal` aborts. */
  async decide(state: RunState, signal: AbortSignal): Promise<void> {
    const { approval } = this.#services
    const isWorking = state.head.details.status === 'running' && !state.abortRequested
    if (approval === null || !isWorking || remainingCalls(state) <= 0) return
    const decided = new Map<string, readonly Answer[]>()
    for (const call of state.calls) {
      if (call.status !== 'requested') continue
      const { call_id } = call.call
      const answers: Answer[] = [...(this.#decided.get(call_id) ?? [])]
      for (const asked of this.#askedOf(call).slice(answers.length)) {
        const given = { ...asked.call, args: structuredClone(asked.call.args) }
        const { details, owner } = copyHead(state.head)
        const ask = (): unknown => approval(given, { details, owner })
        answers.push(await this.#ask(ask, details.run_id, signal))
        if (signal.aborted) return
      }
      decided.set(call_id, answers)
    }
    this.#decided = decided
  }

  /** The call and its commands; nothing for a call that does not run. */
  #askedOf({ args, call }: CallState): readonly Asked[] {
    const { commandOfGoal } = this.#services
    const tools = this.#tools
    const tool = tools.get(call.tool)
    if (tool === undefined || call.error !== undefined) return []
    const commands = commandsOf(tool, args, commandOfGoal)
    if (commands.length > 0 && !tools.has(bashTool.name)) return []
    const { call_id } = call
    const { effect, name } = tool
    const writes = effect !== 'read' || commands.length > 0
    const kind: Asked['kind'] = writes ? 'write' : tool === updatePlanTool ? 'plan' : 'read'
    const own: Asked = { call: { call_id, tool: name, effect, args }, kind }
    if (name === bashTool.name) return [own]
    const asBash = { call_id, tool: bashTool.name, via: name, effect: bashTool.effect }
    return [own, ...commands.map((command) => ({ call: { ...asBash, args: { command } }, kind }))]
  }

  /** What the host says; `ask` when that is nothing that it may say, or not said in time. */
  async #ask(decide: () => unknown, runId: string, signal: AbortSignal): Promise<Answer> {
    const fail = (problem: string): 'ask' => {
      warn(`the host's approval() ${problem}, so a human of run ${runId} is asked`)
      return 'ask'
    }
    try {
      const decided = raceAbort((async () => decide())(), signal)
      const answer = await within(DECISION_MS, decided, this.#services.clock)
      if (answer === undefined || answer === 'allow' || answer === 'ask') return answer
      if (answer === LATE) return fail(`took more than ${DECISION_MS / 1000} s`)
      return fail("must return 'ask', 'allow' or nothing")
    } catch (error) {
      return signal.aborted ? 'ask' : fail(`threw: ${describeError(error)}`)
    }
  }
}

/**
 * What a request says. Its exception for the tool counts in place of its default, unless the one
 * for a tool that writes is stricter.
 */
function ruleFor({ call: { tool }, kind }: Asked, approval: Approval): Answer {
  const rules = typeof approval === 'string' ? { default: approval, tools: {} } : approval
  const isAlways = (name: string): boolean => exceptionFor(name, rules.tools) === 'always'
  if (isAlways(tool) || (kind === 'write' && WRITERS.some(isAlways))) return 'ask'
  if (exceptionFor(tool, rules.tools) === 'never') return 'allow'
  return KINDS_ASKED[rules.default].includes(kind) ? 'ask' : 'allow'
}

function exceptionFor(
  name: string,
  tools: ApprovalRules['tools'],
): 'never' | 'always' | undefined {
  return Object.hasOwn(tools, name) ? tools[name] : undefined
}
