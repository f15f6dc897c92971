import { lstat, opendir } from 'node:fs/promises'
import { join } from 'node:path'

/** Entries, and bytes of all files, of a folder that is small. */
const MAX_ENTRIES = 32
const MAX_BYTES = 64 * 1024

/**
 * Does a folder hold so little that work on it takes about a millisecond? False when some of it
 * cannot be looked at. A file system that does not answer keeps only this call waiting.
 */
export async function isSmall(folder: string): Promise<boolean> {
  const folders = [folder]
  let [entries, bytes] = [0, 0]
  try {
    for (let at = folders.pop(); at !== undefined; at = folders.pop()) {
      for await (const entry of await opendir(at, { bufferSize: MAX_ENTRIES })) {
        entries += 1
        const path = join(at, entry.name)
        if (entry.isDirectory()) folders.push(path)
        if (entry.isFile()) bytes += (await lstat(path)).size
        if (entries > MAX_ENTRIES || bytes > MAX_BYTES) return false
      }
    }
    return true
  } catch {
    return false
  }
}
