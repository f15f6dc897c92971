/**
 * Removes a folder with all that is in it, synchronously: it runs in a worker, see `copy.ts`.
 *
 * 1. Links are removed, not followed: folders are entered through descriptors.
 * 2. Folders without permission to write are given it.
 * 3. Folders at any depth are removed: deep ones are moved up first, since paths have a length.
 * 4. While something still writes into the folder, it is tried again, a number of times.
 *
 * @module
 */
import {
  chmodSync, closeSync, constants, existsSync, fchmodSync, openSync, readdirSync, renameSync,
  rmdirSync, unlinkSync, type Dirent,
} from 'node:fs'
import { codeOf } from './paths.js'
import { rawPath, toSystem, type RawPath } from './raw-paths.js'

const HAS_PROC = process.platform === 'linux' && existsSync('/proc/self/fd')
const FLAGS = constants.O_RDONLY | constants.O_DIRECTORY | (constants.O_NOFOLLOW ?? 0)
const MAX_DEPTH = 64
const ATTEMPTS = 20
const PAUSE_MS = 50

/** Removes a folder; one that does not exist is removed already. */
export function removeTree(folder: string): void {
  const root = rawPath(folder)
  let moved = 0
  const remove = (path: RawPath, depth: number): void => {
    const file = opened(path)
    if (file === null) return
    const at = HAS_PROC ? `/proc/self/fd/${file}` : path
    try {
      fchmodSync(file, 0o700)
      for (const entry of entriesOf(at)) {
        const child = `${at}/${entry.name}`
        if (!entry.isDirectory()) unlink(child)
        else if (depth < MAX_DEPTH) remove(child, depth + 1)
        else renameSync(toSystem(child), toSystem(`${root}/.moved-${(moved += 1)}`))
      }
    } finally {
      closeSync(file)
    }
    // Fails while there is something new in it, or something that was moved up.
    if (depth > 0) removeEmpty(path)
  }
  for (let attempt = 1; ; attempt++) {
    const before = moved
    remove(root, 0)
    if (removeEmpty(root)) return
    if (moved > before) attempt = 0
    else if (attempt >= ATTEMPTS) throw new Error(`${folder} is still being written to`)
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS)
  }
}

function opened(path: RawPath): number | null {
  try {
    return openSync(toSystem(path), FLAGS)
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT') return null
    if (code === 'ENOTDIR' || code === 'ELOOP') {
      unlink(path)
      return null
    }
    if (code !== 'EACCES') throw error
    chmodSync(toSystem(path), 0o700)
    return openSync(toSystem(path), FLAGS)
  }
}

function entriesOf(path: RawPath): Dirent[] {
  return readdirSync(toSystem(`${path}/.`), { encoding: 'latin1', withFileTypes: true })
}

function unlink(path: RawPath): void {
  try {
    unlinkSync(toSystem(path))
  } catch (error) {
    const code = codeOf(error)
    // A folder took its place: the next attempt removes it.
    if (code !== 'ENOENT' && code !== 'EISDIR') throw error
  }
}

/** False when it is not empty. */
function removeEmpty(path: RawPath): boolean {
  try {
    rmdirSync(toSystem(path))
    return true
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT') return true
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error
    return false
  }
}
