/**
 * Removes a folder with all that is in it, synchronously: it runs in a worker, see `copy.ts`.
 *
 * 1. Links are removed, not followed.
 * 2. Folders without permission to write are given it.
 * 3. Folders at any depth are removed: deep ones are moved up first, since paths have a length.
 * 4. While something still writes into the folder, it is tried again, a number of times.
 *
 * @module
 */
import { randomUUID } from 'node:crypto'
import { chmodSync, renameSync, rmdirSync, unlinkSync } from 'node:fs'
import { MAX_TREE_DEPTH } from './left-out.js'
import { codeOf, HAS_PROC } from './paths.js'
import { rawPath, toSystem, type RawPath } from './raw-paths.js'
import { walkFolder, WalkedFolder } from './walk-folder.js'

/** Folders that are moved up, one for each `MAX_TREE_DEPTH` levels. */
const MAX_MOVED = 100_000
const ATTEMPTS = 20
const PAUSE_MS = 50

/**
 * Removes a folder; one that does not exist is removed already.
 *
 * @param isAborted asked at each entry; `WorkStopped` is thrown once it is true
 * @throws Error when something goes on writing into it.
 */
export function removeTree(
  folder: string,
  isAborted: () => boolean = () => false,
  attempts: number = ATTEMPTS,
): void {
  const root = rawPath(folder)
  for (let attempt = 1; attempt <= attempts; attempt++) {
    if (attempt > 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS)
    entering(root, () => emptyFolder(root, isAborted))
    if (removeEmpty(root)) return
  }
  throw new Error(`${folder} is still being written to`)
}

function emptyFolder(root: RawPath, isAborted: () => boolean): void {
  // What a walk moves up is removed by the next one.
  for (let moved = 0, before = -1; before < moved && moved < MAX_MOVED; ) {
    before = moved
    using top = WalkedFolder.open(root)
    permit(top.at)
    for (const found of walkFolder(top, { depth: MAX_TREE_DEPTH, isAborted })) {
      const { at, kind } = found
      if (kind !== 'folder') unlink(at)
      else if (found.isDeepest) moved += Number(moveUp(at, root))
      else {
        entering(at, () => found.enter({
          opened: (folder) => permit(folder.at),
          // Fails while there is something new in it, or something that is not moved up yet.
          left: () => removeEmpty(at),
        }))
      }
    }
  }
}

/** Enters a folder; what is none, or has become a link, is removed. */
function entering(path: RawPath, enter: () => void): void {
  try {
    enter()
  } catch (error) {
    const code = codeOf(error) ?? ''
    if (!HAS_PROC && code === 'EACCES') {
      permit(path)
      return enter()
    }
    if (!['ENOENT', 'ENOTDIR', 'ELOOP'].includes(code)) throw error
    unlink(path)
  }
}

function permit(path: RawPath): void {
  chmodSync(toSystem(path), 0o700)
}

/**
 * Renames a folder to an unguessable name at the top.
 *
 * @returns false if it is already gone
 */
function moveUp(path: RawPath, root: RawPath): boolean {
  try {
    renameSync(toSystem(path), toSystem(`${root}/.moved-${randomUUID()}`))
    return true
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
    return false
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
