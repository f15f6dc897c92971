import { ByteCollector } from '../../internal/bytes.js'
import { checkOptions, type OptionKinds } from '../../internal/options.js'
import {
  CloseError, LocalProtocolError, RecordingError, TransportError, WorkerError,
} from '../errors.js'
import { drive, driveSync, type Flow, settle } from '../flow.js'
import type { Request } from '../request.js'
import type {
  AsyncByteStream, AsyncTransport, SyncByteStream, Transport, TransportResponse,
} from '../transports/base.js'
import { BlockingTransport } from '../transports/blocking/blocking-transport.js'
import { HttpTransport } from '../transports/http-transport.js'
import {
  failureEntry, MAX_BODY_BYTES, replayed, requestEntry, responseEntry, timingsOf, tooLarge,
} from './entry.js'
import type { HarEntry, HarRequest, HarResponse } from './har.js'
import { Masker } from './masking.js'
import { comparedOf, keyOf, nearest } from './matching.js'
import { RecordingFile, type Slot } from './recording-file.js'

/** Options of {@link RecordingTransport}. */
export interface RecordingTransportOptions {
  /** Path of the HAR file. Missing folders are made. */
  readonly file: string
  /**
   * `replay` answers from the file and never uses the network; `record` sends every request and
   * replaces the file; `auto` replays what is there, and records and adds what is missing.
   *
   * @defaultValue 'auto'
   */
  readonly mode?: 'record' | 'replay' | 'auto' | undefined
  /** Sends what is recorded; closed with this one. @defaultValue the network, without options */
  readonly transport?: AsyncTransport | Transport | undefined
  /**
   * Changes an entry, secrets already masked, before it is written: in place, or by returning
   * another. It also gets each request that is looked for, with a response of status 0, so that
   * what it changes there still matches.
   */
  readonly redact?: ((entry: HarEntry) => HarEntry | void) | undefined
}

const OPTIONS: OptionKinds<RecordingTransportOptions> = {
  file: 'string! the path of a HAR file',
  mode: 'string',
  transport: 'object',
  redact: 'function',
}
const MODES = ['record', 'replay', 'auto']

/**
 * Records exchanges in an HTTP Archive (HAR 1.2), and replays them in tests, for both clients.
 *
 * A request is answered by the recording of the same method, URL and body; several such recordings
 * answer in their order, and the last one again and again. Headers do not count. Credentials,
 * cookies, and fields and query keys with secret names are masked in the file, and do not count
 * either. Content is stored decoded: a replayed response has no Content-Encoding, and is one chunk.
 * A recorded failure is thrown again, with its class.
 *
 * @example
 * ```ts
 * const transport = new RecordingTransport({ file: 'test/recordings/items.har' })
 * const client = new AsyncClient({ transport, baseUrl: 'https://api.example' })
 * ```
 */
export class RecordingTransport implements AsyncTransport, Transport {
  readonly #options: RecordingTransportOptions
  readonly #mode: string
  readonly #masker = new Masker()
  #inner: AsyncTransport | Transport | null
  #file: RecordingFile | null = null
  /** What the file held at the first request, by key. */
  #recorded: Map<string, HarEntry[]> = new Map()
  #closed = false

  /** @throws TypeError naming the invalid option. */
  constructor(options: RecordingTransportOptions) {
    checkOptions(options, OPTIONS, 'new RecordingTransport()')
    if (options.file === '') throw new TypeError('file must be the path of a HAR file, got ""')
    this.#mode = options.mode ?? 'auto'
    if (!MODES.includes(this.#mode))
      throw new TypeError(`mode must be 'record', 'replay' or 'auto', got ${this.#mode}`)
    this.#options = { ...options }
    this.#inner = options.transport ?? null
  }

  /**
   * @throws {@link RecordingError} for a request without a recording, with the nearest one, and
   *   when the file cannot be read or written.
   */
  handleRequest(request: Request): TransportResponse<SyncByteStream> & Promise<TransportResponse> {
    const flow = this.#flow(request)
    const answer: unknown = request.blocking ? driveSync(flow) : drive(flow)
    // Both interfaces share this method; `blocking` says which of them is in use.
    return answer as TransportResponse<SyncByteStream> & Promise<TransportResponse>
  }

  /** Writes what is not written yet, and closes the transport that sends. */
  close(): Promise<void> & void {
    this.#closed = true
    this.#file?.close()
    this.#file = null
    return this.#inner?.close?.() as Promise<void> & void
  }

  *#flow(request: Request): Flow<TransportResponse> {
    request.signal?.throwIfAborted()
    if (this.#closed) throw new CloseError('the RecordingTransport was closed')
    const file = (this.#file ??= this.#open())
    if (request.body !== null && request.body.bytes === null) {
      if (request.blocking) request.readSync()
      else yield* settle(request.read())
    }
    const sent = requestEntry(request, this.#masker)
    if (this.#mode !== 'record') {
      const entry = this.#find(sent)
      if (entry !== null) return replayed(entry)
      if (this.#mode === 'replay') throw this.#missing(sent, file)
    }
    return yield* this.#record(request, sent, file)
  }

  #open(): RecordingFile {
    const file = RecordingFile.open(this.#options.file, this.#mode === 'record')
    if (this.#mode === 'record') return file
    for (const entry of file.entries) {
      const key = keyOf(comparedOf(entry.request, this.#masker))
      const same = this.#recorded.get(key)
      if (same === undefined) this.#recorded.set(key, [entry])
      else same.push(entry)
    }
    return file
  }

  /** The next recording of a request; the last one stays. */
  #find(sent: HarRequest): HarEntry | null {
    const same = this.#recorded.get(keyOf(this.#compared(sent)))
    if (same === undefined) return null
    return same.length > 1 ? same.shift()! : same[0]!
  }

  #compared(sent: HarRequest): ReturnType<typeof comparedOf> {
    const { redact } = this.#options
    if (redact === undefined) return comparedOf(sent, this.#masker)
    const blank = failureEntry(new RecordingError('not sent yet'), this.#masker)
    return comparedOf(
      this.#redacted(entryOf(structuredClone(sent), blank, 0)).request,
      this.#masker,
    )
  }

  #redacted(entry: HarEntry): HarEntry {
    return this.#options.redact?.(entry) ?? entry
  }

  #missing(sent: HarRequest, file: RecordingFile): RecordingError {
    const near = nearest(this.#compared(sent), file.entries, this.#masker)
    const hint = near === null ? 'it has none at all' : `the nearest is ${near}`
    return new RecordingError(
      `${file.path} has no recording of ${sent.method} ${sent.url}; ${hint}. To add it, run once ` +
        "with mode: 'auto'",
    )
  }

  *#record(request: Request, sent: HarRequest, file: RecordingFile): Flow<TransportResponse> {
    const slot = file.reserve()
    const started = performance.now()
    const at = new Date()
    const finish = (response: HarResponse, head: TransportResponse | null): void => {
      const took = performance.now() - started
      const entry = entryOf(sent, response, took, at, head)
      this.#fill(file, slot, this.#redacted(entry))
    }
    let head: TransportResponse
    try {
      head = yield* settle<TransportResponse>(this.#sender(request).handleRequest(request))
    } catch (error) {
      if (isRecordable(error)) finish(failureEntry(error, this.#masker), null)
      throw error
    }
    const content = new ByteCollector()
    const stream = tapped(head.stream, {
      add: (chunk) => {
        content.add(chunk)
        if (content.length > MAX_BODY_BYTES) throw tooLarge('response')
      },
      end: (error) => {
        if (error !== undefined && !isRecordable(error)) return
        finish(responseEntry({ head, raw: content.take(), error }, this.#masker), head)
      },
    })
    return { ...withoutStream(head), stream }
  }

  #fill(file: RecordingFile, slot: Slot, entry: HarEntry): void {
    file.fill(slot, entry)
    // Closed in the meantime, with no other chance to write it.
    if (this.#closed) file.save()
  }

  #sender(request: Request): AsyncTransport | Transport {
    return (this.#inner ??= request.blocking ? new BlockingTransport() : new HttpTransport())
  }
}

function withoutStream(head: TransportResponse): Omit<TransportResponse, 'stream'> {
  const { statusCode, reasonPhrase, httpVersion, headers, trailers, extensions, timings } = head
  return { statusCode, reasonPhrase, httpVersion, headers, trailers, extensions, timings }
}

function entryOf(
  request: HarRequest,
  response: HarResponse,
  took: number,
  at: Date = new Date(0),
  head: TransportResponse | null = null,
): HarEntry {
  const time = Math.round(took * 1000) / 1000
  const { httpVersion } = response
  const timings = timingsOf(head?.timings ?? null, took)
  return {
    startedDateTime: at.toISOString(),
    time,
    request: { ...request, httpVersion },
    response,
    cache: {},
    timings,
  }
}

/** Whether an error came from the network or server, and not from the caller. */
function isRecordable(error: unknown): boolean {
  const ours = [LocalProtocolError, CloseError, WorkerError, RecordingError]
  return error instanceof TransportError && !ours.some((type) => error instanceof type)
}

/** Gets what passes through a stream. */
export interface Tap {
  add(chunk: Uint8Array): void
  /** Called once: at the end, when the reader stops earlier, or with the error that ended it. */
  end(error?: unknown): void
}

/** A stream with the same chunks as `stream`, which `tap` gets too; synchronous if `stream` is. */
function tapped(
  stream: SyncByteStream | AsyncByteStream,
  tap: Tap,
): SyncByteStream | AsyncByteStream {
  let ended = false
  const end = (error?: unknown): void => {
    if (ended) return
    ended = true
    tap.end(error)
  }
  return Symbol.iterator in stream
    ? {
        [Symbol.iterator]: () => syncChunks(stream, tap, end),
        close: () => {
          stream.close?.()
          end()
        },
      }
    : {
        [Symbol.asyncIterator]: () => asyncChunks(stream, tap, end),
        close: async () => {
          await stream.close?.()
          end()
        },
      }
}

function* syncChunks(
  stream: SyncByteStream,
  tap: Tap,
  end: (error?: unknown) => void,
): Generator<Uint8Array, void, undefined> {
  try {
    for (const chunk of stream) {
      tap.add(chunk)
      yield chunk
    }
  } catch (error) {
    end(error)
    throw error
  }
  end()
}

async function* asyncChunks(
  stream: AsyncByteStream,
  tap: Tap,
  end: (error?: unknown) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for await (const chunk of stream) {
      tap.add(chunk)
      yield chunk
    }
  } catch (error) {
    end(error)
    throw error
  }
  end()
}
