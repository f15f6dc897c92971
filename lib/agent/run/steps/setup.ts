import { DEFAULT_CHECK_TIMEOUT_MS } from '../../goals/command-goal.js'
import type { StepContext } from '../step-context.js'
import { baselineOf } from './start.js'

/** Bytes of output that are kept. */
const MAX_OUTPUT_BYTES = 16 * 1024

/**
 * Runs the `setup` of the request. A crash in the middle leaves it due, and the next process runs
 * it from its beginning.
 *
 * @throws the signal's reason.
 */
export async function setUp(context: StepContext): Promise<void> {
  const { executor, folder, log, signal } = context
  const { goal, request } = log.state.frozen
  const { iteration } = log.state.head.details
  await log.verify()
  // What an interrupted setup has left would change the folder beside this one.
  await executor.killMarked(log.runId)
  const { durationMs, exitCode, output } = await executor.run(request.setup ?? 'true', {
    cwd: folder.real,
    env: {},
    timeoutMs: Math.max(goal.timeout_ms, DEFAULT_CHECK_TIMEOUT_MS),
    maxOutputBytes: MAX_OUTPUT_BYTES,
    mark: log.runId,
    writable: [],
    signal,
  })
  signal.throwIfAborted()
  const payload = { exit_code: exitCode, output, duration_ms: Math.round(durationMs) }
  const isFirst = log.state.baseline === null
  const facts = exitCode === 0 && isFirst ? { baseline: await baselineOf(context) } : {}
  await log.append([{ kind: 'setup_ended', iteration, payload, private: facts }])
}
