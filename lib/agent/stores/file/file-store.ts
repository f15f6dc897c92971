/**
 * Runs in a directory, for one process.
 *
 *     lock                       names the process that writes here
 *     journal-00000007.0.jsonl   every record of every run, in order of arrival
 *     tail                       how far the journal reached at least
 *     checkpoint                 the index file: a summary of the journal
 *     objects/                   contents of files, by their hash; see `objects.ts`
 *     holdouts/                  held-out tests, encrypted, by run; see `holdouts.ts`
 *
 * 1. The journal is the truth. The index file, and everything in memory, are folds over it; the
 *    index file and `tail` are witnesses where a part of the journal is missing.
 * 2. An append is one line with a checksum: after a crash it is there as a whole, or not at all.
 * 3. Records become visible, and are acknowledged, only once they are durable.
 * 4. Damage affects the runs concerned and no others, and is reported; a failing disk fails the
 *    calls that meet it, and never the process.
 * 5. One process writes at a time. One that was stopped while another took over acknowledges
 *    nothing any more and fails every call.
 *
 * `docs/design/durability.md` explains why.
 *
 * @module
 */
import { orderOf } from '../../../internal/run-sorts.js'
import { cautiousTime, inSlices, sleep } from '../../../internal/time.js'
import { StoreError } from '../../errors.js'
import type { RunOwner, RunRecord, RunStatus } from '../../events.js'
import type { HoldoutStore } from '../../holdout-store.js'
import type { ObjectStore } from '../../object-store.js'
import type { RunHead } from '../../run-details.js'
import type { QuarantinedRun, RunPage, RunQuery, RunStore, StoreDamage } from '../../store.js'
import { checkPage } from '../append-checks.js'
import { checkQuery } from '../list-query.js'
import { copyHead } from '../../log/head.js'
import type { Catalog, StoredRun } from './catalog.js'
import { OpenFiles } from './data-file.js'
import { operationError, writeError } from './disk-errors.js'
import { makeDurableDirectory, probe, SystemDisk, type Disk } from './disk.js'
import { dropTrees } from './drop-trees.js'
import { makeDurable, replaceByCopy } from './durable-segments.js'
import { FileHoldouts } from './holdouts.js'
import { Journal } from './journal.js'
import { loadCatalog, type LoadedCatalog } from './load-catalog.js'
import { DirectoryLock, type LockHolder } from './lock.js'
import { Maintenance } from './maintenance.js'
import {
  resolveFileStoreOptions,
  type FileStoreOptions,
  type ResolvedFileStoreOptions,
} from './options.js'
import { FileObjects } from './objects.js'
import { quarantineError, RunReader, withProblem } from './run-reader.js'
import { RunWriter } from './run-writer.js'
import type { Segment } from './segment.js'
import { TailFile } from './tail-file.js'
import { verifySegments, type Verification } from './verify.js'

export type { FileStoreOptions } from './options.js'

/** Journals up to this size are verified before `open()` resolves, larger ones in background. */
const VERIFY_AT_OPEN_BYTES = 16 << 20
/** Pause after each chunk of a background verification, which leaves the disk to the runs. */
const VERIFY_PAUSE_MS = 10
/** Runs whose folders are read at once. */
const FOLDERS_PER_READ = 512

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
  readonly objects: ObjectStore
  readonly holdouts: HoldoutStore
  readonly #options: ResolvedFileStoreOptions
  /** For ages: a run is not dropped early because the time of day was set. */
  readonly #now: () => number
  readonly #disk: Disk
  readonly #objects: FileObjects
  readonly #holdouts: FileHoldouts
  readonly #process: LockHolder | undefined
  readonly #open: OpenFiles
  #parts: Parts | null = null
  /** Fields of all runs that are, or are being, read where they were null. */
  readonly #completed = new Map<'cwd' | 'metadata', Promise<void>>()
  #onRemoved: (here: boolean) => void = () => undefined
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
    this.#now = cautiousTime(this.#options.clock)
    this.#open = new OpenFiles(this.#disk)
    this.objects = this.#objects = new FileObjects({
      directory: this.#options.directory,
      disk: this.#disk,
      onDamage: (problem) => this.#warn(problem),
    })
    this.holdouts = this.#holdouts = new FileHoldouts(this.#options.directory, this.#disk)
  }

  get closedFolders(): readonly string[] {
    return [this.#options.directory]
  }

  get dataFolder(): string {
    return this.#options.directory
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
    const { directory, segmentBytes } = this.#options
    makeDurableDirectory(this.#disk, directory)
    const lock = DirectoryLock.acquire(directory, this.#disk, this.#process)
    try {
      const loaded = await loadCatalog(directory, this.#open, lock)
      const { catalog, indexFile, isIndexed, unindexedBytes } = loaded
      this.#objects.open(lock)
      catalog.addUnreadable()
      const { runs, quarantined } = catalog
      this.#holdouts.open(lock, (id) => runs.get(id) !== undefined || quarantined.has(id))
      this.#reportDamage(catalog)
      const onDamaged = (runId: string): void => this.#warn(quarantineError(runId, catalog))
      const reader = new RunReader(catalog, onDamaged)
      // Without an index file that fits, every line was just read and checked.
      if (isIndexed) await this.#verify(catalog, reader)
      const journal = await this.#openJournal(loaded, lock)
      const files = { directory, segmentBytes, disk: this.#disk, open: this.#open, lock }
      const parts = { ...files, catalog, journal, reader }
      const maintenance = new Maintenance(parts, indexFile, unindexedBytes)
      const writer = new RunWriter({
        catalog,
        journal,
        reader,
        onEnd: () => this.#dropExpired(),
        onDead: (bytes) => maintenance.addDead(bytes),
      })
      return { lock, catalog, reader, writer, journal, maintenance }
    } catch (error) {
      lock.release()
      throw error
    }
  }

  async #openJournal(loaded: LoadedCatalog, lock: DirectoryLock): Promise<Journal> {
    const { catalog, scanned, validBytes, witnessedBytes } = loaded
    const { crc, isLastEmpty, previous, nextId } = loaded
    const { directory, segmentBytes, sync } = this.#options
    const last = [...catalog.segments.values()].at(-1)
    const files = { directory, disk: this.#disk, lock }
    // Records that were read become visible now, so they must survive a loss of power.
    for (const [index, segment] of scanned.entries()) {
      const length = segment === last ? validBytes : segment.size
      // The last one, or the one before it: the other process may just have begun the last one.
      const isShared = lock.isContested && index >= scanned.length - 2
      if (isShared) await replaceByCopy(segment, length, files)
      else if (segment !== last) await makeDurable(segment, files)
      else await makeDurable(segment, files, [witnessedBytes, length])
    }
    const tail = await TailFile.open(this.#disk, directory, lock)
    const options = {
      directory,
      segmentBytes,
      sync,
      lock,
      tail,
      disk: this.#disk,
      open: this.#open,
      onSegment: (segment: Segment) => void catalog.segments.set(segment.id, segment),
      onGroup: () => this.#afterGroup(),
      backlog: () => this.#parts?.maintenance.backlog ?? null,
    }
    // No need for another file if there is nothing in the last one.
    const isReusable = isLastEmpty && crc !== null && !lock.isContested
    try {
      if (last !== undefined && isReusable) return await Journal.resume(options, last, crc)
      return await Journal.open(options, nextId, previous)
    } catch (error) {
      tail.close()
      throw error
    }
  }

  async #verify(catalog: Catalog, reader: RunReader): Promise<void> {
    const size = [...catalog.segments.values()].reduce((sum, segment) => sum + segment.size, 0)
    const isClosed = (): boolean => this.#state === 'closed'
    const steps: Verification = {
      onDamaged: (runId) => this.#warn(quarantineError(runId, catalog)),
      onProblem: (problem) => {
        catalog.addProblem(problem)
        this.#warn(new StoreError('ERR_AGENT_STORE_CORRUPT', problem))
      },
      isClosed,
    }
    if (size <= VERIFY_AT_OPEN_BYTES) return verifySegments(catalog, reader, steps)
    const pause = async (): Promise<void> => {
      if (!isClosed()) await sleep(VERIFY_PAUSE_MS)
    }
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
    const { catalog } = this.#use()
    checkQuery(query)
    const { cwd, endReason = [], metadata, sort } = query
    const { field } = orderOf(sort)
    if (cwd !== undefined || field === 'cwd') await this.#complete('cwd')
    const hasReasons = endReason.length > 0 || field === 'end_reason'
    if (hasReasons || metadata !== undefined) await this.#complete('metadata')
    const { runs, next } = await inSlices(catalog.runs.page(query))
    const { reader } = this.#use()
    const heads = await this.#tryRead(() => reader.heads(runs))
    if (catalog.quarantined.size === 0) return { heads, next }
    return { heads: heads.map((head) => withProblem(head, catalog)), next }
  }

  /**
   * Writes and syncs a small file next to the journal, then removes it.
   *
   * @throws {@link StoreError} when the disk is full, failing or read-only, or the directory gone.
   */
  async check(): Promise<void> {
    const { lock } = this.#use()
    const { directory } = this.#options
    try {
      lock.check()
      await probe(this.#disk, directory)
    } catch (error) {
      throw operationError(`cannot write to ${directory}`, error)
    }
  }

  async counts(): Promise<Readonly<Record<RunStatus, number>>> {
    const { runs, quarantined } = this.#use().catalog
    const counts = runs.counts()
    for (const runId of quarantined.keys()) {
      const run = runs.get(runId)
      if (run !== undefined) counts[run.status] -= 1
    }
    return counts
  }

  async findByKey(owner: RunOwner, key: string, since: number): Promise<RunHead | null> {
    const { catalog, reader } = this.#use()
    const run = catalog.runs.findByKey(owner, key, since)
    if (run === undefined) return null
    return this.#readRun(run, () => reader.use(run, ({ head }) => copyHead(head)), null)
  }

  async hasForeignRun(folder: string, tenant: string | null): Promise<boolean> {
    const { runs } = this.#use().catalog
    if (!runs.hasOtherTenants(tenant)) return false
    await this.#complete('cwd')
    return runs.hasForeignRun(folder, tenant)
  }

  async operating(): Promise<readonly string[]> {
    return this.#use().catalog.runs.operating()
  }

  async delete(runId: string): Promise<void> {
    await this.#deleteRun(this.#use().writer, runId)
  }

  onRemoved(listener: (here: boolean) => void): void {
    this.#onRemoved = listener
  }

  /** What belongs to the run follows it: a crash in between leaves that to the next start. */
  async #deleteRun(writer: RunWriter, runId: string): Promise<void> {
    await writer.delete(runId)
    await this.#holdouts.remove(runId)
    this.#onRemoved(true)
  }

  /** Runs that cannot be used because records of theirs are damaged or of a newer version. */
  get quarantined(): readonly QuarantinedRun[] {
    const { quarantined } = this.#use().catalog
    return [...quarantined].map(([runId, { reason }]) => ({ runId, reason }))
  }

  damage(): StoreDamage {
    const { problems } = this.#use().catalog
    return { runs: this.quarantined, files: [...problems, ...this.#objects.problems] }
  }

  /** Aborted once another process has taken the directory over. */
  get lost(): AbortSignal | undefined {
    return this.#parts?.lock.lost
  }

  /**
   * Reclaims the space of deleted runs and writes the index file now. The store does both by itself
   * as the journal grows.
   *
   * @throws {@link StoreError} when writing fails; nothing is lost then.
   */
  async compact(): Promise<void> {
    const { maintenance, journal, lock } = this.#use()
    try {
      await maintenance.run()
    } catch (error) {
      if (lock.isLost()) throw lock.lost.reason
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
    await this.#objects.close()
    this.#holdouts.close()
    await journal.drain()
    await this.#verification
    try {
      await maintenance.finish()
    } catch (error) {
      // Costs only time: the next start reads more of the journal.
      if (!lock.lost.aborted) this.#warn(writeError(error, journal.segment.file))
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
    parts.lock.lost.throwIfAborted()
    if (runId !== undefined && parts.catalog.quarantined.has(runId)) {
      throw quarantineError(runId, parts.catalog)
    }
    return parts
  }

  /** Reads what is null of runs whose index was written by a version that did not need it. */
  async #complete(field: 'cwd' | 'metadata'): Promise<void> {
    const known = this.#completed.get(field)
    if (known !== undefined) return await known
    const reading = this.#readNull(field)
    this.#completed.set(field, reading)
    try {
      await reading
    } catch (error) {
      this.#completed.delete(field)
      throw error
    }
  }

  async #readNull(field: 'cwd' | 'metadata'): Promise<void> {
    const { catalog, reader } = this.#use()
    const unknown = catalog.runs.all().filter((run) => run[field] === null).reverse()
    for (let i = 0; i < unknown.length; i += FOLDERS_PER_READ) {
      const page = unknown.slice(i, i + FOLDERS_PER_READ)
      for (const head of await this.#tryRead(() => reader.heads(page))) {
        const run = catalog.runs.get(head.details.run_id)
        if (run !== undefined) catalog.runs.complete(run, head)
      }
    }
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

  #reportDamage(catalog: Catalog): void {
    for (const problem of catalog.problems) {
      this.#warn(new StoreError('ERR_AGENT_STORE_CORRUPT', problem))
    }
    for (const runId of catalog.quarantined.keys()) this.#warn(quarantineError(runId, catalog))
  }

  #dropExpired(): void {
    const { retain } = this.#options
    if (retain.runs === undefined && retain.days === undefined) return
    const parts = this.#parts
    if (this.#state !== 'open' || parts === null) return
    dropTrees(parts.catalog.runs.expired(retain, this.#now()), {
      ...parts,
      deleteRun: (runId) => this.#deleteRun(parts.writer, runId),
      onFailure: (error) => this.#warn(error),
    })
  }

  #afterGroup(): void {
    const parts = this.#parts
    if (this.#state !== 'open' || parts === null || !parts.maintenance.isDue()) return
    parts.maintenance.run().catch((error: unknown) => {
      if (parts.lock.lost.aborted) return
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
