import { raceAbort, sleep, steadyNow } from '../../../internal/time.js'
import { deepFreeze } from '../../../internal/freeze.js'
import { estimateTokens } from '../../conversation/fit.js'
import { ModelError } from '../../errors.js'
import type { RunRecord } from '../../events.js'
import type { GoalVerdict } from '../../goal.js'
import { evidenceOf } from '../../goals/evidence.js'
import {
  judgeMessage,
  judgeSystem,
  NOT_JUDGED,
  readVerdict,
  VERDICT_TOOL,
} from '../../goals/judged-goal.js'
import { readLog } from '../../log/read-log.js'
import type { RunState } from '../../log/run-state.js'
import type { ModelTurn } from '../../model.js'
import { finalError, retryDelay } from '../../models/call-retry.js'
import { sanitizeTurn } from '../../models/sanitize-turn.js'
import { exhausted } from '../budgets.js'
import { FailedCall, usageRecord, type Payer } from '../call-usage.js'
import { tokensOfFailure } from '../limited-calls.js'
import { loggedName } from '../run-models.js'
import type { StepContext } from '../step-context.js'

/** Turns without a valid verdict after which this check gives up on the judge. */
const MAX_TURNS = 2
/** Records read from the store at once. */
const PAGE = 500
/** A verdict is no call of the run. */
const NO_IDS: ReadonlySet<string> = new Set()

export interface JudgeVerdict extends GoalVerdict {
  /** True when the judge reached no verdict: the next check asks it again. */
  readonly undecided: boolean
}

/** "Not achieved", without a call of the judge. */
export function unjudged(reason: string): JudgeVerdict {
  return {
    undecided: false,
    achieved: false,
    reason,
    assurance: { by: 'judge', sealed: false, canaries: false, holdout: false },
    exit_code: 1,
    duration_ms: 0,
    counts: null,
    tests: null,
    test_files: [],
    deeds: [],
    output: '',
  }
}

function undecided(why: string): JudgeVerdict {
  return { ...unjudged(NOT_JUDGED + why), undecided: true }
}

/**
 * Lets the judge decide from the log whether the goal is met. Its tokens count like those of the
 * worker. Without a verdict, or when the judge is unreachable after all retries, the result is "not
 * achieved", and the next check asks again.
 *
 * @throws {@link ModelError} when the judge cannot be used at all; the signal's reason.
 */
export async function judgeGoal(context: StepContext): Promise<JudgeVerdict> {
  const { log, clock } = context
  const spent = exhausted(log.state, log.now())
  if (spent !== null) return undecided(spent.reason)
  const began = steadyNow(clock)
  const evidence = evidenceOf(log.state.frozen.fork, await recordsOf(context))
  let problem: string | null = null
  for (let attempt = 1; attempt <= MAX_TURNS; attempt++) {
    const turn: ModelTurn | string = await askJudge(context, evidence, problem)
    if (typeof turn === 'string') return undecided(turn)
    const verdict = readVerdict(turn.message)
    if (!('problem' in verdict)) {
      const duration_ms = Math.round(steadyNow(clock) - began)
      return {
        ...unjudged(verdict.reason),
        ...verdict,
        exit_code: verdict.achieved ? 0 : 1,
        duration_ms,
      }
    }
    problem = verdict.problem
  }
  return undecided(`the judge gave no verdict: ${problem ?? ''}`)
}

/** One turn of the judge, or why there is none for now. `problem`: of the turn before. */
async function askJudge(
  context: StepContext,
  evidence: string,
  problem: string | null,
): Promise<ModelTurn | string> {
  const { folder, limits, log, judge, signal, clock, trace } = context
  const { frozen, head } = log.state
  const { iteration } = head.details
  if (judge === null) throw new TypeError('the goal has no judge')
  const text = judgeMessage(frozen.request.goal, evidence, problem)
  const tokens = (): number => estimateTokens({ role: 'user', text: judgeSystem() + text })
  for (let attempt = 1; ; attempt++) {
    signal.throwIfAborted()
    const place = limits === null ? null : await limits.enter(judge, tokens, log, signal)
    const span = trace.beginChat(iteration, judge.name, attempt)
    const failed = new FailedCall()
    try {
      const call = judge.complete(deepFreeze({
        system: judgeSystem(),
        messages: [{ role: 'user', text }],
        tools: [VERDICT_TOOL],
        toolChoice: { tool: VERDICT_TOOL.name },
        signal,
        onUsage: failed.onUsage,
        trace: trace.outgoing(span),
        run: {
          run_id: log.runId,
          iteration,
          turn: 0,
          goal: frozen.request.goal,
          check: null,
          cwd: folder.real,
        },
      }))
      const returned: unknown = await raceAbort(call, signal)
      const rules = { model: judge.name, usedIds: NO_IDS, redactor: log.redactor }
      const turn = sanitizeTurn(returned, rules)
      trace.endChat(span, turn)
      place?.end(turn.usage.input_tokens + turn.usage.output_tokens)
      log.note(usageRecord(payerOf(log.state), turn.usage))
      return turn
    } catch (error) {
      trace.fail(span, error)
      place?.end(tokensOfFailure(error))
      failed.note(log, payerOf(log.state), error, signal)
      signal.throwIfAborted()
      if (!(error instanceof ModelError)) throw error
      if (error.modelMistake) return error.message
      const delay = retryDelay(attempt, error, context.random)
      if (delay === null && !error.retryable) throw error
      if (delay === null) return finalError(error).message
      if (exhausted(log.state, log.now()) !== null) return error.message
      await sleep(delay, signal, clock)
    }
  }
}

function payerOf(state: RunState): Payer {
  const { frozen, head } = state
  const { model: name = '', prices = null } = frozen.goal.judge ?? {}
  const model = loggedName(state, name)
  return { iteration: head.details.iteration, model, prices, purpose: 'judge' }
}

async function recordsOf({ log }: StepContext): Promise<readonly RunRecord[]> {
  await log.flush()
  const all: RunRecord[] = []
  for await (const page of readLog(log, log.runId, PAGE)) all.push(...page)
  return all
}
