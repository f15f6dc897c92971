/**
 * Keeps opening fast and reclaims space, in rounds: rewrites segments, writes an index file, then
 * removes the files that neither needs any more.
 *
 * 1. A round starts once as much was written as the previous index file is large, at least one
 *    segment. All index files together thus cost about as much as the journal, however many runs
 *    there are.
 * 2. It also starts once half as many bytes have died as are live. What a round leaves is at most
 *    half dead, so the journal stays below three times what it retains.
 * 3. No round waits for the journal to be idle, which a busy one never is. Where lines die faster
 *    than a round reclaims them, the journal waits for the round.
 *
 * @module
 */
import type { Catalog, StoredRun, WarmPart } from './catalog.js'
import type { OpenFiles } from './data-file.js'
import type { Disk } from './disk.js'
import { writeIndexFile, type LoadedIndexFile } from './index-file.js'
import type { Journal } from './journal.js'
import type { DirectoryLock } from './lock.js'
import { planReclaim, rewrite, type Group } from './reclaim.js'
import { ignoreCorrupt, type RunReader } from './run-reader.js'
import type { Segment } from './segment.js'

/** Collaborators of {@link Maintenance}. */
export interface MaintenanceParts {
  readonly directory: string
  readonly segmentBytes: number
  readonly catalog: Catalog
  readonly journal: Journal
  readonly reader: RunReader
  readonly disk: Disk
  readonly open: OpenFiles
  readonly lock: DirectoryLock
}

/** Fewer dead bytes are not worth a round. */
const MIN_DEAD_BYTES = 256 << 10
/** More small segments than this, one for each start of the process, are worth a round. */
const MAX_SMALL_SEGMENTS = 32
/** Reading less than this at the next start is cheaper than a last index file. */
const SMALL_TAIL_BYTES = 64 << 10

/** Acquired; {@link Maintenance} releases it. */
type IndexFile = Pick<LoadedIndexFile, 'file' | 'size'>

export class Maintenance {
  readonly #parts: MaintenanceParts
  #indexFile: IndexFile | null
  /** `journal.written` at the last index file; negative for bytes from before this process. */
  #indexedAt: number
  #deadBytes: number
  /** Dead bytes that make a round due; too low when more has become live since. */
  #deadLimit = 0
  /** `#deadBytes` when the present round began. */
  #deadAtStart = 0
  #round: Promise<void> | null = null
  #finished = false

  /**
   * @param indexFile - acquired; released by {@link finish} or when a new one replaces it.
   * @param unindexedBytes - bytes of the journal that it does not cover.
   */
  constructor(parts: MaintenanceParts, indexFile: IndexFile | null, unindexedBytes: number) {
    this.#parts = parts
    this.#indexFile = indexFile
    this.#indexedAt = -unindexedBytes
    const { segmentBytes, catalog } = parts
    const segments = [...catalog.segments.values()]
    const small = segments.filter(({ size }) => size * 4 <= segmentBytes)
    const dead = segments.reduce((sum, { size, live }) => sum + size - live, 0)
    this.#deadBytes = small.length > MAX_SMALL_SEGMENTS ? Infinity : dead
  }

  /** Bytes that the next start would have to read. */
  get #unindexedBytes(): number {
    return this.#parts.journal.written - this.#indexedAt
  }

  /** Called with the bytes that a deletion freed; enough of them make a round due. */
  addDead(bytes: number): void {
    this.#deadBytes += bytes
  }

  /** Is it time for a round? */
  isDue(): boolean {
    if (this.#round !== null) return false
    const { segmentBytes } = this.#parts
    if (this.#unindexedBytes >= Math.max(segmentBytes, this.#indexFile?.size ?? 0)) return true
    return this.#isTooMuch(this.#deadBytes)
  }

  /** The present round, if so much died during it that the journal has to wait for it. */
  get backlog(): Promise<void> | null {
    return this.#isTooMuch(this.#deadBytes - this.#deadAtStart) ? this.#round : null
  }

  #isTooMuch(deadBytes: number): boolean {
    if (deadBytes < this.#deadLimit) return false
    const least = Math.min(MIN_DEAD_BYTES, this.#parts.segmentBytes)
    this.#deadLimit = Math.max(least, this.#liveBytes() / 2)
    return deadBytes >= this.#deadLimit
  }

  #liveBytes(): number {
    let sum = 0
    for (const { live } of this.#parts.catalog.segments.values()) sum += live
    return sum
  }

  /** Runs one round, after the current one if any. @throws the system's error. */
  async run(): Promise<void> {
    await this.#exclusively(() => this.#work(true))
  }

  async #exclusively(work: () => Promise<void>): Promise<void> {
    while (this.#round !== null) await this.#round
    if (this.#finished) return
    const round = work()
    this.#round = round.catch(() => {})
    try {
      await round
    } finally {
      this.#round = null
    }
  }

  /** Ends maintenance; writes a last index file if that pays off. @throws the system's error. */
  async finish(): Promise<void> {
    try {
      await this.#exclusively(async () => {
        this.#finished = true
        const least = Math.max(SMALL_TAIL_BYTES, (this.#indexFile?.size ?? 0) / 50)
        if (this.#unindexedBytes >= least || this.#deadBytes >= least) await this.#work(false)
      })
    } finally {
      this.#releaseIndexFile()
    }
  }

  #releaseIndexFile(): void {
    this.#indexFile?.file.retire()
    this.#indexFile?.file.release()
    this.#indexFile = null
  }

  async #work(reclaim: boolean): Promise<void> {
    const { catalog, journal, segmentBytes, directory, disk, lock } = this.#parts
    const { written } = journal
    const deadBytes = this.#deadBytes
    this.#deadAtStart = deadBytes
    const rewritten: Group[] = []
    try {
      if (reclaim) {
        if (this.#isMostlyDead(journal.segment)) await journal.rotate()
        for (const group of planReclaim(catalog, journal.segment.id, segmentBytes)) {
          await rewrite(group, this.#parts)
          rewritten.push(group)
        }
      }
      lock.check()
      const { segment, crc } = journal
      const end = { position: [segment.id, segment.size], crc } as const
      const readAgain = (run: StoredRun): Promise<WarmPart | null> =>
        this.#parts.reader.warm(run).catch(ignoreCorrupt)
      const next = await writeIndexFile(directory, catalog, end, { ...this.#parts, readAgain })
      this.#releaseIndexFile()
      this.#indexFile = next
      disk.syncDirectory(directory)
    } finally {
      // Also after a failure, so that the next round is not due immediately.
      this.#indexedAt = written
      this.#deadBytes = Number.isFinite(deadBytes) ? this.#deadBytes - deadBytes : 0
      this.#deadAtStart = 0
      this.#deadLimit = 0
    }
    this.#remove(rewritten)
  }

  /** The segment in use is not rewritten; only another one takes its place. */
  #isMostlyDead({ size, live }: Segment): boolean {
    return size - live >= Math.max(live, Math.min(MIN_DEAD_BYTES, this.#parts.segmentBytes) / 4)
  }

  #remove(rewritten: readonly Group[]): void {
    for (const { file } of rewritten.flat()) {
      file.retire()
      this.#parts.lock.check()
      this.#parts.disk.remove(file.path)
    }
    if (rewritten.length > 0) this.#parts.disk.syncDirectory(this.#parts.directory)
  }
}
