import type { GoalDefinition } from '../../goal.js'
import { namedGoal } from '../command-goal.js'
import { BUN_REPORT_VARIABLE } from '../reports/bun-variable.js'
import { JS_TESTS } from '../test-files.js'
import { unsuitable } from './unsuitable.js'
import { findFile, hasFile, isTestScript, packageScripts } from './workspace-facts.js'

/** Files that `node --test` runs when its command line names none. */
const NODE_TESTS: readonly string[] = [...JS_TESTS, '**/test/**/*.{js,cjs,mjs,ts,cts,mts}']

/** `node --test`, for all tests or the files that the argument names. */
export const nodeTest: GoalDefinition = namedGoal(
  'node-test',
  'All tests of `node --test` pass.',
  async (cwd, argument) => {
    if (argument === '' && (await findFile(cwd, NODE_TESTS)) === null) {
      throw unsuitable(
        'node-test',
        'no test file was found',
        'add one, such as test/first.test.js, or name files: `node-test: path/to/file.js`',
      )
    }
    const command = `node --test ${argument}`.trim()
    return { command, reporter: 'node-test', task: 'Make the tests pass.' }
  },
)

export const npmTest: GoalDefinition = namedGoal(
  'npm-test',
  '`npm test` succeeds; tests of a known runner behind it are compared by name.',
  async (cwd, argument) => {
    const scripts = await packageScripts(cwd)
    if (scripts === null) {
      throw unsuitable(
        'npm-test',
        'there is no package.json here',
        "start the run in the package's folder, or use `node-test` or `shell: <command>`",
      )
    }
    if (scripts === undefined) {
      throw unsuitable('npm-test', 'package.json is not valid JSON', 'repair it first')
    }
    if (!isTestScript(scripts['test'])) {
      throw unsuitable(
        'npm-test',
        'package.json has no "test" script',
        'add one, or use `node-test` or `shell: <command>`',
      )
    }
    const command = argument === '' ? 'npm test' : `npm test -- ${argument}`
    return { command, task: 'Make `npm test` pass.' }
  },
)

export const bunTest: GoalDefinition = namedGoal(
  'bun-test',
  'All tests of `bun test` pass.',
  async (cwd, argument) => {
    if (argument === '' && (await findFile(cwd, JS_TESTS)) === null) {
      throw unsuitable('bun-test', 'no test file was found', 'add one, such as first.test.ts')
    }
    const shown = `bun test ${argument}`.trim()
    const command = `${shown} --reporter=junit --reporter-outfile="$${BUN_REPORT_VARIABLE}"`
    return { command, shown, reporter: 'bun', task: 'Make the tests pass.' }
  },
)

/** The TypeScript compiler that is installed in the workspace. */
export const typeCheck: GoalDefinition = namedGoal(
  'tsc',
  'The TypeScript compiler finds no error.',
  async (cwd, argument) => {
    const config = argument === '' ? 'tsconfig.json' : argument
    if (argument === '' && !(await hasFile(cwd, ['tsconfig.json']))) {
      throw unsuitable(
        'tsc',
        'there is no tsconfig.json here',
        'start the run in its folder, or name it: `tsc: path/to/tsconfig.json`',
      )
    }
    return {
      command: `npx --no-install tsc --noEmit -p ${config}`,
      reporter: null,
      protected: TYPESCRIPT,
      sealed: ['**/tsconfig*.json'],
      task: 'Remove all type errors without switching checks off (`any`, `@ts-ignore`).',
    }
  },
)

/** Files of the compiler itself, which lie in the workspace and could be edited. */
const TYPESCRIPT: readonly string[] = [
  'node_modules/.bin/tsc',
  'node_modules/typescript/bin/tsc',
  'node_modules/typescript/package.json',
  'node_modules/typescript/lib/tsc.js',
  'node_modules/typescript/lib/_tsc.js',
  'node_modules/typescript/lib/typescript.js',
]
