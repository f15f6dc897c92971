/**
 * Errors that several parts of the driver throw when they refuse to touch a run.
 *
 * @module
 */
import { RunStateError, StoreError } from '../errors.js'
import type { RunStatus } from '../events.js'

/** The refusal to touch the files of a run that works. */
export function liveError(runId: string, status: string): RunStateError {
  const message = `run ${runId} is ${status}; wait until it waits at a gate or has ended`
  return new RunStateError('live', message)
}

/** The refusal to abort a run that has ended otherwise. */
export function endedError(runId: string, status: RunStatus): RunStateError {
  return new RunStateError('ended', `run ${runId} has already ended: it is ${status}`)
}

/** The refusal to do anything with a run that this process does not drive any more. */
export function claimLost(runId: string): StoreError {
  return new StoreError('ERR_AGENT_CLAIM_LOST', `another process has taken over run ${runId}`)
}
