import { isFileFailure } from './file-failure.js'
import { LOADING } from './load-failure.js'
import type { CheckPlan } from './plan.js'
import { parseFailures, parseOutcomes, plainText, recogniseOutput } from './read-report.js'
import { similarity } from './similarity.js'

/** Characters of an output that are searched: obstacles are named at its start or end. */
const MAX_SEARCHED = 200_000

/** Signs in the output of any runner that some test passed. */
const PASSED = new RegExp(
  '^ *ok \\d|^ *[✓✔√] |^\\["pass"|\\b[1-9]\\d* (?:passing|passed)\\b|^# pass [1-9]|^PASSED ' +
    '| \\.\\.\\. ok$',
  'm',
)

/**
 * What keeps the tests from running at all, and what to do about it, in one sentence; null when
 * there is no such thing, or no certainty. A wrong alarm would end a run that could succeed, so:
 *
 * 1. No test passed, and every failure is that of a file which could not be loaded, or of a test
 *    that lacks a plugin of its runner.
 * 2. All of them have the same cause, which lies outside the project's own sources: a package, a
 *    program, an option, the system.
 *
 * `output` is that of {@link CheckPlan.whole} with details, or that of the check itself; `paths`
 * are the files of the project, without which no missing Python module is reported.
 */
export function obstacleOf(
  plan: Pick<CheckPlan, 'kind'>,
  output: string,
  exitCode: number,
  paths: readonly string[] = [],
): string | null {
  const whole = plainText(output)
  const text =
    whole.length <= 2 * MAX_SEARCHED
      ? whole
      : `${whole.slice(0, MAX_SEARCHED)}\n${whole.slice(-MAX_SEARCHED)}`
  const kind = plan.kind === 'any' ? recogniseOutput(text) : plan.kind
  if (kind === null) {
    if (exitCode === 0 || PASSED.test(text)) return null
    return startObstacle(text, exitCode) ?? loadObstacle(text, paths)
  }
  const outcomes = parseOutcomes(kind, text, exitCode)
  if (outcomes.size === 0 || outcomes.has(LOADING)) {
    if (PASSED.test(text)) return null
    return startObstacle(text, exitCode) ?? loadObstacle(text, paths) ?? noTests(text, exitCode)
  }
  if ([...outcomes.values()].includes('pass')) return null
  const causes = parseFailures(kind, text)
    // AVA reports the end of the process besides the error that ended it.
    .filter(({ name }) => !/ exited (?:with|due|because)/.test(name))
    .map(({ name, message }) =>
      isFileFailure(name) ? loadObstacle(message, paths) : pluginObstacle(message),
    )
  const [first] = causes
  return causes.every((cause) => cause === first) ? (first ?? null) : null
}

/** What pytest lacks to run a test; null for nothing. */
function pluginObstacle(message: string): string | null {
  const fixture = /^ *fixture '(\w{1,80})' not found$/m.exec(message)
  if (fixture !== null)
    return (
      `The tests use the fixture "${fixture[1]}", which nothing defines: ` +
      'install the plugin of pytest that does.'
    )
  return /^ *async def functions are not natively supported/m.test(message)
    ? 'pytest runs no async tests by itself: install a plugin for them, such as pytest-asyncio.'
    : null
}

interface Sign {
  readonly pattern: RegExp
  readonly says: (found: RegExpExecArray) => string
}

function missingScript([, name]: RegExpExecArray): string {
  return `package.json has no script "${name}": add it, or give another check.`
}

function wrongVersion([, name]: readonly (string | undefined)[]): string {
  const what = name === undefined ? 'A package' : `The package "${name}"`
  return `${what} does not support this version of Node: use a version that it supports.`
}

/** Signs that the command did not even start its runner. */
const START: readonly Sign[] = [
  {
    pattern:
      /^(?:npm )?(?:ERR! |error |.{0,3}ERR_PNPM\w{0,20}.{0,3})?Missing script: "?([\w:.-]{1,80})/im,
    says: missingScript,
  },
  {
    pattern: /^error Command "([\w:.-]{1,80})" not found\.$/m,
    says: missingScript,
  },
  {
    pattern: /^\S*python[\d.]*: No module named ([\w.]{1,80})$/m,
    says: ([, name]) => `Python has no module "${name}": install it (pip install ${name}).`,
  },
  {
    pattern: /: bad option: (\S{1,80})$/m,
    says: ([, option]) =>
      `This version of Node does not know the option ${option}: change the check, or use another.`,
  },
  {
    pattern: new RegExp(
      '^(?:.{0,40}\\berror: |ERROR: |.{0,20}CACError: | {1,8}| *Error: )?' +
        '(?:unrecognized arguments?:|[Uu]nknown (?:option|argument)s?:?|Unrecognized option) +' +
        '["\'`]?(-{0,2}[\\w.-]{1,80})',
      'm',
    ),
    says: ([, option]) =>
      `The test runner does not know the option ${option}: ` +
      'install the plugin that it belongs to, or change the check.',
  },
  {
    // Whatever of its settings Jest cannot use: presets, environments, modules.
    pattern: /^ *\u25cf Validation Error:\s{1,20}(\S.{1,300})/m,
    says: ([, message]) => `Jest cannot start: ${message}`,
  },
  {
    pattern: /^ERROR: (Missing required plugins: .{1,200})$/m,
    says: ([, message]) => `pytest cannot start: ${message}. Install them.`,
  },
  {
    pattern: /^(?:ImportError: )?(Start directory is not importable: .{1,300})$/m,
    says: ([, message]) => `unittest cannot start: ${message}. Correct the check.`,
  },
  {
    pattern: /^Could not find '(.{1,300})'$/m,
    says: ([, path]) => `The check finds no tests at ${path}: correct its patterns of files.`,
  },
  {
    pattern: /^npm (?:ERR!|error) code EBADENGINE\b/m,
    says: wrongVersion,
  },
  {
    pattern: /^error .{0,120}The engine "node" is incompatible with this module/m,
    says: wrongVersion,
  },
]

/** Options that the plans add, which an old version of a runner may not know. */
const OWN_OPTION = new RegExp(
  '^-*(?:no-?)?(?:test-reporter|file-?parallelism|cache|bail|coverage|parallel|concurrency' +
    '|reporter|tap|silent|json|run-?in-?band|colou?r)',
  'i',
)

/** A shell that could not start a program; the exit code says so as well. */
const NOT_FOUND = new RegExp(
  "^(?:\\S*sh|env)(?:: line \\d+|: \\d+)?: ['‘]?([\\w@./+-]{1,200})['’]?: " +
    '(?:command )?(?:not found|No such file.*)$',
  'm',
)
const NOT_ALLOWED = /^\S*sh(?:: line \d+|: \d+)?: ([\w@./+-]{1,200}): Permission denied$/m

function startObstacle(text: string, exitCode: number): string | null {
  const missing = NOT_FOUND.exec(text)
  // A filter after the command hides its exit code, so the text alone counts too.
  if (missing !== null && exitCode !== 0 && exitCode !== 1) return missingProgram(missing[1]!)
  if (missing !== null && lineCount(text) < 30) return missingProgram(missing[1]!)
  const refused = NOT_ALLOWED.exec(text)
  if (refused !== null && (exitCode === 126 || lineCount(text) < 30))
    return `"${refused[1]}" may not be executed: allow it (chmod +x ${refused[1]}).`
  for (const { pattern, says } of START) {
    const found = pattern.exec(text)
    if (found === null || lineCount(text) >= 200) continue
    return found.slice(1).some((part) => OWN_OPTION.test(part ?? '')) ? null : says(found)
  }
  return null
}

function missingProgram(name: string): string {
  return (
    `The program "${name}" is not installed: ` +
    "install the project's dependencies, or that program."
  )
}

function lineCount(text: string): number {
  let count = 1
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++
  return count
}

/** A specifier that some runner or Node says it cannot resolve. */
const UNRESOLVED = new RegExp(
  [
    "Cannot find (?:module|package) '([^'\\n]{1,200})'",
    'Failed to resolve import "([^"\\n]{1,200})"',
    'Could not resolve "([^"\\n]{1,200})"',
    'Failed to load url (\\S{1,200}) \\(resolved id',
  ].join('|'),
  'g',
)
const UNRESOLVED_PYTHON = /^(?:E +)?ModuleNotFoundError: No module named '([\w.]{1,200})'/gm
const PACKAGE = /^(?:@[a-z\d~-][\w.~-]*\/)?[a-z\d~-][\w.~-]*(?=\/|$)/i

/** A cause outside the project for which files cannot be loaded; null for none, or for several. */
function loadObstacle(text: string, paths: readonly string[]): string | null {
  const names = new Set<string>()
  for (const found of text.matchAll(UNRESOLVED)) {
    const name = packageOf(found.slice(1).find((part) => part !== undefined)!, paths)
    // One unresolved file of the project is enough for doubt.
    if (name === null) return null
    names.add(name)
  }
  if (names.size > 0) {
    const list = [...names].slice(0, 5)
    const what = plural('The package', list)
    return `${what} not installed: run npm install, or install ${list.join(', ')}.`
  }
  const modules = new Set<string>()
  for (const [, name] of text.matchAll(UNRESOLVED_PYTHON)) {
    if (isOfProject(name!, paths)) return null
    modules.add(name!.split('.')[0]!)
  }
  if (modules.size > 0) {
    const list = [...modules].slice(0, 5)
    const what = plural('The Python module', list)
    return `${what} not installed: install ${list.join(', ')} with pip.`
  }
  const foreign = unreadablePackage(text)
  if (foreign !== null) return wrongVersion(['', foreign])
  const taken = /\blisten EADDRINUSE: address already in use ([\w.:[\]/-]{1,80})/.exec(text)
  if (taken !== null)
    return `The address ${taken[1]} is in use: end the program that uses it, and start again.`
  const refused = /\blisten EACCES: permission denied ([\w.:[\]/-]{1,80})/.exec(text)
  if (refused !== null)
    return `The tests may not listen at ${refused[1]}: allow it, or let them use another port.`
  return null
}

/** The package whose code Node shows above the first mistake in syntax; null for none. */
function unreadablePackage(text: string): string | null {
  const error = /^(?:# )?SyntaxError: /m.exec(text)
  if (error === null) return null
  const above = text.slice(Math.max(0, error.index - 4_000), error.index).split('\n').slice(-8)
  for (const line of above) {
    const at = line.lastIndexOf('/node_modules/')
    if (at < 0 || line.startsWith(' ') || !/:\d{1,7}$/.test(line)) continue
    return PACKAGE.exec(line.slice(at + '/node_modules/'.length))?.[0] ?? null
  }
  return null
}

function plural(what: string, names: readonly string[]): string {
  return names.length === 1 ? `${what} "${names[0]}" is` : `${what}s "${names.join('", "')}" are`
}

/** The package of a specifier; null for a file of the project, an alias or a module of Node. */
function packageOf(specifier: string, paths: readonly string[]): string | null {
  const inside = specifier.lastIndexOf('/node_modules/')
  const bare = inside < 0 ? specifier : specifier.slice(inside + '/node_modules/'.length)
  const name = PACKAGE.exec(bare)?.[0]
  if (name === undefined || /^[A-Za-z]:/.test(bare)) return null
  if (inside < 0 && (/^(?:node|file|data):/.test(bare) || bare.startsWith('.'))) return null
  const [head] = name.split('/')
  // With a base path of imports, the name of a folder stands for that folder.
  if (paths.some((path) => path.startsWith(`${head}/`) || path.includes(`/${head}/`))) return null
  if (paths.some((path) => fileStem(path) === name)) return null
  return name
}

/** Whether a Python module is, or is perhaps meant to be, one of the project. */
function isOfProject(name: string, paths: readonly string[]): boolean {
  if (paths.length === 0) return true
  const head = name.split('.')[0]!
  return paths.some((path) =>
    path
      .split('/')
      .some((part) => similarity(head, part.replace(/\.\w+$/, '')) >= 0.75),
  )
}

function fileStem(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1).replace(/\.\w+$/, '')
}

const NO_TESTS = new RegExp(
  '^(?:No tests? (?:files? )?found\\b.*|(?: *Error: )?No test files found\\b.*' +
    '|.{0,6}Couldn.t find any files to test.*|(?:=+ )?no tests ran in .*|NO TESTS RAN.*' +
    '|Ran 0 tests in .*|# tests 0|1\\.\\.0)$',
  'm',
)

function noTests(text: string, exitCode: number): string | null {
  if (!NO_TESTS.test(text) && !/\bcollected 0 items\s*$/m.test(text)) return null
  if (exitCode === 0 && /^# tests [1-9]/m.test(text)) return null
  return 'The check finds no tests: give one that does, or correct its patterns of files.'
}
