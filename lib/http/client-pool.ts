import { ClientTransports } from './client-transports.js'
import type { BaseClientOptions, ClientSettings } from './options.js'
import type { HttpTransportOptions } from './transports/http-transport.js'
import type { ProxyInit } from './transports/proxy/proxy.js'

/** The options of a client that say how its connections are made. @internal */
const POOL_OPTIONS = [
  'transport', 'mounts', 'proxy', 'limits', 'trustEnv', 'http1', 'http2', 'verify', 'cert',
  'lookup', 'localAddress',
] as const satisfies readonly (keyof PoolOptions<unknown>)[]

type PoolOptions<T> = BaseClientOptions<never, T> & Pick<HttpTransportOptions, 'lookup'>

interface Closable {
  close?(): unknown
}

/** What a client hands on to one that extends it. @internal */
export interface Parent<T extends Closable> {
  readonly settings: ClientSettings
  readonly pool: ClientPool<T>
}

/** The key of the parent in options. `checkOptions()` passes over symbols. */
const PARENT = Symbol('parent')

/** `options`, of a client that extends `parent`. @internal */
export function inheriting<O, T extends Closable>(options: O, parent: Parent<T>): O {
  // Other values are refused by the constructor.
  if (typeof options !== 'object' || options === null) return options
  return Object.create(options, { [PARENT]: { value: parent } }) as O
}

/** The client that `options` extend, or null. @internal */
export function parentOf<T extends Closable>(options: object): Parent<T> | null {
  return (options as { readonly [PARENT]?: Parent<T> } | null)?.[PARENT] ?? null
}

/**
 * The transports of a client. One that extends another shares them, unless it was given an option
 * that says how connections are made. Only the client that they were made for closes them.
 *
 * @internal
 */
export class ClientPool<T extends Closable> {
  readonly transports: ClientTransports<T>
  readonly #options: PoolOptions<T>
  readonly #shared: boolean

  /** @param make - Makes a transport that the client owns. */
  constructor(
    options: PoolOptions<T>,
    parent: ClientPool<T> | null,
    make: (options: HttpTransportOptions) => T,
  ) {
    this.#shared = parent !== null && POOL_OPTIONS.every((name) => options[name] === undefined)
    this.#options = merged(options, parent === null ? {} : parent.#options)
    this.transports = this.#shared ? parent!.transports : transportsOf(this.#options, make)
  }

  /** Closes what was made for this client. Returns what each `close()` returned. */
  close(): unknown[] {
    return this.#shared ? [] : this.transports.close()
  }
}

function merged<T>(options: PoolOptions<T>, inherited: PoolOptions<T>): PoolOptions<T> {
  const entries = POOL_OPTIONS.map((name) => {
    return [name, options[name] === undefined ? inherited[name] : options[name]]
  })
  return Object.fromEntries(entries) as PoolOptions<T>
}

function transportsOf<T extends Closable>(
  options: PoolOptions<T>,
  make: (options: HttpTransportOptions) => T,
): ClientTransports<T> {
  const { transport, mounts, proxy, cert, ...rest } = options
  return new ClientTransports<T>({
    transport: transport ?? null,
    mounts: mounts ?? null,
    proxy: proxy ?? null,
    trustEnv: rest.trustEnv ?? true,
    hasCertificate: (cert ?? null) !== null,
    make: (through: ProxyInit | null, foreign: boolean) =>
      make({ ...rest, proxy: through, cert: foreign ? null : cert }),
  })
}
