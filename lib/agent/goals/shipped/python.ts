import { access, constants } from 'node:fs/promises'
import { join } from 'node:path'

import { unreadable } from '../../exhaustion.js'
import type { GoalDefinition } from '../../goal.js'
import { namedGoal } from '../command-goal.js'
import { PYTEST_CONFIG, PYTHON_TESTS } from '../test-files.js'
import { unsuitable } from './unsuitable.js'
import { findFile, hasFile } from './workspace-facts.js'

/** pytest, run by the virtual environment of the workspace where there is one. */
export const pytest: GoalDefinition = namedGoal(
  'pytest',
  'All tests of pytest pass.',
  async (cwd, argument) => {
    if (argument === '') await expectTests('pytest', cwd, PYTHON_TESTS)
    const command = `${await python(cwd)} -m pytest ${argument}`.trim()
    return { command, reporter: 'pytest', task: 'Make the tests pass.' }
  },
)

/** Its default pattern is `test*.py`, of which `PYTHON_TESTS` covers only a part. */
export const unittest: GoalDefinition = namedGoal(
  'unittest',
  'All tests of `python -m unittest` pass.',
  async (cwd, argument) => {
    if (argument === '') await expectTests('unittest', cwd, ['**/test*.py'])
    const command = `${await python(cwd)} -m unittest ${argument}`.trim()
    return {
      command,
      reporter: 'unittest',
      protected: ['**/test*.py'],
      task: 'Make the tests pass.',
    }
  },
)

/** Throws unless the workspace has tests, or settings that may say where they are. */
async function expectTests(goal: string, cwd: string, globs: readonly string[]): Promise<void> {
  const configured = [...PYTEST_CONFIG, 'tox.ini', 'setup.cfg', 'pyproject.toml']
  if ((await findFile(cwd, globs)) !== null || (await hasFile(cwd, configured))) return
  throw unsuitable(
    goal,
    'no test file was found',
    `add one, such as tests/test_first.py, or name files: \`${goal}: path\``,
  )
}

/** The Python of the workspace's virtual environment, or the system's. */
async function python(cwd: string): Promise<string> {
  for (const path of ['.venv/bin/python', 'venv/bin/python']) {
    const isExecutable = access(join(cwd, path), constants.X_OK).then(() => true)
    if ((await isExecutable.catch(unreadable)) !== null) return `./${path}`
  }
  return 'python3'
}
