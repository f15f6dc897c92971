import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { RecordingError } from '../errors.js'
import type { HarEntry } from './har.js'

const MAX_FILE_BYTES = 256 * 1024 * 1024
const EMPTY_LOG = { version: '1.2', creator: { name: 'runwright', version: '1' }, pages: [] }
/** The file is written again once this many times the last writing took have passed. */
const PAUSES = 10

/** An entry's place in the file; without entry until its exchange is over. */
export interface Slot {
  entry: HarEntry | null
  /** As written, so that it is not encoded again each time. */
  text: string
}

/** The recordings of one file, shared by all transports of this thread that use it. */
export class RecordingFile {
  static readonly #open = new Map<string, RecordingFile>()
  readonly path: string
  #users = 0
  #log: object = EMPTY_LOG
  readonly #slots: Slot[] = []
  #dirty = false
  #nextWrite = 0
  #timer: NodeJS.Timeout | null = null
  readonly #onExit = (): void => this.save()

  private constructor(path: string) {
    this.path = path
  }

  /**
   * Opens a file, which `close()` must close again.
   *
   * @param fresh - Whether to drop what it holds, unless another transport uses it.
   * @throws {@link RecordingError} when it is no HAR file.
   */
  static open(file: string, fresh: boolean): RecordingFile {
    const path = resolve(file)
    let recording = RecordingFile.#open.get(path)
    if (recording === undefined) {
      recording = new RecordingFile(path)
      if (!fresh) recording.#load()
      RecordingFile.#open.set(path, recording)
      process.on('exit', recording.#onExit)
    }
    recording.#users++
    return recording
  }

  /** The complete recordings, in the order of their requests. */
  get entries(): HarEntry[] {
    return this.#slots.flatMap(({ entry }) => (entry === null ? [] : [entry]))
  }

  /** Reserves the next place. */
  reserve(): Slot {
    const slot: Slot = { entry: null, text: '' }
    this.#slots.push(slot)
    return slot
  }

  /** Fills a reserved place, and writes the file now or soon. */
  fill(slot: Slot, entry: HarEntry): void {
    slot.entry = entry
    slot.text = indented(entry)
    this.#dirty = true
    if (performance.now() >= this.#nextWrite) this.save()
    // Unless the process exits before, which saves too.
    else this.#timer ??= setTimeout(() => this.save(), this.#nextWrite - performance.now()).unref()
  }

  /** Writes the file if it lacks something, in one step: it is never seen half written. */
  save(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    if (!this.#dirty) return
    const started = performance.now()
    const temporary = `${this.path}.${process.pid}.tmp`
    try {
      mkdirSync(dirname(this.path), { recursive: true })
      writeFileSync(temporary, this.#text())
      renameSync(temporary, this.path)
    } catch (cause) {
      rmSync(temporary, { force: true })
      throw new RecordingError(`cannot write ${this.path}: ${(cause as Error).message}`, { cause })
    }
    this.#dirty = false
    const now = performance.now()
    this.#nextWrite = now + PAUSES * (now - started)
  }

  close(): void {
    if (--this.#users > 0) return
    RecordingFile.#open.delete(this.path)
    process.off('exit', this.#onExit)
    this.save()
  }

  #text(): string {
    const entries = this.#slots.filter(({ entry }) => entry !== null).map(({ text }) => text)
    const list = entries.length === 0 ? '[]' : `[\n${entries.join(',\n')}\n    ]`
    const log = JSON.stringify({ log: { ...this.#log, entries: 0 } }, null, 2)
    const text = `${log.slice(0, log.lastIndexOf('0'))}${list}\n  }\n}\n`
    if (text.length <= MAX_FILE_BYTES) return text
    throw new RecordingError(`${this.path} would be larger than ${MAX_FILE_BYTES} bytes`)
  }

  #load(): void {
    let text: string
    try {
      if (statSync(this.path).size > MAX_FILE_BYTES)
        throw new RecordingError(`${this.path} is larger than ${MAX_FILE_BYTES} bytes`)
      text = readFileSync(this.path, 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
      if (error instanceof RecordingError) throw error
      throw new RecordingError(`cannot read ${this.path}: ${(error as Error).message}`)
    }
    const { entries, ...log } = this.#parse(text)
    this.#log = log
    for (const entry of entries) this.#slots.push({ entry, text: indented(entry) })
  }

  #parse(text: string): { entries: HarEntry[] } {
    const bad = (why: string): RecordingError =>
      new RecordingError(
        `${this.path} is not a HAR file, ${why}; restore it, or delete it and record it again`,
      )
    let log: { entries?: unknown } | undefined
    try {
      log = (JSON.parse(text.replace(/^\ufeff/, '')) as { log?: { entries?: unknown } } | null)?.log
    } catch (error) {
      throw bad((error as Error).message)
    }
    if (!Array.isArray(log?.entries)) throw bad('since it has no log.entries')
    const entries = log.entries as unknown[]
    const wrong = entries.findIndex((entry) => !isEntry(entry))
    if (wrong !== -1) throw bad(`since log.entries[${wrong}] has no request and response`)
    return log as { entries: HarEntry[] }
  }
}

function isEntry(entry: unknown): entry is HarEntry {
  const { request, response } = (entry ?? {}) as Partial<HarEntry>
  return (
    request !== undefined &&
    response !== undefined &&
    typeof request?.method === 'string' &&
    typeof request.url === 'string' &&
    URL.canParse(request.url) &&
    typeof (request.postData?.text ?? '') === 'string' &&
    Array.isArray(request.postData?.params ?? []) &&
    Number.isInteger(response?.status) &&
    isPairs(response.headers) &&
    isPairs(response._trailers ?? []) &&
    typeof (response.content?.text ?? '') === 'string'
  )
}

function isPairs(pairs: unknown): boolean {
  const isPair = (pair: { name?: unknown; value?: unknown } | null): boolean =>
    typeof pair?.name === 'string' && typeof pair.value === 'string'
  return Array.isArray(pairs) && pairs.every(isPair)
}

/** An entry as a part of the file. */
function indented(entry: HarEntry): string {
  // Not /^/m, which is also true behind U+2028 and U+2029, that strings may contain.
  return '      ' + JSON.stringify(entry, null, 2).replaceAll('\n', '\n      ')
}
