import { access, constants } from 'node:fs/promises'
import { join } from 'node:path'

import type { GoalDefinition } from '../../goal.js'
import { commandGoal } from '../command-goal.js'
import { PYTEST_CONFIG, PYTHON_TESTS } from '../test-files.js'
import { unsuitable } from './unsuitable.js'
import { findFile, firstFile } from './workspace-facts.js'

/** pytest, run by the virtual environment of the workspace where there is one. */
export const pytest: GoalDefinition = {
  name: 'pytest',
  description: 'All tests of pytest pass.',
  usage: 'pytest',
  async resolve(cwd, argument) {
    if (argument === '') await expectTests('pytest', cwd, PYTHON_TESTS)
    const command = `${await python(cwd)} -m pytest ${argument}`.trim()
    return commandGoal(
      { name: 'pytest', command, reporter: 'pytest', task: 'Make the tests pass.' },
      cwd,
    )
  },
}

/** The standard library's test runner. */
export const unittest: GoalDefinition = {
  name: 'unittest',
  description: 'All tests of `python -m unittest` pass.',
  usage: 'unittest',
  async resolve(cwd, argument) {
    if (argument === '') await expectTests('unittest', cwd, ['**/test*.py'])
    const command = `${await python(cwd)} -m unittest ${argument}`.trim()
    return commandGoal(
      {
        name: 'unittest',
        command,
        reporter: 'unittest',
        protected: ['**/test*.py'],
        task: 'Make the tests pass.',
      },
      cwd,
    )
  },
}

/** Throws unless the workspace has tests, or settings that may say where they are. */
async function expectTests(goal: string, cwd: string, globs: readonly string[]): Promise<void> {
  const configured = [...PYTEST_CONFIG, 'tox.ini', 'setup.cfg', 'pyproject.toml']
  if ((await findFile(cwd, globs)) !== null || (await firstFile(cwd, configured)) !== null) return
  throw unsuitable(
    goal,
    'no test file was found',
    `add one, such as tests/test_first.py, or name files: \`${goal}: path\``,
  )
}

async function python(cwd: string): Promise<string> {
  const found = await firstExecutable(cwd, ['.venv/bin/python', 'venv/bin/python'])
  return found === null ? 'python3' : `./${found}`
}

async function firstExecutable(cwd: string, paths: readonly string[]): Promise<string | null> {
  for (const path of paths) {
    const usable = await access(join(cwd, path), constants.X_OK).then(
      () => true,
      () => false,
    )
    if (usable) return path
  }
  return null
}
