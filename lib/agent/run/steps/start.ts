import { captureBaseline } from '../../goals/protected-files.js'
import type { StepContext } from '../step-context.js'

/** Begins a run: records the files that must not change before the agent can touch anything. */
export async function startRun({ log, workspace }: StepContext): Promise<void> {
  const baseline = await captureBaseline(log.state.frozen.goal, workspace.root)
  await log.append([{ kind: 'run_started', iteration: 0, payload: {}, private: { baseline } }])
}
