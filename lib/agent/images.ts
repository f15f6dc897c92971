/**
 * Images in conversations: what is accepted, how large they are for a model, and the text in place
 * of those that a model does not get. Pure.
 *
 * @module
 */
import type { ImagePart } from './image-part.js'

/** Bytes of one image: in base64, what every provider takes. */
export const MAX_IMAGE_BYTES = 3_750_000
/** Images of one request or result, and bytes of all of them. */
export const MAX_IMAGES = 8
export const MAX_IMAGES_BYTES = 7_500_000
/** Images of one conversation, and characters of their base64; older ones are left out. */
export const MAX_KEPT_IMAGES = 16
export const MAX_KEPT_CHARACTERS = 15_000_000

/** Tokens of an image whose size is not known, and of the largest that providers do not shrink. */
const UNKNOWN_TOKENS = 1_600
const MAX_TOKENS = 5_000
/** Pixels of an image for one token. */
const PIXELS = 750
/** Bytes at the beginning of a file in which its size is looked for. */
const HEAD_BYTES = 65_536

/** The media types of images that providers take. */
export const IMAGE_TYPES: readonly ImagePart['media_type'][] = [
  'image/png', 'image/jpeg', 'image/gif', 'image/webp',
]

/** What a file is by its first bytes, whatever its name says; null when it is no such image. */
export function imageType(bytes: Uint8Array): ImagePart['media_type'] | null {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 12))
    .toString('latin1')
  if (text.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png'
  if (text.startsWith('\xff\xd8\xff')) return 'image/jpeg'
  if (/^GIF8[79]a/.test(text)) return 'image/gif'
  return text.startsWith('RIFF') && text.slice(8) === 'WEBP' ? 'image/webp' : null
}

/** The image in base64, of the type that its bytes have; null when they are no image. */
export function imagePart(bytes: Uint8Array): ImagePart | null {
  const media_type = imageType(bytes)
  if (media_type === null || bytes.length > MAX_IMAGE_BYTES) return null
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')
  return { media_type, data }
}

/** The bytes that base64 text encodes; null for other text. */
export function decodeBase64(text: string): Uint8Array | null {
  if (text.length % 4 !== 0) return null
  const bytes = Buffer.from(text, 'base64')
  return bytes.length > 0 && bytes.toString('base64') === text ? bytes : null
}

/** Tokens of an image, estimated by its pixels. */
export function imageTokens({ data, media_type }: ImagePart): number {
  const head = Buffer.from(data.slice(0, Math.ceil(HEAD_BYTES / 3) * 4), 'base64')
  const pixels = pixelsOf(head, media_type)
  if (pixels === null) return UNKNOWN_TOKENS
  return Math.min(Math.max(Math.ceil(pixels / PIXELS), 85), MAX_TOKENS)
}

/** Width times height; null when the header does not say. */
function pixelsOf(head: Buffer, type: ImagePart['media_type']): number | null {
  switch (type) {
    case 'image/png':
      return head.length < 24 ? null : head.readUInt32BE(16) * head.readUInt32BE(20)
    case 'image/gif':
      return head.length < 10 ? null : head.readUInt16LE(6) * head.readUInt16LE(8)
    case 'image/jpeg':
      return jpegPixels(head)
    case 'image/webp':
      return webpPixels(head)
  }
}

/** Goes from segment to segment to the first frame header (ITU-T T.81, section B.2.2). */
function jpegPixels(head: Buffer): number | null {
  for (let at = 2; at + 9 <= head.length && head[at] === 0xff;) {
    const marker = head[at + 1]!
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)
    if (isFrame) return head.readUInt16BE(at + 5) * head.readUInt16BE(at + 7)
    at += 2 + Math.max(2, head.readUInt16BE(at + 2))
  }
  return null
}

/** Lossy, lossless and extended files say their size in different places (RFC 9649). */
function webpPixels(head: Buffer): number | null {
  if (head.length < 30) return null
  switch (head.toString('latin1', 12, 16)) {
    case 'VP8 ':
      return (head.readUInt16LE(26) & 0x3fff) * (head.readUInt16LE(28) & 0x3fff)
    case 'VP8L': {
      const bits = head.readUInt32LE(21)
      return ((bits & 0x3fff) + 1) * (((bits >>> 14) & 0x3fff) + 1)
    }
    case 'VP8X':
      return (head.readUIntLE(24, 3) + 1) * (head.readUIntLE(27, 3) + 1)
    default:
      return null
  }
}

/** Why images of earlier turns are left out. */
export const TOO_OLD = 'get it again if you need it'
/** Why a model gets no images. */
export const NOT_TAKEN = 'this model takes no images'
