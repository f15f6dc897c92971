import type { Disk } from './disk.js'
import type { DirectoryLock } from './lock.js'
import type { Segment } from './segment.js'

interface Files {
  readonly directory: string
  readonly disk: Disk
  readonly lock: DirectoryLock
}

/** Syncs a segment; with `end`, truncates it to that range's end and writes the range again. */
export async function makeDurable(
  segment: Segment,
  { disk, lock }: Files,
  [start, end]: readonly [start: number, end: number] = [0, Infinity],
): Promise<void> {
  const fd = disk.open(segment.file.path, 'r+')
  try {
    // After it was opened: another process that has taken over works with a copy.
    lock.check()
    if (end < disk.size(fd)) disk.truncate(fd, end)
    // What a failed sync of the last process left in memory is not written by another sync.
    if (end < Infinity) {
      await disk.write(fd, await disk.read(fd, end - start, start), start)
    }
    await disk.sync(fd)
  } finally {
    disk.close(fd)
  }
}

/** Takes a segment away from a process that may still have it open for writing. */
export async function replaceByCopy(
  segment: Segment,
  length: number,
  { directory, disk, lock }: Files,
): Promise<void> {
  const { file } = segment
  const draft = `${file.path}.${lock.token}.new`
  file.acquire()
  const fd = disk.open(draft, 'w')
  try {
    await disk.write(fd, await file.read(0, length), 0)
    await disk.sync(fd)
    segment.size = length
  } finally {
    disk.close(fd)
    file.release()
  }
  file.closeIdle()
  lock.check()
  disk.rename(draft, file.path)
  disk.syncDirectory(directory)
}
