import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'

import { Pursuit, put, workspace } from './support.js'
import type { Files } from './support.js'

const PYTHON = works('python3', ['-c', 'pass'])
const PYTEST = PYTHON && works('python3', ['-m', 'pytest', '--version'])
const withPytest = {
  skip: PYTEST ? false : 'pytest is not installed for python3: apt-get install python3-pytest',
}
const withPython = { skip: PYTHON ? false : 'python3 is not installed' }

const BROKEN = 'def add(a, b):\n    return a - b\n'
const FIXED = 'def add(a, b):\n    return a + b\n'

const PYTEST_PROJECT: Files = {
  'sums.py': BROKEN,
  'tests/test_add.py': `
import pytest
from sums import add

def test_adds():
    assert add(1, 2) == 3

class TestMany:
    @pytest.mark.parametrize('n', [0, 5])
    def test_more(self, n):
        assert add(n, n) == 2 * n
`,
}
const UNITTEST_PROJECT: Files = {
  'sums.py': BROKEN,
  'tests/__init__.py': '',
  'tests/test_add.py': `
import unittest
from sums import add

class TestAdd(unittest.TestCase):
    def test_adds(self):
        self.assertEqual(add(1, 2), 3)
    def test_nothing(self):
        self.assertEqual(add(1, 0), 1)
    def test_each(self):
        for n in (0, 5):
            with self.subTest(n=n):
                self.assertEqual(add(n, n), 2 * n)
    @unittest.skip('not yet')
    def test_later(self):
        pass
`,
}

for (const { goal, project } of [
  { goal: 'pytest', project: PYTEST_PROJECT },
  { goal: 'shell: PYTHONPATH=. pytest -q', project: PYTEST_PROJECT },
  { goal: 'auto', project: { ...PYTEST_PROJECT, Makefile: 'test:\n\t@python3 -m pytest -q\n' } },
]) {
  test(`${goal} takes test names from pytest itself`, withPytest, async (t) => {
    const run = await Pursuit.start(await workspace(t, project), goal)
    const first = await run.check()
    assert.equal(first.reason, '2 of 3 tests fail', first.output)
    assert.deepEqual(first.tests, {
      'tests/test_add.py > test_adds': 'fail',
      'tests/test_add.py > TestMany > test_more[0]': 'pass',
      'tests/test_add.py > TestMany > test_more[5]': 'fail',
    })
    if (goal !== 'pytest') return // one whole run is enough
    await put(run.cwd, { 'sums.py': FIXED })
    assert.equal((await run.check()).reason, 'all 3 tests pass')
  })
}

for (const { what, files, link, reason } of [
  {
    what: 'a conftest.py that deselects tests',
    files: { 'conftest.py': 'def pytest_collection_modifyitems(items):\n    del items[0]\n' },
    reason: /^tests changed: conftest.py was added$/,
  },
  {
    what: 'a module that replaces pytest',
    files: { 'pytest.py': 'print("3 passed")\n' },
    reason: /^tests changed: pytest.py was added$/,
  },
  {
    what: 'a report that the module under test forges',
    files: {
      'sums.py': `import os, sys
for folder in sys.path + os.environ.get('PYTHONPATH', '').split(':'):
    if 'runwright-check-' in folder:
        open(folder + '/report-1-1.jsonl', 'w').write('["guess","end"]\\n')
${BROKEN}`,
    },
    reason: /^the report of the test runner was tampered with$/,
  },
  {
    what: 'a test file replaced by a link',
    files: { 'easy.py': 'def test_adds(): pass\n' },
    link: 'tests/test_add.py',
    reason: /^tests changed: tests\/test_add.py was replaced by a link$/,
  },
  {
    what: 'pytest options in pyproject.toml',
    files: { 'pyproject.toml': '[tool.pytest.ini_options]\naddopts = "--co"\n' },
    reason: /^tests changed: pyproject.toml was added$/,
  },
  {
    what: 'a skip mark',
    files: {
      'tests/test_add.py': PYTEST_PROJECT['tests/test_add.py']!.replace(
        'def test_adds',
        '@pytest.mark.skip\ndef test_adds',
      ),
    },
    reason: /^tests changed: tests\/test_add.py was modified$/,
  },
  {
    what: 'os._exit(0) in the module under test',
    files: { 'sums.py': `import os\nos._exit(0)\n${FIXED}` },
    reason: /^the test runner stopped before its report was complete$/,
  },
  {
    what: 'pytest.exit in the module under test',
    files: { 'sums.py': `import pytest\npytest.exit('done', returncode=0)\n${FIXED}` },
    reason: /^1 of 1 tests fail, 3 did not run$/,
  },
  {
    what: 'a skip from the module under test',
    files: { 'sums.py': 'import pytest\ndef add(a, b):\n    pytest.skip("hard")\n' },
    reason: /^tests changed: "tests\/test_add.py > .*" is skipped/,
  },
  {
    what: 'an expected failure',
    files: { 'sums.py': 'import pytest\ndef add(a, b):\n    pytest.xfail("hard")\n' },
    reason: /^tests changed: "tests\/test_add.py > .*" is skipped/,
  },
] as readonly { what: string; files: Files; link?: string; reason: RegExp }[]) {
  test(`pytest is not met by ${what}`, withPytest, async (t) => {
    const run = await Pursuit.start(await workspace(t, PYTEST_PROJECT), 'pytest')
    run.baselineTests = {
      'tests/test_add.py > test_adds': 'fail',
      'tests/test_add.py > TestMany > test_more[0]': 'pass',
      'tests/test_add.py > TestMany > test_more[5]': 'fail',
    }
    await put(run.cwd, files)
    if (link !== undefined) {
      await rm(join(run.cwd, link))
      await symlink('../easy.py', join(run.cwd, link))
    }
    const verdict = await run.check()
    assert.equal(verdict.achieved, false)
    assert.match(verdict.reason, reason, verdict.output)
  })
}

for (const { goal, project, options } of [
  { goal: 'pytest', project: PYTEST_PROJECT, options: withPytest },
  { goal: 'unittest', project: UNITTEST_PROJECT, options: withPython },
]) {
  test(`${goal} never runs a compiled file instead of its source`, options, async (t) => {
    const run = await Pursuit.start(await workspace(t, { ...project, 'sums.py': FIXED }), goal)
    await mkdir(join(run.cwd, '__pycache__'))
    const python = (code: string): string => {
      return execFileSync('python3', ['-c', code], { cwd: run.cwd, encoding: 'utf8' })
    }
    python(`
import importlib.util, marshal, os
source = os.stat('sums.py')
code = compile(${JSON.stringify(BROKEN)}, 'sums.py', 'exec')
times = int(source.st_mtime).to_bytes(4, 'little') + source.st_size.to_bytes(4, 'little')
with open(importlib.util.cache_from_source('sums.py'), 'wb') as file:
    file.write(importlib.util.MAGIC_NUMBER + bytes(4) + times + marshal.dumps(code))
`)
    assert.equal(
      python('import sums; print(sums.add(1, 2))').trim(),
      '-1',
      'Python itself runs the forged file',
    )
    assert.match((await run.check()).reason, /^all 3 tests pass/)
  })
}

test(
  'a module that cannot be loaded is one failure, and must later report its tests',
  withPytest,
  async (t) => {
    const run = await Pursuit.start(
      await workspace(t, { ...PYTEST_PROJECT, 'sums.py': 'def add(\n' }),
      'pytest',
    )
    const first = await run.check()
    assert.deepEqual(
      [first.reason, first.tests],
      ['1 of 1 tests fail', { 'tests/test_add.py': 'fail' }],
    )
    await put(run.cwd, {
      'sums.py': 'import pytest\npytest.skip("hard", allow_module_level=True)\n',
    })
    assert.equal((await run.check()).achieved, false)
    await put(run.cwd, { 'sums.py': FIXED })
    assert.equal((await run.check()).reason, 'all 3 tests pass')
  },
)

test('tests that were collected and never run count as failures', withPytest, async (t) => {
  const run = await Pursuit.start(await workspace(t, PYTEST_PROJECT), 'pytest: -x')
  assert.equal((await run.check()).reason, '3 of 3 tests fail')
})

for (const goal of [
  'unittest',
  'shell: python3 -m unittest discover -s tests -t .',
  'shell: python3 -m unittest tests.test_add',
]) {
  test(`${goal} takes test names from unittest itself`, withPython, async (t) => {
    const run = await Pursuit.start(await workspace(t, UNITTEST_PROJECT), goal)
    const first = await run.check()
    assert.equal(first.reason, '2 of 4 tests fail', first.output)
    assert.deepEqual(first.tests, {
      'tests/test_add.py > TestAdd > test_adds': 'fail',
      'tests/test_add.py > TestAdd > test_each': 'fail',
      'tests/test_add.py > TestAdd > test_later': 'skip',
      'tests/test_add.py > TestAdd > test_nothing': 'pass',
    })
    if (goal !== 'unittest') return // one whole run is enough
    await put(run.cwd, { 'sums.py': FIXED })
    assert.equal((await run.check()).reason, 'all 3 tests pass, 1 skipped as before')
  })
}

for (const { what, files, reason } of [
  {
    what: 'os._exit(0) in the module under test',
    files: { 'sums.py': `import os\nos._exit(0)\n${FIXED}` },
    reason: /^no tests ran under the test runner$/,
  },
  {
    what: 'assertions that the module under test replaces',
    files: {
      'sums.py': `import unittest\nunittest.TestCase.assertEqual = lambda *a, **k: None\n${BROKEN}`,
    },
    reason: /^tests changed: assertions do not fail any more: TestCase.assertEqual/,
  },
  {
    what: 'os._exit(0) in the function under test',
    files: { 'sums.py': 'import os\ndef add(a, b):\n    os._exit(0)\n' },
    reason: /^the test runner stopped before its report was complete$/,
  },
  {
    what: 'sys.exit(0) in the module under test',
    files: { 'sums.py': `import sys\nsys.exit(0)\n${FIXED}` },
    reason: /^1 of 1 tests fail, 2 did not run$|^no tests ran under/,
  },
  {
    what: 'a skip from the module under test',
    files: { 'sums.py': 'import unittest\ndef add(a, b):\n    raise unittest.SkipTest("hard")\n' },
    reason: /^tests changed: "tests\/test_add.py > .*" is skipped/,
  },
]) {
  test(`unittest is not met by ${what}`, withPython, async (t) => {
    const run = await Pursuit.start(await workspace(t, UNITTEST_PROJECT), 'unittest')
    run.baselineTests = {
      'tests/test_add.py > TestAdd > test_adds': 'fail',
      'tests/test_add.py > TestAdd > test_nothing': 'pass',
    }
    await put(run.cwd, files)
    const verdict = await run.check()
    assert.equal(verdict.achieved, false)
    assert.match(verdict.reason, reason, verdict.output)
  })
}

test('unittest reports a module that cannot be imported by its file', withPython, async (t) => {
  const run = await Pursuit.start(
    await workspace(t, { ...UNITTEST_PROJECT, 'sums.py': 'def add(\n' }),
    'unittest',
  )
  assert.deepEqual((await run.check()).tests, { 'tests/test_add.py': 'fail' })
  await put(run.cwd, { 'sums.py': FIXED })
  // Whether that one would have been skipped, the first check could not tell.
  const { assurance, reason } = await run.check()
  assert.match(reason, /^all 3 tests pass, 1 skipped; the first check could not load them/)
  assert.equal(assurance.by, 'exit_code')
})

test("the workspace's own sitecustomize still runs", withPython, async (t) => {
  const run = await Pursuit.start(
    await workspace(t, {
      ...UNITTEST_PROJECT,
      'sums.py': FIXED,
      'site/sitecustomize.py': "import sys\nsys.stderr.write('their own\\n')\n",
    }),
    'shell: PYTHONPATH=site python3 -m unittest',
  )
  const verdict = await run.check()
  assert.match(verdict.output, /^their own$/m)
  assert.equal(verdict.counts?.total, 4)
})

test('the verdict says so when pytest is not installed', withPython, async (t) => {
  const cwd = await workspace(t, PYTEST_PROJECT)
  await mkdir(join(cwd, '.venv/bin'), { recursive: true })
  await writeFile(
    join(cwd, '.venv/bin/python'),
    '#!/bin/sh\necho "python: No module named pytest" >&2\nexit 1\n',
    { mode: 0o755 },
  )
  const run = await Pursuit.start(cwd, 'pytest')
  assert.equal(run.spec.command, './.venv/bin/python -m pytest')
  assert.equal(
    (await run.check()).reason,
    'pytest is not installed for the Python that runs the check',
  )
})

function works(command: string, args: readonly string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
