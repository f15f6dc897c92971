import type { RunRecord } from '../../../lib/agent/events.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'

/** Records of each run. */
export const RUN_LENGTH = 24

/** The whole log of a run, the same in every process. */
export function logOf(runId: string): RunRecord[] {
  const text = `of ${runId}, ${'x'.repeat(runId.length * 7)}`
  return sampleRun(runId, { records: RUN_LENGTH, text })
}

/** The records of the append that begins with `seq`: one to four, fewer at the end of the run. */
export function batchAt(runId: string, seq: number): RunRecord[] {
  return logOf(runId).slice(seq - 1, seq - 1 + 1 + ((seq * 7 + runId.length) % 4))
}

/** Is this the end of an append? Otherwise an append was stored in part. */
export function isBoundary(runId: string, count: number): boolean {
  let at = 0
  while (at < count) at += batchAt(runId, at + 1).length
  return at === count
}
