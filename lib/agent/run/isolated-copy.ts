/**
 * The copy in which an isolated run works.
 *
 * 1. It is made when the run first works: of the folder as it is then, and for a fork with the
 *    files of its checkpoint.
 * 2. A restart finds it again. A process that takes the run over from another one brings it to the
 *    newest checkpoint, and a process that is closed makes one. After a start of the machine, which
 *    may have lost what was not on the disk, and where its packages cannot be mounted any more, it
 *    is made anew. What was done since the checkpoint is lost then, and the model hears so.
 * 3. What storage leaves out (secrets, dependencies) is as in the folder when the copy is made. If
 *    `setup` makes some of it, the copy of a child or a fork is made of the copy of its parent or
 *    its source; where that is gone, and when a copy is made anew, the command runs again.
 *
 * @module
 */
import { inSlices } from '../../internal/time.js'
import { boundedObjects } from '../checkpoints/object-use.js'
import type { CheckpointSettings } from '../checkpoints/settings.js'
import type { Executor, IsolatedCopy } from '../executor.js'
import { onOwnFiles } from '../exhaustion.js'
import type { IsolatedFolders } from '../isolation/isolated-folders.js'
import type { RunState } from '../log/run-state.js'
import { lacksSetup } from '../request/setup.js'
import type { LeftOut, TreeEntry } from '../tree.js'
import { applySteps, planRestore } from '../workspace/apply.js'
import { isOfTree } from '../workspace/left-out.js'
import { TrackedFolder, type Captured } from '../workspace/tracked-folder.js'
import { readContent, readTree } from '../workspace/read-tree.js'
import { planFolders } from '../workspace/tree-folders.js'

/** What is needed to open the copies of an engine. */
export interface CopyOptions {
  readonly folders: IsolatedFolders
  readonly checkpoints: CheckpointSettings
  /** True when other processes may have worked on the run since this one did. */
  readonly isShared: boolean
  readonly executor: Executor
  readonly signal: AbortSignal
  /** Rejects when another process works on the run by now. */
  readonly confirm: () => Promise<void>
  /** Resolves once the log of the run says that the copy, which is made next, has to be set up. */
  readonly setUpAgain: () => Promise<void>
  /** Resolves once the log of the run says this. */
  readonly tell: (message: string) => Promise<void>
}

/** The copy of a run, and what there is to tell about it. */
export interface OpenedCopy {
  readonly copy: IsolatedCopy
  readonly notes: readonly string[]
  /** For the model: what it may have done since the newest checkpoint is gone. */
  readonly loss: string | null
  /** The checkpoint that the copy was found to hold, to the last file; null when none was. */
  readonly holds: Captured | null
}

/**
 * Finds or makes the copy of a run; see the comment of this file.
 *
 * @throws {@link WorkspaceTooLargeError}; {@link WorkspaceError}; {@link StoreError}; the signal's
 * reason.
 */
export async function openCopy(state: RunState, options: CopyOptions): Promise<OpenedCopy> {
  const { confirm, folders, executor, isShared, setUpAgain, signal } = options
  const { cwd } = state.frozen.request
  const { run_id: runId, started_at } = state.head.details
  const { fork } = state.frozen
  const newest = state.checkpoints?.newest ?? fork?.checkpoint_id ?? null
  let holds: Captured | null = null
  const fill = async (path: string, isUsed = false): Promise<readonly string[]> => {
    if (newest === null) return []
    const given = await giveTree(path, newest, isUsed, options)
    holds = given.holds
    return given.notes
  }
  const loss = state.lastWrite > (state.checkpoints?.seq ?? 0) ? LOSS : null
  const mounts = (await executor.mountsFolders?.()) ?? false
  const adopts = fork?.adopts === true
  const found = await folders.usable(runId, mounts, adopts)
  // Before a copy is made, its maker asks.
  if (found !== null || adopts) await confirm()
  // One that was adopted may not have been filled before the process died.
  const isReady = !isShared && started_at !== null
  if (found !== null && isReady) return { copy: found, notes: [], loss: null, holds }
  const used = found ?? (adopts ? await adoptedFrom(state, folders, mounts) : null)
  if (used !== null) {
    const what = `the copy ${used.root} cannot be given the files of its checkpoint`
    const notes = await onOwnFiles(what, () => fill(used.root, true))
    return { copy: used, notes, loss, holds }
  }
  const lacks = lacksSetup(state.frozen)
  const from = lacks ? await setUpCopyOf(state, folders, mounts) : null
  const isFirst = fork === undefined && started_at === null
  // The log says so before there is a copy, so that no crash hides it.
  if (lacks && from === null && !isFirst) await setUpAgain()
  const made = { mounts, whole: lacks, from, fill, confirm, adopts, signal }
  const { notes, ...copy } = await folders.create(runId, cwd, made)
  return { copy, notes, loss, holds }
}

/** The copy of the parent or the source, in which `setup` has run; null if it is not here. */
async function setUpCopyOf(
  { frozen, head }: RunState,
  folders: IsolatedFolders,
  mounts: boolean,
): Promise<string | null> {
  const { forked_from: source, parent_run_id: parent, role } = head.details
  const runId = role === 'root' ? source?.run_id : parent
  if (runId == null || frozen.fork === undefined) return null
  const copy = await folders.usable(runId, mounts)
  return copy?.original === frozen.request.cwd ? copy.root : null
}

const LOSS =
  'This run goes on in a copy that was given the files of the newest checkpoint. ' +
  'What was changed after it is lost: read files again before you rely on earlier changes.'

async function adoptedFrom(
  { frozen, head }: RunState,
  folders: IsolatedFolders,
  mounts: boolean,
): Promise<IsolatedCopy | null> {
  const from = head.details.forked_from
  if (from === null || frozen.fork === undefined) return null
  if ((await folders.usable(from.run_id, mounts)) === null) return null
  return await folders.adopt(from.run_id, head.details.run_id)
}

/**
 * Gives a copy the files of a checkpoint; returns what there is to tell, and the checkpoint if the
 * copy held it already. What somebody did in a copy that was used before is named before it is
 * lost.
 */
async function giveTree(
  path: string,
  checkpointId: string,
  isUsed: boolean,
  { checkpoints, signal, tell }: CopyOptions,
): Promise<Pick<OpenedCopy, 'holds' | 'notes'>> {
  const objects = boundedObjects(checkpoints.use.objects, signal)
  const rules = { ...checkpoints.rules, closed: [] }
  await using tracked = new TrackedFolder(rules)
  const holds = await tracked.find(path, signal)
  if (holds.checkpoint_id === checkpointId) {
    return { notes: asLeftOut(holds.left_out.filter(isOfTree)), holds }
  }
  const now = await tracked.manifest(path, signal)
  const target = await readTree(objects, checkpointId)
  const steps = await inSlices(planRestore(now, target))
  const folders = await inSlices(planFolders(now, target))
  const possible = steps.filter(({ after }) => after?.stored !== false)
  if (isUsed && possible.length > 0) {
    const paths = few(possible.map((step) => step.path), MAX_LOST)
    await tell(`What was changed after checkpoint ${checkpointId} is taken back: ${paths}.`)
  }
  const contentOf = (entry: TreeEntry): Promise<Uint8Array> => readContent(objects, entry)
  const { skipped } = await applySteps(path, possible, contentOf, { folders })
  const missing = [
    ...steps.filter(({ after }) => after?.stored === false).map((step) => step.path),
    ...skipped,
  ]
  const notes = [
    ...(missing.length === 0 ? [] : [`Not as in checkpoint ${checkpointId}: ${few(missing)}.`]),
    ...asLeftOut(target.leftOut),
  ]
  return { notes, holds: null }
}

function asLeftOut(leftOut: readonly LeftOut[]): readonly string[] {
  const paths = leftOut.flatMap(({ paths }) => paths)
  return paths.length === 0 ? [] : [`As in the folder now, because not stored: ${few(paths)}.`]
}

const NAMED = 10
const MAX_LOST = 1_000

function few(paths: readonly string[], named = NAMED): string {
  const more = paths.length - named
  return `${paths.slice(0, named).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
