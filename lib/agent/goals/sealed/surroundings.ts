/**
 * What a check rests on besides the content of its files: settings above the folder, the index of
 * git, which files can be run, and which the check makes itself.
 *
 * @module
 */
import { lstat } from 'node:fs/promises'
import { join, posix } from 'node:path'
import type { SealStart } from '../../check-files.js'
import { GoalError } from '../../errors.js'
import type { GoalCheckContext, GoalSpec } from '../../goal.js'
import { readCheckScript } from '../check-script.js'
import { shellCommands } from '../shell-commands.js'
import { languageOf } from './file-kinds.js'
import { asksGit, gitChanges, gitState } from './git-index.js'
import { settingsAbove, settingsChanges } from './settings-above.js'

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

/** What a check rests on that is not among its files: the index of git, settings above. */
export async function surroundingsOf(
  goal: GoalSpec,
  cwd: string,
  files: readonly string[],
): Promise<Pick<SealStart, 'git' | 'above'>> {
  const script = await scriptOf(goal, cwd)
  const above = await settingsAbove(cwd, script, files)
  const git = (await asksGit(cwd, script, files)) ? await gitState(cwd) : null
  return { ...(Object.keys(above).length > 0 && { above }), ...(git !== null && { git }) }
}

/** How that has changed since: a phrase for each. */
export async function changesAround(
  { cwd, signal }: GoalCheckContext,
  { git, above = {} }: SealStart,
): Promise<readonly string[]> {
  const changes = await settingsChanges(cwd, above)
  return git === undefined ? changes : [...changes, ...(await gitChanges(cwd, git, signal))]
}

/** Those of `paths` that somebody may run. */
export async function executablesIn(
  folder: string,
  paths: readonly string[],
): Promise<readonly string[]> {
  const found: string[] = []
  for (const path of paths) {
    const stats = await lstat(join(folder, path)).catch(() => null)
    if (stats?.isFile() === true && (stats.mode & 0o111) !== 0) found.push(path)
  }
  return found
}

/** When files were changed last. */
export async function timesOf(
  folder: string,
  paths: readonly string[],
): Promise<Pick<SealStart, 'times'>> {
  const times: Record<string, number> = {}
  for (const path of paths) {
    const stats = await lstat(join(folder, path)).catch(() => null)
    if (stats?.isFile() === true) times[path] = stats.mtimeMs
  }
  return paths.length === 0 ? {} : { times }
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

/** Those of `paths` that are in the folder. */
export async function existingIn(
  folder: string,
  paths: readonly string[],
): Promise<readonly string[]> {
  const missing = new Set(await missingIn(folder, paths))
  return paths.filter((path) => !missing.has(path))
}

/** Those of `paths`, in a copy of `folder`, that the folder itself does not have. */
export async function missingIn(
  folder: string,
  paths: readonly string[],
): Promise<readonly string[]> {
  const missing: string[] = []
  for (const path of paths) {
    if ((await lstat(join(folder, path)).catch(() => null)) === null) missing.push(path)
  }
  return missing
}
