import { constants } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'

import { throwIfExhausted } from '../../exhaustion.js'
import { codeOf } from '../../workspace/paths.js'
import type { ReportProblem } from './types.js'

const CHUNK_BYTES = 64 * 1024
const NEWLINE = 0x0a

/** What a file of lines may hold. */
export interface LineLimits {
  readonly maxBytes: number
  /** Bytes of one line. */
  readonly maxLine: number
}

/** Takes a line and the number of its bytes; a problem ends the reading. */
type VisitLine = (line: string, bytes: number) => Promise<ReportProblem | null>

/**
 * Calls `visit` with each line of a regular file, until it returns a problem, and returns that. The
 * file is never in memory as a whole: no more than a piece of it and its longest line.
 *
 * @returns `absent`, `invalid` for what is no regular file or cannot be read, `incomplete` when the
 * last line has no end, `too_large` by `limits`; null when all lines were visited.
 * @throws what `visit` throws, or an error of the system that says that it has no more resources.
 */
export async function readLineFile(
  path: string,
  { maxBytes, maxLine }: LineLimits,
  visit: VisitLine,
): Promise<ReportProblem | null> {
  // Does not wait for pipes, and follows no link.
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW
  const file = await open(path, flags).catch(problemOf)
  if (typeof file === 'string') return file
  try {
    const stats = await file.stat()
    if (!stats.isFile()) return 'invalid'
    if (stats.size > maxBytes) return 'too_large'
    return await eachLine(file, stats.size, maxLine, visit)
  } finally {
    await file.close()
  }
}

/** Reads no more than the size that the file had: another process may go on writing. */
async function eachLine(
  file: FileHandle,
  size: number,
  maxLine: number,
  visit: VisitLine,
): Promise<ReportProblem | null> {
  const buffer = Buffer.allocUnsafe(maxLine + CHUNK_BYTES)
  let left = size
  let held = 0 // bytes at the beginning of the buffer, of a line whose end was not read yet
  while (left > 0) {
    const read = await file.read(buffer, held, Math.min(left, CHUNK_BYTES)).catch(problemOf)
    if (typeof read === 'string') return read
    if (read.bytesRead === 0) return 'incomplete'
    left -= read.bytesRead
    const data = buffer.subarray(0, held + read.bytesRead)
    let from = 0
    for (let end = data.indexOf(NEWLINE, held); end !== -1; end = data.indexOf(NEWLINE, from)) {
      if (end - from > maxLine) return 'too_large'
      const problem = await visit(data.toString('utf8', from, end), end - from + 1)
      if (problem !== null) return problem
      from = end + 1
    }
    held = data.length - from
    if (held > maxLine) return 'too_large'
    buffer.copyWithin(0, from, data.length)
  }
  return held === 0 && size > 0 ? null : 'incomplete'
}

/** @throws the error when it says that the system has no more resources. */
function problemOf(error: unknown): ReportProblem {
  throwIfExhausted(error)
  return codeOf(error) === 'ENOENT' ? 'absent' : 'invalid'
}
