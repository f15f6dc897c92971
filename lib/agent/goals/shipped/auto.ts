import { join } from 'node:path'

import type { GoalDefinition } from '../../goal.js'
import { commandGoal } from '../command-goal.js'
import { readSmallFile } from '../small-file.js'
import { JS_TESTS, PYTHON_TESTS, PYTEST_CONFIG } from '../test-files.js'
import { unsuitable } from './unsuitable.js'
import {
  findFile,
  hasFile,
  isTestScript,
  makeTargets,
  packageDependencies,
  packageScripts,
} from './workspace-facts.js'

/** The goals that `auto` chooses from. */
export type Choices = Readonly<Record<Choice, GoalDefinition>>
type Choice =
  | ('npmTest' | 'nodeTest' | 'bunTest' | 'cargoTest' | 'goTest' | 'makeTest')
  | ('pytest' | 'unittest' | 'typeCheck' | 'lint')

/**
 * Chooses a goal by the files of the workspace. The first that fits, in this order: npm-test (a
 * test script); Jest, Vitest or Mocha (a dependency without a test script); bun-test (Bun's lock
 * file or configuration, and tests); cargo-test; go-test; make-test (a target `test`); pytest;
 * unittest; node-test; tsc; lint.
 */
export function autoGoal(choices: Choices): GoalDefinition {
  return {
    name: 'auto',
    description: 'Chooses the check from the files of the workspace.',
    usage: 'auto',
    async resolve(cwd, argument) {
      return (await chooseGoal(cwd, choices)).resolve(cwd, argument)
    },
  }
}

async function chooseGoal(cwd: string, goals: Choices): Promise<GoalDefinition> {
  const has = (...files: string[]): Promise<boolean> => hasFile(cwd, files)
  if (isTestScript((await packageScripts(cwd))?.['test'])) return goals.npmTest
  const runner = await installedRunner(cwd)
  if (runner !== null) return runner
  const jsTests = await findFile(cwd, [...JS_TESTS, '**/test/**/*.{js,cjs,mjs}'])
  if (jsTests !== null && (await has('bun.lock', 'bunfig.toml'))) return goals.bunTest
  if (await has('Cargo.toml')) return goals.cargoTest
  if (await has('go.mod', 'go.work')) return goals.goTest
  if ((await makeTargets(cwd))?.includes('test') === true) return goals.makeTest
  const pythonTests = await findFile(cwd, PYTHON_TESTS)
  if (pythonTests !== null || (await has(...PYTEST_FILES))) {
    return (await usesPytest(cwd, pythonTests)) ? goals.pytest : goals.unittest
  }
  if (jsTests !== null) return goals.nodeTest
  if (await has('tsconfig.json')) return goals.typeCheck
  return goals.lint.resolve(cwd, '').then(
    () => goals.lint,
    () => {
      throw unsuitable(
        'auto',
        'no file here shows how the work is checked',
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

/** A goal for a runner that the package depends on without a script to start it. */
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

const PYTEST_FILES: readonly string[] = [...PYTEST_CONFIG, 'conftest.py']

/** False for tests that import unittest and not pytest, in a workspace without pytest settings. */
async function usesPytest(cwd: string, tests: string | null): Promise<boolean> {
  if (tests === null || (await hasFile(cwd, PYTEST_FILES))) return true
  const configs = await Promise.all(
    ['pyproject.toml', 'setup.cfg', 'tox.ini'].map((name) => readSmallFile(join(cwd, name))),
  )
  if (configs.some((text) => text?.includes('pytest') === true)) return true
  const text = (await readSmallFile(join(cwd, tests))) ?? ''
  return !/^[ \t]*(import|from)[ \t]+unittest\b/m.test(text) || /\bpytest\b/.test(text)
}
