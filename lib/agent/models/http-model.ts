/**
 * The model behind every HTTP provider: one exchange of `runwright/http` around the pure encoding
 * and decoding of an adapter.
 *
 * @module
 */
import {
  AsyncClient,
  DecodingError,
  HttpError,
  LocalProtocolError,
  RefusedStreamError,
  ResponseTooLargeError,
  SseParser,
  TotalTimeoutError,
  UnsupportedProtocolError,
  type AsyncResponse,
  type AsyncTransport,
} from '../../http/index.js'
import { asError } from '../../internal/errors.js'
import { checkOptions, type OptionKinds } from '../../internal/options.js'
import { parseJson } from '../../internal/json.js'
import { LATE, within } from '../../internal/time.js'
import { trimEndOf } from '../../internal/text.js'
import { ModelError } from '../errors.js'
import type {
  Model, ModelRequest, ModelSettings, ModelTurn, RefusedSetting, TraceContext,
} from '../model.js'
import { checkPrices, type ModelPrices } from '../usage.js'
import { addEndpoint } from '../redaction/given.js'
import type { ModelAdapter, WireOptions, WireRequest } from './adapter.js'
import { CallMeter, usageOf } from './call-meter.js'
import { knownContextWindow, takesImages } from './known-models.js'
import {
  protocolError,
  providerError,
  redactSecrets,
  withUsage,
  type WireContext,
} from './provider-errors.js'
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

const MAX_ANSWER_BYTES = 64 * 1024 * 1024

/** How long to wait for the end of a stream whose answer is complete. */
const DRAIN_MS = 100

/** A language model that is reached over HTTP. The caller that creates it closes it. */
export class HttpModel implements Model, AsyncDisposable {
  readonly name: string
  readonly isLanguageModel = true
  readonly contextWindow: number | null
  readonly prices: ModelPrices | null
  readonly takesImages: boolean
  readonly #adapter: ModelAdapter
  readonly #options: HttpModelOptions
  readonly #baseUrl: URL
  readonly #client: AsyncClient
  readonly #headers: Readonly<Record<string, string>>
  readonly #context: WireContext

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
    this.#baseUrl = checkedUrl(options.baseUrl ?? adapter.defaultBaseUrl)
    // Another server may charge a different price for a model of the same name.
    const isProviders = this.#baseUrl.host === new URL(adapter.defaultBaseUrl).host
    this.prices =
      options.prices === undefined && isProviders
        ? adapter.prices(options.model)
        : (options.prices ?? null)
    this.takesImages = options.images ?? takesImages(options.model)
    this.#adapter = adapter
    this.#options = { ...options }
    const custom = options.headers ?? {}
    const secretNames = Object.keys(custom).filter((name) => /key|token|secret|auth/i.test(name))
    this.#headers = { ...keyHeaders(adapter, options.apiKey), ...custom }
    addEndpoint(options)
    this.#context = {
      model: this.name,
      secrets: [options.apiKey ?? '', ...secretNames.map((name) => custom[name] ?? '')].filter(
        (key) => key !== '',
      ),
    }
    const idle = checkedMs(
      'idleTimeoutMs',
      options.idleTimeoutMs ?? (options.stream === false ? 600_000 : 90_000),
    )
    const total = checkedMs('totalTimeoutMs', options.totalTimeoutMs ?? 1_800_000)
    this.#client = new AsyncClient({
      timeout: { connect: Math.min(idle, 30_000), read: idle, write: idle, pool: idle, total },
      limits: { maxConnections: null, keepaliveExpiry: 30_000 },
      maxResponseBytes: MAX_ANSWER_BYTES,
      sensitiveHeaders: secretNames,
      ...(options.transport !== undefined && { transport: options.transport }),
    })
  }

  refusedSetting(settings: ModelSettings): RefusedSetting | null {
    return this.#adapter.refusedSetting(settings, this.#options.model)
  }

  async complete(request: ModelRequest): Promise<ModelTurn> {
    request.signal.throwIfAborted()
    const wire = this.#encode(request)
    try {
      return await this.#exchange(request, wire)
    } catch (error) {
      if (wire.isHeld !== true || !isRefusedRequest(error)) throw error
      // Not every schema is one to which a provider can hold its model.
      const { result: _, ...plain } = request
      return await this.#exchange(plain, this.#encode(plain))
    }
  }

  #encode(request: ModelRequest): WireRequest {
    const options = { ...this.#options, stream: this.#options.stream !== false }
    return this.#adapter.encode(request, withSettings(options, request.settings))
  }

  async #exchange(request: ModelRequest, wire: WireRequest): Promise<ModelTurn> {
    const { signal } = request
    const meter = new CallMeter(request)
    request.onUsage?.(() => meter.used())
    try {
      const response = await this.#send(wire, request, meter)
      try {
        const turn = await this.#read(response, request, meter)
        const usage = usageOf(turn, request)
        return usage === turn.usage ? turn : { ...turn, usage }
      } finally {
        await response.close()
      }
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (isRefusal(error) && !meter.isAnswered) meter.settle()
      throw withUsage(this.#failure(error), meter.used())
    }
  }

  #failure(error: unknown): ModelError {
    if (error instanceof ModelError) return error
    if (error instanceof HttpError) return this.#transportError(error)
    // Whatever an answer does to its adapter, it is the answer of a provider.
    const { message } = asError(error)
    return protocolError(`the answer could not be read: ${message}`, false, this.#context)
  }

  /** Closes the connections. Calls in progress fail. */
  close(): Promise<void> {
    return this.#client.close()
  }

  /** For `await using`: calls `close()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #send(
    wire: WireRequest,
    { signal, trace }: ModelRequest,
    meter: CallMeter,
  ): Promise<AsyncResponse> {
    const url = new URL(this.#baseUrl)
    url.pathname = trimEndOf(url.pathname, '/') + wire.path
    for (const [name, value] of Object.entries(wire.params)) url.searchParams.set(name, value)
    const streamed = this.#options.stream !== false
    return this.#client.stream('POST', url, {
      content: encodeJson(wire.body),
      headers: {
        'content-type': 'application/json',
        accept: streamed ? 'text/event-stream, application/json' : 'application/json',
        ...(trace !== undefined && traceHeaders(trace)),
        ...wire.headers,
        ...this.#headers,
      },
      signal,
      extensions: {
        onUpload: (sent: number, total: number | null) => {
          if (sent === total) meter.sent()
        },
        onDownload: (received: number, total: number | null) => meter.downloaded(received, total),
      },
    })
  }

  async #read(
    response: AsyncResponse,
    request: ModelRequest,
    meter: CallMeter,
  ): Promise<ModelTurn> {
    if (!response.isSuccess) {
      meter.settle()
      throw await this.#refusal(response)
    }
    meter.sent()
    const type = response.headers.get('content-type') ?? ''
    if (/^text\/event-stream\b/i.test(type)) return this.#readStream(response, request, meter)
    await response.read()
    meter.settle()
    const body = parseJson(response.text)
    if (body !== undefined) return this.#adapter.decode(body, request, this.#context)
    // Some servers send a stream with the wrong content type.
    if (/^\s*(?:data|event|id)?:/.test(response.text)) {
      const decoder = this.#adapter.decodeStream(request, this.#context)
      meter.sent()
      meter.decoder = decoder
      const events = new SseParser().feed(`${response.text}\n\n`)
      for (const event of events) if (!decoder.done) emitDelta(request, decoder.push(event))
      return decoder.finish()
    }
    if (response.text.trim() === '') throw protocolError('the answer is empty', true, this.#context)
    const kind = type === '' ? 'something' : type
    throw protocolError(
      `the answer is ${kind} and not JSON; is the base URL right?`,
      false,
      this.#context,
    )
  }

  async #readStream(
    response: AsyncResponse,
    request: ModelRequest,
    meter: CallMeter,
  ): Promise<ModelTurn> {
    const decoder = this.#adapter.decodeStream(request, this.#context)
    meter.decoder = decoder
    const parser = new SseParser()
    const chunks = response.iterBytes()
    const push = (data: Uint8Array | string): void => {
      for (const event of parser.feed(data))
        if (!decoder.done) emitDelta(request, decoder.push(event))
    }
    let received = 0
    while (!decoder.done) {
      const { value, done } = await chunks.next()
      if (done === true) break
      received += value.length
      if (received > MAX_ANSWER_BYTES) throw new ResponseTooLargeError(MAX_ANSWER_BYTES)
      push(value)
    }
    // Some servers omit the blank line that ends the last event.
    if (decoder.done) await drain(chunks)
    else push('\n\n')
    return decoder.finish()
  }

  async #refusal(response: AsyncResponse): Promise<ModelError> {
    await response.read()
    const failure = {
      status: response.statusCode,
      header: (name: string) => response.headers.get(name),
      body: parseJson(response.text) ?? response.text,
      now: Date.now(),
    }
    return providerError(failure, this.#context)
  }

  /** Errors of the connection, most of which are retryable. */
  #transportError(error: HttpError): ModelError {
    const tooLarge = error instanceof ResponseTooLargeError
    const retryable = !(
      tooLarge ||
      error instanceof TotalTimeoutError ||
      error instanceof LocalProtocolError ||
      error instanceof UnsupportedProtocolError ||
      isCertificateProblem(error)
    )
    const code =
      tooLarge || error instanceof DecodingError ? 'ERR_AGENT_MODEL_PROTOCOL' : 'ERR_AGENT_MODEL'
    const message = redactSecrets(`${this.name}: ${error.message}`, this.#context.secrets)
    return new ModelError(code, message, { retryable, cause: error })
  }
}

/** Reads to the end of the body, so that the connection can be reused. */
async function drain(chunks: AsyncGenerator<Uint8Array>): Promise<void> {
  let isLate = false
  const rest = async (): Promise<void> => {
    while (!isLate && (await chunks.next()).done !== true);
  }
  isLate = (await within(DRAIN_MS, rest().catch(() => undefined))) === LATE
}

/** Whether the provider itself says that it failed, or that it has not looked at the request. */
function isRefusal(error: unknown): boolean {
  if (error instanceof RefusedStreamError) return true
  return error instanceof ModelError && error.code !== 'ERR_AGENT_MODEL_PROTOCOL'
}

/** Has the provider refused the request for what is in it? */
function isRefusedRequest(error: unknown): boolean {
  if (!(error instanceof ModelError)) return false
  return error.code === 'ERR_AGENT_MODEL' && !error.retryable && !error.modelMistake
}

function emitDelta(request: ModelRequest, text: string): void {
  if (text !== '') request.onDelta?.(text)
}

/** Compact JSON. Lone surrogates, which providers refuse as invalid, become U+FFFD. */
export function encodeJson(value: unknown): string {
  const json = JSON.stringify(value)
  // JSON.stringify escapes lone surrogates only, and doubles each backslash of the text.
  return json.includes('\\ud')
    ? json.replace(/\\(?:ud[89a-f][0-9a-f]{2}|[^])/g, (escape) =>
        escape.startsWith('\\ud') ? '\ufffd' : escape,
      )
    : json
}

function traceHeaders({ traceparent, tracestate }: TraceContext): Record<string, string> {
  return tracestate === null ? { traceparent } : { traceparent, tracestate }
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

function isCertificateProblem(error: Error): boolean {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const code = 'code' in at ? String(at.code) : ''
    if (/^(?:CERT_|ERR_TLS_CERT|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_(?:VERIFY|GET))/.test(code))
      return true
  }
  return false
}
