import { ERROR_LINE } from './load-failure.js'
import {
  type CheckPlan,
  commandLine,
  filtered,
  type Invocation,
  runnerOf,
  sortArguments,
  type TestCommand,
} from './plan.js'
import { quote } from './shell-words.js'

const TAP_VALUED: ReadonlySet<string> = new Set([
  '-R', '--reporter', '-j', '--jobs', '-t', '--timeout', '--node-arg', '--test-arg', '--plugin',
  '--coverage-report', '--coverage-map', '--color', '-o', '--output-file', '--grep', '-g',
])
const TAP_DROPPED =
  /^-(R|j|b|w|c|C|o)$|^--(reporter|jobs|bail|watch|colou?r|no-colou?r|output-file|coverage-report)/
const TAPE_VALUED: ReadonlySet<string> = new Set(['-r', '--require', '-i', '--ignore'])
/** Outcomes, and where they are: the lines by which reports of all versions are told apart. */
const LINES = '^ *(not )?ok |^ *# |^ *[0-9]+[.][.][0-9]+|^ *(at|fileName): |^TAP version'
/** Without times, which differ in every run: so only what a patch changes differs. */
const FILTER =
  ` | grep -E '${LINES}|${ERROR_LINE}' | sed -E 's/ # time=[0-9.]+ *m?s//; s/^ *# time=.*//'`

/** Plans node-tap. Its coverage takes time; versions from 18 can be told so. */
export function planTap(invocation: Invocation): CheckPlan | null {
  const runner = runnerOf(invocation, 'tap')
  if (runner === null) return null
  const { flags, files } = sortArguments(runner.rest, TAP_VALUED, TAP_DROPPED)
  const env = [...invocation.env, 'TAP_DISABLE_COVERAGE=1', 'TAP_NO_COVERAGE=1']
  const run = (args: readonly string[]): TestCommand => {
    const line = commandLine({ ...invocation, env }, [
      ...runner.program, ...flags, '-R', 'tap', '-j', '1', ...args,
    ])
    return { outcomes: filtered(line, FILTER), details: line }
  }
  const targets = files[0] === 'run' ? files.slice(1) : files
  return { kind: 'tap', whole: run(targets), file: (path) => [run([quote(path)])] }
}

/** Plans tape, whose files may also be run by Node alone. */
export function planTape(invocation: Invocation): CheckPlan | null {
  const runner = runnerOf(invocation, 'tape')
  if (runner === null) return null
  const { flags, files } = sortArguments(runner.rest, TAPE_VALUED, /^$/)
  const run = (words: readonly string[]): TestCommand => {
    const line = commandLine(invocation, words)
    return { outcomes: filtered(line, FILTER), details: line }
  }
  const withTape = (args: readonly string[]): TestCommand =>
    run([...runner.program, ...flags, ...args])
  return {
    kind: 'tap',
    whole: withTape(files),
    file: (path) =>
      flags.length === 0
        ? [{ ...run(['node', quote(path)]), isShortcut: true }, withTape([quote(path)])]
        : [withTape([quote(path)])],
  }
}
