/**
 * The files that a tool gives back: images for the model, and text for everything else. Pure. They
 * are not trusted: a tool of the host, or a server, may give anything.
 *
 * @module
 */
import type { ImageInfo } from '../events.js'
import { imageBytes, type ImagePart } from '../image-part.js'
import {
  decodeBase64, imagePart, imageType, MAX_IMAGES, MAX_IMAGES_BYTES,
} from '../images.js'
import { clip, headAndTail } from '../output.js'
import type { ToolFile, ToolOutput } from '../tool.js'

/** Files of one result that are read. */
const MAX_FILES = 64
/** Characters of a name or media type. */
const MAX_LABEL = 200
/** Bytes of a text file that are appended to the output. */
const MAX_TEXT_BYTES = 65_536

/** A result as the log and the model get it. */
export interface ReadResult {
  readonly output: string
  readonly images: readonly ImagePart[]
  /** Of each image, in the same order. */
  readonly infos: readonly ImageInfo[]
}

const NONE: readonly never[] = []

/** The output of a tool with what is to be said of its files, and its images. */
export function withFiles({ output, files }: ToolOutput): ReadResult {
  if (files === undefined || files === null) return { output, images: NONE, infos: NONE }
  const list: readonly unknown[] = Array.isArray(files) ? files : []
  const images: ImagePart[] = []
  const infos: ImageInfo[] = []
  const notes: string[] = []
  let room = MAX_IMAGES_BYTES
  for (const given of list.slice(0, MAX_FILES)) {
    const file = soundFile(given)
    const image = file === null ? null : imagePart(file.bytes)
    const size = image === null ? 0 : imageBytes(image)
    if (file === null) notes.push('[a file that cannot be read]')
    else if (image === null || images.length >= MAX_IMAGES || size > room) notes.push(noteOn(file))
    else {
      room -= size
      images.push(image)
      const { media_type } = image
      infos.push({ media_type, bytes: size, ...(file.name !== '' && { name: file.name }) })
      notes.push(`[image ${labelOf({ ...file, mediaType: media_type })}, ${size} bytes]`)
    }
  }
  if (list.length > MAX_FILES) notes.push(`[${list.length - MAX_FILES} more files]`)
  return { output: [output, ...notes].filter((one) => one !== '').join('\n'), images, infos }
}

interface SoundFile {
  readonly name: string
  readonly mediaType: string
  readonly bytes: Buffer
}

function soundFile(given: unknown): SoundFile | null {
  try {
    const { data, mediaType, name } = given as Partial<ToolFile>
    const bytes = typeof data === 'string' ? decodeBase64(data) : data
    if (!(bytes instanceof Uint8Array)) return null
    // Throws when the memory was handed to a worker: there is nothing in it any more.
    const readable = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    return { name: label(name), mediaType: label(mediaType), bytes: readable }
  } catch {
    return null
  }
}

/** Text as a part of the output; name, type and size of anything else. */
function noteOn(file: SoundFile): string {
  const { bytes, mediaType } = file
  if (imageType(bytes) !== null)
    return `[image ${labelOf(file)}, ${bytes.length} bytes: too large, or one of too many]`
  if (!/^text\/|[/+](?:json|xml|yaml)$/i.test(mediaType))
    return `[file ${labelOf(file)}, ${bytes.length} bytes]`
  return `[file ${labelOf(file)}]\n${headAndTail(bytes.toString('utf8'), MAX_TEXT_BYTES)}`
}

function labelOf({ name, mediaType }: Omit<SoundFile, 'bytes'>): string {
  return name === '' ? mediaType : `${name} ${mediaType}`
}

/** Untrusted text as one short line of ASCII. */
function label(value: unknown): string {
  return clip(typeof value === 'string' ? value : '', MAX_LABEL).replace(/[^\x20-\x7e]/g, '?')
}
