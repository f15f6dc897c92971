/**
 * What details have besides the head of their run: instructions, schema, result and answer, which
 * would be in each list that is read, and in each head that is written.
 *
 * @module
 */
import type { PrivatePayloads, RunRecord } from '../events.js'
import type { RunDetails, RunHead } from '../run-details.js'
import type { RecordReader } from '../log/read-log.js'

/** The whole details of a run; reads those records of its log that have something of them. */
export async function completeDetails(store: RecordReader, head: RunHead): Promise<RunDetails> {
  const { details, answerSeq, hasInstructions, hasResultSchema, resultSeq } = head
  const recordAt = async (seq: number | null): Promise<RunRecord | undefined> =>
    seq === null ? undefined : (await store.read(details.run_id, seq - 1, 1))[0]
  const first = hasInstructions || hasResultSchema ? await recordAt(1) : undefined
  const frozen = first?.kind === 'run_created' ? first.private : undefined
  const answered = await recordAt(answerSeq)
  const given = resultSeq === answerSeq ? answered : await recordAt(resultSeq)
  return {
    ...(frozen === undefined ? details : withFrozen(details, frozen)),
    answer: answerIn(answered),
    result: given?.kind === 'result' || given?.kind === 'attempt_chosen'
      ? (given.payload.result ?? null)
      : null,
  }
}

function answerIn(record: RunRecord | undefined): string {
  if (record?.kind === 'model_turn') return record.payload.text
  return record?.kind === 'attempt_chosen' ? (record.payload.answer ?? '') : ''
}

/** Details with what the first record of the run has of them. */
export function withFrozen(
  details: RunDetails,
  frozen: PrivatePayloads['run_created'] | undefined,
): RunDetails {
  const instructions = frozen?.request.instructions ?? null
  const project_instructions = frozen?.instructions?.project ?? null
  const result_schema = frozen?.request.result_schema ?? null
  return { ...details, instructions, project_instructions, result_schema }
}
