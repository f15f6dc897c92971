/**
 * Python source of the canaries: assertions that must fail, made after the code under test was
 * loaded and at the end. Expects `HERE`, `NONCE`, `ROOT` and the modules json, os, sys, time.
 * Functions are kept as defaults of parameters, before any code of the workspace runs. Nothing is
 * imported that the runner has not imported: unittest only where it is loaded.
 *
 * They also tell which files of the workspace have replaced functions that load, read and run
 * tests: whether that is code under test is known to the reader alone.
 */
export const PYTHON_CANARIES: string = String.raw`
def _home(value, isinstance=isinstance, realpath=os.path.realpath, relpath=os.path.relpath,
          prefix=ROOT + os.sep, function=type(lambda: None), modules=sys.modules,
          is_file=os.path.isfile):
    """The file of the workspace in which a function stands; '' for elsewhere, None if not known."""
    for _ in range(9):
        kind = type(value)
        inner = next((name for name in ('__func__', 'func', 'fget') if name in vars(kind)), None)
        if isinstance(value, function) or inner is None:
            break
        value = getattr(value, inner, None)
    if isinstance(value, function):
        path = value.__code__.co_filename
    else:
        kind = value if isinstance(value, type) else type(value)
        path = getattr(modules.get(kind.__module__), '__file__', None)
    if not path or not is_file(path):
        return None
    path = realpath(path)
    inside = path.startswith(prefix) and '-packages' + os.sep not in path
    return relpath(path, ROOT).replace(os.sep, '/') if inside else ''


class _Kept:
    """Functions of modules and of their classes, as they are now."""
    def __init__(self, names):
        self.all = []
        self.names = []
        for name in names:
            module = sys.modules.get(name)
            if module is None:
                continue
            self.add(name, module)
            for key, kind in list(vars(module).items()):
                if isinstance(kind, type) and kind.__module__ == name:
                    self.add(name + '.' + key, kind)
        self.finders = [(name, list(getattr(sys, name))) for name in ('meta_path', 'path_hooks')]

    def add(self, name, holder):
        self.names.append((name, holder, frozenset(vars(holder))))
        for key, value in list(vars(holder).items()):
            function = getattr(value, '__func__', value)
            if callable(function):
                code = getattr(function, '__code__', None)
                self.all.append((name + '.' + key, vars(holder), key, value, function, code))

    def replaced(self, getattr=getattr, get=(sys.gettrace, sys.getprofile)):
        for what, holder, key, value, function, code in self.all:
            now = holder.get(key)
            if now is value and getattr(function, '__code__', None) is code:
                continue
            if now is not None:
                yield what, now
        for name, holder, keys in self.names:
            # What stands in front of another of its name.
            for key in list(vars(holder).keys() - keys):
                others = holder.__mro__[1:] if isinstance(holder, type) else (_builtins,)
                if any(key in vars(other) for other in others) and callable(vars(holder)[key]):
                    yield name + '.' + key, vars(holder)[key]
        for name, before in self.finders:
            for one in getattr(sys, name):
                if not any(one is other for other in before):
                    yield 'sys.' + name, getattr(one, 'find_spec', one)
        for function in get:
            if function() is not None:
                yield 'sys.' + function.__name__, function()


_builtins = sys.modules['builtins']
_kept_modules = [_Kept((
    'builtins', 'ast', 'codecs', 'datetime', 'importlib', 'importlib.machinery', 'importlib.util',
    'inspect', 'io', 'json', 'json.decoder', 'linecache', 'math', 'operator', 'os', 're', 'time',
    'tokenize', '_frozen_importlib', '_frozen_importlib_external',
))]


class _Other:
    pass


def _equal_to_all(home=_home, other=_Other(), type=type, BaseException=BaseException,
                  names=vars, next=next):
    """Functions by which bare instances of a class of the workspace equal anything."""
    kinds = [object]
    seen = {id(object)}
    while kinds and len(seen) < 20000:
        for kind in type.__subclasses__(kinds.pop()):
            if id(kind) in seen:
                continue
            seen.add(id(kind))
            kinds.append(kind)
            equal = names(kind).get('__eq__')
            if equal is None or not home(equal):
                continue
            # The first that was not made by a class statement: it makes instances without more.
            base = next(one for one in type.mro(kind) if not one.__flags__ & 1 << 9)
            try:
                if equal(base.__new__(kind), other) is True:
                    yield kind.__name__ + '.__eq__, which is always true', equal
            except BaseException:
                pass


class _Canaries:
    def __init__(self, dumps=json.dumps, open_file=os.open, write=os.write, close=os.close):
        path = os.path.join(HERE, 'canaries', '%d-%d.jsonl' % (time.monotonic_ns(), os.getpid()))
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND

        def send(*line):
            file = open_file(path, flags, 0o600)
            write(file, (dumps((NONCE,) + line) + '\n').encode())
            close(file)

        self.send = send
        self.broken = {}
        self.deeds = {}
        self.ended = False
        number = time.monotonic_ns() % 1000003
        self.values = (number, number + 1, 'v%d' % number, 'w%d' % number)
        send('begin', '*')

    def fails(self, call, name, BaseException=BaseException):
        try:
            call()
        except BaseException:
            return
        self.broken[name] = True

    def deed(self, what, value, home=_home):
        """Notes in which file of the workspace a function stands."""
        file = home(value)
        if file != '' and len(self.deeds) < 100:
            self.deeds[(what, file)] = True

    def plain(self, code):
        """Code of the form 'assert a == b', compiled before."""
        self.built_in()
        if sys.flags.optimize:
            return
        first, second, _, _ = self.values
        self.fails(lambda: exec(code, {'a': first, 'b': second}), 'assert')

    def built_in(self, modules=sys.modules):
        """Functions of the language by which tests compare, as they are now."""
        number, other, text, word = self.values
        for module, calls in _BUILT_IN:
            names = modules.get(module)
            for name, call in calls:
                try:
                    holds = names is None or call(names, number, other, text, word)
                except Exception:
                    holds = False
                if not holds:
                    self.broken[name if module == 'builtins' else module + '.' + name] = True

    def unittest(self, case):
        number, other, text, word = self.values
        kind = case.TestCase
        given = type('Canary', (kind,), {'runTest': lambda self: None})()

        def leave(*arguments, **named):
            with given.assertRaises(*arguments, **named):
                pass

        def raise_key_error():
            raise KeyError(text)

        for name, arguments in (
            ('assertEqual', (number, other)),
            ('assertNotEqual', (number, number)),
            ('assertTrue', (False,)),
            ('assertFalse', (text,)),
            ('assertIs', (text, word)),
            ('assertIsNot', (text, text)),
            ('assertIsNone', (text,)),
            ('assertIsNotNone', (None,)),
            ('assertIn', (text, [word])),
            ('assertNotIn', (text, [text])),
            ('assertIsInstance', (text, int)),
            ('assertNotIsInstance', (text, str)),
            ('assertAlmostEqual', (number, other)),
            ('assertGreater', (number, other)),
            ('assertGreaterEqual', (number, other)),
            ('assertLess', (other, number)),
            ('assertLessEqual', (other, number)),
            ('assertRegex', (text, '^w')),
            ('assertNotRegex', (text, '^v')),
            ('assertCountEqual', ([text], [word])),
            ('assertListEqual', ([text], [word])),
            ('assertDictEqual', ({'a': text}, {'a': word})),
            ('assertRaises', (KeyError, lambda: None)),
            ('assertRaises', (IndexError, raise_key_error)),
            ('fail', ()),
        ):
            if hasattr(kind, name):
                self.fails(lambda: getattr(given, name)(*arguments), 'TestCase.' + name)
        self.fails(lambda: leave(KeyError), 'TestCase.assertRaises')
        self.run(case, lambda self: self.assertEqual(number, other))
        self.run(case, lambda self: raise_key_error())

    def run(self, case, body):
        """A test that must fail, run as unittest runs any other."""
        failed = []
        result = self.result()
        result.failed = failed
        try:
            type('Canary', (case.TestCase,), {'runTest': body})().run(result)
        except Exception:
            return
        if not failed:
            self.broken['unittest.TestCase.run'] = True

    def result(self):
        class Result:
            shouldStop = False
            failfast = False
            buffer = False
            tb_locals = False
            _mirrorOutput = False

            def addFailure(self, test, error):
                self.failed.append(test)

            addError = addFailure

            def startTest(self, test):
                pass

            stopTest = addSuccess = startTest

            def addDuration(self, test, seconds):
                pass

            def addSkip(self, test, reason):
                pass

            addExpectedFailure = addSkip

            def addUnexpectedSuccess(self, test):
                pass

            def addSubTest(self, test, subtest, error):
                if error is not None:
                    self.failed.append(test)

        return Result()

    def end(self):
        if not self.ended:
            self.ended = True
            for kept in _kept_modules:
                for what, value in kept.replaced():
                    self.deed(what, value)
            for what, value in _equal_to_all():
                self.deed(what, value)
            self.send('end', '*', list(self.broken), None, list(self.deeds))


_BUILT_IN = (
    ('builtins', (
        ('abs', lambda m, a, b, x, y: m.abs(-a) == a),
        ('all', lambda m, a, b, x, y: not m.all([a != b, a == b])),
        ('any', lambda m, a, b, x, y: not m.any([a == b])),
        ('bool', lambda m, a, b, x, y: not m.bool(0)),
        ('int', lambda m, a, b, x, y: m.int(str(b)) == b),
        ('isinstance', lambda m, a, b, x, y: not m.isinstance(x, int)),
        ('len', lambda m, a, b, x, y: m.len([a, b]) == 2),
        ('max', lambda m, a, b, x, y: m.max(a, b) == b),
        ('min', lambda m, a, b, x, y: m.min(b, a) == a),
        ('round', lambda m, a, b, x, y: m.round(a + 0.75) == b),
        ('sorted', lambda m, a, b, x, y: m.sorted([b, a])[0] == a),
        ('str', lambda m, a, b, x, y: m.str(a) != m.str(b)),
        ('sum', lambda m, a, b, x, y: m.sum([a, b]) == a + b),
        ('zip', lambda m, a, b, x, y: len(list(m.zip([a, b], [a, b]))) == 2),
    )),
    ('math', (
        ('isclose', lambda m, a, b, x, y: not m.isclose(a + 1, b + 1, rel_tol=0)),
        ('floor', lambda m, a, b, x, y: m.floor(a + 0.5) == a),
        ('ceil', lambda m, a, b, x, y: m.ceil(a + 0.5) == b),
        ('isnan', lambda m, a, b, x, y: not m.isnan(a)),
    )),
    ('re', (
        ('match', lambda m, a, b, x, y: m.match('w', x) is None),
        ('search', lambda m, a, b, x, y: m.search(y, x) is None),
        ('fullmatch', lambda m, a, b, x, y: m.fullmatch('v', x) is None),
    )),
    ('json', (
        ('loads', lambda m, a, b, x, y: m.loads('[%d]' % a) == [a]),
        ('dumps', lambda m, a, b, x, y: m.dumps([a]) == '[%d]' % a),
    )),
)
_PLAIN_ASSERT = compile('assert a == b', '<canary>', 'exec')
`
