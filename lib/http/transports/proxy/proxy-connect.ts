import type { Socket } from 'node:net'
import { checkOptions, type OptionKinds } from '../../../internal/options.js'
import { checkCount, DEFAULT_TIMEOUTS } from '../../config.js'
import { proxiesFromEnvironment } from '../../environment.js'
import { resolveTls, TlsContext, type Verify } from '../../tls.js'
import { addressText, connectWithin, openTcp, openTls } from '../connect.js'
import { Proxy, tunnel, type ProxyInit } from './proxy.js'

/** The server to which a tunnel leads. */
export interface TunnelTarget {
  /** A host name, or an IP address without brackets. */
  readonly host: string
  readonly port: number
  /** Whether TLS will follow, which chooses between HTTPS_PROXY and HTTP_PROXY. */
  readonly secure: boolean
}

/** Options of {@link proxyConnect}. */
export interface ProxyConnectOptions {
  /** For TCP, TLS to the proxy and its answer, in ms; `null` for none. @defaultValue 5000 */
  readonly timeout?: number | null | undefined
  /** How the certificate of an `https:` proxy is verified. @defaultValue true */
  readonly verify?: Verify | undefined
  /**
   * Without a proxy, reads HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY; and SSL_CERT_FILE,
   * SSL_CERT_DIR and SSLKEYLOGFILE. @defaultValue true
   */
  readonly trustEnv?: boolean | undefined
}

const OPTIONS: OptionKinds<ProxyConnectOptions> = {
  timeout: 'number|null', verify: 'any', trustEnv: 'boolean',
}

/**
 * Makes a function that opens TCP connections through a proxy, by CONNECT or SOCKS5, for protocols
 * other than HTTP: pass it as `connect` to a `WebSocketClient`. The function is given the server
 * and a signal; it does not add TLS to the server.
 *
 * @param proxy - Default: what the environment names for the server; without a proxy there, the
 *   connection is direct.
 * @returns a function that throws {@link ConnectError}, {@link ConnectTimeoutError},
 *   {@link ProxyError}, or the signal's reason, and then leaves no socket open.
 * @throws TypeError for an invalid proxy or option.
 * @example
 * ```ts
 * const client = new WebSocketClient({ connect: proxyConnect('http://proxy.example:3128') })
 * ```
 */
export function proxyConnect(
  proxy: ProxyInit | null = null,
  options: ProxyConnectOptions = {},
): (target: TunnelTarget, signal?: AbortSignal) => Promise<Socket> {
  checkOptions(options, OPTIONS, 'proxyConnect()')
  const { timeout = DEFAULT_TIMEOUTS.connect, verify, trustEnv = true } = options
  const timeoutMs = checkCount('timeout', timeout, 1)
  const given = proxy === null ? null : new Proxy(proxy)
  const environment = given === null && trustEnv ? proxiesFromEnvironment() : null
  const tls = new TlsContext(resolveTls({ verify, trustEnv }))
  return async (target, signal) => {
    const used = given ?? proxyFor(target, environment)
    const address = { host: used?.host ?? target.host, port: used?.port ?? target.port }
    const peer = addressText(address)
    return await connectWithin({ timeoutMs, signal: signal ?? null }, peer, async (track) => {
      for (let tries = 0; ; tries++) {
        let socket: Socket = await openTcp(address, timeoutMs, track, () => {})
        if (used === null) return socket
        if (used.secure) {
          socket = await openTls(socket, tls.optionsFor(used.host, ['http/1.1']), peer, track)
        }
        if (await tunnel(socket, used, { ...target, lookup: null }, tries)) return socket
        socket.destroy()
      }
    })
  }
}

function proxyFor(
  { host, port, secure }: TunnelTarget,
  environment: ReturnType<typeof proxiesFromEnvironment>,
): Proxy | null {
  const authority = addressText({ host, port })
  const url = environment?.proxyFor(new URL(`${secure ? 'https' : 'http'}://${authority}`)) ?? null
  return url === null ? null : new Proxy(url)
}
