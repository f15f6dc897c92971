/** What a sealed check that was not passed says, for people and for the model. @module */
import { GoalCheckError } from '../../errors.js'
import type { GoalVerdict } from '../../goal.js'
import { OWNERS } from './owners.js'
import type { OwnedFile } from './put-back.js'

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
const MAX_IN_REASON = 3

/** Ends the reason of a check that fails in the copy: which files were not as the run left them. */
export function asAtStart(files: readonly OwnedFile[]): string {
  if (files.length === 0) return ''
  const named = files.slice(0, MAX_IN_REASON).map(nameOf).join(', ')
  const more = files.length - MAX_IN_REASON
  return `; as at the start: ${named}${more > 0 ? ` (and ${more} more)` : ''}`
}

/**
 * Names what the copy had as at the start, why, and who can change that, for the model.
 *
 * @param mayChange the list of the request, which a new one replaces
 */
export function restoredNote(
  files: readonly OwnedFile[],
  mayChange: readonly string[],
): string {
  const lines = files.map((file) => {
    const why = OWNERS[file.rule][1]
    return `${nameOf(file)} (${file.isNew ? 'left out' : 'put back'}: ${why})`
  })
  const listing = listed('These files belong to the check, and were as at the start:', lines)
  const globs = files.filter((one) => one.canBeAllowed).slice(0, MAX_NAMED).flatMap(globsOf)
  if (listing === '' || globs.length === 0) return listing
  return `${listing}\n${WAY_OUT}\n${JSON.stringify({ may_change: [...mayChange, ...globs] })}`
}

const WAY_OUT =
  'Meet the goal with changes to code, and to data that code alone names. If the goal asks for a ' +
  'change to such a file, say so and stop: only a human can let it count, with this field by ' +
  'PATCH /api/runs/{run_id}, in a fork of the run, or in a new request:'

/** `package.json: scripts.test, imports` for a manifest. */
function nameOf({ path, keys }: OwnedFile): string {
  return keys.length === 0 ? path : `${path}: ${keys.join(', ')}`
}

function globsOf({ path, keys }: OwnedFile): readonly string[] {
  return keys.length === 0 ? [path] : keys.map((key) => `${path}#${key}`)
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
