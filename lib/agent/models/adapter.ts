/**
 * The seam between the wire formats of providers, which are pure, and the one driver that speaks
 * HTTP (`http-model.ts`).
 *
 * @module
 */
import type { JsonObject } from '../../internal/json.js'
import type { ModelRequest, ModelTurn } from '../model.js'
import type { ModelPrices, Usage } from '../usage.js'
import type { WireContext } from './provider-errors.js'

/** One request, ready for the wire but for the key. */
export interface WireRequest {
  /** Appended to the base URL. */
  readonly path: string
  readonly params: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  readonly body: JsonObject
}

/** Reads one streamed answer. */
export interface StreamDecoder {
  /**
   * Takes one event and returns the visible text that it adds.
   *
   * @throws `ModelError` for an error inside the stream.
   */
  push(event: { readonly event: string; readonly data: string }): string
  /** True once nothing more is needed. */
  readonly done: boolean
  /** Tokens that the answer is said to have used so far. */
  readonly usage: Usage
  /** The turn. @throws `ModelError` when the stream ended before its answer did. */
  finish(): ModelTurn
}

/** One wire format. All methods are pure. */
export interface ModelAdapter {
  /** The provider's id in the names of models that are not given another name. */
  readonly provider: string
  /** Where requests go unless the host says otherwise. */
  readonly defaultBaseUrl: string
  /** What the provider itself charges for a model as it is called here, or null. */
  prices(model: string): ModelPrices | null
  /** Headers that carry the key. */
  authHeaders(apiKey: string): Readonly<Record<string, string>>
  /** The request in the provider's form. */
  encode(request: ModelRequest, options: WireOptions): WireRequest
  /** Reads a whole answer. @throws `ModelError` when it is none. */
  decode(body: unknown, request: ModelRequest, context: WireContext): ModelTurn
  /** A decoder for one streamed answer. */
  decodeStream(request: ModelRequest, context: WireContext): StreamDecoder
}

/** What an adapter needs to know besides the conversation. */
export interface WireOptions {
  /** The provider's own name of the model. */
  readonly model: string
  readonly stream: boolean
  /** Tokens of one answer at most; undefined leaves it to the provider, where it may be left. */
  readonly maxOutputTokens?: number | undefined
  /** Sampling temperature; never sent to models that refuse it. */
  readonly temperature?: number | undefined
  /** How much a reasoning model is to think, in the provider's own words. */
  readonly reasoningEffort?: string | undefined
  /** Further fields of the request's body, as the provider documents them; they win. */
  readonly extraBody?: JsonObject | undefined
}
