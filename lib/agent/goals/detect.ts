import { join } from 'node:path'

import type { GoalDefinition } from '../goal.js'
import { readSmallFile } from './small-file.js'
import { commandGoal } from './command-goal.js'
import { bunTest, nodeTest, npmTest, typeCheck, unsuitable } from './javascript.js'
import { cargoTest, goTest, lint, makeTest } from './native.js'
import { pytest, unittest } from './python.js'
import { JS_TESTS, PYTHON_TESTS } from './test-files.js'
import {
  findFile,
  firstFile,
  isTestScript,
  makeTargets,
  packageDependencies,
  packageScripts,
} from './workspace-facts.js'

const PYTEST_CONFIG: readonly string[] = [
  'pytest.ini',
  '.pytest.ini',
  'pytest.toml',
  '.pytest.toml',
  'conftest.py',
]

/**
 * Chooses a goal from what the workspace holds. The first that fits, in this order: npm-test (a
 * test script), Jest, Vitest or Mocha (a dependency without a test script), bun-test (a Bun lock
 * file and tests), cargo-test, go-test, make-test (a target
 * `test`), pytest, unittest, node-test, tsc, lint.
 */
export const auto: GoalDefinition = {
  name: 'auto',
  description: 'Chooses the check from the files of the workspace.',
  usage: 'auto',
  async resolve(cwd, argument) {
    return (await chooseGoal(cwd)).resolve(cwd, argument)
  },
}

/** The goal that `auto` stands for in a workspace. */
export async function chooseGoal(cwd: string): Promise<GoalDefinition> {
  if (isTestScript((await packageScripts(cwd))?.['test'])) return npmTest
  const runner = await installedRunner(cwd)
  if (runner !== null) return runner
  const jsTests = await findFile(cwd, [...JS_TESTS, '**/test/**/*.{js,cjs,mjs}'])
  if (jsTests !== null && (await firstFile(cwd, ['bun.lock', 'bunfig.toml'])) !== null)
    return bunTest
  if ((await firstFile(cwd, ['Cargo.toml'])) !== null) return cargoTest
  if ((await firstFile(cwd, ['go.mod', 'go.work'])) !== null) return goTest
  if ((await makeTargets(cwd))?.includes('test') === true) return makeTest
  const pythonTests = await findFile(cwd, PYTHON_TESTS)
  if (pythonTests !== null || (await firstFile(cwd, PYTEST_CONFIG)) !== null) {
    return (await usesPytest(cwd, pythonTests)) ? pytest : unittest
  }
  if (jsTests !== null) return nodeTest
  if ((await firstFile(cwd, ['tsconfig.json'])) !== null) return typeCheck
  return lint.resolve(cwd, '').then(
    () => lint,
    () => {
      throw unsuitable(
        'auto',
        'nothing here tells how the work is checked',
        'name a goal, or use `shell: <command>`',
      )
    },
  )
}

/** Commands of runners that are found by the dependencies of package.json. */
const RUNNER_COMMANDS: Readonly<Record<string, string>> = {
  jest: 'npx --no-install jest',
  vitest: 'npx --no-install vitest run',
  mocha: 'npx --no-install mocha',
}

/** A runner that the package depends on without a script to start it. */
async function installedRunner(cwd: string): Promise<GoalDefinition | null> {
  const dependencies = await packageDependencies(cwd)
  const name = Object.keys(RUNNER_COMMANDS).find((runner) => dependencies.includes(runner))
  if (name === undefined) return null
  const command = RUNNER_COMMANDS[name]!
  return {
    name: 'shell',
    description: `All tests of ${name} pass.`,
    usage: `shell: ${command}`,
    resolve: (folder, argument) =>
      commandGoal(
        { name: 'shell', command: `${command} ${argument}`.trim(), task: 'Make the tests pass.' },
        folder,
      ),
  }
}

/** Tests that import unittest and not pytest, without pytest's configuration, are unittest's. */
async function usesPytest(cwd: string, tests: string | null): Promise<boolean> {
  if (tests === null || (await firstFile(cwd, PYTEST_CONFIG)) !== null) return true
  const configs = await Promise.all(
    ['pyproject.toml', 'setup.cfg', 'tox.ini'].map((name) => readSmallFile(join(cwd, name))),
  )
  if (configs.some((text) => text?.includes('pytest') === true)) return true
  const text = (await readSmallFile(join(cwd, tests))) ?? ''
  return !/^\s*(import|from)\s+unittest\b/m.test(text) || /\bpytest\b/.test(text)
}
