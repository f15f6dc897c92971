/**
 * Turns of a model written down beforehand. The place in the script is the number of turns that the
 * conversation already has, so that a model has no state, and a recovered run goes on where it was.
 *
 * @module
 */
import type { JsonObject } from '../../../internal/json.js'
import { ModelError, type ModelErrorCode } from '../../errors.js'
import type { ModelRequest, ModelTurn, StopReason, ToolCall, Usage } from '../../model.js'
import { NO_USAGE } from '../../model.js'

/** A tool call of a scripted turn. */
export interface ScriptedCall {
  readonly tool: string
  readonly args?: JsonObject | undefined
  /** @defaultValue made of the places of the turn and of the call */
  readonly call_id?: string | undefined
  /** Makes it a call whose arguments could not be read, for example because they were cut off. */
  readonly error?: string | undefined
}

/** A call that fails. */
export interface ScriptedError {
  /** @defaultValue 'ERR_AGENT_MODEL' */
  readonly code?: ModelErrorCode | undefined
  readonly message?: string | undefined
  /** @defaultValue false */
  readonly retryable?: boolean | undefined
  /** Milliseconds after which the provider asks to come back. */
  readonly retry_after_ms?: number | undefined
  /** The model's own mistake, which is told to it. @defaultValue false */
  readonly model_mistake?: boolean | undefined
  /** Fail this often, then give the turn; counted per run, in this process. @defaultValue always */
  readonly times?: number | undefined
}

/** What must hold of the request; a text may also be a list of texts that all must be there. */
export interface ScriptedExpectation {
  readonly messages_at_least?: number | undefined
  readonly iteration?: number | undefined
  readonly turn?: number | undefined
  readonly system_contains?: string | readonly string[] | undefined
  readonly last_user_contains?: string | readonly string[] | undefined
  readonly last_tool_result_contains?: string | readonly string[] | undefined
  readonly last_tool_exit_code?: number | undefined
  /** Results since the last turn. */
  readonly tool_results?: number | undefined
  /** Names of tools that must be offered. */
  readonly tools_include?: readonly string[] | undefined
}

/** One turn of a script. An empty object is a turn that says nothing and asks for nothing. */
export interface ScriptedTurn {
  readonly text?: string | undefined
  readonly reasoning?: string | undefined
  readonly calls?: readonly ScriptedCall[] | undefined
  readonly usage?: Partial<Usage> | undefined
  /** @defaultValue 'tool_calls' with calls, 'end' without */
  readonly stop?: StopReason | undefined
  /** Milliseconds before the answer. */
  readonly delay_ms?: number | undefined
  /** Fails in place of answering. */
  readonly error?: ScriptedError | undefined
  /** Checked before anything else. */
  readonly expect?: ScriptedExpectation | undefined
}

/** The place in the script at which a request stands. */
export function turnIndex(request: Pick<ModelRequest, 'messages'>): number {
  return request.messages.reduce((count, { role }) => count + (role === 'assistant' ? 1 : 0), 0)
}

/**
 * Checks that a turn may be played at its place.
 *
 * @param turn - what the script has at `index`.
 * @throws `ModelError` (never to be tried again) when the script is at its end or the turn expects
 * something that does not hold, saying which.
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

/** Makes the answer of a scripted turn. */
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

/** The error of a scripted turn. */
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

/** What of the expectation does not hold, and what is there instead; null when all holds. */
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
