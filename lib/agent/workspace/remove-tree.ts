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
import { randomUUID } from 'node:crypto'
import {
  chmodSync, closeSync, constants, fchmodSync, openSync, readdirSync, renameSync, rmdirSync,
  unlinkSync,
} from 'node:fs'
import { codeOf, FOLDER_FLAGS, HAS_PROC } from './paths.js'
import { rawPath, toSystem, type RawPath } from './raw-paths.js'
import { READ_FLAGS } from './tree-walk.js'

const FLAGS = READ_FLAGS | constants.O_DIRECTORY
const MAX_DEPTH = 64
/** One folder is moved up for each `MAX_DEPTH` levels. */
const MAX_MOVED = 100_000
const ATTEMPTS = 20
const PAUSE_MS = 50

/**
 * Removes a folder; one that does not exist is removed already.
 *
 * @throws Error when something goes on writing into it.
 */
export function removeTree(folder: string): void {
  const root = rawPath(folder)
  const moved: string[] = []
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
        else if (moved.length < MAX_MOVED) moveUp(child, root, moved)
      }
      // Those that are moved up meanwhile, too.
      if (depth === 0) for (const name of moved) remove(`${at}/${name}`, 1)
    } finally {
      closeSync(file)
    }
    // Fails while there is something new in it, or something that could not be moved up.
    if (depth > 0) removeEmpty(path)
  }
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    if (attempt > 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS)
    remove(root, 0)
    if (removeEmpty(root)) return
  }
  throw new Error(`${folder} is still being written to`)
}

/** To a name that nobody guesses; when somebody else moves or removes it, nothing is done. */
function moveUp(path: RawPath, root: RawPath, moved: string[]): void {
  const name = `.moved-${randomUUID()}`
  try {
    renameSync(toSystem(path), toSystem(`${root}/${name}`))
    moved.push(name)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
}

/** Null when it is gone, or was no folder and is removed. */
function opened(path: RawPath): number | null {
  try {
    return openSync(toSystem(path), FLAGS)
  } catch (error) {
    const code = codeOf(error)
    if (code === 'EACCES') return permitted(path)
    if (code !== 'ENOENT' && code !== 'ENOTDIR' && code !== 'ELOOP') throw error
    unlink(path)
    return null
  }
}

/** Opens a folder without permissions, which gets them: not a link that takes its place now. */
function permitted(path: RawPath): number {
  const file = openSync(toSystem(path), HAS_PROC ? FOLDER_FLAGS : FLAGS)
  try {
    chmodSync(HAS_PROC ? `/proc/self/fd/${file}` : toSystem(path), 0o700)
    return openSync(HAS_PROC ? `/proc/self/fd/${file}/.` : toSystem(path), FLAGS)
  } finally {
    closeSync(file)
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
