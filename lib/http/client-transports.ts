import { proxiesFromEnvironment } from './environment.js'
import type { ProxyInit } from './transports/proxy/proxy.js'

/** Transports by URL pattern; null stands for the default one. */
export type Mounts<T> = Readonly<Record<string, T | null>>

/** What {@link ClientTransports} is made from. */
export interface ClientTransportOptions<T> {
  readonly transport: T | null
  readonly mounts: Mounts<T> | null
  readonly proxy: ProxyInit | null
  readonly trustEnv: boolean
  /** Makes a transport of the client's own, through a proxy or not. */
  readonly make: (proxy: ProxyInit | null) => T
}

interface Mount<T> {
  readonly rank: readonly number[]
  readonly matches: (url: URL) => boolean
  readonly transport: T | null
}

/** The transports of one client: those it was given, and those it made and has to close. */
export class ClientTransports<T extends { close?(): unknown }> {
  readonly #options: ClientTransportOptions<T>
  readonly #mounts: readonly Mount<T>[]
  readonly #environment: ReturnType<typeof proxiesFromEnvironment>
  readonly #made = new Map<string, T>()

  /** @throws TypeError for a pattern that is none. */
  constructor(options: ClientTransportOptions<T>) {
    this.#options = options
    const { mounts, transport } = options
    if (transport !== null) checkTransport('transport', transport)
    if (typeof (mounts ?? {}) !== 'object')
      throw new TypeError('mounts must be an object of transports by pattern')
    this.#mounts = Object.entries(mounts ?? {})
      .map(([pattern, mounted]) => parseMount(pattern, mounted))
      .sort((a, b) => compareRanks(b.rank, a.rank))
    const usesEnvironment = options.trustEnv && options.transport === null && options.proxy === null
    this.#environment = usesEnvironment ? proxiesFromEnvironment() : null
    // Made at once, so that a wrong option is found at construction.
    if (options.transport === null) this.#own(options.proxy)
  }

  /** The transport for `url`: the most specific mount, the client's own otherwise. */
  forUrl(url: URL): T {
    for (const mount of this.#mounts) {
      if (mount.matches(url)) return mount.transport ?? this.#default(url)
    }
    return this.#default(url)
  }

  /** Closes those that the client made. */
  close(): unknown[] {
    return [...this.#made.values()].map((transport) => transport.close?.())
  }

  #default(url: URL): T {
    const { transport, proxy } = this.#options
    if (transport !== null) return transport
    return this.#own(this.#environment?.proxyFor(url) ?? proxy)
  }

  #own(proxy: ProxyInit | null): T {
    const key = typeof proxy === 'string' ? proxy : ''
    let transport = this.#made.get(key)
    if (transport === undefined) this.#made.set(key, (transport = this.#options.make(proxy)))
    return transport
  }
}

function checkTransport(what: string, transport: unknown): void {
  if (typeof (transport as { handleRequest?: unknown } | undefined)?.handleRequest === 'function')
    return
  throw new TypeError(`${what} must be a transport, which has handleRequest(), or null`)
}

/** `scheme://host:port`, where the scheme may be `all` and the host `*`, `*.name` or `*name`. */
function parseMount<T>(pattern: string, transport: T | null): Mount<T> {
  if (transport !== null) checkTransport(`mounts[${JSON.stringify(pattern)}]`, transport)
  const match = /^(all|https?):\/\/([^/:?#[\]]*|\[[^\]]*\])(?::([0-9]+))?\/?$/i.exec(pattern)
  if (match === null) {
    throw new TypeError(
      `mounts: ${JSON.stringify(pattern)} is no pattern; write "https://", "all://*.example.org" or the like`,
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

function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port)
  return url.protocol === 'https:' ? 443 : 80
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!
  return 0
}
