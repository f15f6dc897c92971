/** Source maps (ECMA-426), as far as lines need them. */
import { lowerBound } from '../../internal/queues.js'
import type { Lines, Work } from './lines.js'

const MAX_SEGMENTS = 1_000_000
const MAX_SOURCES = 1_000
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const VALUES: ReadonlyMap<string, number> = new Map([...DIGITS].map((digit, at) => [digit, at]))

/** A source map. */
export interface SourceMap {
  /** Where each line of the script begins, if that came along. */
  readonly lengths: readonly number[] | null
  readonly sources: readonly string[]
  readonly root: string
  readonly segments: Segments
}

/** `line, column, source, source line` of each segment, flat and in this order; all from 0. */
type Segments = readonly number[]

/** A script that was made from other files. */
export interface MappedText {
  readonly starts: readonly number[]
  readonly segments: Segments
  /** Null for a file outside of the project. */
  readonly paths: readonly (string | null)[]
}

/** Null when there is none, or it is none. */
export function parseMap(json: string | null): SourceMap | null {
  if (json === null) return null
  let map: unknown
  try {
    map = JSON.parse(json)
  } catch {
    return null
  }
  if (typeof map !== 'object' || map === null) return null
  const { lengths, mappings, sources, sourceRoot } = map as Readonly<Record<string, unknown>>
  if (typeof mappings !== 'string' || !Array.isArray(sources)) return null
  if (sources.length > MAX_SOURCES) return null
  return {
    lengths: startsOf(lengths),
    sources: sources.map((source) => (typeof source === 'string' ? source : '')),
    root: typeof sourceRoot === 'string' ? sourceRoot : '',
    segments: decode(mappings),
  }
}

function startsOf(lengths: unknown): readonly number[] | null {
  if (!Array.isArray(lengths)) return null
  const starts: number[] = []
  let position = 0
  for (const length of lengths as unknown[]) {
    if (typeof length !== 'number' || !(length >= 0)) return null
    starts.push(position)
    position += length + 1
  }
  return starts
}

/** Reads mappings up to the first character that is not of them. */
function decode(mappings: string): Segments {
  const segments: number[] = []
  let line = 0
  let column = 0
  let source = 0
  let sourceLine = 0
  let fields: number[] = []
  let value = 0
  let shift = 0
  for (let at = 0; at <= mappings.length; at++) {
    const char = mappings[at] ?? ';'
    const digit = VALUES.get(char)
    if (digit !== undefined) {
      if (shift > 30 || fields.length > 5) break
      value += (digit & 31) * 2 ** shift
      shift += 5
      if ((digit & 32) === 0) {
        fields.push(value % 2 === 1 ? -Math.floor(value / 2) : value / 2)
        value = 0
        shift = 0
      }
      continue
    }
    if (char !== ',' && char !== ';') break
    if (fields.length > 0) column += fields[0]!
    if (fields.length >= 4) {
      source += fields[1]!
      sourceLine += fields[2]!
      segments.push(line, column, source, sourceLine)
      if (segments.length > 4 * MAX_SEGMENTS) break
    }
    fields = []
    if (char === ';') {
      line += 1
      column = 0
    }
  }
  return segments
}

/** The lines of the files of which a segment begins in an interval. */
export function mappedLines(
  { starts, segments, paths }: MappedText,
  intervals: readonly number[],
  work: Work,
): readonly Lines[] {
  const found = new Map<string, Set<number>>()
  const positionOf = (segment: number): number => {
    return (starts[segments[4 * segment]!] ?? Infinity) + segments[4 * segment + 1]!
  }
  const count = segments.length / 4
  for (let index = 0; index + 1 < intervals.length && work.steps > 0; index += 2) {
    const [start, end] = [intervals[index]!, intervals[index + 1]!]
    work.steps -= 20
    const first = lowerBound(count, (segment) => positionOf(segment) < start)
    for (let at = first; at < count; at++) {
      work.steps -= 1
      if (positionOf(at) >= end || work.steps <= 0) break
      const path = paths[segments[4 * at + 2]!] ?? null
      const line = segments[4 * at + 3]! + 1
      if (path === null || line < 1) continue
      let lines = found.get(path)
      if (lines === undefined) found.set(path, (lines = new Set()))
      lines.add(line)
    }
  }
  return [...found].map(([path, lines]) => ({ path, lines: [...lines].sort((a, b) => a - b) }))
}
