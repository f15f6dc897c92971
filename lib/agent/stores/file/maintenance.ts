/**
 * Keeps opening fast and reclaims space, in rounds: rewrites segments, writes an index file, then
 * removes the files that neither needs any more.
 *
 * A round starts once as much was written as the previous index file is large, at least one
 * segment. All index files together thus cost about as much as the journal, however many runs
 * there are.
 *
 * @module
 */
import type { Catalog } from './catalog.js'
import type { OpenFiles } from './data-file.js'
import type { Disk } from './disk.js'
import { writeIndexFile, type LoadedIndexFile, type Position } from './index-file.js'
import type { Journal } from './journal.js'
import { planReclaim, rewrite, type Group } from './reclaim.js'
import type { RunReader } from './run-reader.js'

/** Collaborators of {@link Maintenance}. */
export interface MaintenanceParts {
  readonly directory: string
  readonly segmentBytes: number
  readonly catalog: Catalog
  readonly journal: Journal
  readonly reader: RunReader
  readonly disk: Disk
  readonly open: OpenFiles
}

/** Reading less than this at the next start is cheaper than a last index file. */
const SMALL_TAIL_BYTES = 64 << 10

/** Acquired; {@link Maintenance} releases it. */
type IndexFile = Pick<LoadedIndexFile, 'file' | 'size'>

export class Maintenance {
  readonly #parts: MaintenanceParts
  #indexFile: IndexFile | null
  /** `journal.written` at the last index file; negative for bytes from before this process. */
  #indexedAt: number
  #deadBytes = 0
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
    return (
      this.#unindexedBytes >= Math.max(segmentBytes, this.#indexFile?.size ?? 0) ||
      this.#deadBytes >= Math.max(segmentBytes, this.#liveBytes())
    )
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
    const { catalog, journal, segmentBytes, directory, disk, open } = this.#parts
    const { written } = journal
    const deadBytes = this.#deadBytes
    const rewritten: Group[] = []
    try {
      if (reclaim) {
        for (const group of planReclaim(catalog, journal.segment.id, segmentBytes)) {
          await rewrite(group, this.#parts)
          rewritten.push(group)
        }
      }
      await journal.sync()
      const position: Position = [journal.segment.id, journal.segment.size]
      const next = await writeIndexFile(directory, catalog, position, open, disk)
      this.#releaseIndexFile()
      this.#indexFile = next
      disk.syncDirectory(directory)
    } finally {
      // Also after a failure, so that the next round is not due immediately.
      this.#indexedAt = written
      this.#deadBytes -= deadBytes
    }
    this.#remove(rewritten)
  }

  #remove(rewritten: readonly Group[]): void {
    for (const { file } of rewritten.flat()) {
      file.retire()
      this.#parts.disk.remove(file.path)
    }
    if (rewritten.length > 0) this.#parts.disk.syncDirectory(this.#parts.directory)
  }
}
