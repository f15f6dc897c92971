/**
 * Opening a journal: reads what the checkpoint does not know, or everything when there is none.
 *
 * 1. What stands behind the last newline of the last segment was never acknowledged: it is cut.
 * 2. Any other line that is not as it was written is damage. The runs that it names, and those in
 *    which a sequence number is missing, are set apart. When it cannot be seen whose it was, so are
 *    all runs that have not ended and have nothing behind it: they may have lost records.
 * 3. Of two files of one segment that with the higher generation counts; it was complete before it
 *    got its name. But a checkpoint is only ever used with the very files that it speaks of.
 *
 * @module
 */
import { readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { StoreError } from '../../errors.js'
import { isTerminal, RECORD_VERSION } from '../../events.js'
import { Catalog, newestVersion, pairs, PLACE } from './catalog.js'
import { loadCheckpoint, type LoadedCheckpoint, type Position } from './index-file.js'
import type { OpenFiles } from './data-file.js'
import {
  decodeFrame,
  inspectDamage,
  JOURNAL_VERSION,
  type Damage,
  type Frame,
  type HeaderFrame,
} from './journal-line.js'
import { RunReader } from './run-reader.js'
import { makeSegment, parseSegmentName, scanSegment, type Segment } from './segment.js'

/** A journal as it was found. */
export interface OpenedJournal {
  readonly catalog: Catalog
  readonly checkpoint: LoadedCheckpoint | null
  /** Octets of lines that the checkpoint did not know. */
  readonly replayed: number
  /** Segments that were read and may not be durable yet. */
  readonly scanned: readonly Segment[]
  /** Octets of the last segment to keep; less than its size when its tail is torn. */
  readonly tail: number
}

/** Reads the journal of a directory. @throws {@link StoreError} when it is of a newer version. */
export async function openJournal(directory: string, open: OpenFiles): Promise<OpenedJournal> {
  const names = readdirSync(directory)
  for (const name of names) {
    if (name.endsWith('.new')) rmSync(join(directory, name), { force: true })
  }
  const files = names.flatMap((name) => {
    const parsed = parseSegmentName(name)
    if (parsed === null) return []
    const { size } = statSync(join(directory, name))
    return [makeSegment(directory, parsed.id, parsed.generation, size, open)]
  })
  files.sort((a, b) => a.id - b.id || a.generation - b.generation)
  const loaded = loadCheckpoint(directory, open)
  const checkpoint = loaded !== null && fits(loaded, files) ? loaded : null
  if (checkpoint === null) loaded?.file.release()
  const { chosen, left } =
    checkpoint === null ? await newestFiles(files) : filesOf(checkpoint, files)
  for (const { file } of left) rmSync(file.path, { force: true })
  const replay = new Replay(chosen, checkpoint)
  return { checkpoint, ...(await replay.run(checkpoint?.position ?? [0, 0])) }
}

/** Are all files there that the checkpoint speaks of, as long as they were? */
function fits({ segments, position }: LoadedCheckpoint, files: readonly Segment[]): boolean {
  return segments.every(([id, generation, size]) => {
    const file = files.find((one) => one.id === id && one.generation === generation)
    if (file === undefined) return false
    if (id < position[0]) return file.size === size
    return id > position[0] || file.size >= position[1]
  })
}

interface Choice {
  readonly chosen: readonly Segment[]
  /** What a rewrite that did not get to its end, or had just got there, has left behind. */
  readonly left: readonly Segment[]
}

function filesOf({ segments, position }: LoadedCheckpoint, files: readonly Segment[]): Choice {
  const known = new Set(segments.map(([id, generation]) => `${id}.${generation}`))
  const isChosen = ({ id, generation }: Segment): boolean =>
    known.has(`${id}.${generation}`) || id > position[0]
  return { chosen: files.filter(isChosen), left: files.filter((file) => !isChosen(file)) }
}

async function newestFiles(files: readonly Segment[]): Promise<Choice> {
  const newest = new Map<number, Segment>()
  for (const file of files) newest.set(file.id, file)
  for (const segment of [...newest.values()]) {
    const header = await readHeader(segment)
    for (const id of header?.replaces ?? []) if (id !== segment.id) newest.delete(id)
  }
  const chosen = [...newest.values()]
  return { chosen, left: files.filter((file) => !chosen.includes(file)) }
}

async function readHeader(segment: Segment): Promise<HeaderFrame | null> {
  if (segment.generation === 0) return null
  let header: HeaderFrame | null = null
  await scanSegment({ ...segment, size: Math.min(segment.size, 1 << 20) }, 0, (line, offset) => {
    const frame = offset === 0 ? decodeFrame(line) : null
    if (frame?.type === 'header') header = frame
  })
  return header
}

interface DamagedPlace extends Damage {
  readonly segment: number
  readonly offset: number
}

/** One reading of the journal into a new catalog. */
class Replay {
  readonly #catalog = new Catalog()
  readonly #reader = new RunReader(this.#catalog)
  readonly #damages: DamagedPlace[] = []
  readonly #deletedAt = new Map<string, Position>()
  #replayed = 0

  constructor(segments: readonly Segment[], checkpoint: LoadedCheckpoint | null) {
    for (const segment of segments) this.#catalog.segments.set(segment.id, segment)
    if (checkpoint !== null) this.#take(checkpoint)
  }

  #take({ runs, graves, quarantine, damaged }: LoadedCheckpoint): void {
    const catalog = this.#catalog
    for (const run of runs) {
      catalog.runs.add(run)
      for (const [id, octets] of pairs(run.spread)) this.#count(id, octets)
    }
    for (const [runId, segment, octets, dead] of graves) {
      catalog.graves.set(runId, { segment, octets, dead: new Set(dead) })
      this.#count(segment, octets)
    }
    for (const [runId, code, reason, segments] of quarantine) {
      catalog.setApart(runId, code, reason, segments)
    }
    for (const id of damaged) catalog.damaged.add(id)
  }

  #count(id: number, octets: number): void {
    const segment = this.#catalog.segments.get(id)
    if (segment !== undefined) segment.live += octets
  }

  async run(from: Position): Promise<Omit<OpenedJournal, 'checkpoint'>> {
    // Runs that have not ended are warm, always.
    for (const run of this.#catalog.runs.all()) {
      if (!isTerminal(run.status)) await this.#reader.warm(run)
    }
    const scanned = [...this.#catalog.segments.values()].filter(({ id }) => id >= from[0])
    const last = scanned.at(-1)
    let tail = 0
    for (const segment of scanned) {
      const start = segment.id === from[0] ? from[1] : 0
      const waiting: { frame: Frame; offset: number; length: number }[] = []
      const rest = await scanSegment(segment, start, (line, offset) => {
        this.#replayed += line.length + 1
        const frame = decodeFrame(line)
        if (frame === null) this.#noteDamage(segment, offset, line)
        else waiting.push({ frame, offset, length: line.length + 1 })
      })
      for (const { frame, offset, length } of waiting) {
        await this.#apply(frame, segment, offset, length)
      }
      if (segment === last) tail = segment.size - rest.length
      else if (rest.length > 0) this.#noteDamage(segment, segment.size - rest.length, rest)
    }
    this.#assess()
    return { catalog: this.#catalog, replayed: this.#replayed, scanned, tail }
  }

  async #apply(frame: Frame, segment: Segment, offset: number, length: number): Promise<void> {
    if (frame.type === 'header') {
      if (frame.version <= JOURNAL_VERSION) return
      throw new StoreError(
        'ERR_AGENT_STORE_VERSION',
        `${segment.file.path} was written by a newer version (format ${frame.version}, this one ` +
          `reads up to ${JOURNAL_VERSION}); install that version or use another directory`,
      )
    }
    const catalog = this.#catalog
    const { runId } = frame
    if (frame.type === 'delete') {
      catalog.addDeletion(runId, segment, length)
      this.#deletedAt.set(runId, [segment.id, offset])
      return
    }
    const { records } = frame
    const version = newestVersion(records)
    if (version > RECORD_VERSION) {
      const reads = `this one reads up to ${RECORD_VERSION}`
      const reason = `was written by a newer version (format ${version}, ${reads})`
      catalog.setApart(runId, 'ERR_AGENT_STORE_VERSION', reason, [segment.id])
    }
    if (catalog.quarantine.has(runId)) {
      catalog.setApart(runId, 'ERR_AGENT_STORE_CORRUPT', '', [segment.id])
      return
    }
    const run = catalog.runs.get(runId)
    const first = records[0]?.seq ?? 0
    const lastSeq = run?.lastSeq ?? 0
    // The checkpoint is newer than its position.
    if (first + records.length - 1 <= lastSeq) return
    if (first !== lastSeq + 1) {
      const missing = `record ${lastSeq + 1} is missing: the journal goes on with ${first}`
      catalog.setApart(runId, 'ERR_AGENT_STORE_CORRUPT', missing, [segment.id])
      return
    }
    try {
      if (run !== undefined) await this.#reader.warm(run)
      catalog.addRecords(runId, records, segment, offset, length)
    } catch (error) {
      const reason = `a record cannot be understood: ${(error as Error).message}`
      catalog.setApart(runId, 'ERR_AGENT_STORE_CORRUPT', reason, [segment.id])
    }
  }

  #noteDamage(segment: Segment, offset: number, line: Buffer): void {
    this.#damages.push({ segment: segment.id, offset, ...inspectDamage(line) })
  }

  /** Sets apart what the damage has touched, now that it is known what follows it. */
  #assess(): void {
    const catalog = this.#catalog
    for (const { segment, offset, runIds, certain } of this.#damages) {
      const where = `${catalog.segments.get(segment)?.file.path} at octet ${offset}`
      for (const runId of runIds) {
        const deleted = this.#deletedAt.get(runId)
        if (deleted !== undefined && isBehind(deleted, segment, offset)) continue
        // Says more than that a record is missing.
        const known = catalog.quarantine.get(runId)
        if (known !== undefined) known.reason = `${where} is damaged`
        catalog.setApart(runId, 'ERR_AGENT_STORE_CORRUPT', `${where} is damaged`, [segment])
      }
      if (certain) continue
      catalog.damaged.add(segment)
      const reason = `${where} is damaged, and the last records of this run may have been there`
      for (const run of catalog.runs.all()) {
        if (isTerminal(run.status)) continue
        const places = run.warm?.places ?? []
        const end: Position = [places.at(-PLACE) ?? 0, places.at(1 - PLACE) ?? 0]
        if (isBehind(end, segment, offset)) continue
        catalog.setApart(run.runId, 'ERR_AGENT_STORE_CORRUPT', reason, [segment])
      }
    }
  }
}

function isBehind(position: Position, segment: number, offset: number): boolean {
  return position[0] > segment || (position[0] === segment && position[1] > offset)
}
