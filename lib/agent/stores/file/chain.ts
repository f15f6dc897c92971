/**
 * Checks that no segment of a journal is missing or shortened, and finds those that never counted.
 *
 * 1. The header of a segment names the one before it, with its length and checksum; the file `tail`
 *    names the last one. Version 1 had neither: there, ids without a gap are all that is checked.
 * 2. The walk begins at the last segment, which belongs to the journal for certain: a process that
 *    had lost the lock can only have created a file whose id a later header skips.
 *
 * @module
 */
import type { PreviousSegment } from './journal-line.js'
import { isWhole, type Segment, type SegmentHeader } from './segment.js'
import type { JournalTail } from './tail-file.js'

/** A segment and its first line: null when it is unreadable, undefined when it was not read. */
export interface ChainedSegment {
  readonly segment: Segment
  readonly header: SegmentHeader | null | undefined
}

/** Acknowledged lines that are missing, from this position to the end of the segment. */
export interface Gap {
  readonly segment: number
  readonly offset: number
  readonly problem: string
}

/** The result of {@link checkChain}. */
export interface Chain {
  /** Ascending by id. The size of each is what its successor's header says. */
  readonly segments: readonly ChainedSegment[]
  /** Files without acknowledged lines. */
  readonly unused: readonly Segment[]
  readonly gaps: readonly Gap[]
  /** Checksums that the content of segments must have, by id. */
  readonly expected: ReadonlyMap<number, PreviousSegment>
}

/** Checks segments in ascending order of their ids. */
export function checkChain(links: readonly ChainedSegment[], tail: JournalTail | null): Chain {
  const chained: ChainedSegment[] = []
  const unused: Segment[] = []
  const gaps: Gap[] = []
  const expected = new Map<number, PreviousSegment>()
  const shorten = ({ segment }: ChainedSegment, bytes: number): void => {
    if (segment.size >= bytes) {
      segment.size = bytes
      return
    }
    const problem = `is ${bytes - segment.size} bytes shorter than it was`
    gaps.push({ segment: segment.id, offset: segment.size, problem })
  }
  const rest = [...links]
  const takeLast = (): ChainedSegment | undefined => {
    const link = rest.pop()
    if (link?.header !== null || tail === null || link.segment.id <= tail.segment) return link
    // Its creation was interrupted before its first line was durable.
    unused.push(link.segment)
    return takeLast()
  }
  let link = takeLast()
  if (tail !== null && (link?.segment.id ?? 0) < tail.segment) {
    gaps.push({ segment: tail.segment, offset: 0, problem: 'is missing' })
  } else if (link?.segment.id === tail?.segment && link?.segment.generation === 0) {
    if (link.segment.size < (tail?.bytes ?? 0)) shorten(link, tail?.bytes ?? 0)
  }
  while (link !== undefined) {
    chained.push(link)
    const { header, segment } = link
    const isKnown = gaps.some((gap) => gap.segment === segment.id)
    if (header === null && !isKnown) {
      gaps.push({ segment: segment.id, offset: 0, problem: 'has no intact first line' })
    } else if (header != null && !isWhole(segment, header)) {
      gaps.push({ segment: segment.id, offset: segment.size, problem: 'is shorter than it was' })
    }
    const previous = previousOf(link)
    if (previous !== undefined) {
      const id = previous?.segment ?? 0
      while (previous !== null && (rest.at(-1)?.segment.id ?? 0) > id) {
        unused.push((rest.pop() as ChainedSegment).segment)
      }
      const before = rest.at(-1)
      if (previous !== null && before?.segment.id !== id) {
        gaps.push({ segment: id, offset: 0, problem: 'is missing' })
      } else if (previous !== null && before?.segment.generation === 0 && previous.bytes >= 0) {
        shorten(before, previous.bytes)
        expected.set(id, previous)
      }
    }
    link = rest.pop()
  }
  return { segments: chained.reverse(), unused, gaps: gaps.reverse(), expected }
}

/** Undefined when it is unknown; `bytes` is -1 when only the id is known. */
function previousOf({ header, segment }: ChainedSegment): PreviousSegment | null | undefined {
  if (header == null) return undefined
  if (header.line.previous !== undefined) return header.line.previous
  // Version 1: rewriting removes ids, except that of the last segment before an unchanged one.
  if (segment.generation > 0) return undefined
  return segment.id === 1 ? null : { segment: segment.id - 1, bytes: -1, crc: null }
}
