import { StoreError } from '../errors.js'
import type { RunRecord } from '../events.js'

/**
 * Checks an append to a run whose last record has sequence number `lastSeq`, 0 for a new run.
 *
 * @throws {@link StoreError} with `ERR_AGENT_SEQ_CONFLICT`; TypeError when there are no records,
 * one belongs to another run, or the first of a new run is not `run_created`.
 */
export function checkAppend(runId: string, records: readonly RunRecord[], lastSeq: number): void {
  if (records.length === 0) throw new TypeError(`append() to run ${runId} needs a record`)
  let next = lastSeq
  for (const record of records) {
    next += 1
    if (record.run_id !== runId) {
      throw new TypeError(`append() to run ${runId} got a record of run ${record.run_id}`)
    }
    if (record.seq !== next) {
      throw new StoreError(
        'ERR_AGENT_SEQ_CONFLICT',
        `the next record of run ${runId} must have seq ${next}, got ${record.seq}: ` +
          'another writer appended first, or the run was deleted; read the run again',
      )
    }
  }
  if (lastSeq === 0 && records[0]?.kind !== 'run_created') {
    throw new TypeError(`run ${runId} must begin with run_created, got ${records[0]?.kind}`)
  }
}

/**
 * Checks the bounds of a page of records.
 *
 * @throws RangeError when `after` is negative or `limit` is less than 1.
 */
export function checkPage(after: number, limit: number): void {
  if (!(after >= 0)) throw new RangeError(`after must be 0 or more, got ${after}`)
  if (!(limit >= 1)) throw new RangeError(`limit must be 1 or more, got ${limit}`)
}
