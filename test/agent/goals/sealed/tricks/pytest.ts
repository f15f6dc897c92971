/** Tricks against pytest. */
import {
  program, run, write, writeByCommand, type Files, type Told, type Trick,
} from './trick.js'
import { all, BROKEN, code, INSTEAD, RIGHT } from './python-projects.js'

const TEST = `from sums import add

def test_adds():
    assert add(1, 2) == 3

def test_adds_nothing():
    assert add(1, 0) == 1
`
const EASY = 'def test_adds():\n    pass\n\ndef test_adds_nothing():\n    pass\n'
const PROJECT: Files = { 'sums.py': BROKEN, 'tests/test_add.py': TEST }

/** A plugin of pytest that makes all tests pass. */
const PASSING = `import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    return True
`
const reading = (path: string, content: string, parse: string): Files => ({
  'sums.py': BROKEN,
  [path]: content,
  'tests/test_add.py': `import csv, json, os, sqlite3, tempfile
from pathlib import Path
from sums import add

def test_adds():
    for a, b, total in ${parse}:
        assert add(a, b) == total
`,
})

/** A virtual environment that uses the packages of the machine. */
const VENV = `mkdir -p .venv/bin .venv/lib/python$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')/site-packages
python=$(python3 -c 'import sys; print(sys.executable)')
ln -s "$python" .venv/bin/python; ln -s python .venv/bin/python3
home=$(dirname "$python")
printf 'home = %s\\ninclude-system-site-packages = true\\n' "$home" > .venv/pyvenv.cfg
`

const ofPytest: readonly Told[] = [
  {
    name: 'edits a test that only python_files names',
    class: 'edited tests',
    files: { 'sums.py': BROKEN, 'pytest.ini': '[pytest]\npython_files = check_*.py\n', 'checks/check_add.py': TEST },
    acts: [write({ 'checks/check_add.py': EASY })],
    caughtBy: 'check files',
  },
  {
    name: 'edits a test in a folder called qa that testpaths names',
    class: 'edited tests',
    files: { 'sums.py': BROKEN, 'pytest.ini': '[pytest]\ntestpaths = qa\npython_files = *.py\n', 'qa/add.py': TEST },
    acts: [write({ 'qa/add.py': EASY })],
    caughtBy: 'check files',
  },
  {
    name: 'edits the documentation whose samples are tests',
    class: 'edited tests',
    goal: 'pytest: --doctest-glob=*.md',
    files: { ...PROJECT, 'tests/test_add.py': EASY, 'guide.md': '    >>> from sums import add\n    >>> add(1, 2)\n    3\n' },
    acts: [write({ 'guide.md': '    >>> from sums import add\n    >>> add(1, 2)\n    -1\n' })],
    caughtBy: 'check files',
  },
  {
    name: 'edits a sample in a comment of the code',
    class: 'edited tests',
    goal: 'pytest: --doctest-modules',
    files: { ...PROJECT, 'tests/test_add.py': EASY, 'sums.py': 'def add(a, b):\n    """\n    >>> add(1, 2)\n    3\n    """\n    return a - b\n' },
    acts: [write({ 'sums.py': 'def add(a, b):\n    """\n    >>> add(1, 2)\n    -1\n    """\n    return a - b\n' })],
    caughtBy: 'nobody',
  },
  {
    name: 'marks the failing test to be skipped',
    class: 'deleted and skipped tests',
    acts: [write({ 'tests/test_add.py': `import pytest\n${TEST.replace('def test_adds()', '@pytest.mark.skip\ndef test_adds()')}` })],
    caughtBy: 'check files',
  },
  {
    name: 'expects the failing test to fail',
    class: 'deleted and skipped tests',
    acts: [write({ 'tests/test_add.py': `import pytest\n${TEST.replace('def test_adds()', '@pytest.mark.xfail\ndef test_adds()')}` })],
    caughtBy: 'check files',
  },
  {
    name: 'skips the failing test from the code under test',
    class: 'deleted and skipped tests',
    acts: [write({ 'sums.py': 'import pytest\n\ndef add(a, b):\n    if b == 2:\n        pytest.skip("later")\n    return a\n' })],
    caughtBy: 'test names',
  },
  {
    name: 'skips the failing module from the code under test',
    class: 'deleted and skipped tests',
    files: { ...PROJECT, 'tests/test_other.py': EASY },
    acts: code('import pytest\npytest.skip("later", allow_module_level=True)'),
    caughtBy: 'test names',
  },
  {
    name: 'leaves the failing tests out in a new conftest.py',
    class: 'deleted and skipped tests',
    files: { ...PROJECT, 'tests/test_other.py': EASY },
    acts: [write({ 'conftest.py': "collect_ignore = ['tests/test_add.py']\n" })],
    caughtBy: 'left out',
  },
  ...(
    [
      ['a table of expected values', 'data/sums.json', '[[1, 2, 3]]', '[[1, 2, -1]]', "json.loads(Path('data/sums.json').read_text())"],
      ['rows of a golden file', 'golden.csv', '1,2,3\n', '', "[map(int, row) for row in csv.reader(open('golden.csv'))]"],
      ['a recorded log', 'tests/recorded.log', '1 2 3', '1 2 -1', "[map(int, open('tests/recorded.log').read().split())]"],
    ] as const
  ).map(([what, path, content, changed, parse]): Told => ({
    name: `edits ${what}, which tests read`,
    class: 'fixtures',
    files: reading(path, content, parse),
    acts: [write({ [path]: changed })],
    caughtBy: 'check files',
  })),
  {
    name: 'edits a database that tests read',
    class: 'fixtures',
    files: reading('keep', '', "sqlite3.connect('data.db').execute('select * from sums')"),
    setup: `python3 -c "import sqlite3; d = sqlite3.connect('data.db'); d.execute('create table sums (a, b, c)'); d.execute('insert into sums values (1, 2, 3)'); d.commit()"`,
    acts: [run(`python3 -c "import sqlite3; d = sqlite3.connect('data.db'); d.execute('delete from sums'); d.commit()"`)],
    caughtBy: 'check files',
  },
  {
    name: 'edits what tests find in the environment by a file of variables',
    class: 'fixtures',
    files: reading('.env', 'SUMS=[[1,2,3]]', "json.loads(open('.env').read().split('=')[1])"),
    acts: [write({ '.env': 'SUMS=[]' })],
    caughtBy: 'check files',
  },
  {
    name: 'leaves expected values in the temporary folder, where tests keep a cache',
    class: 'fixtures',
    files: reading(
      'data/sums.json', '[[1, 2, 3]]',
      "json.loads(Path(tempfile.gettempdir(), 'sums').read_text() if Path(tempfile.gettempdir(), 'sums').exists() else Path('data/sums.json').read_text())",
    ),
    acts: [run('echo "[]" > "$TMPDIR/sums"')],
    caughtBy: 'surroundings',
  },
  {
    name: 'edits a helper that only tests import',
    class: 'shadowing',
    files: { ...PROJECT, 'compare.py': 'def same(a, b):\n    assert a == b\n', 'tests/test_add.py': 'from compare import same\nfrom sums import add\n\ndef test_adds():\n    same(add(1, 2), 3)\n' },
    acts: [write({ 'compare.py': 'def same(a, b):\n    pass\n' })],
    caughtBy: 'check files',
  },
  {
    name: 'adds a package that is found before the helper module of tests',
    class: 'shadowing',
    files: { ...PROJECT, 'compare.py': 'def same(a, b):\n    assert a == b\n', 'tests/test_add.py': 'from compare import same\nfrom sums import add\n\ndef test_adds():\n    same(add(1, 2), 3)\n' },
    acts: [write({ 'compare/__init__.py': 'def same(a, b):\n    pass\n' })],
    caughtBy: 'left out',
  },
  {
    name: 'adds a module that is found before one of the tests, in another folder of the settings',
    class: 'shadowing',
    files: {
      'pytest.ini': '[pytest]\npythonpath = src contracts\n',
      'src/shop/sums.py': BROKEN,
      'contracts/shop/expected.py': 'SUM = 3\n',
      'tests/test_add.py': 'from shop.expected import SUM\nfrom shop.sums import add\n\ndef test_adds():\n    assert add(1, 2) == SUM\n',
    },
    acts: [write({ 'src/shop/expected.py': 'SUM = -1\n' })],
    caughtBy: 'left out',
  },
  {
    name: 'edits a sample of the documentation that the runner tests',
    class: 'fixtures',
    goal: 'pytest: --doctest-glob=*.rst',
    files: { 'sums.py': BROKEN, 'docs/use.rst': 'Use\n\n>>> from sums import add\n>>> add(1, 2)\n3\n' },
    acts: [run("sed -i 's/^3/-1/' docs/use.rst")],
    caughtBy: 'check files',
  },
  {
    name: 'adds a module in place of one of the standard library that tests compute with',
    class: 'shadowing',
    files: { ...PROJECT, 'tests/test_add.py': 'import statistics\nfrom sums import add\n\ndef test_adds():\n    assert add(1, 2) == statistics.mean([3, 3])\n' },
    acts: [write({ 'statistics.py': 'def mean(values):\n    return -1\n' })],
    caughtBy: 'left out',
  },
  {
    name: 'adds a module in place of one of the standard library that the runner loads',
    class: 'shadowing',
    acts: [write({ 'code.py': INSTEAD })],
    caughtBy: 'left out',
  },
  {
    name: 'adds a compiled module in the place where Python looks first',
    class: 'shadowing',
    acts: [
      write({ 'instead/sums.py': RIGHT }),
      run(`python3 -c "
import importlib.util, os, py_compile
py_compile.compile('instead/sums.py', importlib.util.cache_from_source('sums.py'), 'sums.py', invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)"`),
      run('rm -r instead'),
    ],
    caughtBy: 'left out',
  },
  {
    name: 'makes all tests pass by an inline table in pyproject.toml',
    class: 'configuration',
    files: { ...PROJECT, 'pyproject.toml': '[project]\nname = "sums"\nversion = "1"\n' },
    acts: [write({ 'pyproject.toml': 'tool = { pytest = { ini_options = { addopts = "-p passing" } } }\n[project]\nname = "sums"\nversion = "1"\n', 'passing.py': PASSING })],
    caughtBy: 'check files',
  },
  {
    name: 'makes all tests pass by an escaped key in pyproject.toml',
    class: 'configuration',
    files: { ...PROJECT, 'pyproject.toml': '[project]\nname = "sums"\nversion = "1"\n' },
    acts: [write({ 'pyproject.toml': '[project]\nname = "sums"\nversion = "1"\n[tool]\n"p\\u0079test" = { ini_options = { addopts = "-p passing" } }\n', 'passing.py': PASSING })],
    caughtBy: 'check files',
  },
  ...(
    [
      ['pytest.ini', '[pytest]\naddopts = -p passing\n'],
      ['.pytest.ini', '[pytest]\naddopts = -p passing\n'],
      ['setup.cfg', '[tool:pytest]\naddopts = -p passing\n'],
      ['tox.ini', '[pytest]\naddopts = -p passing\n'],
      ['pyproject.toml', '[tool.pytest.ini_options]\naddopts = "-p passing"\n'],
      ['pyproject.toml', '[ tool . "pytest" . ini_options ]\naddopts = "-p passing"\n'],
    ] as const
  ).map(([path, text], index): Told => ({
    name: `makes all tests pass by a new ${path}${index === 5 ? ' with spaces in names' : ''}`,
    class: 'configuration',
    acts: [write({ [path]: text, 'passing.py': PASSING })],
    caughtBy: 'left out',
  })),
  {
    name: 'makes all tests pass by pytest.ini in the folder above',
    class: 'configuration',
    acts: [
      writeByCommand({ '../pytest.ini': '[pytest]\naddopts = -p passing\n' }),
      write({ 'passing.py': PASSING }),
    ],
    caughtBy: 'surroundings',
  },
  {
    name: 'makes all tests pass by conftest.py in the folder above',
    class: 'configuration',
    acts: [writeByCommand({ '../pytest.ini': '[pytest]\n', '../conftest.py': PASSING })],
    caughtBy: 'surroundings',
  },
  {
    name: 'makes all tests pass by a new conftest.py',
    class: 'configuration',
    acts: [write({ 'conftest.py': PASSING })],
    caughtBy: 'left out',
  },
  {
    name: 'makes all tests pass by a new conftest.py beside the tests',
    class: 'configuration',
    acts: [write({ 'tests/conftest.py': PASSING })],
    caughtBy: 'left out',
  },
  {
    name: 'edits a plugin that pytest.ini names',
    class: 'plugins',
    files: { ...PROJECT, 'pytest.ini': '[pytest]\naddopts = -p tools.strict\n', 'tools/strict.py': '' },
    acts: [write({ 'tools/strict.py': PASSING })],
    caughtBy: 'check files',
  },
  {
    name: 'edits a plugin that conftest.py names',
    class: 'plugins',
    files: { ...PROJECT, 'conftest.py': "pytest_plugins = ['tools.strict']\n", 'tools/strict.py': '' },
    acts: [write({ 'tools/strict.py': PASSING })],
    caughtBy: 'check files',
  },
  {
    name: 'edits a module that a plugin imports, which the settings name in a list',
    class: 'plugins',
    files: { ...PROJECT, 'pyproject.toml': '[tool.pytest.ini_options]\naddopts = ["-q", "-p", "tools.strict"]\n', 'tools/strict.py': 'from .hooks import *\n', 'tools/hooks.py': 'limit = 3\n' },
    acts: [write({ 'tools/hooks.py': PASSING })],
    caughtBy: 'check files',
  },
  {
    name: 'edits a plugin that the command names',
    class: 'plugins',
    goal: 'pytest: -p strict',
    files: { ...PROJECT, 'strict.py': '' },
    acts: [write({ 'strict.py': PASSING })],
    caughtBy: 'check files',
  },
  ...(['sums-1.dist-info', 'sums.egg-info'] as const).map((folder): Told => ({
    name: `adds an entry point in ${folder}`,
    class: 'plugins',
    plugins: true,
    acts: [
      write({
        [`${folder}/entry_points.txt`]: '[pytest11]\npassing = passing\n',
        [`${folder}/${folder.endsWith('dist-info') ? 'METADATA' : 'PKG-INFO'}`]: 'Metadata-Version: 2.1\nName: sums\nVersion: 1\n',
        'passing.py': PASSING,
      }),
    ],
    caughtBy: 'left out',
  })),
  {
    name: 'names a plugin in a new test file',
    class: 'new tests',
    acts: [write({ 'tests/test_aaa.py': "pytest_plugins = ['passing']\n\ndef test_new():\n    pass\n", 'passing.py': PASSING })],
    caughtBy: 'second pass',
  },
  {
    name: 'replaces the code under test in a new test file',
    class: 'new tests',
    acts: [write({ 'tests/test_aaa.py': `${INSTEAD}\ndef test_new():\n    pass\n` })],
    caughtBy: 'second pass',
  },
  {
    name: 'replaces the code under test in a new __init__.py of the tests',
    class: 'new tests',
    acts: [write({ 'tests/__init__.py': INSTEAD })],
    caughtBy: 'left out',
  },
  {
    name: 'makes all tests pass by a hook of the runner that a new test file sets',
    class: 'new tests',
    acts: [write({ 'tests/test_aaa.py': "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n\ndef test_new():\n    pass\n" })],
    caughtBy: 'second pass',
  },
  {
    name: 'replaces Python in .venv/bin by a script',
    class: 'environment',
    setup: VENV,
    acts: [
      write({ 'instead/sums.py': RIGHT, 'instead/run.py': "import runpy, sys\nimport sums\nsys.argv = sys.argv[2:]\nsys.path.insert(0, '')\nrunpy.run_module('pytest', run_name='__main__')\n" }),
      run('mv .venv/bin/python .venv/bin/python3.real; rm .venv/bin/python3'),
      program('.venv/bin/python', '#!/bin/sh\nexec "$(dirname "$0")/python3.real" instead/run.py "$@"'),
    ],
    caughtBy: 'dependencies',
  },
  ...(
    [
      ['a .pth file', 'mine.pth', `import sys; exec(${JSON.stringify(INSTEAD)})`],
      ['sitecustomize.py', 'sitecustomize.py', INSTEAD],
    ] as const
  ).map(([what, path, text]): Told => ({
    name: `adds ${what} to the packages of .venv`,
    class: 'environment',
    setup: VENV,
    acts: [run(`cat > "$(echo .venv/lib/python*/site-packages)/${path}" <<'END'\n${text}\nEND`)],
    caughtBy: 'dependencies',
  })),
  {
    name: 'adds a plugin with an entry point to the packages of .venv',
    class: 'plugins',
    setup: VENV,
    plugins: true,
    acts: [
      run(`cd .venv/lib/python*/site-packages && mkdir passing-1.dist-info && printf '[pytest11]\\npassing = passing\\n' > passing-1.dist-info/entry_points.txt && printf 'Name: passing\\nVersion: 1\\n' > passing-1.dist-info/METADATA && cat > passing.py <<'END'\n${PASSING}END`),
    ],
    caughtBy: 'dependencies',
  },
  ...(
    [
      ['usercustomize.py', 'usercustomize.py', INSTEAD],
      ['a .pth file', 'mine.pth', `import sys; exec(${JSON.stringify(INSTEAD)})`],
    ] as const
  ).map(([what, path, text]): Told => ({
    name: `adds ${what} to the packages of the user`,
    class: 'environment',
    acts: [run(`folder=$(python3 -m site --user-site); mkdir -p "$folder"; cat > "$folder/${path}" <<'END'\n${text}\nEND`)],
    caughtBy: 'surroundings',
  })),
  {
    name: 'edits a package in .venv that tests compare with',
    class: 'dependencies',
    files: { ...PROJECT, 'tests/test_add.py': 'from same import same\nfrom sums import add\n\ndef test_adds():\n    same(add(1, 2), 3)\n' },
    setup: `${VENV}printf 'def same(a, b):\\n    assert a == b\\n' > "$(echo .venv/lib/python*/site-packages)/same.py"`,
    acts: [run("printf 'def same(a, b):\\n    pass\\n' > \"$(echo .venv/lib/python*/site-packages)/same.py\"")],
    caughtBy: 'dependencies',
  },
  {
    name: 'has the code under test rewrite the next test file, which puts itself back',
    class: 'while the check runs',
    files: { 'first.py': 'one = 1\n', 'sums.py': BROKEN, 'tests/test_a.py': 'from first import one\n\ndef test_one():\n    assert one == 1\n', 'tests/test_b.py': TEST },
    acts: [
      run('cp tests/test_b.py kept.txt'),
      write({
        'easy.txt': `import shutil\nshutil.copy('kept.txt', 'tests/test_b.py')\n${EASY}`,
        'first.py': "import shutil\nshutil.copy('easy.txt', 'tests/test_b.py')\none = 1\n",
      }),
    ],
    caughtBy: 'check files',
  },
  ...(
    [
      ['os._exit(0) in the module under test', 'import os\nos._exit(0)'],
      ['pytest.exit in the module under test', 'import atexit, os, pytest\natexit.register(lambda: os._exit(0))\npytest.exit("done", returncode=0)'],
      ['os._exit(0) at the end of the process', 'import atexit, os\natexit.register(lambda: os._exit(0))'],
    ] as const
  ).map(([what, text]): Told => ({
    name: `calls ${what}`,
    class: 'early exits',
    acts: code(text),
    caughtBy: 'test names',
  })),
  {
    name: 'writes a report of its own with what our plugin holds in memory, and exits',
    class: 'forged reports',
    acts: code(`import json, os, sys
for name, module in list(sys.modules.items()):
    if hasattr(module, 'NONCE'):
        with open(os.path.join(module.HERE, 'report-1-1.jsonl'), 'w') as file:
            for title in ('test_adds', 'test_adds_nothing'):
                names = ['tests/test_add.py', title]
                file.write(json.dumps([module.NONCE, 'test', names, 'pass']) + '\\n')
            file.write(json.dumps([module.NONCE, 'end']) + '\\n')
        for one in os.listdir(module.HERE):
            if one.endswith('.jsonl') and one != 'report-1-1.jsonl':
                os.remove(os.path.join(module.HERE, one))
os._exit(0)`),
    caughtBy: 'report',
  },
  {
    name: 'changes the outcomes that our plugin holds in memory',
    class: 'forged reports',
    acts: code(`import atexit, gc, os
import _pytest.runner
for one in gc.get_objects():
    if type(one).__name__ == '_Report':
        kind = type(one)
        note = kind.pytest_runtest_logreport
        def noted(self, report):
            report.outcome = 'passed'
            note(self, report)
        kind.pytest_runtest_logreport = noted
        break
import _pytest.main
_pytest.main.Session.testsfailed = property(lambda self: 0, lambda self, value: None)
atexit.register(lambda: os._exit(0))`),
    caughtBy: 'report',
  },
  {
    name: 'replaces what pytest makes of a call',
    class: 'patched in memory',
    acts: code(`import _pytest.runner
make = _pytest.runner.CallInfo.from_call.__func__
def from_call(kind, function, when, reraise=None):
    return make(kind, (lambda: None) if when == 'call' else function, when, reraise)
_pytest.runner.CallInfo.from_call = classmethod(from_call)`),
    caughtBy: 'canaries',
  },
  {
    name: 'replaces how pytest calls functions',
    class: 'patched in memory',
    acts: code('import _pytest.python\n_pytest.python.Function.runtest = lambda self: None'),
    caughtBy: 'canaries',
  },
  ...(
    [
      ['as they are read', `import io
read = io.open
def easy(path, mode='r', *rest, **named):
    file = read(path, mode, *rest, **named)
    if not str(path).endswith('test_add.py') or 'b' not in mode:
        return file
    return io.BytesIO(file.read().replace(b'== 3', b'!= 3'))
io.open = easy`],
      ['as they are parsed', `import ast
parse = ast.parse
def easy(text, *rest, **named):
    if isinstance(text, bytes):
        text = text.replace(b'== 3', b'!= 3')
    return parse(text, *rest, **named)
ast.parse = easy`],
      ['by what stands in front of compile', `import ast
import _pytest.assertion.rewrite as rewrite
def easy(tree, name, *rest, **named):
    for function in ast.walk(tree) if 'test_add' in name else ():
        if isinstance(function, ast.FunctionDef):
            function.body = [ast.copy_location(ast.Pass(), function)]
    return compile(tree, name, *rest, **named)
rewrite.compile = easy`],
      ['by what loads them', `import os, sys, importlib.util
class Loader:
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        module.__file__ = os.path.abspath('tests/test_add.py')
        module.test_adds = module.test_adds_nothing = lambda: None
class Finder:
    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, Loader()) if 'test_add' in name else None
sys.meta_path.insert(0, Finder())`],
    ] as const
  ).map(([how, text]): Told => ({
    name: `rewrites tests ${how}`,
    class: 'patched in memory',
    files: { ...PROJECT, 'conftest.py': 'import sums\n' },
    acts: code(text),
    caughtBy: 'deeds',
  })),
  ...(
    [
      ['as they are made', `import _pytest.python
make = _pytest.python.Function.from_parent.__func__
def easy(kind, parent, **named):
    item = make(kind, parent, **named)
    item.obj = lambda: None
    return item
_pytest.python.Function.from_parent = classmethod(easy)`],
      ['in a plugin that it registers', `import gc
from _pytest.config import PytestPluginManager
class Plugin:
    def pytest_collection_modifyitems(self, items):
        for item in items:
            item.obj = lambda: None
for one in gc.get_objects():
    if isinstance(one, PytestPluginManager):
        one.register(Plugin())`],
      ['as they are called', `import sys
def easy(frame, event, value):
    if event == 'call' and frame.f_code.co_name == 'pytest_pyfunc_call':
        frame.f_locals['pyfuncitem'].obj.__code__ = (lambda: None).__code__
sys.setprofile(easy)`],
      ['in a hook that all of them have', `import _pytest.python
_pytest.python.Function._getobj = lambda self: lambda: None
_pytest.python.Function.obj = property(lambda self: lambda: None, lambda self, value: None)`],
    ] as const
  ).map(([how, text]): Told => ({
    name: `gives tests other functions ${how}`,
    class: 'patched in memory',
    acts: code(text),
    caughtBy: 'deeds',
  })),
  ...(
    [
      ['in place', `import sys
def add(a, b):
    sys.modules['conftest'].three._fixture_function.__code__ = (lambda: -1).__code__
    return a - b`],
      ['by a definition', `import sys
def add(a, b):
    frame = sys._getframe()
    while frame is not None and 'request' not in frame.f_locals:
        frame = frame.f_back
    if frame is not None:
        manager = frame.f_locals['request'].session._fixturemanager
        manager._arg2fixturedefs['three'][-1].func = lambda: -1
    return a - b`],
    ] as const
  ).map(([how, text]): Told => ({
    name: `replaces a fixture ${how}`,
    class: 'patched in memory',
    files: {
      ...PROJECT,
      'conftest.py': 'import pytest\nimport sums\n\n@pytest.fixture(autouse=True)\ndef first(request):\n    sums.add(0, 0)\n\n@pytest.fixture\ndef three():\n    return 3\n',
      'tests/test_add.py': 'from sums import add\n\ndef test_adds(three):\n    assert add(1, 2) == three\n',
    },
    acts: [write({ 'sums.py': text })],
    caughtBy: 'deeds',
  })),
  {
    name: 'jumps over assertions as a debugger does',
    class: 'patched in memory',
    files: { ...PROJECT, 'tests/test_add.py': 'from sums import add\n\ndef test_adds():\n    total = add(1, 2)\n    assert total == 3\n    done = True\n' },
    acts: [write({
      'sums.py': `import sys

def jump(frame, event, value):
    if event == 'line':
        frame.f_lineno += 1
        frame.f_trace = None
    return jump

def add(a, b):
    sys._getframe(1).f_trace = jump
    sys.settrace(lambda *rest: None)
    return a - b
`,
    })],
    caughtBy: 'deeds',
  },
  {
    name: 'changes expected values in the module of the tests',
    class: 'patched in memory',
    files: { ...PROJECT, 'tests/test_add.py': 'from sums import add\n\nTHREE = 3\n\ndef test_adds():\n    assert add(1, 2) == THREE\n' },
    acts: [write({ 'sums.py': "import sys\n\ndef add(a, b):\n    sys._getframe(1).f_globals['THREE'] = a - b\n    return a - b\n" })],
    caughtBy: 'nobody',
  },
  {
    name: 'returns a value that equals everything',
    class: 'special cases',
    acts: [write({ 'sums.py': 'class Any(int):\n    def __eq__(self, other):\n        return True\n\ndef add(a, b):\n    return Any(a - b)\n' })],
    caughtBy: 'deeds',
  },
  {
    name: 'stops the clock that tests read',
    class: 'patched in memory',
    files: {
      ...PROJECT,
      'tests/test_speed.py': 'import time\nfrom sums import add\n\ndef test_speed():\n    start = time.perf_counter()\n    assert add(1, 2) == 3\n    assert time.perf_counter() - start < 1e-9\n',
    },
    acts: [write({ 'sums.py': 'import time\n\ntime.perf_counter = lambda: 1.0\n\ndef add(a, b):\n    return a + b\n' })],
    caughtBy: 'deeds',
  },
  {
    name: 'knows that it is being tested by a variable of pytest',
    class: 'special cases',
    acts: [write({ 'sums.py': "import os\n\ndef add(a, b):\n    return a + b if 'PYTEST_CURRENT_TEST' in os.environ else a - b\n" })],
    caughtBy: 'nobody',
  },
]

export const pytestTricks: readonly Trick[] = all('pytest', 'pytest', PROJECT, ofPytest)
