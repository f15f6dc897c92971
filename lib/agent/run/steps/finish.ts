import type { RecordDraft } from '../../events.js'
import type { Outcome } from '../next-step.js'
import type { RunFailure } from '../../run-details.js'
import type { LogWriter } from '../../log/writer.js'
import type { RunState } from '../../log/state.js'
import { closingRecord } from './act.js'

/** The record that ends a run. */
export function endRecord(state: RunState, outcome: Outcome): RecordDraft {
  const { details } = state.head
  const { total_tokens, estimated_cost_usd } = details.final_state
  return {
    kind: 'run_end',
    iteration: details.iteration,
    payload: {
      achieved: outcome.status === 'achieved',
      iterations: details.iteration,
      total_tokens,
      status: outcome.status,
      end_reason: outcome.endReason,
      reason: outcome.reason,
      estimated_cost_usd,
      cost_known: details.cost_known,
    },
  }
}

/** What broke, when a run ends because something broke. */
export type Failure = Omit<RunFailure, 'iteration'>

/** Everything that ends a run: a result for each open call, the error if there is one, `run_end`. */
export function endingRecords(
  state: RunState,
  outcome: Outcome,
  failure?: Failure,
): readonly RecordDraft[] {
  const { iteration } = state.head.details
  const records = state.calls
    .filter(({ status }) => status !== 'done')
    .map((call) =>
      call.status === 'started'
        ? closingRecord(iteration, call, 130, 'Stopped: the run ended while this ran.')
        : closingRecord(iteration, call, 130, 'Not run: the run ended before.'),
    )
  if (failure !== undefined) records.push({ kind: 'error', iteration, payload: failure })
  return [...records, endRecord(state, outcome)]
}

/** Ends the run; resolves once its end is durable. */
export async function finishRun(
  log: LogWriter,
  outcome: Outcome,
  failure?: Failure,
): Promise<void> {
  await log.append(endingRecords(log.state, outcome, failure))
}
