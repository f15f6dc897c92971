/**
 * Gives back the space of deleted runs: segments in which little lives are written anew without
 * what is dead, several small ones as one, and with the records of each run side by side.
 *
 * 1. The new file has the id of the last segment that it replaces and a higher generation. It gets
 *    its name when it is complete and durable; the old files stay until a checkpoint speaks of the
 *    new one. A crash at any moment leaves a journal that says the same.
 * 2. One round reads and writes a bounded number of octets; the rest waits for the next round.
 *
 * @module
 */
import { closeSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { addOctets, addPlace, pairs, PLACE, placeAt } from './catalog.js'
import type { Catalog, StoredRun } from './catalog.js'
import type { OpenFiles } from './data-file.js'
import type { Disk } from './disk.js'
import { encodeDelete, encodeHeader, isIntact, splitLines } from './journal-line.js'
import type { RunReader } from './run-reader.js'
import { makeSegment, type Segment } from './segment.js'

/** Segments that become one. */
export type Group = readonly Segment[]

/** Octets that one round reads. */
const MAX_ROUND = 256 << 20
/** Octets that are worth rewriting one segment. */
const LEAST_GAIN = 1 << 10
/** Runs that are copied before others get their turn. */
const RUNS_PER_TURN = 64

/** Picks what is worth rewriting: neighbours in which at most half of the octets live. */
export function planReclaim(catalog: Catalog, active: number, segmentBytes: number): Group[] {
  const pinned = catalog.pinned()
  const groups: Segment[][] = []
  let group: Segment[] = []
  let living = 0
  let budget = MAX_ROUND
  const finish = (): void => {
    const size = group.reduce((sum, segment) => sum + segment.size, 0)
    const dead = size - living
    const worthwhile = group.length >= 4 || (dead >= LEAST_GAIN && dead >= living)
    if (worthwhile && size <= budget) {
      groups.push(group)
      budget -= size
    }
    group = []
    living = 0
  }
  for (const segment of catalog.segments.values()) {
    const small = segment.size * 4 <= segmentBytes
    const fits = !pinned.has(segment.id) && segment.id !== active
    if (!fits || (segment.live * 2 > segment.size && !small)) {
      finish()
      continue
    }
    if (living + segment.live > segmentBytes) finish()
    group.push(segment)
    living += segment.live
  }
  finish()
  return groups
}

/** What {@link rewrite} works with. */
export interface RewriteTools {
  readonly catalog: Catalog
  readonly reader: RunReader
  readonly disk: Disk
  readonly open: OpenFiles
}

interface Copy {
  readonly run: StoredRun
  /** Stretches in the new file. */
  readonly places: number[]
  octets: number
}

/**
 * Writes the living lines of a group to a new file and makes the catalog speak of that. The files
 * of the group can be removed once a checkpoint has been written.
 *
 * @throws the system's error, or an Error when a line is damaged; everything is then as it was.
 */
export async function rewrite(group: Group, tools: RewriteTools): Promise<void> {
  const { catalog, disk, open } = tools
  const ids = new Set(group.map(({ id }) => id))
  const last = group.at(-1) as Segment
  const parts: Buffer[] = [
    encodeHeader(last.id, last.generation + 1, [...ids].filter((id) => id !== last.id)),
  ]
  let size = parts[0]?.length ?? 0
  const graves: { readonly runId: string; readonly octets: number }[] = []
  for (const [runId, grave] of catalog.graves) {
    if (!ids.has(grave.segment) || [...grave.dead].every((id) => ids.has(id))) continue
    const line = encodeDelete(runId)
    parts.push(line)
    size += line.length
    graves.push({ runId, octets: line.length })
  }
  const copies = await copyRuns(group, ids, size, parts, tools)
  const directory = dirname(last.file.path)
  const segment = makeSegment(directory, last.id, last.generation + 1, 0, open)
  const draft = `${segment.file.path}.new`
  const fd = openSync(draft, 'w', 0o600)
  try {
    const data = Buffer.concat(parts)
    await disk.write(fd, data, 0)
    await disk.sync(fd)
    segment.size = data.length
    renameSync(draft, segment.file.path)
    disk.syncDirectory(directory)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  } finally {
    closeSync(fd)
  }
  install(segment, ids, copies, catalog)
  for (const { runId, octets } of graves) {
    const grave = catalog.graves.get(runId)
    // A run of the same id may have been deleted again, further on.
    if (grave === undefined || !ids.has(grave.segment)) continue
    grave.segment = segment.id
    grave.octets = octets
    segment.live += octets
  }
}

/** Collects the lines of each run, oldest run first. */
async function copyRuns(
  group: Group,
  ids: ReadonlySet<number>,
  start: number,
  parts: Buffer[],
  { catalog, reader }: RewriteTools,
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
    if (![...pairs(run.spread)].some(([id]) => ids.has(id))) continue
    if (copies.length % RUNS_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve))
    if (catalog.runs.get(run.runId) !== run) continue
    const { places } = await reader.warm(run)
    const copy: Copy = { run, places: [], octets: 0 }
    for (let i = 0; i < places.length; i += PLACE) {
      const [id, offset, length, seq] = placeAt(places, i)
      if (!ids.has(id)) continue
      const lines = contents.get(id)?.subarray(offset, offset + length) ?? Buffer.alloc(0)
      checkLines(lines, length, run.runId)
      parts.push(lines)
      addPlace(copy.places, (group.at(-1) as Segment).id, at, length, seq)
      at += length
      copy.octets += length
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

/** Puts the new file into the catalog in one tick. */
function install(
  segment: Segment,
  ids: ReadonlySet<number>,
  copies: readonly Copy[],
  catalog: Catalog,
): void {
  const isGone = ({ run }: Copy): boolean =>
    catalog.runs.get(run.runId) !== run || run.warm === null
  const orphans = new Set(copies.filter(isGone).map(({ run }) => run.runId))
  catalog.forgetGraves(ids, segment.id, orphans)
  for (const id of ids) if (id !== segment.id) catalog.segments.delete(id)
  // The id of the last one keeps its place in the order.
  catalog.segments.set(segment.id, segment)
  for (const { run, places, octets } of copies) {
    if (orphans.has(run.runId) || run.warm === null) continue
    const old = run.warm.places
    const moved: number[] = []
    let placed = false
    for (let i = 0; i < old.length; i += PLACE) {
      if (!ids.has(old[i] ?? 0)) moved.push(...old.slice(i, i + PLACE))
      else if (!placed) {
        moved.push(...places)
        placed = true
      }
    }
    old.splice(0, old.length, ...moved)
    const spread: number[] = []
    placed = false
    for (const [id, amount] of pairs(run.spread)) {
      if (!ids.has(id)) addOctets(spread, id, amount)
      else if (!placed) {
        addOctets(spread, segment.id, octets)
        placed = true
      }
    }
    run.spread = spread
    segment.live += octets
  }
}
