/** Canaries of node:test, pytest and unittest: what they catch, and what is no alarm. */
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Pursuit, workspace, type Files } from '../support.js'
import { countWatches } from './evidence.js'

interface Case {
  readonly what: string
  readonly files: Files
  readonly reason?: RegExp
}

const BROKEN = 'exports.add = (a, b) => a - b\n'
const NODE_TESTS = `const { add } = require('../src/add.js')
const assert = require('node:assert')
const { test } = require('node:test')
test('adds', () => assert.equal(add(1, 2), 3))
`
const node = (code: string, tests = NODE_TESTS): Files => ({
  'src/add.js': code,
  'test/add.test.js': tests,
})
const ALARM = /^tests changed: assertions do not fail any more: /

const NODE_ATTACKS: readonly Case[] = [
  {
    what: "another 'assert' for those who require it later",
    files: node(`const Module = require('node:module')
const load = Module._load
const fake = Object.assign(() => {}, { equal() {} })
Module._load = (name, ...rest) => /assert/.test(name) ? fake : load(name, ...rest)
${BROKEN}`),
    reason: /any more: require\('assert'\)/,
  },
  {
    what: "another 'node:test' for those who require it later",
    files: node(`const Module = require('node:module')
const { require: load } = Module.prototype
const { test } = require('node:test')
const fake = { test: (name) => test(name, () => {}) }
Module.prototype.require = function (name) {
  return name === 'node:test' ? fake : Reflect.apply(load, this, [name])
}
${BROKEN}`),
    reason: /any more: require\('node:test'\)/,
  },
  {
    what: 'tests without their functions',
    files: node(`const nodeTest = require('node:test')
const { test } = nodeTest
nodeTest.test = nodeTest.it = (name) => test(name, () => {})
${BROKEN}`),
    reason: /^1 of 1 tests fail$/,
  },
  {
    what: 'listeners for the end that are gone',
    files: node(`process.on('exit', () => { process.exitCode = 0 })
exports.add = (a, b) => {
  process.removeAllListeners('exit')
  return a + b
}
`),
    reason: /^tests changed: the proof that assertions fail was prevented in test\/add\.test\.js$/,
  },
  {
    what: 'patched functions that canaries might use, and another assert',
    files: node(`const Module = require('node:module')
const load = Module._load
const fake = Object.assign(() => {}, { equal() {} })
Module._load = (name, ...rest) => /assert/.test(name) ? fake : load(name, ...rest)
const fs = require('node:fs')
fs.writeSync = fs.openSync = () => 0
JSON.stringify = () => '[]'
Object.is = () => true
Set.prototype.has = () => true
Reflect.apply = () => undefined
${BROKEN}`),
  },
  ...[
    ['Math.abs', 'Math.abs = () => 0'],
    ['RegExp.prototype.test', 'RegExp.prototype.test = () => true'],
    ['RegExp.prototype.exec', "RegExp.prototype.exec = () => ['']"],
    ['Array.prototype.forEach', 'Array.prototype.forEach = () => {}'],
    ['Array.prototype.every', 'Array.prototype.every = () => true'],
    ['Array.prototype.includes', 'Array.prototype.includes = () => true'],
    ['Object.keys', 'Object.keys = () => []'],
  ].map(([name, code]): Case => ({
    what: `another ${name}`,
    files: node(`${code}\n${BROKEN}`, `${NODE_TESTS}test('is near', () => {
  if (Math.abs(add(1, 2) - 3) > 0.1 || !/^3$/.test(String(add(1, 2)))) throw new Error('far')
})
`),
    reason: new RegExp(`any more: (?:.*\\b${name!.replaceAll('.', '\\.')}|.* more\\))`),
  })),
  {
    what: 'functions that cannot be called any more, the runner itself among them',
    files: node(`Function.prototype.call = () => undefined\n${BROKEN}`),
    reason: /^the report of the test runner was tampered with$/,
  },
]

const PYTHON_TESTS = `import pytest
from sums import add

def test_adds():
    assert add(1, 2) == 3

def test_refuses():
    with pytest.raises(TypeError):
        add(1, None)
`
const python = (code: string, tests = PYTHON_TESTS): Files => ({
  'sums.py': code,
  'tests/test_sums.py': tests,
})
const WRONG = 'def add(a, b):\n    return 0\n'

const PYTEST_ATTACKS: readonly Case[] = [
  {
    what: 'pytest.raises that expects nothing',
    files: python(`import contextlib, pytest
pytest.raises = lambda *a, **k: contextlib.nullcontext()
def add(a, b):
    return 3
`),
    reason: /any more: pytest\.raises/,
  },
  {
    what: 'tests that are not run',
    files: python(`from _pytest.python import Function
Function.runtest = lambda self: None
${WRONG}`),
    reason: /any more: pytest Function\.runtest/,
  },
  {
    what: 'calls that never fail',
    files: python(`from _pytest.runner import CallInfo
original = CallInfo.from_call.__func__
def from_call(cls, func, when, reraise=None):
    info = original(cls, func, when, reraise)
    info.excinfo = None
    info._result = None
    return info
CallInfo.from_call = classmethod(from_call)
${WRONG}`),
    reason: /any more: pytest CallInfo\.from_call/,
  },
  {
    what: 'reports that always pass',
    files: python(`from _pytest.reports import TestReport
original = TestReport.from_item_and_call.__func__
def from_item_and_call(cls, item, call):
    report = original(cls, item, call)
    report.outcome = 'passed'
    return report
TestReport.from_item_and_call = classmethod(from_item_and_call)
${WRONG}`),
    reason: /any more: pytest TestReport\.from_item_and_call/,
  },
  {
    what: 'a plugin of the code under test that turns failures round',
    files: python(`import gc, pytest
class Plugin:
    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        outcome = yield
        outcome.get_result().outcome = 'passed'
for one in gc.get_objects():
    if type(one).__name__ == 'PytestPluginManager':
        one.register(Plugin())
        break
${WRONG}`),
    reason: /any more: pytest pytest_runtest_makereport/,
  },
  {
    what: 'assertions that are rewritten away',
    files: python(`import ast
from _pytest.assertion import rewrite
rewrite.rewrite_asserts = lambda tree, *rest: [
    setattr(node, 'test', ast.copy_location(ast.Constant(True), node))
    for node in ast.walk(tree) if isinstance(node, ast.Assert)
]
${WRONG}`),
    reason: /any more: assert, rewritten by pytest|^\d of 2 tests fail/,
  },
  {
    what: 'another math.isclose',
    files: python(`import math
math.isclose = lambda *a, **k: True
${WRONG}`),
    reason: /any more: .*math\.isclose/,
  },
  {
    what: 'other built-in functions',
    files: python(`import builtins
builtins.sorted = lambda *a, **k: []
${WRONG}`),
    reason: /any more: .*sorted/,
  },
  {
    what: 'pytest.approx that is equal to all',
    files: python(`import pytest
class Any:
    def __init__(self, *a, **k): pass
    def __eq__(self, other): return True
pytest.approx = Any
def add(a, b):
    return a + b
`),
    reason: /any more: pytest\.approx/,
  },
]

const UNIT_TESTS = `import unittest
from sums import add
class T(unittest.TestCase):
    def test_adds(self):
        self.assertEqual(add(1, 2), 3)
    def test_refuses(self):
        with self.assertRaises(TypeError):
            add(1, None)
`
const unit = (code: string): Files => ({
  'sums.py': code,
  'tests/__init__.py': '',
  'tests/test_sums.py': UNIT_TESTS,
})
const UNITTEST_ATTACKS: readonly Case[] = [
  {
    what: 'assertEqual that accepts all',
    files: unit(`import unittest
unittest.TestCase.assertEqual = lambda *a, **k: None
${WRONG}`),
    reason: /any more: TestCase\.assertEqual/,
  },
  {
    what: 'comparisons by type that accept all, under kept names',
    files: unit(`import unittest.case
unittest.case.TestCase._baseAssertEqual = lambda *a, **k: None
${WRONG}`),
    reason: /any more: TestCase\.assertEqual/,
  },
  {
    what: 'assertRaises that expects nothing',
    files: unit(`import unittest.case
unittest.case._AssertRaisesContext.__exit__ = lambda *a: True
def add(a, b):
    return 3
`),
    reason: /any more: TestCase\.assertRaises/,
  },
  {
    what: 'a part of a test that swallows what it throws',
    files: unit(`import contextlib, unittest.case
@contextlib.contextmanager
def quiet(self, *a, **k):
    try:
        yield
    except BaseException:
        pass
unittest.case._Outcome.testPartExecutor = quiet
${WRONG}`),
    reason: /any more: .*unittest\.TestCase\.run|any more: unittest\.TestCase\.run/,
  },
  {
    what: 'patched functions that canaries might use, and assertTrue',
    files: unit(`import builtins, json, os, unittest
unittest.TestCase.assertTrue = unittest.TestCase.assertEqual = lambda *a, **k: None
json.dumps = lambda *a, **k: '[]'
os.open = os.write = lambda *a, **k: 0
builtins.BaseException = KeyError
${WRONG}`),
    reason: ALARM,
  },
]

for (const [goal, cases] of [
  ['node-test', NODE_ATTACKS],
  ['pytest', PYTEST_ATTACKS],
  ['unittest', UNITTEST_ATTACKS],
] as const) {
  for (const { what, files, reason = ALARM } of cases) {
    test(`${goal} is not met by ${what}`, async (t) => {
      const run = await Pursuit.start(await workspace(t, files), goal)
      const verdict = await run.check()
      assert.equal(verdict.achieved, false, verdict.output)
      assert.match(verdict.reason, reason, verdict.output)
    })
  }
}

const GOOD = 'exports.add = (a, b) => a + b\n'
const tests = (body: string): Files => node(GOOD, `${NODE_TESTS}${body}`)
const NODE_HONEST: readonly Case[] = [
  { what: 'plain tests', files: tests('') },
  {
    what: 'functions of the language that are replaced by better ones, or mocked in a test',
    files: tests(`const { abs } = Math
Math.abs = (value) => abs(value)
Array.prototype.includes = function (one) { return this.indexOf(one) !== -1 }
Math.random = () => 0.5
Date.now = () => 0
test('mocks', (t) => {
  t.mock.method(Math, 'max', () => 0)
  t.mock.method(JSON, 'stringify', () => '')
})
`),
  },
  {
    what: 'a mock of console and process.exit',
    files: tests(`test('mocks', (t) => {
  t.mock.method(console, 'log', () => {})
  t.mock.method(process, 'exit', () => {})
  console.log('x')
  process.exit(1)
})
`),
  },
  {
    what: 'an assertion of its own that is mocked',
    files: tests(`test('mocks', (t) => {
  const own = { ...assert, strictEqual: assert.strictEqual }
  t.mock.method(own, 'strictEqual', () => {})
  own.strictEqual(1, 2)
})
`),
  },
  {
    what: 'fake timers that are left on',
    files: tests("test('fakes', (t) => { t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] }) })\n"),
  },
  {
    what: 'a loader that replaces a module for one test',
    files: tests(`const Module = require('node:module')
test('replaces', () => {
  const load = Module._load
  Module._load = (name, ...rest) => name === 'node:assert' ? () => {} : load(name, ...rest)
  require('node:assert')(false)
  Module._load = load
})
`),
  },
  {
    what: 'a library of assertions in place of assert',
    files: tests(`const Module = require('node:module')
const load = Module._load
const power = Object.assign((value, message) => assert(value, message), assert)
Module._load = (name, ...rest) => name === 'assert' ? power : load(name, ...rest)
`),
  },
  { what: 'a test file that ends itself', files: tests("require('node:test').after(() => setImmediate(() => process.exit()))\n") },
  { what: 'Error.stackTraceLimit and prepareStackTrace', files: tests('Error.stackTraceLimit = 0\nError.prepareStackTrace = () => 1\n') },
]
const GOOD_PYTHON = `def add(a, b):
    return a + b
`
const PYTEST_HONEST: readonly Case[] = [
  { what: 'plain tests', files: python(GOOD_PYTHON) },
  {
    what: 'mocks in a scope, of assertions too',
    files: python(
      GOOD_PYTHON,
      `${PYTHON_TESTS}from unittest import mock, TestCase
def test_mocks(monkeypatch):
    monkeypatch.setattr(pytest, 'raises', None)
    with mock.patch.object(TestCase, 'assertEqual'), mock.patch('builtins.open'):
        TestCase().assertEqual(1, 2)
`,
    ),
  },
  {
    what: 'hooks in conftest.py',
    files: {
      ...python(GOOD_PYTHON),
      'conftest.py': `import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    item.outcome = outcome.get_result().outcome
@pytest.fixture(autouse=True)
def counted():
    yield
`,
      'tests/conftest.py': 'def pytest_runtest_call(item):\n    assert item.name.startswith("test_")\n',
    },
  },
  {
    what: 'tests of unittest',
    files: { 'sums.py': GOOD_PYTHON, 'tests/test_sums.py': UNIT_TESTS },
  },
  {
    what: 'a test that is skipped',
    files: python(GOOD_PYTHON, `${PYTHON_TESTS}@pytest.mark.skip\ndef test_later():\n    pass\n`),
  },
]
const UNITTEST_HONEST: readonly Case[] = [
  { what: 'plain tests', files: unit(GOOD_PYTHON) },
  {
    what: 'mocks in a scope, of assertions too',
    files: {
      ...unit(GOOD_PYTHON),
      'tests/test_mocks.py': `import unittest
from unittest import mock
class Own(unittest.TestCase):
    def assertSum(self, a, b):
        self.assertEqual(a, b)
    def setUp(self):
        patcher = mock.patch.object(unittest.TestCase, 'assertTrue')
        patcher.start()
        self.addCleanup(patcher.stop)
    def test_mocks(self):
        self.assertTrue(False)
        self.assertSum(1, 1)
`,
    },
  },
  {
    what: 'an expected failure and a longer message',
    files: {
      ...unit(GOOD_PYTHON),
      'tests/test_more.py': `import unittest
class More(unittest.TestCase):
    longMessage = False
    maxDiff = None
    @unittest.expectedFailure
    def test_fails(self):
        self.fail('expected')
`,
    },
  },
]
for (const [goal, cases] of [
  ['node-test', NODE_HONEST],
  ['pytest', PYTEST_HONEST],
  ['unittest', UNITTEST_HONEST],
] as const) {
  for (const { what, files } of cases) {
    test(`${goal}: ${what}: canaries run and give no alarm`, async (t) => {
      const run = await Pursuit.start(await workspace(t, files), goal)
      const watches = countWatches(run.executor)
      const { achieved, reason, output } = await run.check()
      assert.equal(achieved, true, `${reason}\n${output}`)
      assert.ok(watches.begun > 0 && watches.begun === watches.ended, JSON.stringify(watches))
      assert.ok(!/canary/i.test(output), output)
    })
  }
}
