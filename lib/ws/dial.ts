import { connect as connectTcp, isIP, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ConnectionOptions } from 'node:tls'
import { describeError } from '../internal/errors.js'
import type { OptionKinds } from '../internal/options.js'
import type { ConnectTarget } from './client-target.js'
import { ConnectError } from './errors.js'
import type { Opening } from './opening.js'

/** TLS options of a client, as `tls.connect()` has them. */
export type WebSocketTlsOptions = Pick<
  ConnectionOptions,
  | 'ca'
  | 'cert'
  | 'checkServerIdentity'
  | 'ciphers'
  | 'key'
  | 'maxVersion'
  | 'minVersion'
  | 'passphrase'
  | 'pfx'
  | 'rejectUnauthorized'
  | 'secureContext'
  | 'servername'
>

/** For `checkOptions()`. */
export const TLS: OptionKinds<WebSocketTlsOptions> = {
  ca: 'any', cert: 'any', checkServerIdentity: 'function', ciphers: 'string', key: 'any',
  maxVersion: 'string', minVersion: 'string', passphrase: 'string', pfx: 'any',
  rejectUnauthorized: 'boolean', secureContext: 'object', servername: 'string',
}

/**
 * Opens the transport to a server: a stream of bytes, without TLS, which the client adds for
 * `wss:`. What it returns is destroyed when the opening fails; `signal` aborts then, too.
 */
export type ConnectFunction = (
  target: ConnectTarget,
  signal: AbortSignal,
) => Duplex | Promise<Duplex>

/** How a client opens its transports. */
export interface DialOptions {
  readonly connect: ConnectFunction | undefined
  readonly tls: WebSocketTlsOptions
}

/** Opens the transport, and secures it for `wss:`. @throws ConnectError */
export async function dial(
  target: ConnectTarget,
  { connect = connectDirectly, tls }: DialOptions,
  opening: Opening,
): Promise<Duplex> {
  try {
    const plain = opening.own(checkTransport(await connect(target, opening.signal)))
    if ((plain as Partial<Socket>).connecting === true) await ready(plain, 'connect')
    if (!target.secure) return plain
    return await ready(opening.own(secure(plain, target.host, tls)), 'secureConnect')
  } catch (cause) {
    const host = target.host.includes(':') ? `[${target.host}]` : target.host
    const text = `cannot connect to ${host}:${target.port}: ${describeError(cause)}`
    throw new ConnectError(text, { cause })
  }
}

function connectDirectly({ host, port }: ConnectTarget): Socket {
  // The connection ends its side itself, after what the program still sends.
  return connectTcp({ host, port, noDelay: true, allowHalfOpen: true })
}

function secure(socket: Duplex, host: string, options: WebSocketTlsOptions): Duplex {
  // node:tls is loaded by the first connection that needs it.
  return process.getBuiltinModule('node:tls').connect({
    // The certificate is checked against this name; for an IP address SNI cannot carry it.
    host,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...options,
    ALPNProtocols: ['http/1.1'],
    socket,
  })
}

function checkTransport(transport: unknown): Duplex {
  const { pipe, write } = (transport ?? {}) as Partial<Duplex>
  if (typeof pipe === 'function' && typeof write === 'function') return transport as Duplex
  throw new TypeError('connect must return a stream to read from and write to')
}

function ready(socket: Duplex, event: string): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const onClose = (): void => reject(new Error('the peer closed the connection'))
    const settle = (): void => {
      socket.off('error', reject)
      socket.off('close', onClose)
    }
    socket.once('error', reject)
    socket.once('close', onClose)
    socket.once(event, () => {
      settle()
      resolve(socket)
    })
  })
}
