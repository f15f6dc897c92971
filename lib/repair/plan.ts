import type { ReportKind } from './report.js'
import { quote, type ShellWord } from './shell-words.js'

/** How to run the goal's check so that its report can be parsed. Commands are shell lines. */
export interface CheckPlan {
  readonly kind: ReportKind
  readonly whole: TestCommand
  /**
   * Runs the tests of one file, the fastest way first; empty when the check cannot be limited to a
   * file.
   */
  readonly file: (path: string) => readonly TestCommand[]
  /** Parts of the check that trials leave out; the check itself still decides in the end. */
  readonly leftOut?: readonly string[]
  /**
   * The same check, when its output turned out to be a report of this kind; absent where that
   * changes nothing.
   */
  readonly readAs?: (kind: ReportKind) => CheckPlan
}

/** Two ways to run the same tests: for their outcomes only, and with all details. */
export interface TestCommand {
  readonly outcomes: string
  readonly details: string
  /** It omits something, so it is valid only if the outcomes stay the same. */
  readonly isShortcut?: boolean
  /** Runs single tests by name, for their outcomes; absent where the runner cannot. */
  readonly only?: (names: readonly string[]) => string
}

/** A simple command of the check, after scripts and wrappers were taken apart. */
export interface Invocation {
  /** Settings of the environment, quoted for the shell. */
  readonly env: readonly string[]
  /** Program and arguments. */
  readonly words: readonly ShellWord[]
  /** Whether programs of the project's packages come first, as in scripts of package.json. */
  readonly usesPackages: boolean
}

/** The arguments of a runner, sorted by what becomes of them. */
export interface SortedArguments {
  /** Kept, as written. */
  readonly flags: readonly string[]
  /** Files and patterns, as written. */
  readonly files: readonly string[]
}

/** The last part of the path of a program. */
export function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

/**
 * Sorts arguments. `valued` flags take the next word as their value; a flag that `dropped` matches
 * goes together with its value.
 */
export function sortArguments(
  words: readonly ShellWord[],
  valued: ReadonlySet<string>,
  dropped: RegExp,
): SortedArguments {
  const flags: string[] = []
  const files: string[] = []
  for (let at = 0; at < words.length; at++) {
    const { text, raw } = words[at]!
    if (!text.startsWith('-')) {
      files.push(raw)
      continue
    }
    const value = valued.has(text) ? words[++at] : undefined
    if (text === '--' || dropped.test(text)) continue
    flags.push(raw, ...(value === undefined ? [] : [value.raw]))
  }
  return { flags, files }
}

/** The shell line of a command; programs of packages are found as in scripts of package.json. */
export function commandLine(
  { env, usesPackages }: Pick<Invocation, 'env' | 'usesPackages'>,
  words: readonly string[],
): string {
  const path = usesPackages ? 'export PATH="$PWD/node_modules/.bin:$PATH"; ' : ''
  // The heap is limited, since an endless loop often fills an array.
  const bound = 'export NODE_OPTIONS="$NODE_OPTIONS --max-old-space-size=768"; '
  return `${path}${bound}${[...env, ...words].join(' ')} 2>&1`
}

/**
 * The words that start a runner, and the rest: by its name, by the path of its program, or by Node
 * with a file of its package. Null when the command starts something else.
 */
export function runnerOf(
  { words }: Invocation,
  name: string,
): { readonly program: readonly string[]; readonly rest: readonly ShellWord[] } | null {
  const [first, second] = words
  if (first === undefined) return null
  const started = baseName(first.text).replace(/\.[cm]?js$/, '')
  if (started === name || (name === 'mocha' && started === '_mocha'))
    return { program: [first.raw], rest: words.slice(1) }
  if (started !== 'node') return null
  // Options of Node before the file stay with the program.
  const at = words.findIndex(({ text }, i) => i > 0 && !text.startsWith('-'))
  if (second === undefined || at < 0) return null
  const path = words[at]!.text
  const isRunner =
    path.includes(`node_modules/${name}/`) ||
    path.endsWith(`node_modules/.bin/${name}`) ||
    (name === 'mocha' && path.endsWith('node_modules/.bin/_mocha'))
  if (!isRunner) return null
  return { program: words.slice(0, at + 1).map(({ raw }) => raw), rest: words.slice(at + 1) }
}

/** A regular expression, in the syntax of JavaScript, that matches this text alone. */
export function escapeRegExp(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&').replace(/\n/g, '\\n')
}

/**
 * A pattern for the full title of the test with this name, in which ` > ` may stand for a space
 * between suite and title, and a number at the end for one of several tests of the same title.
 */
export function titlePattern(name: string): string {
  const [, title, number] = /^([^]*?)( #\d{1,6})?$/.exec(name)!
  const pattern = title!.split(' > ').map(escapeRegExp).join(' (?:> )?')
  return number === undefined ? pattern : `${pattern}(?:${number})?`
}

/** A pattern for the full titles of these tests and nothing else. */
export function titlesPattern(names: readonly string[]): string {
  return `^(?:${names.map(titlePattern).join('|')})$`
}

/** The option `--flag` with a value that may hold anything. */
export function option(flag: string, value: string): string {
  return quote(`${flag}=${value}`)
}

/** A command with its output filtered, and with its own exit code. */
export function filtered(line: string, filter: string): string {
  // In a shell of its own, as it may exit.
  const own = `( ${line} ) 3>&- 4>&-; echo $? >&3`
  return `exec 4>&1; code=$({ { ${own}; }${filter} >&4; } 3>&1); exit $code`
}
