/** The phases of an exchange up to the head of its response, in ms; `null` for one that did not happen. */
export interface PhaseTimings {
  /** Waiting for a connection of the pool, or for one that is being opened and can be shared. */
  readonly pool: number | null
  /** Name resolution. */
  readonly dns: number | null
  /** Opening the TCP connection, or the unix socket. */
  readonly tcp: number | null
  /** Getting through the proxy: TLS with it, CONNECT or SOCKS5. */
  readonly proxy: number | null
  /** TLS with the origin. */
  readonly tls: number | null
  /** Sending the request, its body included. */
  readonly send: number
  /** From the request being sent to the head of the response. */
  readonly wait: number
}

/**
 * How long the phases of one exchange took, in ms. On a connection that was reused, `dns`, `tcp`,
 * `proxy` and `tls` are null. Redirects, authentication and retries are exchanges of their own.
 */
export interface Timings extends PhaseTimings {
  /** From the head of the response to its end; null while it is open. */
  readonly receive: number | null
  /** All phases together; null while the response is open. */
  readonly total: number | null
}

/** Measures the phases of one exchange, one after the other. */
export class PhaseClock implements PhaseTimings {
  pool: number | null = null
  dns: number | null = null
  tcp: number | null = null
  proxy: number | null = null
  tls: number | null = null
  send = 0
  wait = 0
  #since: number = performance.now()

  /** `phase` ends now; it may have several parts. */
  lap(phase: keyof PhaseTimings): void {
    const now = performance.now()
    this[phase] = (this[phase] ?? 0) + now - this.#since
    this.#since = now
  }

  /** What passed until now belongs to no phase. */
  skip(): void {
    this.#since = performance.now()
  }
}

/** Phases as they cross from the worker of `Client`: whole microseconds, which are short as text. */
export type WireTimings = readonly (number | null)[]

/** In the order of {@link PhaseTimings}. */
export function encodeTimings({
  pool,
  dns,
  tcp,
  proxy,
  tls,
  send,
  wait,
}: PhaseTimings): WireTimings {
  return [us(pool), us(dns), us(tcp), us(proxy), us(tls), us(send), us(wait)]
}

export function decodeTimings([pool, dns, tcp, proxy, tls, send, wait]: WireTimings): PhaseTimings {
  return {
    pool: ms(pool),
    dns: ms(dns),
    tcp: ms(tcp),
    proxy: ms(proxy),
    tls: ms(tls),
    send: ms(send) ?? 0,
    wait: ms(wait) ?? 0,
  }
}

/** All phases, once the end is known. */
export function completeTimings(phases: PhaseTimings, receive: number | null): Timings {
  const { pool, dns, tcp, proxy, tls, send, wait } = phases
  const head = (pool ?? 0) + (dns ?? 0) + (tcp ?? 0) + (proxy ?? 0) + (tls ?? 0) + send + wait
  const total = receive === null ? null : head + receive
  return { pool, dns, tcp, proxy, tls, send, wait, receive, total }
}

function us(value: number | null): number | null {
  return value === null ? null : Math.round(value * 1000)
}

function ms(value: number | null | undefined): number | null {
  return value === null || value === undefined ? null : value / 1000
}
