/**
 * Sends a delivery to an address that may come from an untrusted source (SSRF).
 *
 * 1. The name is resolved once, and the connection goes to an address that passed the check.
 * 2. Addresses of this machine and of private networks are refused unless the host allows them.
 * 3. Redirects are not followed, and the content of the response is not read.
 *
 * @module
 */
import { lookup, type LookupAddress } from 'node:dns'
import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { BlockList, isIP, type LookupFunction } from 'node:net'

/** Milliseconds for one delivery, from resolving the name to the head of the response. */
const TIMEOUT_MS = 15_000

/** A response of any status; a delivery without a response throws. */
export interface Delivered {
  readonly status: number
  /** The Retry-After of the response; null without one. */
  readonly retryAfterMs: number | null
}

/** Addresses outside the public internet (RFC 6890 and the registries that it set up). */
const SPECIAL = new BlockList()
for (const [net, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const) {
  SPECIAL.addSubnet(net, prefix, 'ipv4')
}
// Of IPv6 only global unicast is public, except ranges that are reserved or embed other addresses.
const GLOBAL = new BlockList()
GLOBAL.addSubnet('2000::', 3, 'ipv6')
for (const [net, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const) {
  SPECIAL.addSubnet(net, prefix, 'ipv6')
}

/** True for an address of the public internet. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 4) return !SPECIAL.check(address, 'ipv4')
  return family === 6 && GLOBAL.check(address, 'ipv6') && !SPECIAL.check(address, 'ipv6')
}

/** Resolves a name to its addresses; a seam for tests. */
export type ResolveName = (
  name: string,
  done: (error: Error | null, addresses: readonly LookupAddress[]) => void,
) => void

const resolveName: ResolveName = (name, done) => lookup(name, { all: true }, done)

export interface TargetRules {
  readonly allowPrivate: boolean
  /** @defaultValue the system's resolver */
  readonly resolve?: ResolveName | undefined
}

/**
 * Posts `body`.
 *
 * @throws Error when the address is refused or no response arrives; the signal's reason.
 */
export function deliver(
  url: URL,
  headers: Readonly<Record<string, string>>,
  body: string,
  rules: TargetRules,
  signal: AbortSignal,
): Promise<Delivered> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const host = url.hostname.replace(/^\[|\]$/g, '')
    // Node connects to a literal address without a lookup.
    if (isIP(host) !== 0 && !rules.allowPrivate && !isPublicAddress(host))
      throw refusedAddress(host)
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest
    const request: ClientRequest = send(url, {
      method: 'POST',
      agent: false,
      lookup: guardedLookup(rules),
      headers: {
        'Content-Type': 'application/json',
        'Content-Length': Buffer.byteLength(body),
        'User-Agent': 'runwright-webhooks',
        ...headers,
      },
    })
    const timer = setTimeout(
      () => request.destroy(new Error(`no response within ${TIMEOUT_MS / 1_000} s`)),
      TIMEOUT_MS,
    )
    const onAbort = (): void => void request.destroy(signal.reason as Error)
    signal.addEventListener('abort', onAbort, { once: true })
    request.on('close', () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
    })
    request.on('error', reject)
    request.on('response', (response: IncomingMessage) => {
      const retryAfterMs = parseRetryAfter(response.headers['retry-after'] ?? '')
      resolve({ status: response.statusCode ?? 0, retryAfterMs })
      response.destroy()
    })
    request.end(body)
  })
}

/** Seconds, or a date (RFC 9110, section 10.2.3). */
function parseRetryAfter(text: string): number | null {
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now()
  return Number.isNaN(ms) ? null : ms
}

/** A lookup that returns checked addresses only, so the connection cannot go anywhere else. */
function guardedLookup({ allowPrivate, resolve = resolveName }: TargetRules): LookupFunction {
  return (name, options, callback) => {
    resolve(name, (error, addresses) => {
      if (error !== null) return callback(error, [])
      const good = addresses.filter(({ address }) => allowPrivate || isPublicAddress(address))
      const [first] = good
      if (first === undefined) return callback(refusedAddress(name), [])
      if (options.all === true) callback(null, [...good])
      else callback(null, first.address, first.family)
    })
  }
}

function refusedAddress(name: string): Error {
  return new Error(
    `${name} is an address of this machine or of a private network, which allowPrivate would allow`,
  )
}
