/** Checks in a sandbox, where our reporters must work as well. */
import assert from 'node:assert/strict'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { bubblewrapExecutor, bubblewrapProblem } from 'runwright/agent'
import { checkGoal } from '../../../lib/agent/goals/check.js'
import { goalRegistry } from '../../../lib/agent/goals/registry.js'
import { captureBaseline } from '../../../lib/agent/goals/protected-files.js'
import { workspace, type Files } from './support.js'

const HIDDEN = [join(userInfo().homedir, '.ssh'), '/etc/shadow']
const skip = (await bubblewrapProblem()) ?? false

for (const { goal, files, expected } of [
  {
    goal: 'node-test',
    files: {
      'test/a.test.mjs': `import { test } from 'node:test'
import { existsSync } from 'node:fs'
test('sees no keys', () => {
  if (${JSON.stringify(HIDDEN)}.some((path) => existsSync(path))) throw new Error('open')
})
`,
    },
    expected: { 'test/a.test.mjs > sees no keys': 'pass' },
  },
  {
    goal: 'shell: python3 -m unittest',
    files: {
      'test_a.py': `import unittest
class TestA(unittest.TestCase):
    def test_it(self):
        self.assertEqual(1, 1)
`,
    },
    expected: { 'test_a.py > TestA > test_it': 'pass' },
  },
] as readonly { goal: string; files: Files; expected: object }[]) {
  test(`in a sandbox ${goal} reports its tests by name`, { skip }, async (t) => {
    const cwd = await workspace(t, files)
    const spec = await goalRegistry().resolve(goal, cwd)
    const verdict = await checkGoal(spec, {
      executor: bubblewrapExecutor(),
      cwd,
      mark: 'sandboxed-check',
      signal: new AbortController().signal,
      baselineTests: null,
      baseline: await captureBaseline(spec, cwd),
    })
    assert.deepEqual(verdict.tests, expected, verdict.output)
    assert.equal(verdict.achieved, true, verdict.reason)
  })
}
