/**
 * Sends a delivery to an address that may come from an untrusted source (SSRF).
 *
 * 1. The name is resolved once, and the connection goes to an address that passed the check.
 * 2. Addresses of this machine, private networks and internal services of clouds are refused
 *    unless the host allows them.
 * 3. Redirects are not followed, and the content of the response is not read.
 *
 * @module
 */
import { lookup, type LookupAddress } from 'node:dns'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { isIP, type LookupFunction } from 'node:net'
import { isPublicAddress } from '../../internal/web.js'

/** Milliseconds for one delivery, from resolving the name to the head of the response. */
const TIMEOUT_MS = 15_000

/** A response of any status; a delivery without a response throws. */
export interface Delivered {
  readonly status: number
  /** The Retry-After of the response; null without one. */
  readonly retryAfterMs: number | null
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
    const isSecure = url.protocol === 'https:'
    const { request: send } = process.getBuiltinModule(isSecure ? 'node:https' : 'node:http')
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
    `${name} is an address of this machine, a private network or a cloud's internal services, ` +
      'which allowPrivate would allow',
  )
}
