import { raceAbort } from '../../../internal/abort.js'
import { sleep } from '../../../internal/sleep.js'
import { exhausted } from '../budgets.js'
import { ModelError } from '../../errors.js'
import type { RunRecord } from '../../events.js'
import type { GoalVerdict } from '../../goal.js'
import { collectEvidence } from '../../goals/evidence.js'
import {
  judgeMessage,
  judgeSystem,
  NOT_JUDGED,
  readVerdict,
  VERDICT_TOOL,
} from '../../goals/judge.js'
import type { ModelTurn, Usage } from '../../model.js'
import { costOf } from '../../models/pricing.js'
import { retryDelay } from '../../models/call-retry.js'
import type { RunContext } from '../step-context.js'
import { soundUsage } from '../../models/usage.js'

/** Answers that are no verdict before the judge is given up for this time. */
const MAX_ANSWERS = 2
/** Records read from the store at once. */
const PAGE = 500

/** The answer for a goal that a judge has not seen. */
export function unjudged(reason: string): GoalVerdict {
  return {
    achieved: false,
    reason,
    verified_by: 'judge',
    exit_code: 1,
    duration_ms: 0,
    counts: null,
    tests: null,
    output: '',
  }
}

/**
 * Has the judge decide whether the goal is met, by what the log shows. Its tokens are booked beside
 * those of the worker. A judge that gives no verdict, or cannot be reached after all retries, is an
 * answer: not achieved, and judged again next time.
 *
 * @throws {@link ModelError} when the judge cannot be used at all; the signal's reason.
 */
export async function judgeGoal(context: RunContext): Promise<GoalVerdict> {
  const { log, clock } = context
  const spent = exhausted(log.state, clock.now())
  if (spent !== null) return unjudged(`${NOT_JUDGED}${spent.reason}`)
  const began = clock.now()
  const evidence = collectEvidence(await recordsOf(context))
  let problem: string | null = null
  for (let answer = 1; answer <= MAX_ANSWERS; answer++) {
    const said: ModelTurn | string = await ask(context, evidence, problem)
    if (typeof said === 'string') return unjudged(NOT_JUDGED + said)
    const verdict = readVerdict(said.message)
    if (!('problem' in verdict)) {
      const duration_ms = Math.max(0, Math.round(clock.now() - began))
      return {
        ...unjudged(verdict.reason),
        ...verdict,
        exit_code: verdict.achieved ? 0 : 1,
        duration_ms,
      }
    }
    problem = verdict.problem
  }
  return unjudged(`${NOT_JUDGED}the judge gave no verdict: ${problem ?? ''}`)
}

/** One answer of the judge, or why there is none for now. */
async function ask(
  context: RunContext,
  evidence: string,
  again: string | null,
): Promise<ModelTurn | string> {
  const { log, judge, signal, clock, trace } = context
  const { frozen, head } = log.state
  const { iteration } = head.details
  if (judge === null) throw new TypeError('the goal has no judge')
  for (let attempt = 1; ; attempt++) {
    signal.throwIfAborted()
    const span = trace.beginChat(iteration, judge.name, attempt)
    try {
      const call = judge.complete({
        system: judgeSystem(),
        messages: [{ role: 'user', text: judgeMessage(frozen.request.goal, evidence, again) }],
        tools: [VERDICT_TOOL],
        toolChoice: { tool: VERDICT_TOOL.name },
        signal,
        trace: trace.outgoing(span),
        run: {
          run_id: log.runId,
          iteration,
          turn: 0,
          goal: frozen.request.goal,
          check: null,
          cwd: frozen.request.cwd,
        },
      })
      const turn = await raceAbort(call, signal)
      trace.endChat(span, turn)
      book(context, turn.usage)
      return turn
    } catch (error) {
      trace.fail(span, error)
      if (error instanceof ModelError && error.usage !== undefined) book(context, error.usage)
      signal.throwIfAborted()
      if (!(error instanceof ModelError)) throw error
      if (error.modelMistake) return error.message
      const delay = retryDelay(attempt, error, context.random)
      if (delay === null && !error.retryable) throw error
      if (delay === null || exhausted(log.state, clock.now()) !== null) return error.message
      await sleep(delay, signal, clock)
    }
  }
}

function book({ log }: RunContext, told: Usage): void {
  const { frozen, head } = log.state
  const usage = soundUsage(told)
  const cost_usd = costOf(usage, frozen.goal.judge?.prices ?? null)
  const { iteration } = head.details
  log.note({ kind: 'llm_usage', iteration, payload: { ...usage, cost_usd, purpose: 'judge' } })
}

/** The run's log so far. */
async function recordsOf({ log, store }: RunContext): Promise<readonly RunRecord[]> {
  await log.flush()
  const all: RunRecord[] = []
  for (;;) {
    const page = await store.read(log.runId, all.at(-1)?.seq ?? 0, PAGE)
    all.push(...page)
    if (page.length < PAGE) return all
  }
}
