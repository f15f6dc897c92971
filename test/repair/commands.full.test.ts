/** The commands by which `builtin:repair` tries patches. */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { builtinRepair, drive, FIXTURES, runCommand, scratchCopy } from './driver.js'
import { fixtures } from './fixtures.js'

/** Repairs a project and returns the shell lines of all trials, in order. */
async function linesOf(cwd: string, check: string, isShort = false): Promise<readonly string[]> {
  const lines: string[] = []
  const result = await drive({
    model: builtinRepair(),
    cwd,
    check,
    ...(isShort ? { maxIterations: 1 } : {}),
    beforeCall: async ({ tool, args }) => {
      if (tool === 'try_patches') lines.push(String(args['command']))
    },
  })
  assert.ok(isShort || result.achieved, result.lastText)
  return lines
}

async function withBug(t: TestContext, project: string, bug: number): Promise<string> {
  const fixture = fixtures.find((one) => one.project === project)!
  const copy = await scratchCopy(join(FIXTURES, project))
  t.after(() => copy[Symbol.asyncDispose]())
  const { file, find, replace } = fixture.bugs[bug]!
  const text = await readFile(join(copy.path, file), 'utf8')
  await writeFile(join(copy.path, file), text.replace(find, () => replace))
  return copy.path
}

test('patches are tried on the failing tests only, and the whole check comes last', async (t) => {
  const cwd = await withBug(t, 'bank-py', 0)
  const lines = await linesOf(cwd, 'python3 -m unittest')
  const alone = lines.filter((line) => /unittest tests\.test_account\.\w+\.test_\w+ /.test(line))
  assert.ok(alone.length >= 1, lines.join('\n'))
  const [last, ...before] = [...lines].reverse()
  assert.doesNotMatch(last!, /test_account/)
  assert.match(before[0]!, /unittest tests\.test_account\./)
})

const hasPytest = (await runCommand('python3 -m pytest --version', FIXTURES)).exitCode === 0

test('pytest plugins are disabled only if the outcomes are the same without them', {
  skip: hasPytest ? false : 'pytest is not installed here',
}, async (t) => {
  const SHORTCUT = 'PYTEST_DISABLE_PLUGIN_AUTOLOAD=1'
  const plain = await withBug(t, 'intervals-py', 0)
  const quick = await linesOf(plain, 'python3 -m pytest -q')
  assert.ok(quick.some((line) => line.includes(SHORTCUT)), quick.join('\n'))
  assert.ok(!quick.at(-1)!.includes(SHORTCUT), 'the whole check is run as it is')

  const needing = await withBug(t, 'intervals-py', 0)
  await writeFile(
    join(needing, 'conftest.py'),
    'import os\nimport pytest\n\n@pytest.fixture(autouse=True)\ndef plugin():\n' +
      "    assert 'PYTEST_DISABLE_PLUGIN_AUTOLOAD' not in os.environ\n",
  )
  const slow = await linesOf(needing, 'python3 -m pytest -q', true)
  assert.ok(slow.length > 2, slow.join('\n'))
  assert.equal(slow.filter((line) => line.includes(SHORTCUT)).length, 1, slow.join('\n'))
})
