import {
  baseName,
  type CheckPlan,
  filtered,
  type Invocation,
  type TestCommand,
} from './plan.js'
import { quote, type ShellWord } from './shell-words.js'

type Line = (args: readonly string[]) => string

/** Options of pytest whose value is the next word. */
const VALUED: ReadonlySet<string> = new Set([
  '-k', '-m', '-p', '-c', '-o', '-n', '-W', '--tb', '--maxfail', '--cov-report', '--cov-config',
  '--rootdir', '--ignore', '--deselect', '--confcutdir', '--durations', '--import-mode',
  '--numprocesses', '--dist', '--junitxml', '--junit-xml', '--color', '--timeout', '-r',
  '--override-ini', '--basetemp', '--log-level',
])
/** Options of pytest that change the report, stop early, or run tests beside each other. */
const DROPPED = new RegExp(
  '^-(x|q+|v+|s|l|n.*|r.*)$|^--(exitfirst|maxfail|tb|quiet|verbose|cov|no-cov|numprocesses|dist' +
    '|junit|color|durations|ff|failed|lf|last|nf|new-first|sw|stepwise|showlocals|html)',
)

/** Plans pytest, unittest, and a Python file that runs the tests in it. */
export function planPython(invocation: Invocation): CheckPlan | null {
  const [first, second, third] = invocation.words
  const direct = /^(pytest|py\.test)$/.test(baseName(first?.text ?? ''))
  const isPython = /^python[\d.]*$/.test(baseName(first?.text ?? ''))
  const module = direct ? 'pytest' : isPython && second?.text === '-m' ? third?.text : undefined
  if (module !== 'pytest' && module !== 'unittest') return null
  const rest = invocation.words.slice(direct ? 1 : 3)
  const program = invocation.words.slice(0, direct ? 1 : 3).map(({ raw }) => raw)
  const line = (args: readonly string[]): string => pythonLine(invocation, [...program, ...args])
  return module === 'pytest' ? planPytest(line, rest) : planUnittest(line, rest)
}

/** A line that runs Python: no compiled files, whole lines in reports, bounded memory. */
export function pythonLine({ env }: Invocation, words: readonly string[]): string {
  const settings = [...env, 'PYTHONDONTWRITEBYTECODE=1', 'COLUMNS=400']
  return `ulimit -v 4000000; ${[...settings, ...words].join(' ')} 2>&1`
}

function planPytest(line: Line, rest: readonly ShellWord[]): CheckPlan {
  const flags: string[] = []
  const files: string[] = []
  for (let at = 0; at < rest.length; at++) {
    const { text, raw } = rest[at]!
    const isNamed = text === '--cov' && !/^-/.test(rest[at + 1]?.text ?? '-')
    const takesNext = VALUED.has(text) || isNamed
    const value = takesNext ? rest[++at] : undefined
    if (DROPPED.test(text)) continue
    if (!text.startsWith('-')) files.push(raw)
    else flags.push(raw, ...(value === undefined ? [] : [value.raw]))
  }
  const run = (targets: readonly string[], trace: string): string =>
    line([
      ...flags, '-q', '-rA', '--color=no', `--tb=${trace}`, '-p', 'no:cacheprovider', ...targets,
    ])
  const lines =
    '^(PASSED|FAILED|ERROR|XFAIL|XPASS|SKIPPED) |^[0-9]+ (passed|failed|error|skipped)'
  const filter = ` | grep -E '${lines}'`
  // Plugins that the tests do not need can take ten times as long as the tests.
  const command = (targets: readonly string[], start: string): TestCommand => ({
    outcomes: filtered(withStart(start, run(targets, 'no')), filter),
    details: withStart(start, run(targets, 'short')),
    isShortcut: start !== '',
    only: (names) => filtered(withStart(start, run(names.map(nodeId), 'no')), filter),
  })
  return {
    kind: 'pytest',
    whole: command(files, ''),
    file: (path) =>
      ['PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 ', ''].map((start) => command([quote(path)], start)),
  }
}

/** The id of a test, or the file that could not be collected. */
function nodeId(name: string): string {
  return quote(name.replace(/^ERROR /, ''))
}

/** Inserts `start` before the program of a line that begins with limits. */
function withStart(start: string, line: string): string {
  return line.replace(/^(ulimit [^;]*; )/, (limits) => `${limits}${start}`)
}

const UNITTEST_LINES =
  '^ *[^ ()]+ \\([^ ()]+\\)| \\.\\.\\. [a-zA-Z]|^(FAIL|ERROR): |^Ran ' +
  '|^(OK|FAILED|NO TESTS RAN)|^(ok|FAIL|ERROR|expected failure|unexpected success)$|^skipped '
const UNITTEST_FILTER = ` | grep -E '${UNITTEST_LINES}'`

function planUnittest(line: Line, rest: readonly ShellWord[]): CheckPlan {
  const flags = rest.filter(
    ({ text }) => !/^-(v|q|f|b|vv)$|^--(verbose|quiet|failfast|buffer|locals)$/.test(text),
  )
  const discovers = flags.length === 0 || flags[0]!.text === 'discover'
  const command = (args: readonly string[]): TestCommand => {
    const run = line([...args, '-v', '-b'])
    return {
      outcomes: filtered(run, UNITTEST_FILTER),
      details: run,
      only: (names) => filtered(line([...names.map(quote), '-v', '-b']), UNITTEST_FILTER),
    }
  }
  return {
    kind: 'unittest',
    whole: command(flags.map(({ raw }) => raw)),
    file: (path) => {
      if (!discovers) return [command(flags.map(({ raw }) => raw))]
      const kept = without(flags.slice(1), ['-p', '--pattern']).map(({ raw }) => raw)
      return [command(['discover', ...kept, '-p', quote(baseName(path))])]
    },
  }
}

/** Removes these flags and their values. */
function without(words: readonly ShellWord[], flags: readonly string[]): ShellWord[] {
  return words.filter(
    ({ text }, at) => !flags.includes(text) && !flags.includes(words[at - 1]?.text ?? ''),
  )
}
