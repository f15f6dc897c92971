/**
 * The orders of a list, and cursors of its pages. Runs are ordered by a text, then by creation and
 * id; without a value of their own they come first, in a descending order last.
 *
 * @module
 */
import { InvalidRequestError } from '../errors.js'
import type { RunSort } from '../store.js'
import { folderKey } from './list-keys.js'
import { compareRuns, type SortKey } from './ordered-runs.js'

/** What runs are ordered by before creation and id; null for nothing else. */
export type OrderField = 'cwd' | 'end_reason' | 'parent'

/** The parts of an order. */
export interface ListOrder {
  readonly field: OrderField | null
  /** 1 for ascending, -1 for descending. */
  readonly step: 1 | -1
}

const ORDERS: Readonly<Record<RunSort, ListOrder>> = {
  '-created_at': { field: null, step: -1 },
  created_at: { field: null, step: 1 },
  cwd: { field: 'cwd', step: 1 },
  '-cwd': { field: 'cwd', step: -1 },
  end_reason: { field: 'end_reason', step: 1 },
  '-end_reason': { field: 'end_reason', step: -1 },
  parent: { field: 'parent', step: 1 },
  '-parent': { field: 'parent', step: -1 },
}

/** Every order, the default first. */
export const RUN_SORTS: readonly RunSort[] = Object.keys(ORDERS) as RunSort[]

export function orderOf(sort: RunSort = '-created_at'): ListOrder {
  return ORDERS[sort]
}

/** @throws TypeError for anything but an order. */
export function checkSort(sort: unknown): void {
  if (sort === undefined || RUN_SORTS.some((one) => one === sort)) return
  throw new TypeError(`sort must be ${RUN_SORTS.map((one) => `'${one}'`).join(', ')}; got ` +
    JSON.stringify(sort))
}

/** Characters of a folder by which it is ordered; PostgreSQL's indexes take no longer ones. */
const ORDERED_BY = 400

/**
 * The text by which runs are ordered by folder: its beginning as in JSON, then, for equally long
 * beginnings, its key. PostgreSQL computes the same (`stores/postgres/list-orders.ts`).
 */
export function folderOrder(cwd: string): string {
  const json = JSON.stringify(cwd).slice(1, -1)
  // By code points, as in PostgreSQL.
  const start = json.length <= ORDERED_BY ? json : [...json.slice(0, 2 * ORDERED_BY)]
    .slice(0, ORDERED_BY).join('')
  return `${start}\u0001${folderKey(cwd)}`
}

/** Negative when `a` comes first, by code points: what UTF-8 and PostgreSQL's "C" order have. */
export function compareTexts(a: string, b: string): number {
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

/** Where a page ended: at this run, and at this text of a field. */
export interface ListKey extends SortKey {
  /** Empty for an order by creation alone. */
  readonly order: string
}

/** Negative when `a` comes first in ascending order. */
export function compareKeys(a: ListKey, b: ListKey): number {
  return compareTexts(a.order, b.order) || compareRuns(a, b)
}

/** The cursor of a page that ends with this run. It names its order, unless that is the default. */
export function encodeCursor({ createdMs, runId, order }: ListKey, sort?: RunSort): string {
  const { field } = orderOf(sort)
  const named = sort === undefined || sort === '-created_at' ? [] : [sort]
  const last = field === null ? [] : [order]
  return Buffer.from(JSON.stringify([createdMs, runId, ...named, ...last])).toString('base64url')
}

/** The last run of the page to which a cursor belongs. @throws {@link InvalidRequestError} */
export function decodeCursor(cursor: string, sort: RunSort = '-created_at'): ListKey {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    const parts = orderOf(sort).field === null ? 3 : 4
    if (Array.isArray(value) && value.length <= parts) {
      const [createdMs, runId, named = '-created_at', order = ''] = value as unknown[]
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
