/** What `touched-files.ts` has done in a thread of its own. */
import { randomBytes } from 'node:crypto'
import { lstatSync, readFileSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { SKIPPED_FOLDERS } from './skipped-folders.js'
import { rawPath, toText } from './raw-paths.js'
import type { TouchedFiles } from './touched-files.js'
import { visitTree } from './visit-tree.js'

const MAX_ENTRIES = 200_000

export function findTouched(
  folder: string,
  since: number,
  isAborted: () => boolean,
): TouchedFiles {
  const read: string[] = []
  const changed: string[] = []
  const listed: string[] = []
  const observes = keepsAccessTimes(folder)
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
      const isChanged = stats.ctimeMs >= since
      if (isChanged) changed.push(text)
      if (isRead) read.push(text)
      return false
    },
  })
  return { read, changed, listed, observes }
}

/** Tries it: does reading a file in this folder give it another access time than 0? */
function keepsAccessTimes(folder: string): boolean {
  const file = `${folder}/.runwright-${randomBytes(8).toString('hex')}.tmp`
  writeFileSync(file, 'x', { flag: 'wx' })
  try {
    utimesSync(file, 0, lstatSync(file).mtimeMs / 1000)
    if (lstatSync(file).atimeMs !== 0) return false
    readFileSync(file)
    return lstatSync(file).atimeMs !== 0
  } finally {
    unlinkSync(file)
  }
}
