/**
 * The index file: a summary of the journal up to a position in it, so that opening a store costs
 * what has happened since, not what ever happened. It may be removed at any time: the journal is
 * the truth.
 *
 * The file has four parts, all of them lines of JSON:
 *
 *     {"head":{…},"places":[…]}                 one per run, read on demand
 *     [[run_id,created,status,…],[…],…]         index fields of all runs, read at once
 *     {"checkpoint":1,"position":[7,81920],…}   the rest of the catalog
 *     {"at":1234567890,"crc":"0f3a9c21"}        offset and checksum of the part before this line
 *
 * It is written while runs go on, so what it holds of a run may be newer than its position; lines
 * behind that position which it already covers are skipped by sequence number.
 *
 * @module
 */
import { join } from 'node:path'
import { crc32 } from '../../../internal/hash.js'
import type { StoreErrorCode } from '../../errors.js'
import { isTerminal, RECORD_VERSION, type EndReason, type RunStatus } from '../../events.js'
import type { ChildRole } from '../../run-tree.js'
import { completeHead, type StoredHead } from '../../log/head.js'
import type { Catalog, ColdPart, StoredRun, WarmPart } from './catalog.js'
import type { ChildPlace } from '../indexed-run.js'
import { NO_KEYS } from '../list-query.js'
import { unreadableHead } from '../unreadable-head.js'
import { DataFile, type OpenFiles } from './data-file.js'
import type { Disk } from './disk.js'
import type { DirectoryLock } from './lock.js'

/** Version 2 came with that of the journal; code that knows only version 1 has to read that. */
const VERSION = 2
/** Name on disk. Like the keys below it dates from the first format, which all versions share. */
const NAME = 'checkpoint'
const ROWS_PER_LINE = 512
/** Bytes collected before they are written, and read at once when cold runs are copied. */
const CHUNK_BYTES = 1 << 20
/** Size of the last line, which is padded, so that it is found from the end of the file. */
const TRAILER_BYTES = 64
const DAMAGED = 'the index file is damaged'

/** A location in the journal: a segment's id and an offset in that segment. */
export type Position = readonly [segment: number, offset: number]

/** What the index file holds besides runs. The keys are those on disk. */
interface IndexContent {
  /** The journal is covered up to here. */
  readonly position: Position
  /** Id, generation and size of each segment at the time of writing. */
  readonly segments: readonly (readonly [number, number, number])[]
  /** Tombstones: run id, segment and size of the deletion, segments with lines of the run. */
  readonly graves: readonly (readonly [string, number, number, readonly number[]])[]
  readonly quarantine: readonly (readonly [string, StoreErrorCode, string, readonly number[]])[]
  readonly damaged: readonly number[]
  /** Checksum of the position's segment up to there; version 1 did not have it. */
  readonly crc?: number | null
}

/** An index file that was read and is intact. */
export interface LoadedIndexFile extends IndexContent {
  /** Newest record version that the writer knew. */
  readonly records: number
  readonly runs: readonly StoredRun[]
  /** Acquired; the caller releases it. */
  readonly file: DataFile
  readonly size: number
}

interface Footer extends IndexContent {
  /** Version of this format. */
  readonly checkpoint: number
  /** Newest record version that the writer knew. */
  readonly records: number
  readonly rows: readonly [offset: number, length: number, crc: number]
}

type Row = [
  string, number, RunStatus, number, number, string, string, string | null, string | null,
  string | null, number[], number, number, number, (string | null)?, boolean?,
  ((readonly [root: string, parent: string | null, role: ChildRole]) | null)?,
  (EndReason | null)?, (readonly string[])?,
]

/** Reads the index file of a directory; null when it is missing or of a newer version. */
export function readIndexFile(
  directory: string,
  open: OpenFiles,
): LoadedIndexFile | 'damaged' | null {
  const { disk } = open
  const path = join(directory, NAME)
  let fd: number
  try {
    fd = disk.open(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  try {
    const size = disk.size(fd)
    const footer = readFooter(disk, fd, size)
    if (footer === null) return null
    const [offset, length, crc] = footer.rows
    const rows = readPart(disk, fd, offset, length)
    if (crc32(rows) !== crc) return 'damaged'
    const file = new DataFile(path, open)
    const runs = parseRows(rows, file)
    return { ...footer, runs, file: file.acquire(), size }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== undefined) throw error
    // Whatever is wrong with it: the journal holds everything.
    return 'damaged'
  } finally {
    disk.close(fd)
  }
}

function readFooter(disk: Disk, fd: number, size: number): Footer | null {
  if (size < TRAILER_BYTES) throw new Error(DAMAGED)
  const last = readPart(disk, fd, size - TRAILER_BYTES, TRAILER_BYTES).toString()
  const trailer = JSON.parse(last) as { readonly at: number; readonly crc: number }
  const text = readPart(disk, fd, trailer.at, size - TRAILER_BYTES - trailer.at)
  if (crc32(text) !== trailer.crc) throw new Error(DAMAGED)
  const footer = JSON.parse(text.toString()) as Footer
  // Records of a newer version are only found by reading the journal.
  return footer.checkpoint <= VERSION && footer.records <= RECORD_VERSION ? footer : null
}

function readPart(disk: Disk, fd: number, offset: number, length: number): Buffer {
  const data = disk.readNow(fd, length, offset)
  if (data.length < length) throw new Error('the index file is shorter than its footer says')
  return data
}

function parseRows(text: Buffer, file: DataFile): StoredRun[] {
  const runs: StoredRun[] = []
  const shared = new Map<string, string>()
  // Runs with the same goal, model or owner share one string.
  const share = <T extends string | null>(value: T): T => {
    if (value === null) return value
    const known = shared.get(value)
    if (known !== undefined) return known as T
    shared.set(value, value)
    return value
  }
  let start = 0
  for (let end = text.indexOf(10); end !== -1; end = text.indexOf(10, start)) {
    for (const row of JSON.parse(text.toString('utf8', start, end)) as Row[]) {
      runs.push({
        runId: row[0],
        createdMs: row[1],
        goal: share(row[5]),
        modelName: share(row[6]),
        ownerId: share(row[7]),
        tenant: share(row[8]),
        key: row[9],
        // Files of earlier versions do not have it.
        cwd: share(row[14] ?? null),
        operates: row[15] ?? false,
        child: childPlace(row[16], share),
        status: share(row[2]),
        endedMs: row[3],
        endReason: share(row[17] ?? null),
        metadata: row[18]?.length === 0 ? NO_KEYS : (row[18] ?? null),
        lastSeq: row[4],
        bytesBySegment: row[10],
        inFlight: 0,
        queuedSeq: 0,
        warm: null,
        cold: { file, offset: row[11], length: row[12], crc: row[13] },
      })
    }
    start = end + 1
  }
  return runs
}

function placeOf(child: ChildPlace | null): NonNullable<Row[16]> | null {
  return child && [child.root, child.parent, child.role]
}

/** Rows of roots, and of earlier versions, do not have it. */
function childPlace(
  stored: Row[16],
  share: <T extends string | null>(value: T) => T,
): ChildPlace | null {
  if (stored == null) return null
  const [root, parent, role] = stored
  return { root: share(root), parent: share(parent), role: share(role) }
}

/** Reads head and extents of a cold run. @throws Error when the index file is damaged. */
export async function loadCold(cold: ColdPart): Promise<WarmPart> {
  cold.file.acquire()
  try {
    return parseCold(cold, await cold.file.read(cold.offset, cold.length))
  } finally {
    cold.file.release()
  }
}

/** As {@link loadCold}, from bytes that were already read. @throws Error when they are damaged. */
export function parseCold(cold: ColdPart, data: Buffer): WarmPart {
  if (crc32(data) !== cold.crc) throw new Error(DAMAGED)
  const { head, places } = JSON.parse(data.toString()) as { head: StoredHead; places: number[] }
  return { head: completeHead(head), extents: places }
}

/** Reads cold parts one after another; neighbours in the file share one read. */
export class ColdReader {
  readonly #chunk: number
  #file: DataFile | null = null
  #at = 0
  #data: Buffer = Buffer.alloc(0)

  /** @param chunk - bytes to read at once, unless a part is larger. */
  constructor(chunk: number) {
    this.#chunk = chunk
  }

  /** The bytes of a cold part, unchecked. */
  async read({ file, offset, length }: ColdPart): Promise<Buffer> {
    const end = this.#at + this.#data.length
    if (file !== this.#file || offset < this.#at || offset + length > end) {
      file.acquire()
      try {
        this.#data = await file.read(offset, Math.max(length, this.#chunk))
      } finally {
        file.release()
      }
      this.#file = file
      this.#at = offset
    }
    return this.#data.subarray(offset - this.#at, offset - this.#at + length)
  }
}

/** Collaborators of {@link writeIndexFile}. */
export interface IndexFileParts {
  readonly open: OpenFiles
  readonly disk: Disk
  readonly lock: DirectoryLock
  /** Reads a run from the journal; null when it is damaged there, too. */
  readonly readAgain: (run: StoredRun) => Promise<WarmPart | null>
}

/**
 * Writes the catalog as an index file and replaces the previous one. Ended runs are cold
 * afterwards. `position` must be durable in the journal; the caller makes the new name durable.
 *
 * @throws the system's error; the previous index file is then unchanged.
 */
export async function writeIndexFile(
  directory: string,
  catalog: Catalog,
  { position, crc: positionCrc }: Pick<IndexContent, 'position' | 'crc'>,
  { open, disk, lock, readAgain }: IndexFileParts,
): Promise<Pick<LoadedIndexFile, 'file' | 'size'>> {
  const draft = join(directory, `${NAME}.${lock.token}.new`)
  const path = join(directory, NAME)
  const fd = disk.open(draft, 'w')
  const file = new DataFile(path, open)
  const moved: { readonly run: StoredRun; readonly cold: ColdPart; readonly lastSeq: number }[] = []
  let size: number
  try {
    const out = new IndexFileWriter(fd, disk)
    const rows: Row[] = []
    const previous = new ColdReader(CHUNK_BYTES)
    for (const run of catalog.runs.all()) {
      if (catalog.runs.get(run.runId) !== run) continue
      let { warm } = run
      const { lastSeq, cold: before } = run
      let data = warm === null ? await previous.read(before as ColdPart) : encodeWarm(warm)
      if (warm === null && crc32(data) !== before?.crc) {
        // The journal has it all; or it is quarantined now, and what is left of it stays listed.
        warm = await readAgain(run)
        data = encodeWarm(warm ?? { head: unreadableHead(run.runId, run.child), extents: [] })
      }
      const crc = crc32(data)
      const cold = { file, offset: out.size, length: data.length, crc }
      moved.push({ run, cold, lastSeq })
      const row: Row = [
        run.runId, run.createdMs, run.status, run.endedMs, lastSeq, run.goal, run.modelName,
        run.ownerId, run.tenant, run.key, run.bytesBySegment.slice(), cold.offset, cold.length, crc,
        run.cwd, run.operates, placeOf(run.child),
      ]
      // Not known yet of a run whose row was written by an earlier version.
      if (run.metadata !== null) row.push(run.endReason, run.metadata)
      rows.push(row)
      if (out.add(data)) await out.flush()
    }
    await out.writeRows(rows)
    await out.writeFooter({
      checkpoint: VERSION,
      records: RECORD_VERSION,
      rows: [out.rowsAt, out.size - out.rowsAt, out.rowsCrc],
      ...describe(catalog, position),
      crc: positionCrc ?? null,
    })
    size = out.size
    await disk.sync(fd)
    lock.check()
    disk.rename(draft, path)
  } catch (error) {
    disk.remove(draft)
    throw error
  } finally {
    disk.close(fd)
  }
  // Kept open while runs point into it: the next index file takes the same name.
  file.acquire()
  for (const { run, cold, lastSeq } of moved) {
    if (run.warm === null) run.cold = cold
    else if (isTerminal(run.status) && run.lastSeq === lastSeq && run.inFlight === 0) {
      run.cold = cold
      run.warm = null
    }
  }
  return { file, size }
}

function encodeWarm({ head, extents }: WarmPart): Buffer {
  return Buffer.from(JSON.stringify({ head, places: extents }))
}

function describe(catalog: Catalog, position: Position): IndexContent {
  const segments = [...catalog.segments.values()]
  return {
    position,
    segments: segments.map(({ id, generation, size }) => [id, generation, size]),
    graves: [...catalog.tombstones].map(([id, { segment, bytes, dead }]) => [
      id, segment, bytes, [...dead],
    ]),
    quarantine: [...catalog.quarantined].map(([id, { code, reason, segments }]) => [
      id, code, reason, [...segments],
    ]),
    damaged: [...catalog.damaged],
  }
}

/** Collects lines and writes them in large chunks. */
class IndexFileWriter {
  size = 0
  rowsAt = 0
  rowsCrc = 0
  readonly #fd: number
  readonly #disk: Disk
  #parts: Buffer[] = []
  #pending = 0

  constructor(fd: number, disk: Disk) {
    this.#fd = fd
    this.#disk = disk
  }

  /** Adds a line; true when enough is collected for a {@link flush}. */
  add(line: Buffer): boolean {
    this.#parts.push(line, NEWLINE)
    this.size += line.length + 1
    this.#pending += line.length + 1
    return this.#pending >= CHUNK_BYTES
  }

  async flush(): Promise<void> {
    const data = Buffer.concat(this.#parts)
    const at = this.size - this.#pending
    this.#parts = []
    this.#pending = 0
    await this.#disk.write(this.#fd, data, at)
  }

  async writeRows(rows: readonly Row[]): Promise<void> {
    this.rowsAt = this.size
    for (let i = 0; i < rows.length; i += ROWS_PER_LINE) {
      const line = Buffer.from(JSON.stringify(rows.slice(i, i + ROWS_PER_LINE)))
      this.rowsCrc = crc32(NEWLINE, crc32(line, this.rowsCrc))
      if (this.add(line)) await this.flush()
    }
  }

  async writeFooter(footer: Footer): Promise<void> {
    const at = this.size
    const line = Buffer.from(JSON.stringify(footer))
    this.add(line)
    const trailer = JSON.stringify({ at, crc: crc32(NEWLINE, crc32(line)) })
    this.add(Buffer.from(trailer.padEnd(TRAILER_BYTES - 1)))
    await this.flush()
  }
}

const NEWLINE: Buffer = Buffer.from('\n')
