import { InvalidBodyError, LocalProtocolError } from '../errors.js'
import { Headers, type HeadersInit } from '../headers.js'
import { paramPairs, type ParamsInit } from '../url.js'
import {
  bytesBody,
  ChunkSequence,
  contentBody,
  isAsyncChunks,
  type Body,
  type BodyContent,
} from './body.js'

/** A file to upload: filename (null for none), content, content type, and headers of its part. */
export type FileTuple = readonly [
  filename: string | null | undefined,
  content: BodyContent,
  contentType?: string | undefined,
  headers?: HeadersInit | undefined,
]

/** A file to upload: a `File`, a tuple, or content alone, which is named "upload". */
export type FileInit = BodyContent | FileTuple

/** Files by field name; as pairs, names may repeat. */
export type FilesInit = Readonly<Record<string, FileInit>> | Iterable<readonly [string, FileInit]>

interface Part {
  readonly head: Uint8Array
  readonly body: Body
}

const CRLF = Buffer.from('\r\n')
/** A boundary (RFC 2046, section 5.1.1). */
const BOUNDARY = /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$/

/**
 * Fields, then files, as multipart/form-data (RFC 7578). Files are streamed; the total length is
 * known if the length of each file is. The boundary is that of `contentType`, else random.
 */
export function multipartBody(
  data: ParamsInit | undefined,
  files: FilesInit,
  contentType: string | null,
): Body {
  const given = contentType === null ? null : boundaryOf(contentType)
  const boundary = given ?? process.getBuiltinModule('node:crypto').randomBytes(16).toString('hex')
  const fields = data === undefined ? [] : paramPairs(data, 'data')
  const delimiter = Buffer.from(`--${boundary}\r\n`)
  const parts = [
    ...fields.map(([name, value]) => fieldPart(name, value)),
    ...filePairs(files).map(([name, file]) => filePart(name, file)),
  ].map(({ head, body }) => ({ head: Buffer.concat([delimiter, head]), body }))
  const tail = Buffer.from(`--${boundary}--\r\n`)
  return {
    bytes: joined(parts, tail),
    length: lengthOf(parts, tail),
    contentType: `multipart/form-data; boundary=${boundary}`,
    replayable: parts.every(({ body }) => body.replayable),
    open: () => openParts(parts, tail),
  }
}

function boundaryOf(contentType: string): string | null {
  const match = /^multipart\/form-data\b.*;\s*boundary=(?:"([^"]*)"|([^\s;]+))/i.exec(contentType)
  const boundary = match?.[1] ?? match?.[2]
  if (boundary === undefined) return null
  if (!BOUNDARY.test(boundary)) {
    throw new LocalProtocolError(
      'the multipart boundary must be 1 to 70 of the characters that RFC 2046 allows',
    )
  }
  return boundary
}

/** The `files` option as pairs. @throws TypeError unless it is an object or pairs. */
export function filePairs(files: FilesInit): readonly (readonly [string, FileInit])[] {
  if (typeof files !== 'object' || files === null) {
    const got = files === null ? 'null' : typeof files
    throw new TypeError(`files must be an object or pairs, got ${got}`)
  }
  const pairs =
    Symbol.iterator in files
      ? [...(files as Iterable<readonly [string, FileInit]>)]
      : Object.entries(files)
  if (!pairs.every(Array.isArray)) throw new TypeError('files must be pairs of field name and file')
  return pairs
}

/** Escapes a name for quotes, as browsers do (WHATWG HTML, multipart/form-data encoding). */
function escaped(name: string): string {
  return name.replace(/["\0-\x1a\x1c-\x1f\x7f]/g, (char) => {
    return '%' + char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')
  })
}

function fieldPart(name: string, value: string): Part {
  return {
    head: Buffer.from(`Content-Disposition: form-data; name="${escaped(name)}"\r\n\r\n`),
    body: bytesBody(Buffer.from(value)),
  }
}

function isTuple(file: FileInit): file is FileTuple {
  return Array.isArray(file) && file.length >= 2 && (typeof file[0] === 'string' || file[0] == null)
}

function filePart(name: string, file: FileInit): Part {
  const [filename, content, type, extra] = isTuple(file)
    ? file
    : ([file instanceof File ? file.name : 'upload', file] as FileTuple)
  let body: Body
  try {
    body = contentBody(content)
  } catch (cause) {
    throw new InvalidBodyError(`files.${name}: ${(cause as Error).message}`, { cause })
  }
  const headers = new Headers(extra)
  let disposition = `Content-Disposition: form-data; name="${escaped(name)}"`
  if (typeof filename === 'string') disposition += `; filename="${escaped(filename)}"`
  const blobType = content instanceof Blob && content.type !== '' ? content.type : undefined
  const contentType = type ?? blobType ?? guessType(filename ?? '')
  if (filename !== null || type !== undefined) headers.setDefault('Content-Type', contentType)
  return { head: Buffer.from(`${disposition}\r\n${headers.toLines()}\r\n`), body }
}

/** Length of the whole body, or null if that of a part is unknown. */
function lengthOf(parts: readonly Part[], tail: Uint8Array): number | null {
  let length = tail.byteLength
  for (const { head, body } of parts) {
    if (body.length === null) return null
    length += head.byteLength + body.length + CRLF.byteLength
  }
  return length
}

/** The whole body, or null if a part is a stream. */
function joined(parts: readonly Part[], tail: Uint8Array): Uint8Array | null {
  const all: Uint8Array[] = []
  for (const { head, body } of parts) {
    if (body.bytes === null) return null
    all.push(head, body.bytes, CRLF)
  }
  return Buffer.concat([...all, tail])
}

function openParts(
  parts: readonly Part[],
  tail: Uint8Array,
): Iterable<Uint8Array> | AsyncIterable<Uint8Array> {
  const sources = parts.flatMap(({ head, body }) => [[head], body.open(), [CRLF]])
  const all = [...sources, [tail]]
  return all.some(isAsyncChunks) ? new ChunkSequence(all) : inTurn(all as Iterable<Uint8Array>[])
}

function* inTurn(sources: readonly Iterable<Uint8Array>[]): Generator<Uint8Array, void, undefined> {
  for (const source of sources) yield* source
}

/** Content types by extension, for files given without a type. */
const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css',
  csv: 'text/csv',
  gif: 'image/gif',
  gz: 'application/gzip',
  htm: 'text/html',
  html: 'text/html',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  js: 'text/javascript',
  json: 'application/json',
  md: 'text/markdown',
  mjs: 'text/javascript',
  mp3: 'audio/mpeg',
  mp4: 'video/mp4',
  pdf: 'application/pdf',
  png: 'image/png',
  svg: 'image/svg+xml',
  tar: 'application/x-tar',
  txt: 'text/plain',
  wasm: 'application/wasm',
  wav: 'audio/wav',
  webp: 'image/webp',
  xml: 'application/xml',
  yaml: 'application/yaml',
  yml: 'application/yaml',
  zip: 'application/zip',
}

function guessType(filename: string): string {
  const extension = /\.([^./\\]+)$/.exec(filename)?.[1]?.toLowerCase() ?? ''
  return TYPES[extension] ?? 'application/octet-stream'
}
