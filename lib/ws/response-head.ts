import type { IncomingHttpHeaders } from 'node:http'
import { trimEndOf } from '../internal/text.js'
import { HandshakeError } from './errors.js'
import { isToken } from './extensions.js'

/** Most bytes of all heads, interim responses included. */
const MAX_HEAD_BYTES = 65_536
const FIRST_CAPACITY = 2_048
const START = 'HTTP/1.'
const END = '\r\n\r\n'

/** The head of a server's response to an opening handshake. */
export interface ResponseHead {
  readonly status: number
  /** Whether the server has HTTP/1.1, which an upgrade needs (RFC 6455, section 4.1). */
  readonly isHttp11: boolean
  /** Names in lower case and values, as sent. */
  readonly fields: readonly (readonly [name: string, value: string])[]
}

/**
 * Reads the head of a response from chunks of any size (RFC 9112, sections 2 to 5). Linear in the
 * bytes, and strict: a lenient reader takes bytes for fields that another one takes for frames.
 */
export class HeadReader {
  #buffer: Buffer = Buffer.allocUnsafe(FIRST_CAPACITY)
  #filled = 0
  /** Where the present head begins: behind the interim responses. */
  #start = 0
  /** Where to search for its end. */
  #searched = 0

  /**
   * Adds a chunk. Returns the head once it is complete; interim responses are skipped.
   *
   * @throws HandshakeError as soon as the bytes cannot be the head of a response.
   */
  push(chunk: Uint8Array): ResponseHead | null {
    this.#append(chunk)
    for (;;) {
      const held = this.#buffer.subarray(0, this.#filled)
      checkStart(held.subarray(this.#start))
      const end = held.indexOf(END, this.#searched, 'latin1')
      if ((end === -1 ? this.#filled : end) > MAX_HEAD_BYTES) {
        throw new HandshakeError(`the head of the response has more than ${MAX_HEAD_BYTES} bytes`)
      }
      if (end === -1) {
        this.#searched = Math.max(this.#start, this.#filled - END.length + 1)
        return null
      }
      const head = parseHead(held.toString('latin1', this.#start, end))
      this.#start = this.#searched = end + END.length
      if (head.status >= 200 || head.status === 101) return head
    }
  }

  /** A copy of what followed the head. */
  rest(): Buffer {
    return Buffer.from(this.#buffer.subarray(this.#start, this.#filled))
  }

  #append(chunk: Uint8Array): void {
    const needed = this.#filled + chunk.length
    if (needed > this.#buffer.length) {
      const grown = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2))
      this.#buffer.copy(grown, 0, 0, this.#filled)
      this.#buffer = grown
    }
    this.#buffer.set(chunk, this.#filled)
    this.#filled = needed
  }
}

/** The values of a field, in the order sent. */
export function valuesOf({ fields }: ResponseHead, name: string): readonly string[] {
  return fields.filter(([given]) => given === name).map(([, value]) => value)
}

/** The fields as `node:http` has them: repeated ones joined, those of Set-Cookie in a list. */
export function headersOf(head: ResponseHead): IncomingHttpHeaders {
  const headers: IncomingHttpHeaders = Object.create(null) as {}
  const cookies = valuesOf(head, 'set-cookie')
  if (cookies.length > 0) headers['set-cookie'] = [...cookies]
  for (const [name, value] of head.fields) {
    const before = headers[name]
    if (name === 'set-cookie') continue
    headers[name] = before === undefined ? value : `${before as string}, ${value}`
  }
  return headers
}

/** Another protocol is recognized by its first bytes: it might never send the end of a head. */
function checkStart(bytes: Buffer): void {
  const start = bytes.toString('latin1', 0, START.length)
  if (!START.startsWith(start)) throw notHttp()
}

function notHttp(): HandshakeError {
  return new HandshakeError('the response is not HTTP/1.1; check host, port and scheme of the URL')
}

function parseHead(text: string): ResponseHead {
  const [first = '', ...lines] = text.split('\r\n')
  const match = /^HTTP\/1\.([01]) ([1-9][0-9]{2})(?: [^\x00\r\n]*)?$/.exec(first)
  if (match === null) throw notHttp()
  return { status: Number(match[2]), isHttp11: match[1] === '1', fields: lines.map(parseField) }
}

/** One field; a line that continues the one before it is refused (RFC 9112, section 5.2). */
function parseField(line: string): readonly [string, string] {
  const colon = line.indexOf(':')
  const name = line.slice(0, Math.max(0, colon))
  const value = line.slice(colon + 1)
  if (!isToken(name) || /[\x00-\x08\x0a-\x1f\x7f]/.test(value)) {
    throw new HandshakeError('the response has a malformed header field')
  }
  return [name.toLowerCase(), trimEndOf(value.replace(/^[\t ]+/, ''), '\t ')]
}
