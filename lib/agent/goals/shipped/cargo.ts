import type { GoalDefinition } from '../../goal.js'
import { commandGoal } from '../command-goal.js'
import { CARGO_CONFIG } from '../test-files.js'
import { unsuitable } from './unsuitable.js'
import { firstFile } from './workspace-facts.js'

/** `cargo test`. Unit tests cannot be protected as files: they share them with the code. */
export const cargoTest: GoalDefinition = {
  name: 'cargo-test',
  description: 'All tests of `cargo test` pass.',
  usage: 'cargo-test',
  async resolve(cwd, argument) {
    if ((await firstFile(cwd, ['Cargo.toml'])) === null) {
      throw unsuitable('cargo-test', 'there is no Cargo.toml here', 'start the run in its folder')
    }
    return commandGoal(
      {
        name: 'cargo-test',
        // Run all test programs, so that the first check knows the tests of every one.
        command: `cargo test --no-fail-fast ${argument}`.trim(),
        env: { CARGO_TERM_COLOR: 'never' },
        timeoutMs: 600_000,
        reporter: 'cargo',
        protected: ['!**/target/**'],
        sealed: CARGO_CONFIG,
        task: 'Make the tests pass.',
      },
      cwd,
    )
  },
}
