/**
 * What the parts of one engine share. It is made once, with the engine, and handed on as it is: a
 * new dependency of a step is declared here and created in `engine.ts`.
 *
 * @module
 */
import type { ApproveCall } from '../approval.js'
import type { FileOperations } from '../checkpoints/file-operations.js'
import type { RunFiles } from '../checkpoints/run-logs.js'
import type { CheckpointSettings } from '../checkpoints/settings.js'
import type { CopiesFor } from '../copies/run-copies.js'
import type { Executor } from '../executor.js'
import type { SealingFor } from '../goals/sealed/sealing.js'
import type { IsolatedFolders } from '../isolation/isolated-folders.js'
import type { LogWriterOptions } from '../log/writer.js'
import type { Model } from '../model.js'
import type { RootsOf } from '../request/roots.js'
import type { Tool } from '../tool.js'
import type { CommandOfGoal } from '../tools/builtin.js'
import type { Tracing } from '../tracing/tracing.js'
import type { ChildRuns } from './children/child-runs.js'
import type { LocalTrees } from './children/tree-budget.js'
import type { LimitedProviderOf } from './limited-calls.js'
import type { Scheduler } from './scheduler.js'

/** The services of one engine, for its drivers, its runs and their steps. */
export interface RunServices extends LogWriterOptions {
  /** Returns a number from 0 to 1, for the jitter of retries. */
  readonly random: () => number
  readonly rootsOf: RootsOf
  /** Folders that do not exist for runs. */
  readonly closed: readonly string[]
  readonly cwdPolicy: 'queue' | 'reject' | 'allow'
  readonly maxConcurrentRuns: number
  readonly maxQueuedRuns: number
  readonly maxTurnsPerIteration: number
  /** True to end a run that makes no progress. */
  readonly detectStuck: boolean
  /** Crashes without progress in between that a run survives. */
  readonly maxRecoveries: number
  /** Milliseconds after which a tool call has timed out, whatever the tool does. */
  readonly toolTimeoutMs: number
  /** Milliseconds until a gate that opens now expires; null never does. */
  readonly gateTimeoutMs: number | null
  /** Decides which calls wait for a human; null: their request does. */
  readonly approval: ApproveCall | null
  /** True for files whose content must not be in the log. */
  readonly holdsSecrets: (path: string) => boolean
  /** Runs commands; that of a run confines them to its folder. */
  readonly executor: Executor
  readonly commandOfGoal: CommandOfGoal
  /** The tools for a run that is prepared now. */
  readonly offeredTools: () => ReadonlyMap<string, Tool>
  /** The default model without a name. @throws when no provider has a model of this name. */
  readonly resolveModel: (name?: string) => Model
  /** Null: no provider has limits. */
  readonly limitedProvider: LimitedProviderOf | null
  readonly tracing: Tracing
  readonly sealingFor: SealingFor
  readonly copiesFor: CopiesFor
  /** Null: runs have no checkpoints. */
  readonly checkpoints: CheckpointSettings | null
  /** Null: there is nowhere to store contents, so nothing is restored or applied. */
  readonly files: RunFiles | null
  /** Null as for {@link RunServices.files}. */
  readonly operations: FileOperations | null
  /** Null: there are no isolated runs. */
  readonly isolation: IsolatedFolders | null
  readonly scheduler: Scheduler
  /** The runs that others start. */
  readonly childRuns: ChildRuns
  /** The budgets of trees whose runs are driven here. */
  readonly trees: LocalTrees
}
