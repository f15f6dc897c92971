/**
 * Everything that a file store does with files, as a seam: tests put a simulated disk behind it,
 * which fails, delays and loses what a real one may fail to do, delay and lose.
 *
 * @module
 */
import {
  chmodSync,
  closeSync,
  fdatasync,
  constants,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  mkdirSync,
  openSync,
  read,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  utimes,
  write,
  writeSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** What {@link Disk.stat} reports of a file. `dev` and `ino` identify it while it is open. */
export interface FileStat {
  readonly size: number
  readonly dev: number
  readonly ino: number
  /** Epoch milliseconds. */
  readonly mtimeMs: number
}

/** Every method throws or rejects with the system's error. Descriptors are the disk's own. */
export interface Disk {
  /**
   * Creates a directory and its parents if missing, and denies access to other users. Returns the
   * first directory that was created, if any.
   */
  makeDirectory(path: string): string | undefined
  /** Names in a directory, in any order. */
  list(directory: string): string[]
  stat(path: string): FileStat
  /** `w` creates or empties the file, `wx` creates it and fails if it exists. */
  open(path: string, flags: 'r' | 'r+' | 'w' | 'wx'): number
  close(fd: number): void
  size(fd: number): number
  /** Up to `length` bytes at `position`; fewer at the end of the file. */
  readNow(fd: number, length: number, position: number): Buffer
  /** As {@link Disk.readNow}, on another thread. */
  read(fd: number, length: number, position: number): Promise<Buffer>
  /** Writes all of `data` at `position`, synchronously. */
  writeNow(fd: number, data: Buffer, position: number): void
  /** Writes all of `data` at `position` on another thread. */
  write(fd: number, data: Buffer, position: number): Promise<void>
  /** Resolves once everything written to the file is durable. */
  sync(fd: number): Promise<void>
  truncate(fd: number, length: number): void
  /** Replaces `to` if it exists. */
  rename(from: string, to: string): void
  /** Gives a file a second name; fails if that exists. */
  link(existing: string, path: string): void
  /** Removes a file; a missing one is no error. */
  remove(path: string): void
  /** Sets the modification time to now, on another thread; failures are ignored. */
  touch(path: string): Promise<void>
  /** Makes names in a directory durable: files created, renamed or removed in it. */
  syncDirectory(path: string): void
  /** As {@link Disk.syncDirectory}, on another thread. */
  syncFolder(path: string): Promise<void>
}

const PROBE_BYTES = 4_096

/** Writes and syncs a small file in a directory, then removes it. @throws the system's error. */
export async function probe(disk: Disk, directory: string): Promise<void> {
  const path = join(directory, 'probe')
  const fd = disk.open(path, 'w')
  try {
    await disk.write(fd, Buffer.alloc(PROBE_BYTES), 0)
    await disk.sync(fd)
  } finally {
    disk.close(fd)
    disk.remove(path)
  }
}

/** Creates a directory, durably: its own name and those of the parents that were missing. */
export function makeDurableDirectory(disk: Disk, path: string): void {
  const created = disk.makeDirectory(path) ?? path
  for (let at = path; ; at = dirname(at)) {
    try {
      disk.syncDirectory(dirname(at))
    } catch (error) {
      // A parent that this user may not read was not created by it.
      if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error
    }
    if (at === created || at === dirname(at)) return
  }
}

/** The whole content of a file. @throws the system's error. */
export function readFile(disk: Disk, path: string): Buffer {
  const fd = disk.open(path, 'r')
  try {
    return disk.readNow(fd, disk.size(fd), 0)
  } finally {
    disk.close(fd)
  }
}

const FLAGS: { readonly [flags: string]: number } = {
  r: constants.O_RDONLY | (constants.O_NONBLOCK ?? 0),
  'r+': constants.O_RDWR | (constants.O_NONBLOCK ?? 0),
}

/** The disk of the operating system; without `syncs`, nothing waits until data is durable. */
export class SystemDisk implements Disk {
  readonly #syncs: boolean

  constructor(syncs = true) {
    this.#syncs = syncs
  }

  makeDirectory(path: string): string | undefined {
    const created = mkdirSync(path, { recursive: true, mode: 0o700 })
    try {
      chmodSync(path, 0o700)
    } catch (error) {
      // Another user owns it and lets us in; our files in it deny access to others anyway.
      if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error
    }
    return created
  }

  list(directory: string): string[] {
    return readdirSync(directory)
  }

  stat(path: string): FileStat {
    return statSync(path)
  }

  open(path: string, flags: 'r' | 'r+' | 'w' | 'wx'): number {
    // A pipe that lies in place of a file must not hold up the process: it is damage.
    const mode = FLAGS[flags] ?? flags
    return openSync(path, mode, 0o600)
  }

  close(fd: number): void {
    closeSync(fd)
  }

  size(fd: number): number {
    const stats = fstatSync(fd)
    return stats.isFile() ? stats.size : 0
  }

  readNow(fd: number, length: number, position: number): Buffer {
    const data = Buffer.allocUnsafeSlow(length)
    let done = 0
    while (done < length) {
      const count = readSync(fd, data, done, length - done, position + done)
      if (count === 0) break
      done += count
    }
    return data.subarray(0, done)
  }

  read(fd: number, length: number, position: number): Promise<Buffer> {
    const data = Buffer.allocUnsafeSlow(length)
    return new Promise((resolve, reject) => {
      const next = (done: number): void => {
        if (done === length) return resolve(data)
        read(fd, data, done, length - done, position + done, (error, count) => {
          if (error !== null) reject(error)
          else if (count === 0) resolve(data.subarray(0, done))
          else next(done + count)
        })
      }
      next(0)
    })
  }

  writeNow(fd: number, data: Buffer, position: number): void {
    for (let done = 0; done < data.length; ) {
      done += writeSync(fd, data, done, data.length - done, position + done)
    }
  }

  write(fd: number, data: Buffer, position: number): Promise<void> {
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
  }

  sync(fd: number): Promise<void> {
    if (!this.#syncs) return Promise.resolve()
    return new Promise((resolve, reject) => {
      fdatasync(fd, (error) => (error === null ? resolve() : reject(error)))
    })
  }

  truncate(fd: number, length: number): void {
    ftruncateSync(fd, length)
  }

  rename(from: string, to: string): void {
    renameSync(from, to)
  }

  link(existing: string, path: string): void {
    linkSync(existing, path)
  }

  remove(path: string): void {
    rmSync(path, { force: true })
  }

  touch(path: string): Promise<void> {
    const now = new Date()
    return new Promise((resolve) => utimes(path, now, now, () => resolve()))
  }

  syncDirectory(path: string): void {
    if (!this.#syncs) return
    const fd = openSync(path, 'r')
    try {
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
  }

  async syncFolder(path: string): Promise<void> {
    if (!this.#syncs) return
    const folder = await open(path, 'r')
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  }
}
