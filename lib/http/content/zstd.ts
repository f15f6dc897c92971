/**
 * Zstandard (RFC 8878) over what `node:zlib` has of it from 22.15 on. Some versions of Node decode
 * the first frame only, and take content that is cut short for complete; so frames are told apart
 * here, and each gets a decoder of its own.
 *
 * @module
 */
import { Transform, type TransformCallback } from 'node:stream'
import { promisify } from 'node:util'
import * as zlib from 'node:zlib'

type OneShot = (input: Uint8Array, options: { maxOutputLength: number }) => Uint8Array
type OneShotLater = (input: Uint8Array, options: { maxOutputLength: number }) => Promise<Uint8Array>

interface ZstdFunctions {
  readonly zstdDecompressSync?: OneShot
  readonly zstdDecompress?: Parameters<typeof promisify>[0]
  readonly createZstdDecompress?: () => zlib.Gunzip
}
const native: ZstdFunctions = zlib as unknown as ZstdFunctions

/** Whether this Node can decode Zstandard. */
export const hasZstd: boolean = native.zstdDecompressSync !== undefined

const FRAME_MAGIC = 0xfd2fb528
/** Skippable frames have this magic number but for the last four bits (RFC 8878, section 3.1.2). */
const SKIPPABLE_MAGIC = 0x184d2a50
/** Octets of the fields for dictionary and content size, by their flags (section 3.1.1.1.1). */
const DICTIONARY_OCTETS = [0, 1, 2, 4] as const
const SIZE_OCTETS = [0, 2, 4, 8] as const

/** Octets of one frame, and whether it ends with them. */
export interface FramePiece {
  readonly octets: Uint8Array
  readonly last: boolean
}

type Place =
  | 'magic'
  | 'skip size'
  | 'skipped'
  | 'descriptor'
  | 'header'
  | 'block'
  | 'block content'
  | 'checksum'

/** Finds where frames end by their lengths, without decoding; skippable frames are left out. */
export class ZstdFrames {
  #place: Place = 'magic'
  /** Octets of the field that is being read, collected when a chunk cuts it. */
  #field: Uint8Array = new Uint8Array(0)
  /** Octets that the present field or content has still to come. */
  #left = 4
  #hasChecksum = false
  #lastBlock = false

  /** Whether nothing is missing: between frames. */
  get complete(): boolean {
    return this.#place === 'magic' && this.#field.length === 0
  }

  /** Cuts `chunk` at the ends of frames. @throws Error for octets that begin no frame. */
  feed(chunk: Uint8Array): FramePiece[] {
    const pieces: FramePiece[] = []
    let begun = 0
    let at = 0
    const cut = (last: boolean): void => {
      if (at > begun) pieces.push({ octets: chunk.subarray(begun, at), last })
      begun = at
    }
    while (at < chunk.length || this.#left === 0) {
      const taken = Math.min(this.#left, chunk.length - at)
      if (this.#place === 'skipped' || this.#place === 'block content') {
        this.#left -= taken
        at += taken
        if (this.#left > 0) break
        if (this.#place === 'skipped') {
          begun = at
          this.#expect('magic', 4)
        } else this.#afterBlock(() => cut(true))
        continue
      }
      this.#field = Buffer.concat([this.#field, chunk.subarray(at, at + taken)])
      this.#left -= taken
      at += taken
      if (this.#left > 0) break
      const field = Buffer.from(this.#field)
      switch (this.#place) {
        case 'magic': {
          const magic = field.readUInt32LE()
          if (magic === FRAME_MAGIC) this.#expect('descriptor', 1)
          else if ((magic & 0xfffffff0) === SKIPPABLE_MAGIC) this.#expect('skip size', 4)
          else throw new Error('unknown frame')
          if (magic === FRAME_MAGIC) pieces.push({ octets: field, last: false })
          begun = at
          break
        }
        case 'skip size':
          begun = at
          this.#expect('skipped', field.readUInt32LE())
          break
        case 'descriptor': {
          const flags = field[0]!
          const single = (flags & 0x20) !== 0
          this.#hasChecksum = (flags & 4) !== 0
          const size = SIZE_OCTETS[flags >> 6]! + (single && flags >> 6 === 0 ? 1 : 0)
          this.#expect('header', (single ? 0 : 1) + DICTIONARY_OCTETS[flags & 3]! + size)
          break
        }
        case 'header':
          this.#expect('block', 3)
          break
        case 'block': {
          const block = field.readUIntLE(0, 3)
          this.#lastBlock = (block & 1) !== 0
          // Run-length blocks have one octet, whatever their size says.
          this.#expect('block content', ((block >> 1) & 3) === 1 ? 1 : block >> 3)
          break
        }
        case 'checksum':
          this.#expect('magic', 4)
          cut(true)
      }
    }
    if (this.#place !== 'skipped' && this.#place !== 'skip size' && this.#place !== 'magic')
      cut(false)
    return pieces
  }

  #afterBlock(end: () => void): void {
    if (!this.#lastBlock) this.#expect('block', 3)
    else if (this.#hasChecksum) this.#expect('checksum', 4)
    else {
      this.#expect('magic', 4)
      end()
    }
  }

  #expect(place: Place, octets: number): void {
    this.#place = place
    this.#left = octets
    this.#field = new Uint8Array(0)
  }
}

/** Whole frames of `input`. @throws Error when the last is cut short. */
function framesOf(input: Uint8Array): Uint8Array[] {
  const frames = new ZstdFrames()
  const whole: Uint8Array[] = []
  let held: Uint8Array[] = []
  for (const { octets, last } of frames.feed(input)) {
    held.push(octets)
    if (!last) continue
    whole.push(Buffer.concat(held))
    held = []
  }
  if (!frames.complete) throw new Error('unexpected end of content')
  return whole
}

/** Decodes whole content. @throws Error as `node:zlib` does, also for content that is cut short. */
export function zstdDecodeSync(input: Uint8Array, maxOutputLength: number): Uint8Array {
  const decoded: Uint8Array[] = []
  let left = maxOutputLength
  for (const frame of framesOf(input)) {
    const part = native.zstdDecompressSync!(frame, { maxOutputLength: Math.max(1, left) })
    left = leftAfter(part, left, maxOutputLength)
    decoded.push(part)
  }
  return Buffer.concat(decoded)
}

/** As {@link zstdDecodeSync}, off the calling thread. */
export async function zstdDecode(input: Uint8Array, maxOutputLength: number): Promise<Uint8Array> {
  const decode = promisify(native.zstdDecompress!) as OneShotLater
  const decoded: Uint8Array[] = []
  let left = maxOutputLength
  for (const frame of framesOf(input)) {
    const part = await decode(frame, { maxOutputLength: Math.max(1, left) })
    left = leftAfter(part, left, maxOutputLength)
    decoded.push(part)
  }
  return Buffer.concat(decoded)
}

function leftAfter(part: Uint8Array, left: number, most: number): number {
  if (part.byteLength <= left) return left - part.byteLength
  throw Object.assign(new RangeError(`more than ${most} octets`), { code: 'ERR_BUFFER_TOO_LARGE' })
}

/** Decodes a stream frame by frame, with back-pressure, so that a bomb stays small. */
export class ZstdDecoder extends Transform {
  readonly #frames = new ZstdFrames()
  #inner: zlib.Gunzip | null = null

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
      inner.write(piece.octets, next)
      return
    }
    inner.once('end', () => {
      this.#inner = null
      next()
    })
    inner.end(piece.octets)
  }

  #open(): zlib.Gunzip {
    const inner = native.createZstdDecompress!()
    inner.on('data', (decoded: Buffer) => {
      if (!this.push(decoded)) inner.pause()
    })
    inner.on('error', (error: Error) => this.destroy(error))
    return inner
  }
}
