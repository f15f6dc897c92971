import { StoreError } from '../errors.js'
import type { RunRecord } from '../events.js'

/**
 * Checks what is about to be appended to a run whose last record has sequence number `lastSeq`.
 *
 * @throws {@link StoreError} with `ERR_AGENT_SEQ_CONFLICT`; TypeError when the records are of
 * another run, are none, or do not begin with `run_created`.
 */
export function checkAppend(runId: string, records: readonly RunRecord[], lastSeq: number): void {
  if (records.length === 0) throw new TypeError(`append to run ${runId} without records`)
  let next = lastSeq
  for (const record of records) {
    next += 1
    if (record.run_id !== runId) {
      throw new TypeError(`a record of run ${record.run_id} was appended to run ${runId}`)
    }
    if (record.seq !== next) {
      throw new StoreError(
        'ERR_AGENT_SEQ_CONFLICT',
        `the next record of run ${runId} is ${next}, not ${record.seq}: ` +
          'another writer was faster, or the run was deleted',
      )
    }
  }
  if (lastSeq === 0 && records[0]?.kind !== 'run_created') {
    throw new TypeError(`run ${runId} must begin with run_created, not ${records[0]?.kind}`)
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
