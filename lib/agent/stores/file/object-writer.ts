import { join } from 'node:path'
import type { StoredObject } from '../../object-store.js'
import { pack } from '../packed.js'
import { operationError, writeError } from './disk-errors.js'
import { makeDurableDirectory, type Disk } from './disk.js'
import type { DirectoryLock } from './lock.js'

/** Blobs that share syncs of folders, and bytes of them, as long as there are others. */
const GROUP_BLOBS = 512
const GROUP_BYTES = 32 << 20
/** Files and folders that are written or synced at once: as many as threads do that. */
const AT_ONCE = 4

interface Waiting {
  readonly object: StoredObject
  readonly done: Promise<void>
  resolve(): void
  reject(error: unknown): void
}

/**
 * Writes blobs in groups: what is to be stored while one group is written forms the next one. A
 * group succeeds or fails as a whole; what it has left when it failed is removed.
 */
export class ObjectWriter {
  readonly #folder: string
  readonly #disk: Disk
  readonly #lock: DirectoryLock
  /** By hash; those of the group in hand included. */
  readonly #waiting = new Map<string, Waiting>()
  /** Folders whose names are durable, as far as they were there when this process began. */
  readonly #settled = new Map<string, Promise<void>>()
  /** Blobs whose names may not be durable, although there are files. */
  readonly #doubtful = new Set<string>()
  #running: Promise<void> | null = null
  #drafts = 0
  #isDurable = false

  constructor(folder: string, disk: Disk, lock: DirectoryLock) {
    this.#folder = folder
    this.#disk = disk
    this.#lock = lock
  }

  /** Stores blobs. @throws {@link StoreError} */
  async write(objects: readonly StoredObject[]): Promise<void> {
    const outcomes = objects.map((object) => this.#add(object).done)
    if (outcomes.length > 0) this.#running ??= this.#run()
    await Promise.allSettled(outcomes)
    await Promise.all(outcomes)
  }

  isWriting(hash: string): boolean {
    return this.#waiting.has(hash)
  }

  /** Resolves once a blob that is being written is stored, or is not. */
  async finished(hash: string): Promise<void> {
    await Promise.allSettled([this.#waiting.get(hash)?.done])
  }

  /** Is there a file of which nobody knows whether it survives a loss of power? */
  isDoubtful(hash: string): boolean {
    return this.#doubtful.has(hash)
  }

  /** Resolves once the names of these files, which exist, are durable. */
  async settle(hashes: readonly string[]): Promise<void> {
    const folders = new Set(hashes.map((hash) => hash.slice(0, 2)))
    await inLanes([...folders], (name) => this.#settle(name))
  }

  #add(object: StoredObject): Waiting {
    const known = this.#waiting.get(object.hash)
    if (known !== undefined) return known
    const { promise, resolve, reject } = deferred()
    const waiting = { object, done: promise, resolve, reject }
    this.#waiting.set(object.hash, waiting)
    return waiting
  }

  async #run(): Promise<void> {
    // All that is stored in one turn of the event loop forms one group.
    await Promise.resolve()
    while (this.#waiting.size > 0) {
      const group = this.#next()
      let failure: unknown = null
      try {
        await this.#writeGroup(group.map(({ object }) => object))
      } catch (error) {
        failure = error
      }
      for (const { object, resolve, reject } of group) {
        this.#waiting.delete(object.hash)
        if (failure === null) resolve()
        else reject(failure)
      }
    }
    this.#running = null
  }

  #next(): Waiting[] {
    const group: Waiting[] = []
    let bytes = 0
    for (const waiting of this.#waiting.values()) {
      const { length } = waiting.object.content
      if (group.length === GROUP_BLOBS || (bytes > 0 && bytes + length > GROUP_BYTES)) break
      group.push(waiting)
      bytes += length
    }
    return group
  }

  async #writeGroup(group: readonly StoredObject[]): Promise<void> {
    const [disk, lock] = [this.#disk, this.#lock]
    const drafts = new Map<string, string>()
    const folders = new Set(group.map(({ hash }) => hash.slice(0, 2)))
    const named: string[] = []
    try {
      lock.check()
      await inLanes([...folders], (name) => this.#settle(name))
      await inLanes(group, async ({ hash, content }) => {
        const path = join(this.#folder, `${lock.token}-${++this.#drafts}.new`)
        drafts.set(hash, path)
        await this.#writeDraft(path, content)
      })
      lock.check()
      for (const [hash, path] of drafts) {
        this.#doubtful.add(hash)
        named.push(hash)
        disk.rename(path, this.#pathOf(hash))
      }
      await inLanes([...folders], (name) => disk.syncFolder(join(this.#folder, name)))
      lock.check()
      for (const hash of named) this.#doubtful.delete(hash)
    } catch (error) {
      if (!lock.isLost()) this.#discard(drafts, named)
      throw writeError(error, { path: this.#folder })
    }
  }

  async #writeDraft(path: string, content: Uint8Array): Promise<void> {
    const disk = this.#disk
    const data = await pack(content)
    const fd = disk.open(path, 'w')
    try {
      await disk.write(fd, data, 0)
      await disk.sync(fd)
    } finally {
      disk.close(fd)
    }
  }

  /** What cannot be removed now is doubtful, or removed when the store is opened. */
  #discard(drafts: ReadonlyMap<string, string>, named: readonly string[]): void {
    const disk = this.#disk
    for (const path of drafts.values()) attempt(() => disk.remove(path))
    for (const hash of named) {
      if (attempt(() => disk.remove(this.#pathOf(hash)))) this.#doubtful.delete(hash)
    }
  }

  /** Creates a folder if it is missing, and makes the names in it durable, once. */
  #settle(name: string): Promise<void> {
    const known = this.#settled.get(name)
    if (known !== undefined) return known
    const settling = this.#makeDurable(join(this.#folder, name)).catch((error: unknown) => {
      this.#settled.delete(name)
      throw operationError(`cannot write to ${this.#folder}`, error)
    })
    this.#settled.set(name, settling)
    return settling
  }

  async #makeDurable(folder: string): Promise<void> {
    // First the folder of all: an earlier attempt may have created it, and failed then.
    if (!this.#isDurable) makeDurableDirectory(this.#disk, this.#folder)
    this.#isDurable = true
    makeDurableDirectory(this.#disk, folder)
    await this.#disk.syncFolder(folder)
  }

  #pathOf(hash: string): string {
    return join(this.#folder, hash.slice(0, 2), hash.slice(2))
  }
}

/** Is a file missing, as opposed to unreadable? */
export function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT'
}

/** Calls `work` for each item, a few at a time. Begins no more once one has failed. */
async function inLanes<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  let next = 0
  let failed = false
  const lane = async (): Promise<void> => {
    while (next < items.length && !failed) {
      try {
        await work(items[next++] as T)
      } catch (error) {
        failed = true
        throw error
      }
    }
  }
  const lanes = Array.from({ length: Math.min(AT_ONCE, items.length) }, lane)
  // The others still write to files that are to be removed.
  await Promise.allSettled(lanes)
  await Promise.all(lanes)
}

function attempt(work: () => void): boolean {
  try {
    work()
    return true
  } catch {
    return false
  }
}

function deferred(): Omit<Waiting, 'object' | 'done'> & { readonly promise: Promise<void> } {
  let resolve!: () => void
  let reject!: (error: unknown) => void
  const promise = new Promise<void>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  return { promise, resolve, reject }
}
