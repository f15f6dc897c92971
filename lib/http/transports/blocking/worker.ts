/**
 * The worker behind `Client`: owns the sockets and the decoders, and answers by message. It never
 * writes to stdout or stderr, which would go through the sleeping caller.
 *
 * @module
 */
import type { Transform } from 'node:stream'
import { workerData } from 'node:worker_threads'
import type { Body } from '../../content/body.js'
import { bytesBody } from '../../content/body.js'
import { createDecoder, type Coding } from '../../content/decoders.js'
import { DecodingError } from '../../errors.js'
import { Headers } from '../../headers.js'
import { Request } from '../../request.js'
import { encodeTimings } from '../../timings.js'
import type { AsyncByteStream, TransportResponse } from '../base.js'
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
import { HttpTransport, type HttpTransportOptions } from '../http-transport.js'
import { IncomingBody } from '../incoming-body.js'

const { port, control, mailbox: memory } = workerData as WorkerStart
const mailbox = new Mailbox(control, memory)

/** Octets of one response on their way to the caller before it has to ask for more. */
const WINDOW = 1024 * 1024
/** Octets of inflated content in one answer. */
const INFLATE_BATCH = 256 * 1024

const transports = new Map<number, HttpTransport>()
const jobs = new Map<number, Job>()
const inflaters = new Map<number, Inflater>()

function post(message: FromWorker, transfer: ArrayBuffer[] = []): void {
  port.postMessage(message, transfer)
  Atomics.add(control, CONTROL.queued, 1)
  wake()
}

/** The caller has something to read. */
function wake(): void {
  Atomics.add(control, CONTROL.posted, 1)
  Atomics.notify(control, CONTROL.posted)
}

/** The same octets in a buffer of their own, which can be handed over without another copy. */
function own(chunk: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = chunk.byteLength === chunk.buffer.byteLength && chunk.buffer instanceof ArrayBuffer
  return whole && chunk.byteLength > 32 * 1024
    ? (new Uint8Array(chunk.buffer as ArrayBuffer))
    : new Uint8Array(chunk)
}

/** Controllers whose job needed no abort; a new one for each job is costly. */
const spareControllers: AbortController[] = []

/** One request: its upload, its answer, and the content until the caller has it. */
class Job {
  readonly #id: number
  readonly #abort = spareControllers.pop() ?? new AbortController()
  #stream: AsyncByteStream | null = null
  #room = WINDOW
  #roomMade: (() => void) | null = null
  #chunkCame: ((chunk: Uint8Array | null) => void) | null = null
  #closed = false

  constructor(id: number) {
    this.#id = id
  }

  async run(transport: HttpTransport, wire: WireRequest): Promise<void> {
    try {
      const response = await transport.handleRequest(this.#request(wire))
      if (this.#closed) return
      await this.#answer(response)
    } catch (error) {
      if (!this.#closed) post({ t: 'error', id: this.#id, error: encodeError(error) })
    } finally {
      jobs.delete(this.#id)
      if (!this.#closed && spareControllers.length < 16) spareControllers.push(this.#abort)
    }
  }

  /** The next piece of the upload; null ends it. */
  give(chunk: Uint8Array | null): void {
    const take = this.#chunkCame
    this.#chunkCame = null
    take?.(chunk)
  }

  more(): void {
    this.#room = WINDOW
    this.#roomMade?.()
    this.#roomMade = null
  }

  close(): void {
    this.#closed = true
    this.#abort.abort(new Error('closed by the caller'))
    void this.#stream?.close?.()
    this.more()
    this.give(null)
  }

  async #answer(response: TransportResponse): Promise<void> {
    const stream = response.stream as AsyncByteStream
    this.#stream = stream
    const ready = stream instanceof IncomingBody ? stream.takeReady() : { chunks: [], ended: false }
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
    if (mailbox.put({ ...head, chunks: ready.chunks })) return wake()
    const chunks = ready.chunks.map(own)
    post({ ...head, info: { ...head.info }, chunks }, chunks.map((chunk) => chunk.buffer))
    if (ready.ended) return
    for await (const chunk of stream) {
      if (this.#closed) return
      const copy = own(chunk)
      this.#room -= copy.byteLength
      post({ t: 'data', id: this.#id, chunk: copy }, [copy.buffer])
      if (this.#room <= 0) await new Promise<void>((resolve) => (this.#roomMade = resolve))
    }
    if (!this.#closed)
      post({ t: 'end', id: this.#id, trailers: response.trailers?.raw.flat() ?? [] })
  }

  #request(wire: WireRequest): Request {
    const id = this.#id
    const body =
      wire.body === 'stream'
        ? this.#pulledBody(wire)
        : wire.body === null
          ? null
          : bytesBody(wire.body)
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
    const headers = Headers.fromWire(wire.headers)
    const request = Request.fromParts(wire.method, new URL(wire.url), headers, body, {
      extensions,
      signal: this.#abort.signal,
    })
    request.timeouts = wire.timeouts
    return request
  }

  /** A body whose chunks are asked of the caller one by one. */
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
    for (let restart = true; !this.#closed; restart = false) {
      const came = new Promise<Uint8Array | null>((resolve) => (this.#chunkCame = resolve))
      post({ t: 'pull', id: this.#id, restart })
      const chunk = await came
      if (chunk === null) return
      yield chunk
    }
  }
}

/** Undoes one content coding for the caller, a batch at a time, so that a bomb stays small. */
class Inflater {
  readonly #id: number
  readonly #coding: Coding
  #zlib: Transform | null = null
  #written = true
  #ended = false
  #finishing = false
  #wake: (() => void) | null = null
  #error: Error | null = null

  constructor(id: number, coding: Coding) {
    this.#id = id
    this.#coding = coding
  }

  /** Takes a chunk (empty: only asks for more output; null: the input is over) and answers. */
  async take(chunk: Uint8Array | null): Promise<void> {
    if (chunk === null) {
      if (this.#zlib === null) this.#finish([], false)
      else if (!this.#finishing) {
        this.#finishing = true
        this.#zlib.end()
      }
    } else if (chunk.byteLength > 0) {
      this.#zlib ??= this.#create(chunk)
      this.#written = false
      this.#zlib.write(chunk, () => {
        this.#written = true
        this.#wake?.()
      })
    }
    if (this.#zlib !== null) await this.#collect(this.#zlib)
  }

  close(): void {
    inflaters.delete(this.#id)
    this.#zlib?.destroy()
  }

  async #collect(stream: Transform): Promise<void> {
    const chunks: Uint8Array<ArrayBuffer>[] = []
    let length = 0
    while (this.#error === null) {
      const chunk = stream.read() as Uint8Array | null
      if (chunk !== null) {
        chunks.push(new Uint8Array(chunk))
        if ((length += chunk.byteLength) >= INFLATE_BATCH) return this.#finish(chunks, true)
        continue
      }
      if (this.#finishing ? this.#ended : this.#written) return this.#finish(chunks, false)
      await new Promise<void>((resolve) => (this.#wake = resolve))
      this.#wake = null
    }
    const message = `the content is not valid ${this.#coding}, or is cut short: ${this.#error.message}`
    post({ t: 'error', id: this.#id, error: encodeError(new DecodingError(message)) })
    this.close()
  }

  #finish(chunks: Uint8Array<ArrayBuffer>[], more: boolean): void {
    post({ t: 'inflated', id: this.#id, chunks, more }, chunks.map((chunk) => chunk.buffer))
  }

  #create(head: Uint8Array): Transform {
    const stream = createDecoder(this.#coding, head)
    stream.on('readable', () => this.#wake?.())
    stream.on('end', () => {
      this.#ended = true
      this.#wake?.()
    })
    stream.on('error', (error) => {
      this.#error = error
      this.#wake?.()
    })
    return stream
  }
}

/** Reads a piece of a Blob for the caller, who cannot wait for it. */
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
      jobs.get(message.id)?.give(message.chunk)
      return
    case 'more':
      jobs.get(message.id)?.more()
      return
    case 'close':
      jobs.get(message.id)?.close()
      inflaters.get(message.id)?.close()
      return
    case 'inflate': {
      let inflater = inflaters.get(message.id)
      if (inflater === undefined) {
        inflaters.set(message.id, (inflater = new Inflater(message.id, message.coding)))
      }
      void inflater.take(message.chunk)
      return
    }
    case 'blob':
      void readBlob(message)
      return
    case 'ping':
      Atomics.add(control, CONTROL.heartbeat, 1)
      Atomics.notify(control, CONTROL.posted)
  }
}

function enter(state: number): void {
  Atomics.store(control, CONTROL.state, state)
  Atomics.notify(control, CONTROL.state)
  Atomics.notify(control, CONTROL.posted)
}

const die = (): void => enter(WORKER.dead)

process.on('uncaughtException', () => {
  die()
  process.exit(1)
})
process.on('exit', die)
port.on('message', (message: ToWorker | string) => {
  handle(typeof message === 'string' ? (JSON.parse(message) as ToWorker) : message)
})
enter(WORKER.ready)
