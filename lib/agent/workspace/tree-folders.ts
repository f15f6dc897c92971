/**
 * What became of the folders of a tree, besides what follows from its files: of empty ones, and of
 * permissions.
 *
 * @module
 */
import type { Tree } from '../tree.js'
import { PER_STEP, sortInSteps, unseenIn } from './net-changes.js'

/** A folder that is made, removed, or gets other permissions; null stands for no folder. */
export interface FolderStep {
  readonly path: string
  readonly before: number | null
  readonly after: number | null
}

/** What is done to folders when the files of one tree take the place of those of another. */
export interface FolderPlan {
  readonly steps: readonly FolderStep[]
  /** Folders that stay when they lose their files, with their permissions. */
  readonly kept: ReadonlyMap<string, number>
  /** Folders from before; the others get their permissions from `kept`. Null: of the system. */
  readonly known: ReadonlyMap<string, number> | null
}

/** For files alone: folders are made as needed, and removed once they are empty. */
export const NO_FOLDERS: FolderPlan = { steps: [], kept: new Map(), known: null }

/**
 * The steps from the folders of one tree to those of another, by path: of folders that hold no file
 * where they are made or removed, and of folders of both trees with other permissions. None if one
 * of the trees says nothing about folders.
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
    // A folder that is not there was removed before, with those above it, or has not changed.
    while (end > 0 && folders.delete(path.slice(0, end))) end = path.lastIndexOf('/', end - 1)
  }
}

/** The folders for {@link planRestore}. */
export function* planFolders(current: Tree, target: Tree): Generator<void, FolderPlan> {
  if (current.folders === undefined || target.folders === undefined) return NO_FOLDERS
  const steps = yield* folderSteps(current, target)
  return { steps, kept: target.folders, known: current.folders }
}

/** The same plan for some paths only; null for all. */
export function onlyFolders(plan: FolderPlan, paths: readonly string[] | null): FolderPlan {
  if (paths === null) return plan
  const wanted = new Set(paths)
  return { ...plan, steps: plan.steps.filter(({ path }) => wanted.has(path)) }
}
