/**
 * Blobs in the folder `objects` of a file store's directory:
 *
 *     objects/3f/9ac1…          one blob: the folder and the name are its hash
 *     objects/<token>-7.new     one that is being written
 *
 * 1. A blob gets its name once its content is durable, and `put` resolves once its name is. So a
 *    crash leaves whole blobs and unfinished ones, which are removed when the store is opened.
 * 2. What another process has left is durable only after its folder was synced once.
 * 3. A blob that was damaged later is found when it is read, and replaced by the next `put` of it.
 *
 * @module
 */
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { StoreError } from '../../errors.js'
import type { ObjectStore, StoredObject } from '../../object-store.js'
import { ObjectCalls } from '../object-calls.js'
import { checkLimit } from '../object-checks.js'
import { hasHash, unpack } from '../packed.js'
import { operationError } from './disk-errors.js'
import type { Disk } from './disk.js'
import type { DirectoryLock } from './lock.js'
import { isMissing, ObjectWriter } from './object-writer.js'

/** Collaborators of {@link FileObjects}. */
export interface FileObjectsParts {
  /** The data directory of the store. */
  readonly directory: string
  readonly disk: Disk
  /** Called with each blob that turns out to be damaged. */
  readonly onDamage: (problem: StoreError) => void
}

interface Open {
  readonly lock: DirectoryLock
  readonly writer: ObjectWriter
}

/** Its name in the data directory. */
export const OBJECTS_FOLDER = 'objects'
const FOLDERS = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, '0'))
const NAME = /^[0-9a-f]{62}$/
/** Files that are looked at before other work of the process gets its turn. */
const FILES_PER_TURN = 100
/** A use is noted no more often; see {@link FileObjects.delete}. */
const USE_PRECISION_MS = 1_000
/** Further findings add nothing for a person who has to restore a backup anyway. */
const MAX_PROBLEMS = 1_000

/** See the comment of this file. */
export class FileObjects implements ObjectStore {
  readonly exclusive = true
  readonly #folder: string
  readonly #parts: FileObjectsParts
  readonly #damaged = new Map<string, string>()
  readonly #calls = new ObjectCalls(() => this.#checkOpen())
  #open: Open | null = null

  constructor(parts: FileObjectsParts) {
    this.#parts = parts
    this.#folder = join(parts.directory, OBJECTS_FOLDER)
  }

  /** Removes what crashed processes left unfinished. @throws the system's error. */
  open(lock: DirectoryLock): void {
    const { disk } = this.#parts
    for (const name of this.#names(this.#folder)) {
      if (!name.endsWith('.new')) continue
      lock.check()
      disk.remove(join(this.#folder, name))
    }
    this.#open = { lock, writer: new ObjectWriter(this.#folder, disk, lock) }
  }

  /** A sentence for each blob that is known to be damaged. */
  get problems(): readonly string[] {
    return [...this.#damaged.values()]
  }

  put(objects: readonly StoredObject[]): Promise<void> {
    return this.#call(objects.map(({ hash }) => hash), async (open) => {
      const known = await this.#has(objects.map(({ hash }) => hash), open)
      const unknown = objects.filter(({ hash }) => {
        if (known.has(hash)) return false
        // Others may have stored it meanwhile: it must not be removed if we fail to do so again.
        return open.writer.isWriting(hash) || !this.#find(hash, open.writer, [])
      })
      await open.writer.write(unknown)
      for (const { hash } of unknown) this.#damaged.delete(hash)
    })
  }

  get(hash: string): Promise<Uint8Array | null> {
    return this.#call([hash], async ({ lock }) => {
      const data = await this.#read(hash)
      if (data === null) {
        // Another process that has taken over may have removed it.
        this.#checkLock(lock)
        return null
      }
      const content = await unpack(data)
      if (content !== null && (await hasHash(content, hash))) {
        // It may have been restored from a backup.
        this.#damaged.delete(hash)
        return content
      }
      throw this.#damage(hash)
    })
  }

  has(hashes: readonly string[]): Promise<ReadonlySet<string>> {
    return this.#call(hashes, (open) => this.#has(hashes, open))
  }

  list(after: string | null, limit: number): Promise<readonly string[]> {
    return this.#call(after === null ? [] : [after], async () => {
      checkLimit(limit)
      const page: string[] = []
      for (const folder of FOLDERS) {
        if (after !== null && folder < after.slice(0, 2)) continue
        const names = this.#names(join(this.#folder, folder)).filter((name) => NAME.test(name))
        const hashes = names.map((name) => folder + name).sort()
        const rest = after === null ? hashes : hashes.filter((hash) => hash > after)
        page.push(...rest.slice(0, limit - page.length))
        if (page.length >= limit) break
        if (names.length > 0) await nextTurn()
      }
      return page
    })
  }

  delete(hashes: readonly string[], unusedMs: number): Promise<void> {
    return this.#call(hashes, async ({ lock, writer }) => {
      for (let i = 0; i < hashes.length; i += FILES_PER_TURN) {
        for (const hash of hashes.slice(i, i + FILES_PER_TURN)) {
          while (writer.isWriting(hash)) await writer.finished(hash)
          this.#remove(hash, unusedMs, lock)
        }
        await nextTurn()
      }
    })
  }

  /** Waits for calls in flight. */
  async close(): Promise<void> {
    await this.#calls.close()
  }

  #call<T>(hashes: readonly string[], work: (open: Open) => Promise<T>): Promise<T> {
    return this.#calls.run(hashes, () => work(this.#checkOpen()))
  }

  /** @throws {@link StoreError} while the store is not open, or not ours any more. */
  #checkOpen(): Open {
    const open = this.#open
    if (open === null) {
      throw new StoreError('ERR_AGENT_STORE', 'the store is not open yet; call open() first')
    }
    this.#checkLock(open.lock)
    return open
  }

  /** @throws {@link StoreError} when another process has taken over, or that cannot be known. */
  #checkLock(lock: DirectoryLock): void {
    try {
      lock.check()
    } catch (error) {
      throw operationError(`cannot use ${this.#folder}`, error)
    }
  }

  async #has(hashes: readonly string[], { lock, writer }: Open): Promise<Set<string>> {
    const found = new Set<string>()
    for (let i = 0; i < hashes.length; i += FILES_PER_TURN) {
      const uses: Promise<void>[] = []
      for (const hash of hashes.slice(i, i + FILES_PER_TURN)) {
        // What is being written is there once that is done.
        while (writer.isWriting(hash)) await writer.finished(hash)
        if (this.#find(hash, writer, uses)) found.add(hash)
      }
      await Promise.all(uses)
      if (i > 0) await nextTurn()
    }
    await writer.settle([...found])
    this.#checkLock(lock)
    return found
  }

  #damage(hash: string): StoreError {
    const problem = `${this.#pathOf(hash)} is damaged: object ${hash} is not what was stored`
    const error = new StoreError('ERR_AGENT_STORE_CORRUPT', problem)
    if (this.#damaged.has(hash) || this.#damaged.size >= MAX_PROBLEMS) return error
    this.#damaged.set(hash, problem)
    this.#parts.onDamage(error)
    return error
  }

  #remove(hash: string, unusedMs: number, lock: DirectoryLock): void {
    const { disk } = this.#parts
    const path = this.#pathOf(hash)
    try {
      const { mtimeMs } = disk.stat(path)
      const usedBefore = Date.now() - unusedMs - USE_PRECISION_MS
      if (unusedMs > 0 && mtimeMs > usedBefore) return
      lock.check()
      disk.remove(path)
      this.#damaged.delete(hash)
    } catch (error) {
      if (!isMissing(error)) throw operationError(`cannot remove ${path}`, error)
    }
  }

  #pathOf(hash: string): string {
    return join(this.#folder, hash.slice(0, 2), hash.slice(2))
  }

  /** Is there a file that can be used? Adds what notes its use to `uses`. */
  #find(hash: string, writer: ObjectWriter, uses: Promise<void>[]): boolean {
    if (this.#damaged.has(hash) || writer.isDoubtful(hash)) return false
    const { disk } = this.#parts
    const path = this.#pathOf(hash)
    try {
      const { mtimeMs, size } = disk.stat(path)
      if (size === 0) return false
      if (Math.abs(Date.now() - mtimeMs) > USE_PRECISION_MS) uses.push(disk.touch(path))
      return true
    } catch (error) {
      if (isMissing(error)) return false
      throw operationError(`cannot read ${path}`, error)
    }
  }

  async #read(hash: string): Promise<Buffer | null> {
    const { disk } = this.#parts
    const path = this.#pathOf(hash)
    try {
      const fd = disk.open(path, 'r')
      try {
        return await disk.read(fd, disk.size(fd), 0)
      } finally {
        disk.close(fd)
      }
    } catch (error) {
      if (isMissing(error)) return null
      throw operationError(`cannot read ${path}`, error)
    }
  }

  #names(folder: string): string[] {
    try {
      return this.#parts.disk.list(folder)
    } catch (error) {
      if (isMissing(error)) return []
      throw operationError(`cannot read ${folder}`, error)
    }
  }
}
