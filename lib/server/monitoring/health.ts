import { describeError } from '../../internal/errors.js'
import { LATE, within } from '../../internal/time.js'
import type { ServiceContext } from '../context.js'
import { damageOf, describeDamage } from './damage.js'

/**
 * Health of a service: `damaged` works without the data that is damaged or missing, `busy` accepts
 * no more runs for now, `failing` cannot store anything.
 */
export type HealthStatus = 'ok' | 'damaged' | 'busy' | 'failing' | 'draining'

export interface HealthReport {
  readonly status: HealthStatus
  /** What is wrong; null when nothing is. Not for callers of a single tenant. */
  readonly problem: string | null
}

/** Milliseconds for which a check of the store is reused: callers need no key to trigger one. */
const CHECK_MS = 2_000
/** Milliseconds after which a store that does not answer counts as failing. */
const TIMEOUT_MS = 5_000

const DRAINING: HealthReport = { status: 'draining', problem: 'the service is shutting down' }

/** Checks the store when asked, not in the background, and looks at the engine's queue. */
export class Health {
  readonly #context: ServiceContext
  #checked = -Infinity
  #check: Promise<string | null> = Promise.resolve(null)

  constructor(context: ServiceContext) {
    this.#context = context
  }

  async report(): Promise<HealthReport> {
    if (this.#context.state !== 'open') return DRAINING
    const problem = await this.#storeProblem()
    // It may have begun to close meanwhile.
    if (this.#context.state !== 'open') return DRAINING
    if (problem !== null) return { status: 'failing', problem }
    const { queued, maxQueued } = this.#context.engine.capacity()
    if (queued >= maxQueued) {
      return { status: 'busy', problem: `the queue is full: ${queued} runs are waiting` }
    }
    const damage = describeDamage(damageOf(this.#context.engine))
    return { status: damage === null ? 'ok' : 'damaged', problem: damage }
  }

  #storeProblem(): Promise<string | null> {
    if (performance.now() - this.#checked >= CHECK_MS) {
      this.#checked = performance.now()
      this.#check = problemOf(this.#context.engine.check())
    }
    return this.#check
  }
}

/** The problem of the store, as text; null when there is none. */
async function problemOf(check: Promise<void>): Promise<string | null> {
  try {
    const answer = await within(TIMEOUT_MS, check)
    return answer === LATE ? `the store has not answered for ${TIMEOUT_MS / 1_000} s` : null
  } catch (error) {
    return describeError(error)
  }
}
