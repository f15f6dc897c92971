import {
  type OutgoingHttpHeaders,
  STATUS_CODES,
  validateHeaderName,
  validateHeaderValue,
} from 'node:http'
import type { Duplex } from 'node:stream'
import type { Refusal } from './handshake.js'

/** Name and value of each field to send; throws TypeError on one that would break the head. */
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

/** The body of a refusal and its content type when the refusal names none. */
export function refusalBody({ status, body }: Refusal): { octets: Buffer; type: string } {
  const content = body ?? STATUS_CODES[status] ?? `${status}`
  return {
    octets: typeof content === 'string' ? Buffer.from(content) : Buffer.from(content),
    type: 'text/plain; charset=utf-8',
  }
}

/** Completes the opening handshake (RFC 6455, section 4.2.2). */
export function acceptUpgrade(socket: Duplex, headers: OutgoingHttpHeaders): void {
  socket.write(head(101, { Upgrade: 'websocket', Connection: 'Upgrade', ...headers }), 'latin1')
}

/**
 * Answers with ordinary HTTP in place of the 101 and ends the connection: first its own side, then,
 * once the peer has ended too or `lingerMs` are over, the socket. Input is read and dropped, so that
 * no reset overtakes the answer.
 */
export function refuseUpgrade(
  socket: Duplex,
  refusal: Refusal,
  method: string | undefined,
  lingerMs: number,
): void {
  const { octets, type } = refusalBody(refusal)
  const fields = head(refusal.status, {
    ...(hasField(refusal.headers, 'content-type') ? {} : { 'Content-Type': type }),
    ...refusal.headers,
    'Content-Length': octets.length,
    // Whoever sends Upgrade names it in Connection (RFC 9110, section 7.8).
    Connection: hasField(refusal.headers, 'upgrade') ? 'Upgrade, close' : 'close',
  })
  socket.write(fields, 'latin1')
  socket.end(method === 'HEAD' ? undefined : octets)
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
