import { checkOptions } from '../../../internal/options.js'
import { abandonChunks } from '../../content/body.js'
import { DEFAULT_TIMEOUTS } from '../../config.js'
import { totalTimeout } from '../../deadline.js'
import { ClientStateError, StreamClosedError } from '../../errors.js'
import { Headers } from '../../headers.js'
import type { Request } from '../../request.js'
import { blockingChunks } from './request-body.js'
import { decodeTimings } from '../../timings.js'
import { resolveTls } from '../../tls.js'
import type { SyncByteStream, Transport, TransportResponse } from '../base.js'
import { sharedChannel, type WorkerChannel } from './worker-channel.js'
import { decodeError, type FromWorker, type WireRequest } from './protocol.js'
import {
  HTTP_TRANSPORT_OPTIONS,
  HttpTransport,
  type HttpTransportOptions,
} from '../http-transport.js'
import type { ProxyInit } from '../proxy/proxy.js'

type Head = Extract<FromWorker, { t: 'head' }>

/** Received bytes after which the worker may send another window. */
const CREDIT_BYTES = 512 * 1024

/**
 * Messages taken after the total time was up: what arrived in time counts, but a server that never
 * ends must not prolong the call. As a window has 1 MiB, they hold all that the kernel can have.
 */
const MAX_LATE = 256

let lastTransportId = 0

/**
 * The transport of `Client`: {@link HttpTransport} on a worker thread, while the calling thread
 * sleeps. Its options must be data that can be cloned to the worker.
 */
export class BlockingTransport implements Transport {
  readonly #options: HttpTransportOptions
  readonly #id: number = ++lastTransportId
  #channel: WorkerChannel | null = null
  #closed = false

  constructor(options: HttpTransportOptions = {}) {
    checkOptions(options, HTTP_TRANSPORT_OPTIONS, 'a transport')
    refuseLookup(options)
    // Reads files and the environment now, on the caller's thread.
    const resolved = { ...options, tls: options.tls ?? resolveTls(options) }
    // Throws on invalid options, before the worker would.
    void new HttpTransport(resolved)
    this.#options = structuredClone({ ...resolved, proxy: plainProxy(options.proxy) })
  }

  handleRequest(request: Request): TransportResponse<SyncByteStream> {
    if (this.#closed) throw new ClientStateError('the transport is closed')
    request.signal?.throwIfAborted()
    const exchange = new BlockingExchange(this.#openChannel(), request)
    return exchange.begin(this.#id)
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    if (this.#channel?.alive === true) this.#channel.post({ t: 'shut', transport: this.#id })
  }

  /** Makes sure that the present worker, which may be a new one, knows this transport. */
  #openChannel(): WorkerChannel {
    const channel = sharedChannel()
    if (channel !== this.#channel) {
      channel.post({ t: 'open', transport: this.#id, options: this.#options })
      this.#channel = channel
    }
    return channel
  }
}

/** @throws TypeError when there is a `lookup`, which the worker cannot call. */
export function refuseLookup(given: object): void {
  const options: { readonly lookup?: unknown } = given
  if (options.lookup === undefined || options.lookup === null) return
  throw new TypeError(
    'lookup cannot be used with Client, whose connections are made on another thread that cannot ' +
      'call it; use AsyncClient',
  )
}

/** The caller's side of one exchange with the worker. */
class BlockingExchange implements SyncByteStream {
  readonly #channel: WorkerChannel
  readonly #id: number
  readonly #request: Request
  readonly #trailers = new Headers()
  #upload: Iterator<Uint8Array> | null = null
  /** The attempt to which the upload belongs. */
  #attempt = 0
  /** Messages taken after the total time was up. */
  #late = 0
  /** Content that arrived and was not read yet. */
  #ready: Uint8Array[] = []
  /** Bytes received since the last message that asked for more. */
  #received = 0
  #state: 'open' | 'ended' | 'closed' = 'open'
  #sent = 0

  constructor(channel: WorkerChannel, request: Request) {
    this.#channel = channel
    this.#id = channel.begin()
    this.#request = request
  }

  begin(transport: number): TransportResponse<SyncByteStream> {
    try {
      const request = wireRequest(this.#request)
      this.#channel.post({ t: 'request', id: this.#id, transport, request })
      for (;;) {
        const message = this.#next()
        if (message.t === 'head') return this.#response(message)
      }
    } catch (error) {
      this.close()
      throw error
    }
  }

  *[Symbol.iterator](): Generator<Uint8Array, void, undefined> {
    try {
      for (;;) {
        const chunk = this.#ready.shift()
        if (chunk !== undefined) {
          yield chunk
          continue
        }
        if (this.#state === 'ended') return
        if (this.#state === 'closed') {
          throw new StreamClosedError('the response was closed while it was being read')
        }
        this.#onMessage(this.#next())
      }
    } finally {
      this.close()
    }
  }

  close(): void {
    if (this.#state === 'open') this.#channel.post({ t: 'close', id: this.#id })
    if (this.#state !== 'ended') this.#state = 'closed'
    this.#channel.forget(this.#id)
    abandonChunks(this.#upload)
    this.#upload = null
  }

  #response(head: Head): TransportResponse<SyncByteStream> {
    const { onUpload } = this.#request.extensions
    const length = this.#request.body?.bytes?.byteLength
    if (onUpload !== undefined && length !== undefined) onUpload(length, length)
    this.#ready = head.chunks
    if (head.end !== null) this.#onEnd(head.end)
    return {
      statusCode: head.statusCode,
      reasonPhrase: head.reasonPhrase,
      httpVersion: head.httpVersion,
      headers: Headers.fromWire(head.headers),
      stream: this,
      trailers: this.#trailers,
      extensions: head.info,
      timings: head.timings === null ? null : decodeTimings(head.timings),
    }
  }

  #onMessage(message: FromWorker): void {
    if (message.t === 'end') this.#onEnd(message.trailers)
    else if (message.t === 'data') {
      this.#ready.push(message.chunk)
      this.#received += message.chunk.byteLength
      if (this.#received >= CREDIT_BYTES) {
        this.#received = 0
        this.#channel.post({ t: 'more', id: this.#id })
      }
    }
  }

  #onEnd(trailers: string[]): void {
    for (let i = 0; i < trailers.length; i += 2)
      this.#trailers.append(trailers[i]!, trailers[i + 1]!)
    this.#state = 'ended'
    this.close()
  }

  /** The next part of the response. Serves upload requests and 1xx responses while it waits. */
  #next(): Exclude<FromWorker, { t: 'pull' | 'error' | 'information' }> {
    const { signal, deadlineAt } = this.#request
    const timeouts = this.#request.timeouts ?? DEFAULT_TIMEOUTS
    for (;;) {
      signal?.throwIfAborted()
      const late = deadlineAt !== null && performance.now() >= deadlineAt
      const over = late && ++this.#late > MAX_LATE
      const message = over ? null : this.#channel.receive(this.#id, deadlineAt, timeouts)
      if (message === null) throw totalTimeout(timeouts.total ?? 0, this.#hint())
      if (message.t === 'pull') this.#sendChunk(message.attempt)
      else if (message.t === 'information') {
        const headers = Headers.fromWire(message.headers)
        this.#request.extensions.onInformation?.(message.statusCode, headers)
      } else if (message.t === 'error') {
        this.#state = 'closed'
        throw decodeError(message.error, this.#hint())
      } else return message
    }
  }

  /** Sends the worker the next chunk of the body, which this thread's code produces. */
  #sendChunk(attempt: number): void {
    if (attempt !== this.#attempt) {
      abandonChunks(this.#upload)
      this.#attempt = attempt
      this.#sent = 0
      this.#upload = blockingChunks(this.#request.body!.open())[Symbol.iterator]()
    }
    const next = this.#upload!.next()
    if (next.done === true) {
      this.#upload = null
      this.#channel.post({ t: 'chunk', id: this.#id, attempt, chunk: null })
      return
    }
    const chunk = new Uint8Array(next.value)
    this.#sent += chunk.byteLength
    this.#channel.post({ t: 'chunk', id: this.#id, attempt, chunk }, [chunk.buffer])
    this.#request.extensions.onUpload?.(this.#sent, this.#request.body!.length)
  }

  /** For timeouts of local servers, which may run on the thread that sleeps; else empty. */
  #hint(): string {
    const { hostname } = this.#request.url
    const local = /^(localhost|.*\.localhost|127\.[0-9.]+|\[::1\]|0\.0\.0\.0)$/.test(hostname)
    if (!local) return ''
    return (
      '; a server that runs on the thread that called Client cannot respond, because that thread ' +
      'sleeps during the call: use AsyncClient, or run the server in another thread or process'
    )
  }
}

/** A proxy as data: instances of URL and Headers cannot be cloned to the worker. */
function plainProxy(proxy: ProxyInit | null | undefined): ProxyInit | null {
  if (proxy === null || proxy === undefined || typeof proxy === 'string') return proxy ?? null
  if (proxy instanceof URL) return proxy.href
  const { url, auth, authScheme, headers } = proxy
  return { url: String(url), auth, authScheme, headers: new Headers(headers).raw }
}

function wireRequest(request: Request): WireRequest {
  const { body, extensions } = request
  return {
    method: request.method,
    url: request.url.href,
    headers: request.headers.raw.flat(),
    target: extensions.target,
    sniHostname: extensions.sniHostname,
    timeouts: request.timeouts ?? DEFAULT_TIMEOUTS,
    body: body === null ? null : (tight(body.bytes) ?? 'stream'),
    bodyLength: body?.length ?? null,
    bodyReplayable: body?.replayable ?? true,
    wantsInformation: extensions.onInformation !== undefined,
  }
}

/** `bytes` in a buffer of its own: cloning a view would clone the whole buffer behind it. */
function tight(bytes: Uint8Array | null): Uint8Array | null {
  if (bytes === null || bytes.byteLength === bytes.buffer.byteLength) return bytes
  return new Uint8Array(bytes)
}
