import {
  type CheckPlan,
  commandLine,
  filtered,
  type Invocation,
  option,
  runnerOf,
  sortArguments,
  type TestCommand,
} from './plan.js'
import { quote } from './shell-words.js'

const VALUED: ReadonlySet<string> = new Set([
  '-m', '--match', '-c', '--concurrency', '-T', '--timeout', '--config', '--node-arguments',
])
const DROPPED =
  /^-(v|t|w|s|c)$|^--(tap|verbose|watch|fail-fast|serial|concurrency|color|no-color|reset-cache)/
const FILTER = ` | grep -E '^(not )?ok [0-9]'`

/** Plans AVA, one file after the other. */
export function planAva(invocation: Invocation): CheckPlan | null {
  const runner = runnerOf(invocation, 'ava')
  if (runner === null) return null
  const { flags, files } = sortArguments(runner.rest, VALUED, DROPPED)
  const run = (args: readonly string[]): string =>
    commandLine(invocation, [
      ...runner.program, ...flags, '--tap', '--no-color', '--concurrency=1', ...args,
    ])
  const command = (args: readonly string[]): TestCommand => ({
    outcomes: filtered(run(args), FILTER),
    details: run(args),
    only: (names) => filtered(run([...names.flatMap(matches), ...args]), FILTER),
  })
  return {
    kind: 'tap',
    whole: command(files),
    file: (path) => [command([quote(path)])],
  }
}

/**
 * With several files a title follows the name of its file. An exclamation mark at the start would
 * negate, and a backslash escape; an asterisk stands for both.
 */
function matches(name: string): string[] {
  const title = name.replace(/ #\d{1,6}$/, '')
  const at = title.indexOf(' › ')
  const titles = at < 0 ? [title] : [title, title.slice(at + 3)]
  return titles.map((text) => option('--match', text.replace(/^!|\\/g, '*')))
}
