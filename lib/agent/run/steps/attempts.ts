import { CheckpointError } from '../../errors.js'
import { candidatesOf } from '../children/attempts.js'
import { withCheckpoint, type StepContext } from '../step-context.js'
import { gateRecords } from './human-check.js'

/** Stores the files with which all attempts begin, and names the attempts in the log. */
export async function prepareAttempts(context: StepContext): Promise<void> {
  const { children, log } = context
  await withCheckpoint(context, 'start', async (drafts) => {
    if (drafts.length === 0 && log.state.checkpoints === null) {
      const message = 'the files with which attempts begin could not be stored: see the log'
      throw new CheckpointError('not_kept', message)
    }
    await children.nameAttempts(drafts)
  })
}

/** Opens the gate at which a human chooses one of the attempts that achieved the goal. */
export async function offerChoice(context: StepContext): Promise<void> {
  const { log } = context
  const gate = { kind: 'choice', calls: [], candidates: candidatesOf(log.state) } as const
  await log.append(gateRecords(log.state, gate, context))
}
