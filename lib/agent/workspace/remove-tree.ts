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
  chmodSync, closeSync, constants, fchmodSync, openSync, readdirSync, renameSync, rmdirSync,
  unlinkSync,
} from 'node:fs'
import { codeOf, HAS_PROC } from './paths.js'
import { rawPath, toSystem, type RawPath } from './raw-paths.js'
import { READ_FLAGS } from './tree-walk.js'

const FLAGS = READ_FLAGS | constants.O_DIRECTORY
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
      const options = { encoding: 'latin1', withFileTypes: true } as const
      for (const entry of readdirSync(toSystem(`${at}/.`), options)) {
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

/** Null when it is gone, or was no folder and is removed. */
function opened(path: RawPath): number | null {
  try {
    return openSync(toSystem(path), FLAGS)
  } catch (error) {
    const code = codeOf(error)
    if (code === 'EACCES') {
      chmodSync(toSystem(path), 0o700)
      return openSync(toSystem(path), FLAGS)
    }
    if (code !== 'ENOENT' && code !== 'ENOTDIR' && code !== 'ELOOP') throw error
    unlink(path)
    return null
  }
}

/** Removes what is no folder; a folder that took its place is removed by the next attempt. */
function unlink(path: RawPath): void {
  try {
    unlinkSync(toSystem(path))
  } catch (error) {
    if (!['ENOENT', 'EISDIR'].includes(codeOf(error) ?? '')) throw error
  }
}

/** False when it is not empty. */
function removeEmpty(path: RawPath): boolean {
  try {
    rmdirSync(toSystem(path))
    return true
  } catch (error) {
    const code = codeOf(error) ?? ''
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(code)) throw error
    return code === 'ENOENT'
  }
}
