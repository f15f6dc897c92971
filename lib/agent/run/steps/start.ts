import { captureBaseline } from '../../goals/protected-files.js'
import type { RunContext } from '../step-context.js'

/** Begins a run: takes down what must not change, before the agent can touch anything. */
export async function startRun({ log, workspace }: RunContext): Promise<void> {
  const baseline = await captureBaseline(log.state.frozen.goal, workspace.root)
  await log.append([{ kind: 'run_started', iteration: 0, payload: {}, private: { baseline } }])
}
