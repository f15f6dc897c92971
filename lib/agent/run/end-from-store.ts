import { backoffDelay } from '../../internal/backoff.js'
import { StoreError } from '../errors.js'
import { isTerminal } from '../events.js'
import { loadState, type RunState } from '../log/state.js'
import { STORE_BACKOFF, type LogWriter, type LogWriterOptions } from '../log/writer.js'
import { endFromRecords } from './end-from-records.js'
import { ABORTED, type Outcome } from './outcome.js'
import { finishRun, type Failure } from './steps/finish.js'

/** What {@link endFromStore} needs of the run's loop. */
export interface EndingRun {
  readonly log: LogWriter
  /** True once the next start is to resume the run. */
  readonly isSuspending: () => boolean
  /** Continues the log with a state that was loaded again. */
  readonly reload: (state: RunState) => LogWriter
  readonly pause: (ms: number) => Promise<void>
}

/**
 * Ends a run whose log could not be written. What was not stored never happened, so the state is
 * loaded again, and the end appended once the store accepts it. If that throws as well, the end
 * comes from the records alone. Stops when the service shuts down: the next start resumes the run.
 *
 * @throws {@link StoreError} when another process has taken the run or the store.
 */
export async function endFromStore(
  options: LogWriterOptions,
  run: EndingRun,
  outcome: Outcome,
  failure: Failure,
): Promise<void> {
  const { log, isSuspending } = run
  await log.flush().catch(() => undefined) // what it still writes belongs to the log
  let lastResort = false
  for (let retry = 1; !isSuspending(); retry++) {
    try {
      if (lastResort) {
        await endFromRecords(options, log.feed, outcome, failure)
        return
      }
      const state = await loadState(options.store, log.runId)
      if (state === null || isTerminal(state.head.details.status) || isSuspending()) return
      return await finishRun(run.reload(state), state.abortRequested ? ABORTED : outcome, failure)
    } catch (error) {
      if (!(error instanceof StoreError)) {
        if (lastResort) throw error
        lastResort = true
        continue
      }
      if (isTakenAway(error)) throw error
      await run.pause(backoffDelay(retry, STORE_BACKOFF))
    }
  }
}

/** Has another process taken over the run, or the store with all its runs? */
export function isTakenAway(error: unknown): error is StoreError {
  return error instanceof StoreError && TAKEN_AWAY.has(error.code)
}

const TAKEN_AWAY = new Set(['ERR_AGENT_CLAIM_LOST', 'ERR_AGENT_STORE_LOCKED'])
