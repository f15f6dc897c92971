import type { Clock } from '../../../internal/time.js'
import { DelegationError } from '../../errors.js'
import type { RecordDraft } from '../../events.js'
import type { LogWriter } from '../../log/writer.js'
import type { DelegateRequest, DelegateResult } from '../../tool.js'
import type { ToolStop } from '../../tools/tool-stop.js'
import type { Outcome } from '../outcome.js'

/** What a step knows of its run. */
export interface CallContext {
  readonly checkpoints: {
    record(
      reason: 'delegate',
      log: LogWriter,
      signal: AbortSignal,
      append: (drafts: readonly RecordDraft[]) => Promise<void>,
    ): Promise<void>
  } | null
  readonly clock: Clock
  readonly folder: { readonly real: string }
  readonly log: LogWriter
  readonly signal: AbortSignal
}

/** Stops a call; its time stands still while it waits for runs. */
export type CallStop = Pick<ToolStop, 'pauseFor' | 'signal'>

/** Starts runs for the calls of one run. */
export interface StartsRuns {
  /** For one call of a tool, until {@link CallRuns.end}. */
  ofCall(callId: string, context: CallContext, stop: CallStop): CallRuns
}

/** The budgets of the runs above, which others use as well: see `TreeBudget`. */
export interface SharedBudget {
  look(): Promise<Omit<Outcome, 'status'> | null>
  reserveCall(): Promise<(() => void) | null>
}

/** The runs that one call starts. */
export interface CallRuns {
  startRun(request: DelegateRequest): Promise<DelegateResult>
  /** Ends what the call has left, unless the run is stopped; nothing is brought back after it. */
  end(): Promise<void>
}

/** For what a tool does beside its call: `plan()` and `verify()` start no runs. */
export const NO_RUNS: Pick<CallRuns, 'startRun'> = {
  startRun: () => {
    const message = 'only execute() of a tool starts runs: plan() and verify() start none'
    const refused = Promise.reject(new DelegationError(message))
    // A tool that does not wait for it must not end the process of the host.
    refused.catch(() => undefined)
    return refused
  },
}
