/**
 * The checkpoint: everything that is known about the journal up to a position in it, so that
 * opening a store costs what has happened since, not what ever happened. It may be removed at any
 * time; the journal is the truth.
 *
 * The file has four parts, all of them lines of JSON:
 *
 *     {"head":{…},"places":[…]}                 one for each run, read when it is asked for
 *     [[run_id,created,status,…],[…],…]         what runs are listed and found by, read at once
 *     {"checkpoint":1,"position":[7,81920],…}   the rest of the catalog
 *     {"at":1234567890,"crc":"0f3a9c21"}        where that last part begins, and its checksum
 *
 * It is written while runs go on. What it says of a run may thus be newer than its position; lines
 * behind the position that it knows already are skipped by their sequence numbers.
 *
 * @module
 */
import { closeSync, fstatSync, openSync, readSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { StoreErrorCode } from '../../errors.js'
import { isTerminal, RECORD_VERSION, type RunStatus } from '../../events.js'
import type { Catalog, ColdPart, StoredRun, WarmPart } from './catalog.js'
import { DataFile, type OpenFiles } from './data-file.js'
import type { Disk } from './disk.js'

const VERSION = 1
const NAME = 'checkpoint'
/** Rows in one line. */
const ROWS = 512
/** Octets collected before they are written, and read at once when cold runs are copied. */
const CHUNK = 1 << 20
/** Octets of the last line, which is padded. */
const TRAILER_LENGTH = 64

/** Where in the journal: a segment and an offset in it. */
export type Position = readonly [segment: number, offset: number]

/** What a checkpoint says besides its runs. */
export interface Checkpoint {
  readonly position: Position
  /** Segment, generation and size of each file that it speaks of. */
  readonly segments: readonly (readonly [number, number, number])[]
  readonly graves: readonly (readonly [string, number, number, readonly number[]])[]
  readonly quarantine: readonly (readonly [string, StoreErrorCode, string, readonly number[]])[]
  readonly damaged: readonly number[]
}

/** A checkpoint as it was read. */
export interface LoadedCheckpoint extends Checkpoint {
  readonly runs: readonly StoredRun[]
  /** Acquired. */
  readonly file: DataFile
  readonly octets: number
}

interface Footer extends Checkpoint {
  readonly checkpoint: number
  readonly records: number
  readonly rows: readonly [offset: number, length: number, crc: number]
}

type Row = [
  string, number, RunStatus, number, number, string, string, string | null, string | null,
  string | null, number[], number, number, number,
]

/** Reads the checkpoint of a directory; null when there is none that can be used. */
export function loadCheckpoint(directory: string, open: OpenFiles): LoadedCheckpoint | null {
  const path = join(directory, NAME)
  let fd: number
  try {
    fd = openSync(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  try {
    const octets = fstatSync(fd).size
    const footer = readFooter(fd, octets)
    if (footer === null) return null
    const [offset, length, crc] = footer.rows
    const rows = readPart(fd, offset, length)
    if (crc32(rows) !== crc) return null
    const file = new DataFile(path, open)
    const runs = parseRows(rows, file)
    return { ...footer, runs, file: file.acquire(), octets }
  } catch {
    // Whatever is wrong with it, the journal knows all of it.
    return null
  } finally {
    closeSync(fd)
  }
}

function readFooter(fd: number, size: number): Footer | null {
  if (size < TRAILER_LENGTH) return null
  const trailer = JSON.parse(readPart(fd, size - TRAILER_LENGTH, TRAILER_LENGTH).toString()) as {
    readonly at: number
    readonly crc: number
  }
  const text = readPart(fd, trailer.at, size - TRAILER_LENGTH - trailer.at)
  if (crc32(text) !== trailer.crc) return null
  const footer = JSON.parse(text.toString()) as Footer
  // Runs that a newer version has written must be looked at one by one.
  return footer.checkpoint === VERSION && footer.records <= RECORD_VERSION ? footer : null
}

function readPart(fd: number, offset: number, length: number): Buffer {
  const data = Buffer.allocUnsafeSlow(length)
  let done = 0
  while (done < length) {
    const count = readSync(fd, data, done, length - done, offset + done)
    if (count === 0) throw new Error('the checkpoint is shorter than it says')
    done += count
  }
  return data
}

function parseRows(text: Buffer, file: DataFile): StoredRun[] {
  const runs: StoredRun[] = []
  const shared = new Map<string, string>()
  // One string for all runs that have the same goal, model and owner.
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
        status: share(row[2]),
        endedMs: row[3],
        lastSeq: row[4],
        spread: row[10],
        busy: 0,
        nextSeq: 0,
        warm: null,
        cold: { file, offset: row[11], length: row[12], crc: row[13] },
      })
    }
    start = end + 1
  }
  return runs
}

/** Head and places of a cold run. @throws Error when the checkpoint does not hold them. */
export async function loadCold(cold: ColdPart): Promise<WarmPart> {
  cold.file.acquire()
  try {
    return parseCold(cold, await cold.file.read(cold.offset, cold.length))
  } finally {
    cold.file.release()
  }
}

/** The same from octets that were read already. */
export function parseCold(cold: ColdPart, data: Buffer): WarmPart {
  if (crc32(data) !== cold.crc) throw new Error('the checkpoint is damaged')
  return JSON.parse(data.toString()) as WarmPart
}

/** Reads cold parts one after another; those that lie side by side cost one read for many. */
export class ColdReader {
  readonly #chunk: number
  #file: DataFile | null = null
  #at = 0
  #data: Buffer = Buffer.alloc(0)

  /** Reads at least `chunk` octets at once. */
  constructor(chunk: number) {
    this.#chunk = chunk
  }

  /** The octets of a cold part, as they are. */
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

/** What {@link writeCheckpoint} made. */
export interface WrittenCheckpoint {
  /** Acquired. */
  readonly file: DataFile
  readonly octets: number
}

/**
 * Writes the catalog as a checkpoint and puts it in the place of the last one. Runs that have ended
 * are cold afterwards. `position` must be durable in the journal; the new name is not yet.
 *
 * @throws the system's error; the last checkpoint is then as it was.
 */
export async function writeCheckpoint(
  directory: string,
  catalog: Catalog,
  position: Position,
  open: OpenFiles,
  disk: Disk,
): Promise<WrittenCheckpoint> {
  const draft = join(directory, `${NAME}.new`)
  const path = join(directory, NAME)
  const fd = openSync(draft, 'w', 0o600)
  const file = new DataFile(path, open)
  const moved: { readonly run: StoredRun; readonly cold: ColdPart; readonly lastSeq: number }[] = []
  let octets: number
  try {
    const out = new Output(fd, disk)
    const rows: Row[] = []
    const reader = new ColdReader(CHUNK)
    for (const run of catalog.runs.all()) {
      const { warm, lastSeq } = run
      const data = warm === null ? await reader.read(run.cold as ColdPart) : encodeWarm(warm)
      const crc = crc32(data)
      const cold = { file, offset: out.size, length: data.length, crc }
      if (warm === null && crc !== run.cold?.crc) throw new Error('the checkpoint is damaged')
      moved.push({ run, cold, lastSeq })
      rows.push([
        run.runId, run.createdMs, run.status, run.endedMs, lastSeq, run.goal, run.modelName,
        run.ownerId, run.tenant, run.key, run.spread.slice(), cold.offset, cold.length, crc,
      ])
      if (out.add(data)) await out.flush()
    }
    await out.writeRows(rows)
    await out.writeFooter({
      checkpoint: VERSION,
      records: RECORD_VERSION,
      rows: [out.rowsAt, out.size - out.rowsAt, out.rowsCrc],
      ...describe(catalog, position),
    })
    octets = out.size
    await disk.sync(fd)
  } catch (error) {
    closeSync(fd)
    rmSync(draft, { force: true })
    throw error
  }
  closeSync(fd)
  renameSync(draft, path)
  // Open for as long as runs point into it: the next checkpoint has the same name.
  file.acquire()
  for (const { run, cold, lastSeq } of moved) {
    if (run.warm === null) run.cold = cold
    else if (isTerminal(run.status) && run.lastSeq === lastSeq && run.busy === 0) {
      run.cold = cold
      run.warm = null
    }
  }
  return { file, octets }
}

function encodeWarm({ head, places }: WarmPart): Buffer {
  return Buffer.from(JSON.stringify({ head, places }))
}

function describe(catalog: Catalog, position: Position): Checkpoint {
  const segments = [...catalog.segments.values()]
  return {
    position,
    segments: segments.map(({ id, generation, size }) => [id, generation, size]),
    graves: [...catalog.graves].map(([id, { segment, octets, dead }]) => [
      id, segment, octets, [...dead],
    ]),
    quarantine: [...catalog.quarantine].map(([id, apart]) => [
      id, apart.code, apart.reason, [...apart.segments],
    ]),
    damaged: [...catalog.damaged],
  }
}

/** Collects lines and writes them in large pieces. */
class Output {
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

  /** Adds a line; true when it is time to write. */
  add(line: Buffer): boolean {
    this.#parts.push(line, NEWLINE)
    this.size += line.length + 1
    this.#pending += line.length + 1
    return this.#pending >= CHUNK
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
    for (let i = 0; i < rows.length; i += ROWS) {
      const line = Buffer.from(JSON.stringify(rows.slice(i, i + ROWS)))
      this.rowsCrc = crc32(NEWLINE, crc32(line, this.rowsCrc))
      if (this.add(line)) await this.flush()
    }
  }

  async writeFooter(footer: Footer): Promise<void> {
    const at = this.size
    const line = Buffer.from(JSON.stringify(footer))
    this.add(line)
    const trailer = JSON.stringify({ at, crc: crc32(NEWLINE, crc32(line)) })
    this.add(Buffer.from(trailer.padEnd(TRAILER_LENGTH - 1)))
    await this.flush()
  }
}

const NEWLINE: Buffer = Buffer.from('\n')
