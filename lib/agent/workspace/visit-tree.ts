/**
 * Visits all that is in a folder, synchronously: it runs in a worker, see `tree-task.ts`.
 *
 * 1. Folders are entered through descriptors, and links are not followed, so that nothing outside
 *    is ever looked at.
 * 2. Entries come sorted by name, the ones of a folder behind the folder itself.
 * 3. What is gone, or must not be looked at, is passed over: only the machine's faults are thrown.
 *
 * @module
 */
import {
  closeSync, constants, fstatSync, futimesSync, lstatSync, openSync, readdirSync, type Stats,
} from 'node:fs'
import { throwIfExhausted } from '../exhaustion.js'
import { HAS_PROC } from './paths.js'
import { toSystem, type RawPath } from './raw-paths.js'
import { READ_FLAGS } from './tree-walk.js'

/** Thrown when work on a folder is not finished. */
export class WorkStopped extends Error {
  readonly why: 'aborted' | 'too large'

  constructor(why: 'aborted' | 'too large') {
    super(why)
    this.why = why
  }
}

/** An entry that was found. */
export interface Visited {
  /** Below the folder that is visited. */
  readonly path: RawPath
  readonly name: RawPath
  /** By which it is reached; valid during the visit. */
  readonly at: RawPath
  /** Of itself, not of what a link leads to. */
  readonly stats: Stats
  /** Folders above it that were visited. */
  readonly depth: number
}

export interface Visit {
  /** Called for each entry; true for a folder that is to be entered. */
  readonly entry: (found: Visited) => boolean
  readonly maxEntries: number
  readonly isAborted: () => boolean
}

/** Deeper folders are not entered. */
const MAX_DEPTH = 250
const FOLDER_FLAGS = READ_FLAGS | constants.O_DIRECTORY

/**
 * Visits a folder, of which the access times stay as they are.
 *
 * @throws {@link WorkStopped}; an error when the folder itself cannot be entered.
 */
export function visitTree(folder: RawPath, visit: Visit): void {
  let entries = 0
  const enter = (fd: number, own: RawPath, path: RawPath, depth: number): void => {
    const at = HAS_PROC ? `/proc/self/fd/${fd}` : own
    for (const name of namesIn(fd, at)) {
      entries += 1
      if (entries > visit.maxEntries) throw new WorkStopped('too large')
      if (visit.isAborted()) throw new WorkStopped('aborted')
      const child = `${at}/${name}`
      const stats = unlessGone(() => lstatSync(toSystem(child), { throwIfNoEntry: false }))
      if (stats === undefined) continue
      const inner = path === '' ? name : `${path}/${name}`
      const isEntered = visit.entry({ path: inner, name, at: child, stats, depth })
      if (!isEntered || !stats.isDirectory() || depth === MAX_DEPTH) continue
      const opened = unlessGone(() => openSync(toSystem(child), FOLDER_FLAGS))
      if (opened === undefined) continue
      try {
        enter(opened, child, inner, depth + 1)
      } finally {
        closeSync(opened)
      }
    }
  }
  const fd = openSync(toSystem(folder), FOLDER_FLAGS)
  try {
    enter(fd, folder, '', 0)
  } finally {
    closeSync(fd)
  }
}

/** Listing is reading as well: the time of that is taken back. */
function namesIn(fd: number, at: RawPath): readonly RawPath[] {
  const { atimeMs, mtimeMs } = fstatSync(fd)
  const names = unlessGone(() => readdirSync(toSystem(`${at}/.`), 'latin1')) ?? []
  unlessGone(() => futimesSync(fd, atimeMs / 1000, mtimeMs / 1000))
  return names.sort()
}

function unlessGone<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch (error) {
    throwIfExhausted(error)
    return undefined
  }
}
