/** What a sealed check that was not passed says, for people and for the model. @module */
import { GoalCheckError } from '../../errors.js'
import type { GoalVerdict } from '../../goal.js'
import type { LeftOutReason } from './new-files.js'

/** The verdict of a sealed check that was not passed, for people and for the model. */
export function failed(verdict: GoalVerdict, reason: string, note: string): GoalVerdict {
  return {
    ...verdict,
    achieved: false,
    reason: `sealed check: ${reason}`,
    assurance: { ...verdict.assurance, sealed: true },
    output: `${EXPLANATION}${note}\n\n${verdict.output}`,
  }
}

/** Ends the reason of a check that other dependencies than at the start have failed. */
export const DEPENDENCY_RULE: string =
  'a run may change them only if its request says allow_dependency_changes'

const EXPLANATION =
  'The check passes in the working directory, but not in a fresh copy of it. That copy has the ' +
  "check's own files and the dependencies as they were at the start, and none of the processes " +
  'and files outside of the directory that were made since.'

/** What the model hears when only held-out tests fail. */
export const HELD_OUT: string =
  'The check passes, and so it does in a fresh copy of the working directory. There are tests ' +
  'besides that you cannot read, and they do not pass: the goal is not met in cases that the ' +
  'tests you know do not show. Find out what else the goal asks for, and make that work.'

const MAX_NAMED = 20

/** Names what the copy did not have, for the model. */
export function leftOutNote(left: ReadonlyMap<string, LeftOutReason>): string {
  const lines = [...left].map(([path, reason]) => `${path} (${reason})`)
  return listed('These new files were left out, because a check would load them:', lines)
}

/** Names what the copy had as at the start, for the model. */
export function restoredNote(paths: readonly string[]): string {
  const title = 'These files were as at the start, since only the check seems to use them:'
  return listed(title, paths)
}

function listed(title: string, lines: readonly string[]): string {
  if (lines.length === 0) return ''
  const named = lines.slice(0, MAX_NAMED).map((line) => `- ${line}`)
  const more = lines.length > MAX_NAMED ? `\n- and ${lines.length - MAX_NAMED} more` : ''
  return `\n${title}\n${named.join('\n')}${more}`
}

/** The error of a check that must be sealed, and cannot be. */
export function required(cause: string): GoalCheckError {
  const text = `sealed checks are required, but the check cannot run in a copy: ${cause}`
  return new GoalCheckError(text)
}
