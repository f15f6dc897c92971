import type { TestReporter } from '../../test-outcomes.js'
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
  let first: { readonly index: number; readonly name: TestReporter } | null = null
  for (const [name, { command }] of Object.entries(TEST_RUNNERS)) {
    const index = command?.pattern.exec(text)?.index
    if (index === undefined || command?.unless?.test(text) === true) continue
    if (first === null || index < first.index) first = { index, name: name as TestReporter }
  }
  return first?.name ?? null
}
