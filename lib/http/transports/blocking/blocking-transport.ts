import { abandonChunks } from '../../content/body.js'
import { DEFAULT_TIMEOUTS } from '../../config.js'
import { totalTimeout } from '../../deadline.js'
import type { Coding } from '../../content/decoders.js'
import { ClientStateError, StreamClosedError, WorkerError } from '../../errors.js'
import { Headers } from '../../headers.js'
import type { Request } from '../../request.js'
import { blockingChunks } from './request-body.js'
import { decodeTimings } from '../../timings.js'
import { resolveTls } from '../../tls.js'
import type { SyncByteStream, Transport, TransportResponse } from '../base.js'
import { sharedChannel, type WorkerChannel } from './worker-channel.js'
import { decodeError, type FromWorker, type WireRequest } from './protocol.js'
import { HttpTransport, type HttpTransportOptions } from '../http-transport.js'
import type { ProxyInit } from '../proxy/proxy.js'

type Head = Extract<FromWorker, { t: 'head' }>

let lastTransport = 0

/**
 * The transport of `Client`: {@link HttpTransport} on a worker thread, for which the calling thread
 * sleeps. Its options must be data, since they cross to the worker.
 */
export class BlockingTransport implements Transport {
  readonly #options: HttpTransportOptions
  readonly #number: number = ++lastTransport
  #host: WorkerChannel | null = null
  #closed = false

  constructor(options: HttpTransportOptions = {}) {
    // Files and the environment are read here, where the caller's are.
    const settled = { ...options, tls: options.tls ?? resolveTls(options) }
    // Wrong options are found now, and not by the worker.
    void new HttpTransport(settled)
    this.#options = structuredClone({ ...settled, proxy: plainProxy(options.proxy) })
  }

  handleRequest(request: Request): TransportResponse<SyncByteStream> {
    if (this.#closed) throw new ClientStateError('the transport is closed')
    request.signal?.throwIfAborted()
    const exchange = new BlockingExchange(this.#openHost(), request)
    return exchange.begin(this.#number)
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    if (this.#host?.alive === true) this.#host.post({ t: 'shut', transport: this.#number })
  }

  #openHost(): WorkerChannel {
    const host = sharedChannel()
    if (host !== this.#host) {
      host.post({ t: 'open', transport: this.#number, options: this.#options })
      this.#host = host
    }
    return host
  }
}

/** One exchange with the worker, from the caller's side. */
class BlockingExchange implements SyncByteStream {
  readonly #host: WorkerChannel
  readonly #id: number
  readonly #request: Request
  readonly #trailers = new Headers()
  #upload: Iterator<Uint8Array> | null = null
  #ready: Uint8Array[] = []
  #received = 0
  #state: 'open' | 'ended' | 'closed' = 'open'
  #sent = 0

  constructor(host: WorkerChannel, request: Request) {
    this.#host = host
    this.#id = host.begin()
    this.#request = request
  }

  begin(transport: number): TransportResponse<SyncByteStream> {
    try {
      this.#host.post({
        t: 'request',
        id: this.#id,
        transport,
        request: wireRequest(this.#request),
      })
      for (;;) {
        const message = this.#next()
        if (message.t === 'head') return this.#answer(message)
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
        this.#take(this.#next())
      }
    } finally {
      this.close()
    }
  }

  close(): void {
    if (this.#state === 'open') this.#host.post({ t: 'close', id: this.#id })
    if (this.#state !== 'ended') this.#state = 'closed'
    this.#host.forget(this.#id)
    abandonChunks(this.#upload)
    this.#upload = null
  }

  #answer(head: Head): TransportResponse<SyncByteStream> {
    const { onUpload } = this.#request.extensions
    const length = this.#request.body?.bytes?.byteLength
    if (onUpload !== undefined && length !== undefined) onUpload(length, length)
    this.#ready = head.chunks
    if (head.end !== null) this.#ended(head.end)
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

  #take(message: FromWorker): void {
    if (message.t === 'end') this.#ended(message.trailers)
    else if (message.t === 'data') {
      this.#ready.push(message.chunk)
      this.#received += message.chunk.byteLength
      if (this.#received >= 512 * 1024) {
        this.#received = 0
        this.#host.post({ t: 'more', id: this.#id })
      }
    }
  }

  #ended(trailers: string[]): void {
    for (let i = 0; i < trailers.length; i += 2)
      this.#trailers.append(trailers[i]!, trailers[i + 1]!)
    this.#state = 'ended'
    this.close()
  }

  /** The next message that is for the caller; what the worker asks meanwhile is answered here. */
  #next(): Exclude<FromWorker, { t: 'pull' | 'error' | 'information' }> {
    const { signal, deadlineAt } = this.#request
    for (;;) {
      signal?.throwIfAborted()
      const message = this.#host.receive(this.#id, deadlineAt)
      if (message === null) {
        throw totalTimeout((this.#request.timeouts ?? DEFAULT_TIMEOUTS).total ?? 0, this.#hint())
      }
      if (message.t === 'pull') this.#give(message.restart)
      else if (message.t === 'information') {
        this.#request.extensions.onInformation?.(
          message.statusCode,
          Headers.fromWire(message.headers),
        )
      } else if (message.t === 'error') {
        this.#state = 'closed'
        throw decodeError(message.error, this.#hint())
      } else return message
    }
  }

  /** Hands the worker the next piece of the upload, made on this thread. */
  #give(restart: boolean): void {
    if (restart || this.#upload === null) {
      abandonChunks(this.#upload)
      this.#sent = 0
      this.#upload = blockingChunks(this.#request.body!.open())[Symbol.iterator]()
    }
    const next = this.#upload.next()
    if (next.done === true) {
      this.#upload = null
      this.#host.post({ t: 'chunk', id: this.#id, chunk: null })
      return
    }
    const chunk = new Uint8Array(next.value)
    this.#sent += chunk.byteLength
    this.#host.post({ t: 'chunk', id: this.#id, chunk }, [chunk.buffer])
    this.#request.extensions.onUpload?.(this.#sent, this.#request.body!.length)
  }

  /** Why a time limit may have passed: nothing on this thread could run. */
  #hint(): string {
    const { hostname } = this.#request.url
    const local = /^(localhost|.*\.localhost|127\.[0-9.]+|\[::1\]|0\.0\.0\.0)$/.test(hostname)
    if (!local) return ''
    return (
      '; if that server runs on the thread that called Client, it could not answer, since the ' +
      'thread sleeps during the call: use AsyncClient, or run the server in another thread or process'
    )
  }
}

/** A proxy as data: instances of URL and Headers do not cross to the worker. */
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

/** A view of a larger buffer is copied, or the whole buffer would be. */
function tight(bytes: Uint8Array | null): Uint8Array | null {
  if (bytes === null || bytes.byteLength === bytes.buffer.byteLength) return bytes
  return new Uint8Array(bytes)
}

const NOTHING = new Uint8Array(0)

/** Undoes one content coding chunk by chunk on the worker, which can wait where this thread cannot. */
export function* inflateSync(
  source: Iterable<Uint8Array>,
  coding: Coding,
): Generator<Uint8Array, void, undefined> {
  const host = sharedChannel()
  const id = host.begin()
  try {
    for (const chunk of source) yield* inflated(host, id, coding, new Uint8Array(chunk))
    yield* inflated(host, id, coding, null)
  } finally {
    host.forget(id)
    if (host.alive) host.post({ t: 'close', id })
  }
}

function* inflated(
  host: WorkerChannel,
  id: number,
  coding: Coding,
  chunk: Uint8Array<ArrayBuffer> | null,
): Generator<Uint8Array, void, undefined> {
  let input = chunk
  for (;;) {
    host.post({ t: 'inflate', id, coding, chunk: input }, input === null ? [] : [input.buffer])
    const message = host.receive(id, null)
    if (message?.t === 'error') throw decodeError(message.error)
    if (message?.t !== 'inflated') throw new WorkerError('the worker answered out of turn')
    yield* message.chunks
    if (!message.more) return
    if (input !== null) input = NOTHING.slice()
  }
}
