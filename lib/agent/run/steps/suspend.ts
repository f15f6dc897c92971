import { isTerminal, type RecordDraft } from '../../events.js'
import type { Executor } from '../../executor.js'
import type { CallState } from '../../log/run-state.js'
import type { LogWriter } from '../../log/writer.js'
import { startedResults, type LastCheckpoint } from './finish.js'

const STOPPED = 'Stopped: the service shut down while this ran.'

/** Milliseconds from the request to stop until the files are stored: less than a shutdown waits. */
export const HAND_OVER_MS = 4_500

/**
 * Records that the run stops here and goes on later. `checkpoints`: in another process, which finds
 * the files only if they are stored; that takes `leftMs` at most. Calls that go on later stay open;
 * what the others have done is over.
 */
export async function suspendRun(
  log: LogWriter,
  executor: Executor,
  checkpoints: LastCheckpoint | null,
  leftMs: () => number,
  goesOn: (call: CallState) => boolean,
): Promise<void> {
  const { status, iteration } = log.state.head.details
  if (isTerminal(status)) return
  if (status !== 'running') return await log.flush()
  const append = async (drafts: readonly RecordDraft[]): Promise<void> => {
    const stopped = startedResults(log.state, STOPPED, (call) => !goesOn(call))
    await log.append([...stopped, ...drafts, { kind: 'run_suspended', iteration, payload: {} }])
  }
  const { checkpoints: stored, lastWrite, mayHaveStrays } = log.state
  if (checkpoints === null || lastWrite <= (stored?.seq ?? 0)) return await append([])
  // Otherwise they could write what is not in the checkpoint any more.
  if (mayHaveStrays) await executor.killMarked(log.runId).catch(() => 0)
  await checkpoints.recordLast('shutdown', leftMs(), log, append)
}
