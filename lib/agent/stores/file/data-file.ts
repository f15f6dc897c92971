import type { Disk } from './disk.js'

/** Unused files that stay open. */
const MAX_IDLE = 64

/** Bounds the number of open files: closes unused ones, the least recently used first. */
export class OpenFiles {
  readonly disk: Disk
  readonly #idle = new Set<DataFile>()
  readonly #all = new Set<DataFile>()

  constructor(disk: Disk) {
    this.disk = disk
  }

  /** Called by a file after it was opened. */
  opened(file: DataFile): void {
    this.#all.add(file)
  }

  /** Called by a file after it was closed. */
  closed(file: DataFile): void {
    this.#all.delete(file)
    this.#idle.delete(file)
  }

  /** Closes all files, those in use as well: nothing may read them any more. */
  closeAll(): void {
    for (const file of this.#all) file.abandon()
  }

  /** Called by a file at its last `release()`. */
  markIdle(file: DataFile): void {
    this.#idle.add(file)
    if (this.#idle.size <= MAX_IDLE) return
    for (const oldest of this.#idle) {
      this.#idle.delete(oldest)
      oldest.closeIdle()
      break
    }
  }

  /** Called by a file at each `acquire()`. */
  markInUse(file: DataFile): void {
    this.#idle.delete(file)
  }
}

/**
 * A file for random reads. It may be removed or replaced while it is read: a reader calls
 * `acquire()` first, and the file stays open until the last `release()`.
 */
export class DataFile {
  readonly path: string
  readonly #open: OpenFiles
  #fd: number | null = null
  #users = 0
  #retired = false

  constructor(path: string, open: OpenFiles) {
    this.path = path
    this.#open = open
  }

  /** Opens the file if necessary. Each call needs a `release()`. @throws the system's error. */
  acquire(): this {
    if (this.#fd === null) {
      this.#fd = this.#open.disk.open(this.path, 'r')
      this.#open.opened(this)
    }
    this.#users += 1
    this.#open.markInUse(this)
    return this
  }

  release(): void {
    this.#users -= 1
    if (this.#users !== 0) return
    if (this.#retired) this.closeIdle()
    else this.#open.markIdle(this)
  }

  /** Closes the file now, or at the last `release()`. The caller must not acquire it again. */
  retire(): void {
    this.#retired = true
    if (this.#users === 0) this.closeIdle()
  }

  /** Closes the file now, even if it is in use. */
  abandon(): void {
    this.#users = 0
    this.retire()
  }

  /** Closes the file unless it is in use; the next `acquire()` opens it again. */
  closeIdle(): void {
    if (this.#users > 0 || this.#fd === null) return
    this.#open.disk.close(this.#fd)
    this.#fd = null
    this.#open.closed(this)
  }

  /** Reads `length` bytes at `offset`, fewer at the end of the file. Acquire the file first. */
  read(offset: number, length: number): Promise<Buffer> {
    const fd = this.#fd
    if (fd === null) throw new Error(`${this.path} is not open`)
    return this.#open.disk.read(fd, length, offset)
  }
}
