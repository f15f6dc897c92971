import { pythonPackages } from '../runner-files.js'
import { CANARY_FOLDER } from './canaries.js'
import { PYTHON_FAILURE } from './failed-tests.js'
import { readLines } from './lines.js'
import { PYTHON_CANARIES } from './python-canaries.js'
import { PYTHON_GUARD } from './python-guard.js'
import { PYTHON_WRITER } from './python-writer.js'
import { hasPythonOption, replaces } from './recognise.js'
import type { ReportInjection, ReportPlace, TestRunner } from './types.js'

export const unittest: TestRunner = {
  command: {
    starts: ({ words }) => {
      const python = words.findIndex(({ text }) => /python[0-9.]*$/.test(text))
      const rest = python === -1 ? [] : words.slice(python + 1)
      const isModule = rest.some(
        ({ text }, i) =>
          /-munittest$/.test(text) || (text === 'unittest' && /-m$/.test(rest[i - 1]?.text ?? '')),
      )
      return isModule ? words[python] : undefined
    },
    avoids: (text) => replaces(text, /\bPYTHONPATH=/) || hasPythonOption(text, /[IES]/),
  },
  inject: injectUnittest,
  read: (place) => readLines(place),
  packages: pythonPackages,
}

/**
 * Our hook for unittest: a `sitecustomize` in a private folder of PYTHONPATH, which runs the one
 * that it hides and then waits for `unittest.runner` to be imported. It reports the outermost run
 * of a TextTestRunner, whose result class it extends. Under `python -m unittest` the canaries begin
 * before any code of the workspace is loaded. The module takes itself out of `sys.modules`.
 */
const HOOK = String.raw`
import importlib.util, json, os, sys, time, traceback, types

NONCE = '@NONCE@'
ROOT = @ROOT@
HERE = os.path.dirname(os.path.abspath(__file__))


${PYTHON_WRITER}
${PYTHON_FAILURE}

${PYTHON_CANARIES}

${PYTHON_GUARD}

class _Report(_Writer):
    def __init__(self):
        super().__init__()
        self.outcomes = {}
        self.failures = {}
        self.files = {}

    def end(self):
        for path in self.files:
            self.write('file', path)
        for key, outcome in self.outcomes.items():
            failure = [self.failures[key]] if outcome == 'fail' and key in self.failures else []
            self.write('test', list(key[0]), outcome or 'fail', *failure)
        super().end()

    def note(self, test, outcome, err=None):
        key = self.key(test)
        if key is None:
            return
        if outcome is None:
            number = 1
            while (key, number) in self.outcomes:
                number += 1
            self.outcomes[(key, number)] = None
            return
        number = 1
        while (key, number + 1) in self.outcomes:
            number += 1
        rank = (None, 'pass', 'skip', 'fail')
        if rank.index(outcome) > rank.index(self.outcomes.get((key, number))):
            self.outcomes[(key, number)] = outcome
        if err is not None:
            self.failures.setdefault((key, number), _details(err))

    def key(self, test):
        test = getattr(test, 'test_case', test)
        kind = type(test)
        if kind.__name__ == '_FailedTest' or not hasattr(test, '_testMethodName'):
            description = test.id() if hasattr(test, 'id') else str(test)
            # "setUpClass (tests.test_a.TestA)" or "unittest.loader._FailedTest.tests.test_a"
            module = description[description.find('(') + 1:].rstrip(')')
            module = module.replace('unittest.loader._FailedTest.', '')
            self.files[_file_of(module)] = True
            return None
        module = sys.modules.get(kind.__module__)
        path = getattr(module, '__file__', None)
        place = _relative(path) if path else kind.__module__
        return tuple([place] + kind.__qualname__.split('.') + [getattr(test, '_testMethodName')])


def _details(err):
    try:
        kind, value, trace = err
        message = ''.join(traceback.format_exception_only(kind, value)).strip()
        frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(trace)]
        return _failure(message, frames[::-1])
    except BaseException:
        return []


def _relative(path):
    return os.path.relpath(os.path.realpath(path), ROOT).replace(os.sep, '/')


def _file_of(module):
    parts = module.split('.')
    while parts:
        for base in [os.getcwd()] + [entry for entry in sys.path if entry]:
            for tail in ('.py', os.sep + '__init__.py'):
                candidate = os.path.join(base, *parts) + tail
                if os.path.isfile(candidate):
                    return _relative(candidate)
        parts.pop()
    return module


_state = {'report': None, 'done': False, 'canaries': None}


def _mixed(kind):
    class Reported(kind):
        def startTest(self, test):
            _state['report'] and _state['report'].note(test, None)
            method = getattr(test, getattr(test, '_testMethodName', ''), None)
            if _state['report'] and _home(method):
                _state['canaries'].deed('the function of a test', method)
            super().startTest(test)

        def addSuccess(self, test):
            _state['report'] and _state['report'].note(test, 'pass')
            super().addSuccess(test)

        def addError(self, test, err):
            _state['report'] and _state['report'].note(test, 'fail', err)
            super().addError(test, err)

        def addFailure(self, test, err):
            _state['report'] and _state['report'].note(test, 'fail', err)
            super().addFailure(test, err)

        def addSkip(self, test, reason):
            if _state['report'] and hasattr(test, 'id') and type(test).__name__ != '_ErrorHolder':
                _state['report'].note(test, 'skip')
            super().addSkip(test, reason)

        def addExpectedFailure(self, test, err):
            _state['report'] and _state['report'].note(test, 'skip')
            super().addExpectedFailure(test, err)

        def addUnexpectedSuccess(self, test):
            _state['report'] and _state['report'].note(test, 'fail')
            super().addUnexpectedSuccess(test)

        def addSubTest(self, test, subtest, err):
            if _state['report'] and err is not None:
                _state['report'].note(test, 'fail', err)
            super().addSubTest(test, subtest, err)

    Reported.__name__ = kind.__name__
    Reported.__qualname__ = kind.__qualname__
    return Reported


def _kept(kind):
    return {name: value for name, value in kind.__dict__.items() if callable(value)}


def _patch(runner):
    from unittest import case, suite
    own = [(kind, _kept(kind)) for kind in (case.TestCase, suite.TestSuite)]
    names = [name for name in sys.modules if name.split('.')[0] == 'unittest']
    _kept_modules.append(_Kept(names))

    def patched():
        return any(
            _kept(kind).get(name) is not value
            for kind, kept in own
            for name, value in kept.items()
        )

    def check(canaries):
        canaries.plain(_PLAIN_ASSERT)
        canaries.unittest(case)

    def begin():
        canaries = _Canaries()
        _guard(canaries, lambda: _state['done'])
        return canaries

    arguments = getattr(sys, 'orig_argv', sys.argv)
    first = begin() if '-munittest' in ''.join(arguments[:4]) else None
    make, run = runner.TextTestRunner._makeResult, runner.TextTestRunner.run

    def make_result(self):
        result = make(self)
        if _state['report'] is not None:
            try:
                result.__class__ = _mixed(result.__class__)
            except TypeError:
                pass
        return result

    def reported_run(self, test):
        if _state['report'] is not None or os.environ.get('RUNWRIGHT_REPORTED') == NONCE:
            return run(self, test)
        pieces = os.environ.get('PYTHONPATH', '').split(os.pathsep)
        kept = [piece for piece in pieces if piece and piece != HERE]
        os.environ['PYTHONPATH'] = os.pathsep.join(kept)
        os.environ['RUNWRIGHT_REPORTED'] = NONCE
        report = _state['report'] = _Report()
        _state['done'] = False
        canaries = begin() if first is None or first.ended else first
        _state['canaries'] = canaries
        try:
            check(canaries)
            result = run(self, test)
            check(canaries)
            if patched():
                canaries.broken['unittest itself was patched'] = True
            canaries.end()
            report.end()
            _state['done'] = True
            return result
        finally:
            _state['report'] = None
            os.environ['RUNWRIGHT_REPORTED'] = ''
            os.environ['PYTHONPATH'] = os.pathsep.join([HERE] + kept)

    runner.TextTestRunner._makeResult = make_result
    runner.TextTestRunner.run = reported_run


class _Finder:
    def find_spec(self, name, path=None, target=None):
        if name != 'unittest.runner':
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            _patch(module)

        spec.loader.exec_module = exec_module
        return spec


def _run_hidden():
    from importlib.machinery import PathFinder
    others = [entry for entry in sys.path if os.path.abspath(entry or '.') != HERE]
    spec = PathFinder.find_spec('sitecustomize', others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


sys.meta_path.insert(0, _Finder())
_run_hidden()
# Compiled files of the workspace are neither read nor written: a stale or forged one would run in
# place of its source, tests included.
sys.pycache_prefix = os.path.join(HERE, 'compiled')
sys.modules['sitecustomize'] = types.ModuleType('sitecustomize')
`

function injectUnittest({ folder, nonce, root }: ReportPlace): ReportInjection {
  const hook = HOOK.replaceAll('@NONCE@', nonce).replace('@ROOT@', () => JSON.stringify(root))
  const files = { 'sitecustomize.py': hook, [`${CANARY_FOLDER}/.keep`]: '' }
  return { files, env: { PYTHONPATH: folder } }
}
