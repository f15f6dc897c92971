/**
 * The writing end of the journal.
 *
 * 1. Lines added while a write is in flight are written together by the next one, with one
 *    `fdatasync` for all of them (group commit), and are acknowledged after it.
 * 2. When a write or a sync fails, every line of the group is refused, and so are queued lines of
 *    the same runs. The file is truncated to its durable size before the next write, since a
 *    refused line must not reappear after a restart; until that succeeds, every line is refused.
 * 3. A full segment is followed by a new one, whose name is durable before its content.
 *
 * @module
 */
import { nextTurn } from '../../../internal/next-turn.js'
import { StoreError } from '../../errors.js'
import type { OpenFiles } from './data-file.js'
import { writeError } from './disk-errors.js'
import type { Disk } from './disk.js'
import { encodeHeader } from './journal-line.js'
import { makeSegment, type Segment } from './segment.js'

/** Size of one write; further lines wait for the next. */
const MAX_GROUP_BYTES = 8 << 20
/** Bytes that may be queued; beyond that, lines are refused. */
const MAX_QUEUED_BYTES = 256 << 20
/** Up to this size a write is synchronous: handing it to another thread would cost more. */
const MAX_SYNC_WRITE_BYTES = 64 << 10

export interface PendingLine {
  readonly runId: string
  readonly data: Buffer
  /** Called once the line is durable, in the order of the lines. Must not throw. */
  done(segment: Segment, offset: number): void
  /** Called when the line was refused; the journal holds no part of it. Must not throw. */
  failed(error: StoreError): void
}

/** Options of {@link Journal}. */
export interface JournalOptions {
  readonly directory: string
  readonly segmentBytes: number
  /** `none`: lines are written immediately, as there is no sync to share. */
  readonly sync: 'group' | 'none'
  readonly disk: Disk
  readonly open: OpenFiles
  /** Called with each new segment before its first record. */
  readonly onSegment: (segment: Segment) => void
  /** Called after each group was acknowledged. */
  readonly onGroup: () => void
}

/** Appends lines to the last segment of a journal. */
export class Journal {
  readonly #options: JournalOptions
  #segment: Segment
  #fd: number
  #queue: PendingLine[] = []
  #queuedBytes = 0
  #flushing: Promise<void> | null = null
  /** True when the file may hold bytes beyond its durable size. */
  #dirty = false
  #written = 0

  private constructor(options: JournalOptions, segment: Segment, fd: number) {
    this.#options = options
    this.#segment = segment
    this.#fd = fd
  }

  /** Continues `last`, whose file has `validBytes`; with null, creates a segment `nextId`. */
  static async open(
    options: JournalOptions,
    last: { readonly segment: Segment; readonly validBytes: number } | null,
    nextId: number,
  ): Promise<Journal> {
    if (last === null) {
      const { segment, fd } = await createSegment(options, nextId)
      return new Journal(options, segment, fd)
    }
    const { segment, validBytes } = last
    const fd = options.disk.open(segment.file.path, 'r+')
    try {
      if (segment.size > validBytes) options.disk.truncate(fd, validBytes)
      segment.size = validBytes
      await options.disk.sync(fd)
      return new Journal(options, segment, fd)
    } catch (error) {
      options.disk.close(fd)
      throw error
    }
  }

  /** The segment to which lines are appended. */
  get segment(): Segment {
    return this.#segment
  }

  /** Bytes written since the journal was opened. */
  get written(): number {
    return this.#written
  }

  /** Queues a line. With `sync: 'none'` it is written before this returns, unless others wait. */
  add(line: PendingLine): void {
    const queuedBytes = this.#queuedBytes + line.data.length
    if (queuedBytes > MAX_QUEUED_BYTES && this.#queue.length > 0) {
      const problem = `${this.#queue.length} appends wait for the disk; try again later`
      line.failed(new StoreError('ERR_AGENT_STORE', problem))
      return
    }
    this.#queue.push(line)
    this.#queuedBytes = queuedBytes
    if (this.#flushing !== null) return
    if (this.#options.sync === 'none' && this.#canWriteNow()) this.#writeNow()
    else this.#flushing = this.#flush()
  }

  /** Resolves once every queued line is acknowledged or refused. */
  async drain(): Promise<void> {
    while (this.#flushing !== null) await this.#flushing
  }

  /** Resolves once every acknowledged line is on disk, whatever the `sync` mode. */
  async sync(): Promise<void> {
    await this.drain()
    await this.#options.disk.sync(this.#fd)
  }

  /** Waits for queued lines and closes the file. */
  async close(): Promise<void> {
    await this.drain()
    this.#options.disk.close(this.#fd)
  }

  #canWriteNow(): boolean {
    return !this.#dirty && this.#segment.size < this.#options.segmentBytes
  }

  #writeNow(): void {
    const group = this.#takeGroup()
    try {
      this.#options.disk.writeNow(this.#fd, concat(group), this.#segment.size)
    } catch (error) {
      this.#dirty = true
      this.#refuse(group, error)
      return
    }
    this.#acknowledge(group)
  }

  async #flush(): Promise<void> {
    // Callers woken by the same event join the first group.
    await nextTurn()
    while (this.#queue.length > 0) {
      const group = this.#takeGroup()
      try {
        await this.#commit(group)
        this.#acknowledge(group)
      } catch (error) {
        this.#refuse(group, error)
      }
      // Callers whose lines were acknowledged may append their next ones right away.
      await nextTurn()
    }
    this.#flushing = null
  }

  #takeGroup(): PendingLine[] {
    let size = 0
    let count = 0
    for (const { data } of this.#queue) {
      if (count > 0 && size + data.length > MAX_GROUP_BYTES) break
      size += data.length
      count += 1
    }
    this.#queuedBytes -= size
    return this.#queue.splice(0, count)
  }

  async #commit(group: readonly PendingLine[]): Promise<void> {
    const { disk, segmentBytes } = this.#options
    if (this.#dirty) await this.#cutBack()
    if (this.#segment.size >= segmentBytes) await this.#startSegment()
    const data = concat(group)
    this.#dirty = true
    try {
      if (data.length <= MAX_SYNC_WRITE_BYTES) disk.writeNow(this.#fd, data, this.#segment.size)
      else await disk.write(this.#fd, data, this.#segment.size)
      await disk.sync(this.#fd)
    } catch (error) {
      // Now rather than before the next write: it returns space to a full disk.
      await this.#cutBack().catch(() => {})
      throw error
    }
    this.#dirty = false
  }

  /** Truncates the file to its durable size. */
  async #cutBack(): Promise<void> {
    const { disk } = this.#options
    disk.truncate(this.#fd, this.#segment.size)
    await disk.sync(this.#fd)
    this.#dirty = false
  }

  /** Starts the next segment; when that fails, the present one keeps growing. */
  async #startSegment(): Promise<void> {
    try {
      const { segment, fd } = await createSegment(this.#options, this.#segment.id + 1)
      this.#options.disk.close(this.#fd)
      this.#segment = segment
      this.#fd = fd
    } catch {
      // If the disk is broken or full, the write to the present segment reports it.
    }
  }

  #acknowledge(group: readonly PendingLine[]): void {
    for (const line of group) {
      const offset = this.#segment.size
      this.#segment.size += line.data.length
      this.#written += line.data.length
      line.done(this.#segment, offset)
    }
    this.#options.onGroup()
  }

  #refuse(group: readonly PendingLine[], cause: unknown): void {
    const runs = new Set(group.map(({ runId }) => runId))
    const behind = this.#queue.filter(({ runId }) => runs.has(runId))
    this.#queue = this.#queue.filter(({ runId }) => !runs.has(runId))
    for (const { data } of behind) this.#queuedBytes -= data.length
    for (const line of [...group, ...behind]) line.failed(writeError(cause, this.#segment.file))
  }
}

async function createSegment(
  options: JournalOptions,
  id: number,
): Promise<{ readonly segment: Segment; readonly fd: number }> {
  const { directory, disk, open } = options
  const segment = makeSegment(directory, id, 0, 0, open)
  const { path } = segment.file
  const fd = disk.open(path, 'wx')
  try {
    const header = encodeHeader(id, 0)
    disk.writeNow(fd, header, 0)
    segment.size = header.length
    await disk.sync(fd)
    disk.syncDirectory(directory)
  } catch (error) {
    disk.close(fd)
    disk.remove(path)
    throw error
  }
  options.onSegment(segment)
  return { segment, fd }
}

function concat(group: readonly PendingLine[]): Buffer {
  const [first] = group
  if (group.length === 1 && first !== undefined) return first.data
  return Buffer.concat(group.map(({ data }) => data))
}
