import type { Compare } from '../checkpoints/run-checkpoints.js'
import type { ModelError } from '../errors.js'
import type { CheckpointReason, RecordDraft } from '../events.js'
import { throwIfExhausted, type Patience } from '../exhaustion.js'
import type { LogWriter } from '../log/writer.js'
import type { ToolContext } from '../tool.js'
import { toolCommand } from '../tools/command-line.js'
import type { FileChange, Workspace } from '../workspace/workspace.js'
import type { CallRuns, SharedBudget, StartsRuns } from './children/call-runs.js'
import type { Prompt } from './prompt.js'
import type { RunFolder } from './run-folder.js'
import type { RunParts } from './run-parts.js'
import type { RunServices } from './services.js'

/**
 * What the steps of one run use: the services of the engine, the parts of the run, its folder, and
 * the following. Everything that must survive a crash is in `log.state`.
 */
export interface StepContext extends Omit<RunServices, keyof RunFolder>, RunParts, RunFolder {
  readonly log: LogWriter
  readonly prompt: Prompt
  /** Tokens of conversation that the model accepts: lowered by each refusal; the last one. */
  readonly fit: { tokens: number; refusal: ModelError | null }
  /** The runs that this one has started. */
  readonly children: { nameAttempts(checkpoint: readonly RecordDraft[]): Promise<void> }
  /** The budgets of the runs above; null when only those of the run itself count. */
  readonly budget: SharedBudget | null
  /** Starts runs for calls of tools. */
  readonly delegates: StartsRuns
  /** Aborts the current step. */
  readonly signal: AbortSignal
  /** Repeats a part of the step, which is not repeated as a whole then. */
  readonly untilPossible: Patience
}

/**
 * Calls `append` with the record of a checkpoint made now, or with none when there is nothing new;
 * it must append that record.
 */
export async function withCheckpoint(
  { checkpoints, log, signal }: StepContext,
  reason: CheckpointReason,
  append: (drafts: readonly RecordDraft[], compare: Compare) => Promise<void>,
): Promise<void> {
  if (checkpoints === null) return await append([], () => Promise.resolve(null))
  await checkpoints.record(reason, log, signal, append)
}

/**
 * The context of one tool call, which starts other runs with `runs`. `onChanges` is called with the
 * files that each command of the tool changed.
 */
export function toolContext(
  context: StepContext,
  callId: string,
  stop: { readonly signal: AbortSignal },
  runs: Pick<CallRuns, 'startRun'>,
  onStart: (pgid: number) => Promise<void>,
  onChanges?: (changes: readonly FileChange[]) => void,
): ToolContext {
  const { workspace, executor, log } = context
  let begun: Promise<void> | undefined
  return {
    runId: log.runId,
    callId,
    workspace,
    startRun: (request) => runs.startRun(request),
    copies: context.copies.ofCall({
      stop,
      // Commands run at the same time, and the first of them begins the call.
      onStart: (pgid) => (begun ??= onStart(pgid)),
      place: async () => {
        // Throws if the run has no folder, or has lost it.
        await workspace.resolve('.')
        return { cwd: context.folder.real, isolated: context.isolated }
      },
    }),
    get signal() {
      return stop.signal
    },
    run: async (command, options = {}) => {
      const place = { root: workspace.root, runId: log.runId, signal: stop.signal, onStart }
      const [line, settings] = toolCommand('context.run()', command, options, place)
      // Resets the comparison: earlier changes are not this command's.
      if (onChanges !== undefined) await changesIn(workspace)
      const result = await executor.run(line, settings)
      if (onChanges !== undefined) onChanges(await changesAfter(context, stop.signal))
      return result
    },
  }
}

/** The changes that something made which has run; waits while the machine is at fault. */
export async function changesAfter(
  { untilPossible, workspace }: Pick<StepContext, 'untilPossible' | 'workspace'>,
  signal: AbortSignal,
): Promise<readonly FileChange[]> {
  return await untilPossible(() => changesIn(workspace), signal).catch(() => [])
}

/** The changes since the last call; none when the workspace cannot be read. */
export async function changesIn(workspace: Workspace): Promise<readonly FileChange[]> {
  return await workspace.changes().catch((error: unknown) => {
    throwIfExhausted(error)
    return []
  })
}
