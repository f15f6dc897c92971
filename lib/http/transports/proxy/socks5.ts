import { isIP, type Socket } from 'node:net'
import { ProxyError } from '../../errors.js'
import { HandshakeReader } from './handshake-reader.js'

/** Texts of the reply codes (RFC 1928, section 6). */
const REPLIES = [
  'succeeded',
  'general failure',
  'connection not allowed by its rules',
  'network unreachable',
  'host unreachable',
  'connection refused',
  'time to live expired',
  'command not supported',
  'address type not supported',
]

/**
 * Connects to `host` through the SOCKS5 proxy on `socket` (RFC 1928), with user name and password
 * if there are any (RFC 1929). A host name is sent unresolved: the proxy resolves it.
 *
 * @throws {@link ProxyError} when the proxy refuses or does not speak SOCKS5.
 */
export async function socksConnect(
  socket: Socket,
  host: string,
  port: number,
  credentials: readonly [username: string, password: string] | null,
): Promise<void> {
  const reader = new HandshakeReader(socket, 'the SOCKS5 proxy')
  try {
    await authenticate(socket, reader, credentials)
    socket.write(Buffer.concat([Buffer.from([5, 1, 0]), encodeAddress(host), encodePort(port)]))
    const [version, reply, , type] = await reader.take(4)
    if (version !== 5) throw new ProxyError('the proxy does not speak SOCKS5')
    if (reply !== 0) {
      throw new ProxyError(`the SOCKS5 proxy refused: ${REPLIES[reply!] ?? `reply ${reply}`}`)
    }
    const length = type === 1 ? 4 : type === 4 ? 16 : type === 3 ? (await reader.take(1))[0]! : -1
    if (length === -1)
      throw new ProxyError('the SOCKS5 proxy answered with an unknown address type')
    await reader.take(length + 2)
  } finally {
    reader.release()
  }
}

async function authenticate(
  socket: Socket,
  reader: HandshakeReader,
  credentials: readonly [string, string] | null,
): Promise<void> {
  socket.write(Buffer.from(credentials === null ? [5, 1, 0] : [5, 2, 0, 2]))
  const [version, method] = await reader.take(2)
  if (version !== 5) throw new ProxyError('the proxy does not speak SOCKS5')
  if (method === 0) return
  if (method !== 2 || credentials === null) {
    throw new ProxyError(
      credentials === null
        ? 'the SOCKS5 proxy requires authentication; set a user name and password'
        : 'the SOCKS5 proxy accepts none of the offered authentication methods',
    )
  }
  const [username, password] = credentials.map((text) => Buffer.from(text)) as [Buffer, Buffer]
  if (username.length > 255 || password.length > 255) {
    throw new ProxyError('user name and password for a SOCKS5 proxy have at most 255 bytes each')
  }
  const lengths = [username, password].map((text) => Buffer.from([text.length]))
  socket.write(Buffer.concat([Buffer.from([1]), lengths[0]!, username, lengths[1]!, password]))
  const [, status] = await reader.take(2)
  if (status !== 0) throw new ProxyError('the SOCKS5 proxy refused the user name or password')
}

function encodeAddress(host: string): Buffer {
  const family = isIP(host)
  if (family === 4) return Buffer.from([1, ...host.split('.').map(Number)])
  if (family === 6) return Buffer.from([4, ...ipv6Bytes(host)])
  const name = Buffer.from(host, 'latin1')
  if (name.length > 255)
    throw new ProxyError('a host name for a SOCKS5 proxy has at most 255 bytes')
  return Buffer.concat([Buffer.from([3, name.length]), name])
}

function ipv6Bytes(address: string): number[] {
  let plain = address.split('%', 1)[0]!
  if (plain.includes('.')) {
    const start = plain.lastIndexOf(':') + 1
    const bytes = plain.slice(start).split('.').map(Number)
    const [a, b, c, d] = bytes as [number, number, number, number]
    plain = `${plain.slice(0, start)}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
  }
  const [left, right] = plain.split('::') as [string, string | undefined]
  const head = left === '' ? [] : left.split(':')
  const tail = right === undefined || right === '' ? [] : right.split(':')
  const zeros = new Array<string>(8 - head.length - tail.length).fill('0')
  const groups = right === undefined ? head : [...head, ...zeros, ...tail]
  return groups.flatMap((group) => {
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 0xff]
  })
}

function encodePort(port: number): Buffer {
  return Buffer.from([port >> 8, port & 0xff])
}
