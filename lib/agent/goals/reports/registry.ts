import type { TestReporter } from '../../test-outcomes.js'
import { shellCommands, type ShellCommand } from '../shell-commands.js'
import { bun } from './bun.js'
import { cargo } from './cargo.js'
import { go } from './go.js'
import { jest, mocha, vitest } from './javascript.js'
import { nodeTest } from './node-test.js'
import { pytest } from './pytest.js'
import type { TestRunner } from './types.js'
import { unittest } from './unittest.js'

/** All runners by the name that a goal's definition holds. */
export const TEST_RUNNERS: Readonly<Record<TestReporter, TestRunner>> = {
  'node-test': nodeTest,
  jest,
  vitest,
  mocha,
  cargo,
  go,
  pytest,
  unittest,
  bun,
}

/** The runner that some text of commands starts first; null when it starts no known runner. */
export function detectReporter(text: string): TestReporter | null {
  const commands = shellCommands(text)
  let first: { readonly at: number; readonly name: TestReporter } | null = null
  for (const [name, { command }] of Object.entries(TEST_RUNNERS)) {
    if (command === null || command.avoids?.(text) === true) continue
    for (const one of commands) {
      const at = command.starts(one)?.at
      if (at === undefined) continue
      if (first === null || at < first.at) first = { at, name: name as TestReporter }
      break
    }
  }
  return first?.name ?? null
}

/** True for a command that starts a known runner, with our reporter or without. */
export function startsRunner(one: ShellCommand): boolean {
  return Object.values(TEST_RUNNERS).some(({ command }) => command?.starts(one) !== undefined)
}
