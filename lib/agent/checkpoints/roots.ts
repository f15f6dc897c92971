import { StoreError } from '../errors.js'
import { headsOf } from '../log/heads-of.js'
import type { RunHead } from '../run-details.js'
import type { RunStore } from '../store.js'

/** The part of a store of runs that is read here. */
export type StoredRuns = Pick<RunStore, 'counts' | 'head' | 'list' | 'read'>

/**
 * The ids of all checkpoints that stored runs refer to, some of them several times. Only the
 * records of checkpoints are read, from the newest one back, and of forks the first record.
 *
 * @throws {@link StoreError} when some run cannot be read, and may refer to anything; the signal's
 * reason.
 */
export async function* checkpointsOf(
  store: StoredRuns,
  signal: AbortSignal,
): AsyncGenerator<string> {
  for await (const head of headsOf(store, {}, signal)) yield* rootsOf(store, head, signal)
}

async function* rootsOf(
  store: StoredRuns,
  { details, checkpointSeq, problem }: RunHead,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const { run_id, forked_from } = details
  if (problem !== undefined) throw unreadable(run_id, problem)
  if (forked_from !== null) {
    const [created] = await store.read(run_id, 0, 1)
    if (created === undefined) return await assertDeleted(store, run_id)
    const fork = created.kind === 'run_created' ? created.private?.fork : undefined
    for (const id of [fork?.checkpoint_id, fork?.applies_from]) if (id != null) yield id
  }
  for (let seq = checkpointSeq; seq !== null; ) {
    signal.throwIfAborted()
    const [record] = await store.read(run_id, seq - 1, 1)
    if (record?.kind !== 'checkpoint') return await assertDeleted(store, run_id)
    yield record.payload.checkpoint_id
    const previous: number | null = record.private?.previous ?? null
    // Whatever the log holds, this ends.
    seq = previous !== null && previous < seq ? previous : null
  }
}

/** A run that was deleted meanwhile refers to nothing. */
async function assertDeleted(store: StoredRuns, runId: string): Promise<void> {
  if ((await store.head(runId)) === null) return
  throw unreadable(runId, 'a checkpoint is missing from its log')
}

function unreadable(runId: string, problem: string): StoreError {
  const message = `run ${runId} cannot be read: ${problem}`
  return new StoreError('ERR_AGENT_STORE_CORRUPT', message)
}
