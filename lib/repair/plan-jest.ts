import { AS_LINES, WITHOUT_DETAILS, WITHOUT_SKIPPED } from './json-lines.js'
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
  '-c', '--config', '-t', '--testNamePattern', '--outputFile', '--reporters', '-w', '--maxWorkers',
  '--coverageDirectory', '--coverageProvider', '--coverageReporters', '--collectCoverageFrom',
  '--env', '--testEnvironment', '--rootDir', '--roots', '--selectProjects', '--testTimeout',
  '--testPathIgnorePatterns', '--setupFilesAfterEnv', '--preset', '--changedSince', '--shard',
  '--transform', '--moduleNameMapper', '--globals', '--testMatch', '--testRegex', '--setupFiles',
  '--testRunner', '--resolver', '--snapshotSerializers', '--modulePathIgnorePatterns',
  '--cacheDirectory', '--seed', '--maxConcurrency',
])
const DROPPED = new RegExp(
  '^-(i|w|b)$|^--(coverage|collectCoverage|watch|verbose|silent|json|outputFile|reporters|bail' +
    '|runInBand|maxWorkers|run-in-band|max-workers|cache|no-cache|colou?rs?|testLocationInResults)',
)

/**
 * Plans Jest, in one process. Its cache stays where it is: entries are named after the folder of
 * the project and the text of each file, so runs in other folders neither see nor disturb it.
 */
export function planJest(invocation: Invocation): CheckPlan | null {
  const runner = runnerOf(invocation, 'jest')
  if (runner === null) return null
  const { flags, files } = sortArguments(runner.rest, VALUED, DROPPED)
  const run = (args: readonly string[]): string =>
    commandLine(invocation, [
      ...runner.program,
      ...flags,
      '--json --silent --runInBand --coverage=false --bail=0',
      ...args,
    ])
  const command = (args: readonly string[]): TestCommand => ({
    outcomes: filtered(run(args), AS_LINES + WITHOUT_DETAILS),
    details: filtered(run(args), AS_LINES),
    only: (names) =>
      filtered(
        run([option('--testNamePattern', titlesPattern(names)), ...args]),
        AS_LINES + WITHOUT_DETAILS + WITHOUT_SKIPPED,
      ),
  })
  return {
    kind: 'lines',
    whole: command(files),
    file: (path) => [command(['--runTestsByPath', quote(path)])],
  }
}
