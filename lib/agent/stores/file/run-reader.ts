import { StoreError } from '../../errors.js'
import type { RunRecord } from '../../events.js'
import { copyHead, foldHead } from '../../log/head.js'
import type { RunHead } from '../../run-details.js'
import { addPlace, pairs, PLACE, placeAt } from './catalog.js'
import type { Catalog, StoredRun, WarmPart } from './catalog.js'
import { ColdReader, loadCold, parseCold } from './index-file.js'
import { decodeFrame, splitLines } from './journal-line.js'
import { scanSegment, type Segment } from './segment.js'

/** Stretches with less than this between them are read at once, what is between them as well. */
const MAX_GAP = 32 * 1024
/** Octets read at once, unless one stretch is larger. */
const MAX_READ = 1 << 20

/** Octets read at once for lists. */
const LIST_READ = 128 * 1024

/** Octets of one segment that hold stretches of one run. */
interface Piece {
  readonly segment: Segment
  readonly offset: number
  length: number
  /** Offset and length of each stretch within the piece. */
  readonly stretches: [number, number][]
}

/**
 * Reads runs back from the journal. Runs may be moved to other files while they are read: where
 * something lies is looked up and its file is opened in the same tick.
 */
export class RunReader {
  readonly #catalog: Catalog

  constructor(catalog: Catalog) {
    this.#catalog = catalog
  }

  /** Calls `use` with what is known of a run, in the tick in which it is known to be so. */
  async use<T>(run: StoredRun, use: (part: WarmPart) => T): Promise<T> {
    for (;;) {
      if (run.warm !== null) return use(run.warm)
      const { cold } = run
      const part = await this.#load(run)
      if (run.warm === null && run.cold === cold) return use(part)
    }
  }

  /** Keeps head and places of a run in memory from now on. */
  async warm(run: StoredRun): Promise<WarmPart> {
    if (run.warm !== null) return run.warm
    return this.use(run, (part) => (run.warm = part))
  }

  /** The heads of runs, as they are now; those that were deleted in the meantime are left out. */
  async heads(runs: readonly StoredRun[]): Promise<RunHead[]> {
    const reader = new ColdReader(LIST_READ)
    const heads: RunHead[] = []
    // The checkpoint has the oldest first, lists the newest.
    for (const run of runs.toReversed()) {
      const { warm, cold } = run
      if (warm !== null) heads.push(copyHead(warm.head))
      else if (cold !== null) {
        try {
          heads.push(parseCold(cold, await reader.read(cold)).head)
        } catch {
          heads.push(await this.use(run, ({ head }) => copyHead(head)))
        }
      }
    }
    return heads.reverse()
  }

  async #load(run: StoredRun): Promise<WarmPart> {
    try {
      if (run.cold !== null) return await loadCold(run.cold)
    } catch {
      // The checkpoint is only a cache.
    }
    return this.#rebuild(run)
  }

  /** Head and places from the journal itself. */
  async #rebuild(run: StoredRun): Promise<WarmPart> {
    let head: RunHead | null = null
    const places: number[] = []
    for (const [id] of pairs(run.spread)) {
      const segment = this.#segment(id)
      await scanSegment(segment, 0, (line, offset) => {
        const frame = decodeFrame(line)
        if (frame === null || frame.type === 'header' || frame.runId !== run.runId) return
        if (frame.type === 'delete') {
          head = null
          places.length = 0
          return
        }
        for (const record of frame.records) head = foldHead(head, record)
        addPlace(places, id, offset, line.length + 1, frame.records[0]?.seq ?? 0)
      })
    }
    const found = head as RunHead | null
    if (found === null || found.details.last_seq !== run.lastSeq) {
      throw this.#setApart(run, 'the journal does not hold all of its records')
    }
    return { head: found, places }
  }

  /** Records with `seq` greater than `after`, at most `limit`. */
  async records(run: StoredRun, after: number, limit: number): Promise<RunRecord[]> {
    const last = Math.min(run.lastSeq, after + limit)
    if (after >= last) return []
    const pieces = await this.use(run, ({ places }) => this.#plan(places, after + 1, last))
    try {
      const records: RunRecord[] = []
      for (const piece of pieces) await this.#readPiece(run, piece, records)
      const from = after + 1 - (records[0]?.seq ?? 0)
      const page = records.slice(from, from + last - after)
      if (from < 0 || page.length !== last - after || page.at(-1)?.seq !== last) {
        throw this.#setApart(run, 'the journal does not hold all of its records')
      }
      return page
    } finally {
      for (const { segment } of pieces) segment.file.release()
    }
  }

  /** What to read for the records `first` to `last`. Opens the files. */
  #plan(places: readonly number[], first: number, last: number): Piece[] {
    const pieces: Piece[] = []
    for (let i = startOf(places, first); i < places.length; i += PLACE) {
      const [id, offset, length, seq] = placeAt(places, i)
      if (seq > last) break
      const piece = pieces.at(-1)
      const end = piece === undefined ? 0 : piece.offset + piece.length
      if (
        piece?.segment.id === id &&
        offset >= end &&
        offset - end <= MAX_GAP &&
        offset + length - piece.offset <= MAX_READ
      ) {
        piece.stretches.push([offset - piece.offset, length])
        piece.length = offset + length - piece.offset
      } else {
        const segment = this.#segment(id)
        segment.file.acquire()
        pieces.push({ segment, offset, length, stretches: [[0, length]] })
      }
    }
    return pieces
  }

  async #readPiece(run: StoredRun, piece: Piece, records: RunRecord[]): Promise<void> {
    const data = await piece.segment.file.read(piece.offset, piece.length)
    for (const [start, length] of piece.stretches) {
      splitLines(data.subarray(start, start + length), (line, offset) => {
        const frame = decodeFrame(line)
        if (frame?.type === 'records' && frame.runId === run.runId) {
          for (const record of frame.records) records.push(record)
          return
        }
        const where = `${piece.segment.file.path} at octet ${piece.offset + start + offset}`
        throw this.#setApart(run, `${where} is damaged`)
      })
    }
  }

  #segment(id: number): Segment {
    const segment = this.#catalog.segments.get(id)
    if (segment === undefined) throw new Error(`segment ${id} of the journal is not there`)
    return segment
  }

  #setApart(run: StoredRun, reason: string): StoreError {
    const { runId } = run
    // A deletion in the meantime takes the records away, and is no damage.
    if (this.#catalog.runs.get(runId) === run) {
      this.#catalog.setApart(runId, 'ERR_AGENT_STORE_CORRUPT', reason, [])
    }
    return new StoreError('ERR_AGENT_STORE_CORRUPT', corruptMessage(runId, reason))
  }
}

function corruptMessage(runId: string, reason: string): string {
  const remedy = 'restore the data directory from a backup, or delete the run'
  return `run ${runId} is out of use: ${reason}; ${remedy}`
}

/** Says that a run was set apart, why, and what to do. */
export function refusal(runId: string, catalog: Catalog): StoreError {
  const { code, reason } = catalog.quarantine.get(runId) ?? { code: 'ERR_AGENT_STORE', reason: '' }
  const message =
    code === 'ERR_AGENT_STORE_VERSION' ? `run ${runId} ${reason}` : corruptMessage(runId, reason)
  return new StoreError(code, message)
}

/** Index of the stretch that holds `seq`. */
function startOf(places: readonly number[], seq: number): number {
  let low = 0
  let high = places.length / PLACE - 1
  while (low < high) {
    const middle = (low + high + 1) >>> 1
    if ((places[middle * PLACE + 3] ?? 0) <= seq) low = middle
    else high = middle - 1
  }
  return low * PLACE
}
