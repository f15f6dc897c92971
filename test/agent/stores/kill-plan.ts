import assert from 'node:assert/strict'
import type { RunRecord } from 'runwright/agent'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { openStore, readAll } from './store-files.js'

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

/** True at the end of an append; otherwise one was stored in part. */
export function isBoundary(runId: string, count: number): boolean {
  let at = 0
  while (at < count) at += batchAt(runId, at + 1).length
  return at === count
}

/** What children said about their runs before they were killed. */
export class Acknowledged {
  /** Number of records by run. */
  readonly #records = new Map<string, number>()
  /** Runs whose deletion was requested. */
  readonly #doomed = new Set<string>()
  /** Runs whose deletion was acknowledged. */
  readonly #deleted = new Set<string>()

  get deletions(): number {
    return this.#deleted.size
  }

  hear(line: string): void {
    const [sign, runId = '', seq] = line.split(' ')
    if (sign === '+') this.#records.set(runId, Number(seq))
    if (sign === '?') this.#doomed.add(runId)
    if (sign === '-') this.#deleted.add(runId)
  }

  /** Asserts that all of it is in a directory, once and as a whole. */
  async assertIn(directory: string, title: string): Promise<void> {
    const store = await openStore(directory, { segmentBytes: 32 << 10 })
    assert.deepEqual(store.damage(), { runs: [], files: [] }, title)
    const { heads } = await store.list({ limit: 100_000 })
    const found = new Map(heads.map(({ details }) => [details.run_id, details.last_seq]))
    for (const [runId, count] of this.#records) {
      const left = found.get(runId)
      if (this.#deleted.has(runId)) {
        assert.equal(left, undefined, `${title}: ${runId} was deleted and has reappeared`)
        this.#records.delete(runId)
      } else if (left !== undefined || !this.#doomed.has(runId)) {
        assert.ok((left ?? 0) >= count, `${title}: ${runId} has ${left ?? 0} of ${count} records`)
      }
    }
    for (const [runId, count] of found) {
      assert.ok(isBoundary(runId, count), `${title}: ${runId} has part of an append: ${count}`)
      assert.deepEqual(await readAll(store, runId), logOf(runId).slice(0, count), title)
    }
    await store.close()
  }
}
