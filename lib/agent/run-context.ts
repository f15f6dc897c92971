import type { Clock } from '../internal/clock.js'
import type { Executor } from './executor.js'
import type { Model } from './model.js'
import type { RunLog } from './run-log.js'
import type { Tool, ToolContext } from './tool.js'
import type { Workspace } from './workspace.js'

/** What the steps of one run work with. */
export interface RunContext {
  readonly log: RunLog
  readonly model: Model
  readonly tools: ReadonlyMap<string, Tool>
  readonly workspace: Workspace
  readonly executor: Executor
  readonly clock: Clock
  /** A number from 0 to 1, for the jitter of retries. */
  readonly random: () => number
  /** Ends whatever the run is doing. */
  readonly signal: AbortSignal
  /** Milliseconds after which a tool counts as timed out, whatever it does. */
  readonly toolTimeoutMs: number
  /** Milliseconds until a gate that opens now lapses; null waits for ever. */
  readonly gateTimeoutMs: number | null
}

/** What one tool call gets to work with. */
export function toolContext(
  context: RunContext,
  callId: string,
  stop: { readonly signal: AbortSignal },
  onStart: (pgid: number) => Promise<void>,
): ToolContext {
  const { workspace, executor, log } = context
  return {
    runId: log.runId,
    callId,
    workspace,
    get signal() {
      return stop.signal
    },
    run: (command, options) =>
      executor.run(command, {
        cwd: workspace.root,
        env: {},
        timeoutMs: 120_000,
        maxOutputBytes: 65_536,
        mark: log.runId,
        writable: [],
        ...options,
        signal: stop.signal,
        onStart,
      }),
  }
}
