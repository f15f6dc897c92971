import type { CommandOptions, Executor, IsolatedCopy } from '../executor.js'
import type { TrialReport, TrialRequest } from '../trial.js'

/** The workspace of the run, and its own copy, if it works in one. */
export interface TrialPlace {
  readonly cwd: string
  readonly isolated: IsolatedCopy | null
}

/** How one request runs its commands. */
export type TrialControl = Pick<CommandOptions, 'signal' | 'onStart'>

/** The trials of one run. */
export interface Trying {
  /** As `ToolContext.tryPatches`. */
  try(request: TrialRequest, place: TrialPlace, control: TrialControl): Promise<TrialReport>
  /** Removes its copies. */
  close(): Promise<void>
}

/** Gives the trials of a run. */
export type TryingFor = (runId: string, claimed: (executor: Executor) => Executor) => Trying
