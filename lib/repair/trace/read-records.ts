/**
 * Reads files that the project could have written in place of the recorders.
 *
 * @module
 */
import { constants } from 'node:fs'
import { open, opendir, type FileHandle } from 'node:fs/promises'
import { systemCode } from '../../internal/errors.js'

/** What a file or folder can be that no recorder has made; all else is a fault of the machine. */
const NOT_RECORDED = new Set([
  'EACCES', 'EISDIR', 'ELOOP', 'ENAMETOOLONG', 'ENOENT', 'ENOTDIR', 'ENXIO', 'EPERM',
])
/** Entries that are read from the disk at once. */
const BATCH = 256

/** The first `limit` names in a folder, in no particular order; none when there is no folder. */
export async function namesIn(folder: string, limit: number): Promise<readonly string[]> {
  const names: string[] = []
  try {
    for await (const { name } of await opendir(folder, { bufferSize: BATCH })) {
      names.push(name)
      if (names.length >= limit) break
    }
  } catch (error) {
    throwFault(error)
  }
  return names
}

/** The content of a regular file; null for links, pipes and files over the limit. */
export async function readRecorded(path: string, maxBytes: number): Promise<Buffer | null> {
  let file: FileHandle | undefined
  try {
    // Doesn't wait for pipes, and follows no link.
    const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW
    file = await open(path, flags)
    const stats = await file.stat()
    if (!stats.isFile() || stats.size > maxBytes) return null
    const content = Buffer.alloc(stats.size)
    // No more than the size that it had: a process may go on writing.
    const { bytesRead } = await file.read(content, 0, stats.size, 0)
    return content.subarray(0, bytesRead)
  } catch (error) {
    throwFault(error)
    return null
  } finally {
    await file?.close()
  }
}

/** The lines of a file, without an unfinished last one; none after one over `maxLine` bytes. */
export function* linesIn(content: Buffer, maxLine: number): Generator<string, void> {
  let from = 0
  for (let end = content.indexOf(0x0a); end !== -1; end = content.indexOf(0x0a, from)) {
    if (end - from > maxLine) return
    yield content.toString('utf8', from, end)
    from = end + 1
  }
}

function throwFault(error: unknown): void {
  if (!NOT_RECORDED.has(systemCode(error) ?? '')) throw error
}
