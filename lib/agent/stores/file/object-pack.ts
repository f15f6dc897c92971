/**
 * The form of a pack, a file with many blobs. It never changes, but for the marks:
 *
 *     start      "RP", version, 0
 *     data       of each blob, by hash: its hash (32 bytes), its length (6), CRC-32 of both (4),
 *                the blob as `packed.ts` makes it
 *     index      of each blob: its hash (32 bytes), where it begins (6), its length (6)
 *     marks      of each blob one byte: 0xff once it was removed
 *     trailer    "RP", version, 0, number of blobs (4), CRC-32 of the index and all this (4)
 *
 * An index that was damaged is made again from the data. Packs of version 1 have neither a start
 * nor anything before a blob.
 *
 * @module
 */
import { crc32 } from '../../../internal/hash.js'
import { lowerBound } from '../../../internal/queues.js'
import { LongWork } from '../../../internal/time.js'
import type { Disk } from './disk.js'

/** A blob as it lies in a pack. */
export interface PackedBlob {
  readonly hash: string
  readonly data: Buffer
}

/** Where a blob lies in a pack. */
export interface Place {
  readonly number: number
  readonly at: number
  readonly bytes: number
}

const HASH_BYTES = 32
const NUMBER_BYTES = 6
const ENTRY_BYTES = HASH_BYTES + 2 * NUMBER_BYTES
/** What stands before a blob. */
const HEAD_BYTES = HASH_BYTES + NUMBER_BYTES + 4
const START_BYTES = 4
const TRAILER_BYTES = 12
const CRC_AT = 8
const MAGIC = 0x5250
const VERSION = 2
/** No fault of a single bit removes a blob. */
const REMOVED = 0xff

/** What stands behind the data of a pack. */
export interface PackIndex {
  /** Of the file. */
  readonly bytes: number
  readonly indexAt: number
  readonly index: Buffer
  readonly marks: Buffer
}

/** The content of a pack with these blobs, in parts, and its index. */
export async function encodePack(
  blobs: readonly PackedBlob[],
): Promise<{ readonly parts: readonly Buffer[]; readonly index: PackIndex }> {
  const sorted = blobs.toSorted((a, b) => (a.hash < b.hash ? -1 : 1))
  const index = Buffer.alloc(sorted.length * ENTRY_BYTES)
  const parts = [signature(START_BYTES)]
  const work = new LongWork()
  let at = START_BYTES
  for (const [i, { hash, data }] of sorted.entries()) {
    if (work.isDue) await work.next()
    parts.push(headOf(hash, data.length), data)
    at += HEAD_BYTES
    writeEntry(index, { hash, at, bytes: data.length, number: i })
    at += data.length
  }
  const marks = Buffer.alloc(sorted.length)
  const trailer = trailerOf(index, sorted.length)
  const bytes = at + index.length + marks.length + TRAILER_BYTES
  return { parts: [...parts, index, marks, trailer], index: { bytes, indexAt: at, index, marks } }
}

function signature(bytes: number): Buffer {
  const signed = Buffer.alloc(bytes)
  signed.writeUInt16BE(MAGIC, 0)
  signed.writeUInt8(VERSION, 2)
  return signed
}

function headOf(hash: string, bytes: number): Buffer {
  const head = Buffer.alloc(HEAD_BYTES)
  head.write(hash, 'hex')
  head.writeUIntBE(bytes, HASH_BYTES, NUMBER_BYTES)
  head.writeUInt32BE(crc32(head.subarray(0, -4)), HEAD_BYTES - 4)
  return head
}

function writeEntry(index: Buffer, { hash, at, bytes, number }: Place & { hash: string }): void {
  const entry = number * ENTRY_BYTES
  index.write(hash, entry, 'hex')
  index.writeUIntBE(at, entry + HASH_BYTES, NUMBER_BYTES)
  index.writeUIntBE(bytes, entry + HASH_BYTES + NUMBER_BYTES, NUMBER_BYTES)
}

function trailerOf(index: Buffer, count: number): Buffer {
  const trailer = signature(TRAILER_BYTES)
  trailer.writeUInt32BE(count, 4)
  trailer.writeUInt32BE(sumOf(index, trailer), CRC_AT)
  return trailer
}

function sumOf(index: Buffer, trailer: Buffer): number {
  return crc32(trailer.subarray(0, CRC_AT), crc32(index))
}

/** What is kept in memory of a pack: five bytes for each blob. */
export class Pack {
  readonly path: string
  /** Of the file, and of the data that was not removed. */
  readonly bytes: number
  live = 0
  /** When one of its blobs was stored or asked for, or it was found: by `performance.now()`. */
  usedAt: number
  /** It could not be read when it was to be rewritten. */
  isUnreadable = false
  readonly #indexAt: number
  readonly #dataBytes: number
  /** The first four bytes of each hash: further ones are read when these are equal. */
  readonly #starts: Uint32Array
  readonly #marks: Buffer

  constructor(path: string, usedAt: number, { bytes, index, marks, indexAt }: PackIndex) {
    this.path = path
    this.usedAt = usedAt
    this.bytes = bytes
    this.#indexAt = indexAt
    this.#starts = new Uint32Array(marks.length)
    this.#marks = marks
    let dataBytes = 0
    for (let i = 0; i < marks.length; i++) {
      this.#starts[i] = index.readUInt32BE(i * ENTRY_BYTES)
      const { bytes: length } = placeOf(index, i)
      dataBytes += length
      if (marks[i] !== REMOVED) this.live += length
    }
    this.#dataBytes = dataBytes
  }

  /** Null when it is damaged, or of a later version. @throws the system's error. */
  static async read(disk: Disk, path: string, usedAt: number): Promise<Pack | null> {
    const index = await reading(disk, path, (fd) => readIndex(disk, fd))
    return index === null ? null : new Pack(path, usedAt, index)
  }

  /**
   * Makes the index of a damaged pack again and stores it; false when a blob is damaged or missing,
   * and for a later version. @throws the system's error.
   */
  static async mend(disk: Disk, path: string): Promise<boolean> {
    const index = await reading(disk, path, (fd) => indexFromHeads(disk, fd))
    if (index === null) return false
    const { indexAt, index: entries, marks } = index
    const fd = disk.open(path, 'r+')
    try {
      const count = marks.length
      await disk.write(fd, Buffer.concat([entries, marks, trailerOf(entries, count)]), indexAt)
      await disk.sync(fd)
    } finally {
      disk.close(fd)
    }
    return true
  }

  /** Was most of it removed? */
  get isWorn(): boolean {
    return this.live * 2 < this.#dataBytes
  }

  /** Those that were removed included. */
  get blobCount(): number {
    return this.#starts.length
  }

  /** False when it does not have the blob; else it must be asked where. */
  mayHold(hash: string): boolean {
    const start = startOf(hash)
    return this.#starts[this.#lowerBound(start)] === start
  }

  /** Null when it does not have the blob. `fd` is its file. @throws the system's error. */
  locate(disk: Disk, fd: number, hash: string): Place | null {
    const start = startOf(hash)
    for (let i = this.#lowerBound(start); this.#starts[i] === start; i++) {
      if (this.#marks[i] === REMOVED) continue
      const entry = disk.readNow(fd, ENTRY_BYTES, this.#indexAt + i * ENTRY_BYTES)
      if (hashOf(entry, 0) === hash) return { ...placeOf(entry, 0), number: i }
    }
    return null
  }

  /** Removes a blob, even if it fails; it may be back then, or after a loss of power. */
  mark(disk: Disk, fd: number, { number, bytes }: Place): void {
    this.#marks[number] = REMOVED
    this.live -= bytes
    const marksAt = this.#indexAt + this.#starts.length * ENTRY_BYTES
    disk.writeNow(fd, Buffer.of(REMOVED), marksAt + number)
  }

  /** Has it had hashes whose first byte is `first`? */
  mayHoldAny(first: number): boolean {
    return (this.#starts[this.#lowerBound(first * 2 ** 24)] ?? Infinity) < (first + 1) * 2 ** 24
  }

  /** The hashes whose first byte is `first`. @throws the system's error. */
  hashes(disk: Disk, fd: number, first: number): string[] {
    const from = this.#lowerBound(first * 2 ** 24)
    const to = this.#lowerBound((first + 1) * 2 ** 24)
    const entries = disk.readNow(fd, (to - from) * ENTRY_BYTES, this.#indexAt + from * ENTRY_BYTES)
    const found: string[] = []
    for (let i = from; i < to; i++) {
      if (this.#marks[i] !== REMOVED) found.push(hashOf(entries, i - from))
    }
    return found
  }

  /** All that was not removed. @throws the system's error; an Error when it was damaged. */
  async blobs(disk: Disk): Promise<PackedBlob[]> {
    return await reading(disk, this.path, async (fd) => {
      const data = await disk.read(fd, this.#indexAt, 0)
      const read = await readIndex(disk, fd)
      if (read === null || data.length < this.#indexAt) throw new Error('its index was damaged')
      const blobs: PackedBlob[] = []
      for (const [i, mark] of this.#marks.entries()) {
        if (mark === REMOVED) continue
        const { at, bytes } = placeOf(read.index, i)
        blobs.push({ hash: hashOf(read.index, i), data: data.subarray(at, at + bytes) })
      }
      return blobs
    })
  }

  #lowerBound(start: number): number {
    return lowerBound(this.#starts.length, (at) => this.#starts[at]! < start)
  }
}

async function readIndex(disk: Disk, fd: number): Promise<PackIndex | null> {
  const bytes = disk.size(fd)
  const trailerAt = bytes - TRAILER_BYTES
  if (trailerAt < 0) return null
  const trailer = await disk.read(fd, TRAILER_BYTES, trailerAt)
  if (trailer.length < TRAILER_BYTES || trailer.readUInt16BE(0) !== MAGIC) return null
  const count = trailer.readUInt32BE(4)
  const length = count * (ENTRY_BYTES + 1)
  const indexAt = trailerAt - length
  if (trailer.readUInt8(2) > VERSION || indexAt < 0) return null
  const entries = await disk.read(fd, length, indexAt)
  if (entries.length < length) return null
  const index = entries.subarray(0, count * ENTRY_BYTES)
  if (sumOf(index, trailer) !== trailer.readUInt32BE(CRC_AT)) return null
  // A copy, so that the index does not stay in memory.
  return { bytes, indexAt, index, marks: Buffer.from(entries.subarray(index.length)) }
}

/** The index by what stands before the blobs; null unless it is whole and of this version. */
async function indexFromHeads(disk: Disk, fd: number): Promise<PackIndex | null> {
  if (!disk.readNow(fd, START_BYTES, 0).equals(signature(START_BYTES))) return null
  const size = disk.size(fd)
  const work = new LongWork()
  const places: (Place & { readonly hash: string })[] = []
  let at = START_BYTES
  for (let head; (head = disk.readNow(fd, HEAD_BYTES, at)).length === HEAD_BYTES; ) {
    if (work.isDue) await work.next()
    const hash = head.toString('hex', 0, HASH_BYTES)
    const bytes = head.readUIntBE(HASH_BYTES, NUMBER_BYTES)
    // The index, which comes after the last blob.
    if (!head.equals(headOf(hash, bytes))) break
    places.push({ hash, at: at + HEAD_BYTES, bytes, number: places.length })
    at += HEAD_BYTES + bytes
  }
  const count = places.length
  const marksAt = at + count * ENTRY_BYTES
  if (size !== marksAt + count + TRAILER_BYTES) return null
  const index = Buffer.alloc(count * ENTRY_BYTES)
  for (const place of places) writeEntry(index, place)
  const marks = disk.readNow(fd, count, marksAt)
  return { bytes: size, indexAt: at, index, marks }
}

function startOf(hash: string): number {
  return Number.parseInt(hash.slice(0, 8), 16)
}

function hashOf(entries: Buffer, number: number): string {
  const from = number * ENTRY_BYTES
  return entries.toString('hex', from, from + HASH_BYTES)
}

function placeOf(entries: Buffer, number: number): Place {
  const from = number * ENTRY_BYTES + HASH_BYTES
  const at = entries.readUIntBE(from, NUMBER_BYTES)
  return { number, at, bytes: entries.readUIntBE(from + NUMBER_BYTES, NUMBER_BYTES) }
}

async function reading<T>(disk: Disk, path: string, read: (fd: number) => Promise<T>): Promise<T> {
  const fd = disk.open(path, 'r')
  try {
    return await read(fd)
  } finally {
    disk.close(fd)
  }
}
