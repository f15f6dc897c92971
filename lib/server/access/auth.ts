import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { addCredential } from '../../internal/errors.js'
import {
  checkObject,
  checkOptions,
  describeValue,
  type OptionKinds,
} from '../../internal/options.js'

/** A caller that `authorize` has admitted. */
export interface Principal {
  /** Recorded as the owner of a run and in the answer of a gate; scopes idempotency keys. */
  readonly id: string
  /** Runs are visible within their tenant only. Absent and null are the same, one tenant. */
  readonly tenant?: string | null | undefined
}

/** The argument of `authorize`: any request of a Node server, including upgrades. */
export interface AuthorizableRequest {
  readonly headers: IncomingHttpHeaders
}

/**
 * Identifies the caller: a principal, or null, which is answered with 401. It may throw a
 * `ProblemError` for another response. Called with the server's request object for every request
 * except those for static files and API descriptions, and before an upgrade is accepted.
 */
export type Authorize = (
  request: AuthorizableRequest & object,
) => Principal | null | Promise<Principal | null>

/** WebSocket subprotocol of the event streams, the only one that the service selects. */
export const STREAM_PROTOCOL = 'runwright.v1'

export const BEARER_PROTOCOL = 'bearer.'

/**
 * Reads the bearer token of a request (RFC 6750, section 2.1). Browsers cannot set headers on a
 * WebSocket, so there the token may also be a subprotocol beside `runwright.v1`: `bearer.` and its
 * base64url, which the service never selects. It is not read from the query, which appears in logs.
 *
 * @returns null without a token.
 */
export function bearerToken(request: AuthorizableRequest): string | null {
  checkObject('the headers of a request', request?.headers)
  const header = request.headers.authorization
  if (header !== undefined) return /^Bearer +([\w.~+/-]+=*) *$/i.exec(header)?.[1] ?? null
  if (request.headers.upgrade === undefined) return null
  const offers = String(request.headers['sec-websocket-protocol'] ?? '').split(',')
  const offer = offers.map((name) => name.trim()).find((name) => name.startsWith(BEARER_PROTOCOL))
  if (offer === undefined) return null
  const encoded = offer.slice(BEARER_PROTOCOL.length)
  return /^[\w-]+$/.test(encoded) ? Buffer.from(encoded, 'base64url').toString('utf8') : null
}

/** A key, or several during a key rotation, and the tenant of its holder. */
export type BearerKey =
  string | { readonly key: string | readonly string[]; readonly tenant?: string | null | undefined }

const KEY: OptionKinds<Exclude<BearerKey, string>> = {
  key: 'any! a key, or several during a key rotation', tenant: 'string|null',
}

/** Shorter keys could be guessed. */
const MIN_KEY_LENGTH = 16

/**
 * Creates an `authorize` function for a fixed list of keys, by the id of their holders. Every call
 * compares all keys, as digests and in constant time, so the response time reveals nothing.
 *
 * @throws TypeError when a key is shorter than 16 characters, not a valid bearer token, or given
 * twice. Errors never quote keys.
 * @example
 * ```ts
 * const authorize = bearerKeys({
 *   alice: process.env.ALICE_KEY!,
 *   ci: { key: process.env.CI_KEY!, tenant: 'acme' },
 * })
 * ```
 */
export function bearerKeys(keys: { readonly [principalId: string]: BearerKey }): Authorize {
  if (typeof keys !== 'object' || keys === null || Array.isArray(keys)) {
    throw new TypeError(`bearerKeys() needs keys by id of their holder, got ${describeValue(keys)}`)
  }
  const secret = randomBytes(32)
  const digest = (key: string): Buffer => createHmac('sha256', secret).update(key).digest()
  const entries = Object.entries(keys).flatMap(([id, given]) => {
    if (typeof given === 'object') checkOptions(given, KEY, `the key of ${id}`)
    const { key, tenant = null } = typeof given === 'object' ? given : { key: given }
    const list = Array.isArray(key) ? (key as readonly string[]) : [key as string]
    for (const value of list) {
      checkKey(id, value)
      addCredential(value)
    }
    const principal = Object.freeze({ id, tenant })
    return list.map((value) => ({ digest: digest(value), principal }))
  })
  if (entries.length === 0) throw new TypeError('bearerKeys needs at least one key')
  const distinct = new Set(entries.map((entry) => entry.digest.toString('base64')))
  if (distinct.size < entries.length) throw new TypeError('bearerKeys: the same key is given twice')
  return (request) => {
    const token = bearerToken(request)
    if (token === null) return null
    const presented = digest(token)
    let found: Principal | null = null
    for (const entry of entries) {
      if (timingSafeEqual(entry.digest, presented)) found = entry.principal
    }
    return found
  }
}

function checkKey(id: string, key: unknown): void {
  if (id === '') throw new TypeError('bearerKeys: the id of a key must not be empty')
  if (typeof key !== 'string' || key.length < MIN_KEY_LENGTH) {
    throw new TypeError(
      `bearerKeys: the key of ${id} must have at least ${MIN_KEY_LENGTH} characters`,
    )
  }
  if (!/^[\w.~+/-]+=*$/.test(key)) {
    throw new TypeError(
      `bearerKeys: the key of ${id} may contain only letters, digits and - . _ ~ + / =`,
    )
  }
}
