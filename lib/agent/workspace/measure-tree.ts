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

function entriesOf(path: RawPath): Dirent[] {
  const options = { encoding: 'latin1', withFileTypes: true } as const
  return unlessAbsent(() => readdirSync(toSystem(path), options)) ?? []
}

function sizeOf(path: RawPath, inodes: Set<string>): number {
  const stats = unlessAbsent(() => lstatSync(toSystem(path)))
  if (stats === null) return 0
  const key = `${stats.dev} ${stats.ino}`
  if (stats.nlink > 1 && inodes.has(key)) return 0
  if (stats.nlink > 1) inodes.add(key)
  return stats.size
}

/** Null for what is gone, too deep or must not be looked at: a copy does not have it either. */
function unlessAbsent<T>(look: () => T): T | null {
  try {
    return look()
  } catch (error) {
    if (ABSENT.has(codeOf(error) ?? '')) return null
    throw error
  }
}

const ABSENT: ReadonlySet<string> = new Set([
  'ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'EACCES', 'EPERM',
])
