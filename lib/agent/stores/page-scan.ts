/**
 * The part of a list that looks at runs: which of them a query wants, and the first of those in its
 * order.
 *
 * @module
 */
import { orderOf, type OrderField } from '../../internal/run-sorts.js'
import type { RunQuery } from '../store.js'
import type { IndexedRun } from './indexed-run.js'
import {
  compareTexts, decodeCursor, encodeCursor, folderOrder, metadataKeys, searchWords, shortened,
  shortFolderOrder, toMs,
} from './list-query.js'
import { compareRuns, type SortKey } from './ordered-runs.js'

/** One page of runs. */
export interface IndexPage<R> {
  readonly runs: readonly R[]
  readonly next: string | null
}

/** The texts by which runs are ordered. */
const TEXTS: Readonly<Record<OrderField, (run: IndexedRun) => string>> = {
  cwd: ({ cwd }) => shortFolderOrder(cwd ?? ''),
  end_reason: ({ endReason }) => endReason ?? '',
  parent: ({ child }) => child?.parent ?? '',
}

/** Runs that are sorted at once; more for large pages, each sort of which costs more. */
const BATCH = 1_024

/** A run of the page, and its text when it was found. */
interface Found<R> {
  readonly run: R
  readonly text: string
}

/** Finds the runs of one page among those that {@link PageScan.add} is called with. */
export class PageScan<R extends IndexedRun> {
  readonly #query: RunQuery
  readonly #field: OrderField | null
  /** 1 to look at the oldest run first, -1 for the newest first. */
  readonly step: 1 | -1
  readonly #textOf: (run: IndexedRun) => string
  readonly #matches: (run: IndexedRun) => boolean
  /** Where the page before this one ended. */
  readonly #last: Found<SortKey> | null
  /** In order, and up to one more than the page holds. */
  #found: Found<R>[] = []
  /** Runs that may be on the page, in the order in which they were added. */
  readonly #added: Found<R>[] = []
  /** The run that was looked at last. */
  #at: SortKey | null

  /** @throws {@link InvalidRequestError} for an invalid cursor. */
  constructor(query: RunQuery) {
    const { sort, cursor } = query
    const { field, step } = orderOf(sort)
    const last = cursor === undefined ? null : decodeCursor(cursor, sort)
    this.#query = query
    this.#field = field
    this.step = step
    this.#textOf = field === null ? () => '' : TEXTS[field]
    this.#matches = matcher(query)
    this.#last = last && { run: last, text: field === 'cwd' ? shortened(last.order) : last.order }
    this.#at = field === null ? last : null
  }

  /** The keys between which the runs are that may be on the page and were not looked at. */
  get bounds(): [after: SortKey | null, before: SortKey | null] {
    return boundsOf(this.#query, this.#at, this.step)
  }

  /**
   * Looks at the next run by creation, in the direction of the list. Returns true once no later run
   * can be on the page.
   */
  add(run: R): boolean {
    this.#at = run
    if (!this.#matches(run)) return false
    const { limit } = this.#query
    if (this.#field === null) return this.#found.push({ run, text: '' }) > limit
    const text = this.#textOf(run)
    const end = this.#found[limit]
    // Of runs with the same text, those that come later are further behind.
    if (end !== undefined && this.#compare(end.text, text) <= 0) return false
    if (this.#last !== null) {
      const { run: last, text: from } = this.#last
      if ((this.#compare(from, text) || compareRuns(last, run) * this.step) >= 0) return false
    }
    const added = this.#added.push({ run, text })
    if (added >= Math.max(BATCH, this.#found.length / 8)) this.#sort()
    return false
  }

  #compare(a: string, b: string): number {
    return compareTexts(a, b) * this.step
  }

  /** Joins runs that were added with those found before, of which the last ones drop out. */
  #sort(): void {
    const all = this.#found.concat(this.#added.splice(0))
    all.sort((a, b) => this.#compare(a.text, b.text))
    this.#found = all.slice(0, this.#query.limit + 1)
  }

  /** Ends the scan. Returns whether every run that was found still is what it was found for. */
  end(isStored: (run: R) => boolean): boolean {
    this.#sort()
    return this.#found.every(
      ({ run, text }) => isStored(run) && this.#matches(run) && this.#textOf(run) === text,
    )
  }

  /** The page of the runs that were found. */
  page(): IndexPage<R> {
    const { limit, sort } = this.#query
    const page = this.#found.slice(0, limit)
    const last = page.at(-1)
    const runs = page.map(({ run }) => run)
    if (last === undefined || this.#found.length <= limit) return { runs, next: null }
    const { createdMs, runId, cwd } = last.run
    const order = this.#field === 'cwd' ? folderOrder(cwd ?? '') : last.text
    return { runs, next: encodeCursor({ createdMs, runId, order }, sort) }
  }
}

/** Tests a run against every condition of a query except time and cursor. */
function matcher(query: RunQuery): (run: IndexedRun) => boolean {
  const { tenant, status = [], goal, modelName, root, parent, role, cwd } = query
  const { endReason: reasons = [], metadata = {} } = query
  const keys = metadataKeys(metadata)
  const words = searchWords(query).map(ignoringCase)
  const conditions: ((run: IndexedRun) => boolean)[] = []
  if (tenant !== undefined) conditions.push((run) => run.tenant === tenant)
  if (status.length > 0) conditions.push((run) => status.includes(run.status))
  if (goal !== undefined) conditions.push((run) => run.goal === goal)
  if (modelName !== undefined) conditions.push((run) => run.modelName === modelName)
  if (root !== undefined) conditions.push((run) => (run.child?.root ?? run.runId) === root)
  if (parent !== undefined) conditions.push((run) => run.child?.parent === parent)
  if (role !== undefined) conditions.push((run) => run.child === null)
  if (cwd !== undefined) conditions.push((run) => run.cwd === cwd)
  if (reasons.length > 0)
    conditions.push(({ endReason }) => endReason !== null && reasons.includes(endReason))
  if (keys.length > 0) conditions.push((run) => keys.every((key) => run.metadata?.includes(key)))
  if (words.length > 0) conditions.push((run) => containsAll(run, words))
  return (run) => conditions.every((isMet) => isMet(run))
}

function containsAll({ goal, modelName, runId }: IndexedRun, words: readonly RegExp[]): boolean {
  return words.every((word) => word.test(goal) || word.test(modelName) || word.test(runId))
}

/** Matches a word in any case, without a lower-case copy of every goal. */
function ignoringCase(word: string): RegExp {
  return new RegExp(word.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'), 'i')
}

/** The first key of a page that follows `last`, and the first behind it; null sets no bound. */
function boundsOf(
  { createdAfter, createdBefore }: RunQuery,
  last: SortKey | null,
  step: 1 | -1,
): [after: SortKey | null, before: SortKey | null] {
  let before = createdBefore === undefined ? null : startOfMs(Math.ceil(toMs(createdBefore)))
  let after = createdAfter === undefined ? null : startOfMs(Math.floor(toMs(createdAfter)) + 1)
  if (last === null) return [after, before]
  if (step === -1) {
    if (before === null || compareRuns(last, before) < 0) before = last
  } else {
    // The next key that a run can have.
    const next = { createdMs: last.createdMs, runId: `${last.runId}\0` }
    if (after === null || compareRuns(after, next) < 0) after = next
  }
  return [after, before]
}

/** Sorts before every run created in this millisecond. */
function startOfMs(createdMs: number): SortKey {
  return { createdMs, runId: '' }
}
