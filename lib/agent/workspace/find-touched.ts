/** Finds what was touched in a copy, synchronously; see `touched-files.ts`. */
import { lstatSync } from 'node:fs'
import { SKIPPED_FOLDERS } from './skipped-folders.js'
import { rawPath, toText } from './raw-paths.js'
import { walkFolder, WalkedFolder } from './walk-folder.js'

const MAX_ENTRIES = 200_000

/** All paths are relative, and sorted within their folders. */
export interface TouchedFiles {
  /**
   * Files of which the content was read since the copy was made, and links that were followed. A
   * file that was made since counts when it was read, or when nobody set its access time to 0.
   */
  readonly read: readonly string[]
  /** Files and links that were changed or made since. */
  readonly changed: readonly string[]
  /** Folders whose entries were listed, or that were made since; `.` is the folder itself. */
  readonly listed: readonly string[]
  /** False where the file system keeps no access times: `read` and `listed` are empty then. */
  readonly observes: boolean
}

/** A time of a file system's clock. */
export interface FileSystemTime {
  readonly ms: number
  /** True if reading a file there gives it another access time than 0. */
  readonly keepsAccessTimes: boolean
}

export function findTouched(
  folder: string,
  since: FileSystemTime,
  isAborted: () => boolean,
): TouchedFiles {
  const read: string[] = []
  const changed: string[] = []
  const listed: string[] = []
  const observes = since.keepsAccessTimes
  if (observes && lstatSync(folder).atimeMs !== 0) listed.push('.')
  using top = WalkedFolder.open(rawPath(folder))
  const limits = { entries: MAX_ENTRIES, isAborted, keepsAccessTimes: true }
  for (const found of walkFolder(top, limits)) {
    const stats = found.stat()
    const text = toText(found.path)
    if (stats === null || text === undefined || found.name === '.git') continue
    // Only who reads sets it: a file that was made since has one as well.
    const isRead = observes && stats.atimeMs !== 0
    if (stats.isDirectory()) {
      if (SKIPPED_FOLDERS.has(found.name)) continue
      if (isRead) listed.push(text)
      found.tryEnter()
    } else if (stats.isFile() || stats.isSymbolicLink()) {
      if (stats.ctimeMs >= since.ms) changed.push(text)
      if (isRead) read.push(text)
    }
  }
  return { read, changed, listed, observes }
}
