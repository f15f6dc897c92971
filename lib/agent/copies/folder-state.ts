import { LongWork } from '../../internal/time.js'
import { isPassedOver } from '../workspace/left-out.js'
import { exactPath, exactText } from '../workspace/raw-paths.js'
import { unlessGone, walkFolder, WalkedFolder, WorkStopped } from '../workspace/walk-folder.js'

/** Entries of a folder, beyond which nobody compares it. */
const MAX_ENTRIES = 20_000

/** What tells that a file is another one, by path. */
export type FolderState = ReadonlyMap<string, string>

/**
 * Size, times and identity of everything in a folder; of dependencies, caches and version control
 * only the folder itself. Null when there is too much.
 */
export async function folderState(root: string): Promise<FolderState | null> {
  const state = new Map<string, string>()
  const work = new LongWork()
  const top = new WalkedFolder(null, exactPath(root))
  const limits = { entries: MAX_ENTRIES, names: MAX_ENTRIES + 1 }
  try {
    for (const found of unlessGone(() => walkFolder(top, limits)) ?? []) {
      if (work.isDue) await work.next()
      const stats = found.stat()
      if (stats === null) continue
      const path = exactText(found.path)
      if (stats.isDirectory() && !isPassedOver(exactText(found.name))) {
        state.set(path, 'folder')
        // One that vanishes meanwhile has changed, which its parent tells.
        found.tryEnter()
      } else state.set(path, `${stats.ino} ${stats.size} ${stats.mtimeMs} ${stats.ctimeMs}`)
    }
    return state
  } catch (error) {
    if (error instanceof WorkStopped) return null
    throw error
  }
}

/** The paths of `before` that are gone or different in `after`. */
export function changedIn(before: FolderState, after: FolderState): string[] {
  return [...before].flatMap(([path, state]) => (after.get(path) === state ? [] : [path]))
}

export function isSameState(one: FolderState | null, other: FolderState | null): boolean {
  if (one === null || other === null || one.size !== other.size) return false
  return changedIn(one, other).length === 0
}
