import { StoreError } from '../../errors.js'
import { isTerminal, type RunRecord } from '../../events.js'
import { checkAppend } from '../append-checks.js'
import type { Catalog, StoredRun } from './catalog.js'
import { encodeDelete, encodeRecords } from './journal-line.js'
import type { Journal, Line } from './journal.js'
import { refusal, type RunReader } from './run-reader.js'
import type { Segment } from './segment.js'

/** What {@link RunWriter} works with. */
export interface RunWriterParts {
  readonly catalog: Catalog
  readonly journal: Journal
  readonly reader: RunReader
  /** Called when a run has ended. */
  readonly onEnd: () => void
  /** Called with the octets of a run that was deleted. */
  readonly onDead: (octets: number) => void
}

/** Lines on their way of a run that the catalog does not know yet, or will soon forget. */
interface Queued {
  last: number
  count: number
}

/**
 * Puts appends and deletions on their way to the journal, and into the catalog when they are
 * durable. Several of one run may be on their way: each is checked against those before it.
 */
export class RunWriter {
  readonly #parts: RunWriterParts
  /** Runs that are being created or deleted; for others {@link StoredRun} counts. */
  readonly #queued = new Map<string, Queued>()
  /** Runs that are being read for those who append to them, in whose order they go on. */
  readonly #warming = new Map<StoredRun, Promise<unknown>>()

  constructor(parts: RunWriterParts) {
    this.#parts = parts
  }

  /** Resolves once the records are durable. */
  append(runId: string, records: readonly RunRecord[]): Promise<void> {
    const run = this.#parts.catalog.runs.get(runId)
    // One that is being deleted needs not be warm: it is another run that begins here.
    if (run !== undefined && run.warm === null && !this.#queued.has(runId)) {
      return this.#warmAndAppend(run, records.slice())
    }
    let line: AppendLine
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
    if (run.busy === 0) run.nextSeq = run.lastSeq
    run.busy += 1
    let warming = this.#warming.get(run)
    if (warming === undefined) {
      warming = reader.warm(run).finally(() => this.#warming.delete(run))
      this.#warming.set(run, warming)
    }
    try {
      await warming
    } finally {
      run.busy -= 1
    }
    if (catalog.quarantine.has(run.runId)) throw refusal(run.runId, catalog)
    return this.append(run.runId, records)
  }

  #prepare(runId: string, run: StoredRun | undefined, records: readonly RunRecord[]): AppendLine {
    const queued = this.#queued.get(runId)
    let last = 0
    if (queued !== undefined) last = queued.last
    else if (run !== undefined) last = run.busy > 0 ? run.nextSeq : run.lastSeq
    checkAppend(runId, records, last)
    const line = new AppendLine(this, queued === undefined ? run : undefined, runId, records)
    last += records.length
    if (queued !== undefined) {
      queued.last = last
      queued.count += 1
    } else if (run !== undefined) {
      run.nextSeq = last
      run.busy += 1
    } else {
      this.#queued.set(runId, { last, count: 1 })
    }
    return line
  }

  /** Resolves once the deletion is durable; at once for a run that is not known. */
  async delete(runId: string): Promise<void> {
    const { catalog, journal } = this.#parts
    const run = catalog.runs.get(runId)
    // Behind the appends that wait for it.
    const warming = run === undefined ? undefined : this.#warming.get(run)
    if (warming !== undefined) await warming.catch(() => {})
    const queued = this.#queued.get(runId)
    if (queued === undefined) {
      if (catalog.runs.get(runId) === undefined && !catalog.quarantine.has(runId)) return
      this.#queued.set(runId, { last: 0, count: 1 })
    } else {
      queued.last = 0
      queued.count += 1
    }
    const data = encodeDelete(runId)
    return new Promise((resolve, reject) => {
      journal.add({
        runId,
        data,
        done: (segment) => {
          this.leave(runId, undefined)
          const octets = catalog.addDeletion(runId, segment, data.length)
          this.#parts.onDead(octets)
          resolve()
        },
        failed: (error) => {
          this.leave(runId, undefined)
          reject(error)
        },
      })
    })
  }

  /** Is something of this run on its way? */
  isBusy(run: StoredRun): boolean {
    return run.busy > 0 || this.#queued.has(run.runId)
  }

  /** Notes that a line is on its way no more. */
  leave(runId: string, run: StoredRun | undefined): void {
    if (run !== undefined) {
      run.busy -= 1
      return
    }
    const queued = this.#queued.get(runId)
    if (queued === undefined) return
    queued.count -= 1
    if (queued.count === 0) this.#queued.delete(runId)
  }

  /** Notes records that are durable. @throws {@link StoreError} when the run cannot be used. */
  enter(
    runId: string,
    records: readonly RunRecord[],
    segment: Segment,
    offset: number,
    length: number,
  ): void {
    const { catalog, onEnd } = this.#parts
    let reason = ''
    if (!catalog.quarantine.has(runId)) {
      try {
        const { status } = catalog.addRecords(runId, records, segment, offset, length)
        if (isTerminal(status)) onEnd()
        return
      } catch (error) {
        reason = `a record cannot be understood: ${(error as Error).message}`
      }
    }
    catalog.setApart(runId, 'ERR_AGENT_STORE_CORRUPT', reason, [segment.id])
    throw refusal(runId, catalog)
  }
}

/** One append on its way. A class, not closures: there are a hundred thousand in a second. */
class AppendLine implements Line {
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
    this.#writer.leave(this.runId, this.#run)
    try {
      this.#writer.enter(this.runId, this.#records, segment, offset, this.data.length)
      this.resolve()
    } catch (error) {
      this.reject(error)
    }
  }

  failed(error: StoreError): void {
    this.#writer.leave(this.runId, this.#run)
    this.reject(error)
  }
}
