/**
 * The lines of the journal. Each is one JSON object on its own that starts with a checksum of the
 * rest of the line, and each is one unit of writing: all of it is there, or none.
 *
 *     {"crc":"0f3a9c21","journal":1,"segment":7,"generation":0,"replaces":[]}     first of a file
 *     {"crc":"5b1d0e77","run":"0190…","records":[{…},{…}]}                        one append
 *     {"crc":"e2c41b08","run":"0190…","deleted":true}                             one deletion
 *
 * @module
 */
import { crc32 } from 'node:zlib'
import type { RunRecord } from '../../events.js'

/** The version of the journal's format that is written here, and the newest that is read. */
export const JOURNAL_VERSION = 1

/** Octets of `{"crc":"01234567",`, behind which the checksum counts. */
const PREFIX_LENGTH = 18
const PREFIX: Buffer = Buffer.from('{"crc":"01234567",')
const HEX_DIGITS: Buffer = Buffer.from('0123456789abcdef')
const NEWLINE = 0x0a

/** The first line of a segment. */
export interface HeaderFrame {
  readonly type: 'header'
  readonly version: number
  readonly segment: number
  readonly generation: number
  /** Segments whose living content was moved into this one. */
  readonly replaces: readonly number[]
}

/** The records of one append. */
export interface RecordsFrame {
  readonly type: 'records'
  readonly runId: string
  readonly records: readonly RunRecord[]
}

/** The end of a run's log. */
export interface DeleteFrame {
  readonly type: 'delete'
  readonly runId: string
}

/** One line, read. */
export type Frame = HeaderFrame | RecordsFrame | DeleteFrame

/** One append as a line. */
export function encodeRecords(runId: string, records: readonly RunRecord[]): Buffer {
  return encode(`"run":${JSON.stringify(runId)},"records":${JSON.stringify(records)}}`)
}

/** One deletion as a line. */
export function encodeDelete(runId: string): Buffer {
  return encode(`"run":${JSON.stringify(runId)},"deleted":true}`)
}

/** The first line of a segment. */
export function encodeHeader(
  segment: number,
  generation: number,
  replaces: readonly number[] = [],
): Buffer {
  const fields = JSON.stringify({ journal: JOURNAL_VERSION, segment, generation, replaces })
  return encode(fields.slice(1))
}

function encode(rest: string): Buffer {
  const line = Buffer.from(`{"crc":"00000000",${rest}\n`)
  let crc = crc32(line.subarray(PREFIX_LENGTH, -1))
  for (let i = 15; i >= 8; i--) {
    line[i] = HEX_DIGITS[crc & 15] ?? 0
    crc >>>= 4
  }
  return line
}

/** Is this line (without its newline) as it was written? */
export function isIntact(line: Buffer): boolean {
  if (line.length <= PREFIX_LENGTH) return false
  let crc = 0
  for (let i = 0; i < PREFIX_LENGTH; i++) {
    const octet = line[i] ?? 0
    if (i >= 8 && i < 16) {
      const digit = HEX_DIGITS.indexOf(octet)
      if (digit === -1) return false
      crc = crc * 16 + digit
    } else if (octet !== PREFIX[i]) return false
  }
  return crc32(line.subarray(PREFIX_LENGTH)) === crc
}

/** Reads one line (without its newline); null when it is not what was written. */
export function decodeFrame(line: Buffer): Frame | null {
  if (!isIntact(line)) return null
  try {
    const value = JSON.parse(line.toString()) as Record<string, unknown>
    const { run, records, deleted, journal, segment, generation, replaces } = value
    if (typeof run === 'string' && Array.isArray(records) && records.length > 0) {
      return { type: 'records', runId: run, records: records as RunRecord[] }
    }
    if (typeof run === 'string' && deleted === true) return { type: 'delete', runId: run }
    if (typeof journal === 'number') {
      return {
        type: 'header',
        version: journal,
        segment: Number(segment),
        generation: Number(generation),
        replaces: Array.isArray(replaces) ? (replaces as number[]) : [],
      }
    }
  } catch {
    // An intact line that is no JSON was written by something else.
  }
  return null
}

/** What a damaged stretch of the journal still tells. */
export interface Damage {
  /** Runs that are named in it. */
  readonly runIds: readonly string[]
  /** True when it was one line of one run and nothing else can have been lost in it. */
  readonly certain: boolean
}

/** Tells which runs a damaged line belonged to, as far as it can be seen. */
export function inspectDamage(line: Buffer): Damage {
  const text = line.toString('latin1')
  const runIds = new Set<string>()
  for (const [, id] of text.matchAll(/"run(?:_id)?":"([^"\\]{1,200})"/g)) {
    if (id !== undefined) runIds.add(Buffer.from(id, 'latin1').toString())
  }
  const oneLine =
    text.startsWith('{"crc":"') && text.endsWith('}') && text.indexOf('{"crc":"', 1) === -1
  return { runIds: [...runIds], certain: runIds.size === 1 && oneLine && !/[\0-\x1f]/.test(text) }
}

/**
 * Calls `onLine` for each complete line of `data`, without its newline, and returns the offset
 * behind the last one.
 */
export function splitLines(data: Buffer, onLine: (line: Buffer, offset: number) => void): number {
  let start = 0
  for (let end = data.indexOf(NEWLINE); end !== -1; end = data.indexOf(NEWLINE, start)) {
    onLine(data.subarray(start, end), start)
    start = end + 1
  }
  return start
}
