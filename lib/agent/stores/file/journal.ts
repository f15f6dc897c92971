/**
 * The writing end of the journal.
 *
 * 1. Lines that come while a write is in flight go out together in the next one, with one
 *    `fdatasync` for all of them (group commit). A line is acknowledged once that is done.
 * 2. When a write or a sync fails, every line of the group is refused, and so are lines behind it
 *    of the same runs. The file is cut back to what is durable before anything else is written: a
 *    line that was refused must not come back. Until that succeeds, everything is refused.
 * 3. A segment that is full is followed by a new one, whose name is durable before its content.
 *
 * @module
 */
import { closeSync, openSync, rmSync } from 'node:fs'
import { nextTurn } from '../../../internal/next-turn.js'
import { StoreError } from '../../errors.js'
import type { OpenFiles } from './data-file.js'
import type { Disk } from './disk.js'
import { encodeHeader } from './journal-line.js'
import { makeSegment, type Segment } from './segment.js'

/** Octets of one write; more lines wait for the next. */
const MAX_GROUP = 8 << 20
/** Octets that may wait; beyond that, lines are refused. */
const MAX_WAITING = 256 << 20
/** Up to this size a write is done in place: handing it to another thread would cost more. */
const MAX_WRITE_NOW = 64 << 10

/** One line on its way to the disk. */
export interface Line {
  readonly runId: string
  readonly data: Buffer
  /** Called in the order of the lines, once the line is durable. Does not throw. */
  done(segment: Segment, offset: number): void
  /** Called when the line was refused; nothing of it is in the journal. Does not throw. */
  failed(error: StoreError): void
}

/** Options of {@link Journal}. */
export interface JournalOptions {
  readonly directory: string
  readonly segmentBytes: number
  /** `none`: lines are written at once, since there is no sync that they could share. */
  readonly sync: 'group' | 'none'
  readonly disk: Disk
  readonly open: OpenFiles
  /** Told of each new segment before anything is in it. */
  readonly onSegment: (segment: Segment) => void
  /** Called after each group. */
  readonly onGroup: () => void
}

/** Appends lines to the last segment of a journal. */
export class Journal {
  readonly #options: JournalOptions
  #segment: Segment
  #fd: number
  #queue: Line[] = []
  #waiting = 0
  #flushing: Promise<void> | null = null
  /** True when something stands behind the durable part of the segment. */
  #soiled = false
  #written = 0

  private constructor(options: JournalOptions, segment: Segment, fd: number) {
    this.#options = options
    this.#segment = segment
    this.#fd = fd
  }

  /**
   * Goes on with `last`, whose file has `tail` good octets; with a new segment when that is null.
   */
  static async open(
    options: JournalOptions,
    last: { readonly segment: Segment; readonly tail: number } | null,
    nextId: number,
  ): Promise<Journal> {
    if (last === null) {
      const { segment, fd } = await createSegment(options, nextId)
      return new Journal(options, segment, fd)
    }
    const { segment, tail } = last
    const fd = openSync(segment.file.path, 'r+')
    try {
      if (segment.size > tail) options.disk.truncate(fd, tail)
      segment.size = tail
      await options.disk.sync(fd)
      return new Journal(options, segment, fd)
    } catch (error) {
      closeSync(fd)
      throw error
    }
  }

  /** The segment that is written to. */
  get segment(): Segment {
    return this.#segment
  }

  /** Octets written since the journal was opened. */
  get written(): number {
    return this.#written
  }

  /** Takes a line. In mode `none` it is written before this returns, unless others wait. */
  add(line: Line): void {
    if (this.#waiting + line.data.length > MAX_WAITING && this.#queue.length > 0) {
      const problem = `${this.#queue.length} appends wait for the disk; try again later`
      line.failed(new StoreError('ERR_AGENT_STORE', problem))
      return
    }
    this.#queue.push(line)
    this.#waiting += line.data.length
    if (this.#flushing !== null) return
    if (this.#options.sync === 'none' && this.#canWriteNow()) this.#writeNow()
    else this.#flushing = this.#flush()
  }

  /** Resolves once no line waits. */
  async drain(): Promise<void> {
    while (this.#flushing !== null) await this.#flushing
  }

  /** Resolves once everything that was acknowledged is on the medium. */
  async sync(): Promise<void> {
    await this.drain()
    await this.#options.disk.sync(this.#fd)
  }

  /** Waits for lines in flight and closes the file. */
  async close(): Promise<void> {
    await this.drain()
    closeSync(this.#fd)
  }

  #canWriteNow(): boolean {
    return !this.#soiled && this.#segment.size < this.#options.segmentBytes
  }

  #writeNow(): void {
    const group = this.#takeGroup()
    try {
      this.#options.disk.writeNow(this.#fd, concat(group), this.#segment.size)
    } catch (error) {
      this.#soiled = true
      this.#refuse(group, error)
      return
    }
    this.#acknowledge(group)
  }

  async #flush(): Promise<void> {
    // Others that were woken by the same event shall be in the first group.
    await nextTurn()
    while (this.#queue.length > 0) {
      const group = this.#takeGroup()
      try {
        await this.#commit(group)
        this.#acknowledge(group)
      } catch (error) {
        this.#refuse(group, error)
      }
      // Those whose lines have just become durable are about to send their next.
      await nextTurn()
    }
    this.#flushing = null
  }

  #takeGroup(): Line[] {
    let size = 0
    let count = 0
    for (const { data } of this.#queue) {
      if (count > 0 && size + data.length > MAX_GROUP) break
      size += data.length
      count += 1
    }
    this.#waiting -= size
    return this.#queue.splice(0, count)
  }

  async #commit(group: readonly Line[]): Promise<void> {
    const { disk, segmentBytes } = this.#options
    if (this.#soiled) await this.#cutBack()
    if (this.#segment.size >= segmentBytes) await this.#roll()
    const data = concat(group)
    this.#soiled = true
    try {
      if (data.length <= MAX_WRITE_NOW) disk.writeNow(this.#fd, data, this.#segment.size)
      else await disk.write(this.#fd, data, this.#segment.size)
      await disk.sync(this.#fd)
    } catch (error) {
      // At once if possible: the disk may be full, and others need it as well.
      await this.#cutBack().catch(() => {})
      throw error
    }
    this.#soiled = false
  }

  async #cutBack(): Promise<void> {
    const { disk } = this.#options
    disk.truncate(this.#fd, this.#segment.size)
    await disk.sync(this.#fd)
    this.#soiled = false
  }

  /** Begins the next segment; when that fails the old one grows on. */
  async #roll(): Promise<void> {
    try {
      const { segment, fd } = await createSegment(this.#options, this.#segment.id + 1)
      closeSync(this.#fd)
      this.#segment = segment
      this.#fd = fd
    } catch {
      // A line that fits into no segment fails by itself, in the one that is there.
    }
  }

  #acknowledge(group: readonly Line[]): void {
    for (const line of group) {
      const offset = this.#segment.size
      this.#segment.size += line.data.length
      this.#written += line.data.length
      line.done(this.#segment, offset)
    }
    this.#options.onGroup()
  }

  #refuse(group: readonly Line[], cause: unknown): void {
    const runs = new Set(group.map(({ runId }) => runId))
    const behind = this.#queue.filter(({ runId }) => runs.has(runId))
    this.#queue = this.#queue.filter(({ runId }) => !runs.has(runId))
    for (const { data } of behind) this.#waiting -= data.length
    for (const line of [...group, ...behind]) line.failed(asStoreError(cause, this.#segment))
  }
}

async function createSegment(
  options: JournalOptions,
  id: number,
): Promise<{ readonly segment: Segment; readonly fd: number }> {
  const { directory, disk, open } = options
  const segment = makeSegment(directory, id, 0, 0, open)
  const { path } = segment.file
  const fd = openSync(path, 'wx', 0o600)
  try {
    const header = encodeHeader(id, 0)
    disk.writeNow(fd, header, 0)
    segment.size = header.length
    await disk.sync(fd)
    disk.syncDirectory(directory)
  } catch (error) {
    closeSync(fd)
    rmSync(path, { force: true })
    throw error
  }
  options.onSegment(segment)
  return { segment, fd }
}

function concat(group: readonly Line[]): Buffer {
  const [first] = group
  if (group.length === 1 && first !== undefined) return first.data
  return Buffer.concat(group.map(({ data }) => data))
}

/** What went wrong with the disk, for people, and what to do. */
export function asStoreError(cause: unknown, segment: Segment): StoreError {
  if (cause instanceof StoreError) return cause
  const { code = '', message } = cause as NodeJS.ErrnoException
  const remedies: Readonly<Record<string, string>> = {
    ENOSPC: 'the disk is full; free some space',
    EDQUOT: 'the disk quota is used up; free some space',
    EACCES: 'access is denied; give this user the right to write there',
    EROFS: 'the file system is read-only; mount it for writing',
    EIO: 'the disk reports an error; check it',
  }
  const remedy = remedies[code] ?? message
  const problem = `cannot write to ${segment.file.path}: ${remedy}`
  return new StoreError('ERR_AGENT_STORE', problem, { cause })
}
