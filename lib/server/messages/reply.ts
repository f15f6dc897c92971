/**
 * The few shapes that routes speak in: what came in ({@link Call}), what goes out ({@link Reply}),
 * and how a reply is written. Routes return values; only this file and the streams touch a
 * response.
 *
 * @module
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { problemOf, type ProblemError } from '../errors.js'

/** A request of `node:http`, `https`, the `http2` compatibility API, or a framework over them. */
export type HttpRequest = IncomingMessage | Http2ServerRequest

/** The response that belongs to an {@link HttpRequest}. */
export type HttpResponse = ServerResponse | Http2ServerResponse

/** What a route answers. It is not changed once it was given, and may be given again. */
export interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** Text is sent as UTF-8, in one write with the headers; absent is no content. */
  readonly body?: string | Uint8Array
  /** Writes the content itself, over time; `body` is then absent. Also called when the peer is gone. */
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

/** A reply with a JSON document that is text already. */
export function jsonText(
  status: number,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  return { status, headers: { 'Content-Type': 'application/json', ...headers }, body }
}

/** The reply to an error. */
export function problemReply(error: ProblemError): Reply {
  return {
    status: error.status,
    headers: { 'Content-Type': 'application/problem+json', ...error.headers },
    body: JSON.stringify(problemOf(error)),
  }
}

/** Headers of every answer: it is not cached, guessed at, framed or read by other sites. */
const COMMON_HEADERS: Readonly<Record<string, string>> = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'X-Frame-Options': 'DENY',
}

type OutgoingHeaders = Record<string, string | number>

/** Headers of replies: those that are given again and again keep them. */
const written = new WeakMap<Reply, OutgoingHeaders>()

function headersOf(reply: Reply): OutgoingHeaders {
  let headers = written.get(reply)
  if (headers === undefined) {
    headers = { ...COMMON_HEADERS, ...reply.headers }
    const { status, body, stream } = reply
    if (body !== undefined) headers['Content-Length'] = Buffer.byteLength(body)
    else if (stream === undefined && status !== 204 && status !== 304) headers['Content-Length'] = 0
    written.set(reply, headers)
  }
  return headers
}

/** Writes a reply. Nothing happens when the response was begun or its peer is gone. */
export function writeReply(
  request: HttpRequest,
  response: HttpResponse,
  reply: Reply,
  extra: Readonly<Record<string, string>> | null,
): void {
  // Both classes have the same methods; their overloads keep the union from being called.
  const out = response as ServerResponse
  if (out.headersSent || out.writableEnded || out.destroyed) {
    // What the stream holds must be freed, and nobody else's answer be written into.
    if (reply.stream !== undefined) reply.stream(out.destroy())
    return
  }
  const { body, stream } = reply
  out.writeHead(reply.status, extra === null ? headersOf(reply) : { ...headersOf(reply), ...extra })
  if (stream !== undefined) stream(out)
  else if (body === undefined || request.method === 'HEAD') out.end()
  else out.end(body)
}
