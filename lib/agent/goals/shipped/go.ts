import type { GoalDefinition } from '../../goal.js'
import { commandGoal } from '../command-goal.js'
import { unsuitable } from './unsuitable.js'
import { firstFile } from './workspace-facts.js'

/** `go test`, for all packages or those that the argument names. */
export const goTest: GoalDefinition = {
  name: 'go-test',
  description: 'All tests of `go test ./...` pass.',
  usage: 'go-test',
  async resolve(cwd, argument) {
    if ((await firstFile(cwd, ['go.mod', 'go.work'])) === null) {
      throw unsuitable('go-test', 'there is no go.mod here', 'start the run in its folder')
    }
    return commandGoal(
      {
        name: 'go-test',
        command: `go test -count=1 ${argument === '' ? './...' : argument}`,
        timeoutMs: 600_000,
        reporter: 'go',
        protected: ['**/*_test.go'],
        sealed: ['go.work'],
        task: 'Make the tests pass.',
      },
      cwd,
    )
  },
}
