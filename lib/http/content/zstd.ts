/**
 * Zstandard (RFC 8878) on top of `node:zlib`, which has it from Node 22.15 on. Some versions decode
 * only the first frame, and take truncated content for complete. So frames are separated here, and
 * each gets its own decoder.
 *
 * @module
 */
import { Transform, type TransformCallback } from 'node:stream'
import { promisify } from 'node:util'
import type { Gunzip } from 'node:zlib'
import { drive, driveSync, settle, type Flow } from '../flow.js'

type Options = { readonly maxOutputLength: number }
type Decode = (input: Uint8Array, options: Options) => Uint8Array | Promise<Uint8Array>

/** The functions of newer versions, which the types of Node 20 lack. */
interface ZstdFunctions {
  readonly zstdDecompressSync?: (input: Uint8Array, options: Options) => Uint8Array
  readonly zstdDecompress?: Parameters<typeof promisify>[0]
  readonly createZstdDecompress?: () => Gunzip
}
const native = (): ZstdFunctions =>
  process.getBuiltinModule('node:zlib') as unknown as ZstdFunctions

/** Whether this Node can decode Zstandard. */
export const hasZstd = (): boolean => native().zstdDecompressSync !== undefined

/** The message for content after the end of encoded data. */
export const EXTRA_BYTES = 'more bytes after the end of the data'

const FRAME_MAGIC = 0xfd2fb528
/** The magic number of skippable frames, without its last four bits (RFC 8878, section 3.1.2). */
const SKIPPABLE_MAGIC = 0x184d2a50
/** Lengths of the dictionary and content size fields, by their flags (section 3.1.1.1.1). */
const DICTIONARY_BYTES = [0, 1, 2, 4] as const
const SIZE_BYTES = [0, 2, 4, 8] as const

/** Consecutive bytes of one frame, for the decoder of that frame. */
export interface FramePiece {
  readonly bytes: Uint8Array
  /** Whether the frame ends with them. */
  readonly last: boolean
}

/** What comes next in the input; the first three lie outside of Zstandard frames. */
type Expected =
  | 'magic'
  | 'skip size'
  | 'skipped'
  | 'descriptor'
  | 'header'
  | 'block'
  | 'block content'
  | 'checksum'

const OUTSIDE: ReadonlySet<Expected> = new Set<Expected>(['magic', 'skip size', 'skipped'])

/** Finds the ends of frames by their lengths, without decoding. Skippable frames are dropped. */
export class ZstdFrames {
  #expected: Expected = 'magic'
  /** The field so far, in case it is split between chunks; empty for content. */
  #field: Uint8Array = new Uint8Array(0)
  /** Missing bytes of the expected field or content. */
  #left = 4
  #hasChecksum = false
  #lastBlock = false
  #state: 'before' | 'frames' | 'padding' = 'before'

  /** Whether the input may end here: between frames. */
  get complete(): boolean {
    return this.#expected === 'magic' && this.#field.length === 0
  }

  /**
   * Cuts `chunk` at the ends of frames. Zeros may follow the last one.
   *
   * @throws Error for bytes that start no frame.
   */
  feed(chunk: Uint8Array): FramePiece[] {
    const pieces: FramePiece[] = []
    let start = 0
    let at = 0
    const cut = (last: boolean): void => {
      if (at > start) pieces.push({ bytes: chunk.subarray(start, at), last })
      start = at
    }
    while (at < chunk.length || this.#left === 0) {
      if (this.#state === 'frames' && this.complete && chunk[at] === 0) this.#state = 'padding'
      if (this.#state === 'padding') {
        if (chunk.subarray(at).some((byte) => byte !== 0)) throw new Error(EXTRA_BYTES)
        break
      }
      const taken = Math.min(this.#left, chunk.length - at)
      const ended = this.#expected
      if (ended !== 'skipped' && ended !== 'block content') {
        this.#field = Buffer.concat([this.#field, chunk.subarray(at, at + taken)])
      }
      this.#left -= taken
      at += taken
      if (this.#left > 0) break
      const field = Buffer.from(this.#field)
      if (this.#advance(field)) cut(true)
      if (!OUTSIDE.has(ended)) continue
      // A magic number belongs to the frame, but may have started in an earlier chunk.
      if (this.#expected === 'descriptor') pieces.push({ bytes: field, last: false })
      start = at
    }
    if (!OUTSIDE.has(this.#expected)) cut(false)
    return pieces
  }

  /** Moves on from a complete field or content. Returns whether a frame ends with it. */
  #advance(field: Buffer): boolean {
    switch (this.#expected) {
      case 'magic':
        this.#begin(field.readUInt32LE())
        return false
      case 'skip size':
        this.#expect('skipped', field.readUInt32LE())
        return false
      case 'skipped':
        this.#expect('magic', 4)
        return false
      case 'descriptor':
        this.#describe(field[0]!)
        return false
      case 'header':
        this.#expect('block', 3)
        return false
      case 'block': {
        const block = field.readUIntLE(0, 3)
        this.#lastBlock = (block & 1) !== 0
        // A run-length block has one byte, whatever its size field says.
        this.#expect('block content', ((block >> 1) & 3) === 1 ? 1 : block >> 3)
        return false
      }
      case 'block content': {
        const ends = this.#lastBlock && !this.#hasChecksum
        if (ends) this.#expect('magic', 4)
        else if (this.#lastBlock) this.#expect('checksum', 4)
        else this.#expect('block', 3)
        return ends
      }
      case 'checksum':
        this.#expect('magic', 4)
        return true
    }
  }

  #begin(magic: number): void {
    this.#state = 'frames'
    if (magic === FRAME_MAGIC) this.#expect('descriptor', 1)
    else if ((magic & 0xfffffff0) === SKIPPABLE_MAGIC) this.#expect('skip size', 4)
    else throw new Error('unknown frame')
  }

  /** Reads the flags of a frame, which determine the length of its header. */
  #describe(flags: number): void {
    const single = (flags & 0x20) !== 0
    this.#hasChecksum = (flags & 4) !== 0
    const size = SIZE_BYTES[flags >> 6]! + (single && flags >> 6 === 0 ? 1 : 0)
    this.#expect('header', (single ? 0 : 1) + DICTIONARY_BYTES[flags & 3]! + size)
  }

  #expect(expected: Expected, bytes: number): void {
    this.#expected = expected
    this.#left = bytes
    this.#field = new Uint8Array(0)
  }
}

/** The frames of `input`, each whole. @throws Error when the last is truncated. */
function framesOf(input: Uint8Array): Uint8Array[] {
  const frames = new ZstdFrames()
  const whole: Uint8Array[] = []
  let pieces: Uint8Array[] = []
  for (const { bytes, last } of frames.feed(input)) {
    pieces.push(bytes)
    if (!last) continue
    whole.push(Buffer.concat(pieces))
    pieces = []
  }
  if (!frames.complete) throw new Error('unexpected end of content')
  return whole
}

/** Decodes whole content. @throws Error for invalid or truncated content, as `node:zlib` does. */
export function zstdDecodeSync(input: Uint8Array, maxOutputLength: number): Uint8Array {
  return driveSync(decodeFrames(input, maxOutputLength, native().zstdDecompressSync!))
}

/** As {@link zstdDecodeSync}, on Node's thread pool. */
export function zstdDecode(input: Uint8Array, maxOutputLength: number): Promise<Uint8Array> {
  const decode = promisify(native().zstdDecompress!) as Decode
  return drive(decodeFrames(input, maxOutputLength, decode))
}

function* decodeFrames(
  input: Uint8Array,
  maxOutputLength: number,
  decode: Decode,
): Flow<Uint8Array> {
  const decoded: Uint8Array[] = []
  let left = maxOutputLength
  for (const frame of framesOf(input)) {
    const part = yield* settle(decode(frame, { maxOutputLength: Math.max(1, left) }))
    left = leftAfter(part, left, maxOutputLength)
    decoded.push(part)
  }
  return Buffer.concat(decoded)
}

/** How many more bytes may follow `part`. @throws the error of `node:zlib` if it is too long. */
function leftAfter(part: Uint8Array, left: number, most: number): number {
  if (part.byteLength <= left) return left - part.byteLength
  throw Object.assign(new RangeError(`more than ${most} bytes`), { code: 'ERR_BUFFER_TOO_LARGE' })
}

/** Decodes a stream frame by frame, with backpressure, so that a zip bomb stays small. */
export class ZstdDecoder extends Transform {
  readonly #frames = new ZstdFrames()
  #inner: Gunzip | null = null

  override _transform(chunk: Uint8Array, _encoding: BufferEncoding, done: TransformCallback): void {
    try {
      this.#decode(this.#frames.feed(chunk), 0, done)
    } catch (error) {
      done(error as Error)
    }
  }

  override _flush(done: TransformCallback): void {
    done(this.#frames.complete ? null : new Error('unexpected end of content'))
  }

  override _read(size: number): void {
    this.#inner?.resume()
    super._read(size)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#inner?.destroy()
    super._destroy(error, done)
  }

  #decode(pieces: readonly FramePiece[], at: number, done: TransformCallback): void {
    const piece = pieces[at]
    if (piece === undefined) {
      done()
      return
    }
    const inner = (this.#inner ??= this.#open())
    const next = (): void => this.#decode(pieces, at + 1, done)
    if (!piece.last) {
      inner.write(piece.bytes, next)
      return
    }
    inner.once('end', () => {
      this.#inner = null
      next()
    })
    inner.end(piece.bytes)
  }

  #open(): Gunzip {
    const inner = native().createZstdDecompress!()
    inner.on('data', (decoded: Buffer) => {
      if (!this.push(decoded)) inner.pause()
    })
    inner.on('error', (error: Error) => this.destroy(error))
    return inner
  }
}
