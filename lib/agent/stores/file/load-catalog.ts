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
 * 4. Nothing is changed in a directory that a newer version has written.
 *
 * @module
 */
import { join } from 'node:path'
import { crc32 } from '../../../internal/hash.js'
import { isTerminal, RECORD_VERSION } from '../../events.js'
import {
  Catalog,
  EXTENT,
  extentAt,
  newestVersion,
  pairs,
  type StoredRun,
} from './catalog.js'
import { checkChain, type Chain } from './chain.js'
import type { OpenFiles } from './data-file.js'
import type { LoadedIndexFile, Position } from './index-file.js'
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
import { ignoreCorrupt, RunReader } from './run-reader.js'
import { scanSegment, type Segment } from './segment.js'
import { surveyDirectory } from './survey.js'
import type { JournalTail } from './tail-file.js'
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
  /** How many of them have been synced for certain. */
  readonly witnessedBytes: number
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
  for (const { id, generation } of files) catalog.noteGeneration(id, generation)
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

interface LocatedDamage extends Damage {
  readonly segment: number
  readonly offset: number
  /** Offset after the damaged bytes. */
  end: number
  readonly problem: string
}

type Scan = Pick<
  LoadedCatalog,
  | 'catalog'
  | 'crc'
  | 'isLastEmpty'
  | 'scanned'
  | 'unindexedBytes'
  | 'validBytes'
  | 'witnessedBytes'
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
      await this.#reader.warm(run).catch(ignoreCorrupt)
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
    if (this.#isIndexed && this.#damages.length > 0) await this.#checkRows(from)
    this.#compareWithIndex()
    const isLastEmpty = last !== undefined && last.id !== from && this.#isEmpty(last)
    return {
      catalog,
      crc: this.#crc,
      isLastEmpty,
      scanned,
      unindexedBytes: this.#scannedBytes,
      validBytes,
      witnessedBytes: last === undefined ? 0 : Math.min(validBytes, this.#witnessed(last)),
    }
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
      const range = { segment, offset, end: Infinity }
      this.#damages.push({ ...range, problem: name, runIds: [], certain: false })
      // Its header shows the gap at later openings, so it must not be merged with others.
      const next = segments.find((link) => link.segment.id > segment)
      if (next !== undefined) this.catalog.damaged.add(next.segment.id)
    }
  }

  async #cutTornGroup(segment: Segment, start: number): Promise<void> {
    if (this.#tail === null || segment.generation > 0) return
    segment.size = await sizeWithoutTornGroup(segment, Math.max(start, this.#witnessed(segment)))
  }

  /** Bytes of the last segment that have been synced for certain. */
  #witnessed({ id }: Segment): number {
    return this.#tail?.segment === id ? this.#tail.bytes : 0
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
    const range = { segment: id, offset: 0, end: size }
    this.#damages.push({ ...range, problem, runIds: [], certain: false })
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
    const damage = inspectDamage(line)
    const end = offset + line.length + 1
    const last = this.#damages.at(-1)
    // However many newlines there are among bytes that name no run, they are one damage.
    const isAdjacent = last?.segment === segment.id && last.end === offset && !last.certain
    if (isAdjacent && damage.runIds.length === 0) {
      last.end = end
      return
    }
    const problem = `${segment.file.path} at byte ${offset} is damaged`
    this.#damages.push({ segment: segment.id, offset, end, problem, ...damage })
  }

  /** Quarantines the runs that the damage affects, once it is known what follows it. */
  #quarantineDamaged(): void {
    const { catalog } = this
    let latest: LocatedDamage | null = null
    for (const damage of this.#damages) {
      const { segment, offset, runIds, certain, problem } = damage
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
      const isLater = latest === null || isAfter([segment, offset], latest.segment, latest.offset)
      if (isLater) latest = damage
    }
    if (latest !== null) this.#quarantineUnfinished(latest)
  }

  /** Quarantines the runs that have not ended and have no record after the damage. */
  #quarantineUnfinished({ segment, offset, problem }: LocatedDamage): void {
    const { catalog } = this
    const reason = `${problem}, and the last records of this run may have been there`
    for (const run of catalog.runs.all()) {
      if (isTerminal(run.status) || isAfter(endOf(run), segment, offset)) continue
      catalog.quarantine(run.runId, 'ERR_AGENT_STORE_CORRUPT', reason, [segment])
    }
  }

  /** An index file may know records behind its position: quarantines runs that have lost them. */
  async #checkRows(from: number): Promise<void> {
    const { catalog } = this
    for (const run of catalog.runs.all()) {
      if (catalog.quarantined.has(run.runId)) continue
      if (![...pairs(run.bytesBySegment)].some(([id]) => id >= from)) continue
      await this.#reader.use(run, ({ extents }) => {
        for (let i = 0; i < extents.length; i += EXTENT) {
          const [id, offset, length] = extentAt(extents, i)
          if (offset + length <= (catalog.segments.get(id)?.size ?? 0)) continue
          const reason = 'some of its records are missing from the journal'
          return catalog.quarantine(run.runId, 'ERR_AGENT_STORE_CORRUPT', reason, [])
        }
      }).catch(ignoreCorrupt)
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
      // Whether this version can read the run, the journal has said.
      if (code === 'ERR_AGENT_STORE_VERSION' || this.#deletedAt.has(runId)) continue
      catalog.quarantine(runId, code, reason, segments)
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

  /**
   * Repeats deletions whose lines are lost. A run that the index file did not know any more was
   * deleted as well, but that is only inferred: it is quarantined.
   */
  #deleteAgain({ graves, runs, position, quarantine }: LoadedIndexFile): void {
    const { catalog } = this
    const last = [...catalog.segments.values()].at(-1)
    const deleted = new Set(graves.map(([runId]) => runId))
    const known = new Set([...runs.map(({ runId }) => runId), ...quarantine.map(([id]) => id)])
    for (const run of catalog.runs.all()) {
      const { runId } = run
      if (last === undefined || known.has(runId)) continue
      // Its last line is behind the index file: it is newer, or goes on.
      if (isAfter(endOf(run), position[0], position[1] - 1)) continue
      if (deleted.has(runId)) {
        catalog.addDeletion(runId, last, 0)
        this.#deletedAt.set(runId, [last.id, 0])
      } else {
        const reason = 'it was deleted, as far as the index file knows, and is in the journal again'
        catalog.quarantine(runId, 'ERR_AGENT_STORE_CORRUPT', reason, [])
      }
    }
  }
}

const NEWLINE: Buffer = Buffer.from('\n')

/** Where the last lines of a warm run begin. */
function endOf({ warm }: StoredRun): Position {
  const extents = warm?.extents ?? []
  return [extents.at(-EXTENT) ?? 0, extents.at(1 - EXTENT) ?? 0]
}

function isAfter(position: Position, segment: number, offset: number): boolean {
  return position[0] > segment || (position[0] === segment && position[1] > offset)
}
