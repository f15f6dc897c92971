import { inSlices } from '../../internal/time.js'
import type { ApplyResult } from '../checkpoint.js'
import { InvalidRequestError, RunStateError, WorkspaceChangedError } from '../errors.js'
import type { RunTrees } from '../log/run-state.js'
import type { LogWriter } from '../log/writer.js'
import type { Tree } from '../tree.js'
import { comparePaths, netChanges } from '../workspace/net-changes.js'
import { readTree } from '../workspace/read-tree.js'
import { folderSteps } from '../workspace/tree-folders.js'
import { deliveredPaths } from './delivered.js'
import type { FileOperations, Operation, StoredFolder } from './file-operations.js'

/** What is applied of an isolated run. */
export interface Apply extends Pick<Operation, 'by' | 'force' | 'waits'> {
  /** Null for all that the run changed. */
  readonly paths: readonly string[] | null
  /** Also apply the files that its verdict does not cover? */
  readonly includesHeldBack: boolean
  readonly dryRun: boolean
}

/**
 * Brings what an isolated run changed into the folder that was meant; nothing is changed if that is
 * refused.
 *
 * @throws {@link WorkspaceChangedError} with the paths that conflict; {@link RunStateError} with
 * `no_changes`; {@link InvalidRequestError} for paths that the run did not change; as
 * {@link FileOperations.change} does.
 */
export async function applyChanges(
  operations: FileOperations,
  folder: StoredFolder,
  { paths, dryRun, includesHeldBack, ...how }: Apply,
): Promise<ApplyResult> {
  const { log } = folder
  const trees = treesOf(log)
  const ours = await readTree(operations.objects, trees.newest)
  const began = await operations.changesBegan(log)
  const files = includesHeldBack || paths !== null ? null : log.state.checkedFiles
  const wanted =
    paths === null
      ? await deliveredPaths(began, ours, files)
      : await changedPaths(began, ours, paths)
  const held_back = wanted === null ? [] : files?.held_back ?? []
  const { captured, tree: theirs } = await folder.capture()
  const plan = await operations.planApply(log, { ours, theirs }, wanted, how.force)
  const { steps, folders, merged, conflicts } = plan
  // What the folder has already is to be decided as well, while the changes wait for that.
  const isWaited = log.state.head.details.changes === 'pending'
  const all = new Set([...steps, ...folders.steps].map(({ path }) => path))
  const planned = [...all].sort(comparePaths)
  if (planned.length + conflicts.length === 0 && !isWaited) throw noChanges(log.runId)
  if (conflicts.length > 0 && !how.force && !dryRun) {
    throw new WorkspaceChangedError('conflict', conflicts)
  }
  if (dryRun) {
    await operations.assertRoom(folder, plan)
    return { applied: planned, merged, skipped: [], conflicts, held_back, checkpoint_id: null }
  }
  const operation = { operation: 'apply', after: trees.newest, paths: wanted, ...how } as const
  const done = await operations.change(folder, operation, captured, plan)
  const reached = new Set(done.paths)
  return {
    applied: done.paths,
    merged: merged.filter((path) => reached.has(path)),
    skipped: done.skipped,
    conflicts,
    held_back,
    checkpoint_id: captured.checkpoint_id,
  }
}

function treesOf(log: LogWriter): RunTrees {
  const { checkpoints } = log.state
  if (checkpoints === null) throw noChanges(log.runId)
  return checkpoints
}

/** The refusal to apply or discard what is not there. */
export function noChanges(runId: string): RunStateError {
  const message = `run ${runId} has no changes that wait to be applied`
  return new RunStateError('no_changes', message)
}

/** These paths, and the other names of those that were renamed. */
async function changedPaths(
  base: Tree,
  ours: Tree,
  paths: readonly string[],
): Promise<readonly string[]> {
  const names = new Map<string, readonly string[]>()
  for (const { path } of await inSlices(folderSteps(base, ours))) names.set(path, [path])
  for (const { path, oldPath } of await inSlices(netChanges(base, ours))) {
    const both = oldPath === null ? [path] : [path, oldPath]
    for (const name of both) names.set(name, both)
  }
  const detail = 'is no file that the run changed'
  const violations = paths.flatMap((path, i) =>
    names.has(path) ? [] : [{ pointer: `/paths/${i}`, detail }],
  )
  if (violations.length > 0) throw new InvalidRequestError(violations)
  return [...new Set(paths.flatMap((path) => names.get(path)!))]
}
