/**
 * Tells `recorder.cjs` when tests begin and end, by what each runner has for that. A runner that is not known here, or not in this form, runs as ever, and what a process
 * runs is recorded as one.
 *
 * - node:test: its class of tests is met when it makes the first of them, which is an asynchronous
 *   resource.
 * - Jest: the module that runs a test file is met when it is loaded.
 * - Others: loaded or imported here too, in the runner's processes or scripts of the project alone,
 *   so both get the same module.
 */
'use strict'
const { createHook } = require('node:async_hooks')
const Module = require('node:module')
const { existsSync, readFileSync } = require('node:fs')
const { dirname, join } = require('node:path')
const { pathToFileURL } = require('node:url')
const { createRequire } = Module
const { apply, construct, defineProperty, getPrototypeOf } = Reflect

exports.hook = (trace) => {
  const { main } = trace
  const runner = /[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?([^\\/]+)[\\/]/.exec(main)?.[1] ?? ''
  const isNodeTest = process.env.NODE_TEST_CONTEXT !== undefined
  if (isNodeTest || runner === '' || runner === 'tsx') hookNodeTest(trace)
  watchLoaders(trace)
  const imported = (hook) => trace.later(() => void hook(trace).catch(() => {}))
  if (runner === 'jest' || /^jest-/.test(runner)) {
    hookScripts(trace, () => {})
    hookJest(trace)
  } else if (runner === 'vitest' || runner === 'tinypool') {
    let isHooked = false
    hookScripts(trace, () => {
      // Its module throws, for ever, when it is loaded before Vitest has set itself up.
      if (isHooked || globalThis.__vitest_worker__ === undefined) return
      isHooked = true
      void hookVitest(trace).catch(() => {})
    })
  } else if (runner === 'mocha') imported(hookMocha)
  else if (runner === 'ava') imported(hookAva)
  else if (trace.isOurs(main) || runner in REQUIRED) hookRequired(trace)
}

/** Modules of runners that are no ES modules, and what to do with them when they are loaded. */
const REQUIRED = {
  tape: ['lib/test.js', tape],
  jasmine: ['lib/jasmine.js', jasmine],
  uvu: ['dist/index.js', uvu],
}

/** Loads them before the runner does: a test file may be run as a script. */
function hookRequired(trace) {
  const { resolve } = createRequire(trace.main)
  for (const name in REQUIRED) {
    const [file, patch] = REQUIRED[name]
    try {
      const root = packageOf(resolve(name), name)
      const module = join(root, file)
      patch(trace, require(module), require.cache[module])
    } catch {
      // Not installed, or another version: as one.
    }
  }
}

/** Titles of a test and the suites around it; the outermost of its parents has none. */
function titlesOf(test) {
  const titles = []
  for (let at = test; at?.parent != null; at = at.parent) titles.unshift(at.name)
  return titles
}

function hookNodeTest(trace) {
  const hook = createHook({
    init(id, type, trigger, resource) {
      if (type !== 'Test') return
      hook.disable()
      try {
        patchNodeTest(trace, getPrototypeOf(resource))
      } catch {
        // Another version: as one.
      }
    },
  })
  hook.enable()
}

function patchNodeTest(trace, proto) {
  // The root, and what stands for a file in the process that starts them all, are no tests.
  const isTest = (test) => {
    return test.parent != null && !['FileTest', 'Suite', 'TestHook'].includes(test.constructor.name)
  }
  // These are set when a test begins, when it is done, and when its outcome is known. A method
  // around its own would be on the stack of every error.
  onSet(proto, 'startTime', (test, time) => {
    if (time === null || !isTest(test)) return
    trace.begin(test, trace.nameOf(main(trace, test), titlesOf(test)), test.parent)
  })
  const closed = new WeakMap()
  onSet(proto, 'endTime', (test, time) => {
    if (time !== null && isTest(test)) closed.set(test, trace.close(test) ?? closed.get(test))
  })
  onSet(proto, 'finished', (test, is) => {
    if (!is || !closed.has(test)) return
    const failed = test.passed === false && !test.isTodo
    trace.settle(closed.get(test), test.skipped ? null : failed)
  })
}

/** Calls a function when a field of an object is set. */
function onSet(proto, name, notice) {
  const symbol = Symbol(name)
  defineProperty(proto, name, {
    configurable: true,
    get() {
      return this[symbol]
    },
    set(value) {
      defineProperty(this, symbol, { value, writable: true, configurable: true })
      notice(this, value)
    },
  })
}

/** The file of a test: where several are run by one process, the test itself has to know. */
const main = (trace, test) => (trace.main === '' ? (test.loc?.file ?? '') : trace.main)

/**
 * Loaders that change code hand it to one method of modules. Where there is none, no frame of ours
 * is on the stack.
 */
function watchLoaders(trace) {
  const { prototype: proto, _extensions: loaders } = Module
  const { _compile: compile } = proto
  let catches = false
  const catchTexts = () => {
    if (catches) return
    catches = true
    proto._compile = function (text, path, ...rest) {
      if (typeof text === 'string' && trace.isOurs(path)) trace.made(path, text)
      return apply(compile, this, [text, path, ...rest])
    }
  }
  for (const name of ['.js', '.ts', '.jsx', '.tsx']) {
    let loader = loaders[name]
    const define = (isThere) => {
      defineProperty(loaders, name, {
        configurable: true,
        enumerable: isThere,
        get: () => loader,
        set(value) {
          loader = value
          catchTexts()
          define(true)
        },
      })
    }
    define(loader !== undefined)
  }
}

/** Jest and Vitest compile what they load as scripts. */
function hookScripts(trace, notice) {
  const vm = require('node:vm')
  const { Script, runInThisContext, compileFunction } = vm
  const note = (text, options) => {
    try {
      notice()
      const path = typeof options === 'string' ? options : options?.filename
      if (typeof path !== 'string' || typeof text !== 'string') return
      const file = path.startsWith('file:') ? require('node:url').fileURLToPath(path) : path
      if (!trace.isOurs(file)) return
      trace.loaded()
      trace.made(file, text)
    } catch {
      // No path.
    }
  }
  const proxy = new Proxy(Script, {
    construct(target, args, newTarget) {
      note(args[0], args[1])
      return construct(target, args, newTarget === proxy ? target : newTarget)
    },
  })
  vm.Script = proxy
  vm.runInThisContext = function (...args) {
    note(args[0], args[1])
    return apply(runInThisContext, this, args)
  }
  vm.compileFunction = function (...args) {
    note(args[0], args[2])
    return apply(compileFunction, this, args)
  }
  Module.syncBuiltinESMExports()
}

async function hookMocha(trace) {
  const root = packageOf(trace.main, 'mocha')
  if (root === null) return
  const path = join(root, 'lib/runner.js')
  const isModule = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).type === 'module'
  const exported = isModule ? await load(path) : require(path)
  const { prototype } = exported.Runner ?? exported.default ?? exported
  const { emit } = prototype
  const fileOf = (test) => {
    for (let at = test; at != null; at = at.parent) if (at.file) return at.file
  }
  prototype.emit = function (name, test, ...rest) {
    if (name === 'test') trace.begin(test, trace.nameOf(fileOf(test), test.titlePath()))
    // Hooks after a test, which may fail for it, run behind its end.
    if (name === 'test end' || name === 'retry') {
      trace.end(test, test.pending ? null : name === 'retry' || test.state === 'failed')
    }
    return apply(emit, this, [name, test, ...rest])
  }
}

function tape(trace, exported, module) {
  const { prototype } = exported
  const { emit } = prototype
  const files = new WeakMap()
  // Files are all loaded first, so a test has the file that declared it.
  module.exports = new Proxy(exported, {
    construct(target, args, newTarget) {
      const test = construct(target, args, newTarget === module.exports ? target : newTarget)
      files.set(test, callerOf(trace))
      return test
    },
  })
  const parents = new WeakMap()
  const failed = new WeakSet()
  const titles = (test) => {
    const found = []
    for (let at = test; at !== undefined; at = parents.get(at)) found.unshift(at.name)
    return found
  }
  prototype.emit = function (name, ...rest) {
    if (name === 'prerun') {
      let top = this
      while (parents.has(top)) top = parents.get(top)
      trace.begin(this, trace.nameOf(files.get(top) ?? '', titles(this)), parents.get(this))
    }
    if (name === 'result' && rest[0]?.ok === false && !rest[0].todo) failed.add(this)
    if (name === 'test' && rest[0] !== null && typeof rest[0] === 'object') {
      parents.set(rest[0], this)
    }
    if (name === 'end') trace.end(this, this._skip ? null : failed.has(this))
    return apply(emit, this, [name, ...rest])
  }
}

function uvu(trace, exported) {
  const { suite } = exported
  const wrap = (add, title) => {
    const own = (name, handler) => {
      if (typeof handler !== 'function') return add(name, handler)
      const file = callerOf(trace)
      return add(name, async (context) => {
        const key = {}
        trace.begin(key, trace.nameOf(file, title ? [title, name] : [name]))
        let failed = true
        try {
          const value = await handler(context)
          failed = false
          return value
        } finally {
          trace.end(key, failed)
        }
      })
    }
    const only = typeof add.only === 'function' ? { only: wrap(add.only, title) } : {}
    return Object.assign(own, add, only)
  }
  exported.suite = (title, ...rest) => wrap(suite(title, ...rest), title)
  exported.test = wrap(exported.test, '')
}

function jasmine(trace, exported) {
  const Jasmine = exported.default ?? exported
  const { execute } = Jasmine.prototype
  const keys = new Map()
  Jasmine.prototype.execute = function (...rest) {
    this.env?.addReporter?.({
      specStarted: ({ id, fullName, filename }) => {
        const key = {}
        keys.set(id, key)
        trace.begin(key, trace.nameOf(filename, [fullName]))
      },
      specDone: ({ id, status }) => {
        trace.end(keys.get(id), status === 'failed' ? true : status === 'passed' ? false : null)
        keys.delete(id)
      },
    })
    return apply(execute, this, rest)
  }
}

/** Jest loads what runs a test file as any module; nothing of the project is on the way. */
function hookJest(trace) {
  const RUNNER = /[\\/]jest-circus[\\/]build[\\/](runner|.*[\\/]jestAdapter)\.js$/
  const { load } = Module.prototype
  Module.prototype.load = function (path, ...rest) {
    const result = apply(load, this, [path, ...rest])
    if (RUNNER.test(path)) this.exports = adapter(trace, this.exports)
    return result
  }
}

function adapter(trace, exported) {
  const run = exported.default ?? exported
  if (typeof run !== 'function') return exported
  const wrapped = (globalConfig, config, environment, runtime, path, ...rest) => {
    const { handleTestEvent: own } = environment
    environment.handleTestEvent = function (event, state) {
      const { name, test } = event
      if (name === 'test_start') trace.begin(test, trace.nameOf(path, titlesOf(test)))
      else if (name === 'test_done') trace.end(test, test.errors.length > 0)
      else if (name === 'test_skip' || name === 'test_todo') trace.end(test, null)
      return own === undefined ? undefined : apply(own, this, [event, state])
    }
    return run(globalConfig, config, environment, runtime, path, ...rest)
  }
  return Object.assign(wrapped, exported, { default: wrapped })
}

/** The innermost file of the project on the stack. */
function callerOf(trace) {
  const holder = {}
  Error.captureStackTrace(holder)
  for (const line of String(holder.stack).split('\n').slice(0, 20)) {
    const [, path] = /(?:file:\/\/|\(|at )(\/.+?):\d+:\d+\)?$/.exec(line) ?? []
    if (path !== undefined && trace.isOurs(path)) return path
  }
  return ''
}

/** The folder of a package that a file is in. */
function packageOf(path, name) {
  for (let at = dirname(path); at !== dirname(at); at = dirname(at)) {
    if (at.endsWith('/node_modules/' + name) && existsSync(join(at, 'package.json'))) return at
  }
  return null
}

const load = (path) => import(pathToFileURL(path).href)

async function hookAva(trace) {
  const root = packageOf(trace.main, 'ava')
  if (root === null || !/[\\/]worker[\\/]/.test(trace.main)) return
  const options = require(join(root, 'lib/worker/options.cjs'))
  ava(trace, (await load(join(root, 'lib/test.js'))).default, options)
}

/** In a process or thread of its pool, which runs a script of a package beside it. */
async function hookVitest(trace) {
  const pool = packageOf(trace.main, 'tinypool')
  const root = packageOf(trace.main, 'vitest') ?? (pool && join(dirname(pool), 'vitest'))
  if (root !== null) vitest(trace, await load(join(root, 'dist/runners.js')))
}

/** Tests of a file begin one after the other and go on at the same time. */
function ava(trace, { prototype }, options) {
  const fileOf = () => {
    const { file } = options.get()
    return typeof file === 'string' ? file : (file?.path ?? '')
  }
  const { finish } = prototype
  if (typeof finish !== 'function') return
  // Set when a test begins; a method around its own would be on the stack of every error.
  onSet(prototype, 'startedAt', (test, time) => {
    if (!time || test.metadata?.type !== 'test') return
    trace.begin(test, trace.nameOf(fileOf(), [test.title]))
  })
  prototype.finish = function (...rest) {
    const closed = trace.close(this)
    const done = (value) => {
      trace.settle(closed, value?.passed === undefined ? null : !value.passed)
      return value
    }
    const result = apply(finish, this, rest)
    return typeof result?.then === 'function' ? result.then(done) : done(result)
  }
}

function vitest(trace, { VitestTestRunner, TestRunner }) {
  const { prototype } = VitestTestRunner ?? TestRunner
  const { onBeforeRunTask: before, onAfterRunTask: after } = prototype
  const titles = (task) => {
    const found = []
    let at = task
    for (; at != null && at.filepath === undefined; at = at.suite) found.unshift(at.name)
    return found
  }
  prototype.onBeforeRunTask = async function (task, ...rest) {
    const value = await apply(before, this, [task, ...rest])
    trace.begin(task, trace.nameOf(task.file?.filepath, titles(task)))
    return value
  }
  prototype.onAfterRunTask = function (task, ...rest) {
    const state = task.result?.state
    trace.end(task, state === 'fail' ? true : state === 'pass' ? false : null)
    return apply(after, this, [task, ...rest])
  }
}
