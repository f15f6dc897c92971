import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { unreadable } from '../exhaustion.js'
import { isPassedOver } from '../workspace/left-out.js'

/** Entries of a folder, beyond which nobody compares it. */
const MAX_ENTRIES = 20_000

/** What tells that a file is another one, by path. */
export type FolderState = ReadonlyMap<string, string>

/**
 * Size, times and identity of everything in a folder; of dependencies, caches and version control
 * only the folder itself. Null when there is too much.
 */
export async function folderState(root: string): Promise<FolderState | null> {
  const found = new Map<string, string>()
  const folders = ['']
  for (const folder of folders) {
    // A folder that vanishes meanwhile has changed, which its parent tells.
    const read = readdir(join(root, folder), { withFileTypes: true })
    const entries = (await read.catch(unreadable)) ?? []
    if (found.size + entries.length > MAX_ENTRIES) return null
    await Promise.all(
      entries.map(async (entry) => {
        const path = join(folder, entry.name)
        const stats = await lstat(join(root, path), { bigint: true }).catch(unreadable)
        if (stats === null) return
        const isFolder = stats.isDirectory()
        if (isFolder && !isPassedOver(entry.name)) {
          folders.push(path)
          found.set(path, 'folder')
        } else found.set(path, `${stats.ino} ${stats.size} ${stats.mtimeNs} ${stats.ctimeNs}`)
      }),
    )
  }
  return found
}

/** The paths of `before` that are gone or different in `after`. */
export function changedIn(before: FolderState, after: FolderState): string[] {
  return [...before].flatMap(([path, state]) => (after.get(path) === state ? [] : [path]))
}

export function isSameState(one: FolderState | null, other: FolderState | null): boolean {
  if (one === null || other === null || one.size !== other.size) return false
  return changedIn(one, other).length === 0
}
