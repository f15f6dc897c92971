/**
 * How folders differ between two trees, apart from what follows from their files: empty folders and
 * permissions.
 *
 * @module
 */
import type { Tree } from '../tree.js'
import { PER_STEP, sortInSteps, unseenIn } from './net-changes.js'

/** A folder that is created, removed or gets new permissions; null stands for no folder. */
export interface FolderStep {
  readonly path: string
  readonly before: number | null
  readonly after: number | null
}

/** Changes of folders that accompany a change of files. */
export interface FolderPlan {
  readonly steps: readonly FolderStep[]
  /** Folders that stay even if they become empty, with their permissions. */
  readonly kept: ReadonlyMap<string, number>
  /** Existing folders: others get permissions from `kept`. Null: default permissions. */
  readonly known: ReadonlyMap<string, number> | null
}

/** For files only: folders are created as needed, and removed once they are empty. */
export const NO_FOLDERS: FolderPlan = { steps: [], kept: new Map(), known: null }

/**
 * The steps from the folders of one tree to those of another, by path: folders that are created or
 * removed without files in them, and folders whose permissions differ. None if one of the trees
 * says nothing about folders.
 */
export function* folderSteps(before: Tree, after: Tree): Generator<void, readonly FolderStep[]> {
  if (before.folders === undefined || after.folders === undefined) return []
  const steps: FolderStep[] = []
  const [gone, made] = [new Map<string, number>(), new Map<string, number>()]
  const isUnseenBefore = unseenIn(before, 'named')
  const isUnseenAfter = unseenIn(after, 'all')
  let looked = 0
  for (const [path, mode] of before.folders) {
    if (++looked % PER_STEP === 0) yield
    const now = after.folders.get(path)
    if (now === undefined && !isUnseenAfter(path)) gone.set(path, mode)
    else if (now !== undefined && now !== mode) steps.push({ path, before: mode, after: now })
  }
  for (const [path, mode] of after.folders) {
    if (++looked % PER_STEP === 0) yield
    if (!before.folders.has(path) && !isUnseenBefore(path)) made.set(path, mode)
  }
  yield* removeHolders(gone, before)
  yield* removeHolders(made, after)
  for (const [path, mode] of gone) steps.push({ path, before: mode, after: null })
  for (const [path, mode] of made) steps.push({ path, before: null, after: mode })
  return yield* sortInSteps(steps)
}

/** Removes those folders that hold a file or link, however deep. */
function* removeHolders(folders: Map<string, number>, tree: Tree): Generator<void, void> {
  if (folders.size === 0) return
  let looked = 0
  for (const path of tree.entries.keys()) {
    if (++looked % PER_STEP === 0) yield
    let end = path.lastIndexOf('/')
    // If it is not in the map, neither are the folders above it.
    while (end > 0 && folders.delete(path.slice(0, end))) end = path.lastIndexOf('/', end - 1)
  }
}

/** The folder plan of a restore. */
export function* planFolders(current: Tree, target: Tree): Generator<void, FolderPlan> {
  if (current.folders === undefined || target.folders === undefined) return NO_FOLDERS
  const steps = yield* folderSteps(current, target)
  return { steps, kept: target.folders, known: current.folders }
}

/** The plan for some paths only; null for all. */
export function onlyFolders(plan: FolderPlan, paths: readonly string[] | null): FolderPlan {
  if (paths === null) return plan
  const wanted = new Set(paths)
  return { ...plan, steps: plan.steps.filter(({ path }) => wanted.has(path)) }
}
