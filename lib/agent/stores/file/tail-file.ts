/**
 * The file `tail`: how far the journal reached at least. The last segment has no successor whose
 * header would name it, so without this witness its loss would go unnoticed.
 *
 * 1. It is written after the bytes that it counts are durable, and synced only when a segment is
 *    begun: after a loss of power it may be behind the journal, but never ahead of it.
 * 2. It has two slots, in sectors of their own, which are written in turn: one of them is intact,
 *    whenever the power fails.
 *
 * @module
 */
import { join } from 'node:path'
import { readFile, type Disk } from './disk.js'
import { encodeTail, isIntact } from './journal-line.js'
import type { DirectoryLock } from './lock.js'

const NAME = 'tail'
const SLOT_BYTES = 512
const SLOTS = 2

/** The last segment and the least size that it must have. */
export interface JournalTail {
  readonly segment: number
  readonly bytes: number
}

/** No segment was begun yet. */
const START: JournalTail = { segment: 0, bytes: 0 }

/** Reads the witness of a directory; null when there is none, `damaged` when it is unreadable. */
export function readTail(disk: Disk, directory: string): JournalTail | 'damaged' | null {
  let data: Buffer
  try {
    data = readFile(disk, join(directory, NAME))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  // Created, and the power failed before anything was written to it.
  if (data.every((byte) => byte === 0)) return START
  let newest: JournalTail | null = null
  for (let at = 0; at < data.length; at += SLOT_BYTES) {
    const slot = readSlot(data.subarray(at, at + SLOT_BYTES))
    if (slot === null) continue
    if (newest === null || slot.segment > newest.segment) newest = slot
    else if (slot.segment === newest.segment && slot.bytes > newest.bytes) newest = slot
  }
  return newest ?? 'damaged'
}

function readSlot(data: Buffer): JournalTail | null {
  const line = data.subarray(0, Math.max(0, data.indexOf(0x0a)))
  if (!isIntact(line)) return null
  const { tail } = JSON.parse(line.toString()) as { readonly tail?: readonly number[] }
  const [segment, bytes] = tail ?? []
  return segment === undefined || bytes === undefined ? null : { segment, bytes }
}

/** Writes the witness of a directory. */
export class TailFile {
  readonly #disk: Disk
  readonly #fd: number
  #slot = 0

  private constructor(disk: Disk, fd: number) {
    this.#disk = disk
    this.#fd = fd
  }

  /** Opens the witness of a directory; a new one is durable when this resolves. */
  static async open(disk: Disk, directory: string, lock: DirectoryLock): Promise<TailFile> {
    const path = join(directory, NAME)
    try {
      return new TailFile(disk, disk.open(path, 'r+'))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
    const draft = `${path}.${lock.token}.new`
    const file = new TailFile(disk, disk.open(draft, 'w'))
    try {
      // Both slots: the file never grows again, so a full disk does not refuse it.
      for (let slot = 0; slot < SLOTS; slot++) file.write(START)
      await file.sync()
      lock.check()
      disk.rename(draft, path)
      disk.syncDirectory(directory)
      return file
    } catch (error) {
      file.close()
      throw error
    }
  }

  /** @throws the system's error. */
  write({ segment, bytes }: JournalTail): void {
    const padded = Buffer.alloc(SLOT_BYTES, 0x20)
    encodeTail(segment, bytes).copy(padded)
    padded[SLOT_BYTES - 1] = 0x0a
    this.#disk.writeNow(this.#fd, padded, this.#slot * SLOT_BYTES)
    this.#slot = (this.#slot + 1) % SLOTS
  }

  /** @throws the system's error. */
  async sync(): Promise<void> {
    await this.#disk.sync(this.#fd)
  }

  close(): void {
    this.#disk.close(this.#fd)
  }
}
