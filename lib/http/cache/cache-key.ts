import type { Headers } from '../headers.js'
import type { RequestExtensions } from '../request.js'

/**
 * The key of what is stored for a URL: a hash, as URLs and credentials may be secret. Requests with
 * other credentials have other keys: all fields that are masked when printed count, cookies and
 * Authorization among them. So do the options that choose another server or resource.
 */
export function cacheKey(url: URL, headers: Headers | null, extensions: RequestExtensions): string {
  const { target, sniHostname } = extensions
  const parts = [
    withoutSecrets(url),
    target ?? null,
    sniHostname ?? null,
    headers?.get('host') ?? null,
    headers?.secretFields() ?? [],
  ]
  const { createHash } = process.getBuiltinModule('node:crypto')
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}

/** The URL without fragment, which is not sent, and userinfo, which is sent as Authorization. */
function withoutSecrets(url: URL): string {
  let { href } = url
  if (url.username !== '' || url.password !== '') {
    const bare = new URL(href)
    bare.username = ''
    bare.password = ''
    href = bare.href
  }
  const fragment = href.indexOf('#')
  return fragment === -1 ? href : href.slice(0, fragment)
}

/** Invalidated keys that are remembered. */
const MAX_KEYS = 1000

/**
 * What was invalidated lately. A response that was requested before its URL was changed may arrive
 * after that, and must not be stored then.
 */
export class Invalidations {
  /** The number of the last invalidation of a key, oldest first. */
  readonly #keys = new Map<string, number>()
  #count = 0
  /** The number of the last invalidation that was forgotten. */
  #forgotten = 0

  /** The number of the last invalidation, to pass to {@link Invalidations.since} later. */
  get now(): number {
    return this.#count
  }

  add(key: string): void {
    this.#keys.delete(key)
    this.#keys.set(key, ++this.#count)
    if (this.#keys.size <= MAX_KEYS) return
    const [oldest, at] = this.#keys.entries().next().value!
    this.#keys.delete(oldest)
    this.#forgotten = at
  }

  /** Whether `key` was, or may have been, invalidated after `start`. */
  since(start: number, key: string): boolean {
    return start < this.#forgotten || (this.#keys.get(key) ?? 0) > start
  }
}
