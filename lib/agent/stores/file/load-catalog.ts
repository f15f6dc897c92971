/**
 * Builds the catalog when a store is opened: from the index file and the part of the journal that
 * it does not cover, or from the whole journal.
 *
 * 1. Bytes after the last newline of the last segment were never acknowledged: they are dropped.
 * 2. Any other line with a wrong checksum is damage. The runs that it names, and runs that miss a
 *    sequence number, are quarantined. When its runs cannot be identified, so are all runs that
 *    have not ended and have no later record: they may have lost records.
 * 3. Of two files of one segment the one with the higher generation counts; it was complete before
 *    it got its name. But an index file is only used with exactly the files that it lists.
 *
 * @module
 */
import { join } from 'node:path'
import { StoreError } from '../../errors.js'
import { isTerminal, RECORD_VERSION } from '../../events.js'
import { Catalog, EXTENT, newestVersion, pairs } from './catalog.js'
import type { OpenFiles } from './data-file.js'
import { readIndexFile, type LoadedIndexFile, type Position } from './index-file.js'
import {
  decodeLine,
  inspectDamage,
  JOURNAL_VERSION,
  type Damage,
  type HeaderLine,
  type JournalLine,
  type RecordsLine,
} from './journal-line.js'
import { RunReader } from './run-reader.js'
import { makeSegment, parseSegmentName, scanSegment, type Segment } from './segment.js'

/** The catalog of a journal, and what was found out on the way. */
export interface LoadedCatalog {
  readonly catalog: Catalog
  /** Null when it was missing, damaged or did not match the segments. */
  readonly indexFile: LoadedIndexFile | null
  /** Bytes of lines that the index file did not cover. */
  readonly unindexedBytes: number
  /** Segments that were read and may not be durable yet. */
  readonly scanned: readonly Segment[]
  /** Bytes of the last segment to keep; less than its size when its tail is torn. */
  readonly validBytes: number
}

/** Loads the catalog. @throws {@link StoreError} when the journal is of a newer version. */
export async function loadCatalog(directory: string, open: OpenFiles): Promise<LoadedCatalog> {
  const { disk } = open
  const names = disk.list(directory)
  for (const name of names) {
    if (name.endsWith('.new')) disk.remove(join(directory, name))
  }
  const files = names.flatMap((name) => {
    const parsed = parseSegmentName(name)
    if (parsed === null) return []
    const { size } = disk.stat(join(directory, name))
    return [makeSegment(directory, parsed.id, parsed.generation, size, open)]
  })
  files.sort((a, b) => a.id - b.id || a.generation - b.generation)
  const found = readIndexFile(directory, open)
  const indexFile = found !== null && matches(found, files) ? found : null
  if (indexFile === null) found?.file.release()
  const { current, obsolete } =
    indexFile === null ? await newestFiles(files) : filesOf(indexFile, files)
  for (const { file } of obsolete) disk.remove(file.path)
  const loader = new CatalogLoader(current, indexFile)
  return { indexFile, ...(await loader.scan(indexFile?.position ?? [0, 0])) }
}

/** Do all files that the index file lists exist, with the sizes that they had? */
function matches({ segments, position }: LoadedIndexFile, files: readonly Segment[]): boolean {
  return segments.every(([id, generation, size]) => {
    const file = files.find((one) => one.id === id && one.generation === generation)
    if (file === undefined) return false
    if (id < position[0]) return file.size === size
    return id > position[0] || file.size >= position[1]
  })
}

interface Choice {
  readonly current: readonly Segment[]
  /** Left behind by a rewrite that a crash interrupted. */
  readonly obsolete: readonly Segment[]
}

function filesOf({ segments, position }: LoadedIndexFile, files: readonly Segment[]): Choice {
  const known = new Set(segments.map(([id, generation]) => `${id}.${generation}`))
  const isCurrent = ({ id, generation }: Segment): boolean =>
    known.has(`${id}.${generation}`) || id > position[0]
  return { current: files.filter(isCurrent), obsolete: files.filter((file) => !isCurrent(file)) }
}

async function newestFiles(files: readonly Segment[]): Promise<Choice> {
  const newest = new Map<number, Segment>()
  for (const file of files) newest.set(file.id, file)
  for (const segment of [...newest.values()]) {
    const header = await readHeader(segment)
    for (const id of header?.replaces ?? []) if (id !== segment.id) newest.delete(id)
  }
  const current = [...newest.values()]
  return { current, obsolete: files.filter((file) => !current.includes(file)) }
}

async function readHeader(segment: Segment): Promise<HeaderLine | null> {
  if (segment.generation === 0) return null
  let header: HeaderLine | null = null
  await scanSegment({ ...segment, size: Math.min(segment.size, 1 << 20) }, 0, (line, offset) => {
    const parsed = offset === 0 ? decodeLine(line) : null
    if (parsed?.type === 'header') header = parsed
  })
  return header
}

interface LocatedDamage extends Damage {
  readonly segment: number
  readonly offset: number
}

/** Fills one catalog: from the index file, then from the part of the journal after it. */
class CatalogLoader {
  readonly #catalog = new Catalog()
  readonly #reader = new RunReader(this.#catalog)
  readonly #damages: LocatedDamage[] = []
  readonly #deletedAt = new Map<string, Position>()
  #scannedBytes = 0

  constructor(segments: readonly Segment[], indexFile: LoadedIndexFile | null) {
    for (const segment of segments) this.#catalog.segments.set(segment.id, segment)
    if (indexFile !== null) this.#addIndexed(indexFile)
  }

  #addIndexed({ runs, graves, quarantine, damaged }: LoadedIndexFile): void {
    const catalog = this.#catalog
    for (const run of runs) {
      catalog.runs.add(run)
      for (const [id, bytes] of pairs(run.bytesBySegment)) this.#addLive(id, bytes)
    }
    for (const [runId, segment, bytes, dead] of graves) {
      catalog.tombstones.set(runId, { segment, bytes, dead: new Set(dead) })
      this.#addLive(segment, bytes)
    }
    for (const [runId, code, reason, segments] of quarantine) {
      catalog.quarantine(runId, code, reason, segments)
    }
    for (const id of damaged) catalog.damaged.add(id)
  }

  #addLive(id: number, bytes: number): void {
    const segment = this.#catalog.segments.get(id)
    if (segment !== undefined) segment.live += bytes
  }

  /** Adds everything from `from` to the end of the journal. */
  async scan(from: Position): Promise<Omit<LoadedCatalog, 'indexFile'>> {
    // Runs that have not ended are always warm.
    for (const run of this.#catalog.runs.all()) {
      if (!isTerminal(run.status)) await this.#reader.warm(run)
    }
    const scanned = [...this.#catalog.segments.values()].filter(({ id }) => id >= from[0])
    const last = scanned.at(-1)
    let validBytes = 0
    for (const segment of scanned) {
      const start = segment.id === from[0] ? from[1] : 0
      const rest = await this.#scanSegment(segment, start)
      if (segment === last) validBytes = segment.size - rest.length
      else if (rest.length > 0) this.#addDamage(segment, segment.size - rest.length, rest)
    }
    this.#quarantineDamaged()
    return { catalog: this.#catalog, unindexedBytes: this.#scannedBytes, scanned, validBytes }
  }

  /** Resolves with the bytes after the last newline. */
  async #scanSegment(segment: Segment, start: number): Promise<Buffer> {
    const found: { parsed: JournalLine; offset: number; length: number }[] = []
    const rest = await scanSegment(segment, start, (line, offset) => {
      this.#scannedBytes += line.length + 1
      const parsed = decodeLine(line)
      if (parsed === null) this.#addDamage(segment, offset, line)
      else found.push({ parsed, offset, length: line.length + 1 })
    })
    for (const { parsed, offset, length } of found) {
      if (parsed.type === 'header') checkFormat(parsed, segment)
      else if (parsed.type === 'records') await this.#addRecords(parsed, segment, offset, length)
      else {
        this.#catalog.addDeletion(parsed.runId, segment, length)
        this.#deletedAt.set(parsed.runId, [segment.id, offset])
      }
    }
    return rest
  }

  async #addRecords(
    { runId, records }: RecordsLine,
    segment: Segment,
    offset: number,
    length: number,
  ): Promise<void> {
    const catalog = this.#catalog
    const version = newestVersion(records)
    if (version > RECORD_VERSION) {
      const reads = `this one reads up to ${RECORD_VERSION}`
      const reason = `was written by a newer version (format ${version}, ${reads})`
      catalog.quarantine(runId, 'ERR_AGENT_STORE_VERSION', reason, [segment.id])
    }
    if (catalog.quarantined.has(runId)) {
      catalog.quarantine(runId, 'ERR_AGENT_STORE_CORRUPT', '', [segment.id])
      return
    }
    const run = catalog.runs.get(runId)
    const first = records[0]?.seq ?? 0
    const lastSeq = run?.lastSeq ?? 0
    // The index file already covered them: it may be newer than its position.
    if (first + records.length - 1 <= lastSeq) return
    if (first !== lastSeq + 1) {
      const missing = `record ${lastSeq + 1} is missing: the journal continues with ${first}`
      catalog.quarantine(runId, 'ERR_AGENT_STORE_CORRUPT', missing, [segment.id])
      return
    }
    try {
      if (run !== undefined) await this.#reader.warm(run)
      catalog.addRecords(runId, records, segment, offset, length)
    } catch (error) {
      const reason = `a record is invalid: ${(error as Error).message}`
      catalog.quarantine(runId, 'ERR_AGENT_STORE_CORRUPT', reason, [segment.id])
    }
  }

  #addDamage(segment: Segment, offset: number, line: Buffer): void {
    this.#damages.push({ segment: segment.id, offset, ...inspectDamage(line) })
  }

  /** Quarantines the runs that the damage affects, once it is known what follows it. */
  #quarantineDamaged(): void {
    const catalog = this.#catalog
    for (const { segment, offset, runIds, certain } of this.#damages) {
      const where = `${catalog.segments.get(segment)?.file.path} at byte ${offset}`
      for (const runId of runIds) {
        const deleted = this.#deletedAt.get(runId)
        if (deleted !== undefined && isAfter(deleted, segment, offset)) continue
        // More precise than the missing record that the scan reported.
        const known = catalog.quarantined.get(runId)
        if (known !== undefined) known.reason = `${where} is damaged`
        catalog.quarantine(runId, 'ERR_AGENT_STORE_CORRUPT', `${where} is damaged`, [segment])
      }
      if (certain) continue
      catalog.damaged.add(segment)
      const reason = `${where} is damaged, and the last records of this run may have been there`
      for (const run of catalog.runs.all()) {
        if (isTerminal(run.status)) continue
        const extents = run.warm?.extents ?? []
        const end: Position = [extents.at(-EXTENT) ?? 0, extents.at(1 - EXTENT) ?? 0]
        if (isAfter(end, segment, offset)) continue
        catalog.quarantine(run.runId, 'ERR_AGENT_STORE_CORRUPT', reason, [segment])
      }
    }
  }
}

function checkFormat({ version }: HeaderLine, { file }: Segment): void {
  if (version <= JOURNAL_VERSION) return
  throw new StoreError(
    'ERR_AGENT_STORE_VERSION',
    `${file.path} was written by a newer version (format ${version}, this one reads up to ` +
      `${JOURNAL_VERSION}); install that version or use another directory`,
  )
}

function isAfter(position: Position, segment: number, offset: number): boolean {
  return position[0] > segment || (position[0] === segment && position[1] > offset)
}
