import { inSlices } from '../../internal/time.js'
import type { RestoreResult } from '../checkpoint.js'
import { CheckpointError, InvalidRequestError, WorkspaceChangedError } from '../errors.js'
import type { LeftOut, Tree } from '../tree.js'
import { planRestore, type PathStep } from '../workspace/apply.js'
import { isSameEntry } from '../workspace/net-changes.js'
import { readTree } from '../workspace/read-tree.js'
import { onlyFolders, planFolders } from '../workspace/tree-folders.js'
import { checkpointDraft } from './checkpoint-chain.js'
import { restorable, type FileOperations, type StoredFolder } from './file-operations.js'

/** What is restored, and where that is known to be what the folder had. */
export interface Restore {
  readonly checkpointId: string
  /** Null for all that differ. */
  readonly paths: readonly string[] | null
  /** The newest checkpoint of the folder: what differs from it was changed by others. */
  readonly newest: string
  /** Why a checkpoint is made. */
  readonly reason: 'restore' | 'apply'
  readonly force: boolean
  readonly by: string | null
}

/**
 * Gives a folder the content of a checkpoint; nothing is changed if that is refused.
 *
 * @throws {@link WorkspaceChangedError}; {@link InvalidRequestError} for paths that neither the
 * checkpoint nor the folder has; {@link CheckpointError} with `not_kept` when what would be
 * overwritten could not be stored; as {@link FileOperations.change} does.
 */
export async function restoreFolder(
  operations: FileOperations,
  folder: StoredFolder,
  { checkpointId, paths, newest, reason, force, by }: Restore,
): Promise<RestoreResult> {
  const { log } = folder
  const { objects } = operations
  const { captured, tree: now } = await folder.capture()
  const target = await readTree(objects, checkpointId)
  assertKnown(paths ?? [], [now, target])
  const all = await inSlices(planRestore(now, target))
  const steps = restorable(all, paths)
  const folders = onlyFolders(await inSlices(planFolders(now, target)), paths)
  if (!force) {
    const known = (await readTree(objects, newest)).entries
    const isForeign = ({ path, before }: PathStep): boolean =>
      !isSameEntry(before, known.get(path) ?? null)
    const foreign = steps.filter(isForeign).map(({ path }) => path)
    if (foreign.length > 0) throw new WorkspaceChangedError('changed', foreign)
    const lost = steps.filter(({ before }) => before?.stored === false).map(({ path }) => path)
    if (lost.length > 0) throw notStored(lost)
  }
  const left_out = withMissing(target.leftOut, all)
  const result = { restored: checkpointId, checkpoint_id: captured.checkpoint_id, left_out }
  if (steps.length + folders.steps.length === 0) {
    // The checkpoint that takes this back must be one of the run's.
    const isKnown = [checkpointId, newest].includes(captured.checkpoint_id)
    if (!isKnown) await log.offer([checkpointDraft(captured, reason, log.state.head)])
    return { ...result, paths: [], skipped: [] }
  }
  const waits = false
  const operation = { operation: 'restore', after: checkpointId, paths, force, by, waits } as const
  const done = await operations.change(folder, operation, captured, { steps, folders })
  return { ...result, ...done }
}

function assertKnown(paths: readonly string[], trees: readonly Tree[]): void {
  const detail = 'is a file of neither the checkpoint nor the folder'
  const isIn = (path: string) => ({ entries, folders }: Tree): boolean =>
    entries.has(path) || folders?.has(path) === true
  const violations = paths.flatMap((path, i) =>
    trees.some(isIn(path)) ? [] : [{ pointer: `/paths/${i}`, detail }],
  )
  if (violations.length > 0) throw new InvalidRequestError(violations)
}

function notStored(paths: readonly string[]): CheckpointError {
  const message =
    'the content that these files have now is too large to be stored, so that the restore ' +
    'could not be taken back; force restores them all the same'
  return new CheckpointError('not_kept', message, paths)
}

/** What was left out of a checkpoint, and the files that would differ but were not stored. */
function withMissing(leftOut: readonly LeftOut[], steps: readonly PathStep[]): readonly LeftOut[] {
  const possible = new Set(restorable(steps))
  const missing = steps.filter((step) => !possible.has(step)).map(({ path }) => path)
  const others = leftOut.filter(({ reason }) => reason !== 'budget')
  if (missing.length === 0) return others
  const paths = missing.slice(0, 1_000)
  const budget = { reason: 'budget', count: missing.length, paths } as const
  return [budget, ...others]
}
