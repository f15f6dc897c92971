import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { throwIfExhausted } from '../exhaustion.js'

const MAX_BYTES = 128 * 1024

/** The text of a small regular file; null when there is none, or it is too large or binary. */
export async function readSmallFile(path: string): Promise<string | null> {
  let file
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    throwIfExhausted(error)
    return null
  }
  try {
    const stats = await file.stat()
    if (!stats.isFile() || stats.size > MAX_BYTES) return null
    const content = await file.readFile()
    return content.includes(0) ? null : content.toString('utf8')
  } catch {
    return null
  } finally {
    await file.close()
  }
}
