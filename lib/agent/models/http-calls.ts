/**
 * Calls of a model over HTTP: one exchange of `runwright/http` around the encoding and decoding of
 * an adapter. Loaded with the first call, because the HTTP client is a fifth of the code.
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
import { parseJson } from '../../internal/json.js'
import { trimEndOf } from '../../internal/text.js'
import { LATE, within } from '../../internal/time.js'
import { ModelError } from '../errors.js'
import type { ModelRequest, ModelTurn, TraceContext } from '../model.js'
import type { ModelAdapter, WireRequest } from './adapter.js'
import { type CallMeter, usageOf } from './call-meter.js'
import {
  protocolError,
  providerError,
  redactSecrets,
  withUsage,
  type WireContext,
} from './provider-errors.js'

const MAX_ANSWER_BYTES = 64 * 1024 * 1024

/** How long to wait for the end of a stream whose answer is complete. */
const DRAIN_MS = 100

/** Settings that all calls of one model share. */
export interface HttpCallTerms {
  readonly adapter: ModelAdapter
  readonly context: WireContext
  readonly baseUrl: URL
  readonly headers: Readonly<Record<string, string>>
  /** Names of headers that no error or log may show. */
  readonly secretHeaders: readonly string[]
  readonly streamed: boolean
  readonly idleMs: number
  readonly totalMs: number
  readonly transport: AsyncTransport | undefined
}

/** The connections of one model. */
export class HttpCalls {
  readonly #terms: HttpCallTerms
  readonly #client: AsyncClient

  constructor(terms: HttpCallTerms) {
    const { idleMs, totalMs, secretHeaders, transport } = terms
    this.#terms = terms
    this.#client = new AsyncClient({
      timeout: {
        connect: Math.min(idleMs, 30_000), read: idleMs, write: idleMs, pool: idleMs,
        total: totalMs,
      },
      limits: { maxConnections: null, keepaliveExpiry: 30_000 },
      maxResponseBytes: MAX_ANSWER_BYTES,
      sensitiveHeaders: secretHeaders,
      ...(transport !== undefined && { transport }),
    })
  }

  async call(request: ModelRequest, wire: WireRequest, meter: CallMeter): Promise<ModelTurn> {
    const { signal } = request
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
    return protocolError(`the answer could not be read: ${message}`, false, this.#terms.context)
  }

  /** Closes the connections. Calls in progress fail. */
  close(): Promise<void> {
    return this.#client.close()
  }

  #send(
    wire: WireRequest,
    { signal, trace }: ModelRequest,
    meter: CallMeter,
  ): Promise<AsyncResponse> {
    const url = new URL(this.#terms.baseUrl)
    url.pathname = trimEndOf(url.pathname, '/') + wire.path
    for (const [name, value] of Object.entries(wire.params)) url.searchParams.set(name, value)
    const streamed = this.#terms.streamed
    return this.#client.stream('POST', url, {
      content: encodeJson(wire.body),
      headers: {
        'content-type': 'application/json',
        accept: streamed ? 'text/event-stream, application/json' : 'application/json',
        ...(trace !== undefined && traceHeaders(trace)),
        ...wire.headers,
        ...this.#terms.headers,
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
    if (body !== undefined) return this.#terms.adapter.decode(body, request, this.#terms.context)
    // Some servers send a stream with the wrong content type.
    if (/^\s*(?:data|event|id)?:/.test(response.text)) {
      const decoder = this.#terms.adapter.decodeStream(request, this.#terms.context)
      meter.sent()
      meter.decoder = decoder
      const events = new SseParser().feed(`${response.text}\n\n`)
      for (const event of events) if (!decoder.done) emitDelta(request, decoder.push(event))
      return decoder.finish()
    }
    if (response.text.trim() === '')
      throw protocolError('the answer is empty', true, this.#terms.context)
    const kind = type === '' ? 'something' : type
    throw protocolError(
      `the answer is ${kind} and not JSON; is the base URL right?`,
      false,
      this.#terms.context,
    )
  }

  async #readStream(
    response: AsyncResponse,
    request: ModelRequest,
    meter: CallMeter,
  ): Promise<ModelTurn> {
    const decoder = this.#terms.adapter.decodeStream(request, this.#terms.context)
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
    return providerError(failure, this.#terms.context)
  }

  /** Converts a transport error; most are retryable. */
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
    const { model, secrets } = this.#terms.context
    const message = redactSecrets(`${model}: ${error.message}`, secrets)
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

/** True if the provider reported a failure, or never processed the request. */
function isRefusal(error: unknown): boolean {
  if (error instanceof RefusedStreamError) return true
  return error instanceof ModelError && error.code !== 'ERR_AGENT_MODEL_PROTOCOL'
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

function isCertificateProblem(error: Error): boolean {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const code = 'code' in at ? String(at.code) : ''
    if (/^(?:CERT_|ERR_TLS_CERT|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_(?:VERIFY|GET))/.test(code))
      return true
  }
  return false
}
