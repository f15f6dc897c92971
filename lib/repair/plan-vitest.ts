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
  '-c', '--config', '-r', '--root', '-t', '--testNamePattern', '--reporter', '--outputFile',
  '--dir', '--environment', '--pool', '--project', '--maxWorkers', '--minWorkers', '--exclude',
  '--mode', '--shard', '--testTimeout', '--hookTimeout', '--bail', '--retry',
])
const DROPPED = new RegExp(
  '^-w$|^--(run|reporter|outputFile|watch|no-watch|ui|coverage|silent|bail|file-parallelism' +
    '|fileParallelism|no-file-parallelism|maxWorkers|minWorkers|open|color|no-color)',
)
const SUBCOMMANDS: ReadonlySet<string> = new Set(['run', 'watch', 'dev'])
/** Without times, which differ in every run: so only what a patch changes differs. */
const FILTER = ` | grep -E '^(not )?ok [0-9]' | sed -E 's/ # time=[0-9.]+ *m?s//'`

/** Of tests run by name, all others are reported as skipped. */
const WITHOUT_SKIPPED = ` | grep -v ' # SKIP$'`

/** Plans Vitest, one file after the other, without the cache of results that it writes. */
export function planVitest(invocation: Invocation): CheckPlan | null {
  const runner = runnerOf(invocation, 'vitest')
  if (runner === null) return null
  const [first] = runner.rest
  const rest = SUBCOMMANDS.has(first?.text ?? '') ? runner.rest.slice(1) : runner.rest
  const { flags, files } = sortArguments(rest, VALUED, DROPPED)
  const run = (args: readonly string[]): string =>
    commandLine(invocation, [
      ...runner.program,
      'run',
      ...flags,
      '--reporter=tap-flat --no-file-parallelism --coverage.enabled=false --bail=0 --no-cache',
      ...args,
    ])
  const command = (args: readonly string[]): TestCommand => ({
    outcomes: filtered(run(args), FILTER),
    details: run(args),
    only: (names) =>
      filtered(
        run([option('--testNamePattern', titlesPattern(names.map(withoutFile))), ...args]),
        FILTER + WITHOUT_SKIPPED,
      ),
  })
  return {
    kind: 'tap',
    whole: command(files),
    file: (path) => [command([quote(path)])],
  }
}

/** Names in the report start with the path of the file. */
function withoutFile(name: string): string {
  const at = name.indexOf(' > ')
  return at < 0 ? name : name.slice(at + 3)
}
