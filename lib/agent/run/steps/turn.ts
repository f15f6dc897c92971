import { raceAbort, sleep } from '../../../internal/time.js'
import { deepFreeze } from '../../../internal/freeze.js'
import { estimateConversation, estimateTokens } from '../../conversation/fit.js'
import { ModelError } from '../../errors.js'
import type { EventPayloads, PrivatePart, RecordDraft, SwitchCause } from '../../events.js'
import { DeltaWriter } from '../../log/deltas.js'
import { dueMessages, type WaitingMessage } from '../../log/messages.js'
import type { RunState } from '../../log/run-state.js'
import {
  imagesOf, type Message, type Model, type ModelRequest, type ModelTurn,
} from '../../model.js'
import { finalError, retryDelay } from '../../models/call-retry.js'
import { mistakeFeedback } from '../../models/mistake-feedback.js'
import { withWords } from '../../models/provider-errors.js'
import { sanitizeTurn } from '../../models/sanitize-turn.js'
import { clip } from '../../output.js'
import { settingsOf } from '../../request/start-request.js'
import { exhausted, type Exhausted } from '../budgets.js'
import { tokensOfFailure } from '../limited-calls.js'
import { FailedCall, usageRecord, type Payer } from '../call-usage.js'
import { loggedName, nextModel, pricesOf } from '../run-models.js'
import type { StepContext } from '../step-context.js'
import {
  forModel, inWindow, compactIfNeeded, tokenBudgetOf, summarizes, type NextCall,
} from './compact.js'

/** Characters of the provider's message that the model gets when its output was at fault. */
const MISTAKE_CHARACTERS = 4_000
/** Part of the room for the conversation that new messages may take. */
const MESSAGES_SHARE = 0.5
/** Retries with a shorter conversation after the model refused its length. */
const MAX_REFITS = 2
/** The length of such a retry, as a part of what was refused. */
const REFIT_SHARE = 0.6

/**
 * One model call: the plan of a new iteration if `begins`, else a further turn of the current one.
 * The whole turn is appended at once, with all of its tool calls, before any of them is considered.
 *
 * @throws {@link ModelError} when the model gave no usable turn after all retries.
 */
export async function takeTurn(
  context: StepContext,
  iteration: number,
  begins: boolean,
): Promise<void> {
  const { checkpoints, log } = context
  const heard: string[] = []
  checkpoints?.begin(log)
  if (begins) log.note({ kind: 'step_start', iteration, payload: { node: 'plan' } })
  const due = (budget: number): readonly Message[] => dueWithin(log.state, budget, heard)
  try {
    const turn = await callModel(context, iteration, { prompt: context.prompt, next: due })
    if (turn === null) return // nextStep() finds the exhausted budget
    if (await switchAfterRefusal(context, iteration, turn)) return
    await log.append(turnRecords(log.state, iteration, turn, heard))
  } catch (error) {
    if (!isMistake(error)) return await switchAfterError(context, iteration, error)
    const { name } = context.models.active(log.state)
    await log.append([mistakeRecord(log.state, iteration, error, name, heard)])
  }
}

/** Is that the fault of what the model wrote? */
export function isMistake(error: unknown): error is ModelError {
  return error instanceof ModelError && error.modelMistake
}

/** Lets the next model take over if this one has refused; false when there is nothing to do. */
export async function switchAfterRefusal(
  context: StepContext,
  iteration: number,
  turn: ModelTurn,
): Promise<boolean> {
  const { state } = context.log
  const next = isRefused(turn) ? nextModel(state) : null
  if (next === null) return false
  const used = usageRecord(payerOf(state, iteration), turn.usage, true)
  const { text } = turn.message
  const message = text.trim() === '' ? 'a content filter stopped the answer' : text
  await switchModel(context, iteration, next, { cause: 'refusal', message }, [used])
  return true
}

/** Lets the next model take over from one whose call failed. @throws the error without one. */
export async function switchAfterError(
  context: StepContext,
  iteration: number,
  error: unknown,
): Promise<void> {
  const next = error instanceof ModelError ? nextModel(context.log.state) : null
  if (!(error instanceof ModelError) || next === null) throw error
  const why = { cause: causeOf(error), message: error.message }
  await switchModel(context, iteration, next, why)
}

function isRefused({ stop, message }: ModelTurn): boolean {
  return (stop === 'refusal' || stop === 'content_filter') && message.calls.length === 0
}

function causeOf({ code, retryable }: ModelError): SwitchCause {
  if (code === 'ERR_AGENT_MODEL_FILTER') return 'refusal'
  if (code === 'ERR_AGENT_MODEL_CONTEXT') return 'context'
  return retryable ? 'retries' : 'error'
}

/** The next step calls the model that takes over, once that is durable and budgets are left. */
async function switchModel(
  { fit, log }: StepContext,
  iteration: number,
  to: string,
  why: Pick<EventPayloads['model_switched'], 'cause' | 'message'>,
  before: readonly RecordDraft[] = [],
): Promise<void> {
  // What the model before refused as too long says nothing of this one.
  Object.assign(fit, { tokens: Infinity, refusal: null })
  const from = log.state.head.details.active_model
  const payload = { from, to, ...why, message: clip(why.message, MISTAKE_CHARACTERS) }
  await log.append([...before, { kind: 'model_switched', iteration, payload }])
}

/** What one call has besides the conversation so far. */
export interface TurnRequest extends NextCall {
  readonly more?: Pick<ModelRequest, 'toolChoice' | 'result'>
}

/** The model's turn; null when a budget was exhausted while attempts failed. */
export async function callModel(
  context: StepContext,
  iteration: number,
  request: TurnRequest,
): Promise<ModelTurn | null> {
  const { budget, clock, log, random, signal } = context
  const { more } = request
  const warn = (message: string): void =>
    log.note({ kind: 'log', iteration, payload: { level: 'warn', message } })
  // A result needs no call of a tool.
  const ends = (spent: Exhausted | null): boolean =>
    spent !== null && (more?.result === undefined || spent.endReason !== 'tool_call_budget')
  let refits = 0
  for (let attempt = 1; ; attempt++) {
    if (attempt > 1 && budget !== null && ends(await budget.look())) return null
    if (!(await compactIfNeeded(context, iteration, request))) return null
    const fitted = fitMessages(context, request)
    const call = new FailedCall()
    try {
      return await attemptCall(context, iteration, attempt, request, fitted, call)
    } catch (error) {
      const hasCost = call.note(log, payerOf(log.state, iteration), error, signal)
      signal.throwIfAborted()
      if (hasCost && ends(exhausted(log.state, log.now()))) return null
      if (isContextProblem(error) && refits < MAX_REFITS) {
        refits += 1
        context.fit.tokens = Math.floor(estimateConversation(fitted) * REFIT_SHARE)
        context.fit.refusal = error
        warn(`the model refused the conversation: ${error.message}; sending less`)
        continue
      }
      if (!(error instanceof ModelError)) throw error
      const delay = retryDelay(attempt, error, random)
      if (delay === null) throw finalError(error)
      warn(`model call failed, attempt ${attempt}: ${error.message}; trying again`)
      await sleep(delay, signal, clock)
    }
  }
}

async function attemptCall(
  { folder, limits, log, models, signal, trace }: StepContext,
  iteration: number,
  attempt: number,
  { prompt, more }: TurnRequest,
  messages: readonly Message[],
  { onUsage }: FailedCall,
): Promise<ModelTurn> {
  signal.throwIfAborted()
  const { frozen, turns } = log.state
  const { goal, request } = frozen
  const model = models.active(log.state)
  const tokens = (): number => prompt.tokens + estimateConversation(messages)
  const place = limits === null ? null : await limits.enter(model, tokens, log, signal)
  const source = { iteration, turn: turns + 1, attempt }
  const deltas = new DeltaWriter(log.feed, () => log.ts, log.redactor, source)
  const span = trace.beginChat(iteration, model.name, attempt)
  try {
    const call = model.complete(deepFreeze({
      system: prompt.system,
      messages,
      tools: prompt.tools,
      ...more,
      signal,
      settings: settingsOf(request),
      onDelta: deltas.write,
      onUsage,
      trace: trace.outgoing(span),
      run: {
        run_id: log.runId,
        iteration,
        turn: turns,
        goal: request.goal,
        check: goal.command === '' ? null : goal.command,
        cwd: folder.real,
        isCheckFile: (path) => Object.hasOwn(log.state.baseline?.files ?? {}, path),
      },
    }))
    const returned: unknown = await raceAbort(call, signal) // a model may ignore the signal
    const rules = { model: model.name, usedIds: log.state.callIds, redactor: log.redactor }
    const turn = sanitizeTurn(returned, rules)
    trace.endChat(span, turn)
    deltas.end()
    place?.end(turn.usage.input_tokens + turn.usage.output_tokens)
    return turn
  } catch (error) {
    trace.fail(span, error)
    place?.end(tokensOfFailure(error))
    throw error
  } finally {
    deltas.close()
  }
}

function isContextProblem(error: unknown): error is ModelError {
  return error instanceof ModelError && error.code === 'ERR_AGENT_MODEL_CONTEXT'
}

function fitMessages(context: StepContext, { prompt, next }: TurnRequest): readonly Message[] {
  const { fit, log, models } = context
  const model = models.active(log.state)
  const { isOfWindow, tokens } = tokenBudgetOf(context, prompt)
  // A model that may take over gets what fits into its own window.
  const later = tokens === Infinity ? null : models.widestLater(log.state)
  const keptTokens = later === null ? tokens : inWindow(later, prompt)
  const kept = { keptTokens, keptTurns: summarizes(context) }
  const { conversation } = log.state
  const added = next(tokens)
  const fitted = conversation.fit(tokens, added, kept)
  if (fitted.fits) {
    // A long conversation is looked through only where there is something to find.
    const hasImages = conversation.hasImages || added.some((one) => imagesOf(one).length > 0)
    return hasImages ? forModel(model, fitted.messages) : fitted.messages
  }
  throw unfit(fitted.neededTokens, model, isOfWindow ? null : fit.refusal)
}

/** The messages that are heard with this call; `heard` gets their ids. */
function dueWithin(
  { messages, turns }: RunState,
  budgetTokens: number,
  heard: string[],
): readonly Message[] {
  const due = withinBudget(dueMessages(messages, turns === 0), budgetTokens * MESSAGES_SHARE)
  heard.splice(0, Infinity, ...due.map(({ payload }) => payload.message_id))
  return due.map(({ message }) => message)
}

/** The first messages within the budget, and one at least: the others are heard in later turns. */
function withinBudget(
  due: readonly WaitingMessage[],
  budgetTokens: number,
): readonly WaitingMessage[] {
  let tokens = 0
  const over = due.findIndex(({ message }) => (tokens += estimateTokens(message)) > budgetTokens)
  return over < 0 ? due : due.slice(0, Math.max(1, over))
}

/** `refusal`: how the model refused a longer conversation; null when its known window decides. */
function unfit(tokens: number, model: Model, refusal: ModelError | null): ModelError {
  if (refusal !== null) return withWords(refusal, '; the conversation cannot be made shorter')
  const takes =
    model.contextWindow === null
      ? 'has refused a shorter one'
      : `takes ${model.contextWindow} tokens in all, instructions, tools and answer included`
  const message = `the conversation needs about ${tokens} tokens at least; ${model.name} ${takes}`
  return new ModelError('ERR_AGENT_MODEL_CONTEXT', message, { retryable: false })
}

function payerOf(state: RunState, iteration: number): Payer {
  const { active_model: name } = state.head.details
  return { iteration, model: loggedName(state, name), prices: pricesOf(state), purpose: 'worker' }
}

/** What a turn has used, and its reasoning. */
export function spentRecords(
  state: RunState,
  iteration: number,
  turn: ModelTurn,
): RecordDraft[] {
  const records: RecordDraft[] = [usageRecord(payerOf(state, iteration), turn.usage)]
  if (turn.reasoning !== '') {
    records.push({ kind: 'reasoning', iteration, payload: { text: turn.reasoning } })
  }
  return records
}

function turnRecords(
  state: RunState,
  iteration: number,
  turn: ModelTurn,
  heard: readonly string[],
): RecordDraft[] {
  const { message } = turn
  const records = spentRecords(state, iteration, turn)
  records.push({
    kind: 'model_turn',
    iteration,
    payload: turnPayload(state, heard, message.text, turn.stop),
    private: { message },
  })
  if (message.calls.length > 0 && state.node === 'plan') {
    records.push({ kind: 'step_start', iteration, payload: { node: 'act' } })
  }
  for (const { tool, args, call_id } of message.calls) {
    records.push({ kind: 'tool_call', iteration, payload: { tool, args, call_id } })
  }
  return records
}

/** Without a spread: V8 would keep a hidden class for each object, as long as the object lives. */
function turnPayload(
  { turns }: RunState,
  heard: readonly string[],
  text: string,
  stop: ModelTurn['stop'],
): EventPayloads['model_turn'] {
  const turn = turns + 1
  return heard.length > 0 ? { turn, heard, text, stop } : { turn, text, stop }
}

function mistakeRecord(
  state: RunState,
  iteration: number,
  error: ModelError,
  model: string,
  heard: readonly string[],
): RecordDraft {
  return {
    kind: 'model_turn',
    iteration,
    payload: turnPayload(state, heard, '', 'other'),
    private: mistakePart(error, model),
  }
}

/** What stands in place of a turn that could not be read. */
export function mistakePart(
  error: ModelError,
  model: string,
): NonNullable<PrivatePart<'model_turn'>['private']> {
  return {
    message: { role: 'assistant', text: '(this turn could not be read)', calls: [] },
    feedback: mistakeFeedback(model, clip(error.message, MISTAKE_CHARACTERS)),
  }
}
