/**
 * Which calls of a run wait for a human: what its request says, unless the host decides otherwise.
 *
 * 1. The host is asked once for each call, before anything of it happens; again only if the process
 *    ends before the call has begun.
 * 2. Whatever goes wrong with the host's answer, a human is asked.
 *
 * @module
 */
import type { Clock } from '../../internal/clock.js'
import type { ApproveCall } from '../approval.js'
import type { Approval } from '../events.js'
import { copyHead } from '../log/head.js'
import { remainingCalls } from '../log/remaining.js'
import type { CallState, RunState } from '../log/run-state.js'
import { warn } from '../output.js'
import type { Tool } from '../tool.js'
import { tryPatchesTool } from '../tools/try-patches.js'
import { updatePlanTool } from '../tools/update-plan.js'

/** Milliseconds that the host may take for one call. */
const DECISION_MS = 60_000

export interface CallApprovalsOptions {
  readonly clock: Clock
  readonly tools: ReadonlyMap<string, Tool>
  /** The host's; null for none. */
  readonly approval: ApproveCall | null
}

/** See the comment of this file. */
export class CallApprovals {
  readonly #options: CallApprovalsOptions
  /** What the host has said about the calls of this turn. */
  #decided: ReadonlyMap<string, 'ask' | 'allow' | undefined> = new Map()

  constructor(options: CallApprovalsOptions) {
    this.#options = options
  }

  /** Does this call wait for a human? */
  needs({ call }: CallState, { frozen }: RunState): boolean {
    const { approval, tools } = this.#options
    const tool = tools.get(call.tool)
    if (tool === undefined || call.error !== undefined) return false
    if (approval !== null && !this.#decided.has(call.call_id)) return true
    const decided = this.#decided.get(call.call_id)
    return decided === undefined
      ? asksFor(tool, frozen.request.approval)
      : decided === 'ask'
  }

  /** Asks the host about the calls that are about to run; resolves at once when `signal` aborts. */
  async decide(state: RunState, signal: AbortSignal): Promise<void> {
    const { approval, tools } = this.#options
    const isWorking = state.head.details.status === 'running' && !state.abortRequested
    if (approval === null || !isWorking || remainingCalls(state) <= 0) return
    const decided = new Map<string, 'ask' | 'allow' | undefined>()
    for (const { args, call, status } of state.calls) {
      const tool = tools.get(call.tool)
      if (status !== 'requested' || tool === undefined || call.error !== undefined) continue
      const { call_id } = call
      const known = this.#decided.has(call_id)
      const ask = (): Promise<'ask' | 'allow' | undefined> => {
        const asked = { call_id, tool: tool.name, effect: tool.effect, args: structuredClone(args) }
        const { details, owner } = copyHead(state.head)
        return this.#ask(() => approval(asked, { details, owner }), details.run_id, signal)
      }
      decided.set(call_id, known ? this.#decided.get(call_id) : await ask())
      if (signal.aborted) return
    }
    this.#decided = decided
  }

  /** What the host says; `ask` when that is nothing that it may say, or not said in time. */
  async #ask(
    decide: () => unknown,
    runId: string,
    signal: AbortSignal,
  ): Promise<'ask' | 'allow' | undefined> {
    let settle: (why: 'aborted' | 'late') => void = () => undefined
    const waited = new Promise<'aborted' | 'late'>((resolve) => (settle = resolve))
    const abort = (): void => settle('aborted')
    signal.addEventListener('abort', abort, { once: true })
    const timer = this.#options.clock.setTimeout(() => settle('late'), DECISION_MS)
    const fail = (problem: string): 'ask' => {
      warn(`the host's approval() ${problem}, so a human of run ${runId} is asked`)
      return 'ask'
    }
    try {
      const answer = await Promise.race([(async () => decide())(), waited])
      if (answer === undefined || answer === 'allow' || answer === 'ask') return answer
      if (answer === 'aborted') return 'ask'
      const took = `took more than ${DECISION_MS / 1000} s`
      return fail(answer === 'late' ? took : "must return 'ask', 'allow' or nothing")
    } catch (error) {
      return fail(`threw: ${error instanceof Error ? error.message : String(error)}`)
    } finally {
      timer.cancel()
      signal.removeEventListener('abort', abort)
    }
  }
}

/** Does a request want this tool to wait for a human? */
function asksFor(tool: Tool, approval: Approval): boolean {
  const { effect, name } = tool
  const rules = typeof approval === 'string' ? { default: approval, tools: {} } : approval
  const exception = Object.hasOwn(rules.tools, name) ? rules.tools[name] : undefined
  if (exception !== undefined) return exception === 'always'
  // A plan does nothing that could be approved.
  if (tool === updatePlanTool) return false
  // What runs in copies is still what a model has written.
  const writes = effect !== 'read' || tool === tryPatchesTool
  return rules.default === 'all' || (rules.default === 'writes' && writes)
}
