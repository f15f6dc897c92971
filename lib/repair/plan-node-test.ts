import {
  baseName,
  type CheckPlan,
  commandLine,
  filtered,
  type Invocation,
  option,
  sortArguments,
  titlePattern,
} from './plan.js'
import { quote } from './shell-words.js'

const VALUED: ReadonlySet<string> = new Set([
  '--import', '--require', '-r', '--loader', '--experimental-loader', '--conditions', '-C',
  '--env-file', '--test-name-pattern', '--test-reporter', '--test-reporter-destination',
  '--test-concurrency', '--test-timeout', '--test-shard',
])
const DROPPED =
  /^--test$|^--test-reporter|^--experimental-test-coverage|^--test-coverage|^--watch|^--test-only/
const FILTER = ` | grep -E '^ *(not )?ok [0-9]|^ *# Subtest: |^ *(  location|  failureType): '`

/** Plans `node --test` and `tsx --test`. */
export function planNodeTest(invocation: Invocation): CheckPlan | null {
  const [program, ...rest] = invocation.words
  const name = baseName(program?.text ?? '')
  const isRunner = (name === 'node' || name === 'tsx') && rest.some(({ text }) => text === '--test')
  if (!isRunner) return null
  const { flags, files } = sortArguments(rest, VALUED, DROPPED)
  const line = (args: readonly string[]): string =>
    commandLine(invocation, [program!.raw, ...flags, '--test-reporter=tap', ...args])
  return {
    kind: 'tap',
    whole: {
      outcomes: filtered(line(['--test', ...files]), FILTER),
      details: line(['--test', ...files]),
      only: (names) => filtered(line([...patterns(names), '--test', ...files]), FILTER),
    },
    // A test file run directly reports as well, and saves the runner's process.
    file: (path) =>
      (name === 'node' ? [[quote(path)], ['--test', quote(path)]] : [['--test', quote(path)]]).map(
        (args) => ({
          outcomes: filtered(line(args), FILTER),
          details: line(args),
          only: (names) => filtered(line([...patterns(names), ...args]), FILTER),
        }),
      ),
  }
}

/**
 * Options that run the tests of these names. Node 20 compares a pattern with a test's own title,
 * later versions with the titles of its suites before it as well. A suite in `names` is left out
 * when one of its tests is there, because its name would run all of them.
 */
function patterns(names: readonly string[]): string[] {
  const leaves = names.filter((name) => !names.some((other) => other.startsWith(`${name} > `)))
  return leaves.map((name) => {
    const title = titlePattern(name.split(' > ').at(-1)!)
    return option('--test-name-pattern', `/^(?:${title}|${titlePattern(name)})$/`)
  })
}
