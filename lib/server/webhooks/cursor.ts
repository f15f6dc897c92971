/**
 * The progress of deliveries to one endpoint, durable in one file.
 *
 * 1. The file is a header and then lines, each with the whole progress of one run; the last line of
 *    a run counts. Lines are appended, and all that wait share one sync. Once they are more than
 *    what still counts, the file is replaced atomically by a short one.
 * 2. After a crash it holds an earlier state: an event may be delivered twice, with the same id,
 *    but is never lost.
 * 3. A disk that takes nothing stops no delivery. The file is written anew when that works again.
 *
 * @module
 */
import { constants } from 'node:fs'
import { mkdir, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Clock, Timer } from '../../internal/time.js'
import { describeError, warn } from '../../internal/errors.js'

/** How far the deliveries of an unfinished run have come. Times are epoch ms; 0 is unset. */
export interface Progress {
  /** `seq` of the last event that needs no more attempts. */
  seq: number
  /** When the run was created. */
  readonly created: number
  /** The first attempt to deliver the next event. */
  first: number
  /** Failed attempts to deliver it. */
  attempts: number
  /** It is not attempted again before this time. */
  next: number
  /** 1 once `run_end` needs no more attempts: only what becomes of its files may follow. */
  ended: number
}

/** A line of the file: unset fields are absent. */
interface Line extends Partial<Progress> {
  readonly run: string
  readonly done?: true
}

/** The first line of the file. */
interface Header {
  readonly version: 2
  /** Runs created earlier are not delivered. */
  readonly start: number
  /** The newest creation of a run that had been added. */
  readonly since: number
}

/** The whole file as earlier versions wrote it. */
interface Version1 {
  readonly version: 1
  readonly since: number
  readonly runs: Readonly<Record<string, number>>
}

/** Bytes of a complete file: written at once, and appended since. */
interface FileSize {
  readonly written: number
  appended: number
}

/** Runs may become known in another order than they were created, within this time. */
const OVERLAP_MS = 60_000
/** Bytes appended before the file is replaced by a short one, at least. */
const MIN_APPENDED = 65_536
/** Lines written at a time when the file is replaced. */
const CHUNK = 1_000
/** Until a failed write is repeated. */
const RETRY_MS = 5_000

export class WebhookCursor {
  readonly #path: string
  readonly #clock: Clock
  #start: number
  #since: number
  readonly #runs = new Map<string, Progress>()
  /** Creation of finished runs that a list of new runs may contain. */
  readonly #finished = new Map<string, number>()
  /** Runs whose progress differs from the file's. */
  readonly #dirty = new Set<string>()
  /** Null when the file is not complete: the next write replaces it. */
  #file: FileSize | null = null
  #current = Promise.resolve()
  #next: Promise<void> | null = null
  /** Set while the disk takes nothing. */
  #retry: Timer | null = null
  #warned = false

  private constructor(path: string, clock: Clock) {
    this.#path = path
    this.#clock = clock
    this.#start = this.#since = Math.floor(clock.now())
  }

  /**
   * Reads the file; without one, starts with runs created from now on.
   *
   * @throws Error when the file cannot be read or created, or has another format.
   */
  static async open(path: string, clock: Clock): Promise<WebhookCursor> {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    const cursor = new WebhookCursor(path, clock)
    const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null
      throw new Error(`webhooks: cannot read ${path}: ${error.message}`, { cause: error })
    })
    if (text === null) await cursor.#replace()
    else {
      cursor.#load(text)
      await cursor.save()
    }
    return cursor
  }

  /** Unfinished runs. */
  get runs(): ReadonlyMap<string, Readonly<Progress>> {
    return this.#runs
  }

  /** Epoch ms: runs created up to then are not delivered. */
  get start(): number {
    return this.#start - 1
  }

  /** Epoch ms: runs created up to then are known. */
  get known(): number {
    return Math.max(this.start, this.#since - OVERLAP_MS)
  }

  /** Adds a run, to be delivered from its first event on. */
  add(runId: string, created: number): void {
    if (this.#runs.has(runId) || this.#finished.has(runId)) return
    // The creation of a damaged run may be unknown.
    const time = Number.isFinite(created) ? created : 0
    this.#since = Math.max(this.#since, time)
    this.#runs.set(runId, { seq: 0, created: time, first: 0, attempts: 0, next: 0, ended: 0 })
    this.#dirty.add(runId)
  }

  /** Adds a run that was finished, for the events behind `seq`. */
  addAgain(runId: string, created: number, seq: number): void {
    this.#finished.delete(runId)
    this.#runs.set(runId, { seq, created, first: 0, attempts: 0, next: 0, ended: 1 })
    this.#dirty.add(runId)
  }

  /** Changes the progress of a run. */
  update(runId: string, change: Partial<Progress>): void {
    const progress = this.#runs.get(runId)
    if (progress === undefined) return
    Object.assign(progress, change)
    this.#dirty.add(runId)
  }

  /** No more attempts for the events up to `seq`. */
  advance(runId: string, seq: number): void {
    this.update(runId, { seq, first: 0, attempts: 0, next: 0 })
  }

  /** Removes a run of which nothing is left to deliver. */
  finish(runId: string): void {
    const progress = this.#runs.get(runId)
    if (progress === undefined) return
    this.#runs.delete(runId)
    this.#finished.set(runId, progress.created)
    this.#dirty.add(runId)
  }

  /** Resolves once the present state is durable, or at once while the disk takes nothing. */
  save(): Promise<void> {
    if (this.#retry !== null) return Promise.resolve()
    this.#next ??= this.#current.then(() => {
      this.#current = this.#next!
      this.#next = null
      return this.#write()
    })
    return this.#next
  }

  /** Makes a last attempt to save. */
  async close(): Promise<void> {
    this.#cancelRetry()
    await this.save()
    this.#cancelRetry()
  }

  #cancelRetry(): void {
    this.#retry?.cancel()
    this.#retry = null
  }

  /** Never rejects. */
  async #write(): Promise<void> {
    try {
      const file = this.#file
      const isLong = file !== null && file.appended > Math.max(MIN_APPENDED, 2 * file.written)
      if (file === null || isLong) await this.#replace()
      else await this.#append(file)
      this.#warned = false
    } catch (error) {
      // A part of a line may have been written.
      this.#file = null
      this.#retry = this.#clock.setTimeout(() => {
        this.#retry = null
        void this.save()
      }, RETRY_MS)
      if (this.#warned) return
      this.#warned = true
      warn(
        `webhooks: the progress of deliveries cannot be stored; they go on, and some will be ` +
          `repeated if the process ends before that works again: ${describeError(error)}`,
      )
    }
  }

  async #append(file: FileSize): Promise<void> {
    if (this.#dirty.size === 0) return
    const text = [...this.#dirty].map((runId) => this.#line(runId)).join('')
    this.#dirty.clear()
    // Without O_CREAT: lines without a header would be no file of this format.
    const handle = await open(this.#path, constants.O_WRONLY | constants.O_APPEND)
    try {
      await handle.writeFile(text)
      await handle.datasync()
    } finally {
      await handle.close()
    }
    file.appended += Buffer.byteLength(text)
  }

  async #replace(): Promise<void> {
    this.#dirty.clear()
    const temporary = `${this.#path}.new`
    let written = 0
    try {
      const handle = await open(temporary, 'w', 0o600)
      try {
        await writeFile(handle, this.#lines())
        await handle.datasync()
        written = (await handle.stat()).size
      } finally {
        await handle.close()
      }
      await rename(temporary, this.#path)
    } catch (error) {
      // What a full disk took of it would only keep the disk full.
      await rm(temporary, { force: true })
      throw error
    }
    const folder = await open(dirname(this.#path))
    await folder.sync().finally(() => folder.close())
    this.#file = { written, appended: 0 }
  }

  /** The whole file, in pieces. Runs may change between two pieces: then they are dirty again. */
  *#lines(): Generator<string> {
    const header: Header = { version: 2, start: this.#start, since: this.#since }
    yield `${JSON.stringify(header)}\n`
    for (const [runId, created] of this.#finished) {
      if (created <= this.#since - OVERLAP_MS) this.#finished.delete(runId)
    }
    for (const runs of [this.#runs, this.#finished]) {
      let lines: string[] = []
      for (const runId of runs.keys()) {
        lines.push(this.#line(runId))
        if (lines.length < CHUNK) continue
        yield lines.join('')
        lines = []
      }
      yield lines.join('')
    }
  }

  #line(run: string): string {
    const progress = this.#runs.get(run)
    const line: Line =
      progress === undefined
        ? { run, done: true, created: this.#finished.get(run) ?? 0 }
        : { run, ...progress }
    return `${JSON.stringify(line, (_, value: unknown) => (value === 0 ? undefined : value))}\n`
  }

  #load(text: string): void {
    const [first = '', ...lines] = text.split('\n')
    const header = parse<Header | Version1>(first)
    if (typeof header?.version !== 'number') {
      const remedy = 'restore it, or remove it to deliver new runs only'
      throw new Error(`webhooks: ${this.#path} is damaged; ${remedy}`)
    }
    if (header.version > 2) {
      throw new Error(`webhooks: ${this.#path} was written by a newer version`)
    }
    this.#since = header.since
    this.#start = header.version === 1 ? header.since : header.start
    if (header.version === 1) {
      for (const [run, seq] of Object.entries(header.runs)) this.#take({ run, seq })
      return
    }
    // Without the end of its line, the last write was cut short by a crash.
    lines.pop()
    for (const [index, line] of lines.entries()) {
      const read = parse<Line>(line)
      if (typeof read?.run !== 'string') {
        // What is before it is an earlier state, as after a crash.
        return warn(
          `webhooks: ${this.#path} is damaged from line ${index + 2} on; ` +
            'what was delivered since may be delivered again',
        )
      }
      this.#take(read)
    }
  }

  #take(line: Line): void {
    const { run, done, seq = 0, created = 0, first = 0, attempts = 0, next = 0, ended = 0 } = line
    this.#since = Math.max(this.#since, created)
    if (done === true) {
      this.#runs.delete(run)
      this.#finished.set(run, created)
    } else this.#runs.set(run, { seq, created, first, attempts, next, ended })
  }
}

/** The value of a JSON text; null when it is none. */
function parse<T>(text: string): T | null {
  try {
    return JSON.parse(text) as T
  } catch {
    return null
  }
}
