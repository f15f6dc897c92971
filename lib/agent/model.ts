/**
 * The seam to language models. An implementation turns one {@link ModelRequest} into one
 * {@link ModelTurn}; retries, budgets and logging belong to the engine.
 *
 * @module
 */
import type { JsonObject } from '../internal/json.js'
import type { JsonSchema } from './schema.js'
import type { TraceContext } from './tracing/trace-context.js'
import type { ModelPrices, Usage } from './usage.js'

/** A tool call as the model asked for it. */
export interface ToolCall {
  /** Unique within the run; adapters mint one when the provider sends none. */
  readonly call_id: string
  readonly tool: string
  readonly args: JsonObject
  /** Set when the arguments could not be read (cut off, not JSON): told to the model, never run. */
  readonly error?: string
}

/** What a person, the goal or the engine told the model. */
export interface UserMessage {
  readonly role: 'user'
  readonly text: string
}

/** One turn of the model, as it must be sent back to it. */
export interface AssistantMessage {
  readonly role: 'assistant'
  readonly text: string
  readonly calls: readonly ToolCall[]
  /**
   * The provider's own parts (thinking blocks, signatures, encrypted reasoning), kept verbatim and
   * sent back unchanged by the adapter that made them. `format` names that adapter; another
   * adapter rebuilds the turn from `text` and `calls`.
   */
  readonly parts?: { readonly format: string; readonly value: unknown }
}

/** The outcome of one tool call, in the order of the calls of the assistant message before it. */
export interface ToolMessage {
  readonly role: 'tool'
  readonly call_id: string
  readonly tool: string
  readonly output: string
  readonly exit_code: number
}

/** One entry of the conversation. Each call of an assistant message is followed by its result. */
export type Message = UserMessage | AssistantMessage | ToolMessage

/** A tool as it is offered to the model. */
export interface ToolSpec {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
}

/**
 * Whether tools are to be called: as the model likes, not at all, any of them, or the one named.
 * Servers that know no such demand ignore it, so that an answer is always looked at.
 */
export type ToolChoice = 'auto' | 'none' | 'required' | { readonly tool: string }

/** What one model call gets. */
export interface ModelRequest {
  /** Sent first on every call, also after the conversation was shortened. */
  readonly system: string
  readonly messages: readonly Message[]
  readonly tools: readonly ToolSpec[]
  /** @defaultValue 'auto' */
  readonly toolChoice?: ToolChoice | undefined
  /** Ends the call; the promise then rejects with the signal's reason. */
  readonly signal: AbortSignal
  /** Called with each piece of visible text while it streams; adapters that cannot stream don't. */
  readonly onDelta?: (text: string) => void
  /** The trace that the call belongs to: sent along by models that are reached over HTTP. */
  readonly trace?: TraceContext | undefined
  /** The frozen facts of the run, for models that are programs and for adapters' metadata. */
  readonly run: {
    readonly run_id: string
    readonly iteration: number
    /** Turns already taken in this iteration. */
    readonly turn: number
    readonly goal: string
    /** The command that checks the goal; null when there is none. */
    readonly check: string | null
    readonly cwd: string
  }
}

/** Why the model stopped. Whether tools are wanted is told by `message.calls`, never by this. */
export type StopReason = 'end' | 'tool_calls' | 'length' | 'refusal' | 'other'

/** What one model call gave. */
export interface ModelTurn {
  readonly message: AssistantMessage
  /** Reasoning that the provider lets us see; empty when none. */
  readonly reasoning: string
  readonly usage: Usage
  readonly stop: StopReason
}

/** One language model, or a program that stands in its place. */
export interface Model {
  /** What run details show, for example `openai:gpt-5-mini` or `builtin:repair`. */
  readonly name: string
  /** False for programs that are no language model; the service says so wherever it is shown. */
  readonly isLanguageModel: boolean
  /** Tokens that fit into one request, or null when there is no such bound. */
  readonly contextWindow: number | null
  /** Null when the price is not known. */
  readonly prices: ModelPrices | null
  /**
   * Makes one call.
   *
   * The same request gives a program model the same turn, so that a recovered run goes on where it
   * stopped: all state is in `request.messages`, an instance may only cache.
   *
   * @throws `ModelError` when no usable answer came.
   */
  complete(request: ModelRequest): Promise<ModelTurn>
}
