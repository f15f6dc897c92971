import { lstatSync, readdirSync, type Dirent } from 'node:fs'
import { codeOf } from './paths.js'
import { rawPath, toSystem, type RawPath } from './raw-paths.js'

/** Counted for each entry, besides its content. */
const ENTRY_BYTES = 256
/** Errors of what is gone, too deep or must not be read: a copy does not have it either. */
const ABSENT: ReadonlySet<string> = new Set([
  'ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'EACCES', 'EPERM',
])

/**
 * Does a folder hold more than `maxBytes`? Synchronous: it runs in a worker, see `copy.ts`. Content
 * with several names counts once; `skipped` are names of folders that do not count.
 */
export function isLarger(
  folder: string,
  maxBytes: number,
  closed: readonly string[],
  skipped: readonly string[],
): boolean {
  const [outside, notCounted] = [new Set(closed.map(rawPath)), new Set(skipped)]
  const inodes = new Set<string>()
  const folders: RawPath[] = [rawPath(folder)]
  let bytes = 0
  for (let at = folders.pop(); at !== undefined; at = folders.pop()) {
    for (const entry of entriesOf(at)) {
      const path: RawPath = `${at}/${entry.name}`
      bytes += ENTRY_BYTES
      if (entry.isDirectory() && !outside.has(path) && !notCounted.has(entry.name)) {
        folders.push(path)
      }
      if (entry.isFile()) bytes += sizeOf(path, inodes)
      if (bytes > maxBytes) return true
    }
  }
  return false
}

function entriesOf(path: RawPath): Dirent[] {
  return unlessAbsent(
    () => readdirSync(toSystem(path), { encoding: 'latin1', withFileTypes: true }),
    [],
  )
}

function sizeOf(path: RawPath, inodes: Set<string>): number {
  return unlessAbsent(() => {
    const { dev, ino, nlink, size } = lstatSync(toSystem(path))
    const key = `${dev} ${ino}`
    if (nlink > 1 && inodes.has(key)) return 0
    if (nlink > 1) inodes.add(key)
    return size
  }, 0)
}

function unlessAbsent<T>(look: () => T, absent: T): T {
  try {
    return look()
  } catch (error) {
    if (ABSENT.has(codeOf(error) ?? '')) return absent
    throw error
  }
}
