import * as zlib from 'node:zlib'
import { pipeline, type Transform } from 'node:stream'
import { promisify } from 'node:util'
import { DecodingError, HttpError, ResponseTooLargeError } from '../errors.js'
import type { Headers } from '../headers.js'
import { hasZstd, ZstdDecoder, zstdDecode, zstdDecodeSync } from './zstd.js'

/** Content codings of one response at most; more is an attack, not a server. */
const MAX_CODINGS = 5
/** Compressed content up to this size is decoded in one call on the calling thread. */
const INLINE_OCTETS = 1024 * 1024

/** A content coding that this Node can undo. */
export type Coding = 'gzip' | 'deflate' | 'br' | 'zstd'
type OneShotLater = (
  input: Uint8Array,
  options: { maxOutputLength?: number },
) => Promise<Uint8Array>

/** What this Node decodes, for Accept-Encoding; zstd is offered only where it can be decoded. */
export const ACCEPT_ENCODING: string = hasZstd ? 'gzip, deflate, br, zstd' : 'gzip, deflate, br'

/**
 * The codings to undo, outermost first. Decoding stops at the first that is not known: its octets
 * are handed on as they are.
 *
 * @throws {@link DecodingError} when there are more than five.
 */
export function codingsOf(headers: Headers): readonly Coding[] {
  const value = headers.get('content-encoding')
  if (value === null) return []
  const names = value
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'identity')
  if (names.length > MAX_CODINGS) {
    throw new DecodingError(
      `the response has ${names.length} content codings; at most ${MAX_CODINGS}`,
    )
  }
  const codings: Coding[] = []
  for (const name of names.reverse()) {
    const known = knownCoding(name)
    if (known === null) break
    codings.push(known)
  }
  return codings
}

function knownCoding(name: string): Coding | null {
  if (name === 'gzip' || name === 'x-gzip') return 'gzip'
  if (name === 'deflate' || name === 'br') return name
  return name === 'zstd' && hasZstd ? 'zstd' : null
}

/** Whether "deflate" content has the zlib wrapper that RFC 9110 asks for, or is raw (RFC 1951). */
function hasZlibHeader(head: Uint8Array): boolean {
  const first = head[0] ?? 0
  return (first & 0x0f) === 8 && (head.length < 2 || ((first << 8) | head[1]!) % 31 === 0)
}

const later = {
  gunzip: promisify(zlib.gunzip) as OneShotLater,
  inflate: promisify(zlib.inflate) as OneShotLater,
  inflateRaw: promisify(zlib.inflateRaw) as OneShotLater,
  br: promisify(zlib.brotliDecompress) as OneShotLater,
}

function decodeNow(coding: Coding, input: Uint8Array, maxOutputLength: number): Uint8Array {
  const options = { maxOutputLength }
  if (coding === 'gzip') return zlib.gunzipSync(input, options)
  if (coding === 'br') return zlib.brotliDecompressSync(input, options)
  if (coding === 'zstd') return zstdDecodeSync(input, maxOutputLength)
  return hasZlibHeader(input)
    ? zlib.inflateSync(input, options)
    : zlib.inflateRawSync(input, options)
}

function decodeLater(
  coding: Coding,
  input: Uint8Array,
  maxOutputLength: number,
): Promise<Uint8Array> {
  const options = { maxOutputLength }
  if (coding === 'gzip') return later.gunzip(input, options)
  if (coding === 'br') return later.br(input, options)
  if (coding === 'zstd') return zstdDecode(input, maxOutputLength)
  return hasZlibHeader(input) ? later.inflate(input, options) : later.inflateRaw(input, options)
}

/** What Node takes for `maxOutputLength`: from one up to the size of the largest buffer. */
function outputLimit(maxBytes: number | null): number {
  return Math.max(1, Math.min(maxBytes ?? 0x1_0000_0000, 0x1_0000_0000))
}

function checkedSize(content: Uint8Array, maxBytes: number | null): Uint8Array {
  if (maxBytes !== null && content.byteLength > maxBytes) throw new ResponseTooLargeError(maxBytes)
  return content
}

/** Undoes `codings` on whole content. @throws {@link DecodingError} when it is damaged or too large. */
export function decodeContentSync(
  raw: Uint8Array,
  codings: readonly Coding[],
  maxBytes: number | null,
): Uint8Array {
  let content = raw
  for (const coding of codings) {
    if (content.byteLength === 0) return content
    try {
      content = checkedSize(decodeNow(coding, content, outputLimit(maxBytes)), maxBytes)
    } catch (cause) {
      throw decodingError(cause, coding, maxBytes)
    }
  }
  return content
}

/** As {@link decodeContentSync}; large content is decoded off the calling thread. */
export async function decodeContent(
  raw: Uint8Array,
  codings: readonly Coding[],
  maxBytes: number | null,
): Promise<Uint8Array> {
  let content = raw
  for (const coding of codings) {
    if (content.byteLength === 0) return content
    try {
      const decoded =
        content.byteLength <= INLINE_OCTETS
          ? decodeNow(coding, content, outputLimit(maxBytes))
          : await decodeLater(coding, content, outputLimit(maxBytes))
      content = checkedSize(decoded, maxBytes)
    } catch (cause) {
      throw decodingError(cause, coding, maxBytes)
    }
  }
  return content
}

function decodingError(cause: unknown, coding: Coding, maxBytes: number | null): HttpError {
  if (cause instanceof HttpError) return cause
  if ((cause as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE' && maxBytes !== null) {
    return new ResponseTooLargeError(maxBytes)
  }
  return new DecodingError(
    `the content is not valid ${coding}, or is cut short: ${(cause as Error).message}`,
    { cause },
  )
}

/** Undoes `codings` on a stream, chunk by chunk; the end of the source must be the end of the data. */
export function decodeStream(
  source: AsyncIterable<Uint8Array>,
  codings: readonly Coding[],
): AsyncIterable<Uint8Array> {
  return codings.reduce((inner, coding) => decodeOne(inner, coding), source)
}

async function* decodeOne(
  source: AsyncIterable<Uint8Array>,
  coding: Coding,
): AsyncGenerator<Uint8Array, void, undefined> {
  const iterator = source[Symbol.asyncIterator]()
  try {
    const head = await firstOctets(iterator, 2)
    if (head.byteLength === 0) return
    const inflate = createDecoder(coding, head)
    const rest: AsyncIterable<Uint8Array> = { [Symbol.asyncIterator]: () => iterator }
    pipeline(prefixed(head, rest), inflate, () => {})
    try {
      for await (const chunk of inflate) yield chunk as Uint8Array
    } catch (cause) {
      throw decodingError(cause, coding, null)
    }
  } finally {
    await iterator.return?.()
  }
}

async function firstOctets(
  iterator: AsyncIterator<Uint8Array>,
  least: number,
): Promise<Uint8Array> {
  let head: Uint8Array = new Uint8Array(0)
  while (head.byteLength < least) {
    const { done, value } = await iterator.next()
    if (done === true) break
    head = head.byteLength === 0 ? value : Buffer.concat([head, value])
  }
  return head
}

async function* prefixed(
  head: Uint8Array,
  rest: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield head
  yield* rest
}

/** A stream that undoes one coding. @param head - The first octets, which tell the two kinds of deflate apart. */
export function createDecoder(coding: Coding, head: Uint8Array): Transform {
  if (coding === 'gzip') return zlib.createGunzip()
  if (coding === 'br') return zlib.createBrotliDecompress()
  if (coding === 'zstd') return new ZstdDecoder()
  return hasZlibHeader(head) ? zlib.createInflate() : zlib.createInflateRaw()
}
