/**
 * What a file store knows about its journal: which runs there are, where their records lie, what is
 * dead, and what is damaged. All of it is a fold over the lines of the journal.
 *
 * 1. A run is *warm* when its head and the places of its records are in memory, and *cold* when
 *    they are in the checkpoint. Runs that have not ended are always warm.
 * 2. `live` of a segment counts the octets of lines that some run, or a deletion, still needs.
 * 3. A deletion is needed for as long as a segment holds lines of the deleted run: without it a
 *    journal that is read from its start would bring the run back.
 *
 * @module
 */
import type { StoreErrorCode } from '../../errors.js'
import { RECORD_VERSION, type RunRecord } from '../../events.js'
import { foldHead } from '../../log/head.js'
import type { RunHead } from '../../run-details.js'
import type { DataFile } from './data-file.js'
import { indexFields, RunIndex, type IndexedRun } from '../run-index.js'
import type { Segment } from './segment.js'

/** Where the head and the places of a run are in the checkpoint. */
export interface ColdPart {
  readonly file: DataFile
  readonly offset: number
  readonly length: number
  readonly crc: number
}

/** What is known of a warm run. */
export interface WarmPart {
  readonly head: RunHead
  /** Where its records are, in order: segment, offset, length and first seq of each stretch. */
  readonly places: number[]
}

/** One run of the journal. */
export interface StoredRun extends IndexedRun {
  lastSeq: number
  /** Octets by segment: segment, octets, segment, octets, … */
  spread: number[]
  /** Lines that are on their way; the run stays warm for them. */
  busy: number
  /** The last seq that it will have with them; 0 when the last of them deletes it. */
  nextSeq: number
  warm: WarmPart | null
  cold: ColdPart | null
}

/** A run that cannot be used. */
export interface Quarantined {
  readonly code: StoreErrorCode
  reason: string
  /** Segments that hold something of it, and are kept as they are. */
  readonly segments: Set<number>
}

/** A deletion. */
export interface Grave {
  /** Where the line is that says so, and its octets. */
  segment: number
  octets: number
  /** Segments that hold lines of the deleted run. */
  readonly dead: Set<number>
}

/** Numbers of one stretch in {@link WarmPart.places}. */
export const PLACE = 4
/** Lines that touch make one stretch up to this many octets: what is read at least at once. */
const MAX_STRETCH = 64 * 1024

export class Catalog {
  readonly runs: RunIndex<StoredRun> = new RunIndex()
  readonly quarantine: Map<string, Quarantined> = new Map()
  readonly graves: Map<string, Grave> = new Map()
  /** In the order of their ids. */
  readonly segments: Map<number, Segment> = new Map()
  /** Segments with damage that may have been anybody's. */
  readonly damaged: Set<number> = new Set()

  /** Notes records that are durable. Their first seq is the next one of the run, which is warm. */
  addRecords(
    runId: string,
    records: readonly RunRecord[],
    segment: Segment,
    offset: number,
    length: number,
  ): StoredRun {
    const known = this.runs.get(runId)
    let head = known?.warm?.head ?? null
    for (const record of records) head = foldHead(head, record)
    const first = records[0] as RunRecord
    let run = known
    if (run === undefined) {
      const warm = { head: head as RunHead, places: [] }
      const empty = { lastSeq: 0, spread: [], busy: 0, nextSeq: 0, cold: null }
      run = { ...indexFields(warm.head), ...empty, warm }
      this.runs.add(run)
    } else {
      this.runs.update(run, head as RunHead)
    }
    addPlace((run.warm as WarmPart).places, segment.id, offset, length, first.seq)
    addOctets(run.spread, segment.id, length)
    segment.live += length
    run.lastSeq = first.seq + records.length - 1
    return run
  }

  /** Notes a deletion that is durable, forgets the run, and tells how many octets have died. */
  addDeletion(runId: string, segment: Segment, length: number): number {
    let died = 0
    const grave = this.graves.get(runId) ?? { segment: 0, octets: 0, dead: new Set<number>() }
    this.#free(grave.segment, grave.octets)
    const run = this.runs.get(runId)
    if (run !== undefined) {
      this.runs.remove(run)
      for (const [id, octets] of pairs(run.spread)) {
        this.#free(id, octets)
        grave.dead.add(id)
        died += octets
      }
    }
    // Of a damaged run it is not known where else it may be.
    if (this.quarantine.delete(runId)) for (const id of this.segments.keys()) grave.dead.add(id)
    grave.segment = segment.id
    grave.octets = length
    segment.live += length
    this.graves.set(runId, grave)
    return died
  }

  /** Takes a run out of use; everything that was written of it stays. */
  setApart(runId: string, code: StoreErrorCode, reason: string, segments: Iterable<number>): void {
    const known = this.quarantine.get(runId)
    if (known !== undefined) {
      for (const id of segments) known.segments.add(id)
      return
    }
    const apart = { code, reason, segments: new Set(segments) }
    const run = this.runs.get(runId)
    if (run !== undefined) {
      for (const [id] of pairs(run.spread)) apart.segments.add(id)
      this.runs.remove(run)
    }
    this.quarantine.set(runId, apart)
  }

  /** Segments that must stay as they are, since they are damaged or belong to a damaged run. */
  pinned(): Set<number> {
    const pinned = new Set(this.damaged)
    for (const { segments } of this.quarantine.values()) for (const id of segments) pinned.add(id)
    return pinned
  }

  /**
   * Forgets deletions that are needed no more, when the segments `gone` are replaced by segment
   * `next`, which holds lines of the `orphans` that were deleted since they were copied.
   */
  forgetGraves(gone: ReadonlySet<number>, next: number, orphans: ReadonlySet<string>): void {
    for (const [runId, grave] of this.graves) {
      for (const id of gone) grave.dead.delete(id)
      if (orphans.has(runId)) grave.dead.add(next)
      if (grave.dead.size > 0) continue
      this.#free(grave.segment, grave.octets)
      this.graves.delete(runId)
    }
  }

  #free(segment: number, octets: number): void {
    const found = this.segments.get(segment)
    if (found !== undefined) found.live -= octets
  }
}

/** The newest format version among records. */
export function newestVersion(records: readonly RunRecord[]): number {
  let newest = RECORD_VERSION
  for (const { v } of records as readonly { readonly v: unknown }[]) {
    if (typeof v === 'number' && v > newest) newest = v
  }
  return newest
}

/** Adds a stretch behind the others, joined to the last one where they touch. */
export function addPlace(
  places: number[],
  segment: number,
  offset: number,
  length: number,
  firstSeq: number,
): void {
  const last = places.length - PLACE
  if (last >= 0) {
    const end = (places[last + 1] ?? 0) + (places[last + 2] ?? 0)
    const joined = (places[last + 2] ?? 0) + length
    if (places[last] === segment && end === offset && joined <= MAX_STRETCH) {
      places[last + 2] = joined
      return
    }
  }
  places.push(segment, offset, length, firstSeq)
}

/** One stretch: segment, offset, length and first seq. */
export function placeAt(
  places: readonly number[],
  index: number,
): readonly [segment: number, offset: number, length: number, firstSeq: number] {
  return [
    places[index] ?? 0,
    places[index + 1] ?? 0,
    places[index + 2] ?? 0,
    places[index + 3] ?? 0,
  ]
}

/** Adds octets to the account of a segment. */
export function addOctets(spread: number[], segment: number, octets: number): void {
  const last = spread.length - 2
  if (last >= 0 && spread[last] === segment) spread[last + 1] = (spread[last + 1] ?? 0) + octets
  else spread.push(segment, octets)
}

/** The pairs of a flat list. */
export function* pairs(flat: readonly number[]): Iterable<readonly [number, number]> {
  for (let i = 0; i + 1 < flat.length; i += 2) yield [flat[i] as number, flat[i + 1] as number]
}
