/**
 * Runs in a directory, for one process.
 *
 *     lock                       names the process that writes here
 *     journal-00000007.0.jsonl   every record of every run, in order of arrival
 *     checkpoint                 the index file: a summary of the journal
 *
 * 1. The journal is the truth. The index file, and everything in memory, are folds over it.
 * 2. An append is one line with a checksum: after a crash it is there as a whole, or not at all.
 * 3. Records become visible, and are acknowledged, only once they are durable.
 * 4. Damage affects the runs concerned and no others; a failing disk fails the calls that meet it,
 *    and never the process.
 *
 * `docs/design/durability.md` explains why.
 *
 * @module
 */
import { StoreError } from '../../errors.js'
import type { RunOwner, RunRecord, RunStatus } from '../../events.js'
import type { RunHead } from '../../run-details.js'
import type { QuarantinedRun, RunPage, RunQuery, RunStore, StoreDamage } from '../../store.js'
import { checkPage } from '../append-checks.js'
import { copyHead } from '../../log/head.js'
import type { Catalog, StoredRun } from './catalog.js'
import { OpenFiles } from './data-file.js'
import { operationError, writeError } from './disk-errors.js'
import { probe, SystemDisk, type Disk } from './disk.js'
import { Journal } from './journal.js'
import { loadCatalog, type LoadedCatalog } from './load-catalog.js'
import { DirectoryLock, type LockHolder } from './lock.js'
import { Maintenance } from './maintenance.js'
import {
  resolveFileStoreOptions,
  type FileStoreOptions,
  type ResolvedFileStoreOptions,
} from './options.js'
import { quarantineError, RunReader } from './run-reader.js'
import { RunWriter } from './run-writer.js'
import type { Segment } from './segment.js'
import { verifySegments, type Verification } from './verify.js'

export type { FileStoreOptions } from './options.js'

/** Journals up to this size are verified before `open()` resolves, larger ones in background. */
const VERIFY_AT_OPEN_BYTES = 16 << 20
/** Pause after each chunk of a background verification, which leaves the disk to the runs. */
const VERIFY_PAUSE_MS = 10

/** The components of an open store. */
interface Parts {
  readonly lock: DirectoryLock
  readonly catalog: Catalog
  readonly reader: RunReader
  readonly writer: RunWriter
  readonly journal: Journal
  readonly maintenance: Maintenance
}

/**
 * Keeps runs in files of a directory: durable, for one process at a time, with no server.
 *
 * @example
 * ```ts
 * import { FileStore } from 'runwright/agent'
 *
 * await using store = new FileStore({ directory: '/var/lib/runs', retain: { days: 90 } })
 * await store.open()
 * ```
 */
export class FileStore implements RunStore {
  readonly #options: ResolvedFileStoreOptions
  readonly #disk: Disk
  readonly #process: LockHolder | undefined
  readonly #open: OpenFiles
  #parts: Parts | null = null
  #verification: Promise<void> = Promise.resolve()
  #state: 'new' | 'opening' | 'open' | 'closed' = 'new'
  #closing: Promise<void> | null = null

  /** @throws TypeError that names an invalid option. */
  constructor(options: FileStoreOptions)
  /**
   * With another disk and as another process, for tests of disk faults and of two writers.
   *
   * @internal
   */
  constructor(options: FileStoreOptions, disk: Disk | undefined, process?: LockHolder)
  constructor(options: FileStoreOptions, disk?: Disk, process?: LockHolder) {
    this.#options = resolveFileStoreOptions(options)
    this.#disk = disk ?? new SystemDisk(this.#options.sync === 'group')
    this.#process = process
    this.#open = new OpenFiles(this.#disk)
  }

  async open(): Promise<void> {
    if (this.#state !== 'new') {
      const problem = `open() was already called, the store is ${this.#state}; create another one`
      throw new StoreError('ERR_AGENT_STORE', problem)
    }
    this.#state = 'opening'
    try {
      this.#parts = await this.#openParts()
      this.#state = 'open'
    } catch (error) {
      this.#state = 'closed'
      this.#open.closeAll()
      throw this.#asOpenError(error)
    }
    this.#dropExpired()
  }

  async #openParts(): Promise<Parts> {
    const { directory, segmentBytes, sync } = this.#options
    this.#disk.makeDirectory(directory)
    const lock = DirectoryLock.acquire(directory, this.#disk, this.#process)
    try {
      const loaded = await loadCatalog(directory, this.#open)
      const { catalog, indexFile, unindexedBytes } = loaded
      const reader = new RunReader(catalog)
      const journal = await this.#openJournal(loaded, { directory, segmentBytes, sync })
      const files = { directory, segmentBytes, disk: this.#disk, open: this.#open }
      const parts = { ...files, catalog, journal, reader }
      const maintenance = new Maintenance(parts, indexFile, unindexedBytes)
      const writer = new RunWriter({
        catalog,
        journal,
        reader,
        onEnd: () => this.#dropExpired(),
        onDead: (bytes) => maintenance.addDead(bytes),
      })
      // Without an index file every line was just read and checked.
      if (indexFile !== null) await this.#verify(catalog, reader)
      return { lock, catalog, reader, writer, journal, maintenance }
    } catch (error) {
      lock.release()
      throw error
    }
  }

  async #openJournal(
    { catalog, scanned, validBytes }: LoadedCatalog,
    options: Pick<ResolvedFileStoreOptions, 'directory' | 'segmentBytes' | 'sync'>,
  ): Promise<Journal> {
    const segments = [...catalog.segments.values()]
    const last = segments.at(-1)
    const usable = last !== undefined && last.generation === 0 && !catalog.pinned().has(last.id)
    // Records that were read become visible now, so they must survive a loss of power.
    for (const segment of scanned) {
      await this.#makeDurable(segment, segment === last ? validBytes : null)
    }
    return Journal.open(
      {
        ...options,
        disk: this.#disk,
        open: this.#open,
        onSegment: (segment) => void catalog.segments.set(segment.id, segment),
        onGroup: () => this.#afterGroup(),
      },
      usable && validBytes > 0 ? { segment: last, validBytes } : null,
      (last?.id ?? 0) + 1,
    )
  }

  /** Truncates a segment to `length`, unless that is null, and syncs it. */
  async #makeDurable(segment: Segment, length: number | null): Promise<void> {
    const fd = this.#disk.open(segment.file.path, 'r+')
    try {
      if (length !== null && length < segment.size) {
        this.#disk.truncate(fd, length)
        segment.size = length
      }
      await this.#disk.sync(fd)
    } finally {
      this.#disk.close(fd)
    }
  }

  async #verify(catalog: Catalog, reader: RunReader): Promise<void> {
    const size = [...catalog.segments.values()].reduce((sum, segment) => sum + segment.size, 0)
    const isClosed = (): boolean => this.#state === 'closed'
    const steps: Verification = {
      onDamaged: (runId) => this.#warn(quarantineError(runId, catalog)),
      isClosed,
    }
    if (size <= VERIFY_AT_OPEN_BYTES) return verifySegments(catalog, reader, steps)
    const pause = (): Promise<void> =>
      new Promise((resolve) => {
        if (isClosed()) resolve()
        else setTimeout(resolve, VERIFY_PAUSE_MS)
      })
    this.#verification = verifySegments(catalog, reader, { ...steps, pause }).catch(
      (error: unknown) => {
        if (!isClosed()) this.#warn(error)
      },
    )
  }

  append(runId: string, records: readonly RunRecord[]): Promise<void> {
    try {
      return this.#use(runId).writer.append(runId, records)
    } catch (error) {
      return Promise.reject(error as Error)
    }
  }

  async read(runId: string, after: number, limit: number): Promise<readonly RunRecord[]> {
    const { catalog, reader } = this.#use(runId)
    checkPage(after, limit)
    const run = catalog.runs.get(runId)
    if (run === undefined) return []
    return this.#readRun(run, () => reader.records(run, after, limit), [])
  }

  async head(runId: string): Promise<RunHead | null> {
    const { catalog, reader } = this.#use(runId)
    const run = catalog.runs.get(runId)
    if (run === undefined) return null
    return this.#readRun(run, () => reader.use(run, ({ head }) => copyHead(head)), null)
  }

  async list(query: RunQuery): Promise<RunPage> {
    const { catalog, reader } = this.#use()
    const { runs, next } = catalog.runs.page(query)
    return { heads: await this.#tryRead(() => reader.heads(runs)), next }
  }

  /**
   * Writes and syncs a small file next to the journal, then removes it.
   *
   * @throws {@link StoreError} when the disk is full, failing or read-only, or the directory gone.
   */
  async check(): Promise<void> {
    this.#use()
    const { directory } = this.#options
    try {
      await probe(this.#disk, directory)
    } catch (error) {
      throw operationError(`cannot write to ${directory}`, error)
    }
  }

  async counts(): Promise<Readonly<Record<RunStatus, number>>> {
    return this.#use().catalog.runs.counts()
  }

  async findByKey(owner: RunOwner, key: string, since: number): Promise<RunHead | null> {
    const { catalog, reader } = this.#use()
    const run = catalog.runs.findByKey(owner, key, since)
    if (run === undefined) return null
    return this.#readRun(run, () => reader.use(run, ({ head }) => copyHead(head)), null)
  }

  async delete(runId: string): Promise<void> {
    await this.#use().writer.delete(runId)
  }

  /** Runs that cannot be used because records of theirs are damaged or of a newer version. */
  get quarantined(): readonly QuarantinedRun[] {
    const { quarantined } = this.#use().catalog
    return [...quarantined].map(([runId, { reason }]) => ({ runId, reason }))
  }

  damage(): StoreDamage {
    return { runs: this.quarantined, files: [] }
  }

  /**
   * Reclaims the space of deleted runs and writes the index file now. The store does both by itself
   * as the journal grows.
   *
   * @throws {@link StoreError} when writing fails; nothing is lost then.
   */
  async compact(): Promise<void> {
    const { maintenance, journal } = this.#use()
    try {
      await maintenance.run()
    } catch (error) {
      throw writeError(error, journal.segment.file)
    }
  }

  /**
   * Resolves once the checksums of the whole journal have been verified: `open()` does so for a
   * small journal, a background task for a large one.
   */
  async verified(): Promise<void> {
    this.#use()
    await this.#verification
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#state = 'closed'
    const parts = this.#parts
    if (parts === null) return
    const { journal, maintenance, lock } = parts
    await journal.drain()
    await this.#verification
    try {
      await maintenance.finish()
    } catch (error) {
      // Costs only time: the next start reads more of the journal.
      this.#warn(writeError(error, journal.segment.file))
    }
    try {
      await journal.close()
      this.#open.closeAll()
    } finally {
      lock.release()
    }
  }

  /** For `await using`; the same as `close()`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** @throws {@link StoreError} when the store is not open or the run is quarantined. */
  #use(runId?: string): Parts {
    const parts = this.#parts
    if (this.#state !== 'open' || parts === null) {
      const what = this.#state === 'closed' ? 'is closed' : 'is not open yet; call open() first'
      throw new StoreError('ERR_AGENT_STORE', `the store ${what}`)
    }
    if (runId !== undefined && parts.catalog.quarantined.has(runId)) {
      throw quarantineError(runId, parts.catalog)
    }
    return parts
  }

  /** Resolves with `read()`, or with `gone` when the run is deleted meanwhile. */
  async #readRun<T>(run: StoredRun, read: () => Promise<T>, gone: T): Promise<T> {
    try {
      return await this.#tryRead(read)
    } catch (error) {
      const { catalog } = this.#use(run.runId)
      if (catalog.runs.get(run.runId) !== run) return gone
      throw error
    }
  }

  async #tryRead<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await read()
    } catch (error) {
      throw operationError(`cannot read from ${this.#options.directory}`, error)
    }
  }

  #dropExpired(): void {
    const { retain, clock } = this.#options
    if (retain.runs === undefined && retain.days === undefined) return
    const parts = this.#parts
    if (this.#state !== 'open' || parts === null) return
    for (const run of parts.catalog.runs.expired(retain, clock.now())) {
      if (parts.writer.isBusy(run)) continue
      parts.writer.delete(run.runId).catch((error: unknown) => this.#warn(error))
    }
  }

  #afterGroup(): void {
    const parts = this.#parts
    if (this.#state !== 'open' || parts === null || !parts.maintenance.isDue()) return
    parts.maintenance.run().catch((error: unknown) => {
      this.#warn(writeError(error, parts.journal.segment.file))
    })
  }

  #warn(error: unknown): void {
    const { directory, onWarning } = this.#options
    onWarning(operationError(`background work in ${directory} failed`, error))
  }

  #asOpenError(error: unknown): unknown {
    const isSystemError = (error as NodeJS.ErrnoException).syscall !== undefined
    if (!isSystemError) return error
    const problem = `cannot use ${this.#options.directory} as data directory`
    return new StoreError('ERR_AGENT_STORE', `${problem}: ${(error as Error).message}`, {
      cause: error,
    })
  }
}
