/**
 * Makes room in a conversation that has become too long: its beginning gives way to a summary that
 * the model of the run writes, or to a notice when there is none. A compaction never fails a run.
 *
 * @module
 */
import { type Clock, raceAbort, sleep } from '../../../internal/time.js'
import { deepFreeze } from '../../../internal/freeze.js'
import { describeError } from '../../../internal/errors.js'
import {
  planCompaction, summaryTokens, type CompactionPlan,
} from '../../conversation/compaction.js'
import {
  estimateConversation, estimateTokens, fitContext, type FittedContext,
} from '../../conversation/fit.js'
import { summaryRequest } from '../../conversation/summary.js'
import { NOT_TAKEN } from '../../images.js'
import type { LogWriter } from '../../log/writer.js'
import { withoutImages, type Message, type Model, type ModelTurn } from '../../model.js'
import { retryDelay } from '../../models/call-retry.js'
import { costOf } from '../../models/pricing.js'
import { sanitizeTurn } from '../../models/sanitize-turn.js'
import { clip } from '../../output.js'
import { settingsOf } from '../../request/start-request.js'
import type { RunTrace } from '../../tracing/run-trace.js'
import { NO_USAGE } from '../../usage.js'
import { exhausted } from '../budgets.js'
import { FailedCall, usageRecord, type Payer } from '../call-usage.js'
import type { SharedBudget } from '../children/call-runs.js'
import { tokensOfFailure, type LimitedCalls } from '../limited-calls.js'
import type { Prompt } from '../prompt.js'
import { loggedName, pricesOf, type RunModels } from '../run-models.js'

/** Part of the context window that is reserved for the model's output. */
const ANSWER_SHARE = 0.2
/** Fewer new turns are not worth a call of the model. */
const LEAST_TURNS = 4
/** Characters that a token of a summary may have: as many as one is estimated at. */
const CHARACTERS = 3
/** Characters of what the log says of a summary that could not be had. */
const PROBLEM_CHARACTERS = 500
const NO_IDS: ReadonlySet<string> = new Set()

/** What is needed of the context of a step. */
export interface CompactionContext {
  readonly budget: SharedBudget | null
  readonly clock: Clock
  readonly fit: { readonly tokens: number }
  readonly folder: { readonly real: string }
  readonly limits: LimitedCalls | null
  readonly log: LogWriter
  readonly models: RunModels
  readonly prompt: Prompt
  readonly random: () => number
  readonly signal: AbortSignal
  readonly trace: RunTrace
}

/** What the next call has besides the conversation so far. */
export interface NextCall {
  readonly prompt: Prompt
  /** The messages that end it, for a conversation of so many tokens. */
  readonly next: (budgetTokens: number) => readonly Message[]
}

/** What the next call may send besides its prompt. */
export interface TokenBudget {
  /** Estimated tokens, the new messages included. */
  readonly tokens: number
  /** Is that by the model's known window, and not by what it has refused? */
  readonly isOfWindow: boolean
}

export function tokenBudgetOf(
  { fit, log, models }: CompactionContext,
  prompt: Prompt,
): TokenBudget {
  const { room } = log.state
  const window = inWindow(models.active(log.state).contextWindow, prompt)
  const refused = Math.min(fit.tokens, room)
  const tokens = Math.floor(Math.min(window, refused))
  return { tokens, isOfWindow: window <= refused }
}

/** Tokens of conversation that fit into a window; null: it is not known. */
export function inWindow(tokens: number | null, prompt: Prompt): number {
  return (tokens ?? Infinity) * (1 - ANSWER_SHARE) - prompt.tokens
}

/** The messages as a model takes them. */
export function forModel(model: Model, messages: readonly Message[]): readonly Message[] {
  if (model.takesImages === true) return messages
  return messages.map((message) => withoutImages(message, NOT_TAKEN))
}

/** Does a summary stand in place of what does not fit? */
export function summarizes({ log, models }: CompactionContext): boolean {
  const { compaction } = log.state.frozen.request
  const model = models.active(log.state)
  return compaction === 'summary' && (model.summarizes ?? model.isLanguageModel)
}

/**
 * Compacts the conversation if turns would be dropped otherwise; false when the call that this took
 * has used up a budget.
 *
 * @throws only the signal's reason, and what the log throws.
 */
export async function compactIfNeeded(
  context: CompactionContext,
  iteration: number,
  call: NextCall,
): Promise<boolean> {
  if (!summarizes(context)) return true
  const { budget, log } = context
  const { conversation } = log.state
  const { isOfWindow, tokens } = tokenBudgetOf(context, call.prompt)
  const next = call.next(tokens)
  if (!conversation.overflows(tokens, next)) return true
  const plan = planCompaction(conversation.messages, next, tokens)
  if (plan === null) return true
  const found = await summaryOf(context, iteration, plan, tokens)
  const { turns, verbatim } = plan
  await log.append([{
    kind: 'conversation_compacted',
    iteration,
    payload: { turns, verbatim, ...found },
    ...(!isOfWindow && { private: { room: tokens } }),
  }])
  if (exhausted(log.state, log.now()) !== null) return false
  return budget === null || (await budget.look()) === null
}

type Found =
  | { readonly summary: string }
  | { readonly summary: null; readonly problem: string }

/** The summary, or why there is none. */
async function summaryOf(
  context: CompactionContext,
  iteration: number,
  { fresh, messages }: CompactionPlan,
  room: number,
): Promise<Found> {
  const most = summaryTokens(room)
  if (fresh < LEAST_TURNS) return none(`there were only ${fresh} new turns`)
  const fitted = toSummarize(messages, most, room)
  if (!fitted.fits) return none('what it would be made of does not fit into one call')
  const { messages: sent } = fitted
  const short = await shortOf(context, estimateConversation(sent) + context.prompt.tokens, most)
  if (short !== null) return none(short)
  const turn = await askModel(context, iteration, sent)
  return typeof turn === 'string' ? none(turn) : readSummary(turn, most * CHARACTERS)
}

function toSummarize(messages: readonly Message[], most: number, room: number): FittedContext {
  return fitContext([...messages, summaryRequest(most)], room, estimateTokens, 1)
}

function none(problem: string): Found {
  return { summary: null, problem: clip(problem, PROBLEM_CHARACTERS) }
}

function readSummary({ message, stop }: ModelTurn, most: number): Found {
  const text = message.text.trim()
  if (stop === 'refusal') return none('the model refused to write one')
  if (stop === 'content_filter') return none('the content filter of the provider stopped the model')
  if (text === '') return none('the model wrote none')
  if (text.length > most) return none(`it has ${text.length} characters, at most ${most} may be`)
  return { summary: stop === 'length' ? `${text} [cut off here]` : text }
}

/** Which budget a summary would exhaust, in words; null when there is enough of all. */
async function shortOf(
  { budget, log }: CompactionContext,
  input: number,
  output: number,
): Promise<string | null> {
  const { final_state, max_cost_usd, max_total_tokens } = log.state.head.details
  const left = (max_total_tokens ?? Infinity) - final_state.total_tokens
  if (left <= input + output) return `${left} tokens are left, and it would take too many of them`
  const usage = { ...NO_USAGE, input_tokens: input, output_tokens: output }
  const cost = costOf(usage, pricesOf(log.state)) ?? 0
  if ((max_cost_usd ?? Infinity) - final_state.estimated_cost_usd <= cost)
    return 'it would cost what is left of the budget'
  const above = budget === null ? null : await budget.look()
  return above === null ? null : above.reason
}

/** The turn of the model, or why there is none. */
async function askModel(
  context: CompactionContext,
  iteration: number,
  messages: readonly Message[],
): Promise<ModelTurn | string> {
  const { clock, folder, limits, log, models, prompt, random, signal, trace } = context
  const { frozen, turns } = log.state
  const { goal, request } = frozen
  const model = models.active(log.state)
  const paidBy = { model: loggedName(log.state, model.name), prices: pricesOf(log.state) }
  const payer: Payer = { iteration, ...paidBy, purpose: 'summary' }
  const tokens = (): number => prompt.tokens + estimateConversation(messages)
  for (let attempt = 1; ; attempt++) {
    signal.throwIfAborted()
    const place = limits === null ? null : await limits.enter(model, tokens, log, signal)
    const span = trace.beginChat(iteration, model.name, attempt)
    const failed = new FailedCall()
    try {
      const call = model.complete(deepFreeze({
        system: prompt.system,
        messages: forModel(model, messages),
        // The same ones: providers refuse calls of tools that are not offered.
        tools: prompt.tools,
        toolChoice: 'none',
        purpose: 'summary',
        signal,
        settings: settingsOf(request),
        onUsage: failed.onUsage,
        trace: trace.outgoing(span),
        run: {
          run_id: log.runId,
          iteration,
          turn: turns,
          goal: request.goal,
          check: goal.judge === undefined ? goal.command : null,
          cwd: folder.real,
        },
      }))
      const returned: unknown = await raceAbort(call, signal)
      const rules = { model: model.name, usedIds: NO_IDS, redactor: log.redactor }
      const turn = sanitizeTurn(returned, rules)
      trace.endChat(span, turn)
      place?.end(turn.usage.input_tokens + turn.usage.output_tokens)
      log.note(usageRecord(payer, turn.usage))
      return turn
    } catch (error) {
      trace.fail(span, error)
      place?.end(tokensOfFailure(error))
      failed.note(log, payer, error, signal)
      signal.throwIfAborted()
      const delay = retryDelay(attempt, error, random)
      const problem = describeError(error)
      if (delay === null || exhausted(log.state, log.now()) !== null) return problem
      await sleep(delay, signal, clock)
    }
  }
}
