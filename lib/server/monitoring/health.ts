import type { ServiceEngine } from '../config.js'

/** How the service is: `busy` takes no more runs for now, `failing` cannot store anything. */
export type HealthStatus = 'ok' | 'busy' | 'failing' | 'draining'

/** What was found out. */
export interface HealthReport {
  readonly status: HealthStatus
  /** What is wrong, for those who may know; null when nothing is. */
  readonly problem: string | null
}

/** Milliseconds for which the store is not asked again: anybody may ask for the health. */
const CHECK_MS = 2_000
/** Milliseconds after which a store that does not answer counts as broken. */
const PATIENCE_MS = 5_000

/** Asks engine and store how they are. */
export class Health {
  readonly #engine: ServiceEngine
  readonly #isDraining: () => boolean
  #checked = -Infinity
  #check: Promise<string | null> = Promise.resolve(null)

  constructor(engine: ServiceEngine, isDraining: () => boolean) {
    this.#engine = engine
    this.#isDraining = isDraining
  }

  async report(): Promise<HealthReport> {
    if (this.#isDraining()) return { status: 'draining', problem: 'the service is shutting down' }
    const problem = await this.#storeProblem()
    // It may have begun to close while the store was asked.
    if (this.#isDraining()) return { status: 'draining', problem: 'the service is shutting down' }
    if (problem !== null) return { status: 'failing', problem }
    const { queued, maxQueued } = this.#engine.capacity()
    if (queued < maxQueued) return { status: 'ok', problem: null }
    return { status: 'busy', problem: `${queued} runs wait, and no more may` }
  }

  #storeProblem(): Promise<string | null> {
    if (performance.now() - this.#checked >= CHECK_MS) {
      this.#checked = performance.now()
      this.#check = patiently(this.#engine.check())
    }
    return this.#check
  }
}

/** What speaks against the store; null when nothing does. */
function patiently(check: Promise<void>): Promise<string | null> {
  return new Promise((resolve) => {
    const seconds = PATIENCE_MS / 1_000
    const late = (): void => resolve(`the store has not answered for ${seconds} s`)
    const timer = setTimeout(late, PATIENCE_MS)
    check
      .then(
        () => resolve(null),
        (error: unknown) => resolve(error instanceof Error ? error.message : String(error)),
      )
      .finally(() => clearTimeout(timer))
  })
}
