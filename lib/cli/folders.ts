/**
 * The folder that a command works in, and the one where its data is kept.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { realpathSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, isAbsolute, join, relative, resolve } from 'node:path'
import { describeError } from '../internal/errors.js'
import { CommandError, EXIT, UsageError } from './command-line.js'

/**
 * The real path of a project: the folder given, or the current one, unless that holds far more than
 * a project: the home folder, or one above it.
 *
 * @param option - what names another folder
 * @throws {@link UsageError}
 */
export function projectFolder(given: string | undefined, option: string): string {
  const folder = realFolder(given ?? process.cwd(), given === undefined ? 'it' : option)
  if (given === undefined && isAboveHome(folder)) {
    const what = folder === '/' ? 'the root of the file system' : 'your home folder, or above it'
    throw new UsageError(
      `the current folder is ${what}, and runs may change all that is in it; ` +
        `go to the folder of a project, or name one with ${option}`,
    )
  }
  return folder
}

function realFolder(path: string, option: string): string {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) throw new UsageError(`${option}: ${path} does not exist`)
  if (!stats.isDirectory()) throw new UsageError(`${option}: ${path} is not a folder`)
  return realpathSync(path)
}

function isAboveHome(folder: string): boolean {
  let home = homeFolder() ?? '/'
  try {
    home = realpathSync(home)
  } catch {
    // It need not exist.
  }
  return !relative(folder, home).startsWith('..')
}

/** Null if none is known: `HOME` is not a path from the root, or the user has no entry. */
function homeFolder(): string | null {
  try {
    const home = homedir()
    return isAbsolute(home) ? home : null
  } catch {
    return null
  }
}

/**
 * Where programs keep what lasts between their starts, by the XDG base directory specification.
 *
 * @param option - what names another folder
 * @throws {@link UsageError} when there is no home folder
 */
export function stateFolder(option: string): string {
  const given = process.env['XDG_STATE_HOME'] ?? ''
  // A relative one counts as not set.
  if (isAbsolute(given)) return join(given, 'runwright')
  const home = homeFolder()
  if (home !== null) return join(home, '.local', 'state', 'runwright')
  throw new UsageError(`there is no home folder to keep the data in; name a folder with ${option}`)
}

/** `--data`, or the folder of a project: each has its own, so that each can have a server. */
export function dataFolder(given: string | undefined, project: string): string {
  if (given !== undefined) return resolve(given)
  const hash = createHash('sha256').update(project).digest('hex').slice(0, 12)
  const name = basename(project).replaceAll(/[^\w.-]+/g, '_').slice(0, 40) || 'root'
  return join(stateFolder('--data'), `${name}-${hash}`)
}

/** The error of a folder for data that cannot be made or changed, which `option` names. */
export function cannotWrite(data: string, option: string, error: unknown): CommandError {
  const reason = describeError(error)
  return new CommandError(`cannot write to ${option} (${data}): ${reason}`, EXIT.failed)
}
