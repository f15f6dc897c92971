/**
 * What the journal does to its files, as a seam: tests use it for full and failing disks.
 *
 * @module
 */
import {
  closeSync,
  fdatasync,
  fsyncSync,
  ftruncateSync,
  openSync,
  rmSync,
  write,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'

/** Writes to open files. Every method throws or rejects with the system's error. */
export interface Disk {
  /** Writes all of `data` at `position`, synchronously. */
  writeNow(fd: number, data: Buffer, position: number): void
  /** Writes all of `data` at `position` on another thread. */
  write(fd: number, data: Buffer, position: number): Promise<void>
  /** Resolves once everything written to the file is durable. */
  sync(fd: number): Promise<void>
  truncate(fd: number, length: number): void
  /** Makes names in a directory durable: files created, renamed or removed in it. */
  syncDirectory(path: string): void
}

/** A disk whose syncs return at once. */
export function withoutSync(disk: Disk): Disk {
  return {
    writeNow: (fd, data, position) => disk.writeNow(fd, data, position),
    write: (fd, data, position) => disk.write(fd, data, position),
    truncate: (fd, length) => disk.truncate(fd, length),
    sync: () => Promise.resolve(),
    syncDirectory: () => {},
  }
}

const PROBE_BYTES = 4_096

/** Writes and syncs a small file in a directory, then removes it. @throws the system's error. */
export async function probe(disk: Disk, directory: string): Promise<void> {
  const path = join(directory, 'probe')
  const fd = openSync(path, 'w', 0o600)
  try {
    await disk.write(fd, Buffer.alloc(PROBE_BYTES), 0)
    await disk.sync(fd)
  } finally {
    closeSync(fd)
    rmSync(path, { force: true })
  }
}

/** The disk of the operating system. */
export const systemDisk: Disk = {
  writeNow(fd, data, position) {
    for (let done = 0; done < data.length; ) {
      done += writeSync(fd, data, done, data.length - done, position + done)
    }
  },

  write(fd, data, position) {
    return new Promise((resolve, reject) => {
      const next = (done: number): void => {
        if (done === data.length) return resolve()
        write(fd, data, done, data.length - done, position + done, (error, written) => {
          if (error !== null) reject(error)
          else next(done + written)
        })
      }
      next(0)
    })
  },

  sync(fd) {
    return new Promise((resolve, reject) => {
      fdatasync(fd, (error) => (error === null ? resolve() : reject(error)))
    })
  },

  truncate(fd, length) {
    ftruncateSync(fd, length)
  },

  syncDirectory(path) {
    const fd = openSync(path, 'r')
    try {
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
  },
}
