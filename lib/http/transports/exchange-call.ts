import type { Timeouts } from '../config.js'
import type { Request } from '../request.js'
import type { PhaseClock } from '../timings.js'
import type { TransportResponse } from './base.js'

/** One call of a connection: a request with its limits, and the promise of its response. */
export interface ExchangeCall {
  readonly request: Request
  readonly timeouts: Timeouts
  readonly clock: PhaseClock
  readonly resolve: (response: TransportResponse) => void
  readonly reject: (error: unknown) => void
}
