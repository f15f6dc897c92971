/**
 * Runs in a directory, for one process.
 *
 *     lock                       who writes here
 *     journal-00000007.0.jsonl   every record of every run, in the order in which they came
 *     checkpoint                 what the journal said when this was written
 *
 * 1. The journal is the truth. What is in memory, and the checkpoint, are folds over it.
 * 2. An append is one line with a checksum: after a crash it is there as a whole, or not at all.
 * 3. Nothing is visible that is not durable, and nothing is acknowledged before.
 * 4. A problem with one run stays with that run; a problem with the disk fails the calls that met
 *    it, and never the process.
 *
 * `docs/design/durability.md` tells why.
 *
 * @module
 */
import { chmodSync, closeSync, mkdirSync, openSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { StoreError } from '../../errors.js'
import type { RunOwner, RunRecord, RunStatus } from '../../events.js'
import type { RunHead } from '../../run-details.js'
import type { RunPage, RunQuery, RunStore } from '../../store.js'
import { checkPage } from '../append-checks.js'
import { copyHead } from '../../log/head.js'
import type { Catalog, StoredRun } from './catalog.js'
import { OpenFiles } from './data-file.js'
import { systemDisk, withoutSync, type Disk } from './disk.js'
import {
  resolveFileStoreOptions,
  type FileStoreOptions,
  type ResolvedFileStoreOptions,
} from './options.js'
import { asStoreError, Journal } from './journal.js'
import { DirectoryLock } from './lock.js'
import { Maintenance } from './maintenance.js'
import { openJournal, type OpenedJournal } from './open-journal.js'
import { refusal, RunReader } from './run-reader.js'
import { RunWriter } from './run-writer.js'
import type { Segment } from './segment.js'
import { verifySegment } from './verify.js'

export type { FileStoreOptions } from './options.js'

/** A run that cannot be used, and why. */
export interface QuarantinedRun {
  readonly runId: string
  readonly reason: string
}

/** Journals up to this size are verified before `open()` resolves, larger ones after it. */
const VERIFY_AT_OPEN = 16 << 20
/** Between two megabytes that are verified later. */
const VERIFY_PAUSE_MS = 10

/** File that `check()` writes, and its size. */
const PROBE = 'probe'
const PROBE_BYTES = 4_096

/** What an open store works with. */
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
  readonly #open = new OpenFiles()
  #parts: Parts | null = null
  #verification: Promise<void> = Promise.resolve()
  #state: 'new' | 'opening' | 'open' | 'closed' = 'new'
  #closing: Promise<void> | null = null

  /** @throws TypeError for an option that is wrong. */
  constructor(options: FileStoreOptions)
  /**
   * With another disk, for tests of what disks do.
   *
   * @internal
   */
  constructor(options: FileStoreOptions, disk: Disk | undefined)
  constructor(options: FileStoreOptions, disk: Disk = systemDisk) {
    this.#options = resolveFileStoreOptions(options)
    this.#disk = this.#options.sync === 'none' ? withoutSync(disk) : disk
  }

  async open(): Promise<void> {
    if (this.#state !== 'new') {
      throw new StoreError('ERR_AGENT_STORE', `the store was opened before and is ${this.#state}`)
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
    makeDirectory(directory)
    const lock = DirectoryLock.acquire(directory)
    try {
      const found = await openJournal(directory, this.#open)
      const { catalog } = found
      const reader = new RunReader(catalog)
      const journal = await this.#openJournal(found, { directory, segmentBytes, sync })
      const files = { directory, segmentBytes, disk: this.#disk, open: this.#open }
      const maintenance = new Maintenance(
        { ...files, catalog, journal, reader },
        found.checkpoint,
        found.replayed,
      )
      const writer = new RunWriter({
        catalog,
        journal,
        reader,
        onEnd: () => this.#dropExpired(),
        onDead: (octets) => maintenance.noteDead(octets),
      })
      await this.#verify(found, reader)
      return { lock, catalog, reader, writer, journal, maintenance }
    } catch (error) {
      lock.release()
      throw error
    }
  }

  async #openJournal(
    { catalog, scanned, tail }: OpenedJournal,
    options: Pick<ResolvedFileStoreOptions, 'directory' | 'segmentBytes' | 'sync'>,
  ): Promise<Journal> {
    const segments = [...catalog.segments.values()]
    const last = segments.at(-1)
    const usable = last !== undefined && last.generation === 0 && !catalog.pinned().has(last.id)
    // What was read is about to be shown: it must not be lost with the power.
    for (const segment of scanned) await this.#makeDurable(segment, segment === last ? tail : null)
    return Journal.open(
      {
        ...options,
        disk: this.#disk,
        open: this.#open,
        onSegment: (segment) => void catalog.segments.set(segment.id, segment),
        onGroup: () => this.#afterGroup(),
      },
      usable && tail > 0 ? { segment: last, tail } : null,
      (last?.id ?? 0) + 1,
    )
  }

  /** Cuts a segment to `length`, if that is given, and makes it durable. */
  async #makeDurable(segment: Segment, length: number | null): Promise<void> {
    const fd = openSync(segment.file.path, 'r+')
    try {
      if (length !== null && length < segment.size) {
        this.#disk.truncate(fd, length)
        segment.size = length
      }
      await this.#disk.sync(fd)
    } finally {
      closeSync(fd)
    }
  }

  async #verify({ catalog, checkpoint }: OpenedJournal, reader: RunReader): Promise<void> {
    if (checkpoint === null) return
    const segments = [...catalog.segments.values()]
    const size = segments.reduce((sum, segment) => sum + segment.size, 0)
    const verifyAll = async (pause?: () => Promise<void>): Promise<void> => {
      for (const segment of segments) {
        if (this.#state === 'closed') return
        // A segment that is gone was written anew, from lines that were checked.
        if (catalog.segments.get(segment.id) !== segment) continue
        for (const runId of await verifySegment(segment, catalog, reader, pause)) {
          this.#warn(refusal(runId, catalog))
        }
      }
    }
    if (size <= VERIFY_AT_OPEN) await verifyAll()
    else {
      // No hurry: others want the disk and this thread.
      const pause = (): Promise<void> =>
        new Promise((resolve) => {
          if (this.#state === 'closed') resolve()
          else setTimeout(resolve, VERIFY_PAUSE_MS)
        })
      this.#verification = verifyAll(pause).catch((error: unknown) => {
        if (this.#state !== 'closed') this.#warn(error)
      })
    }
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
   * Writes a few octets beside the journal and waits until they are on the medium.
   *
   * @throws {@link StoreError} when the disk is full, broken or read-only, or the directory gone.
   */
  async check(): Promise<void> {
    this.#use()
    const { directory } = this.#options
    const path = join(directory, PROBE)
    try {
      const fd = openSync(path, 'w', 0o600)
      try {
        await this.#disk.write(fd, Buffer.alloc(PROBE_BYTES), 0)
        await this.#disk.sync(fd)
      } finally {
        closeSync(fd)
        rmSync(path, { force: true })
      }
    } catch (error) {
      const problem = `cannot write to ${directory}: ${(error as Error).message}`
      throw new StoreError('ERR_AGENT_STORE', problem, { cause: error })
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

  /** Runs that cannot be used: their records are damaged, or of a newer version. */
  get quarantined(): readonly QuarantinedRun[] {
    const { quarantine } = this.#use().catalog
    return [...quarantine].map(([runId, { reason }]) => ({ runId, reason }))
  }

  /**
   * Gives back the space of deleted runs and writes a checkpoint now; the store does both by itself
   * from time to time.
   *
   * @throws {@link StoreError} when the disk does not allow it; nothing is lost then.
   */
  async compact(): Promise<void> {
    const { maintenance, journal } = this.#use()
    try {
      await maintenance.run()
    } catch (error) {
      throw asStoreError(error, journal.segment)
    }
  }

  /** Resolves once the whole journal has been verified; large ones are after `open()`. */
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
      // The next start reads more of the journal, that is all.
      this.#warn(asStoreError(error, journal.segment))
    }
    try {
      await journal.close()
      this.#open.closeAll()
    } finally {
      lock.release()
    }
  }

  /** Calls `close()`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** The parts of the open store. @throws when it is not open, or the run cannot be used. */
  #use(runId?: string): Parts {
    const parts = this.#parts
    if (this.#state !== 'open' || parts === null) {
      const what = this.#state === 'closed' ? 'is closed' : 'is not open yet; call open() first'
      throw new StoreError('ERR_AGENT_STORE', `the store ${what}`)
    }
    if (runId !== undefined && parts.catalog.quarantine.has(runId)) {
      throw refusal(runId, parts.catalog)
    }
    return parts
  }

  /** Reads something of a run; `gone` when it is deleted meanwhile. */
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
      if (error instanceof StoreError) throw error
      const problem = `cannot read from ${this.#options.directory}: ${(error as Error).message}`
      throw new StoreError('ERR_AGENT_STORE', problem, { cause: error })
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
      this.#warn(asStoreError(error, parts.journal.segment))
    })
  }

  #warn(error: unknown): void {
    const { directory, onWarning } = this.#options
    if (error instanceof StoreError) onWarning(error)
    else {
      const problem = `work in the background in ${directory} failed: ${(error as Error).message}`
      onWarning(new StoreError('ERR_AGENT_STORE', problem, { cause: error }))
    }
  }

  #asOpenError(error: unknown): unknown {
    if (error instanceof StoreError) return error
    if ((error as NodeJS.ErrnoException).code === undefined) return error
    const { directory } = this.#options
    const problem = `cannot use ${directory} as data directory: ${(error as Error).message}`
    return new StoreError('ERR_AGENT_STORE', problem, { cause: error })
  }
}

/** Makes the directory, for this user alone. */
function makeDirectory(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  try {
    chmodSync(directory, 0o700)
  } catch (error) {
    // It belongs to somebody else who lets us in; our files in it are closed to others anyway.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error
  }
}
