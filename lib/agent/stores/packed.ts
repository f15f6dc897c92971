/**
 * Contents as stores keep them: compressed when that makes them smaller, after a header of eight
 * bytes: two letters, the version of this format, the method, and the size of the content.
 *
 * @module
 */
import { webcrypto } from 'node:crypto'
import { promisify } from 'node:util'
import { hash as digest } from '../../internal/hash.js'

const HEADER_BYTES = 8
const MAGIC = 0x4f42
const VERSION = 1
const AS_IS = 0
const DEFLATED = 1
/** The fastest: the others save a few percent of space for several times the work. */
const LEVEL = 1
/** Less than this is not worth compressing: it fits a block of the disk anyway. */
const MIN_BYTES = 256
/** Up to this, work is done at once: handing it to another thread takes longer. */
const SMALL_BYTES = 16 << 10
/** Of more than this, a sample decides whether the content is worth compressing. */
const SAMPLED_BYTES = 256 << 10
const SAMPLE_BYTES = 32 << 10

/** Loaded when a content is packed or unpacked first. */
const zlib = (): typeof import('node:zlib') => process.getBuiltinModule('node:zlib')

/** Packs a content of less than 4 GiB. */
export async function pack(content: Uint8Array): Promise<Buffer> {
  const packed = await shrink(content)
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt16BE(MAGIC, 0)
  header.writeUInt8(VERSION, 2)
  header.writeUInt8(packed === null ? AS_IS : DEFLATED, 3)
  header.writeUInt32BE(content.length, 4)
  return Buffer.concat([header, packed ?? content])
}

async function shrink(content: Uint8Array): Promise<Buffer | null> {
  const { length } = content
  if (length < MIN_BYTES) return null
  if (length > SAMPLED_BYTES) {
    const middle = length >>> 1
    const sample = content.subarray(middle, middle + SAMPLE_BYTES)
    if ((await deflate(sample)).length > SAMPLE_BYTES * 0.95) return null
  }
  const packed = await deflate(content)
  return packed.length < length ? packed : null
}

async function deflate(content: Uint8Array): Promise<Buffer> {
  const options = { level: LEVEL }
  return content.length <= SMALL_BYTES
    ? zlib().deflateRawSync(content, options)
    : await promisify(zlib().deflateRaw)(content, options)
}

/** The content of what {@link pack} has made; null for anything else. */
export async function unpack(data: Buffer): Promise<Uint8Array | null> {
  if (data.length < HEADER_BYTES || data.readUInt16BE(0) !== MAGIC) return null
  if (data.readUInt8(2) !== VERSION) return null
  const method = data.readUInt8(3)
  const length = data.readUInt32BE(4)
  const body = data.subarray(HEADER_BYTES)
  if (method === AS_IS) return body.length === length ? body : null
  if (method !== DEFLATED) return null
  try {
    // Whatever became of the data, it does not fill the memory.
    const options = { maxOutputLength: Math.max(1, length) }
    const content =
      length <= SMALL_BYTES
        ? zlib().inflateRawSync(body, options)
        : await promisify(zlib().inflateRaw)(body, options)
    return content.length === length ? content : null
  } catch {
    return null
  }
}

/** Does the content have this hash? Large contents are hashed on another thread. */
export async function hasHash(content: Uint8Array, hash: string): Promise<boolean> {
  if (content.length <= SAMPLED_BYTES) return digest('sha256', content) === hash
  const sum = await webcrypto.subtle.digest('SHA-256', content as Uint8Array<ArrayBuffer>)
  return Buffer.from(sum).toString('hex') === hash
}
