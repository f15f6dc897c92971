/**
 * The seam between the wire formats of providers, which are pure, and `http-model.ts`, which does
 * the HTTP exchange for all of them.
 *
 * @module
 */
import type { JsonObject } from '../../internal/json.js'
import type { ModelRequest, ModelSettings, ModelTurn, RefusedSetting } from '../model.js'
import type { CallUsage, ModelPrices } from '../usage.js'
import type { WireContext } from './provider-errors.js'

/** One request, complete except for the key. */
export interface WireRequest {
  /** Appended to the path of the base URL; begins with a slash. */
  readonly path: string
  readonly params: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  readonly body: JsonObject
  /** True when the model is held to the schema of a result, which a provider may find too large. */
  readonly isHeld?: boolean
}

/** Puts one streamed answer together; used for a single answer. */
export interface StreamDecoder {
  /**
   * Takes one event and returns the visible text that it adds.
   *
   * @throws `ModelError` when the event reports an error.
   */
  push(event: { readonly event: string; readonly data: string }): string
  /** True once the answer is complete; further events are not pushed. */
  readonly done: boolean
  /** Tokens that the provider has reported so far. */
  readonly usage: CallUsage
  /** True once the provider has counted the whole answer: what comes later costs no more. */
  readonly isCounted: boolean
  /** Characters of the answer so far: text, thoughts and arguments of calls. */
  readonly received: number
  /** Returns the turn. @throws `ModelError` when the stream ended before its answer did. */
  finish(): ModelTurn
}

/** The wire format of a provider. All methods are pure. */
export interface ModelAdapter {
  /** Prefix of the default name of a model, before the colon. */
  readonly provider: string
  /** Used when the host gives no `baseUrl`. */
  readonly defaultBaseUrl: string
  /** List price of a model, given how this adapter calls it; null when it is not known. */
  prices(model: string): ModelPrices | null
  /**
   * Which of these settings of a run the model does not take, given how this adapter calls it; null
   * for none.
   */
  refusedSetting(settings: ModelSettings, model: string): RefusedSetting | null
  /** Headers that carry the key; not called without one. */
  authHeaders(apiKey: string): Readonly<Record<string, string>>
  /** Translates a request into the provider's form. */
  encode(request: ModelRequest, options: WireOptions): WireRequest
  /** Reads an answer that was not streamed. @throws `ModelError` when it is not a valid answer. */
  decode(body: unknown, request: ModelRequest, context: WireContext): ModelTurn
  /** Creates the decoder for one streamed answer. */
  decodeStream(request: ModelRequest, context: WireContext): StreamDecoder
}

/** Settings of a request besides the conversation. */
export interface WireOptions {
  /** The provider's own name for the model. */
  readonly model: string
  readonly stream: boolean
  /** Maximum tokens of one answer; undefined means the provider's default, where it has one. */
  readonly maxOutputTokens?: number | undefined
  /** Sampling temperature; not sent to models known to refuse it. */
  readonly temperature?: number | undefined
  /** How much a reasoning model should think, as one of the provider's own values. */
  readonly reasoningEffort?: string | undefined
  /** Further fields of the request body; they override the fields that the adapter sets. */
  readonly extraBody?: JsonObject | undefined
}
