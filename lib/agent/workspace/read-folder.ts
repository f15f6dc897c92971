import type { Dirent } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { throwIfExhausted } from '../exhaustion.js'

/** Entries that are read from the disk at once. */
const BATCH = 256

/**
 * The first `limit` entries of a folder, in no particular order; none when it cannot be read. Not
 * `readdir`, which would hold all entries of a huge folder in memory.
 */
export async function readFolder(path: string, limit: number): Promise<Dirent[]> {
  const entries: Dirent[] = []
  try {
    for await (const entry of await opendir(path, { bufferSize: BATCH })) {
      entries.push(entry)
      if (entries.length >= limit) break
    }
  } catch (error) {
    throwIfExhausted(error)
    // Gone, not a folder any more, or not permitted.
  }
  return entries
}
