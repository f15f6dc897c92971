"""
Records in each Python process which lines of a project run, with the limits in `settings.json`,
which `trace.ts` writes into the folder above; the project's own `sitecustomize` runs after it.

1. Python 3.12 and later tell lines by `sys.monitoring`, each once between two boundaries; before
   that a trace function is called for each line of the project, and for no other.
2. Tests begin and end where unittest runs a case and pytest its protocol for an item, fixtures
   and hooks of the case included; unittest cases inside of pytest are pytest's items.
3. When `MAX_SECONDS` were spent at boundaries, or `MAX_TESTS` were told apart, the tests that
   follow are recorded as one.
"""

import importlib.util, json, os, sys, threading, time, types

HERE = os.path.dirname(os.path.abspath(__file__))
_FOLDER = os.path.dirname(HERE)
with open(os.path.join(_FOLDER, 'settings.json'), encoding='utf-8') as _file:
    _SETTINGS = json.load(_file)
_ROOTS = _SETTINGS['ROOTS']
_MAX_BYTES = _SETTINGS['MAX_BYTES']
_MAX_TESTS = _SETTINGS['MAX_TESTS']
_MAX_NANOSECONDS = _SETTINGS['MAX_NANOSECONDS']
_MAX_FILES = 5000


class _Trace:
    """Functions are kept as defaults: tests replace clocks and files."""

    def __init__(self):
        self.lock = threading.RLock()
        self.paths = {}
        self.forget(os.getpid())
        self.spent = 0
        self.depth = 0
        monitoring = getattr(sys, 'monitoring', None)
        self.restart = None
        if monitoring is None or not self.monitor(monitoring):
            self.line = self.settrace()

    def forget(self, pid, now=time.monotonic_ns):
        """Everything that belongs to one process."""
        self.pid = pid
        self.started = now()
        self.fd = None
        self.written = 0
        self.lines = {}
        self.numbers = {}
        self.known = {}
        self.tests = 0
        self.open = None
        self.rest = None

    def path(self, name, abspath=os.path.abspath, realpath=os.path.realpath):
        """The set for the lines of a file of the project; None for any other."""
        if name in self.paths:
            path = self.paths[name]
        else:
            path = None
            if not name.startswith('<'):
                for candidate in (abspath(name), realpath(name)):
                    for root in _ROOTS:
                        if path is None and candidate.startswith(root + os.sep):
                            path = candidate[len(root) + 1:].replace(os.sep, '/')
                if path is not None:
                    parts = path.split('/')
                    if not {'site-packages', 'dist-packages', 'node_modules'}.isdisjoint(parts):
                        path = None
            self.paths[name] = path
        if path is None:
            return None
        lines = self.lines.get(path)
        if lines is None:
            lines = self.lines[path] = set()
        return lines

    def monitor(self, monitoring):
        events = monitoring.events
        tool = next((n for n in (4, 3) if monitoring.get_tool(n) is None), None)
        if tool is None:
            return False
        monitoring.use_tool_id(tool, 'runwright-trace')
        disable = monitoring.DISABLE

        def start(code, offset):
            if self.path(code.co_filename) is not None:
                monitoring.set_local_events(tool, code, events.LINE)
            return disable

        def line(code, number):
            lines = self.path(code.co_filename)
            if lines is not None:
                lines.add(number)
            return disable

        monitoring.register_callback(tool, events.PY_START, start)
        monitoring.register_callback(tool, events.LINE, line)
        monitoring.set_events(tool, events.PY_START)
        self.restart = monitoring.restart_events
        return True

    def settrace(self):
        def local(frame, event, arg):
            if event == 'line':
                lines = self.path(frame.f_code.co_filename)
                if lines is not None:
                    lines.add(frame.f_lineno)
            return local

        # Called for every function of the process.
        outside = set()

        def enter(frame, event, arg):
            name = frame.f_code.co_filename
            if name in outside:
                return None
            if self.path(name) is None:
                outside.add(name)
                return None
            return local

        threading.settrace(enter)
        sys.settrace(enter)
        return enter

    def write(self, *line, dumps=json.dumps, open_file=os.open, write=os.write,
              now=time.monotonic_ns):
        text = dumps(line) + '\n'
        if self.fd is None:
            name = 'trace-%d-%d-0.jsonl' % (now(), self.pid)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
            self.fd = open_file(os.path.join(_FOLDER, name), flags, 0o600)
            header = ['p', self.pid, os.getppid(), 0, self.started, self.entry()]
            text = dumps(header) + '\n' + text
        data = text.encode('utf-8', 'surrogatepass')
        self.written += len(data)
        if self.written <= _MAX_BYTES:
            write(self.fd, data)

    def entry(self):
        arguments = getattr(sys, 'argv', None) or ['']
        name = arguments[0]
        for candidate in (os.path.abspath(name), os.path.realpath(name)):
            for root in _ROOTS:
                if candidate.startswith(root + os.sep):
                    return candidate[len(root) + 1:].replace(os.sep, '/')
        return name

    def take(self, owners):
        """Writes what ran since the last time."""
        ids = []
        for path, lines in list(self.lines.items()):
            if not lines:
                continue
            self.lines[path] = set()
            key = (path, frozenset(lines))
            number = self.known.get(key)
            if number is None:
                if path not in self.numbers:
                    if len(self.numbers) >= _MAX_FILES:
                        continue
                    self.numbers[path] = len(self.numbers)
                    self.write('f', self.numbers[path], path)
                number = self.known[key] = len(self.known)
                self.write('l', number, self.numbers[path], sorted(lines))
            ids.append(number)
        if ids:
            self.write('c', owners, ids)
        if self.restart is not None:
            self.restart()

    def begin(self, name, now=time.monotonic_ns):
        """A key that ends the test, None inside of another one."""
        try:
            if os.getpid() != self.pid:
                self.forget(os.getpid())
            with self.lock:
                at = now()
                if self.open is not None or self.rest is not None:
                    return None
                self.take([])
                index = self.tests
                self.tests += 1
                if self.spent > _MAX_NANOSECONDS or index >= _MAX_TESTS:
                    self.rest = index
                    self.write('t', index, '(other tests)', at)
                    return None
                self.open = index
                self.write('t', index, name, at)
                self.spent += now() - at
                return index
        except Exception:
            return None

    def end(self, key, failed, now=time.monotonic_ns):
        try:
            if key is None or key != self.open:
                return
            with self.lock:
                at = now()
                self.take([key])
                self.open = None
                self.write('e', key, failed, at)
                self.spent += now() - at
        except Exception:
            pass

    def flush(self, code=None, now=time.monotonic_ns):
        try:
            if os.getpid() != self.pid:
                self.forget(os.getpid())
            with self.lock:
                owner = self.rest if self.open is None else self.open
                self.take([] if owner is None else [owner])
                if self.open is not None:
                    self.write('e', self.open, None, now())
                    self.open = None
                if self.fd is not None:
                    self.write('x', code, now())
        except Exception:
            pass


def _relative(path):
    for candidate in (os.path.abspath(path), os.path.realpath(path)):
        for root in _ROOTS:
            if candidate.startswith(root + os.sep):
                return candidate[len(root) + 1:].replace(os.sep, '/')
    return path.replace(os.sep, '/')


def _patch_unittest(case):
    run = case.TestCase.run

    def troubles(result):
        names = ('failures', 'errors', 'unexpectedSuccesses')
        return sum(len(getattr(result, name, None) or ()) for name in names)

    def skips(result):
        return len(getattr(result, 'skipped', None) or ())

    def traced(self, result=None):
        kind = type(self)
        module = sys.modules.get(kind.__module__)
        path = getattr(module, '__file__', None)
        place = _relative(path) if path else kind.__module__
        method = getattr(self, '_testMethodName', '')
        key = _trace.begin(' > '.join([place] + kind.__qualname__.split('.') + [method]))
        before, skipped = troubles(result), skips(result)
        done = False
        try:
            given = run(self, result)
            done = True
            return given
        finally:
            if key is not None:
                seen = result if result is not None else given if done else None
                if not done or seen is None:
                    failed = None
                elif result is None:
                    failed = troubles(seen) > 0
                elif skips(seen) > skipped and troubles(seen) == before:
                    failed = None
                else:
                    failed = troubles(seen) > before
                _trace.end(key, failed)

    traced.__name__, traced.__qualname__ = run.__name__, run.__qualname__
    traced.__doc__ = run.__doc__
    case.TestCase.run = traced


def _patch_pytest(runner):
    protocol = runner.runtestprotocol

    def runtestprotocol(item, log=True, nextitem=None):
        nodeid, bracket, tail = item.nodeid.partition('[')
        parts = nodeid.split('::')
        parts[-1] += bracket + tail
        root = getattr(item.config, 'rootpath', None) or getattr(item.config, 'rootdir', '.')
        parts[0] = _relative(os.path.join(str(root), parts[0]))
        key = _trace.begin(' > '.join(parts))
        failed = None
        try:
            reports = protocol(item, log=log, nextitem=nextitem)
            if any(report.failed for report in reports):
                failed = True
            elif not any(report.skipped for report in reports):
                failed = False
            return reports
        finally:
            _trace.end(key, failed)

    runner.runtestprotocol = runtestprotocol


class _Finder:
    patches = {'unittest.case': _patch_unittest, '_pytest.runner': _patch_pytest}

    def find_spec(self, name, path=None, target=None):
        patch = self.patches.pop(name, None)
        if patch is None:
            return None
        try:
            spec = importlib.util.find_spec(name)
        except Exception:
            return None
        if spec is None or spec.loader is None or not hasattr(spec.loader, 'exec_module'):
            return spec
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            try:
                patch(module)
            except Exception:
                pass

        spec.loader.exec_module = exec_module
        return spec


def _run_hidden():
    """The sitecustomize that this one hides."""
    from importlib.machinery import PathFinder
    others = [entry for entry in sys.path if os.path.abspath(entry or '.') != HERE]
    spec = PathFinder.find_spec('sitecustomize', others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules['sitecustomize'] = module
        spec.loader.exec_module(module)


_started = False
try:
    import atexit
    _trace = _Trace()
    _leave = os._exit

    def _exit(status):
        _trace.flush(status if isinstance(status, int) else None)
        _leave(status)

    os._exit = _exit
    atexit.register(lambda: _trace.flush(1 if hasattr(sys, 'last_type') else None))
    sys.meta_path.insert(0, _Finder())
except Exception:
    pass
sys.modules['sitecustomize'] = types.ModuleType('sitecustomize')
_run_hidden()
