/**
 * Source code that tells who ended a script with code 0, with placeholders that `early-exits.ts`
 * fills in.
 *
 * @module
 */

/**
 * For Node. Every way to end the process passes `process.reallyExit`, except that of a process
 * without work; there, a main module that was not loaded to its end has thrown, and so has any
 * script for which `uncaughtExceptionMonitor` was called: a handler swallowed the error. Listeners
 * for the end may also set another exit code. In the process of a test runner that has no report,
 * such as tape, files of the workspace are watched as in a script.
 */
export const NODE_EXITS: string = String.raw`
'use strict'
const { closeSync, openSync, readFileSync, realpathSync, writeSync } = require('node:fs')
const { relative, resolve } = require('node:path')
const { promiseHooks } = require('node:v8')
const { isMainThread } = require('node:worker_threads')
const HERE = @HERE@
const ROOT = @ROOT@
const NONCE = '@NONCE@'
const { caller, filesOf, isOurs } = require('./places.cjs')
const { apply, defineProperty, getOwnPropertyDescriptor } = Reflect
const { stringify } = JSON
const { delete: remove, forEach, get, set } = Map.prototype
const { get: sizeOf } = getOwnPropertyDescriptor(Map.prototype, 'size')
const { bigint: now } = process.hrtime
/** Each costs some microseconds: what comes later is not watched. */
const MAX_PROMISES = 1000

function real(path) {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

const entry = process.argv[1] === undefined ? '' : real(resolve(process.argv[1]))
const RUNNER = /\/node_modules\/(?:@hapi\/)?(lab|jasmine|pta|qunit|tape|uvu)\//
const runner = RUNNER.exec(entry)?.[1]
if (isMainThread && (isOurs(entry) || runner !== undefined)) watch()

function watch() {
  const rest = (process.env.NODE_OPTIONS ?? '').replace(@OPTIONS@, '').trim()
  if (rest === '') delete process.env.NODE_OPTIONS
  else process.env.NODE_OPTIONS = rest
  const paths = (process.env.PYTHONPATH ?? '').split(':')
  const pieces = paths.filter((piece) => piece && piece !== HERE)
  if (pieces.length > 0) process.env.PYTHONPATH = pieces.join(':')
  else delete process.env.PYTHONPATH
  delete require.cache[__filename]

  require('./assert-lock.cjs')
  const canaries = require('./canaries.cjs').watch(runner === undefined ? entry : null)
  process.on('exit', () => {
    try {
      canaries.assertions()
      canaries.end()
    } catch {
      // Without their end they prove nothing.
    }
  })

  let told = false
  const tell = (file, how) => {
    if (told) return
    told = true
    const path = HERE + '/exits/' + now() + '-' + process.pid + '.jsonl'
    const fd = openSync(path, 'ax', 0o600)
    const by = file === null ? null : relative(ROOT, file)
    const script = runner ?? relative(ROOT, entry)
    writeSync(fd, stringify([NONCE, script, by, how, runner !== undefined]) + '\n')
    closeSync(fd)
  }

  const { emit, exit, listeners, reallyExit } = process
  const replace = (name, value) =>
    defineProperty(process, name, { value, writable: true, configurable: true, enumerable: true })
  replace('reallyExit', function end(code) {
    const by = code ? null : caller(end).file
    if (by !== null && by !== entry) tell(by, 'process.exit(0)')
    return apply(reallyExit, process, [code])
  })

  // Whoever handles failures of the script, and its end; its own file included, null for a library.
  const handlers = []
  const enders = []
  let failed = false
  const note = () => {
    failed = true
  }
  process.on('uncaughtExceptionMonitor', note)
  process.on('newListener', function listener(type) {
    if (type === 'exit' || type === 'beforeExit') enders[enders.length] = caller(listener).file
    if (type !== 'uncaughtException' && type !== 'unhandledRejection') return
    const { file } = caller(listener)
    handlers[handlers.length] = file
    // It is handled from now on, so that a listener of ours changes nothing.
    if (type === 'unhandledRejection' && file !== entry) apply(emit, process, ['newHandler'])
  })
  process.once('newHandler', () => process.prependListener('unhandledRejection', note))

  // Promises of other files that the script itself awaits, and that were not kept yet.
  const makers = new Map()
  const awaited = new Map()
  let left = MAX_PROMISES
  const stopMaking = promiseHooks.onInit((promise, parent) => {
    if (left-- === 0) return stopMaking()
    const { file, first } = caller(null, 12)
    if (parent === undefined) {
      if (file !== null && file !== entry) apply(set, makers, [promise, file])
    } else if (first === entry) {
      const maker = apply(get, makers, [parent])
      if (maker !== undefined) apply(set, awaited, [parent, maker])
    }
  })
  const stopSettling = promiseHooks.onSettled((promise) => {
    apply(remove, makers, [promise])
    apply(remove, awaited, [promise])
    if (left < 0 && apply(sizeOf, awaited, []) === 0) stopSettling()
  })

  replace('emit', function (type, ...rest) {
    const isEnd = type === 'exit'
    const exitNow = process.exit
    // Runners set their exit code by it.
    if (isEnd && runner !== undefined) replace('exit', exit)
    const unfinished = isEnd && awaits()
    const result = apply(emit, process, [type, ...rest])
    if (!isEnd && type !== 'beforeExit') return result
    // After all of the listeners.
    if (process.exitCode) return result
    if (isEnd && runner === undefined && exitNow !== exit) {
      const [by] = filesOf([exitNow])
      if (by && by !== entry) tell(by, 'a process.exit of its own')
    }
    if (rest[0]) blame(enders, 'another exit code')
    else if (isEnd && !caller(null).exits) {
      // The end of a process without work.
      const main = process.mainModule
      if (failed || main?.loaded === false) blame(handlers, 'its failure was swallowed', null)
      apply(forEach, awaited, [(maker) => tell(maker, 'a promise that was never kept')])
      if (unfinished) tell(null, 'its end was never reached')
    }
    return result
  })

  /** Tells of the last of these files, unless the script itself is among them. */
  const blame = (files, how, by) => {
    for (let i = 0; i < files.length; i++) {
      if (files[i] === entry) return
      by = files[i] ?? by
    }
    if (by !== undefined) tell(by, how)
  }

  /** Whether the main module still awaits something: Node's own listener for that is there. */
  const awaits = () => {
    const all = apply(listeners, process, ['exit'])
    for (let i = 0; i < all.length; i++) if (all[i].name === 'handleProcessExit') return true
    return false
  }
}
`

/**
 * For Python. The script is run from an audit hook, where Python would begin it: only there can be
 * seen which frame raised the SystemExit that ends it. Other ways to end the process with code 0
 * are `os._exit` and `os.exec…`, which are watched as well.
 */
export const PYTHON_EXITS: string = String.raw`
import json, os, sys, time

NONCE = '@NONCE@'
ROOT = @ROOT@
HERE = os.path.dirname(os.path.abspath(__file__))
PID = os.getpid()
_state = {'script': None, 'told': False}


def _run_hidden():
    from importlib.machinery import PathFinder
    import importlib.util
    others = [entry for entry in sys.path if os.path.abspath(entry or '.') != HERE]
    spec = PathFinder.find_spec('sitecustomize', others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _ours(path, realpath=os.path.realpath, prefix=ROOT + os.sep):
    """The real path of a file of the workspace; None for any other."""
    if not path or path.startswith('<'):
        return None
    path = realpath(path)
    inside = path.startswith(prefix) and '/site-packages/' not in path
    return path if inside and '/dist-packages/' not in path else None


def _tell(file, how, open_file=os.open, write=os.write, close=os.close, dumps=json.dumps,
          relpath=os.path.relpath, now=time.monotonic_ns, getpid=os.getpid):
    if _state['told'] or getpid() != PID or _state['script'] is None:
        return
    if file is None or file == _state['script']:
        return
    _state['told'] = True
    path = HERE + '/exits/%d-%d.jsonl' % (now(), PID)
    written = open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    line = dumps([NONCE, relpath(_state['script'], ROOT), relpath(file, ROOT), how])
    write(written, (line + '\n').encode())
    close(written)


def _caller(frame):
    """The innermost file of the workspace on the stack."""
    while frame is not None:
        path = _ours(frame.f_code.co_filename)
        if path is not None:
            return path
        frame = frame.f_back
    return None


def _raiser(error):
    """The innermost file of the workspace that the exception passed."""
    found = None
    trace = error.__traceback__
    while trace is not None:
        found = _ours(trace.tb_frame.f_code.co_filename) or found
        trace = trace.tb_next
    return found


def _watch_exit(getframe=sys._getframe, leave=os._exit):
    def _exit(status):
        if status == 0:
            _tell(_caller(getframe(1)), 'os._exit(0)')
        leave(status)

    os._exit = _exit
    sys.modules['posix']._exit = _exit


def _watch_replaced(names=('exit', '_exit', 'quit')):
    """Gives what finds the file of the workspace that put another function in place of an exit."""
    import builtins
    places = [(place, name, getattr(place, name)) for place in (sys, os, builtins)
              for name in names if hasattr(place, name)]

    def replaced(now=getattr):
        for place, name, before in places:
            code = now(now(place, name, None), '__code__', None)
            if now(place, name, None) is not before and code is not None:
                return _ours(code.co_filename)
        return None
    return replaced


def _succeeds(code):
    return code is None or (isinstance(code, int) and code == 0)


def _begin(run):
    """Runs the script in place of Python, which then finds the end that it would have found."""
    pieces = os.environ.get('PYTHONPATH', '').split(os.pathsep)
    kept = [piece for piece in pieces if piece and piece != HERE]
    if kept:
        os.environ['PYTHONPATH'] = os.pathsep.join(kept)
    else:
        os.environ.pop('PYTHONPATH', None)
    option = @OPTIONS@
    rest = os.environ.get('NODE_OPTIONS', '').replace(option, '').strip()
    if rest:
        os.environ['NODE_OPTIONS'] = rest
    else:
        os.environ.pop('NODE_OPTIONS', None)
    if HERE in sys.path:
        sys.path.remove(HERE)
    _watch_exit()
    replaced = _watch_replaced()
    try:
        run()
        _tell(replaced(), 'an exit of its own')
    except SystemExit as error:
        if _succeeds(error.code):
            _tell(_raiser(error), 'sys.exit(0)')
        raise SystemExit(error.code) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and os.path.dirname(trace.tb_frame.f_code.co_filename) == HERE:
            trace = trace.tb_next
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        raise SystemExit(1) from None
    raise SystemExit(0)


def _run_file(path):
    main = sys.modules['__main__']
    with open(path, 'rb') as file:
        code = compile(file.read(), path, 'exec', dont_inherit=True)
    main.__file__ = path
    main.__cached__ = None
    from importlib.machinery import SourceFileLoader
    main.__loader__ = SourceFileLoader('__main__', path)
    exec(code, main.__dict__)


def _hook(event, arguments):
    if event == 'cpython.run_file':
        path = arguments[0]
        script = _ours(path) if isinstance(path, str) and _state['script'] is None else None
        if script is not None and path.endswith('.py') and not sys.flags.interactive:
            _state['script'] = script
            _begin(lambda: _run_file(path))
    elif event == 'os.exec' and _state['script'] is not None:
        _tell(_caller(sys._getframe(1)), 'os.exec')


_run_hidden()
sys.addaudithook(_hook)
`
