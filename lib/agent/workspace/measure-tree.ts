import { rawPath } from './raw-paths.js'
import { ENTRY_BYTES } from './tree-copy.js'
import { unlessGone, walkFolder, WalkedFolder, type Walked } from './walk-folder.js'

/**
 * True if a folder holds more than a copy may have. Synchronous: it runs in a worker, see
 * `copy.ts`. Content with several names counts once; `skipped` are names of folders that do not
 * count.
 */
export function isLarger(
  folder: string,
  maxBytes: number,
  closed: readonly string[],
  skipped: readonly string[],
  isAborted: () => boolean = () => false,
): boolean {
  const root = rawPath(folder)
  const outside = new Set(closed.map(rawPath))
  const inodes = new Set<string>()
  // What cannot be read has no copy either.
  using top = unlessGone(() => WalkedFolder.open(root))
  if (top === null) return false
  let bytes = 0
  for (const found of unlessGone(() => walkFolder(top, { isAborted })) ?? []) {
    const { kind, name, path } = found
    const isCounted = !outside.has(`${root}/${path}`) && !skipped.includes(name)
    if (kind === 'folder' && isCounted) found.tryEnter()
    bytes += ENTRY_BYTES + (kind === 'file' ? sizeOf(found, inodes) : 0)
    if (bytes > maxBytes) return true
  }
  return false
}

function sizeOf(found: Walked, inodes: Set<string>): number {
  const stats = found.stat()
  if (stats === null) return 0
  const key = `${stats.dev} ${stats.ino}`
  if (stats.nlink > 1 && inodes.has(key)) return 0
  if (stats.nlink > 1) inodes.add(key)
  return stats.size
}
