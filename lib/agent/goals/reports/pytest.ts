import { pythonPackages } from '../runner-files.js'
import { readLines } from './lines.js'
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

class _Report(_Writer):
    def __init__(self, rootdir):
        super().__init__()
        prefix = os.path.relpath(os.path.realpath(rootdir), ROOT).replace(os.sep, '/')
        self.prefix = '' if prefix == '.' else prefix + '/'
        self.outcomes = {}
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
            self.write('test', _names(self.prefix + nodeid), outcome or 'fail')
        self.end()


def pytest_configure(config):
    if not _inner and not hasattr(config, 'workerinput'):
        config.pluginmanager.register(_Report(str(config.rootdir)), 'report-' + NONCE)
`

function injectPytest({ folder, nonce, root }: ReportPlace): ReportInjection {
  const module = `runwright_report_${nonce}`
  const plugin = PLUGIN.replaceAll('@NONCE@', nonce).replace('@ROOT@', () => JSON.stringify(root))
  return {
    files: { [`${module}.py`]: plugin },
    env: { PYTHONPATH: folder, PYTEST_ADDOPTS: `-p ${module}` },
  }
}
