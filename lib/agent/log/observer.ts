import { describeError } from '../../internal/errors.js'
import { publicEvent, type AgentEvent, type RunRecord } from '../events.js'
import { callHost } from '../../internal/web.js'
import { warn } from '../output.js'
import type { RunDetails } from '../run-details.js'

/** Events of one run that have just become durable. */
export interface ObservedAppend {
  /** The run after these events. The object keeps changing: copy what you need at once. */
  readonly details: RunDetails
  readonly events: readonly AgentEvent[]
  /** How long the store took, in milliseconds. */
  readonly durationMs: number
}

/**
 * Called after every append of the runs that this process drives. Called synchronously, so it must
 * not block; what it throws becomes a process warning.
 */
export type RunObserver = (append: ObservedAppend) => void

/** The observers of an engine: metrics, logs and webhooks. */
export class Observers {
  readonly #observers = new Set<RunObserver>()

  /** Adds an observer; the returned function removes it. */
  add(observer: RunObserver): () => void {
    this.#observers.add(observer)
    return () => this.#observers.delete(observer)
  }

  /** Calls every observer; builds no events when there are none. */
  notify(details: RunDetails, records: readonly RunRecord[], durationMs: number): void {
    if (this.#observers.size === 0) return
    const append = { details, events: records.map(publicEvent), durationMs }
    for (const observer of this.#observers) {
      callHost(
        () => observer(append),
        (error) => warn(`an observer of runs failed: ${describeError(error)}`),
      )
    }
  }
}
