import type { OutgoingHttpHeaders } from 'node:http'
import { checkOptions } from '../internal/options.js'
import type { Handshake } from './handshake.js'
import { REFUSAL, type Refusal } from './refusal.js'

/** What a client offers, and how long it waits for an answer. */
export interface HandshakeOffer {
  /** Subprotocols in the client's order. One of them may be a credential: do not log them. */
  readonly protocols: readonly string[]
  /** Aborts when the client disconnects, `handshakeTimeoutMs` is over, or the server closes. */
  readonly signal: AbortSignal
}

/** Returned by `authorize` to accept a client. */
export interface Admission<Context> {
  /** Becomes `connection.context`. */
  readonly context: Context
  /**
   * The subprotocol to select, which must have been offered; `null` selects none. Default: the
   * first of the server's `protocols` that was offered.
   */
  readonly protocol?: string | null | undefined
  /** Further header fields of the 101, such as Set-Cookie. */
  readonly headers?: OutgoingHttpHeaders | undefined
  /** `false` declines compression for this client. @defaultValue true */
  readonly deflate?: boolean | undefined
}

/** The answer to upgrades that cannot be served now. */
export const UNAVAILABLE: Refusal = { status: 503, headers: { 'Retry-After': '5' } }

/** A refusal with a 1xx or 2xx status would look like success to the client. */
export function checkRefusal(refusal: Refusal): Refusal {
  checkOptions(refusal, REFUSAL, 'refusal')
  const { status } = refusal
  if (Number.isInteger(status) && status >= 300 && status <= 599) return refusal
  throw new TypeError(`authorize must refuse with a status from 300 to 599, got ${String(status)}`)
}

/** The subprotocol of the response; only one that was offered (RFC 6455, section 4.2.2). */
export function selectProtocol(
  served: readonly string[],
  { protocols }: Handshake,
  { protocol }: Admission<unknown>,
): string | null {
  if (protocol === undefined) return served.find((name) => protocols.includes(name)) ?? null
  if (protocol === null || protocols.includes(protocol)) return protocol
  throw new TypeError('authorize selected a subprotocol that the client did not offer')
}
