import type { IncomingMessage } from 'node:http'
import { ProblemError } from '../errors.js'
import type { HttpRequest } from './reply.js'
import { duplicateKey } from './duplicate-key.js'

/** What frameworks leave on a request whose content they have read already. */
interface ParsedBody {
  readonly body?: unknown
}

/**
 * The JSON value that a request carries; undefined when it has no content.
 *
 * The content type must be JSON even when there is no content: a page on another site can make a
 * browser post forms and plain text without asking, but never JSON.
 *
 * @throws {@link ProblemError} 415 for another type, 413 beyond `maxBytes`, 400 for no JSON.
 */
export async function readJson(request: HttpRequest, maxBytes: number): Promise<unknown> {
  checkContentType(request)
  const declared = Number(request.headers['content-length'] ?? 0)
  if (declared > maxBytes) throw tooLarge(request, maxBytes)
  const parsed = (request as ParsedBody).body
  if (parsed !== undefined && isConsumed(request)) return fromFramework(parsed, request, maxBytes)
  return parse(await readAll(request, maxBytes))
}

function checkContentType(request: HttpRequest): void {
  const coding = request.headers['content-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'identity') {
    throw new ProblemError(
      415,
      'unsupported_media_type',
      'the body must be sent without a content coding',
      {
        headers: { 'Accept-Encoding': 'identity' },
      },
    )
  }
  const type = request.headers['content-type']
  if (type !== undefined && isJsonType(type)) return
  throw new ProblemError(
    415,
    'unsupported_media_type',
    'the request needs the header Content-Type: application/json, also when it has no body',
    { headers: { Accept: 'application/json' } },
  )
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

/** A body that a framework's parser has read before us: octets, text, or the value itself. */
function fromFramework(body: unknown, request: HttpRequest, maxBytes: number): unknown {
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) return body
  const octets = typeof body === 'string' ? Buffer.from(body) : Buffer.from(body)
  if (octets.byteLength > maxBytes) throw tooLarge(request, maxBytes)
  return parse(octets)
}

function readAll(request: HttpRequest, maxBytes: number): Promise<Buffer> {
  if (request.readableEnded) {
    const detail = 'the body was read before it came here; mount the service before body parsers'
    return Promise.reject(
      new ProblemError(500, 'internal_error', detail, { cause: new Error(detail) }),
    )
  }
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    const onData = (chunk: Buffer): void => {
      length += chunk.length
      if (length <= maxBytes) chunks.push(chunk)
      else settle(() => reject(tooLarge(request, maxBytes)))
    }
    const onEnd = (): void => settle(() => resolve(Buffer.concat(chunks, length)))
    const onGone = (): void =>
      settle(() =>
        reject(new ProblemError(400, 'bad_body', 'the body ended before its declared end')),
      )
    const settle = (then: () => void): void => {
      request.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone)
      // What is still to come is thrown away; without a listener an error would be thrown.
      request.on('error', () => {})
      then()
    }
    request.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone)
  })
}

function tooLarge(request: HttpRequest, maxBytes: number): ProblemError {
  // The rest of the body is not worth reading. HTTP/2 resets just the stream.
  const headers = request.httpVersionMajor < 2 ? { Connection: 'close' } : {}
  return new ProblemError(413, 'body_too_large', `the body may have at most ${maxBytes} octets`, {
    headers,
  })
}

/** Longest part of a name that an error repeats. */
const MAX_NAME = 60

const utf8 = new TextDecoder('utf-8', { fatal: true })

function parse(octets: Buffer): unknown {
  if (octets.length === 0) return undefined
  let text: string
  try {
    text = utf8.decode(octets)
  } catch {
    throw new ProblemError(400, 'bad_json', 'the body is not UTF-8')
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    // The parser quotes the text around the mistake, which may hold a secret: keep the place only.
    const place = /position \d+/.exec((error as Error).message)?.[0]
    throw new ProblemError(
      400,
      'bad_json',
      `the body is not JSON${place === undefined ? '' : ` at ${place}`}`,
    )
  }
  const twice = duplicateKey(text)
  if (twice === null) return value
  const name = JSON.stringify(twice.slice(0, MAX_NAME))
  throw new ProblemError(400, 'bad_json', `the body has ${name} twice in one object; send it once`)
}
