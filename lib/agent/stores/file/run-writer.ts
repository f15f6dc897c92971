import { StoreError } from '../../errors.js'
import { isTerminal, type RunRecord } from '../../events.js'
import { checkAppend } from '../append-checks.js'
import type { Catalog, StoredRun } from './catalog.js'
import { encodeDeletion, encodeRecords } from './journal-line.js'
import type { Journal, PendingLine } from './journal.js'
import { quarantineError, type RunReader } from './run-reader.js'
import type { Segment } from './segment.js'

/** Collaborators of {@link RunWriter}. */
export interface RunWriterParts {
  readonly catalog: Catalog
  readonly journal: Journal
  readonly reader: RunReader
  /** Called when the last record of a run is durable. */
  readonly onEnd: () => void
  /** Called with the size of a run's lines after its deletion. */
  readonly onDead: (bytes: number) => void
}

/** Lines in flight of a run that is not in the catalog yet, or that is being deleted. */
interface InFlight {
  /** Seq of the last record in flight; 0 after a deletion. */
  lastSeq: number
  lines: number
}

/**
 * Sends appends and deletions to the journal and enters them into the catalog when they are
 * durable. One run may have several in flight; each is checked against the ones before it.
 */
export class RunWriter {
  readonly #parts: RunWriterParts
  /** Runs being created or deleted; for all others see {@link StoredRun.inFlight}. */
  readonly #inFlight = new Map<string, InFlight>()
  /** Cold runs being loaded; appends to such a run wait for it and then go on in order. */
  readonly #warming = new Map<StoredRun, Promise<unknown>>()

  constructor(parts: RunWriterParts) {
    this.#parts = parts
  }

  /** Resolves once the records are durable. */
  append(runId: string, records: readonly RunRecord[]): Promise<void> {
    const run = this.#parts.catalog.runs.get(runId)
    // While a run is being deleted, an append begins a new run of the same id, without a head.
    if (run !== undefined && run.warm === null && !this.#inFlight.has(runId)) {
      return this.#warmAndAppend(run, records.slice())
    }
    let line: PendingAppend
    try {
      line = this.#prepare(runId, run, records.slice())
    } catch (error) {
      return Promise.reject(error as Error)
    }
    return new Promise((resolve, reject) => {
      line.resolve = resolve
      line.reject = reject
      this.#parts.journal.add(line)
    })
  }

  async #warmAndAppend(run: StoredRun, records: readonly RunRecord[]): Promise<void> {
    const { catalog, reader } = this.#parts
    if (run.inFlight === 0) run.queuedSeq = run.lastSeq
    run.inFlight += 1
    let warming = this.#warming.get(run)
    if (warming === undefined) {
      warming = reader.warm(run).finally(() => this.#warming.delete(run))
      this.#warming.set(run, warming)
    }
    try {
      await warming
    } finally {
      run.inFlight -= 1
    }
    if (catalog.quarantined.has(run.runId)) throw quarantineError(run.runId, catalog)
    return this.append(run.runId, records)
  }

  #prepare(
    runId: string,
    run: StoredRun | undefined,
    records: readonly RunRecord[],
  ): PendingAppend {
    const inFlight = this.#inFlight.get(runId)
    let lastSeq = 0
    if (inFlight !== undefined) lastSeq = inFlight.lastSeq
    else if (run !== undefined) lastSeq = run.inFlight > 0 ? run.queuedSeq : run.lastSeq
    checkAppend(runId, records, lastSeq)
    const line = new PendingAppend(this, inFlight === undefined ? run : undefined, runId, records)
    lastSeq += records.length
    if (inFlight !== undefined) {
      inFlight.lastSeq = lastSeq
      inFlight.lines += 1
    } else if (run !== undefined) {
      run.queuedSeq = lastSeq
      run.inFlight += 1
    } else {
      this.#inFlight.set(runId, { lastSeq, lines: 1 })
    }
    return line
  }

  /** Resolves once the deletion is durable; immediately for an unknown run. */
  async delete(runId: string): Promise<void> {
    const { catalog, journal } = this.#parts
    const run = catalog.runs.get(runId)
    // Appends that wait for the run to be loaded were called first.
    const warming = run === undefined ? undefined : this.#warming.get(run)
    if (warming !== undefined) await warming.catch(() => {})
    const inFlight = this.#inFlight.get(runId)
    if (inFlight === undefined) {
      if (catalog.runs.get(runId) === undefined && !catalog.quarantined.has(runId)) return
      this.#inFlight.set(runId, { lastSeq: 0, lines: 1 })
    } else {
      inFlight.lastSeq = 0
      inFlight.lines += 1
    }
    const data = encodeDeletion(runId)
    return new Promise((resolve, reject) => {
      journal.add({
        runId,
        data,
        done: (segment) => {
          this.landed(runId, undefined)
          const bytes = catalog.addDeletion(runId, segment, data.length)
          this.#parts.onDead(bytes)
          resolve()
        },
        failed: (error) => {
          this.landed(runId, undefined)
          reject(error)
        },
      })
    })
  }

  /** Does the run have lines in flight? */
  isBusy(run: StoredRun): boolean {
    return run.inFlight > 0 || this.#inFlight.has(run.runId)
  }

  /** Counts a line as no longer in flight, be it durable or refused. */
  landed(runId: string, run: StoredRun | undefined): void {
    if (run !== undefined) {
      run.inFlight -= 1
      return
    }
    const inFlight = this.#inFlight.get(runId)
    if (inFlight === undefined) return
    inFlight.lines -= 1
    if (inFlight.lines === 0) this.#inFlight.delete(runId)
  }

  /** Adds durable records to the catalog. @throws {@link StoreError} when the run is damaged. */
  addRecords(
    runId: string,
    records: readonly RunRecord[],
    segment: Segment,
    offset: number,
    length: number,
  ): void {
    const { catalog, onEnd } = this.#parts
    let reason = ''
    if (!catalog.quarantined.has(runId)) {
      try {
        const { status } = catalog.addRecords(runId, records, segment, offset, length)
        if (isTerminal(status)) onEnd()
        return
      } catch (error) {
        reason = `a record is invalid: ${(error as Error).message}`
      }
    }
    catalog.quarantine(runId, 'ERR_AGENT_STORE_CORRUPT', reason, [segment.id])
    throw quarantineError(runId, catalog)
  }
}

/** One append in flight. A class rather than closures: there may be 100 000 a second. */
class PendingAppend implements PendingLine {
  readonly runId: string
  readonly data: Buffer
  resolve: () => void = () => {}
  reject: (error: unknown) => void = () => {}
  readonly #writer: RunWriter
  readonly #run: StoredRun | undefined
  readonly #records: readonly RunRecord[]

  constructor(
    writer: RunWriter,
    run: StoredRun | undefined,
    runId: string,
    records: readonly RunRecord[],
  ) {
    this.runId = runId
    this.data = encodeRecords(runId, records)
    this.#writer = writer
    this.#run = run
    this.#records = records
  }

  done(segment: Segment, offset: number): void {
    this.#writer.landed(this.runId, this.#run)
    try {
      this.#writer.addRecords(this.runId, this.#records, segment, offset, this.data.length)
      this.resolve()
    } catch (error) {
      this.reject(error)
    }
  }

  failed(error: StoreError): void {
    this.#writer.landed(this.runId, this.#run)
    this.reject(error)
  }
}
