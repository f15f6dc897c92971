import type { RunRecord } from '../events.js'

/** The part of a store that reads logs: `read` of `RunStore`. */
export interface RecordReader {
  read(runId: string, after: number, limit: number): Promise<readonly RunRecord[]>
}

/** The whole log of a run, in pages of at most `limit` records; nothing for an unknown run. */
export async function* readLog(
  store: RecordReader,
  runId: string,
  limit: number,
): AsyncGenerator<readonly RunRecord[]> {
  for (let after = 0; ; ) {
    const records = await store.read(runId, after, limit)
    yield records
    const last = records.at(-1)
    if (last === undefined || records.length < limit) return
    after = last.seq
  }
}
