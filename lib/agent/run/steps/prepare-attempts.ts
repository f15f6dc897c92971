import { CheckpointError } from '../../errors.js'
import { withCheckpoint, type StepContext } from '../step-context.js'

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
