import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/** Who calls, as far as runs are concerned. */
export interface Principal {
  /** Recorded as the one who started a run or answered a gate; idempotency keys are per id. */
  readonly id: string
  /** Runs are seen within their tenant only. Absent and null are one tenant of their own. */
  readonly tenant?: string | null | undefined
}

/** What `authorize` gets: any request of a Node server, an upgrade included. */
export interface AuthorizableRequest {
  readonly headers: IncomingHttpHeaders
}

/**
 * Tells who calls: a principal, or null, which is answered with 401. It may throw a `ProblemError`
 * to answer something else. Called for every request but those for static files, and before an
 * upgrade is accepted; the full request object of the server is passed.
 */
export type Authorize = (
  request: AuthorizableRequest & object,
) => Principal | null | Promise<Principal | null>

/** Subprotocol that the event stream is served under. */
export const STREAM_PROTOCOL = 'runwright.v1'

const BEARER_PROTOCOL = 'bearer.'

/**
 * The bearer token of a request (RFC 6750, section 2.1). Browsers cannot set headers on a
 * WebSocket, so there it may also be offered as a subprotocol, `bearer.` and the base64url of the
 * token beside `runwright.v1`; the service never selects that one. Never in the query, which ends
 * up in logs.
 *
 * @returns null when there is none.
 */
export function bearerToken(request: AuthorizableRequest): string | null {
  const header = request.headers.authorization
  if (header !== undefined) return /^Bearer +([\w.~+/-]+=*) *$/i.exec(header)?.[1] ?? null
  if (request.headers.upgrade === undefined) return null
  const offers = String(request.headers['sec-websocket-protocol'] ?? '').split(',')
  const offer = offers.map((name) => name.trim()).find((name) => name.startsWith(BEARER_PROTOCOL))
  if (offer === undefined) return null
  const encoded = offer.slice(BEARER_PROTOCOL.length)
  return /^[\w-]+$/.test(encoded) ? Buffer.from(encoded, 'base64url').toString('utf8') : null
}

/** A key, or several while one replaces another, and the tenant that it opens. */
export type BearerKey =
  string | { readonly key: string | readonly string[]; readonly tenant?: string | null | undefined }

/** Shortest key that is taken: below it guessing is a matter of time. */
const MIN_KEY_LENGTH = 16

/**
 * An `authorize` function for a fixed list of keys, by the id of who holds them. Every key is
 * compared on each call, as digests and in constant time, so that an answer's time tells nothing.
 *
 * @throws TypeError when a key is shorter than 16 characters, not usable as a bearer token, or
 * given twice. Keys are never quoted in errors.
 * @example
 * ```ts
 * const authorize = bearerKeys({
 *   alice: process.env.ALICE_KEY!,
 *   ci: { key: process.env.CI_KEY!, tenant: 'acme' },
 * })
 * ```
 */
export function bearerKeys(keys: { readonly [principalId: string]: BearerKey }): Authorize {
  const secret = randomBytes(32)
  const digest = (key: string): Buffer => createHmac('sha256', secret).update(key).digest()
  const entries = Object.entries(keys).flatMap(([id, given]) => {
    const { key, tenant = null } = typeof given === 'object' ? given : { key: given }
    const list = Array.isArray(key) ? (key as readonly string[]) : [key as string]
    for (const one of list) checkKey(id, one)
    return list.map((one) => ({ digest: digest(one), principal: Object.freeze({ id, tenant }) }))
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
      `bearerKeys: the key of ${id} may hold only letters, digits and - . _ ~ + / =`,
    )
  }
}
