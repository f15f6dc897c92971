/**
 * What a route returns, and how it is written. Routes return a {@link Reply}; only this file and
 * the streams touch a response.
 *
 * @module
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { problemOf, type ProblemError } from '../errors.js'
import { REQUEST_ID, requestIdOf } from './request-id.js'

/** A request of `node:http`, `https`, the `http2` compatibility API, or a framework over them. */
export type HttpRequest = IncomingMessage | Http2ServerRequest

/** The response that belongs to an {@link HttpRequest}. */
export type HttpResponse = ServerResponse | Http2ServerResponse

/** What a route answers. Immutable: a route may return the same object again. */
export interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** Text is sent as UTF-8, in one write with the headers. Absent: no content. */
  readonly body?: string | Uint8Array
  /** Writes the content over time, instead of `body`. Called even if the peer has disconnected. */
  readonly stream?: (response: ServerResponse) => void
}

/** A reply with a JSON document. */
export function json(
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  return jsonText(status, JSON.stringify(value), headers)
}

/** A reply with a JSON document that is already encoded. */
export function jsonText(
  status: number,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  return { status, headers: { 'Content-Type': 'application/json', ...headers }, body }
}

/** The reply with an error's problem details, for this request. */
export function problemReply(error: ProblemError, request: HttpRequest): Reply {
  return {
    status: error.status,
    headers: { 'Content-Type': 'application/problem+json', ...error.headers },
    body: JSON.stringify(problemOf(error, requestIdOf(request))),
  }
}

/** Headers of every response: no caching, sniffing, framing, or reading by other sites. */
const COMMON_HEADERS: Readonly<Record<string, string>> = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'X-Frame-Options': 'DENY',
}

type OutgoingHeaders = Record<string, string | number>

/** Complete headers of each reply, computed once for replies that are sent repeatedly. */
const computed = new WeakMap<Reply, OutgoingHeaders>()

function headersOf(reply: Reply): OutgoingHeaders {
  let headers = computed.get(reply)
  if (headers === undefined) {
    headers = { ...COMMON_HEADERS, ...reply.headers }
    const { status, body, stream } = reply
    if (body !== undefined) headers['Content-Length'] = Buffer.byteLength(body)
    else if (stream === undefined && status !== 204 && status !== 304) headers['Content-Length'] = 0
    computed.set(reply, headers)
  }
  return headers
}

/** Writes a reply, unless the response was already begun or its peer has disconnected. */
export function writeReply(
  request: HttpRequest,
  response: HttpResponse,
  reply: Reply,
  extra: Readonly<Record<string, string>> | null,
): void {
  // Both classes have these methods, but their overloads make the union uncallable.
  const out = response as ServerResponse
  if (out.headersSent || out.writableEnded || out.destroyed) {
    // The stream must release its resources, and must not write into another handler's response.
    if (reply.stream !== undefined) reply.stream(out.destroy())
    return
  }
  const { body, stream } = reply
  const headers = { ...headersOf(reply), [REQUEST_ID]: requestIdOf(request), ...extra }
  out.writeHead(reply.status, headers)
  if (stream !== undefined) stream(out)
  else if (body === undefined || request.method === 'HEAD') out.end()
  else out.end(body)
}
