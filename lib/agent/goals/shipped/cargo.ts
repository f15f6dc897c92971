import type { GoalDefinition } from '../../goal.js'
import { namedGoal } from '../command-goal.js'
import { CARGO_CONFIG } from '../test-files.js'
import { unsuitable } from './unsuitable.js'
import { hasFile } from './workspace-facts.js'

/** `cargo test`. Unit tests cannot be protected as files: they share them with the code. */
export const cargoTest: GoalDefinition = namedGoal(
  'cargo-test',
  'All tests of `cargo test` pass.',
  async (cwd, argument) => {
    if (!(await hasFile(cwd, ['Cargo.toml']))) {
      throw unsuitable('cargo-test', 'there is no Cargo.toml here', 'start the run in its folder')
    }
    return {
      // Run all test programs, so that the first check knows the tests of every one.
      command: `cargo test --no-fail-fast ${argument}`.trim(),
      env: { CARGO_TERM_COLOR: 'never' },
      timeoutMs: 600_000,
      reporter: 'cargo',
      protected: ['!**/target/**'],
      sealed: CARGO_CONFIG,
      task: 'Make the tests pass.',
    }
  },
)
