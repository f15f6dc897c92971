import { RemoteProtocolError } from '../../errors.js'
import { Headers } from '../../headers.js'
import { MAX_INFORMATIONAL, tooManyInformational } from '../failures.js'
import { decodeValue, hasMember, trimBlanks } from '../../field-values.js'
import { HeldBytes } from '../held-bytes.js'

/** Receives the parts of a response in their order. */
export interface ParserEvents {
  /** Called with each 1xx head, then with the final one. */
  onHead(head: ResponseHead): void
  /** `chunk` is a view of the input: it is valid until that buffer is reused. */
  onContent(chunk: Uint8Array): void
  /** `trailers` is null unless chunked content ended with some. */
  onComplete(trailers: Headers | null): void
}

/** Status line and fields of a response (RFC 9112, section 4). */
export interface ResponseHead {
  readonly statusCode: number
  readonly reasonPhrase: string
  /** 0 for HTTP/1.0, 1 for HTTP/1.1 and above. */
  readonly minorVersion: number
  readonly headers: Headers
  /** Bytes of content; null when it is chunked or ends with the connection. */
  readonly contentLength: number | null
  /**
   * Whether the server allows another request on this connection. It says nothing about content
   * that ends with the connection.
   */
  readonly keepAlive: boolean
}

const CR = 13
const LF = 10
/** In bytes, extensions included. */
const MAX_CHUNK_SIZE_LINE = 4096
const MAX_FIELDS = 1000

type State =
  'head' | 'length' | 'close' | 'chunk-size' | 'chunk-data' | 'chunk-end' | 'trailers' | 'done'

/**
 * A strict parser for HTTP/1.x responses (RFC 9112): bytes in, events out, however they are split.
 *
 * 1. A head or trailer section larger than the limit is refused before it is stored.
 * 2. Bare LF, obs-fold, whitespace before a colon and control characters are refused: parsers that
 *    disagree about them make response smuggling possible.
 * 3. Transfer-Encoding together with Content-Length, two different Content-Lengths, and a final
 *    coding other than chunked are refused.
 * 4. It consumes nothing beyond the end of a message; what follows is returned to the caller.
 */
export class ResponseParser {
  #state: State = 'head'
  readonly #held: HeldBytes = new HeldBytes()
  #left = 0
  #method = ''
  #informational = 0
  readonly #events: ParserEvents
  readonly #maxHeadBytes: number

  constructor(events: ParserEvents, maxHeadBytes: number) {
    this.#events = events
    this.#maxHeadBytes = maxHeadBytes
  }

  /** Prepares for the response to a request with `method`, which decides whether it has content. */
  reset(method: string): void {
    this.#state = 'head'
    this.#held.clear()
    this.#method = method
    this.#informational = 0
  }

  /**
   * Parses `input` and returns the bytes beyond the end of the message, or null.
   *
   * @throws {@link RemoteProtocolError} when it is not a valid HTTP/1.x response.
   */
  feed(input: Buffer): Buffer | null {
    let rest: Buffer | null = input
    while (rest !== null && rest.length > 0 && this.#state !== 'done') rest = this.#step(rest)
    return rest !== null && rest.length > 0 ? rest : null
  }

  /** Whether the content lasts until the connection is closed. */
  get endsWithConnection(): boolean {
    return this.#state === 'close'
  }

  /**
   * Called when the connection has ended.
   *
   * @throws {@link RemoteProtocolError} when that cuts a message short.
   */
  end(): void {
    if (this.#state === 'done') return
    if (this.#state === 'close') {
      this.#complete(null)
      return
    }
    if (this.#state === 'head') {
      throw new RemoteProtocolError(
        this.#held.length === 0
          ? 'the server closed the connection without answering'
          : 'the server closed the connection in the middle of the response head',
      )
    }
    throw new RemoteProtocolError(
      this.#state === 'length'
        ? `the response is incomplete: ${this.#left} bytes of its Content-Length are missing`
        : 'the response is incomplete: its last chunk is missing',
    )
  }

  #step(input: Buffer): Buffer | null {
    switch (this.#state) {
      case 'length':
      case 'chunk-data':
        return this.#content(input)
      case 'close':
        this.#events.onContent(input)
        return null
      case 'chunk-size':
        return this.#chunkSize(input)
      case 'chunk-end':
        return this.#chunkEnd(input)
      case 'trailers':
        return this.#trailers(input)
      default:
        return this.#head(input)
    }
  }

  #head(input: Buffer): Buffer | null {
    const from = Math.max(0, this.#held.length - 3)
    const all = this.#held.with(input)
    const end = all.indexOf('\r\n\r\n', from, 'latin1')
    if (end === -1 || end > this.#maxHeadBytes) {
      checkStart(all)
      if (all.length > this.#maxHeadBytes) this.#tooLarge('head')
      if (all.includes('\n\n', from, 'latin1') || all.includes('\n\r\n', from, 'latin1')) {
        if (hasBareLineFeed(all)) {
          throw new RemoteProtocolError('the response head has a bare LF; lines must end in CRLF')
        }
      }
      this.#held.keep(all)
      return null
    }
    this.#held.clear()
    this.#beginContent(parseHead(all.toString('latin1', 0, end)))
    return all.subarray(end + 4)
  }

  #beginContent(head: ResponseHead): void {
    const { statusCode } = head
    if (statusCode < 200) {
      if (++this.#informational > MAX_INFORMATIONAL) throw tooManyInformational()
      this.#events.onHead(head)
      return
    }
    // What follows a 2xx to CONNECT belongs to the tunnel (RFC 9110, section 9.3.6).
    const tunnels = this.#method === 'CONNECT' && statusCode < 300
    const bodiless = this.#method === 'HEAD' || statusCode === 204 || statusCode === 304 || tunnels
    const chunked = head.headers.has('transfer-encoding')
    if (bodiless || head.contentLength === 0) this.#state = 'done'
    else if (chunked) this.#state = 'chunk-size'
    else if (head.contentLength === null) this.#state = 'close'
    else {
      this.#state = 'length'
      this.#left = head.contentLength
    }
    const done = this.#state === 'done'
    this.#events.onHead(
      bodiless ? { ...head, contentLength: 0, keepAlive: head.keepAlive && !tunnels } : head,
    )
    if (done) this.#complete(null)
  }

  #content(input: Buffer): Buffer | null {
    const take = Math.min(this.#left, input.length)
    this.#left -= take
    this.#events.onContent(take === input.length ? input : input.subarray(0, take))
    if (this.#left === 0) {
      if (this.#state === 'length') this.#complete(null)
      else this.#state = 'chunk-end'
    }
    return take === input.length ? null : input.subarray(take)
  }

  #chunkSize(input: Buffer): Buffer | null {
    const all = this.#held.with(input)
    const end = all.indexOf(LF)
    if (end === -1) {
      if (all.length > MAX_CHUNK_SIZE_LINE) this.#tooLarge('chunk-size line')
      this.#held.keep(all)
      return null
    }
    const line = all.toString('latin1', 0, end)
    const match = /^([0-9A-Fa-f]{1,13})[ \t]*(?:;[^\0-\x08\n-\x1f\x7f]*)?\r$/.exec(line)
    if (match === null) {
      throw new RemoteProtocolError('the response has a malformed chunk size')
    }
    this.#left = Number.parseInt(match[1]!, 16)
    this.#held.clear()
    this.#state = this.#left === 0 ? 'trailers' : 'chunk-data'
    return all.subarray(end + 1)
  }

  #chunkEnd(input: Buffer): Buffer | null {
    const all = this.#held.with(input)
    if (all[0] !== CR || (all.length > 1 && all[1] !== LF)) {
      throw new RemoteProtocolError('the response has a chunk that is longer than its size')
    }
    if (all.length < 2) {
      this.#held.keep(all)
      return null
    }
    this.#held.clear()
    this.#state = 'chunk-size'
    return all.subarray(2)
  }

  #trailers(input: Buffer): Buffer | null {
    const from = Math.max(0, this.#held.length - 3)
    const all = this.#held.with(input)
    if (all[0] === CR && all[1] === LF) {
      this.#held.clear()
      this.#complete(null)
      return all.subarray(2)
    }
    const end = all.indexOf('\r\n\r\n', from, 'latin1')
    if (end === -1 || end > this.#maxHeadBytes) {
      if (all.length > this.#maxHeadBytes) this.#tooLarge('trailer section')
      this.#held.keep(all)
      return null
    }
    this.#held.clear()
    const fields = parseFields(all.toString('latin1', 0, end), 0)
    this.#complete(Headers.fromWire(fields))
    return all.subarray(end + 4)
  }

  #complete(trailers: Headers | null): void {
    this.#state = 'done'
    this.#events.onComplete(trailers)
  }

  #tooLarge(what: string): never {
    throw new RemoteProtocolError(
      `the ${what} of the response is larger than ${this.#maxHeadBytes} bytes`,
    )
  }
}

/** Refuses at once what cannot become a status line, instead of waiting for its end. */
function checkStart(head: Buffer): void {
  const start = head.toString('latin1', 0, Math.min(5, head.length))
  if (!'HTTP/'.startsWith(start))
    throw new RemoteProtocolError('the server does not speak HTTP/1.x')
}

function hasBareLineFeed(head: Buffer): boolean {
  for (let i = head.indexOf(LF); i !== -1; i = head.indexOf(LF, i + 1)) {
    if (head[i - 1] !== CR) return true
  }
  return false
}

const STATUS_LINE = /^HTTP\/1\.([0-9]) ([1-9][0-9]{2})(?: ([^\0-\x08\n-\x1f\x7f]*))?$/

function parseHead(text: string): ResponseHead {
  const end = lineEnd(text, 0)
  const match = STATUS_LINE.exec(text.slice(0, end))
  if (match === null) throw new RemoteProtocolError('the server sent a malformed status line')
  const minorVersion = Number(match[1])
  const headers = Headers.fromWire(parseFields(text, end + 2))
  const contentLength = contentLengthOf(headers)
  const coding = headers.get('transfer-encoding')
  if (coding !== null) checkTransferCoding(coding, contentLength, minorVersion)
  return {
    statusCode: Number(match[2]),
    reasonPhrase: match[3] ?? '',
    minorVersion,
    headers,
    contentLength,
    keepAlive: keepsAlive(headers, minorVersion),
  }
}

const FIELD_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const FORBIDDEN = /[\0-\x08\n-\x1f\x7f]/
const NON_ASCII = /[\x80-\xff]/

/** The names and values of the field lines from `start`; the last has no line end. */
function parseFields(text: string, start: number): string[] {
  const ascii = !NON_ASCII.test(text)
  const flat: string[] = []
  for (let at = start, end; at < text.length; at = end + 2) {
    end = lineEnd(text, at)
    const colon = text.indexOf(':', at)
    const name = colon < end ? text.slice(at, Math.max(colon, at)) : ''
    const value = text.slice(colon + 1, end)
    if (!FIELD_NAME.test(name) || FORBIDDEN.test(value)) {
      throw new RemoteProtocolError('the server sent a malformed header field')
    }
    if (flat.length === 2 * MAX_FIELDS) {
      throw new RemoteProtocolError(`the response has more than ${MAX_FIELDS} header fields`)
    }
    const trimmed = trimBlanks(value)
    flat.push(name, ascii ? trimmed : decodeValue(trimmed))
  }
  return flat
}

function lineEnd(text: string, from: number): number {
  const end = text.indexOf('\r\n', from)
  return end === -1 ? text.length : end
}

function contentLengthOf(headers: Headers): number | null {
  const value = headers.get('content-length')
  if (value === null) return null
  const members = value.includes(',') ? value.split(',').map((part) => part.trim()) : [value]
  const length = members[0]!
  if (!/^[0-9]{1,15}$/.test(length) || members.some((member) => member !== length)) {
    throw new RemoteProtocolError('the response has a malformed or contradictory Content-Length')
  }
  return Number(length)
}

function checkTransferCoding(coding: string, contentLength: number | null, minor: number): void {
  if (contentLength !== null) {
    throw new RemoteProtocolError('the response has both Transfer-Encoding and Content-Length')
  }
  if (coding.toLowerCase() !== 'chunked' || minor === 0) {
    throw new RemoteProtocolError('the response has a Transfer-Encoding other than chunked')
  }
}

function keepsAlive(headers: Headers, minorVersion: number): boolean {
  const options = headers.get('connection')
  if (hasMember(options, 'close')) return false
  return minorVersion > 0 || hasMember(options, 'keep-alive')
}
