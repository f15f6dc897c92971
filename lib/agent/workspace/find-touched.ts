/** What `touched-files.ts` has done in a thread of its own. */
import { lstatSync } from 'node:fs'
import { SKIPPED_FOLDERS } from './skipped-folders.js'
import { rawPath, toText } from './raw-paths.js'
import type { FileSystemTime, TouchedFiles } from './touched-files.js'
import { visitTree } from './visit-tree.js'

const MAX_ENTRIES = 200_000

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
  visitTree(rawPath(folder), {
    maxEntries: MAX_ENTRIES,
    isAborted,
    entry: ({ path, name, stats }) => {
      const text = toText(path)
      if (text === undefined || name === '.git') return false
      // Only who reads sets it: a file that was made since has one as well.
      const isRead = observes && stats.atimeMs !== 0
      if (stats.isDirectory()) {
        if (SKIPPED_FOLDERS.has(name)) return false
        if (isRead) listed.push(text)
        return true
      }
      if (!stats.isFile() && !stats.isSymbolicLink()) return false
      const isChanged = stats.ctimeMs >= since.ms
      if (isChanged) changed.push(text)
      if (isRead) read.push(text)
      return false
    },
  })
  return { read, changed, listed, observes }
}
