import type { GoalDefinition } from '../../goal.js'
import { namedGoal } from '../command-goal.js'
import { unsuitable } from './unsuitable.js'
import { makeTargets } from './workspace-facts.js'

export const makeTest: GoalDefinition = namedGoal(
  'make-test',
  '`make test` succeeds (or another target: `make-test: check`).',
  async (cwd, argument) => {
    const target = argument === '' ? 'test' : argument
    const targets = await makeTargets(cwd)
    if (targets === null) {
      throw unsuitable('make-test', 'there is no Makefile here', 'start the run in its folder')
    }
    if (argument === '' && !targets.includes('test')) {
      throw unsuitable(
        'make-test',
        'the Makefile has no target "test"',
        'name one: `make-test: <target>`',
      )
    }
    return { command: `make ${target}`, task: `Make \`make ${target}\` succeed.` }
  },
)
