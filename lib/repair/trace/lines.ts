/** Ranges of characters that ran, as lines. */
import { lowerBound } from '../../internal/queues.js'

/** Lines of a file, ascending. */
export interface Lines {
  readonly path: string
  readonly lines: readonly number[]
}

/** How many steps conversions may still take: a project may have written any ranges. */
export interface Work {
  steps: number
}

/**
 * The parts of a text that ran, as `[start, end, …]`, ascending and apart. Of ranges, given as
 * `[start, end, ran, …]`, an inner one overrides those around it, and of two equal ones the later.
 */
export function coveredIntervals(ranges: readonly number[], work: Work): readonly number[] {
  const order: number[] = []
  for (let at = 0; at + 2 < ranges.length; at += 3) {
    if (ranges[at]! >= 0 && ranges[at + 1]! > ranges[at]!) order.push(at)
  }
  work.steps -= order.length * 20
  order.sort((a, b) => ranges[a]! - ranges[b]! || ranges[b + 1]! - ranges[a + 1]! || a - b)
  const found: number[] = []
  /** Ends of the open ranges, and whether each ran. */
  const ends: number[] = []
  const flags: boolean[] = []
  let position = 0
  const advance = (to: number): void => {
    if (to > position) {
      if (flags.at(-1) === true) {
        if (found.at(-1) === position) found[found.length - 1] = to
        else found.push(position, to)
      }
      position = to
    }
  }
  for (const at of order) {
    const start = ranges[at]!
    while (ends.length > 0 && ends.at(-1)! <= start) {
      advance(ends.pop()!)
      flags.pop()
    }
    advance(start)
    // One that leaves the range around it is no range of V8.
    ends.push(Math.min(ranges[at + 1]!, ends.at(-1) ?? Infinity))
    flags.push(ranges[at + 2]! > 0)
  }
  while (ends.length > 0) {
    advance(ends.pop()!)
    flags.pop()
  }
  return found
}

/** Where each line of a text begins. */
export function lineStarts(text: string): readonly number[] {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return starts
}

/** The last line that begins at or before a position, from 0. */
export function lineAt(starts: readonly number[], position: number): number {
  return lowerBound(starts.length, (at) => starts[at]! <= position) - 1
}

/** The lines, from 1, of which any character that is not blank lies in an interval. */
export function linesOf(
  text: string,
  starts: readonly number[],
  intervals: readonly number[],
  work: Work,
): readonly number[] {
  const lines: number[] = []
  for (let index = 0; index + 1 < intervals.length && work.steps > 0; index += 2) {
    const end = Math.min(intervals[index + 1]!, text.length)
    let position = intervals[index]!
    let line = lineAt(starts, position)
    work.steps -= 20
    while (position < end) {
      const next = starts[line + 1] ?? text.length
      const stop = Math.min(end, next)
      while (position < stop && isBlank(text.charCodeAt(position))) {
        position += 1
        work.steps -= 1
      }
      if (position < stop && lines.at(-1) !== line + 1) lines.push(line + 1)
      work.steps -= 1
      position = next
      line += 1
    }
  }
  return lines
}

function isBlank(code: number): boolean {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d) || code === 0xa0 || code === 0xfeff
}
