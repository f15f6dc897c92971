import { AS_LINES, WITHOUT_DETAILS } from './json-lines.js'
import {
  type CheckPlan,
  commandLine,
  filtered,
  type Invocation,
  option,
  runnerOf,
  sortArguments,
  type TestCommand,
  titlesPattern,
} from './plan.js'
import { quote } from './shell-words.js'

const VALUED: ReadonlySet<string> = new Set([
  '-r', '--require', '-R', '--reporter', '-O', '--reporter-option', '--reporter-options', '-u',
  '--ui', '-t', '--timeout', '-s', '--slow', '-g', '--grep', '-f', '--fgrep', '-j', '--jobs',
  '--config', '--package', '--extension', '--spec', '--file', '--ignore', '--exclude', '--retries',
  '--import', '--loader', '--watch-files', '--watch-ignore', '--global', '-n', '--node-option',
])
const DROPPED =
  /^-(R|O|w|p|j|b|c|C)$|^--(reporter|watch|parallel|jobs|bail|colou?r|no-colou?r|diff)/

/** Plans Mocha: `json-stream` is fast and short, `json` has expected and actual values. */
export function planMocha(invocation: Invocation): CheckPlan | null {
  const runner = runnerOf(invocation, 'mocha')
  if (runner === null) return null
  const { flags, files } = sortArguments(runner.rest, VALUED, DROPPED)
  const run = (reporter: string, args: readonly string[]): string =>
    commandLine(invocation, [
      ...runner.program, ...flags, '--reporter', reporter, '--no-parallel', '--no-bail', ...args,
    ])
  const command = (args: readonly string[]): TestCommand => ({
    outcomes: filtered(run('json-stream', args), WITHOUT_DETAILS),
    details: filtered(run('json', args), AS_LINES),
    only: (names) => {
      const pattern = titlesPattern(names.map(testOf))
      return filtered(
        run('json-stream', [...args, option('--grep', pattern)]), WITHOUT_DETAILS,
      )
    },
  })
  return {
    kind: 'lines',
    whole: command(files),
    file: (path) => [command([quote(path)])],
  }
}

/** The test for which a hook failed stands for it, since hooks cannot be run by name. */
function testOf(name: string): string {
  const at = name.search(/"(?:before|after) (?:all|each)" hook/)
  const title = name.indexOf(' for "', Math.max(0, at))
  return at < 0 || title < 0 ? name : name.slice(0, at) + name.slice(title + 6, -1)
}
