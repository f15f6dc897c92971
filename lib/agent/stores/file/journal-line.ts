/**
 * The lines of the journal. Each is one JSON object that starts with a checksum of the rest of the
 * line, and each is atomic: after a crash it is there as a whole, or not at all.
 *
 *     {"crc":"0f3a9c21","journal":2,"segment":7,"generation":0,…}     first of a file
 *     {"crc":"5b1d0e77","run":"0190…","records":[{…},{…}]}            one append
 *     {"crc":"e2c41b08","run":"0190…","deleted":true}                 one deletion
 *     {"crc":"77ab01c2","group":8213}                                 before lines written together
 *
 * @module
 */
import { crc32 } from '../../../internal/hash.js'
import type { RunRecord } from '../../events.js'

/**
 * The version of the journal's format that this code writes, and the newest that it reads. Version
 * 2 chains segments, which a reader must not ignore: it tells missing records and those that a
 * process wrote after it had lost the lock.
 */
export const JOURNAL_VERSION = 2

/** Bytes of `{"crc":"01234567",`, which the checksum does not cover. */
const PREFIX_LENGTH = 18
const PREFIX: Buffer = Buffer.from('{"crc":"01234567",')
const HEX_DIGITS: Buffer = Buffer.from('0123456789abcdef')
const NEWLINE = 0x0a

/** What a part of a segment must hold; `crc` is null where it is not known. */
export interface Content {
  readonly bytes: number
  readonly crc: number | null
}

/** The segment before another one, as it was when the other one was begun. */
export interface PreviousSegment extends Content {
  readonly segment: number
}

/** The first line of a segment. */
export interface HeaderLine {
  readonly type: 'header'
  readonly version: number
  readonly segment: number
  readonly generation: number
  /** Segments whose live lines were moved into this one. */
  readonly replaces: readonly number[]
  /** Null in the first segment of a journal; undefined in version 1, which did not have it. */
  readonly previous: PreviousSegment | null | undefined
  /** What follows this line in a rewritten segment; null in others, and in version 1. */
  readonly body: Content | null
}

/** What the header of a new segment says besides its id and generation. */
export type HeaderFields = Partial<Pick<HeaderLine, 'replaces' | 'previous' | 'body'>>

/** One append: under one checksum, its records are valid together or not at all. */
export interface RecordsLine {
  readonly type: 'records'
  readonly runId: string
  readonly records: readonly RunRecord[]
}

/** The end of a run's log. */
export interface DeletionLine {
  readonly type: 'delete'
  readonly runId: string
}

/**
 * Precedes lines that were written together and acknowledged by one sync. When the power fails
 * before it, any part of them may be on disk.
 */
export interface GroupLine {
  readonly type: 'group'
  /** Size of the lines that follow and belong to the group. */
  readonly bytes: number
}

export type JournalLine = HeaderLine | RecordsLine | DeletionLine | GroupLine

/** The line of one append, newline included. */
export function encodeRecords(runId: string, records: readonly RunRecord[]): Buffer {
  return encode(`"run":${JSON.stringify(runId)},"records":${JSON.stringify(records)}}`)
}

/** The line of one deletion, newline included. */
export function encodeDeletion(runId: string): Buffer {
  return encode(`"run":${JSON.stringify(runId)},"deleted":true}`)
}

/** The first line of a segment, newline included. */
export function encodeHeader(
  segment: number,
  generation: number,
  { replaces = [], previous, body }: HeaderFields = {},
): Buffer {
  const fields = {
    journal: JOURNAL_VERSION,
    segment,
    generation,
    replaces,
    // A rewritten segment of version 1 does not say what was before it; nor can its successor.
    ...(previous !== undefined && {
      previous: previous && [previous.segment, previous.bytes, previous.crc],
    }),
    ...(body != null && { body: [body.bytes, body.crc] }),
  }
  return encode(JSON.stringify(fields).slice(1))
}

/** The line before a group of other lines, newline included. */
export function encodeGroup(bytes: number): Buffer {
  return encode(`"group":${bytes}}`)
}

/** The line of the file `tail`, newline included. */
export function encodeTail(segment: number, bytes: number): Buffer {
  return encode(`"tail":[${segment},${bytes}]}`)
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

/** Does the checksum of this line (without its newline) match? */
export function isIntact(line: Buffer): boolean {
  if (line.length <= PREFIX_LENGTH) return false
  let crc = 0
  for (let i = 0; i < PREFIX_LENGTH; i++) {
    const byte = line[i] ?? 0
    if (i >= 8 && i < 16) {
      const digit = HEX_DIGITS.indexOf(byte)
      if (digit === -1) return false
      crc = crc * 16 + digit
    } else if (byte !== PREFIX[i]) return false
  }
  return crc32(line.subarray(PREFIX_LENGTH)) === crc
}

/** Decodes a line (without its newline); null when it is damaged. */
export function decodeLine(line: Buffer): JournalLine | null {
  if (!isIntact(line)) return null
  try {
    const value = JSON.parse(line.toString()) as Record<string, unknown>
    const { run, records, deleted, journal, group } = value
    if (typeof run === 'string' && Array.isArray(records) && records.length > 0) {
      return { type: 'records', runId: run, records: records as RunRecord[] }
    }
    if (typeof run === 'string' && deleted === true) return { type: 'delete', runId: run }
    if (typeof journal === 'number') return headerOf(journal, value)
    if (typeof group === 'number') return { type: 'group', bytes: group }
  } catch {
    // Intact, yet not JSON: not written by a store.
  }
  return null
}

function headerOf(version: number, value: Record<string, unknown>): HeaderLine {
  const { segment, generation, replaces, previous, body } = value
  const [id, bytes, crc] = (previous ?? []) as number[]
  const [bodyBytes, bodyCrc] = (body ?? []) as number[]
  return {
    type: 'header',
    version,
    segment: Number(segment),
    generation: Number(generation),
    replaces: Array.isArray(replaces) ? (replaces as number[]) : [],
    previous:
      id === undefined
        ? (previous as null | undefined)
        : { segment: id, bytes: bytes ?? 0, crc: crc ?? null },
    body: bodyBytes === undefined ? null : { bytes: bodyBytes, crc: bodyCrc ?? null },
  }
}

/** What can be recovered from damaged bytes of the journal. */
export interface Damage {
  /** All that are still readable; some may only be mentioned there. */
  readonly runIds: readonly string[]
  /** True when this was one line of one run, so that nothing else can have been lost. */
  readonly certain: boolean
}

/** Finds out which runs a damaged line belonged to, as far as it is still readable. */
export function inspectDamage(line: Buffer): Damage {
  const owner = ownerOf(line)
  if (owner !== null) return { runIds: [owner], certain: true }
  const text = line.toString('latin1')
  const runIds = new Set<string>()
  for (const [, id] of text.matchAll(/"run(?:_id)?":"([^"\\]{1,200})"/g)) {
    if (id !== undefined) runIds.add(Buffer.from(id, 'latin1').toString())
  }
  const oneLine =
    text.startsWith('{"crc":"') && text.endsWith('}') && text.indexOf('{"crc":"', 1) === -1
  const isHeader = runIds.size === 0 && text.includes('"generation":') && !text.includes('"run')
  const certain = (runIds.size === 1 || isHeader) && oneLine && !/[\0-\x1f]/.test(text)
  return { runIds: [...runIds], certain }
}

/**
 * The run of a line in which nothing but values is damaged: records name other runs as well, such
 * as those that theirs has started. Null when that is not certain.
 */
function ownerOf(line: Buffer): string | null {
  try {
    const { run, records } = JSON.parse(line.toString()) as { run: unknown; records: unknown[] }
    const isOwn = (record: unknown): boolean => (record as { run_id: unknown }).run_id === run
    return typeof run === 'string' && records.length > 0 && records.every(isOwn) ? run : null
  } catch {
    return null
  }
}

/**
 * Calls `onLine` for each complete line of `data`, without its newline, and returns the end of the
 * last one, newline included.
 */
export function splitLines(data: Buffer, onLine: (line: Buffer, offset: number) => void): number {
  let start = 0
  for (let end = data.indexOf(NEWLINE); end !== -1; end = data.indexOf(NEWLINE, start)) {
    onLine(data.subarray(start, end), start)
    start = end + 1
  }
  return start
}
