/**
 * The worker behind `Client`: owns the sockets and the decoders, and replies by messages. It never
 * writes to stdout or stderr: those go through the caller's thread, which sleeps. What it throws,
 * `WorkerThread` reports.
 *
 * @module
 */
import { workerData } from 'node:worker_threads'
import { bytesBody, type Body } from '../../content/body.js'
import { Destination } from '../../destination.js'
import { Headers } from '../../headers.js'
import type { Request } from '../../request.js'
import { encodeTimings } from '../../timings.js'
import type { AsyncByteStream, TransportResponse } from '../base.js'
import { Inflater } from './inflater.js'
import { Mailbox } from './mailbox.js'
import {
  CONTROL,
  encodeError,
  WORKER,
  type FromWorker,
  type ToWorker,
  type WireRequest,
  type WorkerStart,
} from './protocol.js'
import { RequestSlot } from './request-slot.js'
import { HttpTransport, type HttpTransportOptions } from '../http-transport.js'
import { ResponseBody } from '../response-body.js'

const { port, control, ...memory } = workerData as WorkerStart
const mailbox = new Mailbox(control, memory.mailbox)
const slot = new RequestSlot(control, memory.slot)

/** Bytes of one response that are sent before the caller must ask for more. */
const WINDOW_BYTES = 1024 * 1024

/** What a transport reads. The class would bring the encoders of all bodies into the worker. */
type PlainRequest = Pick<
  Request,
  | 'method' | 'url' | 'destination' | 'headers' | 'extensions' | 'signal' | 'body' | 'timeouts'
  | 'deadlineAt'
>

const transports = new Map<number, HttpTransport>()
const jobs = new Map<number, Job>()
const inflaters = new Map<number, Inflater>()

function post(message: FromWorker, transfer: ArrayBuffer[] = []): void {
  port.postMessage(message, transfer)
  Atomics.add(control, CONTROL.queued, 1)
  wake()
}

/** Wakes the caller: there is a message or mail. */
function wake(): void {
  Atomics.add(control, CONTROL.posted, 1)
  Atomics.notify(control, CONTROL.posted)
}

/** The bytes of `chunk` in a buffer of their own, which can be transferred. */
function inOwnBuffer(chunk: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = chunk.byteLength === chunk.buffer.byteLength && chunk.buffer instanceof ArrayBuffer
  return whole && chunk.byteLength > 32 * 1024
    ? new Uint8Array(chunk.buffer as ArrayBuffer)
    : new Uint8Array(chunk)
}

/** Unused controllers of finished jobs: a new one for each job is costly. */
const spareControllers: AbortController[] = []

/** One request: its upload, and its response until the caller has all of it. */
class Job {
  readonly #id: number
  readonly #abort = spareControllers.pop() ?? new AbortController()
  #stream: AsyncByteStream | null = null
  #window = WINDOW_BYTES
  #onMore: (() => void) | null = null
  #onChunk: ((chunk: Uint8Array | null) => void) | null = null
  /** How often the body was begun. */
  #attempt = 0
  #closed = false

  constructor(id: number) {
    this.#id = id
  }

  async run(transport: HttpTransport, wire: WireRequest): Promise<void> {
    try {
      const response = await transport.handleRequest(this.#request(wire))
      if (this.#closed) return
      await this.#reply(response)
    } catch (error) {
      if (!this.#closed) post({ t: 'error', id: this.#id, error: encodeError(error) })
    } finally {
      jobs.delete(this.#id)
      setImmediate(awaitRequest)
      if (!this.#closed && spareControllers.length < 16) spareControllers.push(this.#abort)
    }
  }

  /** Continues the upload; null ends it. A chunk of an earlier attempt is dropped. */
  supply(chunk: Uint8Array | null, attempt: number = this.#attempt): void {
    if (attempt !== this.#attempt) return
    const resolve = this.#onChunk
    this.#onChunk = null
    resolve?.(chunk)
  }

  /** The caller has taken in what it was sent: allows another window of content. */
  more(): void {
    this.#window = WINDOW_BYTES
    this.#onMore?.()
    this.#onMore = null
  }

  close(): void {
    this.#closed = true
    this.#abort.abort(new Error('closed by the caller'))
    void this.#stream?.close?.()
    this.more()
    this.supply(null)
  }

  async #reply(response: TransportResponse): Promise<void> {
    const stream = response.stream as AsyncByteStream
    this.#stream = stream
    const ready = stream instanceof ResponseBody ? stream.takeReady() : { chunks: [], ended: false }
    const head = {
      t: 'head' as const,
      id: this.#id,
      statusCode: response.statusCode,
      reasonPhrase: response.reasonPhrase ?? '',
      httpVersion: response.httpVersion ?? 'HTTP/1.1',
      headers: response.headers.raw.flat(),
      info: response.extensions ?? {},
      timings: response.timings ? encodeTimings(response.timings) : null,
      end: ready.ended ? (response.trailers?.raw.flat() ?? []) : null,
    }
    if (mailbox.put({ ...head, chunks: ready.chunks })) {
      if (jobs.size === 1) slot.open()
      return wake()
    }
    const chunks = ready.chunks.map(inOwnBuffer)
    post({ ...head, info: { ...head.info }, chunks }, chunks.map((chunk) => chunk.buffer))
    if (ready.ended) return
    for await (const chunk of stream) {
      if (this.#closed) return
      const copy = inOwnBuffer(chunk)
      this.#window -= copy.byteLength
      post({ t: 'data', id: this.#id, chunk: copy }, [copy.buffer])
      if (this.#window <= 0) await new Promise<void>((resolve) => (this.#onMore = resolve))
    }
    if (!this.#closed)
      post({ t: 'end', id: this.#id, trailers: response.trailers?.raw.flat() ?? [] })
  }

  #request(wire: WireRequest): Request {
    const id = this.#id
    const whole = wire.body === null || wire.body === 'stream' ? null : bytesBody(wire.body)
    const body = wire.body === 'stream' ? this.#pulledBody(wire) : whole
    const extensions = {
      ...(wire.target === undefined ? {} : { target: wire.target }),
      ...(wire.sniHostname === undefined ? {} : { sniHostname: wire.sniHostname }),
      ...(wire.wantsInformation
        ? {
            onInformation: (statusCode: number, headers: Headers) =>
              post({ t: 'information', id, statusCode, headers: headers.raw.flat() }),
          }
        : {}),
    }
    const url = new URL(wire.url)
    const request: PlainRequest = {
      method: wire.method,
      url,
      destination: new Destination(url),
      headers: Headers.fromWire(wire.headers),
      extensions,
      signal: this.#abort.signal,
      body,
      timeouts: wire.timeouts,
      deadlineAt: null,
    }
    return request as Request
  }

  /** A body whose chunks are requested from the caller one by one. */
  #pulledBody(wire: WireRequest): Body {
    return {
      bytes: null,
      length: wire.bodyLength,
      contentType: null,
      replayable: wire.bodyReplayable,
      open: () => this.#pull(),
    }
  }

  async *#pull(): AsyncGenerator<Uint8Array, void, undefined> {
    // An upload that was answered early may still wait for its chunk.
    this.supply(null)
    const attempt = ++this.#attempt
    while (!this.#closed && attempt === this.#attempt) {
      const next = new Promise<Uint8Array | null>((resolve) => (this.#onChunk = resolve))
      post({ t: 'pull', id: this.#id, attempt })
      const chunk = await next
      if (chunk === null) return
      yield chunk
    }
  }
}

/** Reads a slice of a Blob for the caller, which cannot wait for a promise. */
async function readBlob({ id, blob, start, end }: Extract<ToWorker, { t: 'blob' }>): Promise<void> {
  try {
    const chunk = new Uint8Array(await blob.slice(start, end).arrayBuffer())
    post({ t: 'data', id, chunk }, [chunk.buffer])
  } catch (error) {
    post({ t: 'error', id, error: encodeError(error) })
  }
}

function handle(message: ToWorker): void {
  switch (message.t) {
    case 'open':
      transports.set(message.transport, new HttpTransport(message.options as HttpTransportOptions))
      return
    case 'shut':
      void transports.get(message.transport)?.close()
      transports.delete(message.transport)
      return
    case 'request': {
      const job = new Job(message.id)
      jobs.set(message.id, job)
      void job.run(transports.get(message.transport)!, message.request)
      return
    }
    case 'chunk':
      jobs.get(message.id)?.supply(message.chunk, message.attempt)
      return
    case 'more':
      jobs.get(message.id)?.more()
      return
    case 'close':
      jobs.get(message.id)?.close()
      inflaters.get(message.id)?.close()
      inflaters.delete(message.id)
      return
    case 'inflate': {
      let inflater = inflaters.get(message.id)
      if (inflater === undefined) {
        inflaters.set(message.id, (inflater = new Inflater(message.id, message.coding, post)))
      }
      void inflater.take(message.chunk)
      return
    }
    case 'blob':
      void readBlob(message)
      return
    case 'ping':
      // After the sockets were read, so that what had arrived is posted before.
      setImmediate(() => {
        Atomics.add(control, CONTROL.heartbeat, 1)
        wake()
      })
  }
}

/** Takes the next request, and waits a moment for it unless there is something else to do. */
function awaitRequest(): void {
  const message = slot.take(jobs.size === 0 && inflaters.size === 0)
  if (message !== null) handle(message)
}

port.on('message', (message: ToWorker | string) => {
  // A request that was left before the message was posted comes first.
  const earlier = slot.take(false)
  if (earlier !== null) handle(earlier)
  Atomics.add(control, CONTROL.handled, 1)
  handle(typeof message === 'string' ? (JSON.parse(message) as ToWorker) : message)
})
Atomics.store(control, CONTROL.state, WORKER.ready)
Atomics.notify(control, CONTROL.state)
