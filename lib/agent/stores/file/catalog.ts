/**
 * What a file store knows about its journal: its runs, where their records are, which bytes are
 * dead, and what is damaged. All of it is a fold over the lines of the journal.
 *
 * 1. A run is *warm* when its head and the extents of its records are in memory, and *cold* when
 *    they are in the index file only. Runs that have not ended are always warm.
 * 2. `live` of a segment counts the bytes of lines that a run or a tombstone still needs.
 * 3. A tombstone is kept as long as a segment holds lines of the deleted run: without it, reading
 *    the journal from its start would bring the run back.
 *
 * @module
 */
import type { StoreErrorCode } from '../../errors.js'
import { RECORD_VERSION, type RunRecord } from '../../events.js'
import { foldHead } from '../../log/head.js'
import type { RunHead } from '../../run-details.js'
import type { DataFile } from './data-file.js'
import { unreadableHead } from '../unreadable-head.js'
import { indexFields, type IndexedRun } from '../indexed-run.js'
import { RunIndex } from '../run-index.js'
import type { Segment } from './segment.js'

/** Where the head and extents of a run are in the index file. */
export interface ColdPart {
  readonly file: DataFile
  readonly offset: number
  readonly length: number
  readonly crc: number
}

/** The part of a run that is in memory only while it is warm. */
export interface WarmPart {
  readonly head: RunHead
  /** Where its records are, in order: segment, offset, length and first seq of each extent. */
  readonly extents: number[]
}

/** What stays in memory of every run; the rest is in `warm`, or on disk at `cold`. */
export interface StoredRun extends IndexedRun {
  lastSeq: number
  /** A flat list of pairs: segment, bytes, segment, bytes, … */
  bytesBySegment: number[]
  /** Appends not yet durable; they keep the run warm. */
  inFlight: number
  /** `lastSeq` once they are durable; meaningless while `inFlight` is 0. */
  queuedSeq: number
  warm: WarmPart | null
  cold: ColdPart | null
}

/** A run that cannot be used. */
export interface Quarantined {
  readonly code: StoreErrorCode
  reason: string
  /** Segments with lines of the run, which are never rewritten. */
  readonly segments: Set<number>
}

/** Keeps a deleted run from coming back while segments still hold lines of it. */
export interface Tombstone {
  /** Segment and size of the deletion's own line. */
  segment: number
  bytes: number
  /** Segments that hold lines of the deleted run. */
  readonly dead: Set<number>
}

/** Further findings add nothing for a person who has to restore a backup anyway. */
const MAX_PROBLEMS = 1_000
/** Numbers per extent in {@link WarmPart.extents}. */
export const EXTENT = 4
/** Adjacent lines form one extent up to this size, which bounds what a small read costs. */
const MAX_EXTENT_BYTES = 64 * 1024

export class Catalog {
  readonly runs: RunIndex<StoredRun> = new RunIndex()
  readonly quarantined: Map<string, Quarantined> = new Map()
  readonly tombstones: Map<string, Tombstone> = new Map()
  /** By id, ascending. */
  readonly segments: Map<number, Segment> = new Map()
  /** Segments with damage that cannot be attributed to a run. */
  readonly damaged: Set<number> = new Set()
  /** The highest generation of each segment id whose name was ever in use; 0 is not noted. */
  readonly #generations = new Map<number, number>()
  /** What was found to be damaged or missing since the store was opened, a sentence each. */
  readonly problems: Set<string> = new Set()

  /** Adds durable records. They follow the last record of the run, which is warm or new. */
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
      const warm = { head: head as RunHead, extents: [] }
      const empty = { lastSeq: 0, bytesBySegment: [], inFlight: 0, queuedSeq: 0, cold: null }
      run = { ...indexFields(warm.head), ...empty, warm }
      this.runs.add(run)
    } else {
      this.runs.update(run, head as RunHead)
    }
    addExtent((run.warm as WarmPart).extents, segment.id, offset, length, first.seq)
    addBytes(run.bytesBySegment, segment.id, length)
    segment.live += length
    run.lastSeq = first.seq + records.length - 1
    return run
  }

  /** Adds a durable deletion, removes the run and returns how many of its bytes are now dead. */
  addDeletion(runId: string, segment: Segment, length: number): number {
    let freed = 0
    const known = this.tombstones.get(runId)
    const tombstone: Tombstone = known ?? { segment: 0, bytes: 0, dead: new Set() }
    this.#free(tombstone.segment, tombstone.bytes)
    const run = this.runs.get(runId)
    if (run !== undefined) {
      this.runs.remove(run)
      for (const [id, bytes] of pairs(run.bytesBySegment)) {
        this.#free(id, bytes)
        tombstone.dead.add(id)
        freed += bytes
      }
    }
    if (this.quarantined.delete(runId)) {
      // Any segment may hold lines of a damaged run.
      for (const id of this.segments.keys()) tombstone.dead.add(id)
    }
    tombstone.segment = segment.id
    tombstone.bytes = length
    segment.live += length
    this.tombstones.set(runId, tombstone)
    return freed
  }

  noteGeneration(id: number, generation: number): void {
    if (generation > (this.#generations.get(id) ?? 0)) this.#generations.set(id, generation)
  }

  /**
   * The generation with which a segment is rewritten. No name is used twice: a process that was
   * taken over may still be about to remove a file of that name.
   */
  nextGeneration(id: number): number {
    const next = (this.#generations.get(id) ?? 0) + 1
    this.#generations.set(id, next)
    return next
  }

  /** Notes damage that was found, unless it is known already. */
  addProblem(problem: string): void {
    if (this.problems.size < MAX_PROBLEMS) this.problems.add(problem)
  }

  /** Takes a run out of use; it stays in the index, and all of its lines in the journal. */
  quarantine(
    runId: string,
    code: StoreErrorCode,
    reason: string,
    segments: Iterable<number>,
  ): void {
    const known = this.quarantined.get(runId)
    if (known !== undefined) {
      for (const id of segments) known.segments.add(id)
      return
    }
    const quarantined = { code, reason, segments: new Set(segments) }
    const run = this.runs.get(runId)
    for (const [id] of pairs(run?.bytesBySegment ?? [])) quarantined.segments.add(id)
    this.quarantined.set(runId, quarantined)
  }

  /** Makes quarantined runs of which nothing else is known appear in lists. */
  addUnreadable(): void {
    for (const runId of this.quarantined.keys()) {
      if (this.runs.get(runId) !== undefined) continue
      const warm = { head: unreadableHead(runId), extents: [] }
      const empty = { lastSeq: 0, bytesBySegment: [], inFlight: 0, queuedSeq: 0, cold: null }
      this.runs.add({ ...indexFields(warm.head), ...empty, warm })
    }
  }

  /** Segments that must not be rewritten: damaged, or with lines of a quarantined run. */
  pinned(): Set<number> {
    const pinned = new Set(this.damaged)
    for (const { segments } of this.quarantined.values()) for (const id of segments) pinned.add(id)
    return pinned
  }

  /**
   * Drops tombstones that are no longer needed once segment `next` replaces the segments `gone`.
   * `orphans` are runs deleted after their lines were copied to `next`.
   */
  forgetTombstones(gone: ReadonlySet<number>, next: number, orphans: ReadonlySet<string>): void {
    for (const [runId, tombstone] of this.tombstones) {
      for (const id of gone) tombstone.dead.delete(id)
      if (orphans.has(runId)) tombstone.dead.add(next)
      if (tombstone.dead.size > 0) continue
      this.#free(tombstone.segment, tombstone.bytes)
      this.tombstones.delete(runId)
    }
  }

  #free(segment: number, bytes: number): void {
    const found = this.segments.get(segment)
    if (found !== undefined) found.live -= bytes
  }
}

/** The newest format version among records, at least the one of this code. */
export function newestVersion(records: readonly RunRecord[]): number {
  let newest = RECORD_VERSION
  for (const { v } of records as readonly { readonly v: unknown }[]) {
    if (typeof v === 'number' && v > newest) newest = v
  }
  return newest
}

/** Appends an extent, merged into the last one where they are adjacent. */
export function addExtent(
  extents: number[],
  segment: number,
  offset: number,
  length: number,
  firstSeq: number,
): void {
  const last = extents.length - EXTENT
  if (last >= 0) {
    const end = (extents[last + 1] ?? 0) + (extents[last + 2] ?? 0)
    const joined = (extents[last + 2] ?? 0) + length
    if (extents[last] === segment && end === offset && joined <= MAX_EXTENT_BYTES) {
      extents[last + 2] = joined
      return
    }
  }
  extents.push(segment, offset, length, firstSeq)
}

/** The extent that begins at `index` of the flat list. */
export function extentAt(
  extents: readonly number[],
  index: number,
): readonly [segment: number, offset: number, length: number, firstSeq: number] {
  return [
    extents[index] ?? 0,
    extents[index + 1] ?? 0,
    extents[index + 2] ?? 0,
    extents[index + 3] ?? 0,
  ]
}

/** Adds bytes to the segment's entry, which is the last one or new. */
export function addBytes(bySegment: number[], segment: number, bytes: number): void {
  const end = bySegment.length
  if (bySegment[end - 2] === segment) bySegment[end - 1] = (bySegment[end - 1] ?? 0) + bytes
  else bySegment.push(segment, bytes)
}

/** The pairs of a flat list such as {@link StoredRun.bytesBySegment}. */
export function* pairs(flat: readonly number[]): Iterable<readonly [number, number]> {
  for (let i = 0; i + 1 < flat.length; i += 2) yield [flat[i] as number, flat[i + 1] as number]
}
