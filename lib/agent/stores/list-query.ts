/**
 * Queries for lists of runs, as every store reads them: their checks, the keys by which runs are
 * found, and cursors. PostgreSQL computes the same keys and orders in SQL (`stores/postgres/`).
 *
 * @module
 */
import { hash } from '../../internal/hash.js'
import { describeValue } from '../../internal/options.js'
import { DEFAULT_SORT, orderOf, RUN_SORTS, type RunSort } from '../../internal/run-sorts.js'
import { InvalidRequestError } from '../errors.js'
import type { RunQuery } from '../store.js'
import type { SortKey } from './ordered-runs.js'

/** @throws RangeError or TypeError that names an invalid part of `query`. */
export function checkQuery({ limit, role, sort, metadata }: RunQuery): void {
  if (!Number.isInteger(limit) || limit < 1) {
    throw new RangeError(`limit must be an integer of 1 or more, got ${String(limit)}`)
  }
  if (role !== undefined && role !== 'root') {
    throw new TypeError(`role must be 'root' or undefined, got ${JSON.stringify(role)}`)
  }
  if (sort !== undefined && !RUN_SORTS.includes(sort)) {
    const known = RUN_SORTS.map((one) => `'${one}'`).join(', ')
    throw new TypeError(`sort must be ${known}; got ${JSON.stringify(sort)}`)
  }
  if (metadata !== undefined) checkMetadata(metadata)
}

/** Names in one query: as many as a run has. */
const MAX_NAMES = 32

function checkMetadata(metadata: Readonly<Record<string, unknown>>): void {
  const entries = Object.entries(metadata)
  if (entries.length === 0 || entries.length > MAX_NAMES) {
    throw new RangeError(`metadata must have 1 to ${MAX_NAMES} names, got ${entries.length}`)
  }
  for (const [name, value] of entries) {
    if (typeof value === 'string') continue
    throw new TypeError(`metadata.${name} must be a string, got ${describeValue(value)}`)
  }
}

/** The words that a query searches for, in lower case. */
export function searchWords({ search = '' }: RunQuery): string[] {
  return search.toLowerCase().split(/\s+/).filter(Boolean)
}

/** Float seconds to milliseconds, rounded to microseconds to drop floating-point noise. */
export function toMs(seconds: number): number {
  return Math.round(seconds * 1e6) / 1e3
}

/** The key of a text that may be long: a hash of the text as JSON. */
function keyOf(json: string): string {
  return hash('sha256', json, 'base64url').slice(0, 22)
}

export function folderKey(cwd: string): string {
  return keyOf(JSON.stringify(cwd))
}

/** One object for the many runs without metadata. */
export const NO_KEYS: readonly string[] = []

/** The keys of names with their values. */
export function metadataKeys(metadata: Readonly<Record<string, string>>): readonly string[] {
  const entries = Object.entries(metadata)
  return entries.length === 0 ? NO_KEYS : entries.map((entry) => keyOf(JSON.stringify(entry)))
}

/** Characters of a folder by which it is ordered; PostgreSQL's indexes take no longer ones. */
const ORDERED_BY = 400
/** Comes before every character of a text as JSON. */
const END = '\u0001'

/**
 * The text by which runs are ordered by folder: the beginning of the folder as JSON, then its key,
 * which separates folders with equal beginnings.
 */
export function folderOrder(cwd: string): string {
  const json = jsonOf(cwd)
  // By code points, as in PostgreSQL.
  const start = json.length <= ORDERED_BY ? json : [...json.slice(0, 2 * ORDERED_BY)]
    .slice(0, ORDERED_BY).join('')
  return `${start}${END}${folderKey(cwd)}`
}

/**
 * A text that compares as {@link folderOrder} does, without a hash for most folders: equal
 * beginnings that were not cut are of equal folders.
 */
export function shortFolderOrder(cwd: string): string {
  const json = jsonOf(cwd)
  return json.length < ORDERED_BY ? json : folderOrder(cwd)
}

/** The {@link shortFolderOrder} of the folder with this {@link folderOrder}. */
export function shortened(order: string): string {
  const end = order.indexOf(END)
  return end >= 0 && end < ORDERED_BY ? order.slice(0, end) : order
}

/** Characters that JSON escapes, or may escape. */
const ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/

/** The folder as JSON, without quotation marks. */
function jsonOf(cwd: string): string {
  return ESCAPED.test(cwd) ? JSON.stringify(cwd).slice(1, -1) : cwd
}

/** Code units from which the order of JavaScript is not that of code points. */
const HIGH = /[\ud800-\uffff]/

/** Negative when `a` comes first, by code points: the order of UTF-8 and PostgreSQL's "C". */
export function compareTexts(a: string, b: string): number {
  if (a === b) return 0
  if (!HIGH.test(a)) return a < b ? -1 : 1
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)]
    if (x !== y) return rank(x) - rank(y)
  }
  return a.length - b.length
}

/** Halves of characters beyond U+FFFF come after all other code units. */
function rank(unit: number): number {
  if (unit < 0xd800) return unit
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800
}

/** The last run of a page. */
export interface ListKey extends SortKey {
  /** The text by which it is ordered; unused in an order by creation alone. */
  readonly order: string
}

/** The cursor of a page that ends with this run. It names its order, unless that is the default. */
export function encodeCursor(
  { createdMs, runId, order }: ListKey,
  sort: RunSort = DEFAULT_SORT,
): string {
  const named = sort === DEFAULT_SORT ? [] : [sort]
  const last = orderOf(sort).field === null ? [] : [order]
  return Buffer.from(JSON.stringify([createdMs, runId, ...named, ...last])).toString('base64url')
}

/** The last run of the page to which a cursor belongs. @throws {@link InvalidRequestError} */
export function decodeCursor(cursor: string, sort: RunSort = DEFAULT_SORT): ListKey {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    const parts = orderOf(sort).field === null ? 3 : 4
    if (Array.isArray(value) && value.length <= parts) {
      const [createdMs, runId, named = DEFAULT_SORT, order = ''] = value as unknown[]
      const isKey = typeof createdMs === 'number' && typeof runId === 'string'
      if (isKey && named === sort && typeof order === 'string') return { createdMs, runId, order }
    }
  } catch {
    // Not JSON: reported below.
  }
  throw new InvalidRequestError([
    { pointer: '/cursor', detail: 'is not the cursor of an earlier page; start again without it' },
  ])
}
