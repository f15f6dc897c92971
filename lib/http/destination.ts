import { resolveUrl } from './url.js'

/** A URL in the parts that sending a request asks for. */
export class Destination {
  readonly href: string
  readonly protocol: string
  readonly host: string
  /** Scheme, host and port. */
  readonly origin: string
  /** Path and query. */
  readonly target: string
  readonly hasCredentials: boolean

  constructor(url: URL) {
    this.href = url.href
    this.protocol = url.protocol
    this.host = url.host
    this.origin = `${this.protocol}//${this.host}`
    this.target = url.pathname + url.search
    this.hasCredentials = url.username !== '' || url.password !== ''
  }
}

const MAX_KNOWN = 256
/** In characters; longer ones are parsed each time. */
const MAX_KNOWN_LENGTH = 1024

/** Resolves the URLs of a client's calls; those that come again and again are parsed once. */
export class Destinations {
  readonly #base: URL | null
  readonly #known = new Map<string, Destination>()

  constructor(base: URL | null) {
    this.#base = base
  }

  /** As {@link resolveUrl}. */
  resolve(url: string): Destination {
    const known = this.#known.get(url)
    if (known !== undefined) return known
    const resolved = new Destination(resolveUrl(url, this.#base))
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    if (url.length <= MAX_KNOWN_LENGTH) this.#known.set(url, resolved)
    return resolved
  }
}
