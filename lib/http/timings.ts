/** Phases of an exchange up to the response head, in ms; null for a phase that did not occur. */
export interface PhaseTimings {
  /** Waiting for a connection of the pool, or for a shared one that is being opened. */
  readonly pool: number | null
  /** Name resolution. */
  readonly dns: number | null
  /** Opening the TCP connection or Unix socket. */
  readonly tcp: number | null
  /** Connecting through the proxy: TLS with it, CONNECT or SOCKS5. */
  readonly proxy: number | null
  /** The TLS handshake with the origin. */
  readonly tls: number | null
  /** Sending the request, its body included. */
  readonly send: number
  /** From the end of the request to the head of the response. */
  readonly wait: number
}

/**
 * How long each phase of one exchange took, in ms. On a reused connection `dns`, `tcp`, `proxy` and
 * `tls` are null. Redirects, authentication requests and retries are separate exchanges.
 */
export interface Timings extends PhaseTimings {
  /** From the response head to the end of the content; null while the response is open. */
  readonly receive: number | null
  /** All phases together; null while the response is open. */
  readonly total: number | null
}

/** Measures consecutive phases of one exchange. */
export class PhaseClock implements PhaseTimings {
  pool: number | null = null
  dns: number | null = null
  tcp: number | null = null
  proxy: number | null = null
  tls: number | null = null
  send = 0
  wait = 0
  #since: number = performance.now()

  /**
   * Adds the time since the last call to `phase`, which may consist of several parts. Returns the
   * present `performance.now()`.
   */
  lap(phase: keyof PhaseTimings): number {
    const now = performance.now()
    this[phase] = (this[phase] ?? 0) + now - this.#since
    this.#since = now
    return now
  }

  /** Drops the time since the last call: it belongs to no phase. */
  skip(): void {
    this.#since = performance.now()
  }
}

/** {@link PhaseTimings} as sent by the worker of `Client`: whole µs, which are short as JSON. */
export type WireTimings = readonly (number | null)[]

/** Values in the order in which {@link PhaseTimings} declares them. */
export function encodeTimings(timings: PhaseTimings): WireTimings {
  const { pool, dns, tcp, proxy, tls, send, wait } = timings
  return [pool, dns, tcp, proxy, tls, send, wait].map(us)
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

/** Adds `receive` and the total; both stay null while `receive` is unknown. */
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
