import type { GoalBaseline } from '../../goal.js'
import { captureBaseline } from '../../goals/protected-files.js'
import type { RecordDraft } from '../../events.js'
import type { StepContext } from '../step-context.js'

/** Begins a run: records the files that must not change before the agent can touch anything. */
export async function startRun(context: StepContext): Promise<void> {
  const { folder, log } = context
  const { fork, request } = log.state.frozen
  // A fork in place, whose source was set up elsewhere, has to be set up as well.
  const isHere = fork === undefined || (fork.lacks_setup === true && context.isolated === null)
  const { setup: command } = request
  const setup = isHere && command !== undefined && setupRecord(command)
  // What the setup makes is part of the start.
  const isLater = (setup !== false || log.state.setup === 'due') && fork?.baseline == null
  const baseline = isLater ? undefined : await baselineOf(context)
  const facts = {
    ...(baseline !== undefined && { baseline }),
    ...(folder.identity !== null && { folder: folder.identity }),
  }
  await log.append([
    { kind: 'run_started', iteration: 0, payload: {}, private: facts },
    ...(setup === false ? [] : [setup]),
  ])
}

/** The files of the check as they are now, or of the source of a fork. */
export async function baselineOf({ folder, log }: StepContext): Promise<GoalBaseline> {
  const { fork, goal } = log.state.frozen
  // What the source changed of its tests is noticed in a fork as well.
  if (fork?.baseline != null) return fork.baseline
  if (goal.by_result === true) return { files: {} }
  return await folder.guard(() => captureBaseline(goal, folder.real, folder.path))
}

function setupRecord(command: string): RecordDraft {
  return { kind: 'setup_started', iteration: 0, payload: { command } }
}
