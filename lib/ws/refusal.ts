import {
  type OutgoingHttpHeaders,
  STATUS_CODES,
  validateHeaderName,
  validateHeaderValue,
} from 'node:http'
import type { OptionKinds } from '../internal/options.js'

/** An ordinary HTTP response in place of the 101; the connection then closes. */
export interface Refusal {
  /** A status from 300 to 599. */
  readonly status: number
  /** Further header fields. Content-Length and Connection are added. */
  readonly headers?: OutgoingHttpHeaders | undefined
  /** The content. @defaultValue the name of the status, as text/plain */
  readonly body?: string | Uint8Array | undefined
}

/** For `checkOptions()`. */
export const REFUSAL: OptionKinds<Refusal> = {
  status: 'number! a status from 300 to 599', headers: 'object', body: 'any',
}

/** The part of a response that is needed to answer a plain request, over HTTP/1.1 or HTTP/2. */
export interface PlainResponse {
  statusCode: number
  /** Replaces a field of the same name: Content-Type may be set twice. */
  setHeader(name: string, value: string): unknown
  /** Sends the content and ends the response. */
  end(body: Uint8Array): unknown
}

/** For plain requests; those that ask for an upgrade come without a response object. */
export function sendRefusal(response: PlainResponse, refusal: Refusal): void {
  response.statusCode = refusal.status
  response.setHeader('Content-Type', TEXT_PLAIN)
  for (const [name, value] of headerFields(refusal.headers ?? {})) response.setHeader(name, value)
  response.end(refusalContent(refusal))
}

/** The content type of a refusal whose headers do not name one. */
export const TEXT_PLAIN = 'text/plain; charset=utf-8'

export function refusalContent({ status, body }: Refusal): Buffer {
  const content = body ?? STATUS_CODES[status] ?? `${status}`
  return typeof content === 'string' ? Buffer.from(content) : Buffer.from(content)
}

/** Name and value of each field to send. @throws TypeError on one that would break the head. */
export function headerFields(headers: OutgoingHttpHeaders): [name: string, value: string][] {
  return Object.entries(headers).flatMap(([name, given]) => {
    if (given === undefined) return []
    validateHeaderName(name)
    return (Array.isArray(given) ? given : [given]).map((item): [string, string] => {
      const value = String(item)
      validateHeaderValue(name, value)
      return [name, value]
    })
  })
}
