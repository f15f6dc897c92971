import { pythonPackages } from '../runner-files.js'
import { CANARY_FOLDER } from './canaries.js'
import { PYTHON_FAILURE } from './failed-tests.js'
import { readLines } from './lines.js'
import { PYTHON_CANARIES } from './python-canaries.js'
import { PYTHON_GUARD } from './python-guard.js'
import { PYTHON_WRITER } from './python-writer.js'
import { hasPythonOption, nameOf, replaces } from './recognise.js'
import type { ReportInjection, ReportPlace, TestRunner } from './types.js'

export const pytest: TestRunner = {
  command: {
    starts: ({ words }) => words.find(({ text }) => /^(?:pytest|py\.test)$/.test(nameOf(text))),
    avoids: (text) =>
      replaces(text, /\b(?:PYTHONPATH|PYTEST_ADDOPTS)=/) || hasPythonOption(text, /[IE]/),
  },
  inject: injectPytest,
  read: (place) => readLines(place),
  packages: pythonPackages,
}

/**
 * Our plugin for pytest, loaded by PYTEST_ADDOPTS and PYTHONPATH, so that it also reaches a pytest
 * behind make, tox or a script. It removes itself from the environment once it is loaded.
 * Tests that were collected and never run (`-x`, `pytest.exit`) count as failed.
 */
const PLUGIN = String.raw`
import json, os, sys, time
import pytest
from _pytest import python as _python, reports as _reports, runner as _runner
from _pytest.assertion import rewrite as _rewrite

NONCE = '@NONCE@'
ROOT = @ROOT@
HERE = os.path.dirname(os.path.abspath(__file__))
_inner = os.environ.get('RUNWRIGHT_REPORTED') == NONCE
os.environ['RUNWRIGHT_REPORTED'] = NONCE


def _without(name, part, separator):
    kept = [piece for piece in os.environ.get(name, '').split(separator) if piece and piece != part]
    if kept:
        os.environ[name] = separator.join(kept)
    else:
        os.environ.pop(name, None)


_without('PYTHONPATH', HERE, os.pathsep)
# Compiled files of the workspace are neither read nor written: a stale or forged one would run in
# place of its source, tests included. Python and pytest themselves are loaded already.
sys.pycache_prefix = os.path.join(HERE, 'compiled')
_options = os.environ.get('PYTEST_ADDOPTS', '')
os.environ['PYTEST_ADDOPTS'] = _options.replace('-p ' + __name__, '').strip()
if not os.environ['PYTEST_ADDOPTS']:
    del os.environ['PYTEST_ADDOPTS']


def _names(nodeid):
    head, bracket, tail = nodeid.partition('[')
    parts = head.split('::')
    parts[-1] += bracket + tail
    return parts if len(parts) > 1 else parts + ['(module)']


${PYTHON_WRITER}
${PYTHON_FAILURE}

def _places(longrepr):
    entries = getattr(getattr(longrepr, 'reprtraceback', None), 'reprentries', [])
    found = [getattr(entry, 'reprfileloc', None) for entry in reversed(entries)]
    found.append(getattr(longrepr, 'reprcrash', None))
    return [(place.path, place.lineno) for place in found if place is not None]


class _Report(_Writer):
    def __init__(self, rootdir):
        super().__init__()
        prefix = os.path.relpath(os.path.realpath(rootdir), ROOT).replace(os.sep, '/')
        self.prefix = '' if prefix == '.' else prefix + '/'
        self.outcomes = {}
        self.failures = {}
        self.files = {}

    def pytest_itemcollected(self, item):
        self.outcomes.setdefault(item.nodeid, None)

    def pytest_deselected(self, items):
        for item in items:
            self.outcomes.pop(item.nodeid, None)

    def pytest_collectreport(self, report):
        if report.failed:
            self.files[(report.nodeid or 'collection').split('::')[0]] = True

    def pytest_runtest_logreport(self, report):
        known = self.outcomes.get(report.nodeid)
        if report.failed:
            now = 'fail'
            crash = getattr(report.longrepr, 'reprcrash', None)
            message = getattr(crash, 'message', None) or report.longrepr or ''
            failure = _failure(message, _places(report.longrepr))
            self.failures.setdefault(report.nodeid, failure)
        elif report.skipped:
            now = 'skip'
        elif report.when == 'call':
            now = 'pass'
        else:
            return
        if known is None or now == 'fail' or known == 'pass':
            self.outcomes[report.nodeid] = now

    def pytest_sessionfinish(self, session, exitstatus):
        for path in self.files:
            self.write('file', self.prefix + path)
        for nodeid, outcome in self.outcomes.items():
            failure = [self.failures[nodeid]] if nodeid in self.failures else []
            self.write('test', _names(self.prefix + nodeid), outcome or 'fail', *failure)
        self.end()


${PYTHON_CANARIES}

${PYTHON_GUARD}

_runner_names = ('_pytest', 'pluggy', 'pytest', 'unittest')
_kept_modules.append(_Kept([name for name in sys.modules if name.split('.')[0] in _runner_names]))
_ASSERT = 'def canary(a, b):\n    assert a == b\n'
_HOOKS = ('pytest_runtest_makereport', 'pytest_pyfunc_call', 'pytest_runtest_call',
          'pytest_runtest_protocol', 'pytest_runtest_logreport', 'pytest_report_teststatus')


def _kept():
    """Functions of pytest that decide whether a test fails."""
    return {
        'Function.runtest': _python.Function.__dict__.get('runtest'),
        'Function.setup': _python.Function.__dict__.get('setup'),
        'runner.call_and_report': getattr(_runner, 'call_and_report', None),
        'runner.runtestprotocol': _runner.runtestprotocol,
        'TestReport.from_item_and_call': _reports.TestReport.__dict__.get('from_item_and_call'),
        'CallInfo.from_call': _runner.CallInfo.__dict__.get('from_call'),
    }


def _place(value):
    """The file that holds a function; '' for one that is not written in Python."""
    value = getattr(value, '__func__', value)
    code = getattr(value, '__code__', None)
    return os.path.realpath(code.co_filename) if code is not None else ''


class _Checks:
    """Runs the canaries in each process that runs tests."""

    def __init__(self, config):
        self.config = config
        canaries = self.canaries = _Canaries()
        _guard(canaries, lambda: canaries.ended)
        self.names = {'raises': pytest.raises, 'fail': pytest.fail, 'approx': pytest.approx}
        self.functions = _kept()
        self.hooks = set(self.implementations())

    def implementations(self):
        for name, hook in list(vars(self.config.hook).items()):
            for one in hook.get_hookimpls() if hasattr(hook, 'get_hookimpls') else ():
                yield (name, one.function)

    def allowed(self, function):
        """Plugins outside the workspace, conftest.py and tests may do as they like."""
        path = _place(function)
        parts = path.split(os.sep)
        name = parts[-1]
        if not path or not os.path.isfile(path):
            return False
        if not path.startswith(ROOT + os.sep) or 'site-packages' in parts:
            return True
        if name == 'conftest.py' or name.startswith('test_') or name.endswith('_test.py'):
            return True
        return not {'test', 'tests', 'testing'}.isdisjoint(parts)

    def check(self, items):
        canaries = self.canaries
        number, other, text, word = canaries.values
        canaries.plain(_PLAIN_ASSERT)
        if not sys.flags.optimize:
            canaries.fails(lambda: self.rewritten()(number, other), 'assert, rewritten by pytest')

        def key_error():
            raise KeyError(text)

        for raises in (self.names['raises'], pytest.raises):
            def nothing():
                with raises(KeyError):
                    pass

            def another():
                with raises(IndexError):
                    key_error()

            def matching():
                with raises(KeyError, match='^' + word):
                    key_error()

            for call in (nothing, another, matching, lambda: raises(KeyError, lambda: None)):
                canaries.fails(call, 'pytest.raises')
        canaries.fails(lambda: self.names['fail'](text), 'pytest.fail')
        canaries.fails(lambda: pytest.fail(text), 'pytest.fail')
        for approx in (self.names['approx'], pytest.approx):
            if number == approx(number + 100):
                canaries.broken['pytest.approx'] = True
        self.report(items, key_error)
        for name, value in _kept().items():
            if value is not self.functions[name] and not self.allowed(value):
                canaries.broken['pytest ' + name] = True
        for name, function in self.implementations():
            if (name, function) in self.hooks:
                continue
            if name in _HOOKS and not self.allowed(function):
                canaries.broken['pytest ' + name] = True
            canaries.deed(name, function)
        self.look(items)
        case = sys.modules.get('unittest.case')
        if case is not None:
            canaries.unittest(case)

    def look(self, items):
        """Notes where the code of tests and fixtures stands."""
        homes = {}
        for item in items:
            for value in vars(item).values():
                function = getattr(value, '__func__', value)
                path = getattr(getattr(function, '__code__', None), 'co_filename', None)
                if path is not None and path not in homes:
                    homes[path] = _home(function)
                if homes.get(path):
                    self.canaries.deed('the function of a test', function)
        manager = getattr(self.config.pluginmanager.get_plugin('session'), '_fixturemanager', None)
        for made in list(getattr(manager, '_arg2fixturedefs', {}).values()):
            for one in made:
                function = getattr(one.func, '__func__', one.func)
                module = sys.modules.get(getattr(function, '__module__', None))
                path = os.path.realpath(getattr(module, '__file__', None) or '')
                is_given = one.baseid is not None or path != _place(function)
                if is_given and _home(function):
                    self.canaries.deed('a fixture', function)

    def rewritten(self, compile=compile, exec=exec):
        import ast
        tree = ast.parse(_ASSERT)
        _rewrite.rewrite_asserts(tree, _ASSERT.encode(), '<canary>', self.config)
        scope = {}
        exec(compile(tree, '<canary>', 'exec'), scope)
        return scope['canary']

    def report(self, items, failing):
        """A failure of a real test, reported as pytest reports any other."""
        item = next((item for item in items if type(item) is _python.Function), None)
        if item is None:
            return
        call = _runner.CallInfo.from_call(failing, 'call')
        if call.excinfo is None:
            self.canaries.broken['pytest CallInfo.from_call'] = True
        elif _reports.TestReport.from_item_and_call(item, call).outcome != 'failed':
            self.canaries.broken['pytest TestReport.from_item_and_call'] = True

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session):
        self.check(session.items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session):
        self.check(session.items if hasattr(session, 'items') else [])
        self.canaries.end()


def pytest_configure(config):
    if _inner:
        return
    # With pytest-xdist, workers run the tests and the first process only collects their reports.
    config.pluginmanager.register(_Checks(config), 'canaries-' + NONCE)
    if not hasattr(config, 'workerinput'):
        config.pluginmanager.register(_Report(str(config.rootdir)), 'report-' + NONCE)
`

function injectPytest({ folder, nonce, root }: ReportPlace): ReportInjection {
  const module = `runwright_report_${nonce}`
  const plugin = PLUGIN.replaceAll('@NONCE@', nonce).replace('@ROOT@', () => JSON.stringify(root))
  return {
    files: { [`${module}.py`]: plugin, [`${CANARY_FOLDER}/.keep`]: '' },
    env: { PYTHONPATH: folder, PYTEST_ADDOPTS: `-p ${module}` },
  }
}
