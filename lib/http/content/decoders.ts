import { pipeline, type Transform } from 'node:stream'
import { promisify } from 'node:util'
import type { Gunzip, ZlibOptions } from 'node:zlib'
import { DecodingError, HttpError, ResponseTooLargeError } from '../errors.js'
import { drive, driveSync, settle, type Flow } from '../flow.js'
import type { Headers } from '../headers.js'
import { EXTRA_BYTES, hasZstd, ZstdDecoder, zstdDecode, zstdDecodeSync } from './zstd.js'

/** Most content codings of one response; more can only be an attack. */
const MAX_CODINGS = 5
/** Compressed content up to this many bytes is decoded synchronously, … */
const INLINE_BYTES = 1024 * 1024
/** … while it expands to no more than this: a few hundred bytes may hold a gigabyte. */
const INLINE_OUTPUT_BYTES = 8 * 1024 * 1024

/** A content coding that can be decoded. */
export type Coding = 'gzip' | 'deflate' | 'br' | 'zstd'

/** The value of Accept-Encoding; zstd only if this version of Node can decode it. */
export const acceptEncoding = (): string =>
  hasZstd() ? 'gzip, deflate, br, zstd' : 'gzip, deflate, br'

/**
 * The codings to undo, outermost first. Decoding stops at the first unknown one, whose content is
 * returned as it is.
 *
 * @throws {@link DecodingError} for more than five codings.
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
    const count = names.length
    throw new DecodingError(`the response has ${count} content codings, at most ${MAX_CODINGS}`)
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
  return name === 'zstd' && hasZstd() ? 'zstd' : null
}

/** Whether "deflate" content has the zlib wrapper that RFC 9110 requires; else it is raw. */
function hasZlibHeader(head: Uint8Array): boolean {
  const first = head[0] ?? 0
  return (first & 0x0f) === 8 && (head.length < 2 || ((first << 8) | head[1]!) % 31 === 0)
}

type Options = ZlibOptions & { readonly info: true }
/** What deflate can make of a byte at most, 1032 bytes, and some room. */
const MAX_EXPANSION = 1100
const MIN_BLOCK_BYTES = 1024
/** What `node:zlib` returns for the option `info`. */
type Decoded = { readonly buffer: Uint8Array; readonly engine: { readonly bytesWritten: number } }
type DecodeSync = (input: Uint8Array, options: Options) => Decoded
type DecodeAsync = (input: Uint8Array, options: Options) => Promise<Decoded>

/** What `node:zlib` decodes. */
type Format = 'gzip' | 'zlib' | 'raw' | 'br'

const FUNCTIONS = {
  gzip: { sync: 'gunzipSync', async: 'gunzip', stream: 'createGunzip' },
  zlib: { sync: 'inflateSync', async: 'inflate', stream: 'createInflate' },
  raw: { sync: 'inflateRawSync', async: 'inflateRaw', stream: 'createInflateRaw' },
  br: { sync: 'brotliDecompressSync', async: 'brotliDecompress', stream: 'createBrotliDecompress' },
} as const

/** `node:zlib`, loaded on demand: a client that has made no request does not need it. */
const zlib = (): typeof import('node:zlib') => process.getBuiltinModule('node:zlib')

/** @param head - The first bytes, which tell deflate with a zlib wrapper from raw deflate. */
function formatOf(coding: Exclude<Coding, 'zstd'>, head: Uint8Array): Format {
  if (coding !== 'deflate') return coding
  return hasZlibHeader(head) ? 'zlib' : 'raw'
}

/**
 * How many bytes `node:zlib` makes room for at a time: as many as gzip says that it has, so that
 * they need not be put together from blocks of 16 KiB, but no more than `input` can hold.
 */
function blockSize(format: Format, input: Uint8Array, maxOutputLength: number): number {
  const end = input.byteLength
  const trailer = Buffer.from(input.buffer, input.byteOffset, end)
  const size = format === 'gzip' && end >= 4 ? trailer.readUInt32LE(end - 4) : 4 * end
  const most = Math.min(maxOutputLength, INLINE_OUTPUT_BYTES, MAX_EXPANSION * end)
  // One byte more than there are, or zlib makes room for more to come.
  return Math.max(MIN_BLOCK_BYTES, Math.min(Math.max(size, end), most) + 1)
}

function optionsFor(format: Format, input: Uint8Array, maxOutputLength: number): Options {
  return { maxOutputLength, chunkSize: blockSize(format, input, maxOutputLength), info: true }
}

function decodeOnce(coding: Coding, input: Uint8Array, maxOutputLength: number): Uint8Array {
  if (coding === 'zstd') return zstdDecodeSync(input, maxOutputLength)
  const format = formatOf(coding, input)
  const decode = zlib()[FUNCTIONS[format].sync] as unknown as DecodeSync
  return wholeOf(input, decode(input, optionsFor(format, input, maxOutputLength)))
}

async function decodeOnceAsync(
  coding: Coding,
  input: Uint8Array,
  maxOutputLength: number,
): Promise<Uint8Array> {
  if (coding === 'zstd') return await zstdDecode(input, maxOutputLength)
  const format = formatOf(coding, input)
  const decode = promisify(zlib()[FUNCTIONS[format].async]) as unknown as DecodeAsync
  return wholeOf(input, await decode(input, optionsFor(format, input, maxOutputLength)))
}

function wholeOf(input: Uint8Array, { buffer, engine }: Decoded): Uint8Array {
  const tail = new TailCheck()
  tail.add(input)
  tail.check(engine.bytesWritten)
  return buffer
}

/**
 * Refuses bytes after the end of encoded data, all but zeros, which pad it: Node ignores them but
 * for gzip, and what follows cut or mixed up content would be lost in silence.
 */
export class TailCheck {
  #length = 0
  /** Bytes up to the last one that is not zero. */
  #used = 0

  /** Takes the encoded bytes as they come. */
  add(chunk: Uint8Array): void {
    let end = chunk.byteLength
    while (end > 0 && chunk[end - 1] === 0) end--
    if (end > 0) this.#used = this.#length + end
    this.#length += chunk.byteLength
  }

  /** @throws Error when there was more than the `taken` bytes of encoded data. */
  check(taken: number): void {
    if (this.#used > taken) throw new Error(EXTRA_BYTES)
  }
}

/** `maxBytes` within the range that Node accepts for `maxOutputLength`. */
function outputLimit(maxBytes: number | null): number {
  return Math.max(1, Math.min(maxBytes ?? 0x1_0000_0000, 0x1_0000_0000))
}

/** Decodes whole content. @throws {@link DecodingError} when it is invalid or too large. */
export function decodeContentSync(
  raw: Uint8Array,
  codings: readonly Coding[],
  maxBytes: number | null,
): Uint8Array {
  return driveSync(decodeAll(raw, codings, maxBytes, decodeOnce))
}

/** As {@link decodeContentSync}, but large content is decoded by Node's thread pool. */
export function decodeContent(
  raw: Uint8Array,
  codings: readonly Coding[],
  maxBytes: number | null,
): Promise<Uint8Array> {
  return drive(decodeAll(raw, codings, maxBytes, decodeFair))
}

/** Decodes small content at once, and large content on the thread pool. */
function decodeFair(
  coding: Coding,
  input: Uint8Array,
  limit: number,
): Uint8Array | Promise<Uint8Array> {
  if (input.byteLength > INLINE_BYTES) return decodeOnceAsync(coding, input, limit)
  try {
    return decodeOnce(coding, input, Math.min(limit, INLINE_OUTPUT_BYTES))
  } catch (error) {
    const expands = (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE'
    if (!expands || limit <= INLINE_OUTPUT_BYTES) throw error
    return decodeOnceAsync(coding, input, limit)
  }
}

type Decode = (
  coding: Coding,
  input: Uint8Array,
  maxOutputLength: number,
) => Uint8Array | Promise<Uint8Array>

function* decodeAll(
  raw: Uint8Array,
  codings: readonly Coding[],
  maxBytes: number | null,
  decode: Decode,
): Flow<Uint8Array> {
  let content = raw
  for (const coding of codings) {
    if (content.byteLength === 0) return content
    try {
      content = yield* settle(decode(coding, content, outputLimit(maxBytes)))
    } catch (cause) {
      throw decodingError(cause, coding, maxBytes)
    }
    if (maxBytes !== null && content.byteLength > maxBytes) {
      throw new ResponseTooLargeError(maxBytes)
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
    `the content is not valid ${coding}, or is truncated: ${(cause as Error).message}`,
    { cause },
  )
}

/** Decodes a stream chunk by chunk. It fails if the source ends before the encoded data does. */
export function decodeStream(
  source: AsyncIterable<Uint8Array>,
  codings: readonly Coding[],
): AsyncIterable<Uint8Array> {
  return codings.reduce(decodeOne, source)
}

async function* decodeOne(
  source: AsyncIterable<Uint8Array>,
  coding: Coding,
): AsyncGenerator<Uint8Array, void, undefined> {
  const iterator = source[Symbol.asyncIterator]()
  try {
    const head = await firstBytes(iterator, 2)
    if (head.byteLength === 0) return
    const inflate = createDecoder(coding, head)
    const input = new EncodedInput(head, iterator)
    let failure: unknown = null
    const fed = new Promise<void>((resolve) => {
      pipeline(input.chunks(), inflate, (error) => {
        failure = error
        resolve()
      })
    })
    try {
      // Not destroyed at its end, so that the rest of the source is looked at.
      yield* inflate.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>
      await fed
      if (failure instanceof Error) throw failure
      if (coding !== 'zstd') input.tail.check((inflate as Gunzip).bytesWritten)
    } catch (cause) {
      // An abort, say, is no fault of the content.
      throw input.failed ? input.failure : decodingError(cause, coding, null)
    } finally {
      inflate.destroy()
    }
  } finally {
    await iterator.return?.()
  }
}

/** The first chunks, joined, so that there are at least `least` bytes unless the source ends. */
async function firstBytes(
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

/** The chunks of a source, of which the first ones were read already. */
class EncodedInput {
  readonly tail = new TailCheck()
  /** Whether the source itself failed, and with what. */
  failed = false
  failure: unknown
  readonly #head: Uint8Array
  readonly #rest: AsyncIterator<Uint8Array>

  constructor(head: Uint8Array, rest: AsyncIterator<Uint8Array>) {
    this.#head = head
    this.#rest = rest
  }

  async *chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    for (let chunk = this.#head; ; ) {
      this.tail.add(chunk)
      yield chunk
      const next = await this.#next()
      if (next.done === true) return
      chunk = next.value
    }
  }

  async #next(): Promise<IteratorResult<Uint8Array>> {
    try {
      return await this.#rest.next()
    } catch (error) {
      this.failed = true
      this.failure = error
      throw error
    }
  }
}

/** A stream that decodes one coding, given the first bytes; see {@link TailCheck}. */
export function createDecoder(coding: Coding, head: Uint8Array): Transform {
  return coding === 'zstd' ? new ZstdDecoder() : zlib()[FUNCTIONS[formatOf(coding, head)].stream]()
}
