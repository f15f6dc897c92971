/**
 * Builds a {@link ModelTurn} from a decoded answer: the steps that all providers share.
 *
 * @module
 */
import type { ModelRequest, ModelTurn, StopReason, ToolCall } from '../model.js'
import type { CallUsage } from '../usage.js'
import { parseArguments } from './tool-arguments.js'
import { ToolNames } from './tool-names.js'

/** A tool call as the provider sent it. */
export interface RawCall {
  /** Empty when the provider sent none. */
  readonly id: string
  readonly name: string
  /** An object, JSON text, or nothing. */
  readonly arguments: unknown
}

/** A decoded answer whose calls are not yet checked. */
export interface TurnDraft {
  readonly text: string
  readonly reasoning: string
  readonly calls: readonly RawCall[]
  readonly usage: CallUsage
  readonly stop: StopReason
  /** The provider's own parts, sent back with the next request. */
  readonly parts: { readonly format: string; readonly value: unknown }
}

/**
 * Builds the turn. Whether tools are wanted depends on the calls in it, not on the provider's stop
 * reason. Every call of a turn that was cut off at the output limit gets an error, so that none of
 * them runs. A turn that a content filter cut off is over: it has no calls.
 */
export function buildTurn(draft: TurnDraft, request: ModelRequest): ModelTurn {
  const names = new ToolNames(request)
  const ids = new CallIds(request)
  if (draft.stop === 'content_filter' && draft.calls.length > 0) {
    // Without the provider's parts, which have the calls too.
    const message = { role: 'assistant', text: draft.text, calls: [] } as const
    return { message, reasoning: draft.reasoning, usage: draft.usage, stop: draft.stop }
  }
  const cutOff = draft.stop === 'length' ? truncationError(draft.usage.output_tokens) : null
  const calls = draft.calls.map((raw): ToolCall => {
    const { args, error } = parseArguments(raw.arguments)
    const problem =
      cutOff ?? (raw.name === '' ? 'the call names no tool; call one by its name' : error)
    const call = { call_id: ids.take(raw.id), tool: names.fromWire(raw.name) }
    return problem === null ? { ...call, args } : { ...call, args: {}, error: problem }
  })
  return {
    message: { role: 'assistant', text: draft.text, calls, parts: draft.parts },
    reasoning: draft.reasoning,
    usage: draft.usage,
    stop: stopReason(draft.stop, calls.length > 0),
  }
}

function stopReason(given: StopReason, hasCalls: boolean): StopReason {
  if (hasCalls && given === 'end') return 'tool_calls'
  return !hasCalls && given === 'tool_calls' ? 'end' : given
}

function truncationError(outputTokens: number): string {
  const where = outputTokens > 0 ? `after ${outputTokens} tokens` : 'at its limit'
  return (
    `your answer was cut off ${where}, which is the most that one answer may have, so no call in ` +
    'it was run. Send smaller calls: write a long file in several steps.'
  )
}

/**
 * Assigns ids that are unique within the run. A provider's id is kept when it looks random and is
 * not taken; otherwise the id is derived from the turn's position, so a request always gets the
 * same ids.
 */
class CallIds {
  readonly #taken = new Set<string>()
  readonly #prefix: string
  #count = 0

  constructor({ run, messages }: ModelRequest) {
    this.#prefix = `call_${run.iteration}_${run.turn}`
    for (const message of messages) {
      if (message.role === 'assistant')
        for (const call of message.calls) this.#taken.add(call.call_id)
    }
  }

  take(provided: string): string {
    this.#count += 1
    let id = provided
    // Short or counted ids (`0`, `call_1`, `functions.bash:0`) recur in later turns.
    if (!/^[a-zA-Z0-9_-]{9,64}$/.test(id) || this.#taken.has(id))
      id = `${this.#prefix}_${this.#count}`
    for (let n = 2; this.#taken.has(id); n++) id = `${this.#prefix}_${this.#count}_${n}`
    this.#taken.add(id)
    return id
  }
}
