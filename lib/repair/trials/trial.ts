/**
 * Patches to try in copies of the workspace, and the results.
 *
 * @module
 */
import type { CommandResult, TextEdit } from '../../agent/index.js'

/** Patches of one request, and edits of one patch, at most. */
export const MAX_PATCHES = 64
export const MAX_EDITS = 16

/** Patches, and the command that tells what each of them does. */
export interface TrialRequest {
  /** Each is a list of edits, made one after the other; at most 64 patches of 16 edits. */
  readonly patches: readonly (readonly TextEdit[])[]
  /** Runs with `/bin/sh` in a copy of the workspace, once without any patch and once for each. */
  readonly command: string
  /**
   * Milliseconds for each run with a patch.
   * @defaultValue three times what the run without a patch takes, and 2 s
   */
  readonly timeoutMs?: number | undefined
  /** Tell which lines the tests run, without a patch? @defaultValue false */
  readonly watch?: boolean | undefined
  /** Bytes of output kept of each run. @defaultValue 65 536 */
  readonly maxOutputBytes?: number | undefined
}

/** What came of one patch. */
export type Trial =
  | { readonly state: 'ran'; readonly result: CommandResult }
  /** It could not be made, for example because its text is not in the file. */
  | { readonly state: 'impossible'; readonly problem: string }
  /** The time of the call was over before. */
  | { readonly state: 'not tried' }

/** How tests ran one line of a file. */
export interface LineUse {
  readonly line: number
  /** Failing tests that ran it. */
  readonly failed: number
  /** Other tests that ran it. */
  readonly passed: number
}

/** Which lines tests ran. */
export interface TestedLines {
  readonly failed: number
  readonly passed: number
  /** Files with lines that a failing test ran, by path. */
  readonly files: ReadonlyMap<string, readonly LineUse[]>
}

/** What came of a request. */
export interface TrialReport {
  /** The run without a patch; of an earlier request, if nothing has changed since. */
  readonly base: CommandResult
  /** Milliseconds that a run with a patch could take. */
  readonly timeoutMs: number
  /** In the order of the patches. */
  readonly trials: readonly Trial[]
  /** Null unless it was asked for, and found. */
  readonly tested: TestedLines | null
}
