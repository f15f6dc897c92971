/**
 * Selects the files that a run delivers: all its changes except those that its verdict does not
 * cover.
 *
 * @module
 */
import { inSlices } from '../../internal/time.js'
import type { CheckedFiles, FileGroup } from '../check-files.js'
import type { RunHead } from '../run-details.js'
import type { RunStore } from '../store.js'
import type { Tree } from '../tree.js'
import { foldersAbove, netChanges } from '../workspace/net-changes.js'
import { folderSteps } from '../workspace/tree-folders.js'

/** The files that the newest verdict of a run covers; null if that is not known. */
export async function checkedFilesOf(
  store: Pick<RunStore, 'read'>,
  { checkedSeq, details }: RunHead,
): Promise<CheckedFiles | null> {
  if (checkedSeq === null) return null
  const [record] = await store.read(details.run_id, checkedSeq - 1, 1)
  if (record?.kind !== 'goal_check' && record?.kind !== 'attempt_chosen') return null
  return record.private?.files ?? null
}

/** Returns the group of a changed file. */
export function groupsOf(
  files: CheckedFiles | null,
): (path: string, oldPath: string | null) => FileGroup | null {
  if (files === null) return () => null
  const groups = new Map<string, FileGroup>()
  for (const path of files.verified ?? []) groups.set(path, 'verified')
  for (const path of files.added) groups.set(path, 'added')
  for (const path of files.held_back) groups.set(path, 'held_back')
  const unread = files.verified === null ? null : 'not_read'
  return (path, oldPath) => groups.get(path) ?? groups.get(oldPath ?? '') ?? unread
}

/** The tree `after`, in which the files that are held back are as in `before`. */
export function deliveredTree(before: Tree, after: Tree, held: readonly string[]): Tree {
  if (held.length === 0) return after
  const entries = new Map(after.entries)
  const folders = after.folders && new Map(after.folders)
  /** Files that the run replaced by folders. */
  const replaced = new Set<string>()
  /** New folders. Those into which no file is delivered are held back too. */
  const made = new Set<string>()
  for (const path of held) {
    const was = before.entries.get(path)
    const above = foldersAbove(path)
    if (was === undefined) {
      entries.delete(path)
      for (const folder of above) if (before.folders?.has(folder) === false) made.add(folder)
      continue
    }
    entries.set(path, was)
    if (folders?.delete(path) === true) replaced.add(path)
    for (const folder of above) {
      // The run may have put a file in its place.
      entries.delete(folder)
      const mode = before.folders?.get(folder)
      if (mode !== undefined && folders?.has(folder) === false) folders.set(folder, mode)
    }
  }
  if (made.size > 0 || replaced.size > 0) {
    for (const path of [...entries.keys()]) {
      const above = foldersAbove(path)
      if (above.some((folder) => replaced.has(folder))) entries.delete(path)
      else for (const folder of above) made.delete(folder)
    }
    for (const folder of made) folders?.delete(folder)
    for (const folder of [...(folders?.keys() ?? [])])
      if (foldersAbove(folder).some((above) => replaced.has(above))) folders?.delete(folder)
  }
  return { ...after, entries, folders }
}

/** The paths of all delivered changes; null if nothing is held back. */
export async function deliveredPaths(
  before: Tree,
  after: Tree,
  files: CheckedFiles | null,
): Promise<readonly string[] | null> {
  if (files === null || files.held_back.length === 0) return null
  const delivered = deliveredTree(before, after, files.held_back)
  const paths = (await inSlices(folderSteps(before, delivered))).map(({ path }) => path)
  for (const { path, oldPath } of await inSlices(netChanges(before, delivered)))
    paths.push(path, ...(oldPath === null ? [] : [oldPath]))
  return [...new Set(paths)]
}
