import { abortListeners, raceAbort } from '../../../internal/time.js'
import { isCorrupt, RunStateError } from '../../errors.js'
import { isTerminal, type RunStatus } from '../../events.js'
import { headsOf } from '../../log/heads-of.js'
import type { RemainingBudget } from '../../log/remaining.js'
import type { RunState } from '../../log/run-state.js'
import type { NewChild } from '../../request/new-child.js'
import type { Creation } from '../../request/creation.js'
import type { RunHead } from '../../run-details.js'
import type { RunStore } from '../../store.js'
import type { RunDriver } from '../run-driver.js'
import type { ChildRuns } from './child-runs.js'

const UNENDED: readonly RunStatus[] = ['pending', 'running', 'awaiting_human']

/** What {@link EngineChildren} needs of its engine. */
export interface EngineChildrenOptions {
  readonly store: RunStore
  /** Both exist once the first run is driven. */
  readonly creation: () => Pick<Creation, 'child'>
  readonly driver: () => Pick<RunDriver, 'abort' | 'follow'>
}

/** The runs that runs of one engine start. */
export class EngineChildren implements ChildRuns {
  readonly #options: EngineChildrenOptions

  constructor(options: EngineChildrenOptions) {
    this.#options = options
  }

  prepare(
    parent: RunState,
    budget: RemainingBudget,
    child: NewChild,
  ): Promise<(checkpointId: string) => Promise<void>> {
    return this.#options.creation().child(parent, budget, child)
  }

  async head(runId: string): Promise<RunHead | null> {
    try {
      return await this.#options.store.head(runId)
    } catch (error) {
      if (!isCorrupt(error)) throw error
      return null
    }
  }

  async live(root: string): Promise<readonly RunHead[]> {
    const found: RunHead[] = []
    for await (const head of headsOf(this.#options.store, { root, status: UNENDED })) {
      if (head.problem === undefined) found.push(head)
    }
    return found
  }

  async follow(runId: string, signal: AbortSignal): Promise<void> {
    const { driver } = this.#options
    for (;;) {
      signal.throwIfAborted()
      const head = await this.head(runId)
      if (head === null || isTerminal(head.details.status)) return
      const { feed, release } = await driver().follow(head.details)
      const reader = feed.subscribe(head.details.last_seq, false, release)
      const close = (): void => reader.close()
      // A signal of many runs has one listener for all of them.
      const waiting = abortListeners(signal).add(close)
      try {
        if (signal.aborted) close()
        while ((await reader.next()) !== null);
      } finally {
        waiting.delete(close)
        close()
      }
      if (reader.end === 'run_end' || reader.end === 'deleted') return
      // The service shuts down: its runs are suspended at any moment.
      if (reader.end === 'shutdown') await raceAbort(new Promise(() => undefined), signal)
    }
  }

  async abort(runId: string, why: string): Promise<void> {
    const head = await this.head(runId)
    if (head === null || isTerminal(head.details.status)) return
    try {
      await this.#options.driver().abort(head.details, head.owner.id, why)
    } catch (error) {
      if (!(error instanceof RunStateError)) throw error // it has ended meanwhile
    }
  }
}
