import {
  Headers,
  proxyConnect,
  tlsConnectOptions,
  type HeadersInit,
  type TimeoutOptions,
} from '../../http/index.js'
import {
  CloseCode,
  HandshakeRefusedError,
  WebSocketClient,
  type WebSocketConnection,
} from '../../ws/index.js'
import { BEARER_PROTOCOL, STREAM_PROTOCOL } from '../access/auth.js'
import { errorOf } from './answer-error.js'
import { BrokenStreamError, type EventStream, type OpenStream } from './follow.js'

/** More than any event has; the service and its log bound them further. */
const MAX_EVENT_BYTES = 2 ** 28
const MAX_DELAY_MS = 2 ** 31 - 1
const DEFAULT_TIMEOUT_MS = 30_000

/** The settings of a client that its WebSockets share. */
export interface WebSocketSettings {
  readonly baseUrl: string | URL
  readonly key: string | undefined
  readonly headers: HeadersInit | undefined
  readonly timeout: TimeoutOptions
  readonly trustEnv: boolean
}

/**
 * Opens streams of events by WebSocket, at `path` below the address of the service; `closing` ends
 * them.
 */
export function webSocketStreams(
  settings: WebSocketSettings,
  path: string,
  closing: AbortSignal,
): OpenStream {
  const { key, trustEnv } = settings
  const bearer = Buffer.from(key ?? '').toString('base64url')
  const openTimeoutMs = connectTimeoutOf(settings.timeout)
  const shared = {
    protocols: [STREAM_PROTOCOL, ...(key === undefined ? [] : [BEARER_PROTOCOL + bearer])],
    headers: fieldsOf(settings.headers),
    maxMessageBytes: MAX_EVENT_BYTES,
    connectTimeoutMs: openTimeoutMs,
    handshakeTimeoutMs: openTimeoutMs,
    tls: tlsConnectOptions({ trustEnv }),
    connect: proxyConnect(null, { trustEnv, timeout: null }),
  }
  return async (params, given, silenceMs) => {
    const signal = AbortSignal.any([given, closing])
    const timeoutMs = Math.min(MAX_DELAY_MS, Math.ceil(silenceMs))
    const keepAlive = { intervalMs: Math.ceil(timeoutMs / 2), timeoutMs }
    const client = new WebSocketClient({ ...shared, keepAlive })
    const url = new URL(settings.baseUrl)
    url.pathname = url.pathname.replace(/\/$/, '') + path
    for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value)
    try {
      return streamOf(await client.connect(url, { signal }), signal)
    } catch (error) {
      if (error instanceof HandshakeRefusedError) throw refusalOf(error)
      throw error
    }
  }
}

function streamOf(connection: WebSocketConnection, signal: AbortSignal): EventStream {
  return {
    async *events() {
      for await (const message of connection.messages({ signal })) yield String(message)
      const { code, error } = await connection.closed
      if (error !== null && error.code !== 'ERR_WS_CONNECTION_LOST') {
        throw new BrokenStreamError(`the stream was closed: ${error.message}`, { cause: error })
      }
      return code === CloseCode.NORMAL
    },
    // Events that the filter leaves out are not told.
    position: 0,
    async close() {
      // Nobody waits for a closing handshake with a service that may have vanished.
      if (connection.state === 'open') void connection.close()
      else connection.terminate()
    },
  }
}

function refusalOf({ statusCode, headers, body }: HandshakeRefusedError): Error {
  return errorOf({
    status: statusCode,
    type: headers['content-type'] ?? null,
    retryAfter: headers['retry-after'] ?? null,
    requestId: [headers['x-request-id'] ?? null].flat()[0] ?? null,
    content: body,
  })
}

function fieldsOf(init: HeadersInit | undefined): Record<string, string[]> {
  const fields: Record<string, string[]> = {}
  for (const [name, value] of new Headers(init)) (fields[name] ??= []).push(value)
  return fields
}

function connectTimeoutOf(timeout: TimeoutOptions): number {
  const ms = typeof timeout === 'object' && timeout !== null ? timeout.connect : timeout
  return Math.min(MAX_DELAY_MS, ms === null ? MAX_DELAY_MS : (ms ?? DEFAULT_TIMEOUT_MS))
}
