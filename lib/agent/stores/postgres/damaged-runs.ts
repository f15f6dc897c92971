/**
 * Runs of which this process could not read the row, or a record: quarantined, as those of a data
 * folder are. They are listed with their problem and can be deleted; every other call for one is
 * refused, so that it stands in the way of no other run.
 *
 * @module
 */
import { parseJson } from '../../../internal/json.js'
import { StoreError } from '../../errors.js'
import { RECORD_VERSION, type RunRecord } from '../../events.js'
import { warn } from '../../output.js'
import type { RunHead } from '../../run-details.js'
import type { ChildRole } from '../../run-tree.js'
import type { QuarantinedRun } from '../../store.js'
import type { ChildPlace } from '../indexed-run.js'
import { unreadableHead } from '../unreadable-head.js'
import type { PgRow } from './pg-types.js'
import { headOf } from './run-rows.js'

/** Runs that are remembered; further ones are refused as well, whenever they are read. */
const MAX_RUNS = 1_000

const UNREADABLE_ROW = 'its row cannot be read'

/** Fields of the details that no head lacks. */
const FIELDS = Object.keys(unreadableHead('').details) as (keyof RunHead['details'])[]

/** See the comment of this file. */
export class DamagedRuns {
  readonly #reasons = new Map<string, string>()

  get all(): readonly QuarantinedRun[] {
    return [...this.#reasons].map(([runId, reason]) => ({ runId, reason }))
  }

  /** Removes a run that was deleted. */
  forget(runId: string): void {
    this.#reasons.delete(runId)
  }

  /** @throws {@link StoreError} with `ERR_AGENT_STORE_CORRUPT` for a quarantined run. */
  assertReadable(runId: string): void {
    const reason = this.#reasons.get(runId)
    if (reason !== undefined) throw corrupt(runId, reason)
  }

  /**
   * The head of a row with `HEAD_COLUMNS`.
   *
   * @throws {@link StoreError} with `ERR_AGENT_STORE_CORRUPT`, also for a quarantined run.
   */
  head(row: PgRow): RunHead {
    const runId = row['run_id'] as string
    this.assertReadable(runId)
    const head = readHead(row)
    if (head !== null) return head
    throw this.#quarantine(runId, UNREADABLE_ROW)
  }

  /** The same as lists show it, of a row that has its place in a tree as well; never throws. */
  listed(row: PgRow): RunHead {
    const runId = row['run_id'] as string
    const head = readHead(row)
    if (head === null) {
      this.#quarantine(runId, UNREADABLE_ROW)
      return { ...unreadableHead(runId, placeOf(row)), problem: UNREADABLE_ROW }
    }
    const problem = this.#reasons.get(runId)
    return problem === undefined ? head : { ...head, problem }
  }

  /**
   * The record of a row.
   *
   * @throws {@link StoreError} with `ERR_AGENT_STORE_CORRUPT`; with `ERR_AGENT_STORE_VERSION` for a
   * record that this version must not ignore and cannot read.
   */
  record(runId: string, row: PgRow): RunRecord {
    const record = parseJson(row['record'] as string) as unknown as Partial<RunRecord> | undefined
    const isRecord = record?.seq === row['seq'] && typeof record?.kind === 'string'
    if (!isRecord) throw this.#quarantine(runId, `record ${String(row['seq'])} cannot be read`)
    const version: number = (record as RunRecord).v
    if (version <= RECORD_VERSION) return record as RunRecord
    throw new StoreError(
      'ERR_AGENT_STORE_VERSION',
      `run ${runId} was continued by a newer version: record ${record.seq} has format ` +
        `${version}, this one reads up to ${RECORD_VERSION}; update runwright in this process`,
    )
  }

  #quarantine(runId: string, reason: string): StoreError {
    const error = corrupt(runId, reason)
    if (!this.#reasons.has(runId) && this.#reasons.size < MAX_RUNS) {
      this.#reasons.set(runId, reason)
      warn(error.message, { type: 'StoreWarning', code: error.code })
    }
    return error
  }
}

function readHead(row: PgRow): RunHead | null {
  try {
    const head = headOf(row)
    const isHead = FIELDS.every((field) => head.details[field] !== undefined)
    return isHead && head.details.run_id === row['run_id'] ? head : null
  } catch {
    return null
  }
}

function placeOf(row: PgRow): ChildPlace | null {
  const root = row['root_run_id'] as string | null
  const role = row['role'] as ChildRole | null
  if (root === null || role === null) return null
  return { root, parent: row['parent_run_id'] as string | null, role }
}

function corrupt(runId: string, reason: string): StoreError {
  const remedy = 'restore the database from a backup, or delete the run'
  const message = `run ${runId} is quarantined: ${reason}; ${remedy}`
  return new StoreError('ERR_AGENT_STORE_CORRUPT', message)
}
