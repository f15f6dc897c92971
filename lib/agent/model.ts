/**
 * The seam to language models. An implementation turns one {@link ModelRequest} into one
 * {@link ModelTurn}; retries, budgets and logging belong to the engine.
 *
 * @module
 */
import type { JsonObject } from '../internal/json.js'
import type { GoalSpec } from './goal.js'
import { imageBytes, type ImagePart } from './image-part.js'
import type { JsonSchema } from './schema.js'
import type { CallUsage, ModelPrices } from './usage.js'

export type { ImagePart }

/** Position in a trace, as HTTP headers carry it (W3C Trace Context, Level 1). */
export interface TraceContext {
  /** `00-<trace id>-<parent id>-<flags>` in lower case (section 3.2). */
  readonly traceparent: string
  /** Vendor data (section 3.3), forwarded unchanged; null when there is none. */
  readonly tracestate: string | null
}

/** A tool call as the model made it. */
export interface ToolCall {
  /** Unique within the run; adapters generate one when the provider sends none. */
  readonly call_id: string
  readonly tool: string
  readonly args: JsonObject
  /** Set when the arguments are unreadable (cut off, not JSON): the model gets it as the result. */
  readonly error?: string
}

/** Input for the model that no tool produced: the goal, a human's remark, check results. */
export interface UserMessage {
  readonly role: 'user'
  readonly text: string
  /** Seen before the text; absent for none, and for models that take none. */
  readonly images?: readonly ImagePart[]
  /**
   * Turns of the model that were left out, and in whose place this message stands: a summary of
   * them, or a notice that there is none. Absent for every other message.
   */
  readonly stands_for?: number
}

/** One turn of the model, in the form in which it is sent back to the model. */
export interface AssistantMessage {
  readonly role: 'assistant'
  readonly text: string
  readonly calls: readonly ToolCall[]
  /**
   * The provider's own parts (thinking blocks, signatures, encrypted reasoning), kept verbatim and
   * sent back unchanged by the adapter that created them. `format` names that adapter; any other
   * adapter rebuilds the turn from `text` and `calls`.
   */
  readonly parts?: { readonly format: string; readonly value: unknown }
}

/** The result of one tool call; results follow the assistant message in the order of its calls. */
export interface ToolMessage {
  readonly role: 'tool'
  readonly call_id: string
  readonly tool: string
  readonly output: string
  readonly exit_code: number
  /** Absent for none, and for models that take none. */
  readonly images?: readonly ImagePart[]
}

/**
 * The message without the provider's own parts: what a provider signed or encrypted is of no use to
 * another model, and may be refused.
 */
export function withoutParts(message: Message): Message {
  if (message.role !== 'assistant' || message.parts === undefined) return message
  const { parts: _, ...plain } = message
  return plain
}

/** The images of a message. */
export function imagesOf(message: Message): readonly ImagePart[] {
  return message.role === 'assistant' ? [] : (message.images ?? [])
}

/** The message with a text in place of its images; the same message when it has none. */
export function withoutImages(message: Message, why: string): Message {
  if (message.role === 'assistant' || message.images === undefined) return message
  const { images, ...rest } = message
  const list = images.map((one) => `${one.media_type}, ${imageBytes(one)} bytes`).join('; ')
  const note = `[${images.length === 1 ? 'an image is' : 'images are'} left out: ${list}; ${why}]`
  return rest.role === 'user'
    ? ({ ...rest, text: joined(rest.text, note) } satisfies UserMessage)
    : ({ ...rest, output: joined(rest.output, note) } satisfies ToolMessage)
}

function joined(text: string, note: string): string {
  return text === '' ? note : `${text}\n${note}`
}

/** One entry of the conversation. Each call of an assistant message is followed by its result. */
export type Message = UserMessage | AssistantMessage | ToolMessage

/** A tool as offered to the model. */
export interface ToolSpec {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
}

/**
 * Whether to call tools: as the model decides, not at all, at least one, or the named one. Some
 * servers ignore it, so callers check the turn whatever they asked for.
 */
export type ToolChoice = 'auto' | 'none' | 'required' | { readonly tool: string }

/** How much a reasoning model thinks; no model knows all of these. */
export type ReasoningEffort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'

/** What a run asks of its model; absent: as the provider or the host has it. */
export interface ModelSettings {
  /** 0 to 2; many providers take 0 to 1. */
  readonly temperature?: number
  readonly reasoning_effort?: ReasoningEffort
  /** Tokens of one answer. */
  readonly max_output_tokens?: number
}

/** A setting that a model does not take. */
export interface RefusedSetting {
  readonly setting: keyof ModelSettings
  /** For people, after the name of the setting: `cannot be set for …`. */
  readonly detail: string
}

/**
 * The input of one model call: a snapshot, which a model may keep. The engine freezes it with all
 * lists and plain objects in it, unless `NODE_ENV` is `production`.
 */
export interface ModelRequest {
  /** Sent first with every call, also after the conversation was shortened. */
  readonly system: string
  readonly messages: readonly Message[]
  readonly tools: readonly ToolSpec[]
  /** @defaultValue 'auto' */
  readonly toolChoice?: ToolChoice | undefined
  /**
   * Present when the run asks for its result. A model that can be held to a JSON Schema may answer
   * with JSON as its text, and pass over `toolChoice` and the tool that is named here. Every other
   * one calls that tool, as `toolChoice` asks, with the result as its arguments: a model that does
   * not know this field needs nothing else. The engine checks the result in any case, and asks
   * again, at most twice, with what is wrong as the last message.
   */
  readonly result?: { readonly schema: JsonSchema; readonly tool: string } | undefined
  /** Of the run; they take precedence over those of the model. Absent when it has none. */
  readonly settings?: ModelSettings | undefined
  /**
   * `summary`: the last message asks for a summary of the ones before, as text; the answer is no
   * turn of the run, and calls in it are ignored. Absent otherwise.
   */
  readonly purpose?: 'summary' | undefined
  /** Aborts the call; the promise then rejects with the signal's reason. */
  readonly signal: AbortSignal
  /** Called with each piece of visible text as it streams; never by adapters that cannot stream. */
  readonly onDelta?: (text: string) => void
  /**
   * Called by models whose calls cost something, with a function that tells what the call has used
   * so far, null for nothing: it is asked when the call is aborted. Errors have their `usage`.
   */
  readonly onUsage?: (used: () => CallUsage | null) => void
  /** The trace that the call belongs to: models called over HTTP pass it on. */
  readonly trace?: TraceContext | undefined
  /** Facts about the run, for models that are programs and for adapters' metadata. */
  readonly run: {
    readonly run_id: string
    readonly iteration: number
    /** Turns already taken in this iteration. */
    readonly turn: number
    readonly goal: string
    /** The command that checks the goal; null for a judged goal. */
    readonly check: string | null
    readonly cwd: string
    /**
     * Whether a file belongs to the check, as far as is known: a change of it makes the goal fail.
     * The path is relative to `cwd`, with slashes. Absent outside of runs.
     */
    readonly isCheckFile?: ((path: string) => boolean) | undefined
  }
}

/**
 * Why the model stopped. Only `message.calls` decides whether tools are called. A `refusal` is the
 * model's own; with `content_filter` the provider stopped it.
 */
export type StopReason = 'end' | 'tool_calls' | 'length' | 'refusal' | 'content_filter' | 'other'

/** The result of one model call. */
export interface ModelTurn {
  readonly message: AssistantMessage
  /** Reasoning that the provider exposes; empty when there is none. */
  readonly reasoning: string
  readonly usage: CallUsage
  readonly stop: StopReason
}

/** One language model, or a program in its place. */
export interface Model {
  /**
   * For example `openai:gpt-5-mini`. Runs store it, and find the model by it
   * again; if it does not lead to the model, they store the name by which they got the model.
   */
  readonly name: string
  /** False for programs, so that the service can label them wherever it shows them. */
  readonly isLanguageModel: boolean
  /** Tokens that fit into one request; null when unbounded or unknown. */
  readonly contextWindow: number | null
  /** Null when the price is unknown. */
  readonly prices: ModelPrices | null
  /** False: texts say which images it does not see. @defaultValue false */
  readonly takesImages?: boolean
  /**
   * True for a program that reads what tools answer as far as it is stored, 64 kB, and not the 16
   * kB that others get. @defaultValue false
   */
  readonly readsWholeOutputs?: boolean | undefined
  /**
   * The first of these settings that the model does not take; null when it takes all. Asked when a
   * run is created. A model without this function takes none.
   */
  refusedSetting?(settings: ModelSettings): RefusedSetting | null
  /**
   * Why the model can't reach a goal: a clause about the field `model_name`, such as `must be …`;
   * null if it may. Asked when a run is created, which is refused if none of its models can.
   * @defaultValue a model without this function may reach any goal
   *
   * @param goal null for free text that neither has a check nor is judged
   */
  refusedGoal?(goal: GoalSpec | null, request: { readonly givesResult: boolean }): string | null
  /**
   * Does it answer requests whose `purpose` is `summary`? One that does not is never asked; what
   * does not fit is left out. @defaultValue `isLanguageModel`
   */
  readonly summarizes?: boolean | undefined
  /**
   * Makes one call.
   *
   * A model that is a program returns the same turn for the same request, so that a recovered run
   * continues where it stopped: all state is in `request.messages`, and an instance may only cache.
   *
   * @throws `ModelError` when there is no usable answer.
   */
  complete(request: ModelRequest): Promise<ModelTurn>
}
