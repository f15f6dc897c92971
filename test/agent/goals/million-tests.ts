import { randomBytes } from 'node:crypto'

import type { RunRecord } from 'runwright/agent'

/** The record of a first check of a million tests in 5 000 files. */
export function millionTests(runId: string, seq: number): RunRecord {
  const files = Array.from({ length: 5_000 }, (_, i) => [`test/${i}.js`, 200, 0, 0] as const)
  const pass = randomBytes(9_000_000).toString('base64')
  const tests = { hashed: { files, pass, fail: '', skip: '', broken: {} } }
  const counts = { total: 1_000_000, passed: 1_000_000, failed: 0, skipped: 0 }
  return {
    v: 3, run_id: runId, seq, kind: 'goal_check', iteration: 0, ts: 1_900_000_000,
    payload: {
      achieved: false, reason: 'exit code 1', verified_by: 'command', cached: false, counts,
      duration_ms: 1,
    },
    private: { output: '', tests },
  }
}
