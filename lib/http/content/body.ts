import { fstatSync, ReadStream, readSync, type Stats, statSync } from 'node:fs'
import { InvalidBodyError, StreamConsumedError } from '../errors.js'
import { paramPairs, type ParamsInit } from '../url.js'

/** One piece of a streamed body; strings are sent as UTF-8. */
export type BodyChunk = string | Uint8Array | ArrayBuffer

/** The `content` option. A function is called each time the body is sent, so it can be replayed. */
export type BodyContent =
  | FileLike
  | string
  | Uint8Array
  | ArrayBuffer
  | Blob
  | Iterable<BodyChunk>
  | AsyncIterable<BodyChunk>
  | (() => BodyContent)

/** An open file: a `FileHandle`, or anything else with a file descriptor. Its caller closes it. */
export interface FileLike {
  readonly fd: number
}

/** A request body and how it can be sent. */
export interface Body {
  /** The whole body; null if it must be read from a stream. */
  readonly bytes: Uint8Array | null
  /** Length in bytes; null if it is unknown before reading. */
  readonly length: number | null
  /** Content-Type to send unless the request sets one. */
  readonly contentType: string | null
  /** Whether {@link Body.open} may be called more than once. */
  readonly replayable: boolean
  /**
   * The chunks to send, from the start of the body.
   *
   * @throws {@link StreamConsumedError} when the body is a stream that was opened before.
   */
  open(): Iterable<Uint8Array> | AsyncIterable<Uint8Array>
}

const encoder = new TextEncoder()

/** A body that is read when it is sent. */
function streamedBody(body: Partial<Body> & Pick<Body, 'open'>): Body {
  return { bytes: null, length: null, contentType: null, replayable: true, ...body }
}

/** A chunk as bytes. @throws {@link InvalidBodyError} unless it is a string or bytes. */
function toBytes(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk
  if (typeof chunk === 'string') return encoder.encode(chunk)
  if (chunk instanceof ArrayBuffer) return new Uint8Array(chunk)
  if (ArrayBuffer.isView(chunk)) {
    return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  }
  throw new InvalidBodyError(`a body chunk must be a string or bytes, got ${describe(chunk)}`)
}

function describe(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value !== 'object') return typeof value
  return value.constructor?.name ?? 'object'
}

/** A body that is in memory. */
export function bytesBody(bytes: Uint8Array, contentType: string | null = null): Body {
  const length = bytes.byteLength
  return { bytes, length, contentType, replayable: true, open: () => (length === 0 ? [] : [bytes]) }
}

/** `content` as a body. @throws {@link InvalidBodyError} for an unsupported type. */
export function contentBody(content: BodyContent): Body {
  if (typeof content === 'string') {
    return bytesBody(Buffer.from(content), 'text/plain; charset=utf-8')
  }
  if (content instanceof ArrayBuffer || ArrayBuffer.isView(content)) {
    return bytesBody(toBytes(content))
  }
  if (typeof content === 'function') return factoryBody(content)
  if (content instanceof Blob) return blobBody(content)
  if (typeof content === 'object' && content !== null) {
    if (isFile(content)) return fileBody(content)
    if (
      content instanceof URLSearchParams ||
      Object.prototype.toString.call(content) === '[object FormData]'
    ) {
      throw new InvalidBodyError(`content must not be a ${describe(content)}; pass it as data`)
    }
    if (Symbol.asyncIterator in content || Symbol.iterator in content) return streamBody(content)
  }
  throw new InvalidBodyError(
    'content must be a string, bytes, a Blob, an open file, a stream, an iterable or async ' +
      'iterable of strings or bytes, or a function that returns one of these, ' +
      `got ${describe(content)}; use json or data for objects`,
  )
}

/** The chunks of a Blob, which a blocking client recognises by class and reads on its worker. */
export class BlobChunks implements AsyncIterable<Uint8Array> {
  readonly blob: Blob

  constructor(blob: Blob) {
    this.blob = blob
  }

  [Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    return asyncChunks(this.blob.stream() as unknown as AsyncIterable<BodyChunk>)
  }
}

/** Sources read in turn, some of them asynchronous; a blocking client converts each. */
export class ChunkSequence implements AsyncIterable<Uint8Array> {
  readonly sources: readonly (Iterable<Uint8Array> | AsyncIterable<Uint8Array>)[]

  constructor(sources: readonly (Iterable<Uint8Array> | AsyncIterable<Uint8Array>)[]) {
    this.sources = sources
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for (const source of this.sources) yield* source
  }
}

function blobBody(blob: Blob): Body {
  const contentType = blob.type === '' ? null : blob.type
  return streamedBody({ length: blob.size, contentType, open: () => new BlobChunks(blob) })
}

/** A file stream has a descriptor too, but is read as a stream. */
function isFile(content: object): content is FileLike {
  return 'fd' in content && typeof content.fd === 'number' && !(Symbol.asyncIterator in content)
}

/** Bytes of a file per read. */
const FILE_CHUNK = 256 * 1024

/**
 * A body read from an open file, from its start up to its present size. It is read synchronously,
 * for both clients, and by position, so that it can be replayed.
 */
function fileBody(file: FileLike): Body {
  const length = fileLength(file.fd)
  return streamedBody({ length, open: () => fileChunks(file.fd, length ?? Infinity) })
}

function* fileChunks(fd: number, length: number): Generator<Uint8Array, void, undefined> {
  for (let at = 0; at < length; ) {
    const chunk = Buffer.allocUnsafe(Math.min(FILE_CHUNK, length - at))
    const read = readSync(fd, chunk, 0, chunk.length, at)
    if (read === 0) return
    at += read
    yield chunk.subarray(0, read)
  }
}

/** A body that `factory` makes each time it is sent. */
function factoryBody(factory: () => BodyContent): Body {
  return streamedBody({ open: () => contentBody(factory()).open() })
}

/** A body that can be sent only once, unless it is an array. */
function streamBody(source: Iterable<BodyChunk> | AsyncIterable<BodyChunk>): Body {
  const replayable = Array.isArray(source)
  const length = fileStreamLength(source)
  // A stream that fails before it is read throws its error then, instead of ending the process.
  if ('on' in source && typeof source.on === 'function') source.on('error', () => {})
  let opened = false
  return streamedBody({
    length,
    replayable,
    open() {
      if (opened && !replayable) {
        throw new StreamConsumedError(
          'the request body is a stream that was sent already and cannot be sent again; pass ' +
            'bytes, or a function that returns a new stream each time',
        )
      }
      opened = true
      if (!(Symbol.asyncIterator in source)) return syncChunks(source)
      return length === null ? asyncChunks(source) : upTo(length, asyncChunks(source))
    },
  })
}

function* syncChunks(source: Iterable<BodyChunk>): Generator<Uint8Array, void, undefined> {
  for (const chunk of source) {
    const bytes = toBytes(chunk)
    if (bytes.byteLength > 0) yield bytes
  }
}

async function* asyncChunks(
  source: AsyncIterable<BodyChunk>,
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of source) {
    const bytes = toBytes(chunk)
    if (bytes.byteLength > 0) yield bytes
  }
}

/** The first bytes of `chunks`: a file may have grown since its length was declared. */
async function* upTo(
  length: number,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  let left = length
  for await (const chunk of chunks) {
    yield chunk.byteLength <= left ? chunk : chunk.subarray(0, left)
    left -= chunk.byteLength
    if (left <= 0) return
  }
}

/** Whether the chunks of a body are asynchronous, which a blocking client cannot wait for. */
export function isAsyncChunks(
  chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): chunks is AsyncIterable<Uint8Array> {
  return Symbol.asyncIterator in chunks
}

/**
 * Lets the source of a partially sent body clean up; its errors are ignored. If the source is a
 * generator that is running, because it aborted the call itself, this happens once it pauses.
 */
export function abandonChunks(
  iterator: Iterator<Uint8Array> | AsyncIterator<Uint8Array> | null,
): void {
  if (iterator?.return === undefined) return
  const end = (): void => void Promise.resolve(iterator.return!()).catch(() => {})
  try {
    end()
  } catch {
    queueMicrotask(() => {
      try {
        end()
      } catch {
        // The generator threw while cleaning up.
      }
    })
  }
}

/** `data` as application/x-www-form-urlencoded (WHATWG URL, section 5.2); space becomes `+`. */
export function formBody(data: ParamsInit): Body {
  const text = new URLSearchParams(paramPairs(data, 'data')).toString()
  return bytesBody(Buffer.from(text), 'application/x-www-form-urlencoded')
}

/**
 * The present size of an open file; null for one whose size says nothing, as of /proc.
 *
 * @throws {@link InvalidBodyError} when it is a pipe, a socket, a device or a folder.
 */
function fileLength(fd: number): number | null {
  const stats = fstatSync(fd)
  if (!stats.isFile()) {
    throw new InvalidBodyError(
      'an open file that is sent must be a regular file; for a pipe or a device pass a stream, ' +
        'such as createReadStream("", { fd })',
    )
  }
  return stats.size > 0 || readSync(fd, Buffer.alloc(1), 0, 1, 0) === 0 ? stats.size : null
}

/**
 * How many bytes a stream of createReadStream() will give, by the present size of its file and its
 * `start` and `end`; null for other streams, and where that is not known.
 */
function fileStreamLength(source: object): number | null {
  if (!(source instanceof ReadStream) || source.readableEncoding !== null) return null
  const stats = statsOf(source as OpenStream)
  if (stats === null || !stats.isFile() || stats.size === 0) return null
  const { start, end } = source as OpenStream
  const given = source.bytesRead - source.readableLength
  const length = Math.min((end ?? Infinity) + 1, stats.size) - (start ?? 0) - given
  return length > 0 ? length : null
}

/** What createReadStream() returns, with the properties that its type leaves out. */
interface OpenStream extends ReadStream {
  readonly fd: number | null
  readonly start: number | undefined
  readonly end: number | undefined
}

function statsOf({ fd, path, start }: OpenStream): Stats | null {
  try {
    // A descriptor without a path was opened by the caller, who may have read from it.
    if (fd !== null) return start === undefined && !path ? null : fstatSync(fd)
    return statSync(path)
  } catch {
    // The stream itself fails with the reason.
    return null
  }
}
