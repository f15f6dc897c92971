/**
 * Reclaims the space of deleted runs: rewrites segments that are mostly dead without the dead
 * lines, merges small ones, and puts the records of each run next to one another.
 *
 * 1. The new file has the id of the last segment that it replaces and a higher generation. It gets
 *    its name when it is complete and durable; the old files stay until an index file lists the new
 *    one. A crash at any moment leaves a journal with the same content.
 * 2. One round reads and writes a bounded number of bytes; the rest waits for the next round.
 *
 * @module
 */
import { dirname } from 'node:path'
import { crc32 } from '../../../internal/hash.js'
import { addBytes, addExtent, EXTENT, extentAt, pairs } from './catalog.js'
import type { Catalog, StoredRun } from './catalog.js'
import type { OpenFiles } from './data-file.js'
import type { Disk } from './disk.js'
import {
  encodeDeletion,
  encodeHeader,
  isIntact,
  splitLines,
  type HeaderFields,
} from './journal-line.js'
import type { DirectoryLock } from './lock.js'
import type { RunReader } from './run-reader.js'
import { makeSegment, readHeader, type Segment } from './segment.js'

/** Consecutive segments to be rewritten as one. */
export type Group = readonly Segment[]

const MAX_ROUND_BYTES = 256 << 20
/** Dead bytes below which a rewrite is not worthwhile. */
const MIN_GAIN_BYTES = 1 << 10
/** Runs copied before the event loop gets a turn. */
const RUNS_PER_TURN = 64

/** Picks groups worth rewriting: at most half live, or at least four small segments. */
export function planReclaim(catalog: Catalog, active: number, segmentBytes: number): Group[] {
  const pinned = catalog.pinned()
  const groups: Segment[][] = []
  let group: Segment[] = []
  let live = 0
  let budget = MAX_ROUND_BYTES
  const finish = (): void => {
    const size = group.reduce((sum, segment) => sum + segment.size, 0)
    const dead = size - live
    const worthwhile = group.length >= 4 || (dead >= MIN_GAIN_BYTES && dead >= live)
    if (worthwhile && size <= budget) {
      groups.push(group)
      budget -= size
    }
    group = []
    live = 0
  }
  for (const segment of catalog.segments.values()) {
    const small = segment.size * 4 <= segmentBytes
    const movable = !pinned.has(segment.id) && segment.id !== active
    if (!movable || (segment.live * 2 > segment.size && !small)) {
      finish()
      continue
    }
    if (live + segment.live > segmentBytes) finish()
    group.push(segment)
    live += segment.live
  }
  finish()
  return groups
}

/** Collaborators of {@link rewrite}. */
export interface RewriteContext {
  readonly catalog: Catalog
  readonly reader: RunReader
  readonly disk: Disk
  readonly open: OpenFiles
  readonly lock: DirectoryLock
}

interface Copy {
  readonly run: StoredRun
  /** Extents in the new file. */
  readonly extents: number[]
  bytes: number
}

/**
 * Writes the live lines of a group to a new file and makes the catalog refer to it. The old files
 * can be removed once an index file has been written.
 *
 * @throws the system's error, or an Error when a line is damaged; nothing has changed then.
 */
export async function rewrite(group: Group, context: RewriteContext): Promise<void> {
  const { catalog, disk, open, lock } = context
  const ids = new Set(group.map(({ id }) => id))
  const last = group.at(-1) as Segment
  const parts: Buffer[] = []
  let size = 0
  const tombstones: { readonly runId: string; readonly bytes: number }[] = []
  for (const [runId, tombstone] of catalog.tombstones) {
    if (!ids.has(tombstone.segment) || [...tombstone.dead].every((id) => ids.has(id))) continue
    const line = encodeDeletion(runId)
    parts.push(line)
    size += line.length
    tombstones.push({ runId, bytes: line.length })
  }
  const copies = await copyRuns(group, ids, size, parts, context)
  const body = Buffer.concat(parts)
  const generation = catalog.nextGeneration(last.id)
  const header = encodeHeader(last.id, generation, await headerFields(group, body))
  const directory = dirname(last.file.path)
  const segment = makeSegment(directory, last.id, generation, 0, open)
  const draft = `${segment.file.path}.${lock.token}.new`
  const fd = disk.open(draft, 'w')
  try {
    await disk.write(fd, Buffer.concat([header, body]), 0)
    await disk.sync(fd)
    segment.size = header.length + body.length
    lock.check()
    disk.rename(draft, segment.file.path)
    disk.syncDirectory(directory)
  } catch (error) {
    disk.remove(draft)
    throw error
  } finally {
    disk.close(fd)
  }
  for (const { extents } of copies) {
    for (let i = 1; i < extents.length; i += EXTENT) extents[i] = (extents[i] ?? 0) + header.length
  }
  install(segment, ids, copies, catalog)
  for (const { runId, bytes } of tombstones) {
    const tombstone = catalog.tombstones.get(runId)
    // Moved meanwhile when a run of the same id was deleted again.
    if (tombstone === undefined || !ids.has(tombstone.segment)) continue
    tombstone.segment = segment.id
    tombstone.bytes = bytes
    segment.live += bytes
  }
}

/** The new file takes the place of the group's first segment in the chain. */
async function headerFields(group: Group, body: Buffer): Promise<HeaderFields> {
  const header = await readHeader(group[0] as Segment)
  return {
    replaces: group.slice(0, -1).map(({ id }) => id),
    previous: header?.line.previous,
    body: { bytes: body.length, crc: crc32(body) },
  }
}

/** Appends the lines of each run in the group to `parts`, oldest run first. */
async function copyRuns(
  group: Group,
  ids: ReadonlySet<number>,
  start: number,
  parts: Buffer[],
  { catalog, reader }: RewriteContext,
): Promise<Copy[]> {
  const contents = new Map<number, Buffer>()
  for (const { id, file, size, live } of group) {
    if (live === 0) continue
    file.acquire()
    try {
      contents.set(id, await file.read(0, size))
    } finally {
      file.release()
    }
  }
  const copies: Copy[] = []
  let at = start
  for (const run of catalog.runs.all()) {
    if (![...pairs(run.bytesBySegment)].some(([id]) => ids.has(id))) continue
    if (copies.length % RUNS_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve))
    if (catalog.runs.get(run.runId) !== run) continue
    const { extents } = await reader.warm(run)
    const copy: Copy = { run, extents: [], bytes: 0 }
    for (let i = 0; i < extents.length; i += EXTENT) {
      const [id, offset, length, seq] = extentAt(extents, i)
      if (!ids.has(id)) continue
      const lines = contents.get(id)?.subarray(offset, offset + length) ?? Buffer.alloc(0)
      checkLines(lines, length, run.runId)
      parts.push(lines)
      addExtent(copy.extents, (group.at(-1) as Segment).id, at, length, seq)
      at += length
      copy.bytes += length
    }
    copies.push(copy)
  }
  return copies
}

function checkLines(lines: Buffer, length: number, runId: string): void {
  const end = splitLines(lines, (line) => {
    if (!isIntact(line)) throw new Error(`records of run ${runId} are damaged`)
  })
  if (end !== length) throw new Error(`records of run ${runId} are damaged`)
}

/** Switches the catalog to the new file, synchronously. */
function install(
  segment: Segment,
  ids: ReadonlySet<number>,
  copies: readonly Copy[],
  catalog: Catalog,
): void {
  const isGone = ({ run }: Copy): boolean =>
    catalog.runs.get(run.runId) !== run || run.warm === null
  const orphans = new Set(copies.filter(isGone).map(({ run }) => run.runId))
  catalog.forgetTombstones(ids, segment.id, orphans)
  for (const id of ids) if (id !== segment.id) catalog.segments.delete(id)
  // The map keeps its order, since the key of the last segment stays.
  catalog.segments.set(segment.id, segment)
  for (const { run, extents, bytes } of copies) {
    if (orphans.has(run.runId) || run.warm === null) continue
    const old = run.warm.extents
    const moved: number[] = []
    let placed = false
    for (let i = 0; i < old.length; i += EXTENT) {
      if (!ids.has(old[i] ?? 0)) moved.push(...old.slice(i, i + EXTENT))
      else if (!placed) {
        moved.push(...extents)
        placed = true
      }
    }
    old.splice(0, old.length, ...moved)
    const bytesBySegment: number[] = []
    placed = false
    for (const [id, amount] of pairs(run.bytesBySegment)) {
      if (!ids.has(id)) addBytes(bytesBySegment, id, amount)
      else if (!placed) {
        addBytes(bytesBySegment, segment.id, bytes)
        placed = true
      }
    }
    run.bytesBySegment = bytesBySegment
    segment.live += bytes
  }
}
