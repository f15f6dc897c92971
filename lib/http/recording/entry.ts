import { codingsOf, decodeContentSync } from '../content/decoders.js'
import { RecordingError } from '../errors.js'
import { Headers } from '../headers.js'
import type { Request } from '../request.js'
import type { PhaseTimings } from '../timings.js'
import type { TransportResponse } from '../transports/base.js'
import { decodeError, encodeError, type WireError } from '../transports/blocking/protocol.js'
import {
  textOf,
  type HarEntry,
  type HarError,
  type HarPair,
  type HarRequest,
  type HarResponse,
} from './har.js'
import { splitAt, type Masker } from './masking.js'

/** Largest body of a request or response, decoded, that is recorded. */
export const MAX_BODY_BYTES: number = 32 * 1024 * 1024
/** In place of the random boundary of a multipart body, so that it is equal when sent again. */
const BOUNDARY = 'recorded-boundary'

const NO_FIELDS: Omit<WireError, 'name' | 'message'> = {
  code: undefined,
  timeoutMs: undefined,
  statusCode: undefined,
  maxBytes: undefined,
  cause: undefined,
}

/** What was received of a response. */
export interface Received {
  readonly head: TransportResponse
  /** Still in its Content-Encoding. */
  readonly raw: Uint8Array
  /** Why its content ended early, if it did. */
  readonly error?: unknown
}

/** `request`, whose body was read, as a recording has it. */
export function requestEntry(request: Request, masker: Masker): HarRequest {
  const headers = masker.headers(request.headers)
  const url = masker.url(request.url)
  const body = request.content
  if (body.byteLength > MAX_BODY_BYTES) throw tooLarge('request')
  const type = request.headers.get('content-type') ?? ''
  const postData = request.body === null ? {} : { postData: postDataOf(body, type, masker) }
  for (const header of headers) {
    if (header.name.toLowerCase() === 'content-type') header.value = withoutBoundary(header.value)
  }
  return {
    method: request.method,
    url,
    httpVersion: 'HTTP/1.1',
    cookies: cookiesIn(headers, 'cookie'),
    headers,
    queryString: [...new URL(url).searchParams].map(([name, value]) => ({ name, value })),
    ...postData,
    headersSize: -1,
    bodySize: body.byteLength,
  }
}

function postDataOf(
  body: Uint8Array,
  type: string,
  masker: Masker,
): NonNullable<HarRequest['postData']> {
  const boundary = boundaryIn(type)
  const mimeType = withoutBoundary(type)
  // Bytes of files come back unchanged from latin1, which is where the boundary is replaced.
  const same =
    boundary === null
      ? body
      : Buffer.from(
          Buffer.from(body).toString('latin1').replaceAll(`--${boundary}`, `--${BOUNDARY}`),
          'latin1',
        )
  const { text, base64 } = textOf(same)
  if (base64)
    return { mimeType, text: masker.bytes(same, type).toString('base64'), _encoding: 'base64' }
  const masked = masker.all(masker.body(text, type))
  if (!/^application\/x-www-form-urlencoded\b/i.test(type)) return { mimeType, text: masked }
  const params = [...new URLSearchParams(masked)].map(([name, value]) => ({ name, value }))
  return { mimeType, params, text: masked }
}

function boundaryIn(type: string): string | null {
  const match = /^multipart\/[^;]*;.*?\bboundary=(?:"([^"]*)"|([^\s;]+))/i.exec(type)
  return match?.[1] ?? match?.[2] ?? null
}

function withoutBoundary(type: string): string {
  const boundary = boundaryIn(type)
  return boundary === null ? type : type.replace(boundary, BOUNDARY)
}

/** A response as a recording has it. */
export function responseEntry({ head, raw, error }: Received, masker: Masker): HarResponse {
  const headers = masker.headers(head.headers)
  const location = head.headers.get('location')
  const trailers = head.trailers === undefined ? [] : masker.headers(head.trailers)
  const http2 = head.httpVersion === 'HTTP/2'
  return {
    status: head.statusCode,
    statusText: head.reasonPhrase ?? '',
    httpVersion: head.httpVersion ?? 'HTTP/1.1',
    cookies: cookiesIn(headers, 'set-cookie'),
    headers: headers.map(({ name, value }) => ({ name: http2 ? name.toLowerCase() : name, value })),
    content: contentOf(raw, head.headers, masker),
    redirectURL: location === null ? '' : valueOf(headers, 'location'),
    headersSize: -1,
    bodySize: raw.byteLength,
    ...(trailers.length === 0 ? {} : { _trailers: trailers }),
    ...(error === undefined ? {} : { _error: errorEntry(error, masker) }),
  }
}

function contentOf(raw: Uint8Array, headers: Headers, masker: Masker): HarResponse['content'] {
  const mimeType = headers.get('content-type') ?? ''
  const decoded = decodedContent(raw, headers)
  const { text, base64 } = textOf(decoded ?? raw)
  const shown = base64
    ? masker.bytes(decoded ?? raw, mimeType).toString('base64')
    : masker.all(masker.body(text, mimeType))
  const size = Buffer.byteLength(shown, base64 ? 'base64' : 'utf8')
  const compressed = decoded !== null && decoded !== raw
  return {
    size,
    ...(compressed ? { compression: decoded.byteLength - raw.byteLength } : {}),
    mimeType,
    text: shown,
    ...(base64 ? { encoding: 'base64' } : {}),
    ...(decoded === null ? { _encoded: true } : {}),
  }
}

/** The content without Content-Encoding, as browsers record it; null if it cannot be decoded. */
function decodedContent(raw: Uint8Array, headers: Headers): Uint8Array | null {
  const names = headers
    .getList('content-encoding', { splitCommas: true })
    .filter((name) => name !== '' && name.toLowerCase() !== 'identity')
  if (names.length === 0) return raw
  try {
    const codings = codingsOf(headers)
    return codings.length < names.length ? null : decodeContentSync(raw, codings, MAX_BODY_BYTES)
  } catch {
    return null
  }
}

/** No response, but a failure. */
export function failureEntry(error: unknown, masker: Masker): HarResponse {
  return {
    status: 0,
    statusText: '',
    httpVersion: 'HTTP/1.1',
    cookies: [],
    headers: [],
    content: { size: 0, mimeType: '' },
    redirectURL: '',
    headersSize: -1,
    bodySize: -1,
    _error: errorEntry(error, masker),
  }
}

function errorEntry(error: unknown, masker: Masker): HarError {
  const { name, message, code, timeoutMs, statusCode } = encodeError(error)
  return { name, message: masker.all(message), code, timeoutMs, statusCode }
}

/** An error of the recorded class; browsers record a text. */
function recordedError(error: HarError | string): Error {
  const fields = typeof error === 'string' ? { name: 'ConnectError', message: error } : error
  return decodeError({ ...NO_FIELDS, ...fields })
}

/** The response of a transport from a recorded one, of any program that writes HAR. */
export function replayed({ request, response }: HarEntry): TransportResponse {
  const failure = response._error
  if (response.status === 0) throw recordedError(failure ?? 'the recorded request has no response')
  const { text = '', encoding, _encoded } = response.content ?? {}
  const content = Buffer.from(text, encoding === 'base64' ? 'base64' : 'utf8')
  const headers = headersFrom(response.headers)
  if (_encoded !== true) headers.delete('content-encoding')
  headers.delete('transfer-encoding')
  if (headers.has('content-length') && request.method !== 'HEAD' && response.status !== 304)
    headers.set('Content-Length', String(content.byteLength))
  const ended = failure === undefined ? [] : [recordedError(failure)]
  return {
    statusCode: response.status,
    reasonPhrase: response.statusText,
    httpVersion: /2/.test(response.httpVersion) ? 'HTTP/2' : 'HTTP/1.1',
    headers,
    stream: contentThen(content, ended),
    trailers: headersFrom(response._trailers ?? []),
    extensions: { recorded: true },
  }
}

function* contentThen(content: Uint8Array, ended: readonly Error[]): Generator<Uint8Array, void> {
  if (content.byteLength > 0) yield content
  for (const error of ended) throw error
}

/** Browsers list the pseudo-header fields of HTTP/2, and join repeated fields by line breaks. */
function headersFrom(pairs: readonly HarPair[]): Headers {
  const headers = new Headers()
  for (const { name, value } of pairs) {
    if (name.startsWith(':')) continue
    for (const line of value.split('\n')) headers.append(name, line)
  }
  return headers
}

/** Durations in ms, to the µs; -1 for a phase that did not occur. */
export function timingsOf(phases: PhaseTimings | null, total: number): HarEntry['timings'] {
  const ms = (value: number | null): number =>
    value === null ? -1 : Math.round(value * 1000) / 1000
  const { pool = null, dns = null, tcp = null, tls = null, send = 0, wait = total } = phases ?? {}
  const before = (pool ?? 0) + (dns ?? 0) + (tcp ?? 0) + (tls ?? 0) + send + wait
  // In HAR, `connect` includes `ssl`.
  const connect = tcp === null ? null : tcp + (tls ?? 0)
  return {
    blocked: ms(pool),
    dns: ms(dns),
    connect: ms(connect),
    send: ms(send),
    wait: ms(wait),
    receive: ms(Math.max(0, total - before)),
    ssl: ms(tls),
  }
}

export function tooLarge(what: string): RecordingError {
  return new RecordingError(
    `the body of the ${what} is larger than ${MAX_BODY_BYTES} bytes, which is too much to record`,
  )
}

function valueOf(pairs: readonly HarPair[], key: string): string {
  return pairs.find(({ name }) => name.toLowerCase() === key)?.value ?? ''
}

/** The cookies of masked fields. */
function cookiesIn(headers: readonly HarPair[], key: 'cookie' | 'set-cookie'): HarPair[] {
  const fields = headers.filter(({ name }) => name.toLowerCase() === key)
  const pairs = fields.flatMap(({ value }) =>
    key === 'cookie' ? value.split('; ') : [splitAt(value, ';')[0]],
  )
  return pairs.map((pair) => {
    const [name, value] = splitAt(pair, '=')
    return { name, value: value ?? '' }
  })
}
