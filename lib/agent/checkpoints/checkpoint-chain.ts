/**
 * The checkpoints of a run, found without reading its log: each record names the one before it, and
 * the head of the run the newest.
 *
 * @module
 */
import type { Checkpoint } from '../checkpoint.js'
import type { CheckpointReason, RecordDraft, RunRecord } from '../events.js'
import type { RecordReader } from '../log/read-log.js'
import type { RunHead } from '../run-details.js'
import type { Captured } from '../workspace/tracked-folder.js'

type CheckpointRecord = Extract<RunRecord, { kind: 'checkpoint' }>

/**
 * The record of a checkpoint of a run with this head.
 *
 * @param checkStart see the private part of the record
 */
export function checkpointDraft(
  { checkpoint_id, files, bytes, new_bytes, left_out }: Captured,
  reason: CheckpointReason,
  { details, checkpointSeq }: RunHead,
  checkStart: string | null = null,
): RecordDraft {
  return {
    kind: 'checkpoint',
    iteration: details.iteration,
    payload: { checkpoint_id, reason, files, bytes, new_bytes, left_out },
    private: {
      previous: checkpointSeq ?? null,
      ...(checkStart !== null && { check_start: checkStart }),
    },
  }
}

/** The checkpoints of a run, newest first. */
export async function* newestFirst(
  store: RecordReader,
  head: RunHead,
): AsyncGenerator<Checkpoint> {
  for await (const record of checkpointRecords(store, head)) yield checkpointOf(record)
}

/** Their records, newest first. */
export async function* checkpointRecords(
  store: RecordReader,
  { details, checkpointSeq }: RunHead,
): AsyncGenerator<CheckpointRecord> {
  let seq = checkpointSeq ?? 0
  while (seq > 0) {
    const [record] = await store.read(details.run_id, seq - 1, 1)
    if (record?.kind !== 'checkpoint' || record.seq !== seq) return
    yield record
    const previous = record.private?.previous ?? 0
    // A damaged log must not make this endless.
    seq = previous < seq ? previous : 0
  }
}

function checkpointOf({ seq, iteration, payload }: CheckpointRecord): Checkpoint {
  const { checkpoint_id, reason, files, bytes, left_out } = payload
  return { checkpoint_id, seq, iteration, reason, files, bytes, left_out }
}

/** Is it one of the folder that the user meant, although the run works in a copy of it? */
export function isOfOriginal({ reason }: Pick<Checkpoint, 'reason'>): boolean {
  return reason === 'apply'
}
