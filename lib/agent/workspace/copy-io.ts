/**
 * Reading and writing the files of a copy. What fails in reading the original is told apart, since
 * only that file is left out then.
 *
 * @module
 */
import {
  closeSync, constants, fchmodSync, fstatSync, futimesSync, openSync, readlinkSync, readSync,
  realpathSync, unlinkSync, writeSync, type Stats,
} from 'node:fs'
import { throwIfExhausted } from '../exhaustion.js'
import { codeOf, HAS_PROC } from './paths.js'
import { toSystem, type RawPath } from './raw-paths.js'

/** How a file of the original is opened. */
export const FILE_FLAGS: number =
  constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

export const FOLDER_FLAGS: number =
  constants.O_RDONLY | constants.O_DIRECTORY | (constants.O_NOFOLLOW ?? 0)
/** Codes of what does not exist any more, or is something else now: `EINVAL` is of `readlink`. */
export const GONE: ReadonlySet<string> = new Set([
  'ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO', 'EINVAL',
])

/** The original could not be read. */
export class ReadError extends Error {}

/** Opens a folder by its real path: one that was put elsewhere meanwhile is not what was meant. */
export function openedAt(path: RawPath): number {
  let file: number | undefined
  try {
    file = openSync(toSystem(path), FOLDER_FLAGS)
    const found = HAS_PROC
      ? readlinkSync(`/proc/self/fd/${file}`, 'latin1')
      : realpathSync(toSystem(path), 'latin1')
    if (found === path) return file
  } catch (error) {
    if (!GONE.has(codeOf(error) ?? '')) throw error
  }
  if (file !== undefined) closeSync(file)
  const message = 'it was moved or deleted, or replaced by a link'
  throw Object.assign(new Error(message), { code: 'ERR_AGENT_WORKSPACE_LOST' })
}

/** Gives a written file the attributes of the original, and closes it. */
export function finished(
  out: number,
  stats: Stats,
  keepsTimes: boolean,
  write: () => boolean,
): 'copied' | 'changed' {
  try {
    const isWhole = write()
    fchmodSync(out, stats.mode & 0o777)
    if (keepsTimes) futimesSync(out, stats.atimeMs / 1000, stats.mtimeMs / 1000)
    return isWhole ? 'copied' : 'changed'
  } finally {
    closeSync(out)
  }
}

/** The file from its beginning, as far as the buffer reaches. */
export function read(file: number, buffer: Buffer): Buffer {
  let length = 0
  while (length < buffer.length) {
    const count = readAt(file, buffer.subarray(length), buffer.length - length, length)
    if (count === 0) break
    length += count
  }
  return buffer.subarray(0, length)
}

export function readAt(file: number, buffer: Buffer, length: number, position: number): number {
  try {
    return readSync(file, buffer, 0, length, position)
  } catch (error) {
    throw new ReadError('cannot be read', { cause: error })
  }
}

/** A small file; null when it cannot be read. */
export function readSmall(path: RawPath): Buffer | null {
  let file: number | undefined
  try {
    file = openSync(toSystem(path), FILE_FLAGS)
    return Buffer.from(read(file, Buffer.alloc(64 * 1024)))
  } catch (error) {
    throwIfExhausted(error)
    return null
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

export function writeAll(file: number, content: Buffer, position = 0): void {
  for (let done = 0; done < content.length; ) {
    done += writeSync(file, content, done, content.length - done, position + done)
  }
}

export function unlinkIfThere(path: RawPath): void {
  try {
    unlinkSync(toSystem(path))
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
}

export function inodeOf(file: number): string {
  const { dev, ino } = fstatSync(file, { bigint: true })
  return `${dev} ${ino}`
}
