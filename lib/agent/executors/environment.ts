import { accessSync, constants } from 'node:fs'
import { delimiter, isAbsolute, join, sep } from 'node:path'
import type { IsolatedCopy } from '../executor.js'

/**
 * Variables of this process that commands get. Everything else stays out: keys, tokens, and
 * settings of the host's own Node (`NODE_ENV=production` would make `npm install` skip what tests
 * need). This is not confinement: a command of the same user can read the environment of its parent
 * in `/proc`, unless the executor has a process namespace of its own.
 */
const PASSED: readonly string[] = [
  'PATH', 'HOME', 'USER', 'LOGNAME', 'TMPDIR', 'TZ', 'LANG', 'LANGUAGE', 'LC_*',
  // Tool chains outside their usual folders.
  'NVM_DIR', 'PYENV_ROOT', 'VIRTUAL_ENV', 'CONDA_PREFIX', 'JAVA_HOME', 'GOROOT', 'GOPATH',
  'CARGO_HOME', 'RUSTUP_HOME', 'BUN_INSTALL', 'DENO_DIR', 'VOLTA_HOME',
  // Certificates, without which a private registry cannot be reached.
  'SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS',
  // Nothing starts on Windows without it.
  'SYSTEMROOT',
]

/** For every command: there is no terminal, so no questions, pagers or colours. */
const FIXED: Readonly<Record<string, string>> = {
  TERM: 'dumb',
  CI: 'true',
  NO_COLOR: '1',
  PAGER: 'cat',
  GIT_PAGER: 'cat',
  GIT_TERMINAL_PROMPT: '0',
  // Compiled files beside the sources are not part of the work, and may be stale after an edit.
  PYTHONDONTWRITEBYTECODE: '1',
}

/** Marks the processes of a run, by which they are found in `/proc`. */
export const RUN_VARIABLE = 'RUNWRIGHT_RUN'
/** Marks the processes of one command. */
export const COMMAND_VARIABLE = 'RUNWRIGHT_COMMAND'

/**
 * The environment of a command: the allowed variables of `source`, the fixed ones, then `added`.
 *
 * @param allowed names besides the built-in ones; a trailing `*` stands for any ending
 */
export function scrubbedEnvironment(
  source: Readonly<Record<string, string | undefined>>,
  allowed: readonly string[],
  added: Readonly<Record<string, string>>,
): Record<string, string> {
  const names = [...PASSED, ...allowed]
  const exact = new Set(names)
  const prefixes = names.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1))
  const passed = Object.entries(source).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined &&
      (exact.has(entry[0]) || prefixes.some((prefix) => entry[0].startsWith(prefix))),
  )
  const environment: Record<string, string> = { ...Object.fromEntries(passed), ...FIXED }
  if (environment['PATH'] !== undefined) environment['PATH'] = absolutePath(environment['PATH'])
  return { ...environment, ...added }
}

/** PATH without relative folders: files in the working directory could replace programs. */
function absolutePath(path: string): string {
  return path.split(delimiter).filter(isAbsolute).join(delimiter)
}

/**
 * The environment for a run in a copy: tools that were found in the original, by `PATH` or as a
 * virtual environment, are those of the copy.
 */
export function redirectedEnvironment(
  environment: Readonly<Record<string, string>>,
  isolated: IsolatedCopy | undefined,
): Record<string, string> {
  if (isolated === undefined) return { ...environment }
  const { root, original } = isolated
  const redirected = (path: string): string =>
    path === original || path.startsWith(original + sep) ? root + path.slice(original.length) : path
  return Object.fromEntries(
    Object.entries(environment).map(([name, value]) => [
      name, value.split(delimiter).map(redirected).join(delimiter),
    ]),
  )
}

/** Folders that belong to the system, not to a user or a project. */
const SYSTEM_FOLDERS: readonly string[] = [
  '/usr/bin', '/bin', '/usr/sbin', '/sbin', '/run/current-system/sw/bin', '/usr/local/bin',
  '/opt/homebrew/bin',
]

/**
 * PATH for programs that this process starts for itself, outside of a sandbox: system folders come
 * first. `npm start` puts `node_modules/.bin` of the project first, where commands may write.
 */
export function ownPath(): string {
  const path = absolutePath(process.env['PATH'] ?? '').split(delimiter)
  const isSystem = (folder: string): boolean => SYSTEM_FOLDERS.includes(folder)
  return [...path.filter(isSystem), ...path.filter((folder) => !isSystem(folder))].join(delimiter)
}

/** Where a program is on {@link ownPath}. @throws an error with code ENOENT if it is not there. */
export function findProgram(name: string): string {
  for (const folder of ownPath().split(delimiter)) {
    const path = join(folder, name)
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // Not here.
    }
  }
  throw Object.assign(new Error(`${name} is not on PATH`), { code: 'ENOENT' })
}
