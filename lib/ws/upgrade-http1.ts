import { type OutgoingHttpHeaders, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { headerFields, type Refusal, refusalContent, TEXT_PLAIN } from './refusal.js'

/** Completes the opening handshake (RFC 6455, section 4.2.2). */
export function acceptUpgrade(socket: Duplex, headers: OutgoingHttpHeaders): void {
  socket.write(head(101, { Upgrade: 'websocket', Connection: 'Upgrade', ...headers }), 'latin1')
}

/**
 * Answers with ordinary HTTP in place of the 101 and ends this side of the connection. Input is
 * still read, and discarded, because a reset could overtake the response. The socket is destroyed
 * after `lingerMs` unless the peer has ended its side.
 */
export function refuseUpgrade(
  socket: Duplex,
  refusal: Refusal,
  method: string | undefined,
  lingerMs: number,
): void {
  const content = refusalContent(refusal)
  const fields = head(refusal.status, {
    ...(hasField(refusal.headers, 'content-type') ? {} : { 'Content-Type': TEXT_PLAIN }),
    ...refusal.headers,
    'Content-Length': content.length,
    // Connection must list Upgrade if that is sent (RFC 9110, section 7.8).
    Connection: hasField(refusal.headers, 'upgrade') ? 'Upgrade, close' : 'close',
  })
  socket.write(fields, 'latin1')
  socket.end(method === 'HEAD' ? undefined : content)
  socket.on('data', () => {})
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  timer.unref()
  socket.once('close', () => clearTimeout(timer))
}

function hasField(headers: OutgoingHttpHeaders | undefined, name: string): boolean {
  return Object.keys(headers ?? {}).some((key) => key.toLowerCase() === name)
}

function head(status: number, headers: OutgoingHttpHeaders): string {
  const lines = headerFields(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Unknown'}\r\n${lines.join('')}\r\n`
}
