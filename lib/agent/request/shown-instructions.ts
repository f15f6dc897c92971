/**
 * The texts of instructions, which heads do not have: they would be in each list that is read, and
 * in each head that is written.
 *
 * @module
 */
import type { PrivatePayloads } from '../events.js'
import type { RunDetails, RunHead } from '../run-details.js'
import type { RunStore } from '../store.js'

/** The details of a run with its instructions; reads its first record if it has any. */
export async function completeDetails(
  store: RunStore,
  { details, hasInstructions }: RunHead,
): Promise<RunDetails> {
  if (!hasInstructions) return details
  const [first] = await store.read(details.run_id, 0, 1)
  return withInstructions(details, first?.kind === 'run_created' ? first.private : undefined)
}

/** Details with the instructions that the first record of the run has. */
export function withInstructions(
  details: RunDetails,
  frozen: PrivatePayloads['run_created'] | undefined,
): RunDetails {
  const instructions = frozen?.request.instructions ?? null
  const project_instructions = frozen?.instructions?.project ?? null
  return { ...details, instructions, project_instructions }
}
