/**
 * Sends events to other programs, as signed requests in the format of Standard Webhooks.
 *
 * 1. Each wanted event is delivered at least once, in the order of its run, always with the same
 *    id, by which a receiver can drop repetitions.
 * 2. A failed delivery is repeated with growing delays for three days. It delays later events of
 *    the same run only.
 * 3. The progress of an endpoint, with the time of the next attempt, survives the process: see
 *    {@link WebhookCursor}.
 *
 * @module
 */
import { systemClock, type Clock } from '../../internal/time.js'
import type { ResolveName } from './delivery.js'
import { Endpoint, type WebhookEngine } from './endpoint.js'
import type { WebhookOptions } from './options.js'

/** Seams for tests. */
export interface WebhookSeams {
  readonly clock?: Clock | undefined
  readonly resolve?: ResolveName | undefined
}

export class Webhooks {
  readonly #endpoints: readonly Endpoint[]
  readonly #unobserve: () => void

  private constructor(engine: WebhookEngine, endpoints: readonly Endpoint[]) {
    this.#endpoints = endpoints
    this.#unobserve = engine.observe((append) => {
      for (const endpoint of endpoints) endpoint.observe(append)
    })
  }

  /**
   * Opens the cursors and resumes unfinished deliveries.
   *
   * @throws TypeError for an invalid option; Error when the folder cannot be used.
   */
  static async open(
    engine: WebhookEngine,
    options: WebhookOptions,
    { clock = systemClock, resolve }: WebhookSeams = {},
  ): Promise<Webhooks> {
    const endpoints = await Promise.all(
      options.endpoints.map((endpoint) =>
        Endpoint.open(engine, endpoint, options, { clock, resolve }),
      ),
    )
    const webhooks = new Webhooks(engine, endpoints)
    await Promise.all(endpoints.map((endpoint) => endpoint.resume()))
    return webhooks
  }

  /** Aborts deliveries in progress; they are repeated at the next start. */
  async close(): Promise<void> {
    this.#unobserve()
    await Promise.all(this.#endpoints.map((endpoint) => endpoint.close()))
  }
}
