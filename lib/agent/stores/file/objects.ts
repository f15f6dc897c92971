/**
 * Blobs in the folder `objects` of a file store's directory:
 *
 *     objects/<token>-7.pack    those of one group; see `object-packs.ts`
 *     objects/<token>-7.new     a pack that is being written
 *     objects/3f/9ac1…          one blob, as earlier versions stored it: its hash is its name
 *
 * 1. `put` resolves once its blobs are durable. A crash leaves whole packs and unfinished ones,
 *    which are removed when the store is opened.
 * 2. What another process has left is durable only after its folder was synced once.
 * 3. A blob that was damaged later is found when it is read, and stored again by the next `put`.
 *
 * @module
 */
import { dirname, join } from 'node:path'
import { cautiousTime, LongWork, nextTurn, systemClock } from '../../../internal/time.js'
import { StoreError } from '../../errors.js'
import type { ObjectStore, StoredObject } from '../../object-store.js'
import { ObjectCalls } from '../object-calls.js'
import { checkLimit } from '../object-checks.js'
import { hasHash, unpack } from '../packed.js'
import { isMissing, operationError } from './disk-errors.js'
import type { Disk } from './disk.js'
import type { DirectoryLock } from './lock.js'
import { ObjectPacks, type Copy } from './object-packs.js'
import { ObjectWriter } from './object-writer.js'

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
  readonly packs: ObjectPacks
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
  /** By hash, or path of a pack. */
  readonly #damaged = new Map<string, string>()
  /** Folders of single blobs whose names are durable. */
  readonly #settled = new Set<string>()
  readonly #calls = new ObjectCalls(() => this.#checkOpen())
  readonly #now = cautiousTime(systemClock)
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
    const onDamage = (path: string): void => {
      this.#damage(path, `${path} is damaged or of a later version: its objects are missing`)
    }
    const packs = new ObjectPacks({ folder: this.#folder, disk, lock, onDamage })
    this.#open = { lock, packs, writer: new ObjectWriter((blobs) => packs.add(blobs)) }
  }

  /** A sentence for each blob that is known to be damaged. */
  get problems(): readonly string[] {
    return [...this.#damaged.values()]
  }

  put(objects: readonly StoredObject[]): Promise<void> {
    return this.#call(objects.map(({ hash }) => hash), async (open) => {
      const known = await this.#has(objects.map(({ hash }) => hash), open)
      // What others have stored meanwhile is stored twice, until the packs are rewritten.
      const unknown = objects.filter(({ hash }) => !known.has(hash))
      await open.writer.write(unknown)
      for (const { hash } of unknown) this.#damaged.delete(hash)
    })
  }

  get(hash: string): Promise<Uint8Array | null> {
    return this.#call([hash], async ({ lock, packs }) => {
      const copies = await packs.read(hash)
      const loose = copies.length === 0 || this.#damaged.has(hash) ? await this.#read(hash) : null
      if (loose !== null) copies.push(loose)
      for (const { data } of copies) {
        const content = await unpack(data)
        if (content === null || !(await hasHash(content, hash))) continue
        // It may have been restored from a backup.
        this.#damaged.delete(hash)
        return content
      }
      // Another process that has taken over may have removed it.
      this.#checkLock(lock)
      const path = copies[0]?.path
      if (path === undefined) return null
      throw this.#damage(hash, `${path} is damaged: object ${hash} is not what was stored`)
    })
  }

  has(hashes: readonly string[]): Promise<ReadonlySet<string>> {
    return this.#call(hashes, (open) => this.#has(hashes, open))
  }

  list(after: string | null, limit: number): Promise<readonly string[]> {
    return this.#call(after === null ? [] : [after], async ({ packs }) => {
      checkLimit(limit)
      const page: string[] = []
      for (const folder of FOLDERS) {
        if (after !== null && folder < after.slice(0, 2)) continue
        const names = this.#names(join(this.#folder, folder)).filter((name) => NAME.test(name))
        const packed = packs.hashes(Number.parseInt(folder, 16))
        const hashes = [...new Set([...packed, ...names.map((name) => folder + name)])].sort()
        const rest = after === null ? hashes : hashes.filter((hash) => hash > after)
        page.push(...rest.slice(0, limit - page.length))
        if (page.length >= limit) break
        if (hashes.length > 0) await nextTurn()
      }
      return page
    })
  }

  delete(hashes: readonly string[], unusedMs: number): Promise<void> {
    return this.#call(hashes, async ({ lock, packs, writer }) => {
      const before = (now: number): number =>
        unusedMs > 0 ? now - unusedMs - USE_PRECISION_MS : Infinity
      const usedBefore = before(this.#now())
      for (let i = 0; i < hashes.length; i += FILES_PER_TURN) {
        for (const hash of hashes.slice(i, i + FILES_PER_TURN)) {
          while (writer.isWriting(hash)) await writer.finished(hash)
          this.#remove(hash, usedBefore, lock)
        }
        await nextTurn()
      }
      await packs.remove(hashes, before(performance.now()))
      if (unusedMs === 0) for (const hash of hashes) this.#damaged.delete(hash)
    })
  }

  /** Waits for calls in flight. */
  async close(): Promise<void> {
    await this.#calls.close()
    await this.#open?.packs.settled()
  }

  #call<T>(hashes: readonly string[], work: (open: Open) => Promise<T>): Promise<T> {
    return this.#calls.run(hashes, async () => {
      const open = this.#checkOpen()
      await open.packs.load()
      return await work(open)
    })
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

  async #has(hashes: readonly string[], { lock, packs, writer }: Open): Promise<Set<string>> {
    const found = new Set<string>()
    const work = new LongWork()
    for (let i = 0; i < hashes.length; i += FILES_PER_TURN) {
      const uses: Promise<void>[] = []
      for (const hash of hashes.slice(i, i + FILES_PER_TURN)) {
        // What is being written is there once that is done.
        while (writer.isWriting(hash)) await writer.finished(hash)
        if (work.isDue) await work.next()
        if (this.#damaged.has(hash)) continue
        if (packs.has(hash) || (await this.#hasLoose(hash, uses))) found.add(hash)
      }
      await Promise.all(uses)
    }
    this.#checkLock(lock)
    return found
  }

  #damage(what: string, problem: string): StoreError {
    const error = new StoreError('ERR_AGENT_STORE_CORRUPT', problem)
    if (this.#damaged.has(what) || this.#damaged.size >= MAX_PROBLEMS) return error
    this.#damaged.set(what, problem)
    this.#parts.onDamage(error)
    return error
  }

  #remove(hash: string, usedBefore: number, lock: DirectoryLock): void {
    const { disk } = this.#parts
    const path = this.#pathOf(hash)
    try {
      if (disk.stat(path).mtimeMs > usedBefore) return
      lock.check()
      disk.remove(path)
    } catch (error) {
      if (!isMissing(error)) throw operationError(`cannot remove ${path}`, error)
    }
  }

  #pathOf(hash: string): string {
    return join(this.#folder, hash.slice(0, 2), hash.slice(2))
  }

  /** Is there a file of its own? Adds what notes its use to `uses`. */
  async #hasLoose(hash: string, uses: Promise<void>[]): Promise<boolean> {
    const { disk } = this.#parts
    const path = this.#pathOf(hash)
    const folder = dirname(path)
    try {
      const { mtimeMs, size } = disk.stat(path)
      if (size === 0) return false
      if (Math.abs(Date.now() - mtimeMs) > USE_PRECISION_MS) uses.push(disk.touch(path))
      if (!this.#settled.has(folder)) await disk.syncFolder(folder)
      this.#settled.add(folder)
      return true
    } catch (error) {
      if (isMissing(error)) return false
      throw operationError(`cannot read ${path}`, error)
    }
  }

  async #read(hash: string): Promise<Copy | null> {
    const { disk } = this.#parts
    const path = this.#pathOf(hash)
    try {
      const fd = disk.open(path, 'r')
      try {
        return { path, data: await disk.read(fd, disk.size(fd), 0) }
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
