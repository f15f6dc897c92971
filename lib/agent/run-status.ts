/** The status of a run; the last three are final. */
export type RunStatus = 'pending' | 'running' | 'awaiting_human' | 'achieved' | 'failed' | 'aborted'

/** True for a status that no record can follow. */
export function isTerminal(status: RunStatus): boolean {
  return status === 'achieved' || status === 'failed' || status === 'aborted'
}

/** Why a run ended: `human_abort` at a gate, `cancelled` by a request to abort the run. */
export type EndReason =
  | 'goal_achieved'
  | 'max_iterations'
  | 'token_budget'
  | 'cost_budget'
  | 'time_budget'
  | 'tool_call_budget'
  | 'setup_failed'
  | 'holdout_exhausted'
  | 'stuck'
  | 'content_filter'
  | 'context_exhausted'
  | 'provider_error'
  | 'goal_check_error'
  | 'internal_error'
  | 'recovery_failed'
  | 'human_abort'
  | 'cancelled'
  | 'gate_timeout'
  | 'attempts_failed'
  | 'result_invalid'

/** How much changed between two checkpoints. */
export interface ChangeCounts {
  readonly files: number
  readonly additions: number
  readonly deletions: number
  /** Files whose lines do not count, as they are binary or too large; absent for none. */
  readonly uncounted?: number
}

/** What a verdict rests on. */
export interface Assurance {
  /**
   * `tests`: the report of a test runner, test by test; `exit_code`: that of the command alone;
   * `schema`: a result that has the form asked for; `judge`: the opinion of a model.
   */
  readonly by: 'tests' | 'exit_code' | 'schema' | 'judge'
  /** Checked in a fresh copy, with the check's own files as they were at the start. */
  readonly sealed: boolean
  /** Assertions were shown to fail still, in the same processes. */
  readonly canaries: boolean
  /** Tests that the run could not read passed as well. */
  readonly holdout: boolean
  /** True if the start had no test, so that all that passed are the run's own. Absent if not. */
  readonly own_tests?: true
}
