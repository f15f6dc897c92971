/** Repairs of Python projects whose code writes between the lines of the report, or names little. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { scratch } from '../helpers/engine.js'
import { builtinRepair, drive, type DriveResult, writeFiles } from './driver.js'

const PARTS = `import os

def parts(text, sep=','):
    os.write(2, b'working\\n')
    return [p for p in text.split(sep) if not p]
`
const TESTS = `import unittest
from lib import parts

class T(unittest.TestCase):
    def test_parts(self):
        self.assertEqual(parts('a,,b'), EXPECTED)

    def test_type(self):
        self.assertIsInstance(parts('a'), list)
`

async function repair(
  t: TestContext,
  files: Readonly<Record<string, string>>,
  check: string,
): Promise<DriveResult & { readonly text: (path: string) => string }> {
  const cwd = scratch(t)
  writeFiles(cwd, files)
  const driven = await drive({ model: builtinRepair(), cwd, check })
  return { ...driven, text: (path) => readFileSync(join(cwd, path), 'utf8') }
}

test('what the code writes to the terminal is left alone by the repair', async (t) => {
  const files = { 'lib.py': PARTS, 'test_lib.py': TESTS.replace('EXPECTED', "['a', 'b']") }
  const { achieved, lastText, text } = await repair(t, files, 'python3 -m unittest')
  assert.equal(achieved, true, lastText)
  assert.equal(text('lib.py'), PARTS.replace('if not p', 'if p'))
})

test('a patch that only silences the code repairs nothing', async (t) => {
  const lib = "import os\n\ndef parts(text):\n    os.write(2, b'working\\n')\n    return []\n"
  const files = { 'lib.py': lib, 'test_lib.py': TESTS.replace('EXPECTED', "{'x': 'one'}") }
  const { gaveUp, lastText, text } = await repair(t, files, 'python3 -m unittest')
  assert.equal(gaveUp, true)
  assert.equal(text('lib.py'), lib, lastText)
})

test('a check that names only the tests that fail is met by the patch after which none is named', async (t) => {
  const half = 'def half(n):\n    return n * 2\n'
  const files = {
    'sub/num.py': half,
    'sub/test_num.py': `import unittest
from num import half

class T(unittest.TestCase):
    def test_half(self):
        self.assertEqual(half(4), 2)

    def test_zero(self):
        self.assertEqual(half(0), 0)
`,
  }
  const { achieved, lastText, text } = await repair(t, files, 'cd sub && python3 -m unittest')
  assert.equal(achieved, true, lastText)
  assert.equal(text('sub/num.py'), half.replace('*', '/'))
})
