/**
 * What a check rests on besides the content of its files: settings above the folder, the index of
 * git, and data that its scripts name.
 *
 * @module
 */
import { posix } from 'node:path'
import type { SealStart } from '../../check-files.js'
import { GoalError } from '../../errors.js'
import type { GoalCheckContext, GoalSpec } from '../../goal.js'
import { readCheckScript } from '../check-script.js'
import { shellCommands } from '../shell-commands.js'
import { languageOf } from './file-kinds.js'
import { timesOf } from './file-states.js'
import { gitChanges, gitState } from './git-index.js'
import { settingsAbove, settingsChanges } from './settings-above.js'
import { silencedSince, silencingIn } from './silencing.js'

/** The text of a command, with the scripts that it leads to. */
export async function scriptOf({ command }: GoalSpec, root: string): Promise<string> {
  try {
    return (await readCheckScript(command, root)).text
  } catch (error) {
    // What is too much to follow was so when the goal was resolved.
    if (error instanceof GoalError) return command
    throw error
  }
}

/**
 * What a check rests on that is not among its files: the index of git, settings above, code.
 *
 * @param settings files that may name settings above the folder
 */
export async function surroundingsOf(
  goal: GoalSpec,
  cwd: string,
  files: readonly string[],
  settings: readonly string[] = files,
): Promise<Pick<SealStart, 'git' | 'above' | 'silencing'>> {
  const script = await scriptOf(goal, cwd)
  const above = await settingsAbove(cwd, script, settings)
  const git = await gitState(cwd, script, files)
  const silencing = await silencingIn(goal, script, cwd)
  return {
    ...(Object.keys(above).length > 0 && { above }),
    ...(git !== null && { git }),
    ...(silencing !== null && { silencing }),
  }
}

/** How that has changed since: a phrase for each. */
export async function changesAround(
  { cwd, signal }: GoalCheckContext,
  { git, above = {}, silencing, since }: SealStart,
): Promise<readonly string[]> {
  return [
    ...(await settingsChanges(cwd, above)),
    ...(git === undefined ? [] : await gitChanges(cwd, git, signal)),
    ...(silencing === undefined ? [] : await silencedSince(cwd, silencing, since, signal)),
  ]
}

const MAX_NAMED = 2_000

/** The data that a script names: it may look at its time alone. */
export async function dataIn(script: string, root: string): Promise<readonly string[]> {
  const words = shellCommands(script).flatMap((command) => command.words.map(({ text }) => text))
  const paths = [...new Set(words)].filter(
    (word) => /^[\w.@-][\w./@-]*$/.test(word) && languageOf(word) === 'data',
  )
  const files = await timesOf(root, paths.slice(0, MAX_NAMED).map(posix.normalize))
  return Object.keys(files.times ?? {})
}
