/**
 * Source code that brings the canaries of `assert-canaries.ts` into Jest, Vitest and Mocha. Each
 * begins before a file of tests is loaded, and asserts when it has been loaded and at its end. Each
 * also notes who registers hooks, and who changes a test after it was declared.
 *
 * @module
 */

/**
 * For the processes of Jest, its workers too: adds a listener for events of jest-circus to the
 * environment of each test file. Other test frameworks have no canaries.
 */
export const JEST_CANARIES: string = String.raw`
'use strict'
const Module = require('node:module')
const { declarations, guard, replaced, watch } = require('./canaries.cjs')
const { apply } = Reflect
const FRAMEWORK = /\/jest-circus\/(?:build\/)?runner\.js$/
const load = Module._load
const wrapped = new WeakMap()

const OPTION = '--require=' + @HERE@ + '/jest-canaries.cjs'
process.execArgv = process.execArgv.filter((arg) => arg !== OPTION)

Module._load = function (request, ...rest) {
  const loaded = apply(load, this, [request, ...rest])
  if (typeof request !== 'string' || !FRAMEWORK.test(request)) return loaded
  const run = loaded?.default ?? loaded
  if (typeof run !== 'function') return loaded
  if (!wrapped.has(run)) wrapped.set(run, watched(run))
  const own = wrapped.get(run)
  return loaded === run ? own : { ...loaded, __esModule: true, default: own }
}

// Not an async function, which stacks of failing tests would show.
const watched = (run) => (globalConfig, config, environment, runtime, path, ...rest) => {
  const canaries = watch(path, environment.global)
  const seen = listen(canaries, environment, runtime, path)
  const done = (results) => {
    // An assertion threw, and the test did not fail by it.
    const { numFailingTests = 0, testExecError } = results ?? {}
    if (seen.failed.size > numFailingTests && testExecError == null) canaries.note('jest-circus')
    if (seen.ended) canaries.end()
    return results
  }
  const gone = (error) => {
    // A file that could not be loaded has nothing to prove.
    canaries.end()
    throw error
  }
  return run(globalConfig, config, environment, runtime, path, ...rest).then(done, gone)
}

function listen(canaries, environment, runtime, path) {
  const seen = { ended: false, failed: new Set() }
  const { global, handleTestEvent } = environment
  const failing = new Set()
  const known = new Set()
  const events = Symbol.for('EVENT_HANDLERS')
  // Hooks and tests that were put there without being declared.
  const walk = ({ children, hooks }) => {
    for (let i = 0; i < hooks.length; i++) {
      if (!known.has(hooks[i].fn)) canaries.deed(hooks[i].type, hooks[i].fn)
    }
    for (let i = 0; i < children.length; i++) {
      if (children[i].type === 'describeBlock') walk(children[i])
      else if (!known.has(children[i])) canaries.deed('test', children[i].fn)
    }
  }
  let expect, getState, setState, handlers, kept, checked
  for (const name of ['requireModule', 'unstable_importModule']) {
    const method = runtime[name]
    if (typeof method !== 'function') continue
    runtime[name] = function (file, ...rest) {
      handlers ??= [...(global[events] ?? [])]
      // Setup files may wrap these functions; what is loaded later may not.
      if (file === path && kept === undefined) kept = declarations(global)
      return apply(method, runtime, [file, ...rest])
    }
  }
  // The global one, which may be another library's: in its way it has to fail as well.
  const checkGlobal = () => {
    const { expect: current } = global
    if (current === expect || current === checked || typeof current !== 'function') return
    checked = current
    canaries.expectations(current, getState, setState)
  }
  const check = () => {
    canaries.assertions()
    canaries.expectations(expect, getState, setState)
    checked = undefined
    checkGlobal()
    for (const name of replaced(global, kept ?? {})) canaries.note(name)
  }
  environment.handleTestEvent = (event, state) => {
    const { name, test } = event
    if (name === 'setup') {
      ;({ expect } = event.runtimeGlobals)
      ;({ getState, setState } = expect)
    } else if (name === 'add_hook') {
      known.add(event.fn)
      canaries.deed(event.hookType, event.fn)
    } else if (name === 'add_test') {
      const test = state.currentDescribeBlock.children.at(-1)
      if (test !== undefined && !known.has(test)) guard(canaries, test, ['fn', 'failing'])
      known.add(test)
    } else if (name === 'test_fn_start') {
      failing.delete(test)
      checkGlobal()
    } else if (name === 'test_fn_failure') failing.add(test)
    else if (name === 'test_done') {
      if (failing.has(test)) seen.failed.add(test)
    } else if (name === 'test_retry') seen.failed.delete(test)
    else if (name === 'run_start') check()
    else if (name === 'run_finish') {
      check()
      walk(state.rootDescribeBlock)
      const all = global[events] ?? []
      for (let i = 0; i < all.length; i++) {
        if (!handlers?.includes(all[i])) canaries.deed('the events of tests', all[i])
      }
      seen.ended = true
    }
    if (handleTestEvent !== undefined) return apply(handleTestEvent, environment, [event, state])
  }
  return seen
}
`

/** A setup file for Vitest, the first of each test file. */
export const VITEST_CANARIES: string = String.raw`
import { createRequire } from 'node:module'
const { declarations, guard, keep, replaced, watch } = createRequire(@URL@)('./canaries.cjs')
const parts = await import(@HERE@ + '/vitest-parts.mjs')
const { getCurrentSuite, getFn, VitestTestRunner } = parts
const { apply, defineProperty } = Reflect
const ofRunner = keep({}, { 'VitestTestRunner.prototype': VitestTestRunner?.prototype ?? {} })
// Vitest puts its functions there for its own use; older versions do not.
const vitest = globalThis.__vitest_index__
if (vitest !== undefined) {
  const { afterAll, beforeAll, expect } = vitest
  const { getState, setState } = expect
  const GLOBAL_EXPECT = Symbol.for('expect-global')
  const canaries = watch(globalThis.__vitest_worker__?.filepath ?? getState().testPath ?? null)
  const kept = declarations(globalThis)
  canaries.also(ofRunner)
  const functions = new Map()
  const guardTest = (test) => {
    if (functions.has(test)) return
    functions.set(test, getFn(test))
    guard(canaries, test, ['fails'])
    let { result } = test
    defineProperty(test, 'result', {
      enumerable: true,
      get: () => result,
      set: (next) => {
        if (result?.state === 'fail') canaries.deed('result of a test')
        result = next
        if (next == null) return
        let { state } = next
        defineProperty(next, 'state', {
          enumerable: true,
          get: () => state,
          set: (to) => {
            if (state === 'fail' && to !== state) canaries.deed('result of a test')
            state = to
          },
        })
      },
    })
  }
  // Its list takes tests, and the suites within it.
  const watchSuite = (collector) => {
    const { on, tasks } = collector
    const { push } = tasks
    collector.on = (name, ...rest) => {
      canaries.deed(name, rest[0])
      return apply(on, collector, [name, ...rest])
    }
    const add = (...added) => {
      for (let i = 0; i < added.length; i++) {
        if (added[i].type === 'collector') watchSuite(added[i])
        else guardTest(added[i])
      }
      return apply(push, tasks, added)
    }
    defineProperty(tasks, 'push', { value: add, configurable: true, writable: true })
    return () => {
      collector.on = on
      delete tasks.push
    }
  }
  const leave = getCurrentSuite === undefined ? () => {} : watchSuite(getCurrentSuite())
  const check = () => {
    canaries.assertions()
    canaries.expectations(expect, getState, setState)
    for (const current of [globalThis[GLOBAL_EXPECT], globalThis.expect]) {
      if (current !== expect && typeof current?.getState === 'function') {
        canaries.expectations(current, getState, setState)
      }
    }
    for (const name of replaced(globalThis, kept)) canaries.note(name)
  }
  beforeAll(check)
  afterAll(() => {
    check()
    leave()
    for (const [test, own] of functions) {
      if (getFn(test) !== own) canaries.deed('fn of a test', getFn(test))
    }
    canaries.end()
  })
}
`

/**
 * A root hook plugin for Mocha. It also tries a test that throws, and notes which functions that
 * declare tests are replaced while a file is loaded. Canaries begin with the first file that is
 * loaded; in a worker of parallel mode with each file.
 */
export const MOCHA_CANARIES: string = String.raw`
'use strict'
const { EventEmitter } = require('node:events')
const { declarations, keep, replaced, watch } = require('./canaries.cjs')
const { apply, defineProperty, getOwnPropertyDescriptor: describe, getPrototypeOf } = Reflect
const isWorker = /\/mocha\/lib\/nodejs\/worker\.c?js$/.test(process.argv[1] ?? '')
let canaries = null
const changed = []

const { emit } = EventEmitter.prototype
let Suite = null
EventEmitter.prototype.emit = function (type, ...args) {
  if (type !== 'pre-require' || Suite !== null) return apply(emit, this, [type, ...args])
  EventEmitter.prototype.emit = emit
  if (!isWorker) canaries = watch(null)
  Suite = getPrototypeOf(this)
  const inherited = Suite.emit
  let kept = {}
  let ofMocha
  Suite.emit = function (type, ...args) {
    const result = apply(inherited, this, [type, ...args])
    if (type === 'pre-require') {
      kept = declarations(args[0])
      if (isWorker) canaries = watch(args[1])
      ofMocha ??= keepAll(args[2]?.constructor ?? {})
      canaries.also(ofMocha)
    } else if (type === 'test') guardTest(args[0])
    else if (canaries !== null && HOOKS.includes(type)) {
      known.add(args[0])
      canaries.deed(type, args[0].fn)
    } else if (type === 'post-require') {
      const names = replaced(args[0], kept)
      for (let i = 0; i < names.length; i++) changed[changed.length] = names[i]
    }
    return result
  }
  return this.emit(type, ...args)
}

const HOOKS = ['beforeAll', 'beforeEach', 'afterEach', 'afterAll']
const known = new Set()

function keepAll({ Context, Hook, Runnable, Runner, Suite, Test }) {
  const prototypes = {}
  for (const type of [Context, Hook, Runnable, Runner, Suite, Test]) {
    if (type !== undefined) prototypes[type.name + '.prototype'] = type.prototype
  }
  return keep({}, prototypes)
}

/** Mocha deletes the function when the suite has ended, so that only its run can demand it. */
function guardTest(test) {
  known.add(test)
  const told = (next) => canaries?.deed('fn of a test', next)
  let { fn } = test
  let run
  const get = () => fn
  const set = (next) => {
    told(next)
    fn = next
  }
  defineProperty(test, 'fn', { configurable: true, enumerable: true, get, set })
  defineProperty(test, 'run', {
    get: () => {
      if (describe(test, 'fn')?.get !== get) told(test.fn)
      return run ?? getPrototypeOf(test).run
    },
    set: (next) => {
      told(next)
      run = next
    },
  })
}

/** Hooks and tests that were put there without being declared. */
function walk(suite) {
  for (let i = 0; i < HOOKS.length; i++) {
    const hooks = suite['_' + HOOKS[i]]
    for (let j = 0; j < hooks.length; j++) {
      if (!known.has(hooks[j])) canaries.deed(HOOKS[i], hooks[j].fn)
    }
  }
  for (let i = 0; i < suite.tests.length; i++) {
    if (!known.has(suite.tests[i])) canaries.deed('test', suite.tests[i].fn)
  }
  for (let i = 0; i < suite.suites.length; i++) walk(suite.suites[i])
}

function firstTest(suite) {
  if (suite.tests.length > 0) return suite.tests[0]
  for (const child of suite.suites) {
    const found = firstTest(child)
    if (found !== undefined) return found
  }
}

function check(hook) {
  for (let i = 0; i < changed.length; i++) canaries.note(changed[i])
  canaries.assertions()
  walk(hook.parent)
  const test = firstTest(hook.parent)
  if (test === undefined) return
  const error = new Error('canary')
  const canary = new test.constructor('canary', () => {
    throw error
  })
  canary.parent = hook.parent
  canary.ctx = hook.ctx
  let reported
  canary.run((given) => {
    reported = given
  })
  if (reported === undefined) canaries.note('mocha')
}

exports.mochaHooks = {
  beforeAll() {
    check(this.test)
  },
  afterAll() {
    check(this.test)
    canaries.end()
  },
}
`
