/**
 * The seam to the host's rules for tool calls: which wait for a human.
 *
 * @module
 */
import type { JsonObject } from '../internal/json.js'
import type { RunOwner } from './events.js'
import type { RunDetails } from './run-details.js'
import type { ToolEffect } from './tool.js'

/** A tool call that is about to run, or a command that it would run. */
export interface CallToApprove {
  readonly call_id: string
  /** For a command in the arguments of another tool, `bash`: see `via`. */
  readonly tool: string
  /** The tool that would run the command; absent for the call itself. */
  readonly via?: string
  readonly effect: ToolEffect
  /** The model's, which may not match the tool's schema; `{ command }` with `via`. */
  readonly args: JsonObject
}

/** The run that makes it; a copy. */
export interface RunToApprove {
  readonly details: RunDetails
  readonly owner: RunOwner
}

/**
 * Decides whether a call waits for a human: `ask` and `allow` whatever the request says, undefined
 * as it says. It is asked about the call, and about each command that the call would run as about
 * a call of `bash`; one `ask` is enough. An exception, another answer, and none within 60 seconds
 * are an `ask`.
 */
export type ApproveCall = (
  call: CallToApprove,
  run: RunToApprove,
) => 'ask' | 'allow' | undefined | Promise<'ask' | 'allow' | undefined>
