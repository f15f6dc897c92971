import { fstatSync, ReadStream, readSync, statSync, type Stats } from 'node:fs'
import { InvalidBodyError } from '../errors.js'

/**
 * The present size of an open file; null for one whose size says nothing, as of /proc.
 *
 * @throws {@link InvalidBodyError} when it is a pipe, a socket, a device or a folder.
 */
export function fileLength(fd: number): number | null {
  const stats = fstatSync(fd)
  if (!stats.isFile()) {
    throw new InvalidBodyError(
      'an open file that is sent must be a regular file; for a pipe or a device pass a stream, ' +
        'such as createReadStream("", { fd })',
    )
  }
  return stats.size > 0 || readSync(fd, Buffer.alloc(1), 0, 1, 0) === 0 ? stats.size : null
}

/**
 * How many bytes a stream of createReadStream() will give, by the present size of its file and its
 * `start` and `end`; null for other streams, and where that is not known.
 */
export function fileStreamLength(source: object): number | null {
  if (!(source instanceof ReadStream) || source.readableEncoding !== null) return null
  const stats = statsOf(source as OpenStream)
  if (stats === null || !stats.isFile() || stats.size === 0) return null
  const { start, end } = source as OpenStream
  const given = source.bytesRead - source.readableLength
  const length = Math.min((end ?? Infinity) + 1, stats.size) - (start ?? 0) - given
  return length > 0 ? length : null
}

/** What createReadStream() returns, with the properties that its type leaves out. */
interface OpenStream extends ReadStream {
  readonly fd: number | null
  readonly start: number | undefined
  readonly end: number | undefined
}

function statsOf({ fd, path, start }: OpenStream): Stats | null {
  try {
    // A descriptor without a path was opened by the caller, who may have read from it.
    if (fd !== null) return start === undefined && !path ? null : fstatSync(fd)
    return statSync(path)
  } catch {
    // The stream itself fails with the reason.
    return null
  }
}
