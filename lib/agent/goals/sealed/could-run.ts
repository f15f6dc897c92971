/**
 * Whether the verdict of a check in a copy says something about the work, or about the copy. Asked
 * of the first check of a run, before the agent has done anything: what it answers must never make
 * a later failure count less, since the output of a check is written by the code under test.
 *
 * @module
 */
import { dirname } from 'node:path'
import type { GoalSpec, GoalVerdict } from '../../goal.js'
import { areHashed } from '../../test-outcomes.js'
import { isFile } from '../reports/test-names.js'

/** Exit codes of a shell that could not start a program. */
const NOT_EXECUTABLE = 126
const NOT_FOUND = 127
/** Output that is looked at, from its end: a verdict holds no more. */
const MAX_OUTPUT = 64 * 1024
const MAX_SHOWN = 120

/**
 * Why a copy could not run the suite as such, as a phrase for people; null when the verdict can be
 * taken as it is. A test that merely fails is no reason, whatever it prints, unless its message
 * names something that a copy may lack: a service on this machine, a program, a package, a path
 * outside, a permission.
 *
 * @param copy its real path, where it is known
 */
export function couldNotRun(
  verdict: GoalVerdict,
  goal: GoalSpec,
  copy: string | null = null,
): string | null {
  if (verdict.achieved || NOT_OF_THE_COPY.test(verdict.reason)) return null
  const output = verdict.output.slice(-MAX_OUTPUT)
  const lacking = whatIsLacking(output, verdict, copy)
  if (lacking !== null) return lacking
  if (verdict.exit_code === NOT_FOUND) return 'a program of the check was not found'
  if (verdict.exit_code === NOT_EXECUTABLE) return 'a program of the check could not be started'
  if (goal.reporter === null) return null
  if (verdict.tests === null) return `the test runner reported no tests (${verdict.reason})`
  if (areHashed(verdict.tests)) return null
  const all = Object.entries(verdict.tests)
  const broken = all.filter(([name, outcome]) => outcome === 'fail' && isFile(name))
  const isAll = broken.length === all.length
  if (broken.length > 0 && isAll) return 'no file of tests could be loaded'
  return null
}

/** The check itself is fine, and says what it says in any folder. */
const NOT_OF_THE_COPY =
  /^(?:tests changed|check timed out|took )|the test runner (?:was tampered with|is too large)/

interface Sign {
  readonly pattern: RegExp
  /** What the match, by its first group that is set, means; null for nothing. */
  readonly means: (what: string, root: string | null) => string | null
}

const shown = (text: string): string => text.replaceAll(/\p{Cc}/gu, '?').slice(0, MAX_SHOWN)
const HOST = String.raw`(?:127\.0\.0\.1|localhost|\[?::1\]?)`

const anyOf = (...patterns: string[]): RegExp => new RegExp(patterns.join('|'), 'm')

const SIGNS: readonly Sign[] = [
  {
    pattern: new RegExp(
      `(?:ECONNREFUSED|ECONNRESET|EAI_AGAIN)[ ](?:.{0,40}[ ])?(${HOST}(?::\\d{1,5})?)` +
        `|(${HOST}(?:[:" ,)]{1,4}(?:port[ ])?\\d{1,5})?)[^\\n]{0,80}[Cc]onnection refused` +
        `|[Cc]onnection refused[^\\n]{0,80}?(${HOST}(?::\\d{1,5})?)`,
    ),
    means: (host) => `a service on this machine could not be reached (${shown(host)})`,
  },
  {
    pattern: anyOf(
      String.raw`([^\s:'"]{1,100}): (?:command )?not found$`,
      String.raw`exec: "([^"\n]{1,100})": executable file not found`,
      String.raw`spawn ([^\s/]{1,100}) ENOENT`,
      String.raw`env: [\u2018'"]?([^\s\u2019'"]{1,100})[\u2019'"]?: No such file`,
    ),
    means: (program) => `a program was not found (${shown(program)})`,
  },
  {
    pattern: anyOf(
      String.raw`Cannot find (?:module|package) '((?!\.|/|file:|#)[^'\n]{1,200})'`,
      String.raw`Failed to resolve import "((?!\.|/)[^"\n]{1,200})"`,
      String.raw`ModuleNotFoundError: No module named '([^'\n]{1,200})'`,
    ),
    means: (module) => `a package was not found (${shown(module)})`,
  },
  {
    pattern: /Cannot find module '(\/[^'\n]{1,400})'/,
    means: (path, root) =>
      root !== null && path.startsWith(`${root}/node_modules/`)
        ? `a package was not found (${shown(path.slice(root.length + 1))})`
        : null,
  },
  {
    pattern: /\bEROFS\b|[Rr]ead-only file system/,
    means: () => 'a file system can only be read',
  },
  {
    pattern: anyOf(
      String.raw`EACCES: permission denied, \w+ '(/[^'\n]{1,400})'`,
      String.raw`PermissionError: \[Errno 13\] Permission denied: '(/[^'\n]{1,400})'`,
      String.raw`(/[^\s:'"]{1,400}): Permission denied`,
    ),
    means: (path, root) => (isOutside(path, root) ? `no permission (${shown(path)})` : null),
  },
  {
    pattern: anyOf(
      String.raw`ENOENT: no such file or directory, \w+ '(/[^'\n]{1,400})'`,
      String.raw`No such file or directory: '(/[^'\n]{1,400})'`,
      String.raw`(/[^\s:'"]{1,400}): No such file or directory`,
      // TypeScript
      String.raw`Cannot read file '(/[^'\n]{1,400})'`,
      String.raw`File '(/[^'\n]{1,400})' not found`,
    ),
    means: (path, root) => (isOutside(path, root) ? `a path was not found (${shown(path)})` : null),
  },
]

/** What the output says that is missing here, and may not be missing in the folder itself. */
function whatIsLacking(
  output: string,
  { test_files: files }: GoalVerdict,
  copy: string | null,
): string | null {
  const root = copy ?? rootIn(output, files.slice(0, MAX_FILES))
  for (const { pattern, means } of SIGNS) {
    const match = pattern.exec(output)
    if (match === null) continue
    const meaning = means(match.slice(1).find((group) => group !== undefined) ?? '', root)
    if (meaning !== null) return meaning
  }
  return null
}

/** A path that is neither in the folder of the check nor among temporary files. */
function isOutside(path: string, root: string | null): boolean {
  // Beside the copy there is nothing that was beside the folder.
  if (root !== null && path.startsWith(`${dirname(root)}/`)) return !path.startsWith(`${root}/`)
  if (/^\/(?:tmp|var\/tmp|dev\/shm)\//.test(path)) return false
  if (root !== null) return !path.startsWith(`${root}/`)
  return /^\/(?:etc|opt|srv|var|usr|mnt)\//.test(path)
}

const MAX_FILES = 50

/** The folder in which the check ran, told from the full path of one of its files of tests. */
function rootIn(output: string, files: readonly string[]): string | null {
  for (const file of files) {
    const at = file === '' ? -1 : output.indexOf(`/${file}`)
    if (at <= 0) continue
    const before = output.slice(Math.max(0, at - 1_000), at)
    const word = before.split(/[\s'"()]/).at(-1)!
    const start = word.indexOf('/')
    if (start !== -1) return word.slice(start).replace(/^\/\/\//, '/')
  }
  return null
}
