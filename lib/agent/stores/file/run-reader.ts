import { lowerBound } from '../../../internal/queues.js'
import { isCorrupt, StoreError } from '../../errors.js'
import type { RunRecord } from '../../events.js'
import { copyHead, foldHead } from '../../log/head.js'
import type { RunHead } from '../../run-details.js'
import { unreadableHead } from '../unreadable-head.js'
import {
  addExtent,
  type Catalog,
  EXTENT,
  extentAt,
  pairs,
  type StoredRun,
  type WarmPart,
} from './catalog.js'
import { ColdReader, loadCold, parseCold } from './index-file.js'
import { decodeLine, splitLines } from './journal-line.js'
import { scanSegment, type Segment } from './segment.js'

/** Extents at most this far apart share one read, which includes the gap. */
const MAX_GAP_BYTES = 32 * 1024
/** Size of one read, unless a single extent is larger. */
const MAX_READ_BYTES = 1 << 20
/** Size of one read of the index file for lists. */
const LIST_READ_BYTES = 128 * 1024

/** One read, of one or more extents and the gaps between them. */
interface ReadRange {
  readonly segment: Segment
  readonly offset: number
  length: number
  /** Offset (within the range) and length of each extent of the run. */
  readonly extents: [number, number][]
}

/**
 * Reads runs back from the journal. Reclaiming space may move a run to other files meanwhile, so
 * extents are looked up and their files opened in the same tick.
 */
export class RunReader {
  readonly #catalog: Catalog
  readonly #onDamaged: (runId: string) => void

  /** @param onDamaged - called with each run that is quarantined because it could not be read. */
  constructor(catalog: Catalog, onDamaged: (runId: string) => void = () => {}) {
    this.#catalog = catalog
    this.#onDamaged = onDamaged
  }

  /** Calls `use` with head and extents of a run, synchronously while they are current. */
  async use<T>(run: StoredRun, use: (part: WarmPart) => T): Promise<T> {
    for (;;) {
      if (run.warm !== null) return use(run.warm)
      const { cold } = run
      const part = await this.#load(run)
      if (run.warm === null && run.cold === cold) return use(part)
    }
  }

  /** Loads head and extents of a run and keeps them in memory. */
  async warm(run: StoredRun): Promise<WarmPart> {
    if (run.warm !== null) return run.warm
    return this.use(run, (part) => (run.warm = part))
  }

  /** Copies of the runs' present heads, in the same order. */
  async heads(runs: readonly StoredRun[]): Promise<RunHead[]> {
    const reader = new ColdReader(LIST_READ_BYTES)
    const heads: RunHead[] = []
    // Lists are newest first, the index file oldest first: read it forwards.
    for (const run of runs.toReversed()) {
      const { warm, cold } = run
      if (warm !== null) heads.push(copyHead(warm.head))
      else if (cold !== null) {
        try {
          heads.push(parseCold(cold, await reader.read(cold)).head)
        } catch {
          heads.push(await this.#headOf(run))
        }
      }
    }
    return heads.reverse()
  }

  /** One run that is unreadable, and quarantined now, must not hide the others. */
  async #headOf(run: StoredRun): Promise<RunHead> {
    try {
      return await this.use(run, ({ head }) => copyHead(head))
    } catch (error) {
      if (!isCorrupt(error)) throw error
      return unreadableHead(run.runId, run.child)
    }
  }

  async #load(run: StoredRun): Promise<WarmPart> {
    try {
      if (run.cold !== null) return await loadCold(run.cold)
    } catch {
      // The journal holds everything that the index file does.
    }
    return this.#rebuild(run)
  }

  /** Folds head and extents from the segments that hold lines of the run. */
  async #rebuild(run: StoredRun): Promise<WarmPart> {
    let head: RunHead | null = null
    const extents: number[] = []
    for (const [id] of pairs(run.bytesBySegment)) {
      const segment = this.#segmentOf(run, id)
      await scanSegment(segment, 0, (line, offset) => {
        const parsed = decodeLine(line)
        if (parsed?.type !== 'records' && parsed?.type !== 'delete') return
        if (parsed.runId !== run.runId) return
        if (parsed.type === 'delete') {
          head = null
          extents.length = 0
          return
        }
        // Appended since, and not a part of this run's entry in the catalog yet.
        if ((parsed.records[0]?.seq ?? 0) > run.lastSeq) return
        for (const record of parsed.records) head = foldHead(head, record)
        addExtent(extents, id, offset, line.length + 1, parsed.records[0]?.seq ?? 0)
      })
    }
    const found = head as RunHead | null
    if (found === null || found.details.last_seq !== run.lastSeq) {
      throw this.#quarantine(run, 'some of its records are missing from the journal')
    }
    return { head: found, extents }
  }

  /** Records with `seq` greater than `after`, at most `limit`, in order. */
  async records(run: StoredRun, after: number, limit: number): Promise<RunRecord[]> {
    const last = Math.min(run.lastSeq, after + limit)
    if (after >= last) return []
    const ranges = await this.use(run, ({ extents }) =>
      this.#acquire(run, extents, after + 1, last),
    )
    try {
      const records: RunRecord[] = []
      for (const range of ranges) await this.#readRange(run, range, records)
      const from = after + 1 - (records[0]?.seq ?? 0)
      const page = records.slice(from, from + last - after)
      if (from < 0 || page.length !== last - after || page.at(-1)?.seq !== last) {
        throw this.#quarantine(run, 'some of its records are missing from the journal')
      }
      return page
    } finally {
      for (const { segment } of ranges) segment.file.release()
    }
  }

  /** The reads for records `first` to `last`. Acquires their files. */
  #acquire(
    run: StoredRun,
    extents: readonly number[],
    first: number,
    last: number,
  ): ReadRange[] {
    const ranges: ReadRange[] = []
    for (let i = extentWith(extents, first); i < extents.length; i += EXTENT) {
      const [id, offset, length, seq] = extentAt(extents, i)
      if (seq > last) break
      const range = ranges.at(-1)
      const end = range === undefined ? 0 : range.offset + range.length
      if (
        range?.segment.id === id &&
        offset >= end &&
        offset - end <= MAX_GAP_BYTES &&
        offset + length - range.offset <= MAX_READ_BYTES
      ) {
        range.extents.push([offset - range.offset, length])
        range.length = offset + length - range.offset
      } else {
        const segment = this.#segmentOf(run, id)
        segment.file.acquire()
        ranges.push({ segment, offset, length, extents: [[0, length]] })
      }
    }
    return ranges
  }

  async #readRange(run: StoredRun, range: ReadRange, records: RunRecord[]): Promise<void> {
    const data = await range.segment.file.read(range.offset, range.length)
    for (const [start, length] of range.extents) {
      splitLines(data.subarray(start, start + length), (line, offset) => {
        const parsed = decodeLine(line)
        if (parsed?.type === 'records' && parsed.runId === run.runId) {
          for (const record of parsed.records) records.push(record)
          return
        }
        const where = `${range.segment.file.path} at byte ${range.offset + start + offset}`
        throw this.#quarantine(run, `${where} is damaged`)
      })
    }
  }

  #segmentOf(run: StoredRun, id: number): Segment {
    const segment = this.#catalog.segments.get(id)
    if (segment !== undefined) return segment
    throw this.#quarantine(run, `segment ${id} of the journal is missing`)
  }

  #quarantine(run: StoredRun, reason: string): StoreError {
    const { runId } = run
    // A run that was deleted in the meantime is not damaged.
    if (this.#catalog.runs.get(runId) === run && !this.#catalog.quarantined.has(runId)) {
      this.#catalog.quarantine(runId, 'ERR_AGENT_STORE_CORRUPT', reason, [])
      this.#onDamaged(runId)
    }
    return new StoreError('ERR_AGENT_STORE_CORRUPT', corruptMessage(runId, reason))
  }
}

/** Null for a run that is damaged, which its reader has quarantined; other errors are thrown. */
export function ignoreCorrupt(error: unknown): null {
  if (!isCorrupt(error)) throw error
  return null
}

function corruptMessage(runId: string, reason: string): string {
  const remedy = 'restore the data directory from a backup, or delete the run'
  return `run ${runId} is quarantined: ${reason}; ${remedy}`
}

/** Error for access to a quarantined run: why it is quarantined and what to do. */
export function quarantineError(runId: string, catalog: Catalog): StoreError {
  const { code, reason } = catalog.quarantined.get(runId) ?? { code: 'ERR_AGENT_STORE', reason: '' }
  const message =
    code === 'ERR_AGENT_STORE_VERSION' ? `run ${runId} ${reason}` : corruptMessage(runId, reason)
  return new StoreError(code, message)
}

/** The head as lists show it. */
export function withProblem(head: RunHead, { quarantined }: Catalog): RunHead {
  const problem = quarantined.get(head.details.run_id)?.reason
  return problem === undefined ? head : { ...head, problem }
}

/** Index of the extent that contains `seq`. */
function extentWith(extents: readonly number[], seq: number): number {
  const begins = (at: number): boolean => extents[at * EXTENT + 3]! <= seq
  return Math.max(0, lowerBound(extents.length / EXTENT, begins) - 1) * EXTENT
}
