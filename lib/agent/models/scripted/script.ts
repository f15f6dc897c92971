/**
 * Scripted turns of a model. The number of turns in the conversation selects the next one, so a
 * scripted model is stateless and a recovered run continues where it stopped.
 *
 * @module
 */
import type { JsonObject } from '../../../internal/json.js'
import { checkOptions, type OptionKinds } from '../../../internal/options.js'
import { ModelError, type ModelErrorCode } from '../../errors.js'
import { turnsIn } from '../../conversation/compaction.js'
import type { ModelRequest, ModelTurn, StopReason, ToolCall } from '../../model.js'
import { NO_USAGE, type Usage } from '../../usage.js'

/** A tool call of a scripted turn. */
export interface ScriptedCall {
  readonly tool: string
  readonly args?: JsonObject | undefined
  /** @defaultValue derived from the indexes of the turn and the call */
  readonly call_id?: string | undefined
  /** Makes this a call whose arguments could not be read, for example because they were cut off. */
  readonly error?: string | undefined
}

/** The error of a model call that fails. */
export interface ScriptedError {
  /** @defaultValue 'ERR_AGENT_MODEL' */
  readonly code?: ModelErrorCode | undefined
  readonly message?: string | undefined
  /** @defaultValue false */
  readonly retryable?: boolean | undefined
  /** Milliseconds that the provider asks to wait before a retry. */
  readonly retry_after_ms?: number | undefined
  /** Marks the model's own mistake, which the engine passes on to it. @defaultValue false */
  readonly model_mistake?: boolean | undefined
  /** Fail this often, then answer; counted per run, in this process. @defaultValue always */
  readonly times?: number | undefined
}

/** Conditions on the request; `…_contains` takes one text, or a list of which all must occur. */
export interface ScriptedExpectation {
  readonly messages_at_least?: number | undefined
  readonly iteration?: number | undefined
  readonly turn?: number | undefined
  readonly system_contains?: string | readonly string[] | undefined
  readonly last_user_contains?: string | readonly string[] | undefined
  readonly last_tool_result_contains?: string | readonly string[] | undefined
  readonly last_tool_exit_code?: number | undefined
  /** Number of tool results since the last turn. */
  readonly tool_results?: number | undefined
  /** Names of tools that must be offered. */
  readonly tools_include?: readonly string[] | undefined
}

/** One turn of a script. An empty object is a turn without text and calls. */
export interface ScriptedTurn {
  readonly text?: string | undefined
  readonly reasoning?: string | undefined
  readonly calls?: readonly ScriptedCall[] | undefined
  readonly usage?: Partial<Usage> | undefined
  /** @defaultValue 'tool_calls' with calls, 'end' without */
  readonly stop?: StopReason | undefined
  /** Milliseconds to wait before the answer or the error. */
  readonly delay_ms?: number | undefined
  /** Fails instead of answering. */
  readonly error?: ScriptedError | undefined
  /** Checked before anything else; when it does not hold, the call fails and is not retried. */
  readonly expect?: ScriptedExpectation | undefined
}

const TURN: OptionKinds<ScriptedTurn> = {
  text: 'string', reasoning: 'string', calls: 'array', usage: 'object', stop: 'string',
  delay_ms: 'number', error: 'object', expect: 'object',
}
const CALL: OptionKinds<ScriptedCall> = {
  tool: 'string! the name of a tool', args: 'object', call_id: 'string', error: 'string',
}
const ERROR: OptionKinds<ScriptedError> = {
  code: 'string', message: 'string', retryable: 'boolean', retry_after_ms: 'number',
  model_mistake: 'boolean', times: 'number',
}
const EXPECTATION: OptionKinds<ScriptedExpectation> = {
  messages_at_least: 'number', iteration: 'number', turn: 'number', system_contains: 'any',
  last_user_contains: 'any', last_tool_result_contains: 'any', last_tool_exit_code: 'number',
  tool_results: 'number', tools_include: 'array',
}
const USAGE: OptionKinds<Partial<Usage>> = {
  input_tokens: 'number', output_tokens: 'number', cached_tokens: 'number',
  reasoning_tokens: 'number',
}

/** @throws TypeError that names what is wrong with a turn of a script in code, which is at `at`. */
export function checkTurnOptions(turn: ScriptedTurn, at: string): void {
  checkOptions(turn, TURN, at)
  const { calls = [], usage = {}, error = {}, expect = {} } = turn
  for (const [i, call] of calls.entries()) checkOptions(call, CALL, `${at}.calls[${i}]`)
  checkOptions(usage, USAGE, `${at}.usage`)
  checkOptions(error, ERROR, `${at}.error`)
  checkOptions(expect, EXPECTATION, `${at}.expect`)
}

/** Index of the scripted turn that answers a request. */
export function turnIndex(request: Pick<ModelRequest, 'messages'>): number {
  return request.messages.reduce((count, message) => count + turnsIn(message), 0)
}

/**
 * Checks that a turn exists and that its expectation holds.
 *
 * @param turn - the script's turn at `index`.
 * @throws `ModelError` (not retryable) when the script has ended, or that names the condition that
 * does not hold.
 */
export function checkScriptedTurn(
  turn: ScriptedTurn | undefined,
  index: number,
  scriptLength: number,
  request: ModelRequest,
  name: string,
): ScriptedTurn {
  if (turn === undefined) {
    throw failure(
      `${name}: the script has ${scriptLength} turns, and turn ${index + 1} was asked for`,
    )
  }
  const problem = turn.expect === undefined ? null : unmet(turn.expect, request)
  if (problem !== null) throw failure(`${name}: turn ${index + 1} expected ${problem}`)
  return turn
}

function failure(message: string): ModelError {
  return new ModelError('ERR_AGENT_MODEL', message, { retryable: false })
}

/** The answer that a scripted turn describes. */
export function buildScriptedTurn(turn: ScriptedTurn, index: number): ModelTurn {
  const calls = (turn.calls ?? []).map((call, i): ToolCall => ({
    call_id: call.call_id ?? `call_${index + 1}_${i + 1}`,
    tool: call.tool,
    args: call.error === undefined ? (call.args ?? {}) : {},
    ...(call.error !== undefined && { error: call.error }),
  }))
  return {
    message: { role: 'assistant', text: turn.text ?? '', calls },
    reasoning: turn.reasoning ?? '',
    usage: { ...NO_USAGE, ...turn.usage },
    stop: turn.stop ?? (calls.length > 0 ? 'tool_calls' : 'end'),
  }
}

/** The error that a scripted turn describes. */
export function scriptedError(error: ScriptedError, name: string): ModelError {
  return new ModelError(
    error.code ?? 'ERR_AGENT_MODEL',
    error.message ?? `${name}: scripted failure`,
    {
      retryable: error.retryable ?? false,
      modelMistake: error.model_mistake ?? false,
      ...(error.retry_after_ms !== undefined && { retryAfterMs: error.retry_after_ms }),
    },
  )
}

/** The condition that does not hold, with the actual value; null when all hold. */
function unmet(expected: ScriptedExpectation, request: ModelRequest): string | null {
  const { messages, run, system, tools } = request
  const lastTurn = messages.findLastIndex(({ role }) => role === 'assistant')
  const results = messages.slice(lastTurn + 1).filter(({ role }) => role === 'tool')
  const lastUser = messages.findLast((message) => message.role === 'user')
  const lastResult = messages.findLast((message) => message.role === 'tool')
  const output = lastResult?.output ?? null
  const offered = new Set(tools.map((tool) => tool.name))
  const absent = expected.tools_include?.filter((tool) => !offered.has(tool)) ?? []
  if (messages.length < (expected.messages_at_least ?? 0)) {
    return `at least ${expected.messages_at_least} messages, got ${messages.length}`
  }
  if (absent.length > 0)
    return `the tools ${absent.join(', ')}, offered are ${[...offered].join(', ') || 'none'}`
  return (
    differs('iteration', expected.iteration, run.iteration) ??
    differs('turn', expected.turn, run.turn) ??
    differs('tool_results', expected.tool_results, results.length) ??
    differs('last_tool_exit_code', expected.last_tool_exit_code, lastResult?.exit_code ?? null) ??
    lacks('the system prompt', expected.system_contains, system) ??
    lacks('the last user message', expected.last_user_contains, lastUser?.text ?? null) ??
    lacks('the last tool result', expected.last_tool_result_contains, output)
  )
}

function differs(what: string, expected: number | undefined, actual: number | null): string | null {
  return expected === undefined || expected === actual
    ? null
    : `${what} ${expected}, got ${actual ?? 'none'}`
}

function lacks(
  what: string,
  parts: string | readonly string[] | undefined,
  actual: string | null,
): string | null {
  const list = parts === undefined ? [] : typeof parts === 'string' ? [parts] : parts
  const missing = list.find((part) => actual === null || !actual.includes(part))
  if (missing === undefined) return null
  const is = actual === null ? 'there is none' : `it is ${JSON.stringify(clip(actual))}`
  return `${what} to contain ${JSON.stringify(missing)}, but ${is}`
}

function clip(text: string): string {
  return text.length <= 300 ? text : `${text.slice(0, 150)}…${text.slice(-150)}`
}
