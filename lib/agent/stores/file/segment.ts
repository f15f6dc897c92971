import { join } from 'node:path'
import { DataFile, type OpenFiles } from './data-file.js'
import { decodeLine, splitLines, type Content, type HeaderLine } from './journal-line.js'

/** One file of the journal. Only the last one is written to. */
export interface Segment {
  /** Ascending: a higher id was created later. */
  readonly id: number
  /** How many times the segment was rewritten to reclaim space. */
  readonly generation: number
  readonly file: DataFile
  /** Durable bytes that count; a process that had lost the lock may have added others. */
  size: number
  /** Bytes of lines that are still needed. */
  live: number
}

const NAME = /^journal-(\d{8,})\.(\d+)\.jsonl$/

/** Bytes read at once when a segment is scanned. */
const CHUNK_BYTES = 1 << 20
/** Enough for most first lines; longer ones cost a second read. */
const HEADER_BYTES = 512

/** Describes a segment; opens and creates nothing. */
export function makeSegment(
  directory: string,
  id: number,
  generation: number,
  size: number,
  open: OpenFiles,
): Segment {
  const name = `journal-${String(id).padStart(8, '0')}.${generation}.jsonl`
  return { id, generation, file: new DataFile(join(directory, name), open), size, live: 0 }
}

/** Id and generation from a segment's file name; null for any other file. */
export function parseSegmentName(name: string): { id: number; generation: number } | null {
  const match = NAME.exec(name)
  return match === null ? null : { id: Number(match[1]), generation: Number(match[2]) }
}

/** The first line of a segment and its length, newline included. */
export interface SegmentHeader {
  readonly line: HeaderLine
  readonly bytes: number
}

/** Reads a segment's first line; null when it is missing, damaged or of another segment. */
export async function readHeader({ id, file, size }: Segment): Promise<SegmentHeader | null> {
  file.acquire()
  try {
    for (let length = HEADER_BYTES; ; length = CHUNK_BYTES) {
      const data = await file.read(0, Math.min(length, size))
      const end = data.indexOf(0x0a)
      if (end === -1 && length < size && length < CHUNK_BYTES) continue
      const line = end === -1 ? null : decodeLine(data.subarray(0, end))
      return line?.type === 'header' && line.segment === id ? { line, bytes: end + 1 } : null
    }
  } finally {
    file.release()
  }
}

/** Is a rewritten segment as long as its header says? Version 1 did not say. */
export function isWhole({ size }: Segment, { line, bytes }: SegmentHeader): boolean {
  const body: Content | null = line.body
  return body === null || size >= bytes + body.bytes
}

/**
 * Reads a segment line by line, starting at `from`, and resolves with the bytes after the last
 * newline. Awaits `pause` after each chunk.
 */
export async function scanSegment(
  segment: Segment,
  from: number,
  onLine: (line: Buffer, offset: number) => void,
  pause?: () => Promise<void>,
): Promise<Buffer> {
  const { file, size } = segment
  file.acquire()
  try {
    let rest: Buffer = Buffer.alloc(0)
    let at = from
    let want = CHUNK_BYTES
    while (at + rest.length < size) {
      const chunk = await file.read(at + rest.length, Math.min(want, size - at - rest.length))
      if (chunk.length === 0) break
      const data = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      const base = at
      const end = splitLines(data, (line, offset) => onLine(line, base + offset))
      // A line longer than the chunk: double the chunk, so that copying stays linear.
      want = end === 0 ? data.length * 2 : CHUNK_BYTES
      at += end
      rest = data.subarray(end)
      if (pause !== undefined) await pause()
    }
    return rest
  } finally {
    file.release()
  }
}
