import { proxiesFromEnvironment } from './environment.js'
import type { Request } from './request.js'
import type { ProxyInit } from './transports/proxy/proxy.js'
import { portOf } from './url.js'

/** Transports by URL pattern, such as `all://*.example.org`; null is the default transport. */
export type Mounts<T> = Readonly<Record<string, T | null>>

/** Options of {@link ClientTransports}. */
export interface ClientTransportOptions<T> {
  readonly transport: T | null
  readonly mounts: Mounts<T> | null
  readonly proxy: ProxyInit | null
  readonly trustEnv: boolean
  /** Whether the client has a certificate, which is for the origins that the caller names. */
  readonly hasCertificate: boolean
  /**
   * Makes a transport that the client owns; `proxy` is null for direct connections. `foreign`: for
   * origins that redirects lead to.
   */
  readonly make: (proxy: ProxyInit | null, foreign: boolean) => T
}

interface Mount<T> {
  readonly rank: readonly number[]
  readonly matches: (url: URL) => boolean
  readonly transport: T | null
}

/**
 * Picks the transport of each call of one client. Transports that were passed in belong to the
 * caller; those made here, one per proxy, are closed with the client.
 */
export class ClientTransports<T extends { close?(): unknown }> {
  readonly #options: ClientTransportOptions<T>
  readonly #mounts: readonly Mount<T>[]
  readonly #environment: ReturnType<typeof proxiesFromEnvironment>
  readonly #owned = new Map<string, T>()
  /** Whether the client that they were made for was closed. */
  isClosed = false

  /** @throws TypeError for an invalid pattern or transport. */
  constructor(options: ClientTransportOptions<T>) {
    this.#options = options
    const { mounts, transport } = options
    if (transport !== null) checkTransport('transport', transport)
    if (typeof (mounts ?? {}) !== 'object') {
      throw new TypeError('mounts must be an object of transports by URL pattern')
    }
    this.#mounts = Object.entries(mounts ?? {})
      .map(([pattern, mounted]) => parseMount(pattern, mounted))
      .sort((a, b) => compareRanks(b.rank, a.rank))
    const usesEnvironment = options.trustEnv && options.transport === null && options.proxy === null
    this.#environment = usesEnvironment ? proxiesFromEnvironment() : null
    // Made now, so that an invalid option fails at construction.
    if (options.transport === null) this.#ownTransport(options.proxy, false)
  }

  /** The most specific mount that matches the URL, or the default transport. */
  forRequest(request: Request): T {
    const mount = this.#mounts.find(({ matches }) => matches(request.url))
    return mount?.transport ?? this.#default(request)
  }

  /** Closes the transports made here. Returns what each `close()` returned. */
  close(): unknown[] {
    this.isClosed = true
    return [...this.#owned.values()].map((transport) => transport.close?.())
  }

  #default(request: Request): T {
    const { transport, proxy, hasCertificate } = this.#options
    if (transport !== null) return transport
    const foreign = hasCertificate && request.isForeign
    return this.#ownTransport(this.#environment?.proxyFor(request.url) ?? proxy, foreign)
  }

  #ownTransport(proxy: ProxyInit | null, foreign: boolean): T {
    const key = (foreign ? 'foreign ' : '') + (typeof proxy === 'string' ? proxy : '')
    let transport = this.#owned.get(key)
    if (transport === undefined) {
      this.#owned.set(key, (transport = this.#options.make(proxy, foreign)))
    }
    return transport
  }
}

function checkTransport(what: string, transport: unknown): void {
  const { handleRequest } = (transport ?? {}) as { readonly handleRequest?: unknown }
  if (typeof handleRequest === 'function') return
  throw new TypeError(`${what} must be a transport with a handleRequest() method, or null`)
}

/** `scheme://host:port`; the scheme may be `all`, the host `*`, `*.name` or `*name`. */
function parseMount<T>(pattern: string, transport: T | null): Mount<T> {
  if (transport !== null) checkTransport(`mounts[${JSON.stringify(pattern)}]`, transport)
  const match = /^(all|https?):\/\/([^/:?#[\]]*|\[[^\]]*\])(?::([0-9]+))?\/?$/i.exec(pattern)
  if (match === null) {
    throw new TypeError(
      `mounts: ${JSON.stringify(pattern)} is not a URL pattern; write one like "https://" or ` +
        '"all://*.example.org"',
    )
  }
  const scheme = match[1]!.toLowerCase()
  const host = match[2]!.toLowerCase()
  const port = match[3] === undefined ? null : Number(match[3])
  const hostMatches = hostTest(host)
  return {
    rank: [port === null ? 0 : 1, host === '*' ? 0 : host.length, scheme === 'all' ? 0 : 1],
    transport,
    matches: (url) =>
      (scheme === 'all' || url.protocol === `${scheme}:`) &&
      (port === null || port === portOf(url)) &&
      hostMatches(url.hostname.toLowerCase()),
  }
}

function hostTest(host: string): (name: string) => boolean {
  if (host === '' || host === '*') return () => true
  if (host.startsWith('*.')) return (name) => name.endsWith(host.slice(1))
  if (host.startsWith('*'))
    return (name) => name === host.slice(1) || name.endsWith(`.${host.slice(1)}`)
  return (name) => name === host
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!
  return 0
}
