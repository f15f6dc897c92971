/** Which files of a folder are there, may be run, and when they were changed. @module */
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { unreadable } from '../../exhaustion.js'
import { hashFiles } from '../protected-files.js'

/** Those of `paths` that somebody may run. */
export async function executablesIn(
  folder: string,
  paths: readonly string[],
): Promise<readonly string[]> {
  const found: string[] = []
  for (const path of paths) {
    const stats = await lstat(join(folder, path)).catch(unreadable)
    if (stats?.isFile() === true && (stats.mode & 0o111) !== 0) found.push(path)
  }
  return found
}

/** When files were changed last. @param atMost for newer files, and for those that are gone */
export async function timesOf(
  folder: string,
  paths: readonly string[],
  atMost?: number,
): Promise<{ times?: Record<string, number> }> {
  const times: Record<string, number> = {}
  for (const path of paths) {
    const stats = await lstat(join(folder, path)).catch(unreadable)
    const time = stats?.isFile() === true ? stats.mtimeMs : atMost
    if (time !== undefined) times[path] = Math.min(time, atMost ?? time)
  }
  return paths.length === 0 ? {} : { times }
}

/** Larger files are told by inode, size and change time. */
const MAX_HASHED_BYTES = 1024 * 1024

/** Shows whether a file is as before; null for a folder, and undefined for nothing. */
export async function stateOf(folder: string, path: string): Promise<string | null | undefined> {
  const stats = await lstat(join(folder, path)).catch(unreadable)
  if (stats === null) return undefined
  if (stats.isDirectory()) return null
  const { ino, size, ctimeMs } = stats
  const hashes = size > MAX_HASHED_BYTES ? {} : await hashFiles(folder, [path])
  return hashes[path] ?? `${ino} ${size} ${ctimeMs}`
}

/** Those of `paths` that are in the folder. */
export async function existingIn(
  folder: string,
  paths: readonly string[],
): Promise<readonly string[]> {
  const missing = new Set(await missingIn(folder, paths))
  return paths.filter((path) => !missing.has(path))
}

/** Those of `paths`, in a copy of `folder`, that the folder itself does not have. */
export async function missingIn(
  folder: string,
  paths: readonly string[],
): Promise<readonly string[]> {
  const missing: string[] = []
  for (const path of paths) {
    if ((await lstat(join(folder, path)).catch(unreadable)) === null) missing.push(path)
  }
  return missing
}
