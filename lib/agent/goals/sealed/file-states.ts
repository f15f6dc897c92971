/** Which files of a folder are there, may be run, and when they were changed. @module */
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { unreadable } from '../../exhaustion.js'
import { hashFiles } from '../protected-files.js'

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

/** Shows whether a file is as before; undefined for nothing, and for a folder. */
async function stateOf(folder: string, path: string): Promise<string | undefined> {
  const stats = await lstat(join(folder, path)).catch(unreadable)
  if (stats === null || stats.isDirectory()) return undefined
  const { ino, size, ctimeMs } = stats
  const hashes = size > MAX_HASHED_BYTES ? {} : await hashFiles(folder, [path])
  return hashes[path] ?? `${ino} ${size} ${ctimeMs}`
}

/** The states of files, and of those in folders, by path; null above `most`. */
export async function statesOf(
  folder: string,
  paths: readonly string[],
  most: number,
): Promise<Record<string, string> | null> {
  const states: Record<string, string> = {}
  const open = [...paths]
  for (let count = 0; open.length > 0; count++) {
    if (open.length + count > most) return null
    const path = open.pop()!
    const state = await stateOf(folder, path)
    if (state !== undefined) states[path] = state
    else {
      const names = (await readdir(join(folder, path)).catch(unreadable)) ?? []
      open.push(...names.map((name) => `${path}/${name}`))
    }
  }
  return states
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

/** Those of `paths` that are in another state than before. */
export async function changedOf(
  cwd: string,
  states: { readonly [path: string]: string },
  paths: readonly string[],
): Promise<readonly string[]> {
  const changed: string[] = []
  for (const path of paths) {
    const state = states[path]
    if (state !== undefined && (await stateOf(cwd, path)) !== state) changed.push(path)
  }
  return changed
}
