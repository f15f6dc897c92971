import { type AgentEvent, publicEvent, type RunRecord } from '../events.js'
import type { RunDetails } from '../run-details.js'

/** Events of one run that have just become durable. */
export interface ObservedAppend {
  /** The run after them. Read what you need at once: it goes on changing. */
  readonly details: RunDetails
  readonly events: readonly AgentEvent[]
  /** How long the store took, in milliseconds. */
  readonly durationMs: number
}

/** Told about every append of the runs that this process drives. Must not wait; what it throws is lost. */
export type RunObserver = (append: ObservedAppend) => void

/** Those who want to be told, for metrics, logs and webhooks. */
export class Observers {
  readonly #observers = new Set<RunObserver>()

  /** Adds one; the result takes it out again. */
  add(observer: RunObserver): () => void {
    this.#observers.add(observer)
    return () => this.#observers.delete(observer)
  }

  /** Tells all of them; costs nothing when there are none. */
  tell(details: RunDetails, records: readonly RunRecord[], durationMs: number): void {
    if (this.#observers.size === 0) return
    const append = { details, events: records.map(publicEvent), durationMs }
    for (const observer of this.#observers) {
      try {
        observer(append)
      } catch (error) {
        process.emitWarning(`an observer of runs failed: ${String(error)}`)
      }
    }
  }
}
