import { lstatSync, readdirSync, type Dirent } from 'node:fs'
import { codeOf } from './paths.js'
import { rawPath, toSystem, type RawPath } from './raw-paths.js'
import { ENTRY_BYTES } from './tree-copy.js'

/**
 * Does a folder hold more than a copy may have? Synchronous: it runs in a worker, see `copy.ts`.
 * Content with several names counts once; `skipped` are names of folders that do not count.
 */
export function isLarger(
  folder: string,
  maxBytes: number,
  closed: readonly string[],
  skipped: readonly string[],
): boolean {
  const outside = new Set(closed.map(rawPath))
  const inodes = new Set<string>()
  const folders: RawPath[] = [rawPath(folder)]
  let bytes = 0
  for (let at = folders.pop(); at !== undefined; at = folders.pop()) {
    for (const entry of entriesOf(at)) {
      const path: RawPath = `${at}/${entry.name}`
      const isCounted = !outside.has(path) && !skipped.includes(entry.name)
      if (entry.isDirectory() && isCounted) folders.push(path)
      bytes += ENTRY_BYTES + (entry.isFile() ? sizeOf(path, inodes) : 0)
      if (bytes > maxBytes) return true
    }
  }
  return false
}

/** None of a folder that cannot be read: a copy does not have them either. */
function entriesOf(path: RawPath): Dirent[] {
  try {
    return readdirSync(toSystem(path), { encoding: 'latin1', withFileTypes: true })
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM'].includes(codeOf(error) ?? '')) return []
    throw error
  }
}

function sizeOf(path: RawPath, inodes: Set<string>): number {
  const stats = lstatSync(toSystem(path), { throwIfNoEntry: false })
  if (stats === undefined) return 0
  const key = `${stats.dev} ${stats.ino}`
  if (stats.nlink > 1 && inodes.has(key)) return 0
  if (stats.nlink > 1) inodes.add(key)
  return stats.size
}
