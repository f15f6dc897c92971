import type { GoalDefinition } from '../../goal.js'
import { namedGoal } from '../command-goal.js'
import { unsuitable } from './unsuitable.js'
import { hasFile } from './workspace-facts.js'

/** `go test`, for all packages or those that the argument names. */
export const goTest: GoalDefinition = namedGoal(
  'go-test',
  'All tests of `go test ./...` pass.',
  async (cwd, argument) => {
    if (!(await hasFile(cwd, ['go.mod', 'go.work']))) {
      throw unsuitable('go-test', 'there is no go.mod here', 'start the run in its folder')
    }
    return {
      command: `go test -count=1 ${argument === '' ? './...' : argument}`,
      timeoutMs: 600_000,
      reporter: 'go',
      protected: ['**/*_test.go'],
      sealed: ['go.work'],
      task: 'Make the tests pass.',
    }
  },
)
