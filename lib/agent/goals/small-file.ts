import { constants } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { throwIfExhausted } from '../exhaustion.js'
import { codeOf } from '../workspace/paths.js'

const MAX_BYTES = 128 * 1024

/**
 * The text of a small regular file; null when there is none, or it is too large or binary. Links
 * are followed, also out of the workspace, as the programs do that read these files.
 */
export async function readSmallFile(path: string): Promise<string | null> {
  const content = await readRegularFile(path, MAX_BYTES, 0)
  return typeof content === 'string' || content.includes(0) ? null : content.toString('utf8')
}

/**
 * The content of a regular file, or why there is none. Does not wait for pipes; reads no more than
 * the file's size, as files of `/proc` may have no end.
 *
 * @param flags of `open`, besides those for reading; by default, a link is no regular file
 */
export async function readRegularFile(
  path: string,
  maxBytes: number,
  flags: number = constants.O_NOFOLLOW,
): Promise<Buffer | 'absent' | 'invalid' | 'too_large'> {
  let file: FileHandle | undefined
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | flags)
    const stats = await file.stat()
    if (!stats.isFile()) return 'invalid'
    if (stats.size > maxBytes) return 'too_large'
    return stats.size === 0 ? Buffer.alloc(0) : await file.readFile()
  } catch (error) {
    throwIfExhausted(error)
    return codeOf(error) === 'ENOENT' ? 'absent' : 'invalid'
  } finally {
    await file?.close()
  }
}
