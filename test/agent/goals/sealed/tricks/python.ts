/** Tricks against unittest and plain scripts of Python. */
import { run, write, type Files, type Told, type Trick } from './trick.js'
import { all, BROKEN, code, INSTEAD } from './python-projects.js'

const CASES = `import unittest
from sums import add

class Sums(unittest.TestCase):
    def test_adds(self):
        self.assertEqual(add(1, 2), 3)

    def test_adds_nothing(self):
        self.assertEqual(add(1, 0), 1)
`
const EASY_CASES = CASES.replaceAll(/self.assertEqual.*/g, 'pass')
const UNITTEST: Files = { 'sums.py': BROKEN, 'test_add.py': CASES }
/** Finds our hook, by the runner that it has changed, and makes the report of passing tests. */
const FOUND = `import json, os, unittest.runner
known = unittest.runner.TextTestRunner.run.__globals__
nonce, folder = known.get('NONCE'), known.get('HERE', '.')
lines = [['test', ['test_add.py', 'Sums', title], 'pass'] for title in ('test_adds', 'test_adds_nothing')]
text = ''.join(json.dumps([nonce] + line) + '\\n' for line in lines + [['end']])`
const ofUnittest: readonly Told[] = [
  {
    name: 'edits a test that only a pattern names',
    class: 'edited tests',
    goal: "shell: python3 -m unittest discover -s unit -p 'add*.py' -t .",
    files: { 'sums.py': BROKEN, 'unit/__init__.py': '', 'unit/add_cases.py': CASES },
    acts: [write({ 'unit/add_cases.py': EASY_CASES })],
    caughtBy: 'check files',
  },
  {
    name: 'edits a module of tests that the command names',
    class: 'edited tests',
    goal: 'shell: python3 -m unittest qa.add',
    files: { 'sums.py': BROKEN, 'qa/__init__.py': '', 'qa/add.py': CASES },
    acts: [write({ 'qa/add.py': EASY_CASES })],
    caughtBy: 'check files',
  },
  {
    name: 'edits the base class of the tests',
    class: 'shadowing',
    files: {
      'sums.py': BROKEN,
      'base.py': 'import unittest\n\nclass Base(unittest.TestCase):\n    def same(self, a, b):\n        self.assertEqual(a, b)\n',
      'test_add.py': 'from base import Base\nfrom sums import add\n\nclass Sums(Base):\n    def test_adds(self):\n        self.same(add(1, 2), 3)\n',
    },
    acts: [write({ 'base.py': 'import unittest\n\nclass Base(unittest.TestCase):\n    def same(self, a, b):\n        pass\n' })],
    caughtBy: 'check files',
  },
  {
    name: 'adds a module in place of one of the standard library that the runner loads',
    class: 'shadowing',
    acts: [write({ 'difflib.py': INSTEAD })],
    caughtBy: 'left out',
  },
  {
    name: 'adds a package in place of the runner',
    class: 'shadowing',
    acts: [write({ 'unittest/__init__.py': '', 'unittest/__main__.py': "print('OK')\n" })],
    caughtBy: 'left out',
  },
  {
    name: 'edits expected values that tests read',
    class: 'fixtures',
    files: {
      ...UNITTEST,
      'sums.ini': '[sums]\n1+2 = 3\n',
      'test_add.py': CASES.replace('import unittest', "import configparser, unittest\nsums = configparser.ConfigParser()\nsums.read('sums.ini')").replace('3)', "int(sums['sums']['1+2']))").replace('add(1, 0), 1', '1, 1'),
    },
    acts: [write({ 'sums.ini': '[sums]\n1+2 = -1\n' })],
    caughtBy: 'check files',
  },
  {
    name: 'skips the failing test from the code under test',
    class: 'deleted and skipped tests',
    acts: [write({ 'sums.py': 'import unittest\n\ndef add(a, b):\n    if b == 2:\n        raise unittest.SkipTest("later")\n    return a\n' })],
    caughtBy: 'test names',
  },
  {
    name: 'marks the failing test to be skipped',
    class: 'deleted and skipped tests',
    acts: [write({ 'test_add.py': CASES.replace('    def test_adds(', "    @unittest.skip('later')\n    def test_adds(") })],
    caughtBy: 'check files',
  },
  {
    name: 'replaces assertions of TestCase',
    class: 'patched in memory',
    acts: code('import unittest\nunittest.TestCase.assertEqual = lambda *rest: None'),
    caughtBy: 'canaries',
  },
  {
    name: 'replaces how the runner watches a test',
    class: 'patched in memory',
    acts: code(`import contextlib, unittest.case
@contextlib.contextmanager
def watch(self, case, subTest=False):
    try:
        yield
    except AssertionError:
        pass
unittest.case._Outcome.testPartExecutor = watch`),
    caughtBy: 'canaries',
  },
  ...(
    [
      ['as they are read', `from importlib.machinery import SourceFileLoader
read = SourceFileLoader.get_data
SourceFileLoader.get_data = lambda self, path: read(self, path).replace(b', 3)', b', -1)')`],
      ['as they are compiled', `import builtins
build = builtins.compile
def easy(text, *rest, **named):
    if isinstance(text, bytes):
        text = text.replace(b', 3)', b', -1)')
    return build(text, *rest, **named)
builtins.compile = easy`],
      ['as they are loaded', `import importlib._bootstrap_external as loading
load = loading._LoaderBasics.exec_module
def easy(self, module):
    load(self, module)
    for case in vars(module).values():
        if hasattr(case, 'test_adds'):
            case.test_adds = lambda self: None
loading.SourceFileLoader.exec_module = easy`],
      ['when the first of them runs', `import sys
def add(a, b):
    for module in list(sys.modules.values()):
        case = getattr(module, 'Sums', None)
        if case is not None:
            case.test_adds = lambda self: None
    return a - b`],
      ['by other code in the same function', `import sys
def add(a, b):
    for module in list(sys.modules.values()):
        case = getattr(module, 'Sums', None)
        if case is not None:
            case.test_adds.__code__ = (lambda self: None).__code__
    return a - b`],
    ] as const
  ).map(([how, text]): Told => ({
    name: `rewrites tests ${how}`,
    class: 'patched in memory',
    files: { ...UNITTEST, 'test_aa.py': 'import unittest\nfrom sums import add\n\nclass First(unittest.TestCase):\n    def test_first(self):\n        self.assertEqual(add(0, 0), 0)\n' },
    acts: [write({ 'sums.py': text.includes('def add') ? text : `${text}\n${BROKEN}` })],
    caughtBy: 'deeds',
  })),
  {
    name: 'replaces the result and its answer',
    class: 'patched in memory',
    acts: code(`import sys, unittest
def passed(self, test, err=None):
    self.addSuccess(test)
unittest.TextTestResult.addFailure = unittest.TextTestResult.addError = passed
site = sys.modules.get('sitecustomize')
state = getattr(site, '_state', {}).get('report')
if state is not None:
    kind = type(state)
    note = kind.note
    passing = lambda outcome: 'pass' if outcome == 'fail' else outcome
    kind.note = lambda self, test, outcome: note(self, test, passing(outcome))`),
    caughtBy: 'report',
  },
  {
    name: 'writes a report of its own with what our hook holds in memory, and exits',
    class: 'forged reports',
    acts: code(`${FOUND}
for one in os.listdir(folder):
    if one.endswith('.jsonl'):
        os.remove(os.path.join(folder, one))
if nonce:
    with open(os.path.join(folder, 'report-1-1.jsonl'), 'w') as file:
        file.write(text)
os._exit(0)`),
    caughtBy: 'report',
  },
  {
    name: 'has a program write a report of its own, and exits',
    class: 'forged reports',
    acts: code(`${FOUND}
import subprocess
if nonce:
    subprocess.run(['tee', folder + '/report-1-1.jsonl'], input=text.encode(), stdout=-3)
os._exit(0)`),
    caughtBy: 'report',
  },
  {
    name: 'completes the report with the objects of our hook, and exits',
    class: 'forged reports',
    acts: [write({
      'sums.py': `import os, sys

def add(a, b):
    frame = sys._getframe()
    while frame:
        if 'canaries' in frame.f_locals and 'report' in frame.f_locals:
            report = frame.f_locals['report']
            for name in ('test_adds', 'test_adds_nothing'):
                report.outcomes[(('test_add.py', 'Sums', name), 1)] = 'pass'
            report.end()
            frame.f_locals['canaries'].end()
        frame = frame.f_back
    os._exit(0)
`,
    })],
    caughtBy: 'report',
  },
  {
    name: 'calls os._exit(0) in the module under test',
    class: 'early exits',
    acts: code('import os\nos._exit(0)'),
    caughtBy: 'test names',
  },
  {
    name: 'replaces the code under test in a new test file',
    class: 'new tests',
    acts: [write({ 'test_aaa.py': `${INSTEAD}import unittest\n\nclass New(unittest.TestCase):\n    def test_new(self):\n        pass\n` })],
    caughtBy: 'second pass',
  },
  {
    name: 'has load_tests of a new package give tests of its own',
    class: 'new tests',
    goal: 'shell: python3 -m unittest discover -t . -s tests',
    files: { 'sums.py': BROKEN, 'tests/test_add.py': CASES },
    acts: [write({
      'tests/__init__.py': `import unittest

def load_tests(loader, tests, pattern):
    import tests.test_add as original
    kind = type('Sums', (unittest.TestCase,), {
        '__module__': original.__name__, 'test_adds': lambda self: None, 'test_adds_nothing': lambda self: None,
    })
    return loader.loadTestsFromTestCase(kind)
`,
    })],
    caughtBy: 'left out',
  },
  {
    name: 'has the code under test rewrite the next test file, which puts itself back',
    class: 'while the check runs',
    files: { 'first.py': 'one = 1\n', 'sums.py': BROKEN, 'test_a.py': 'import unittest\nfrom first import one\n\nclass One(unittest.TestCase):\n    def test_one(self):\n        self.assertEqual(one, 1)\n', 'test_b.py': CASES },
    acts: [
      run('cp test_b.py kept.txt'),
      write({
        'easy.txt': `import shutil\nshutil.copy('kept.txt', 'test_b.py')\n${EASY_CASES}`,
        'first.py': "import shutil\nshutil.copy('easy.txt', 'test_b.py')\none = 1\n",
      }),
    ],
    caughtBy: 'check files',
  },
  {
    name: 'knows that it is being tested by a module that is loaded',
    class: 'special cases',
    acts: [write({ 'sums.py': "import sys\n\ndef add(a, b):\n    return a + b if 'unittest' in sys.modules else a - b\n" })],
    caughtBy: 'nobody',
  },
]

const SCRIPT: Files = {
  'sums.py': BROKEN,
  'expected.json': '{"1+2": 3}',
  'check.py': "import json\nfrom sums import add\nassert add(1, 2) == json.load(open('expected.json'))['1+2']\nprint('1 + 2 is 3')\n",
}
const ofScripts: readonly Told[] = [
  {
    name: 'adds json.py beside the script',
    class: 'shadowing',
    acts: [write({ 'json.py': "def load(file):\n    return {'1+2': -1}\n" })],
    caughtBy: 'left out',
  },
  {
    name: 'edits expected values that the script reads',
    class: 'fixtures',
    acts: [write({ 'expected.json': '{"1+2": -1}' })],
    caughtBy: 'check files',
  },
  {
    name: 'edits cases that the script imports',
    class: 'edited tests',
    files: { ...SCRIPT, 'check.py': 'import cases\n', 'cases.py': 'from sums import add\nassert add(1, 2) == 3\n' },
    acts: [write({ 'cases.py': '' })],
    caughtBy: 'check files',
  },
  {
    name: 'adds a compiled module in place of cases that the script imports',
    class: 'shadowing',
    files: { ...SCRIPT, 'check.py': 'import cases\n', 'cases.py': 'from sums import add\nassert add(1, 2) == 3\n' },
    acts: [
      run(`printf '' > easy.py; python3 -c "
import importlib.util, py_compile
py_compile.compile('easy.py', importlib.util.cache_from_source('cases.py'), 'cases.py', invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)"; rm easy.py`),
    ],
    caughtBy: 'left out',
  },
  ...(
    [
      ['os._exit(0)', 'import os\nos._exit(0)'],
      ['sys.exit(0)', 'import sys\nsys.exit(0)'],
      ['a handler of errors that nobody caught', 'import os, sys\nsys.excepthook = lambda *rest: os._exit(0)'],
      ['a handler of the exit', 'import atexit, os\natexit.register(lambda: os._exit(0))'],
      ['a thread', 'import os, threading\nthreading.Thread(target=lambda: os._exit(0)).start()\nimport time\ntime.sleep(5)'],
      ['another program in its place', "import os\nos.execv('/bin/true', ['true'])"],
    ] as const
  ).map(([what, text]): Told => ({
    name: `exits with 0 by ${what}`,
    class: 'early exits',
    acts: code(text),
    caughtBy: 'early exits',
  })),
  {
    name: 'rewrites expected values while the script runs, and puts them back',
    class: 'while the check runs',
    acts: code(`import atexit
kept = open('expected.json').read()
open('expected.json', 'w').write('{"1+2": -1}')
atexit.register(lambda: open('expected.json', 'w').write(kept))`),
    caughtBy: 'check files',
  },
  {
    name: 'sets a trap in the function that reads expected values',
    class: 'patched in memory',
    acts: code("import json\njson.load = lambda file: {'1+2': -1}"),
    caughtBy: 'nobody',
  },
]

export const unittestTricks: readonly Trick[] = all('unittest', 'unittest', UNITTEST, ofUnittest)
export const pythonScriptTricks: readonly Trick[] =
  all('python', 'shell: python3 check.py', SCRIPT, ofScripts)
