/**
 * The orders of a list of runs: one table for the stores, the REST API and its description.
 *
 * @module
 */

/**
 * The order of a list: by `created_at`, then by `run_id`; or before these by the folder, the end
 * reason, or the run that started it. Runs without any come first. `-` reverses the whole.
 */
export type RunSort =
  | 'created_at' | '-created_at' | 'cwd' | '-cwd' | 'end_reason' | '-end_reason'
  | 'parent' | '-parent'

/** A field whose text orders runs, before their creation and id. */
export type OrderField = 'cwd' | 'end_reason' | 'parent'

export interface ListOrder {
  /** Null for an order by creation and id alone. */
  readonly field: OrderField | null
  /** 1 for ascending, -1 for descending. */
  readonly step: 1 | -1
}

const ORDERS: Readonly<Record<RunSort, ListOrder>> = {
  '-created_at': { field: null, step: -1 },
  created_at: { field: null, step: 1 },
  '-cwd': { field: 'cwd', step: -1 },
  cwd: { field: 'cwd', step: 1 },
  '-end_reason': { field: 'end_reason', step: -1 },
  end_reason: { field: 'end_reason', step: 1 },
  '-parent': { field: 'parent', step: -1 },
  parent: { field: 'parent', step: 1 },
}

/** Every order. */
export const RUN_SORTS: readonly RunSort[] = Object.keys(ORDERS) as RunSort[]

export const DEFAULT_SORT: RunSort = '-created_at'

export function orderOf(sort: RunSort = DEFAULT_SORT): ListOrder {
  return ORDERS[sort]
}
