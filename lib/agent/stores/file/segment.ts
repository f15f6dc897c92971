import { join } from 'node:path'
import { DataFile, type OpenFiles } from './data-file.js'
import { splitLines } from './journal-line.js'

/** One file of the journal. Only the last one is written to. */
export interface Segment {
  /** Ascending: a higher id was created later. */
  readonly id: number
  /** How many times the segment was rewritten to reclaim space. */
  readonly generation: number
  readonly file: DataFile
  /** Durable bytes. */
  size: number
  /** Bytes of lines that are still needed. */
  live: number
}

const NAME = /^journal-(\d{8,})\.(\d+)\.jsonl$/

/** Bytes read at once when a segment is scanned. */
const CHUNK_BYTES = 1 << 20

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
