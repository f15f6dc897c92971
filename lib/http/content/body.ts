import { fstatSync, readSync } from 'node:fs'
import { InvalidBodyError, StreamConsumedError } from '../errors.js'
import { paramPairs, type ParamsInit } from '../url.js'

/** One piece of a streamed body; strings are sent as UTF-8. */
export type BodyChunk = string | Uint8Array | ArrayBuffer

/** What `content` may be. A function is called for each sending, so that it can be replayed. */
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

/** The octets of a request body and how they may be sent. */
export interface Body {
  /** All octets, when they are at hand without reading a stream. */
  readonly bytes: Uint8Array | null
  /** Their number, or null when it is not known before they are read. */
  readonly length: number | null
  /** Content-Type to send unless the request has one. */
  readonly contentType: string | null
  /** Whether {@link Body.open} may be called more than once. */
  readonly replayable: boolean
  /**
   * Begins a sending.
   *
   * @throws {@link StreamConsumedError} when the body can be read once only and has been.
   */
  open(): Iterable<Uint8Array> | AsyncIterable<Uint8Array>
}

const encoder = new TextEncoder()

/** One chunk as octets. @throws {@link InvalidBodyError} for anything else. */
export function toBytes(chunk: unknown): Uint8Array {
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

/** A body whose octets are all at hand. */
export function bytesBody(bytes: Uint8Array, contentType: string | null = null): Body {
  return { bytes, length: bytes.byteLength, contentType, replayable: true, open: () => [bytes] }
}

/** `content` as a body. @throws {@link InvalidBodyError} when it is none of the accepted kinds. */
export function contentBody(content: BodyContent): Body {
  if (typeof content === 'string')
    return bytesBody(Buffer.from(content), 'text/plain; charset=utf-8')
  if (
    content instanceof Uint8Array ||
    content instanceof ArrayBuffer ||
    ArrayBuffer.isView(content)
  ) {
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
      throw new InvalidBodyError(`content must not be ${describe(content)}; give it as data`)
    }
    if (Symbol.asyncIterator in content || Symbol.iterator in content) return streamBody(content)
  }
  throw new InvalidBodyError(
    'content must be a string, bytes, a Blob, an open file, an iterable or async iterable of them, a stream, or ' +
      `a function returning one of these, got ${describe(content)}; use json or data for objects`,
  )
}

/** The octets of a Blob. */
export class BlobChunks implements AsyncIterable<Uint8Array> {
  readonly blob: Blob

  constructor(blob: Blob) {
    this.blob = blob
  }

  [Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    return asyncChunks(this.blob.stream() as unknown as AsyncIterable<BodyChunk>)
  }
}

/** Several sources, one after the other, of which some have to be waited for. */
export class ChunkSequence implements AsyncIterable<Uint8Array> {
  readonly sources: readonly (Iterable<Uint8Array> | AsyncIterable<Uint8Array>)[]

  constructor(sources: readonly (Iterable<Uint8Array> | AsyncIterable<Uint8Array>)[]) {
    this.sources = sources
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for (const source of this.sources) yield* source
  }
}

/** A body read from a Blob, whose size is known and which can be read again. */
function blobBody(blob: Blob): Body {
  return {
    bytes: null,
    length: blob.size,
    contentType: blob.type === '' ? null : blob.type,
    replayable: true,
    open: () => new BlobChunks(blob),
  }
}

/** A stream of a file has a descriptor as well, but reads by itself. */
function isFile(content: object): content is FileLike {
  return 'fd' in content && typeof content.fd === 'number' && !(Symbol.asyncIterator in content)
}

/** Octets of a file that are read at a time. */
const FILE_CHUNK = 256 * 1024

/**
 * A body read from an open file, from its start and up to the size that it has now. It is read by
 * position, so that both clients can send it, and again.
 */
function fileBody(file: FileLike): Body {
  const length = fstatSync(file.fd).size
  return {
    bytes: null,
    length,
    contentType: null,
    replayable: true,
    open: () => fileChunks(file.fd, length),
  }
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

/** A body that is asked for anew at each sending. */
function factoryBody(factory: () => BodyContent): Body {
  return {
    bytes: null,
    length: null,
    contentType: null,
    replayable: true,
    open: () => contentBody(factory()).open(),
  }
}

/** A body that can be sent once, unless it is an array. */
function streamBody(source: Iterable<BodyChunk> | AsyncIterable<BodyChunk>): Body {
  const replayable = Array.isArray(source)
  let opened = false
  return {
    bytes: null,
    length: null,
    contentType: null,
    replayable,
    open() {
      if (opened && !replayable) {
        throw new StreamConsumedError(
          'the request body is a stream that was sent already and cannot be sent again; give a ' +
            'function that returns a new stream each time, or bytes',
        )
      }
      opened = true
      return chunksOf(source)
    },
  }
}

function chunksOf(
  source: Iterable<BodyChunk> | AsyncIterable<BodyChunk>,
): Iterable<Uint8Array> | AsyncIterable<Uint8Array> {
  return Symbol.asyncIterator in source ? asyncChunks(source) : syncChunks(source)
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

/** Whether a body's chunks come by promise, which a blocking client cannot wait for. */
export function isAsyncChunks(
  chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): chunks is AsyncIterable<Uint8Array> {
  return Symbol.asyncIterator in chunks
}

/**
 * Lets the source of a body that is not sent to its end clean up. What that throws is of no use to
 * anyone. A generator that is running, since it has itself ended the call, is told once it paused.
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
        // It has ended, with an error of its own.
      }
    })
  }
}

/** `data` as a form (application/x-www-form-urlencoded). */
export function formBody(data: ParamsInit): Body {
  const text = new URLSearchParams(paramPairs(data, 'data')).toString()
  return bytesBody(Buffer.from(text), 'application/x-www-form-urlencoded')
}

/**
 * `value` as compact JSON. What JSON cannot carry is refused instead of being changed in silence:
 * NaN, Infinity, undefined, functions, symbols, BigInt and cycles.
 *
 * @throws {@link InvalidBodyError} naming the place, as in `json.items[2].price is NaN`.
 */
export function jsonBody(value: unknown): Body {
  const path = findUnjsonable(value, 'json', [])
  if (path !== null) throw new InvalidBodyError(path)
  return bytesBody(Buffer.from(JSON.stringify(value)), 'application/json')
}

function findUnjsonable(value: unknown, at: string, above: unknown[]): string | null {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return null
    case 'number':
      return Number.isFinite(value) ? null : `${at} is ${value}, which JSON cannot carry`
    case 'bigint':
      return `${at} is a BigInt, which JSON cannot carry; send it as a string or a number`
    case 'undefined':
      return `${at} is undefined; leave the key out, or use null`
    case 'function':
    case 'symbol':
      return `${at} is a ${typeof value}, which JSON cannot carry`
    default:
      return value === null ? null : findInObject(value as object, at, above)
  }
}

function findInObject(value: object, at: string, above: unknown[]): string | null {
  if (above.includes(value)) return `${at} contains itself, which JSON cannot carry`
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    return findUnjsonable(value.toJSON(''), at, [...above, value])
  }
  if (value instanceof Number || value instanceof String || value instanceof Boolean) {
    return findUnjsonable(value.valueOf(), at, above)
  }
  above.push(value)
  let found: string | null = null
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length && found === null; i++) {
      const item: unknown = value[i]
      if (typeof item !== 'string') found = findUnjsonable(item, '', above)
      if (found !== null) found = `${at}[${i}]${found}`
    }
  } else {
    for (const key of Object.keys(value)) {
      const item = (value as Record<string, unknown>)[key]
      if (typeof item !== 'string') found = findUnjsonable(item, '', above)
      if (found !== null) {
        found = `${at}.${key}${found}`
        break
      }
    }
  }
  above.pop()
  return found
}
