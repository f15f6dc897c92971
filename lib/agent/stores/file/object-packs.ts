/**
 * Packs: files that hold blobs of one group each, so that small ones do not take a block each.
 *
 * 1. A pack gets its name once its content is durable, and its blobs count once the name is. What
 *    fails leaves an unfinished file, or a pack that is looked at after the next start.
 * 2. A blob is removed by its mark. Packs of which most was removed, and many small ones of about
 *    one size, are rewritten as one: the new pack is durable before the old ones go. A crash in
 *    between leaves blobs twice, and after a loss of power some that were removed may be back:
 *    every copy is asked for, listed once, and removed.
 * 3. In memory are five bytes for each blob, from the first use on. A blob that is not there costs
 *    a binary search for each pack; one that is there, one small read of an index more.
 *
 * @module
 */
import { join } from 'node:path'
import { LongWork } from '../../../internal/time.js'
import { hasHash, unpack } from '../packed.js'
import { attempt, isMissing, operationError, writeError } from './disk-errors.js'
import { makeDurableDirectory, type Disk } from './disk.js'
import type { DirectoryLock } from './lock.js'
import { encodePack, Pack, type PackedBlob } from './object-pack.js'

/** So many packs of about one size, where this is also the factor, are rewritten as one. */
const MERGED_LOG = 4
const MERGED = 2 ** MERGED_LOG
/** Packs of this size stay as they are; a blob counts at least this much. */
const LARGE_BYTES = 1 << 20
const LEAST_BYTES = 1 << 10
/** Bytes that are written at once. */
const WRITTEN_BYTES = 1 << 20
const NAME = /\.pack$/

/** What {@link ObjectPacks} needs of its store. */
export interface ObjectPacksParts {
  readonly folder: string
  readonly disk: Disk
  readonly lock: DirectoryLock
  /** Called with each pack that cannot be used. */
  readonly onDamage: (path: string) => void
}

/** A blob as it was packed, and the file in which it lies. */
export interface Copy {
  readonly path: string
  readonly data: Buffer
}

/** See the comment of this file. Every method throws a {@link StoreError} when the disk fails. */
export class ObjectPacks {
  readonly #parts: ObjectPacksParts
  readonly #packs = new Set<Pack>()
  #loaded: Promise<void> | null = null
  /** Removals and rewriting, one at a time. */
  #last: Promise<unknown> = Promise.resolve()
  #isDurable = false
  #drafts = 0

  constructor(parts: ObjectPacksParts) {
    this.#parts = parts
  }

  /** Finds what earlier processes have left; to be called before anything else. */
  load(): Promise<void> {
    this.#loaded ??= this.#load().catch((error: unknown) => {
      this.#loaded = null
      throw operationError(`cannot read ${this.#parts.folder}`, error)
    })
    return this.#loaded
  }

  /** Stores blobs, all of them or none. */
  async add(blobs: readonly PackedBlob[]): Promise<void> {
    await this.load()
    await this.#write(blobs, performance.now())
    // What this cannot do now, the next one does.
    this.#inTurn(() => this.#tidy()).catch(() => undefined)
  }

  /** Is it there? It is used anew then. */
  has(hash: string): boolean {
    const { disk } = this.#parts
    for (const pack of this.#packs) {
      if (!pack.mayHold(hash)) continue
      const found = this.#using(pack, 'r', (fd) => pack.locate(disk, fd, hash))
      if (found === null || found === undefined) continue
      pack.usedAt = performance.now()
      return true
    }
    return false
  }

  /** What is stored under a hash: normally once, or not at all. */
  async read(hash: string): Promise<Copy[]> {
    const packs = [...this.#packs].filter((pack) => pack.mayHold(hash))
    // All are opened in this turn: in the next one they may have been rewritten.
    const copies = await Promise.all(packs.map((pack) => this.#readFrom(pack, hash)))
    return copies.filter((copy) => copy !== null)
  }

  /** Hashes whose first byte is `first`, in no particular order, some of them twice. */
  hashes(first: number): string[] {
    const { disk } = this.#parts
    const some = [...this.#packs].filter((pack) => pack.mayHoldAny(first))
    const read = (pack: Pack) => this.#using(pack, 'r', (fd) => pack.hashes(disk, fd, first))
    return some.flatMap((pack) => read(pack) ?? [])
  }

  /** Removes blobs, unless they are in packs used later than this, by `performance.now()`. */
  remove(hashes: readonly string[], usedBefore: number): Promise<void> {
    return this.#inTurn(async () => {
      const work = new LongWork()
      for (const pack of [...this.#packs]) {
        if (work.isDue) await work.next()
        const held = pack.usedAt > usedBefore ? [] : hashes.filter((hash) => pack.mayHold(hash))
        if (held.length > 0) this.#using(pack, 'r+', (fd) => this.#mark(pack, fd, held))
      }
      // They are removed; that their bytes are free can wait until the disk is well.
      await this.#tidy().catch(() => undefined)
    })
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    await this.#last
  }

  async #load(): Promise<void> {
    const { disk, folder, onDamage } = this.#parts
    let names: string[]
    try {
      names = disk.list(folder).filter((name) => NAME.test(name))
      // The process before may have ended before the names were durable.
      if (names.length > 0) await disk.syncFolder(folder)
    } catch (error) {
      if (isMissing(error)) return
      throw error
    }
    const found: Pack[] = []
    const work = new LongWork()
    for (const name of names) {
      if (work.isDue) await work.next()
      const path = join(folder, name)
      const pack = (await this.#read(path)) ?? (await this.#mended(path))
      if (pack === null) onDamage(path)
      else found.push(pack)
    }
    for (const pack of found) this.#packs.add(pack)
  }

  async #read(path: string): Promise<Pack | null> {
    return await Pack.read(this.#parts.disk, path, performance.now())
  }

  /** A pack whose index is damaged, with a new one; null when it cannot be made or stored. */
  async #mended(path: string): Promise<Pack | null> {
    const { disk, lock } = this.#parts
    lock.check()
    const isMended = await Pack.mend(disk, path).catch(() => false)
    return isMended ? await this.#read(path) : null
  }

  async #readFrom(pack: Pack, hash: string): Promise<Copy | null> {
    const { disk } = this.#parts
    const { path } = pack
    let fd: number | undefined
    try {
      fd = disk.open(path, 'r')
      const place = pack.locate(disk, fd, hash)
      if (place === null) return null
      // Whatever the index says, what is not there takes no memory.
      const most = Math.max(0, Math.min(place.bytes, pack.bytes - place.at))
      return { path, data: await disk.read(fd, most, place.at) }
    } catch (error) {
      if (isMissing(error)) return null
      throw operationError(`cannot read ${path}`, error)
    } finally {
      if (fd !== undefined) disk.close(fd)
    }
  }

  /** Undefined when the file is gone: somebody, or a process that took over, removed it. */
  #using<T>(pack: Pack, flags: 'r' | 'r+', work: (fd: number) => T): T | undefined {
    const { disk } = this.#parts
    let fd: number | undefined
    try {
      fd = disk.open(pack.path, flags)
      return work(fd)
    } catch (error) {
      if (isMissing(error)) return undefined
      throw operationError(`cannot use ${pack.path}`, error)
    } finally {
      if (fd !== undefined) disk.close(fd)
    }
  }

  #mark(pack: Pack, fd: number, hashes: readonly string[]): void {
    const { disk, lock } = this.#parts
    for (const hash of hashes) {
      const place = pack.locate(disk, fd, hash)
      if (place === null) continue
      lock.check()
      pack.mark(disk, fd, place)
    }
  }

  async #tidy(): Promise<void> {
    for (let some = this.#worn(); some.length > 0; some = this.#worn()) await this.#rewrite(some)
  }

  /** Packs that are to be rewritten as one. */
  #worn(): readonly Pack[] {
    const bySize = new Map<number, Pack[]>()
    for (const pack of this.#packs) {
      if (pack.isUnreadable) continue
      if (pack.isWorn) return [pack]
      const bytes = Math.max(pack.bytes, pack.blobCount * LEAST_BYTES)
      if (bytes >= LARGE_BYTES) continue
      const size = Math.floor(Math.log2(bytes) / MERGED_LOG)
      const some = bySize.get(size) ?? []
      bySize.set(size, some)
      if (some.push(pack) === MERGED) return some
    }
    return []
  }

  async #rewrite(packs: readonly Pack[]): Promise<void> {
    const { disk, lock } = this.#parts
    const blobs = new Map<string, PackedBlob>()
    let usedAt = 0
    for (const pack of packs) {
      usedAt = Math.max(usedAt, pack.usedAt)
      for (const blob of await this.#blobsOf(pack)) {
        const known = blobs.get(blob.hash)
        // Stored again because the first was damaged, or rewritten before a crash.
        if (known === undefined || !(await isWhole(known))) blobs.set(blob.hash, blob)
      }
    }
    if (blobs.size > 0) await this.#write([...blobs.values()], usedAt)
    for (const pack of packs) {
      lock.check()
      disk.remove(pack.path)
      this.#packs.delete(pack)
    }
  }

  async #blobsOf(pack: Pack): Promise<readonly PackedBlob[]> {
    try {
      return pack.live === 0 ? [] : await pack.blobs(this.#parts.disk)
    } catch (error) {
      pack.isUnreadable = true
      throw operationError(`cannot read ${pack.path}`, error)
    }
  }

  async #write(blobs: readonly PackedBlob[], usedAt: number): Promise<void> {
    const { disk, folder, lock } = this.#parts
    const name = join(folder, `${lock.token}-${++this.#drafts}`)
    const [draft, path] = [`${name}.new`, `${name}.pack`]
    try {
      lock.check()
      if (!this.#isDurable) makeDurableDirectory(disk, folder)
      this.#isDurable = true
      const { parts, index } = await encodePack(blobs)
      await this.#writeDraft(draft, parts)
      lock.check()
      disk.rename(draft, path)
      await disk.syncFolder(folder)
      lock.check()
      this.#packs.add(new Pack(path, usedAt, index))
    } catch (error) {
      // What cannot be removed now is found when the store is opened.
      if (!lock.isLost()) for (const one of [draft, path]) attempt(() => disk.remove(one))
      throw writeError(error, { path: folder })
    }
  }

  async #writeDraft(path: string, parts: readonly Buffer[]): Promise<void> {
    const { disk } = this.#parts
    const fd = disk.open(path, 'w')
    try {
      let at = 0
      for (let i = 0; i < parts.length; ) {
        const some: Buffer[] = []
        for (let bytes = 0; i < parts.length && bytes < WRITTEN_BYTES; i++) {
          some.push(parts[i]!)
          bytes += parts[i]!.length
        }
        const data = some.length === 1 ? some[0]! : Buffer.concat(some)
        await disk.write(fd, data, at)
        at += data.length
      }
      await disk.sync(fd)
    } finally {
      disk.close(fd)
    }
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work)
    this.#last = turn.catch(() => undefined)
    return turn
  }
}

async function isWhole({ hash, data }: PackedBlob): Promise<boolean> {
  const content = await unpack(data)
  return content !== null && (await hasHash(content, hash))
}
