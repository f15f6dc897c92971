import { captureBaseline } from '../../goals/protected-files.js'
import type { StepContext } from '../step-context.js'

/** Begins a run: records the files that must not change before the agent can touch anything. */
export async function startRun({ log, folder }: StepContext): Promise<void> {
  const { goal, fork } = log.state.frozen
  const { identity, path, real } = folder
  // What the source changed of its tests is noticed in a fork as well.
  const baseline =
    fork?.baseline ??
    (goal.by_result === true
      ? { files: {} }
      : await folder.guard(() => captureBaseline(goal, real, path)))
  const facts = { baseline, ...(identity !== null && { folder: identity }) }
  await log.append([{ kind: 'run_started', iteration: 0, payload: {}, private: facts }])
}
