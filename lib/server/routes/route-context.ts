import type { ServiceConfig, ServiceEngine } from '../config.js'
import type { PumpEnd } from '../streams/pump.js'
import type { StreamKind } from '../monitoring/log.js'
import type { Monitor } from '../monitoring/monitor.js'
import type { Principal } from '../access/auth.js'
import type { SseStreams } from '../streams/sse.js'

/** What routes work with. */
export interface RouteContext {
  readonly engine: ServiceEngine
  readonly config: ServiceConfig
  readonly sse: SseStreams
  /** Null when nothing is counted or logged. */
  readonly monitor: Monitor | null
  /**
   * Admits a stream of a principal; the result is told how it ended.
   *
   * @throws `ProblemError` 429
   */
  openStream(
    kind: StreamKind,
    runId: string,
    principal: Principal | null,
  ): (end: PumpEnd | 'failed') => void
  /** True once the service takes no more runs. */
  isDraining(): boolean
}

/** Media type of everything but streams, pages and problems. */
export const JSON_ONLY: readonly string[] = ['application/json']
