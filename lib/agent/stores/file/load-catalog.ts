/**
 * Builds the catalog when a store is opened: from the index file and the part of the journal that
 * it does not cover, or from the whole journal.
 *
 * 1. Bytes after the last newline of the last segment were never acknowledged: they are dropped,
 *    unless the file `tail` counts them. So is what follows the end that the next segment fixes.
 * 2. Any other line with a wrong checksum is damage. The runs that it names, and runs that miss a
 *    sequence number, are quarantined. Where runs cannot be identified, as in a segment that is
 *    missing, so are all runs that have not ended and have no later record: they may have lost
 *    records.
 * 3. An index file that does not fit the segments is not used, but it remains a witness: runs of
 *    which the journal has less than the index file knew are quarantined.
 * 4. Of two files of one segment the one with the higher generation counts, if it is whole; it was
 *    complete before it got its name. An index file is only used with the files that it lists, and
 *    with no other rewritten ones.
 * 5. Nothing is changed in a directory that a newer version has written.
 *
 * @module
 */
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { StoreError } from '../../errors.js'
import { isTerminal, RECORD_VERSION } from '../../events.js'
import { Catalog, EXTENT, newestVersion, pairs } from './catalog.js'
import { checkChain, type Chain, type ChainedSegment } from './chain.js'
import type { OpenFiles } from './data-file.js'
import { readIndexFile, type LoadedIndexFile, type Position } from './index-file.js'
import {
  decodeLine,
  inspectDamage,
  JOURNAL_VERSION,
  type Damage,
  type JournalLine,
  type PreviousSegment,
  type RecordsLine,
} from './journal-line.js'
import type { DirectoryLock } from './lock.js'
import { isCorrupt, RunReader } from './run-reader.js'
import {
  isWhole,
  makeSegment,
  parseSegmentName,
  readHeader,
  scanSegment,
  type Segment,
  type SegmentHeader,
} from './segment.js'
import { readTail, type JournalTail } from './tail-file.js'
import { sizeWithoutTornGroup } from './torn-group.js'

/** The catalog of a journal, and what was found out on the way. */
export interface LoadedCatalog {
  readonly catalog: Catalog
  /** Null when it was missing or damaged. Runs may refer to it even if it does not fit. */
  readonly indexFile: LoadedIndexFile | null
  /** Does the index file fit the segments? */
  readonly isIndexed: boolean
  /** Bytes of lines that the index file did not cover. */
  readonly unindexedBytes: number
  /** Segments that were read and may not be durable yet. */
  readonly scanned: readonly Segment[]
  /** Bytes of the last segment to keep: less than its file has when its tail is torn. */
  readonly validBytes: number
  /** Of the valid bytes of the last segment; null when unknown. */
  readonly crc: number | null
  /** Does the last segment hold its first line only? */
  readonly isLastEmpty: boolean
  /** What the next segment has to name as the one before it. */
  readonly previous: PreviousSegment | null
  /** An id that no file has, and that no missing file had. */
  readonly nextId: number
}

/**
 * Loads the catalog.
 *
 * @throws {@link StoreError} when the journal is of a newer version.
 */
export async function loadCatalog(
  directory: string,
  open: OpenFiles,
  lock: DirectoryLock,
): Promise<LoadedCatalog> {
  const { disk } = open
  let survey = await surveyDirectory(directory, open)
  for (const name of disk.list(directory)) {
    if (!name.endsWith('.new')) continue
    lock.check()
    disk.remove(join(directory, name))
  }
  if (lock.isContested) {
    // What the other process has left unfinished cannot get its name any more.
    survey.indexFile?.file.release()
    survey = await surveyDirectory(directory, open)
  }
  const { files, links, obsolete, tail, indexFile, isIndexDamaged, isIndexed } = survey
  const chain = checkChain(links, tail === 'damaged' ? null : tail)
  const loader = new CatalogLoader(chain, indexFile, isIndexed, tail === 'damaged' ? null : tail)
  const { catalog } = loader
  if (isIndexDamaged) catalog.addProblem('the index file is damaged; it is built again')
  if (tail === 'damaged') catalog.addProblem(`${join(directory, 'tail')} is damaged`)
  const scan = await loader.scan()
  if (catalog.problems.size === 0) {
    for (const { file } of [...obsolete, ...chain.unused]) {
      lock.check()
      disk.remove(file.path)
    }
  }
  const known = tail === null || tail === 'damaged' ? 0 : tail.segment
  const ids = [...files.map(({ id }) => id), ...(indexFile?.segments ?? []).map(([id]) => id)]
  return {
    indexFile,
    isIndexed,
    ...scan,
    previous: previousOf(scan, catalog, tail === 'damaged' ? null : tail),
    nextId: Math.max(known, ...ids) + 1,
  }
}

interface Survey extends Choice {
  readonly files: readonly Segment[]
  readonly tail: JournalTail | 'damaged' | null
  readonly indexFile: LoadedIndexFile | null
  readonly isIndexDamaged: boolean
  readonly isIndexed: boolean
}

/** Reads what is in a directory, and changes nothing. */
async function surveyDirectory(directory: string, open: OpenFiles): Promise<Survey> {
  const files = listSegments(directory, open)
  const tail = readTail(open.disk, directory)
  const found = readIndexFile(directory, open)
  const isIndexDamaged = found === 'damaged'
  const indexFile = isIndexDamaged ? null : found
  const isIndexed = indexFile !== null && matches(indexFile, files)
  const choice = isIndexed ? await filesOf(indexFile, files) : await newestFiles(files)
  for (const { segment, header } of choice.links) checkVersion(segment, header)
  for (const segment of choice.obsolete) checkVersion(segment, await readHeader(segment))
  return { files, tail, indexFile, isIndexDamaged, isIndexed, ...choice }
}

function listSegments(directory: string, open: OpenFiles): Segment[] {
  const files = open.disk.list(directory).flatMap((name) => {
    const parsed = parseSegmentName(name)
    if (parsed === null) return []
    const { size } = open.disk.stat(join(directory, name))
    return [makeSegment(directory, parsed.id, parsed.generation, size, open)]
  })
  return files.sort((a, b) => a.id - b.id || a.generation - b.generation)
}

/** @throws {@link StoreError} with `ERR_AGENT_STORE_VERSION` when this code cannot read it. */
function checkVersion({ file }: Segment, header: SegmentHeader | null | undefined): void {
  const version = header?.line.version ?? 0
  if (version <= JOURNAL_VERSION) return
  throw new StoreError(
    'ERR_AGENT_STORE_VERSION',
    `${file.path} was written by a newer version (format ${version}, this one reads up to ` +
      `${JOURNAL_VERSION}); install that version or use another directory`,
  )
}

/** The loss of a tail stays visible: later openings find the same segment missing or too short. */
function previousOf(
  { validBytes, crc }: Pick<LoadedCatalog, 'validBytes' | 'crc'>,
  { segments }: Catalog,
  tail: JournalTail | null,
): PreviousSegment | null {
  const last = [...segments.values()].at(-1)
  const id = last?.id ?? 0
  if (tail !== null && tail.segment > 0) {
    const isShort = tail.segment === id && last?.generation === 0 && validBytes < tail.bytes
    if (tail.segment > id || isShort) return { ...tail, crc: null }
  }
  return last === undefined ? null : { segment: id, bytes: validBytes, crc }
}

/** Do all files that the index file lists exist, with at least the sizes that they had? */
function matches({ segments, position }: LoadedIndexFile, files: readonly Segment[]): boolean {
  return segments.every(([id, generation, size]) => {
    const file = files.find((one) => one.id === id && one.generation === generation)
    if (file === undefined) return false
    return file.size >= (id === position[0] ? position[1] : id < position[0] ? size : 0)
  })
}

interface Choice {
  readonly links: readonly ChainedSegment[]
  /** Left behind by a rewrite that a crash interrupted. */
  readonly obsolete: readonly Segment[]
}

async function filesOf(
  { segments, position }: LoadedIndexFile,
  files: readonly Segment[],
): Promise<Choice> {
  const sizes = new Map(segments.map(([id, generation, size]) => [`${id}.${generation}`, size]))
  const links: ChainedSegment[] = []
  const obsolete: Segment[] = []
  for (const segment of files) {
    const size = sizes.get(`${segment.id}.${segment.generation}`)
    if (segment.id > position[0]) continue
    if (size === undefined) obsolete.push(segment)
    else {
      if (segment.id < position[0]) segment.size = size
      links.push({ segment, header: undefined })
    }
  }
  for (const segment of files.filter(({ id }) => id > position[0])) {
    // A crash came before an index file listed this rewrite; what it replaces is still there.
    if (segment.generation > 0) obsolete.push(segment)
    else links.push({ segment, header: await readHeader(segment) })
  }
  return { links, obsolete }
}

async function newestFiles(files: readonly Segment[]): Promise<Choice> {
  const newest = new Map<number, ChainedSegment>()
  for (const segment of files) {
    const header = await readHeader(segment)
    const isUsable = header !== null && isWhole(segment, header)
    if (isUsable || !newest.has(segment.id)) newest.set(segment.id, { segment, header })
  }
  for (const { segment, header } of [...newest.values()]) {
    if (header === null || header === undefined || !isWhole(segment, header)) continue
    for (const id of header.line.replaces) if (id !== segment.id) newest.delete(id)
  }
  const links = [...newest.values()]
  const current = new Set(links.map(({ segment }) => segment))
  return { links, obsolete: files.filter((file) => !current.has(file)) }
}

interface LocatedDamage extends Damage {
  readonly segment: number
  readonly offset: number
  readonly problem: string
}

type Scan = Pick<
  LoadedCatalog,
  'catalog' | 'unindexedBytes' | 'scanned' | 'validBytes' | 'crc' | 'isLastEmpty'
>

/** Fills one catalog: from the index file, then from the part of the journal after it. */
class CatalogLoader {
  readonly catalog = new Catalog()
  readonly #reader = new RunReader(this.catalog)
  readonly #chain: Chain
  readonly #index: LoadedIndexFile | null
  readonly #isIndexed: boolean
  readonly #tail: JournalTail | null
  readonly #damages: LocatedDamage[] = []
  readonly #deletedAt = new Map<string, Position>()
  #scannedBytes = 0
  /** Lines of the segment that was scanned last, and the checksum of its bytes if known. */
  #lines = 0
  #crc: number | null = 0

  constructor(
    chain: Chain,
    index: LoadedIndexFile | null,
    isIndexed: boolean,
    tail: JournalTail | null,
  ) {
    this.#chain = chain
    this.#tail = tail
    this.#index = index
    this.#isIndexed = isIndexed
    for (const { segment } of chain.segments) this.catalog.segments.set(segment.id, segment)
    if (index !== null && isIndexed) this.#addIndexed(index)
  }

  #addIndexed({ runs, graves, quarantine, damaged }: LoadedIndexFile): void {
    const { catalog } = this
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
    const segment = this.catalog.segments.get(id)
    if (segment !== undefined) segment.live += bytes
  }

  /** Adds everything that the index file does not cover. */
  async scan(): Promise<Scan> {
    const { catalog } = this
    const [from, start] = this.#isIndexed ? (this.#index?.position ?? [0, 0]) : [0, 0]
    // Runs that have not ended are always warm.
    for (const run of catalog.runs.all()) {
      if (isTerminal(run.status) || catalog.quarantined.has(run.runId)) continue
      await this.#reader.warm(run).catch(ignoreQuarantined)
    }
    this.#addGaps()
    const scanned = [...catalog.segments.values()].filter(({ id }) => id >= from)
    const last = scanned.at(-1)
    let validBytes = 0
    for (const segment of scanned) {
      const isResumed = segment.id === from
      this.#crc = isResumed && start > 0 ? (this.#index?.crc ?? null) : 0
      if (segment === last) await this.#cutTornGroup(segment, isResumed ? start : 0)
      const rest = await this.#scanSegment(segment, isResumed ? start : 0)
      if (segment === last) validBytes = segment.size -= rest.length
      else if (rest.length > 0) this.#addDamage(segment, segment.size - rest.length, rest)
      this.#checkContent(segment)
    }
    this.#quarantineDamaged()
    this.#compareWithIndex()
    const isLastEmpty = last !== undefined && last.id !== from && this.#isEmpty(last)
    const unindexedBytes = this.#scannedBytes
    return { catalog, unindexedBytes, scanned, validBytes, crc: this.#crc, isLastEmpty }
  }

  /** Does a segment of this format, which was scanned last, hold its first line only? */
  #isEmpty(segment: Segment): boolean {
    const link = this.#chain.segments.find((one) => one.segment === segment)
    const isCurrent = link?.header?.line.version === JOURNAL_VERSION && segment.generation === 0
    const isDamaged = this.#damages.some((one) => one.segment === segment.id)
    return isCurrent && this.#lines === 1 && !isDamaged
  }

  #addGaps(): void {
    const { segments, gaps } = this.#chain
    for (const { segment, offset, problem } of gaps) {
      const name = `segment ${segment} of the journal ${problem}`
      this.#damages.push({ segment, offset, problem: name, runIds: [], certain: false })
      // Its header shows the gap at later openings, so it must not be merged with others.
      const next = segments.find((link) => link.segment.id > segment)
      if (next !== undefined) this.catalog.damaged.add(next.segment.id)
    }
  }

  async #cutTornGroup(segment: Segment, start: number): Promise<void> {
    const tail = this.#tail
    if (tail?.segment !== segment.id || segment.generation > 0) return
    segment.size = await sizeWithoutTornGroup(segment, Math.max(start, tail.bytes))
  }

  /** Resolves with the bytes after the last newline. */
  async #scanSegment(segment: Segment, start: number): Promise<Buffer> {
    const found: { parsed: JournalLine; offset: number; length: number }[] = []
    this.#lines = 0
    const rest = await scanSegment(segment, start, (line, offset) => {
      this.#scannedBytes += line.length + 1
      this.#lines += 1
      if (this.#crc !== null) this.#crc = crc32(NEWLINE, crc32(line, this.#crc))
      const parsed = decodeLine(line)
      if (parsed === null) this.#addDamage(segment, offset, line)
      else found.push({ parsed, offset, length: line.length + 1 })
    })
    for (const { parsed, offset, length } of found) {
      if (parsed.type === 'records') {
        await this.#addRecords(parsed, segment, offset, length)
      } else if (parsed.type === 'delete') {
        this.catalog.addDeletion(parsed.runId, segment, length)
        this.#deletedAt.set(parsed.runId, [segment.id, offset])
      }
    }
    return rest
  }

  /** Intact lines, but not those that were there when the next segment was begun? */
  #checkContent({ id, size, file }: Segment): void {
    const expected = this.#chain.expected.get(id)
    if (expected === undefined || expected.crc === null || this.#crc === null) return
    const isKnown = this.#damages.some(({ segment }) => segment === id)
    if (isKnown || size !== expected.bytes || expected.crc === this.#crc) return
    const problem = `${file.path} is not the file that it was`
    this.#damages.push({ segment: id, offset: 0, problem, runIds: [], certain: false })
  }

  async #addRecords(
    { runId, records }: RecordsLine,
    segment: Segment,
    offset: number,
    length: number,
  ): Promise<void> {
    const { catalog } = this
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
    const problem = `${segment.file.path} at byte ${offset} is damaged`
    this.#damages.push({ segment: segment.id, offset, problem, ...inspectDamage(line) })
  }

  /** Quarantines the runs that the damage affects, once it is known what follows it. */
  #quarantineDamaged(): void {
    const { catalog } = this
    for (const { segment, offset, runIds, certain, problem } of this.#damages) {
      catalog.addProblem(problem)
      for (const runId of runIds) {
        const deleted = this.#deletedAt.get(runId)
        if (deleted !== undefined && isAfter(deleted, segment, offset)) continue
        // More precise than the missing record that the scan reported.
        const known = catalog.quarantined.get(runId)
        if (known !== undefined) known.reason = problem
        catalog.quarantine(runId, 'ERR_AGENT_STORE_CORRUPT', problem, [segment])
      }
      if (certain) continue
      catalog.damaged.add(segment)
      if (this.#isWitnessed(segment)) continue
      const reason = `${problem}, and the last records of this run may have been there`
      for (const run of catalog.runs.all()) {
        if (isTerminal(run.status)) continue
        const extents = run.warm?.extents ?? []
        const end: Position = [extents.at(-EXTENT) ?? 0, extents.at(1 - EXTENT) ?? 0]
        if (isAfter(end, segment, offset)) continue
        catalog.quarantine(run.runId, 'ERR_AGENT_STORE_CORRUPT', reason, [segment])
      }
    }
  }

  /** Does an index file that does not fit know all that the segment held? */
  #isWitnessed(segment: number): boolean {
    if (this.#isIndexed || this.#index === null) return false
    return segment < this.#index.position[0]
  }

  /** Quarantines the runs of which the index file knew more than the journal has. */
  #compareWithIndex(): void {
    const { catalog } = this
    if (this.#isIndexed || this.#index === null) return
    this.#deleteAgain(this.#index)
    for (const [runId, code, reason, segments] of this.#index.quarantine) {
      if (!this.#deletedAt.has(runId)) catalog.quarantine(runId, code, reason, segments)
    }
    for (const row of this.#index.runs) {
      const { runId, lastSeq } = row
      if (this.#deletedAt.has(runId) || catalog.quarantined.has(runId)) continue
      const run = catalog.runs.get(runId)
      if (run !== undefined && run.lastSeq >= lastSeq) continue
      if (run === undefined) catalog.runs.add(row)
      const range = `records ${(run?.lastSeq ?? 0) + 1} to ${lastSeq}`
      const reason = `${range} are missing from the journal`
      catalog.quarantine(runId, 'ERR_AGENT_STORE_CORRUPT', reason, [])
    }
  }

  /** Repeats deletions whose lines may be lost. */
  #deleteAgain({ graves, position }: LoadedIndexFile): void {
    const { catalog } = this
    const last = [...catalog.segments.values()].at(-1)
    for (const [runId] of graves) {
      const [id = 0, offset = 0] = catalog.runs.get(runId)?.warm?.extents ?? []
      const isNew = id > position[0] || (id === position[0] && offset >= position[1])
      if (last === undefined || isNew || this.#deletedAt.has(runId)) continue
      catalog.addDeletion(runId, last, 0)
      this.#deletedAt.set(runId, [last.id, 0])
    }
  }
}

const NEWLINE: Buffer = Buffer.from('\n')

/** The reader has quarantined the run, which is all that damage of one run leads to. */
function ignoreQuarantined(error: unknown): void {
  if (!isCorrupt(error)) throw error
}

function isAfter(position: Position, segment: number, offset: number): boolean {
  return position[0] > segment || (position[0] === segment && position[1] > offset)
}
