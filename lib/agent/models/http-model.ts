/**
 * The model behind every HTTP provider: its options, and what it asks of an adapter. The calls
 * themselves are in `http-calls.ts`.
 *
 * @module
 */
import type { AsyncTransport } from '../../http/index.js'
import { checkOptions, type OptionKinds } from '../../internal/options.js'
import { ModelError } from '../errors.js'
import type {
  Model, ModelRequest, ModelSettings, ModelTurn, RefusedSetting,
} from '../model.js'
import { checkPrices, type ModelPrices } from '../usage.js'
import { addEndpoint } from '../redaction/given.js'
import type { ModelAdapter, WireOptions, WireRequest } from './adapter.js'
import { CallMeter } from './call-meter.js'
import type { HttpCalls, HttpCallTerms } from './http-calls.js'
import { knownContextWindow, takesImages } from './known-models.js'
import { withSettings } from './settings.js'

/** Options of a model that is reached over HTTP. */
export interface HttpModelOptions extends Omit<WireOptions, 'stream'> {
  /** The model's name in run details. @defaultValue the provider's id, a colon and the model */
  readonly name?: string | undefined
  /** Sent in the provider's own header and redacted from errors; no key is sent when omitted. */
  readonly apiKey?: string | undefined
  /** Base URL of the API. @defaultValue the provider's own address */
  readonly baseUrl?: string | undefined
  /** Further headers, for example for a gateway; they override the headers set here. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Stream answers, so that a dead connection is noticed early. @defaultValue true */
  readonly stream?: boolean | undefined
  /**
   * Milliseconds without a single byte after which a call fails.
   *
   * @defaultValue 90000 for streamed answers, 600000 otherwise
   */
  readonly idleTimeoutMs?: number | undefined
  /** Milliseconds that one call may take in total. @defaultValue 1800000 */
  readonly totalTimeoutMs?: number | undefined
  /** Tokens that fit into one request. @defaultValue the known value for this model, else null */
  readonly contextWindow?: number | null | undefined
  /**
   * US dollars per million tokens.
   *
   * @defaultValue the known price of this model at the provider's own address, else null
   */
  readonly prices?: ModelPrices | null | undefined
  /** Does this model take images? @defaultValue true for models known to take them */
  readonly images?: boolean | undefined
  /** Replaces the network, for tests. */
  readonly transport?: AsyncTransport | undefined
}

/** For `checkOptions()`: the options that a provider passes on to its models. */
export const SHARED_OPTIONS: OptionKinds<Omit<HttpModelOptions, 'model' | 'name'>> = {
  apiKey: 'string', baseUrl: 'string', headers: 'object', stream: 'boolean',
  idleTimeoutMs: 'number', totalTimeoutMs: 'number', contextWindow: 'number|null',
  prices: 'object|null', transport: 'object', maxOutputTokens: 'number', temperature: 'number',
  reasoningEffort: 'string', extraBody: 'object', images: 'boolean',
}
const OPTIONS: OptionKinds<HttpModelOptions> = {
  ...SHARED_OPTIONS, name: 'string', model: 'string! the name of a model',
}

/** A language model that is reached over HTTP. The caller that creates it closes it. */
export class HttpModel implements Model, AsyncDisposable {
  readonly name: string
  readonly isLanguageModel = true
  readonly contextWindow: number | null
  readonly prices: ModelPrices | null
  readonly takesImages: boolean
  readonly #options: HttpModelOptions
  readonly #terms: HttpCallTerms
  #calls: Promise<HttpCalls> | undefined
  #isClosed = false

  /** @throws TypeError that names the invalid option. */
  constructor(adapter: ModelAdapter, options: HttpModelOptions) {
    checkOptions(options, OPTIONS, 'a model')
    checkPrices(options.prices)
    if (options.model.trim() === '') {
      throw new TypeError('model must be the name of a model, got an empty name')
    }
    this.name = options.name ?? `${adapter.provider}:${options.model}`
    this.contextWindow =
      options.contextWindow === undefined
        ? knownContextWindow(options.model)
        : options.contextWindow
    const baseUrl = checkedUrl(options.baseUrl ?? adapter.defaultBaseUrl)
    // Another server may charge a different price for a model of the same name.
    const isProviders = baseUrl.host === new URL(adapter.defaultBaseUrl).host
    this.prices =
      options.prices === undefined && isProviders
        ? adapter.prices(options.model)
        : (options.prices ?? null)
    this.takesImages = options.images ?? takesImages(options.model)
    this.#options = { ...options }
    const custom = options.headers ?? {}
    const secretHeaders = Object.keys(custom).filter((name) => /key|token|secret|auth/i.test(name))
    const headers = { ...keyHeaders(adapter, options.apiKey), ...custom }
    addEndpoint(options)
    const secrets = [options.apiKey ?? '', ...secretHeaders.map((name) => custom[name] ?? '')]
    const streamed = options.stream !== false
    this.#terms = {
      adapter,
      context: { model: this.name, secrets: secrets.filter((key) => key !== '') },
      baseUrl,
      headers,
      secretHeaders,
      streamed,
      idleMs: checkedMs('idleTimeoutMs', options.idleTimeoutMs ?? (streamed ? 90_000 : 600_000)),
      totalMs: checkedMs('totalTimeoutMs', options.totalTimeoutMs ?? 1_800_000),
      transport: options.transport,
    }
  }

  refusedSetting(settings: ModelSettings): RefusedSetting | null {
    return this.#terms.adapter.refusedSetting(settings, this.#options.model)
  }

  async complete(request: ModelRequest): Promise<ModelTurn> {
    request.signal.throwIfAborted()
    const wire = this.#encode(request)
    try {
      return await this.#call(request, wire)
    } catch (error) {
      if (wire.isHeld !== true || !isRefusedRequest(error)) throw error
      // Not every schema is one to which a provider can hold its model.
      const { result: _, ...plain } = request
      return await this.#call(plain, this.#encode(plain))
    }
  }

  #encode(request: ModelRequest): WireRequest {
    const options = { ...this.#options, stream: this.#terms.streamed }
    return this.#terms.adapter.encode(request, withSettings(options, request.settings))
  }

  async #call(request: ModelRequest, wire: WireRequest): Promise<ModelTurn> {
    const meter = new CallMeter(request)
    request.onUsage?.(() => meter.used())
    this.#calls ??= this.#open()
    return await (await this.#calls).call(request, wire, meter)
  }

  async #open(): Promise<HttpCalls> {
    const { HttpCalls } = await import('./http-calls.js')
    const calls = new HttpCalls(this.#terms)
    if (this.#isClosed) await calls.close()
    return calls
  }

  /** Closes the connections. Calls in progress fail. */
  async close(): Promise<void> {
    this.#isClosed = true
    await (await this.#calls)?.close()
  }

  /** For `await using`: calls `close()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

/** Has the provider refused the request for what is in it? */
function isRefusedRequest(error: unknown): boolean {
  if (!(error instanceof ModelError)) return false
  return error.code === 'ERR_AGENT_MODEL' && !error.retryable && !error.modelMistake
}

function keyHeaders(
  adapter: ModelAdapter,
  apiKey: string | undefined,
): Readonly<Record<string, string>> {
  if (apiKey === undefined || apiKey === '') return {}
  if (!/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new TypeError(
      `the API key for ${adapter.provider} must be visible ASCII characters, without blanks`,
    )
  }
  return adapter.authHeaders(apiKey)
}

function checkedUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new TypeError('baseUrl must be an http or https URL, such as https://api.example/v1')
  }
  return url
}

function checkedMs(name: string, value: number): number {
  if (!(value > 0))
    throw new TypeError(`${name} must be a positive number of milliseconds, got ${value}`)
  return value
}

