import type { ServiceConfig, ServiceEngine } from '../config.js'
import type { SseStreams } from '../sse.js'

/** What routes work with. */
export interface RouteContext {
  readonly engine: ServiceEngine
  readonly config: ServiceConfig
  readonly sse: SseStreams
  /** True once the service takes no more runs. */
  isDraining(): boolean
}

/** Media type of everything but streams, pages and problems. */
export const JSON_ONLY: readonly string[] = ['application/json']
