import type { Clock } from '../../internal/clock.js'
import { estimateTokens } from '../conversation/fit.js'
import { systemPrompt } from '../conversation/prompts.js'
import type { Executor } from '../executor.js'
import type { LogWriter } from '../log/writer.js'
import type { Model, ToolSpec } from '../model.js'
import type { RunStore } from '../store.js'
import type { Tool, ToolContext } from '../tool.js'
import type { RunTrace } from '../tracing/run-trace.js'
import type { FileChange, Workspace } from '../workspace/workspace.js'

/** What is sent with every model call of a run, whatever else was left out. */
export interface Prompt {
  readonly system: string
  readonly tools: readonly ToolSpec[]
  /** About how many tokens it takes. */
  readonly tokens: number
}

/** The prompt of a run that works in `cwd`, its goal `judged` by a model or checked by a command. */
export function promptOf(cwd: string, judged: boolean, offered: ReadonlyMap<string, Tool>): Prompt {
  const system = systemPrompt(cwd, judged)
  const tools = [...offered.values()].map(({ name, description, parameters }) => ({
    name,
    description,
    parameters,
  }))
  const tokens = estimateTokens({ role: 'user', text: system + JSON.stringify(tools) })
  return { system, tools, tokens }
}

/** What the steps of one run work with. */
export interface StepContext {
  readonly log: LogWriter
  readonly model: Model
  /** Judges the goal, where no command does. */
  readonly judge: Model | null
  readonly store: RunStore
  readonly tools: ReadonlyMap<string, Tool>
  readonly prompt: Prompt
  /** Tokens of conversation that the model is known to take; learned when it refuses more. */
  readonly fit: { tokens: number }
  readonly workspace: Workspace
  readonly executor: Executor
  readonly clock: Clock
  readonly trace: RunTrace
  /** A number from 0 to 1, for the jitter of retries. */
  readonly random: () => number
  /** Ends whatever the run is doing. */
  readonly signal: AbortSignal
  /** Milliseconds after which a tool counts as timed out, whatever it does. */
  readonly toolTimeoutMs: number
  /** Milliseconds until a gate that opens now lapses; null waits for ever. */
  readonly gateTimeoutMs: number | null
  /** End the run when it goes round in circles? */
  readonly detectStuck: boolean
}

/**
 * What one tool call gets to work with. With `onChanges`, it is told which files each command of the
 * tool changed.
 */
export function toolContext(
  context: StepContext,
  callId: string,
  stop: { readonly signal: AbortSignal },
  onStart: (pgid: number) => Promise<void>,
  onChanges?: (changes: readonly FileChange[]) => void,
): ToolContext {
  const { workspace, executor, log } = context
  return {
    runId: log.runId,
    callId,
    workspace,
    get signal() {
      return stop.signal
    },
    run: async (command, options) => {
      // What others changed meanwhile is not this command's.
      if (onChanges !== undefined) await changesIn(workspace)
      const result = await executor.run(command, {
        cwd: workspace.root,
        env: {},
        timeoutMs: 120_000,
        maxOutputBytes: 65_536,
        mark: log.runId,
        writable: [],
        ...options,
        signal: stop.signal,
        onStart,
      })
      onChanges?.(await changesIn(workspace))
      return result
    },
  }
}

/** A workspace that cannot be looked at is no failure of the command. */
export async function changesIn(workspace: Workspace): Promise<readonly FileChange[]> {
  return await workspace.changes().catch(() => [])
}
