/**
 * The writing end of the journal.
 *
 * 1. Lines added while a write is in flight are written together by the next one, with one
 *    `fdatasync` for all of them (group commit), and are acknowledged after it.
 * 2. When a write or a sync fails, every line of the group is refused, and so are queued lines of
 *    the same runs. The file is truncated to its durable size before the next write, since a
 *    refused line must not reappear after a restart; until that succeeds, every line is refused.
 * 3. A full segment is followed by a new one, whose name is durable before its content, and whose
 *    header fixes length and checksum of the one before it.
 * 4. Nothing is acknowledged without a look at the lock after the sync. A process that has lost it
 *    refuses every line and touches no file any more: they belong to another process.
 *
 * @module
 */
import { crc32 } from '../../../internal/hash.js'
import { nextTurn } from '../../../internal/time.js'
import { StoreError } from '../../errors.js'
import type { OpenFiles } from './data-file.js'
import { writeError } from './disk-errors.js'
import type { Disk } from './disk.js'
import { encodeGroup, encodeHeader, type PreviousSegment } from './journal-line.js'
import type { DirectoryLock } from './lock.js'
import { makeSegment, type Segment } from './segment.js'
import type { TailFile } from './tail-file.js'

/** Size of one write; further lines wait for the next. */
const MAX_GROUP_BYTES = 8 << 20
/** Bytes that may be queued; beyond that, lines are refused. */
const MAX_QUEUED_BYTES = 256 << 20
/** Up to this size a write is synchronous: handing it to another thread would cost more. */
const MAX_SYNC_WRITE_BYTES = 64 << 10
/** How many ids are tried when files of a process that had lost the lock are in the way. */
const MAX_ID_ATTEMPTS = 16

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
  readonly lock: DirectoryLock
  readonly tail: TailFile
  /** Called with each new segment before its first record. */
  readonly onSegment: (segment: Segment) => void
  /** Called after each group was acknowledged. */
  readonly onGroup: () => void
  /** What the next group has to wait for, if anything. */
  readonly backlog: () => Promise<void> | null
}

/** A segment that is being written to, and the checksum of its durable bytes. */
interface OpenSegment {
  readonly segment: Segment
  readonly fd: number
  readonly crc: number
}

/** Appends lines to the last segment of a journal. */
export class Journal {
  readonly #options: JournalOptions
  #segment: Segment
  #fd: number
  #crc: number
  #queue: PendingLine[] = []
  #queuedBytes = 0
  #flushing: Promise<void> | null = null
  /** True when the file may hold bytes beyond its durable size. */
  #dirty = false
  #written = 0
  /** A segment that is begun: its header may have fixed the length of the present one. */
  #next: NewFile | null = null
  /** Callers of {@link Journal.rotate} that wait. */
  #rotations: (() => void)[] = []

  private constructor(options: JournalOptions, { segment, fd, crc }: OpenSegment) {
    this.#options = options
    this.#segment = segment
    this.#fd = fd
    this.#crc = crc
  }

  /** Begins a segment with id `nextId` or a higher one; `previous` is the one before it. */
  static async open(
    options: JournalOptions,
    nextId: number,
    previous: PreviousSegment | null,
  ): Promise<Journal> {
    const file = createFile(options, nextId)
    try {
      return new Journal(options, await beginSegment(options, file, previous))
    } catch (error) {
      options.disk.close(file.fd)
      throw error
    }
  }

  /** Continues a segment without lines that nothing but this process can write to. */
  static async resume(options: JournalOptions, segment: Segment, crc: number): Promise<Journal> {
    const { directory, disk, lock, tail } = options
    const fd = disk.open(segment.file.path, 'r+')
    try {
      await disk.sync(fd)
      // After it was opened: another process that has taken over works with a copy.
      lock.check()
      // The process that created it may have died before it did this.
      disk.syncDirectory(directory)
      tail.write({ segment: segment.id, bytes: segment.size })
      await tail.sync()
    } catch (error) {
      disk.close(fd)
      throw error
    }
    return new Journal(options, { segment, fd, crc })
  }

  /** The segment to which lines are appended. */
  get segment(): Segment {
    return this.#segment
  }

  /** The checksum of its durable bytes. */
  get crc(): number {
    return this.#crc
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
      line.failed(new StoreError('ERR_AGENT_STORE_UNAVAILABLE', problem))
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

  /** Begins a segment after the group in flight; when that fails, the present one goes on. */
  async rotate(): Promise<void> {
    const rotated = new Promise<void>((resolve) => this.#rotations.push(resolve))
    this.#flushing ??= this.#flush()
    await rotated
  }

  /** Waits for queued lines and closes the file. */
  async close(): Promise<void> {
    await this.drain()
    if (this.#dirty) await this.#cutBack().catch(() => {})
    this.#options.disk.close(this.#fd)
    if (this.#next !== null) this.#options.disk.close(this.#next.fd)
    this.#options.tail.close()
  }

  #canWriteNow(): boolean {
    return !this.#dirty && this.#next === null && this.#segment.size < this.#options.segmentBytes
  }

  #writeNow(): void {
    const group = this.#takeGroup()
    const data = concat(group)
    try {
      this.#options.disk.writeNow(this.#fd, data, this.#segment.size)
      this.#options.lock.check()
    } catch (error) {
      this.#dirty = true
      this.#refuse(group, error)
      return
    }
    this.#acknowledge(group, data)
  }

  async #flush(): Promise<void> {
    // Callers woken by the same event join the first group.
    await nextTurn()
    while (this.#queue.length > 0 || this.#rotations.length > 0) {
      if (this.#rotations.length > 0) await this.#rotateNow()
      await this.#options.backlog()
      const group = this.#takeGroup()
      if (group.length === 0) continue
      const data = concat(group)
      try {
        await this.#commit(data)
        this.#writeTail(data.length)
        this.#acknowledge(group, data)
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

  async #commit(data: Buffer): Promise<void> {
    const { disk, lock, segmentBytes } = this.#options
    if (this.#dirty) await this.#cutBack()
    if (this.#next !== null || this.#segment.size >= segmentBytes) await this.#startSegment()
    this.#dirty = true
    try {
      if (data.length <= MAX_SYNC_WRITE_BYTES) disk.writeNow(this.#fd, data, this.#segment.size)
      else await disk.write(this.#fd, data, this.#segment.size)
      await disk.sync(this.#fd)
      lock.check()
    } catch (error) {
      // Now rather than before the next write: it returns space to a full disk.
      await this.#cutBack().catch(() => {})
      throw error
    }
    this.#dirty = false
  }

  /** Truncates the file to its durable size. */
  async #cutBack(): Promise<void> {
    const { disk, lock } = this.#options
    try {
      lock.check()
    } catch (error) {
      // While that cannot be found out, the file is still ours: a successor works with a copy.
      if (lock.lost.aborted) throw error
    }
    disk.truncate(this.#fd, this.#segment.size)
    await disk.sync(this.#fd)
    this.#dirty = false
  }

  async #rotateNow(): Promise<void> {
    const waiting = this.#rotations
    this.#rotations = []
    // The next group reports why it failed, if that lasts.
    if (!this.#dirty) await this.#startSegment().catch(() => {})
    for (const resolve of waiting) resolve()
  }

  /**
   * Starts the next segment. When its file cannot be created, the present one keeps growing.
   *
   * @throws the system's error when it was created and could not be completed: it may have fixed
   * the present segment's length, which must not grow any more. The next call completes it.
   */
  async #startSegment(): Promise<void> {
    const { id, size } = this.#segment
    try {
      this.#next ??= createFile(this.#options, id + 1)
    } catch {
      // If the disk is broken or full, the write to the present segment reports it.
      return
    }
    const previous = { segment: id, bytes: size, crc: this.#crc }
    const { segment, fd, crc } = await beginSegment(this.#options, this.#next, previous)
    this.#options.disk.close(this.#fd)
    this.#segment = segment
    this.#fd = fd
    this.#crc = crc
    this.#next = null
  }

  #acknowledge(group: readonly PendingLine[], data: Buffer): void {
    this.#crc = crc32(data, this.#crc)
    const lines = group.reduce((sum, line) => sum + line.data.length, 0)
    this.#segment.size += data.length - lines
    for (const line of group) {
      const offset = this.#segment.size
      this.#segment.size += line.data.length
      this.#written += line.data.length
      line.done(this.#segment, offset)
    }
    this.#options.onGroup()
  }

  /** Before the bytes are acknowledged: what was must not lack its witness after a crash. */
  #writeTail(added: number): void {
    try {
      this.#options.tail.write({ segment: this.#segment.id, bytes: this.#segment.size + added })
    } catch {
      // The witness stays behind the journal, which it may be.
    }
  }

  #refuse(group: readonly PendingLine[], cause: unknown): void {
    const runs = new Set(group.map(({ runId }) => runId))
    const behind = this.#queue.filter(({ runId }) => runs.has(runId))
    this.#queue = this.#queue.filter(({ runId }) => !runs.has(runId))
    for (const { data } of behind) this.#queuedBytes -= data.length
    for (const line of [...group, ...behind]) line.failed(writeError(cause, this.#segment.file))
  }
}

interface NewFile {
  readonly segment: Segment
  readonly fd: number
}

/**
 * Makes a new file a segment.
 *
 * @throws the system's error. The file is not removed: another process that has taken over may
 * have found it complete.
 */
async function beginSegment(
  { directory, disk, lock, tail, onSegment }: JournalOptions,
  { segment, fd }: NewFile,
  previous: PreviousSegment | null,
): Promise<OpenSegment> {
  const header = encodeHeader(segment.id, 0, { previous })
  disk.writeNow(fd, header, 0)
  segment.size = header.length
  await disk.sync(fd)
  lock.check()
  disk.syncDirectory(directory)
  try {
    // Only now: it must not name a segment that a loss of power may remove.
    tail.write({ segment: segment.id, bytes: segment.size })
    await tail.sync()
  } catch {
    // The witness stays behind the journal, which it may be.
  }
  onSegment(segment)
  return { segment, fd, crc: crc32(header) }
}

/**
 * Creates the file of a segment. A process that was stopped between a look at the lock and this may
 * have used the id; a file of its own it then left unused, and the next id is free.
 */
function createFile(
  { directory, disk, open, lock }: JournalOptions,
  nextId: number,
): NewFile {
  for (let id = nextId; ; id++) {
    lock.check()
    const segment = makeSegment(directory, id, 0, 0, open)
    try {
      return { segment, fd: disk.open(segment.file.path, 'wx') }
    } catch (error) {
      const isTaken = (error as NodeJS.ErrnoException).code === 'EEXIST'
      if (!isTaken || id - nextId >= MAX_ID_ATTEMPTS) throw error
    }
  }
}

/** The bytes of a group; a single line needs no other to be atomic. */
function concat(group: readonly PendingLine[]): Buffer {
  const [first] = group
  if (group.length === 1 && first !== undefined) return first.data
  const bytes = group.reduce((sum, { data }) => sum + data.length, 0)
  return Buffer.concat([encodeGroup(bytes), ...group.map(({ data }) => data)])
}
