import { DataFile, type OpenFiles } from './data-file.js'
import { splitLines } from './journal-line.js'
import { join } from 'node:path'

/** One file of the journal. Only the last one is written to. */
export interface Segment {
  /** Counts up; a higher one was begun later. */
  readonly id: number
  /** How often the segment was rewritten without what was dead in it. */
  readonly generation: number
  readonly file: DataFile
  /** Octets that are durable. */
  size: number
  /** Octets of lines that are still needed. */
  live: number
}

const NAME = /^journal-(\d{8,})\.(\d+)\.jsonl$/

/** Octets read at once when a segment is scanned. */
const CHUNK = 1 << 20

/** A segment that is there, or is about to be. */
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

/** Segment and generation that a file name tells; null for any other file. */
export function parseSegmentName(name: string): { id: number; generation: number } | null {
  const match = NAME.exec(name)
  return match === null ? null : { id: Number(match[1]), generation: Number(match[2]) }
}

/**
 * Reads a segment from an offset on, line by line, and resolves with the rest behind the last
 * newline. Waits for `pause` after each megabyte.
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
    let want = CHUNK
    while (at + rest.length < size) {
      const chunk = await file.read(at + rest.length, Math.min(want, size - at - rest.length))
      if (chunk.length === 0) break
      const data = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      const base = at
      const end = splitLines(data, (line, offset) => onLine(line, base + offset))
      // A line longer than what was read: read more at once, so that it is not copied each time.
      want = end === 0 ? data.length * 2 : CHUNK
      at += end
      rest = data.subarray(end)
      if (pause !== undefined) await pause()
    }
    return rest
  } finally {
    file.release()
  }
}
