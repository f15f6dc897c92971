import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { isLoopback, isPublicAddress } from '../../../internal/web.js'

/**
 * Whether a server at `near` may send this process to a URL (SSRF). Null if so, or why not.
 *
 * 1. It is https or, if `near` is this machine too, http on this machine; so a name that resolves
 *    to another address when the connection is made leads to nobody with its certificate.
 * 2. It is public, unless `near` is on this machine or in a private network itself.
 */
export async function refuseUrl(url: URL, near: URL): Promise<string | null> {
  const local = isLoopback(near.hostname)
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && local && isLoopback(url.hostname)))
    return 'it must be https'
  if (url.username !== '' || url.password !== '') return 'it has a password'
  if (url.hostname === near.hostname || local) return null
  if ((await isPublic(url.hostname)) || !(await isPublic(near.hostname))) return null
  return "it is an address of this machine, a private network or a cloud's internal services"
}

/** A name that does not resolve counts as public: a proxy may know it, and nobody else does. */
async function isPublic(hostname: string): Promise<boolean> {
  if (isLoopback(hostname)) return false
  const host = hostname.replace(/^\[|\]$/g, '')
  if (isIP(host) !== 0) return isPublicAddress(host)
  const addresses = await lookup(host, { all: true }).catch(() => [])
  return addresses.every(({ address }) => isPublicAddress(address))
}
