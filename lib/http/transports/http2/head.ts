import { RemoteProtocolError } from '../../errors.js'
import { Headers } from '../../headers.js'
import type { Request } from '../../request.js'
import { listMembers } from '../../field-values.js'
import type { FieldSection, HpackEncoder } from './hpack.js'

/** Host, and fields about an HTTP/1.1 connection, which are forbidden (RFC 9113, section 8.2.2). */
const CONNECTION_FIELDS = new Set([
  'connection',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
])
/** Those that make a response malformed. */
const FORBIDDEN_IN_RESPONSES = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
])

/** The header block of a request, one byte per character (RFC 9113, section 8.3.1). */
export function encodeHead(encoder: HpackEncoder, request: Request, target: string): string {
  const { headers, url } = request
  let block =
    encoder.begin() +
    encoder.field(':method', request.method) +
    encoder.field(':scheme', url.protocol === 'https:' ? 'https' : 'http') +
    encoder.field(':authority', headers.get('host') ?? url.host) +
    encoder.field(':path', target)
  const hopByHop = listMembers(headers.get('connection'))
  headers.visit((name, value) => {
    if (CONNECTION_FIELDS.has(name) || hopByHop.includes(name)) {
      if (name === 'te' && value.toLowerCase() === 'trailers')
        block += encoder.field(name, 'trailers')
      return
    }
    block += encoder.field(name, value)
  })
  return block
}

/** The head of a final or informational response. */
export interface Http2Head {
  readonly statusCode: number
  /** Without `:status`. */
  readonly headers: Headers
}

/** @throws {@link RemoteProtocolError} when the section is malformed (RFC 9113, section 8.1.1). */
export function parseHead(section: FieldSection): Http2Head {
  const { fields } = section
  if (section.fault !== null) throw new RemoteProtocolError(section.fault)
  const status = fields[1] ?? ''
  if (fields[0] !== ':status' || !/^[1-9][0-9]{2}$/.test(status)) {
    throw new RemoteProtocolError('the server sent a response without a valid :status')
  }
  return { statusCode: Number(status), headers: headersOf(fields.slice(2)) }
}

/** @throws {@link RemoteProtocolError} when the section is malformed. */
export function parseTrailers(section: FieldSection): Headers {
  if (section.fault !== null) throw new RemoteProtocolError(section.fault)
  return headersOf(section.fields)
}

function headersOf(fields: readonly string[]): Headers {
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i]!
    if (name.startsWith(':') || FORBIDDEN_IN_RESPONSES.has(name)) {
      throw new RemoteProtocolError(`the server sent the field ${name}, which is not allowed there`)
    }
  }
  return Headers.fromWire(fields)
}

/** Content-Length, or null without one. @throws {@link RemoteProtocolError} if it is invalid. */
export function contentLengthOf(headers: Headers): number | null {
  const value = headers.get('content-length')
  if (value === null) return null
  if (!/^[0-9]{1,15}$/.test(value)) {
    throw new RemoteProtocolError('the response has a malformed or contradictory Content-Length')
  }
  return Number(value)
}
