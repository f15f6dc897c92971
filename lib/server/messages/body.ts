import type { IncomingMessage } from 'node:http'
import { ByteCollector } from '../../internal/bytes.js'
import { MAX_JSON_DEPTH } from '../../internal/json.js'
import { ProblemError } from '../errors.js'
import type { HttpRequest } from './reply.js'

/** A request whose content a framework's body parser may have read. */
interface ParsedBody {
  readonly body?: unknown
}

/**
 * Reads the JSON value of a request; undefined when it has no content, whatever type it declares:
 * many clients declare a form for every POST.
 *
 * @throws {@link ProblemError} 415 for content of another type, 413 beyond `maxBytes`, 400 for
 * invalid JSON.
 */
export async function readJson(request: HttpRequest, maxBytes: number): Promise<unknown> {
  const length = declaredLength(request)
  if (length === 0) return undefined
  const unsupported = typeProblem(request)
  if (unsupported !== null && length !== null) throw unsupported
  if (length !== null && length > maxBytes) throw tooLarge(request, maxBytes)
  const parsed = (request as ParsedBody).body
  if (parsed !== undefined && isConsumed(request)) {
    if (unsupported !== null) throw unsupported
    return fromFramework(parsed, request, maxBytes)
  }
  if (unsupported === null) return parse(await readAll(request, maxBytes))
  // Only its end shows that a body of unknown length is empty.
  await readAll(request, 0, unsupported)
  return undefined
}

/** The length of the content; null while it is unknown. */
function declaredLength({ headers, httpVersionMajor }: HttpRequest): number | null {
  const length = headers['content-length']
  if (length !== undefined) return Number(length)
  // HTTP/2 needs no length (RFC 9113, section 8.1.1).
  return httpVersionMajor < 2 && headers['transfer-encoding'] === undefined ? 0 : null
}

function typeProblem({ headers }: HttpRequest): ProblemError | null {
  const coding = headers['content-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'identity') {
    const detail = 'the body must be sent without a content coding'
    return new ProblemError(415, 'unsupported_media_type', detail, {
      headers: { 'Accept-Encoding': 'identity' },
    })
  }
  const type = headers['content-type']
  if (type !== undefined && isJsonType(type)) return null
  const detail = 'a body needs the header Content-Type: application/json'
  return new ProblemError(415, 'unsupported_media_type', detail, {
    headers: { Accept: 'application/json' },
  })
}

/** `application/json`, where the only charset is UTF-8 (RFC 8259, section 8.1). */
function isJsonType(type: string): boolean {
  const [essence = '', ...parameters] = type.toLowerCase().split(';')
  if (essence.trim() !== 'application/json') return false
  return parameters.every((parameter) => {
    const [name = '', value = ''] = parameter.split('=')
    return name.trim() !== 'charset' || /^("utf-?8"|utf-?8)$/.test(value.trim())
  })
}

function isConsumed(request: HttpRequest): boolean {
  return request.readableEnded || (request as IncomingMessage).readableDidRead
}

/** A body that a framework's parser has read: bytes, text, or the parsed value. */
function fromFramework(body: unknown, request: HttpRequest, maxBytes: number): unknown {
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) return body
  const bytes = typeof body === 'string' ? Buffer.from(body) : Buffer.from(body)
  if (bytes.byteLength > maxBytes) throw tooLarge(request, maxBytes)
  return parse(bytes)
}

function readAll(
  request: HttpRequest,
  maxBytes: number,
  beyond: ProblemError = tooLarge(request, maxBytes),
): Promise<Uint8Array> {
  if (request.readableEnded) {
    const detail = 'the body was already read; mount the service before body parsers'
    return Promise.reject(
      new ProblemError(500, 'internal_error', detail, { cause: new Error(detail) }),
    )
  }
  return new Promise((resolve, reject) => {
    const collector = new ByteCollector()
    let chunks = 0
    const onData = (chunk: Buffer): void => {
      collector.add(chunk)
      if (collector.length > maxBytes) settle(() => reject(beyond))
      else if (++chunks > mostChunks(collector.length)) settle(() => reject(fragmented(request)))
    }
    const onEnd = (): void => settle(() => resolve(collector.take()))
    const onGone = (): void => {
      const error = new ProblemError(400, 'bad_body', 'the connection ended before the body did')
      settle(() => reject(error))
    }
    const settle = (then: () => void): void => {
      request.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone)
      // An error event without a listener would be thrown.
      request.on('error', () => {})
      then()
    }
    request.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone)
  })
}

function tooLarge(request: HttpRequest, maxBytes: number): ProblemError {
  const detail = `the body may have at most ${maxBytes} bytes`
  return new ProblemError(413, 'body_too_large', detail, { headers: closing(request) })
}

/** For a body that is not read to its end. HTTP/2 resets the stream and keeps the connection. */
function closing(request: HttpRequest): Record<string, string> {
  return request.httpVersionMajor < 2 ? { Connection: 'close' } : {}
}

/**
 * Most chunks of a body with so many bytes. A chunk costs microseconds however small it is: a body
 * of 1 MiB in chunks of one byte takes seconds.
 */
function mostChunks(bytes: number): number {
  return 4_096 + bytes / 16
}

function fragmented(request: HttpRequest): ProblemError {
  const detail = 'the body comes in too many small chunks; send it with a Content-Length'
  return new ProblemError(400, 'bad_body', detail, { headers: closing(request) })
}

/** Deepest value of a body: values of {@link MAX_JSON_DEPTH} levels, and the fields around them. */
const MAX_DEPTH = 2 * MAX_JSON_DEPTH
/** Characters of a name that an error quotes. */
const MAX_NAME = 60

const utf8 = new TextDecoder('utf-8', { fatal: true })

function parse(bytes: Uint8Array): unknown {
  if (bytes.length === 0) return undefined
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    throw new ProblemError(400, 'bad_json', 'the body is not valid UTF-8')
  }
  if (isDeeper(text, MAX_DEPTH)) {
    const detail = `the body is nested more than ${MAX_DEPTH} levels deep`
    throw new ProblemError(400, 'bad_json', detail)
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    // The parser's message quotes the text around the error, which may be secret.
    const position = /position \d+/.exec((error as Error).message)?.[0]
    const where = position === undefined ? '' : ` at ${position}`
    throw new ProblemError(400, 'bad_json', `the body is not valid JSON${where}`)
  }
  const duplicate = duplicateKey(text)
  if (duplicate === null) return value
  const name = JSON.stringify(duplicate.slice(0, MAX_NAME))
  throw new ProblemError(400, 'bad_json', `the body has ${name} twice in one object; send it once`)
}

/**
 * Whether arrays and objects are nested more than `most` levels deep. Half a million brackets take
 * the JSON parser half a second; looking for them takes a hundredth.
 */
function isDeeper(text: string, most: number): boolean {
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    const char = text[i]
    if (char === '[' || char === '{') {
      if (++depth > most) return true
    } else if (char === ']' || char === '}') depth--
    else if (char === '"') i = endOfString(text, i)
  }
  return false
}

/** Where the string that begins at `start` ends. */
function endOfString(text: string, start: number): number {
  let i = start + 1
  while (i < text.length && text[i] !== '"') i += text[i] === '\\' ? 2 : 1
  return i
}

/** Strings of a JSON text, the colons after keys, and the braces of objects. */
const TOKEN = /"((?:[^"\\]|\\.)*)"?|[:{}]/g

/**
 * The first key that an object of a JSON text has twice, or null. Parsers disagree on which of the
 * two counts (RFC 8259, section 4), so a proxy that checked `"hitl_enabled": true` may have seen
 * another request than the one that runs.
 *
 * @param text - valid JSON.
 */
export function duplicateKey(text: string): string | null {
  // Most objects of a hostile body are empty, and a set for each costs more than the rest.
  const open: (Set<string> | null)[] = []
  let raw = ''
  for (const [token, string] of text.matchAll(TOKEN)) {
    if (token === '{') open.push(null)
    else if (token === '}') open.pop()
    else if (string !== undefined) raw = string
    else {
      const name = raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw
      const names = (open[open.length - 1] ??= new Set())
      if (names.has(name)) return name
      names.add(name)
    }
  }
  return null
}
