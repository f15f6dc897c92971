/**
 * What one call over HTTP has used when it fails: what its provider has told, and for the rest an
 * estimate, because providers charge for what they have read and written before a connection broke.
 *
 * @module
 */
import { estimateConversation, estimateTokens } from '../conversation/fit.js'
import type { ModelRequest, ModelTurn } from '../model.js'
import { NO_USAGE, type CallUsage } from '../usage.js'
import type { StreamDecoder } from './adapter.js'

/** Follows one call. Asked only when it fails: a call that is answered costs nothing here. */
export class CallMeter {
  /** Reads the answer, if it is streamed. */
  decoder: Pick<StreamDecoder, 'isCounted' | 'received' | 'usage'> | null = null
  /** Bytes of an answer that is not streamed, announced or received. */
  #answerBytes = 0
  #isSent = false
  readonly #request: ModelRequest

  constructor(request: ModelRequest) {
    this.#request = request
  }

  /** The request is with the provider, which reads it whatever becomes of the connection. */
  sent(): void {
    this.#isSent = true
  }

  /** The provider told that it did not answer, or its whole answer has been read. */
  settle(): void {
    this.#isSent = false
  }

  downloaded(received: number, announced: number | null): void {
    this.#answerBytes = Math.max(received, announced ?? 0)
  }

  /** Has anything of an answer come? */
  get isAnswered(): boolean {
    const { received, usage } = this.decoder ?? { received: 0, usage: NO_USAGE }
    return received + usage.input_tokens + usage.output_tokens > 0
  }

  /** Null when nothing is charged. */
  used(): CallUsage | null {
    if (!this.#isSent) return null
    const { decoder } = this
    const told = decoder?.usage ?? NO_USAGE
    if (decoder?.isCounted === true) return told
    const input = told.input_tokens > 0 ? told.input_tokens : estimateInput(this.#request)
    const length = decoder?.received ?? this.#answerBytes
    const output = Math.max(told.output_tokens, tokensOf(length))
    const estimated_tokens = input + output - told.input_tokens - told.output_tokens
    return { ...told, input_tokens: input, output_tokens: output, estimated_tokens }
  }
}

/** What a whole answer has used. What its provider has not counted is estimated. */
export function usageOf(turn: ModelTurn, request: ModelRequest): CallUsage {
  const { message, reasoning, usage } = turn
  const isCounted = usage.input_tokens > 0 && usage.output_tokens > 0
  if (isCounted || usage.cost_usd !== undefined) return usage
  const written = message.calls.reduce(
    (sum, { tool, args }) => sum + tool.length + JSON.stringify(args).length,
    message.text.length + reasoning.length,
  )
  const input = usage.input_tokens > 0 ? usage.input_tokens : estimateInput(request)
  const output = usage.output_tokens > 0 ? usage.output_tokens : tokensOf(written)
  const estimated_tokens = input + output - usage.input_tokens - usage.output_tokens
  if (estimated_tokens === 0) return usage
  return { ...usage, input_tokens: input, output_tokens: output, estimated_tokens }
}

function estimateInput({ system, tools, messages }: ModelRequest): number {
  const text = tools.length === 0 ? system : system + JSON.stringify(tools)
  return estimateTokens({ role: 'user', text }) + estimateConversation(messages)
}

/** As `estimateTokens` counts, without what is around a message. */
function tokensOf(characters: number): number {
  return Math.ceil(characters / 3)
}
