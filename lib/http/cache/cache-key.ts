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
