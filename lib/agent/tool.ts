/**
 * The seam to tools: what the model may ask for. See {@link defineTool} for the way to make one.
 *
 * @module
 */
import type { JsonObject } from '../internal/json.js'
import type { CommandOptions, CommandResult } from './executor.js'
import type { JsonSchema } from './schema.js'
import type { FileChange, Workspace } from './workspace/workspace.js'

/**
 * What running a tool twice would do, which decides what happens after a crash:
 * `read` changes nothing and is run again; `idempotent` can tell whether it was done and is
 * verified; `unsafe` is never run twice.
 */
export type ToolEffect = 'read' | 'idempotent' | 'unsafe'

/** What a tool execution may use. */
export interface ToolContext {
  readonly runId: string
  readonly callId: string
  /** The run's working directory; every path goes through it. */
  readonly workspace: Workspace
  /** Ends the execution; a tool that waits must listen to it. */
  readonly signal: AbortSignal
  /** Runs a command under the host's executor, in the workspace, marked as this run's. */
  run(command: string, options?: Partial<CommandOptions>): Promise<CommandResult>
}

/** What a tool gives back. A failure is an answer: a non-zero exit code, never an exception. */
export interface ToolOutput {
  readonly output: string
  /** A process's own, or 0 ok, 1 tool error, 124 timeout, 126 refused. */
  readonly exitCode: number
  readonly changes?: readonly FileChange[]
}

/** One tool. */
export interface Tool {
  /** Matches `^[a-zA-Z0-9_-]{1,64}$`. */
  readonly name: string
  readonly description: string
  /** An object schema; arguments are checked against it before anything runs. */
  readonly parameters: JsonSchema
  readonly effect: ToolEffect
  /** True when the tool runs a command: its start is recorded with the process group. */
  readonly startsProcess?: boolean
  /**
   * True when the tool may change files of the workspace and does not tell which: the engine looks
   * for itself before and after, as it does for commands. Tools of class `read` are never watched.
   */
  readonly changesFiles?: boolean
  /**
   * For `idempotent` tools: facts recorded before the execution (such as content hashes before and
   * after) by which {@link Tool.verify} tells after a crash whether it happened.
   */
  plan?(args: JsonObject, context: ToolContext): Promise<JsonObject>
  /** For `idempotent` tools, after a crash: was the call done, not done, or can't it be told? */
  verify?(
    args: JsonObject,
    plan: JsonObject,
    context: ToolContext,
  ): Promise<'done' | 'undone' | 'unknown'>
  /** Does the work. An exception becomes a result with exit code 1 and the error's message. */
  execute(args: JsonObject, context: ToolContext): Promise<ToolOutput>
}
