/** Traces of unittest and pytest. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'

import { readTrace, watch } from '../../lib/repair/trace/trace.js'
import { workspace, type Files } from '../agent/goals/support.js'
import { lines, outcomes, privateFolder, run, traced } from './trace-support.js'

const hasPytest = spawnSync('python3', ['-m', 'pytest', '--version']).status === 0
const SUMS = `def add(a, b):
    if a == 0:
        return b
    return a + b


def sub(a, b):
    return a - b
`
const CASES = `import unittest
from sums import add, sub


class TestSums(unittest.TestCase):
    def test_adds(self):
        self.assertEqual(add(1, 2), 3)

    def test_adds_zero(self):
        self.assertEqual(add(0, 2), 2)

    def test_subs(self):
        self.assertEqual(sub(2, 1), 2)

    @unittest.skip('later')
    def test_later(self):
        pass
`
const FUNCTIONS = `import pytest
from sums import add, sub


@pytest.fixture
def zero():
    return sub(1, 1)


@pytest.mark.parametrize('a', [1, 2])
def test_adds(a):
    assert add(a, 2) == a + 2


class TestMore:
    def test_adds_zero(self, zero):
        assert add(zero, 2) == 3
`
const CASE_LINES = {
  ...{ 1: '', 2: 'TestSums > test_adds, TestSums > test_adds_zero' },
  ...{ 3: 'TestSums > test_adds_zero', 4: 'TestSums > test_adds', 7: '', 8: 'TestSums > test_subs' },
}
const CASE_OUTCOMES = {
  'test_sums.py > TestSums > test_adds': false,
  'test_sums.py > TestSums > test_adds_zero': false,
  'test_sums.py > TestSums > test_subs': true,
  'test_sums.py > TestSums > test_later': null,
}

/** A project in Python, and what is expected of it. */
interface Project {
  readonly name: string
  readonly tests: string
  readonly command: string
  readonly lines: Readonly<Record<number, string>>
  readonly outcomes: Readonly<Record<string, boolean | null>>
}

const PYTEST = 'python3 -m pytest -q -p no:cacheprovider'
const PROJECTS: readonly Project[] = [
  {
    name: 'unittest',
    tests: CASES,
    command: 'python3 -m unittest',
    lines: CASE_LINES,
    outcomes: CASE_OUTCOMES,
  },
  {
    name: 'pytest with cases of unittest',
    tests: CASES,
    command: PYTEST,
    lines: CASE_LINES,
    outcomes: CASE_OUTCOMES,
  },
  {
    name: 'pytest',
    tests: FUNCTIONS,
    command: PYTEST,
    lines: {
      ...{ 1: '', 2: 'test_adds[1], test_adds[2], TestMore > test_adds_zero' },
      ...{ 3: 'TestMore > test_adds_zero', 4: 'test_adds[1], test_adds[2]' },
      ...{ 7: '', 8: 'TestMore > test_adds_zero' },
    },
    outcomes: {
      'test_sums.py > test_adds[1]': false,
      'test_sums.py > test_adds[2]': false,
      'test_sums.py > TestMore > test_adds_zero': true,
    },
  },
]

for (const project of PROJECTS) {
  const skip = project.command === PYTEST && !hasPytest ? 'pytest is not installed' : false
  test(`${project.name}: the lines that each test ran`, { skip }, async (t) => {
    const files: Files = { 'sums.py': SUMS, 'test_sums.py': project.tests }
    const cwd = await workspace(t, files)
    const trace = await traced(t, cwd, project.command)
    assert.deepEqual(outcomes(trace), project.outcomes)
    // Python 3.9 and earlier also run line 1 of an empty module.
    assert.deepEqual(lines(trace, 'sums.py'), project.lines)
  })
}

test("what a test of Python starts belongs to it, and the project's sitecustomize runs", async (t) => {
  const cwd = await workspace(t, {
    'lib/sitecustomize.py': "import os\nos.environ['SEEN'] = 'yes'\n",
    'tool.py': 'import os\nprint(os.environ["SEEN"])\n',
    'test_tool.py': `import subprocess, sys, threading, unittest
from work import work

class TestTool(unittest.TestCase):
    def test_program(self):
        self.assertEqual(subprocess.check_output([sys.executable, 'tool.py']), b'yes\\n')

    def test_thread(self):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
`,
    'work.py': 'def work():\n    return 1\n',
  })
  const folder = await privateFolder(t)
  const env = await watch(folder, cwd, { PYTHONPATH: 'lib' })
  const { status, output } = run(cwd, 'python3 -m unittest', env)
  assert.equal(status, 0, output)
  const trace = await readTrace(folder)
  assert.equal(lines(trace, 'tool.py')[2], 'TestTool > test_program')
  assert.equal(lines(trace, 'work.py')[2], 'TestTool > test_thread')
  assert.equal(lines(trace, 'lib/sitecustomize.py')[2], 'TestTool > test_program')
})

test('a test of Python that ends the process keeps its lines; a script is one test', async (t) => {
  const cwd = await workspace(t, {
    'end.py': 'import os\n\n\ndef end():\n    os._exit(3)\n',
    'test_end.py': `import unittest
from end import end


class TestEnd(unittest.TestCase):
    def test_ends(self):
        end()
`,
    'check.py': 'assert 1 == 2\n',
  })
  const trace = await traced(t, cwd, 'python3 -m unittest')
  assert.deepEqual(outcomes(trace), { 'test_end.py > TestEnd > test_ends': null })
  assert.equal(lines(trace, 'end.py')[5], 'TestEnd > test_ends')
  assert.deepEqual(outcomes(await traced(t, cwd, 'python3 check.py')), { 'check.py': true })
})
