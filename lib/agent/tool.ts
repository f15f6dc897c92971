/**
 * The seam to tools: what the model may call. {@link defineTool} creates one.
 *
 * @module
 */
import type { JsonObject, JsonValue } from '../internal/json.js'
import type { ChangeCounts, RunStatus } from './events.js'
import type { CommandResult } from './executor.js'
import type { Assurance } from './goal.js'
import type { JsonSchema } from './schema.js'
import type { ToolCommandOptions } from './tool-command.js'
import type { WorkspaceCopies } from './workspace-copy.js'
import type { FileChange, Workspace } from './workspace/workspace.js'

/**
 * What running a tool twice would do, which decides what happens to an interrupted call after a
 * crash: `read` changes nothing and runs again; `idempotent` can verify whether the call was done
 * and runs again if it was not; `unsafe` never runs twice.
 */
export type ToolEffect = 'read' | 'idempotent' | 'unsafe'

/** What one tool execution may use. */
export interface ToolContext {
  readonly runId: string
  readonly callId: string
  /**
   * The run's working directory; resolve every path with it. Of a run without a folder, `root` is
   * empty and every method but `changes()` throws `ERR_AGENT_WORKSPACE`, as `run()` does. The same
   * object in all calls of a run while this process works on it.
   */
  readonly workspace: Workspace
  /** Aborts the execution; a tool that waits must listen to it. */
  readonly signal: AbortSignal
  /**
   * Runs a command with the host's executor, in the workspace, marked as belonging to the run.
   * Never put an argument of the model into a command line: pass it as a variable in `env`, which
   * the line quotes (`"$BRANCH"`), or run a program with `args`, which no shell reads.
   *
   * @throws TypeError for an unknown option, NUL in `args` or `env`, a name in `env` that is none
   * of a shell's, and arguments or variables that are too long.
   */
  run(command: string, options?: ToolCommandOptions): Promise<CommandResult>
  /**
   * Private copies of the workspace, in which the tool can edit files and run commands without
   * changing anything in the workspace. Only for tools with `startsProcess`.
   */
  readonly copies: WorkspaceCopies
  /**
   * Starts another run, which works in a copy of the workspace as it is now, and waits for its end,
   * without a slot. The changes of one that achieves its goal are brought back, three-way. It
   * spends the budget of this run, and ends with the call; a call that is repeated after a crash
   * gets the same runs for the same requests in the same order. Only `execute` starts runs.
   *
   * @throws {@link DelegationError} in `plan` and `verify`, beyond the limits, and unless the
   * request and the host's option `delegation` allow it; as the engine's `create`; the reason when
   * the call is stopped.
   */
  startRun(request: DelegateRequest): Promise<DelegateResult>
}

/** What a run asks another one to do; its other settings are those of the run that asks. */
export interface DelegateRequest {
  readonly goal: string
  /** Shell command that verifies a free-text goal by its exit code. */
  readonly check?: string | undefined
  /** @defaultValue the model of the run that asks */
  readonly model_name?: string | undefined
  /** @defaultValue 20 */
  readonly max_iterations?: number | undefined
  /** Budgets within what is left to the run that asks, which is the default. */
  readonly max_total_tokens?: number | undefined
  readonly max_cost_usd?: number | undefined
  readonly max_seconds?: number | undefined
  readonly max_tool_calls?: number | undefined
  /** What its result must match; without it, the run gives none. */
  readonly result_schema?: JsonObject | undefined
}

/** What came of a run that a tool started. */
export interface DelegateResult {
  readonly run_id: string
  readonly status: RunStatus
  readonly reason: string
  readonly assurance: Assurance | null
  /** Its net change; null when that is not known. */
  readonly changes: ChangeCounts | null
  /** Paths that were changed on both sides: here, they stay as they were. */
  readonly conflicts: readonly string[]
  /** Its result; null unless it has given one. */
  readonly result: JsonValue
  /** The last text of its model; empty for none. */
  readonly answer: string
}

/** A file that a tool gives back. */
export interface ToolFile {
  /**
   * Such as `image/png` or `text/csv`. Images (PNG, JPEG, GIF, WebP; by their bytes, whatever this
   * says) are shown to models that take images; text is appended to the output; of other files the
   * model gets name, type and size.
   */
  readonly mediaType: string
  /** Bytes, or base64. At most 8 images of 3 750 000 bytes each are shown. */
  readonly data: Uint8Array | string
  /** For the model and for people. */
  readonly name?: string | undefined
}

/** The result of a tool. A failure is a result with a non-zero exit code, not an exception. */
export interface ToolOutput {
  readonly output: string
  /** The command's own, or 0 ok, 1 tool error, 124 timeout, 126 refused. */
  readonly exitCode: number
  readonly changes?: readonly FileChange[]
  readonly files?: readonly ToolFile[] | undefined
}

/** One tool that runs may use. */
export interface Tool {
  /** Matches `^[a-zA-Z0-9_-]{1,64}$`. */
  readonly name: string
  readonly description: string
  /** An object schema, which models are sent; arguments are checked against it, or by `check`. */
  readonly parameters: JsonSchema
  readonly effect: ToolEffect
  /** True when the tool runs a command: the log then records its process group. */
  readonly startsProcess?: boolean
  /**
   * True when the tool may change files of the workspace without reporting which: the engine then
   * compares the workspace before and after, as it does for commands. Not for `read` tools.
   */
  readonly changesFiles?: boolean
  /**
   * True for a tool that tries things out and leaves the workspace as it is. Whether a run is stuck
   * is then told by what is tried, not by what comes of it: a call with arguments that are new to
   * the files as they are is progress, the same call again is none, even if its answer differs.
   */
  readonly explores?: boolean
  /**
   * True for a tool that is useless without a folder: it isn't offered to runs without one.
   * @defaultValue false
   */
  readonly needsFolder?: boolean
  /** True to take the place of the shipped tool of the same name; otherwise that is an error. */
  readonly replace?: boolean
  /** Milliseconds after which a call is stopped, in place of the engine's `toolTimeoutMs`. */
  readonly timeoutMs?: number
  /** For `read` tools: how often a call that throws is tried again, within its time. */
  readonly retries?: number
  /**
   * The command lines, written by the model, that a call with these arguments would run; none for
   * arguments that don't match `parameters`. Each of them is subject to the approval rules for
   * `bash`. A run without the tool `bash` refuses such calls, and isn't offered a tool that has
   * this method and `startsProcess`. Must not throw: the call counts as running an unknown command
   * if it does.
   *
   * @param commandOfGoal returns the command that checks a goal, as the model has written it; null
   * for a goal without one
   */
  commands?(args: JsonObject, commandOfGoal: (goal: string) => string | null): readonly string[]
  /**
   * Checks arguments before anything runs, in place of the check against `parameters`, within the
   * time of the call: null, or a message that tells the model what is wrong with them.
   */
  check?(args: JsonObject): Promise<string | null>
  /**
   * For `idempotent` tools: facts to log before the execution (such as content hashes before and
   * after), from which {@link Tool.verify} finds out after a crash whether it happened.
   */
  plan?(args: JsonObject, context: ToolContext): Promise<JsonObject>
  /** For `idempotent` tools, after a crash: was the call done? */
  verify?(
    args: JsonObject,
    plan: JsonObject,
    context: ToolContext,
  ): Promise<'done' | 'undone' | 'unknown'>
  /** Executes the call. An exception becomes a result with exit code 1 and the error's message. */
  execute(args: JsonObject, context: ToolContext): Promise<ToolOutput>
}
