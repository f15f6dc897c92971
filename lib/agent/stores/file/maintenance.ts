import { rmSync } from 'node:fs'
import type { Disk } from './disk.js'
import type { Catalog } from './catalog.js'
import { writeCheckpoint, type Position } from './index-file.js'
import type { DataFile, OpenFiles } from './data-file.js'
import type { Journal } from './journal.js'
import { planReclaim, rewrite, type Group } from './reclaim.js'
import type { RunReader } from './run-reader.js'

/** What {@link Maintenance} works on. */
export interface MaintenanceParts {
  readonly directory: string
  readonly segmentBytes: number
  readonly catalog: Catalog
  readonly journal: Journal
  readonly reader: RunReader
  readonly disk: Disk
  readonly open: OpenFiles
}

/** Less than this is read again at the next start rather than written at the end. */
const SMALL_TAIL = 64 << 10

/**
 * Keeps opening fast and the disk tidy: reclaims segments, then writes a checkpoint, then removes
 * what neither needs. A round begins when as much was written as the last checkpoint is large (at
 * least one segment), so that all of it together writes each octet a few times, however many runs
 * there are.
 */
export class Maintenance {
  readonly #parts: MaintenanceParts
  #checkpoint: { readonly file: DataFile; readonly octets: number } | null
  /** `journal.written` at the last checkpoint; negative for what was there before. */
  #coveredAt: number
  #dead = 0
  #round: Promise<void> | null = null
  #finished = false

  /** `unknown`: octets in the journal that the checkpoint does not know. */
  constructor(
    parts: MaintenanceParts,
    checkpoint: { readonly file: DataFile; readonly octets: number } | null,
    unknown: number,
  ) {
    this.#parts = parts
    this.#checkpoint = checkpoint
    this.#coveredAt = -unknown
  }

  /** Octets that opening would have to read again. */
  get #behind(): number {
    return this.#parts.journal.written - this.#coveredAt
  }

  /** Notes that so many octets have died. */
  noteDead(octets: number): void {
    this.#dead += octets
  }

  /** Is it time for a round? */
  isDue(): boolean {
    if (this.#round !== null) return false
    const { segmentBytes } = this.#parts
    return (
      this.#behind >= Math.max(segmentBytes, this.#checkpoint?.octets ?? 0) ||
      this.#dead >= Math.max(segmentBytes, this.#living())
    )
  }

  #living(): number {
    let sum = 0
    for (const { live } of this.#parts.catalog.segments.values()) sum += live
    return sum
  }

  /** Runs one round, after the one that is under way. @throws the system's error. */
  async run(): Promise<void> {
    await this.#alone(() => this.#work(true))
  }

  /** Does one thing at a time. */
  async #alone(work: () => Promise<void>): Promise<void> {
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

  /** Writes a last checkpoint if that is worth it; no round follows. @throws the system's error. */
  async finish(): Promise<void> {
    try {
      await this.#alone(async () => {
        this.#finished = true
        const least = Math.max(SMALL_TAIL, (this.#checkpoint?.octets ?? 0) / 50)
        if (this.#behind >= least || this.#dead >= least) await this.#work(false)
      })
    } finally {
      this.#dropCheckpoint()
    }
  }

  #dropCheckpoint(): void {
    this.#checkpoint?.file.retire()
    this.#checkpoint?.file.release()
    this.#checkpoint = null
  }

  async #work(reclaim: boolean): Promise<void> {
    const { catalog, journal, segmentBytes, directory, disk, open } = this.#parts
    const { written } = journal
    const dead = this.#dead
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
      const next = await writeCheckpoint(directory, catalog, position, open, disk)
      this.#dropCheckpoint()
      this.#checkpoint = next
      disk.syncDirectory(directory)
    } finally {
      // Also after a failure: not again at once.
      this.#coveredAt = written
      this.#dead -= dead
    }
    this.#remove(rewritten)
  }

  #remove(rewritten: readonly Group[]): void {
    for (const { file } of rewritten.flat()) {
      file.retire()
      rmSync(file.path, { force: true })
    }
    if (rewritten.length > 0) this.#parts.disk.syncDirectory(this.#parts.directory)
  }
}
