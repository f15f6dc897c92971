/**
 * Source code that brings the canaries of `assert-canaries.ts` into Jest, Vitest and Mocha. Each
 * begins before a file of tests is loaded, and asserts when it has been loaded and at its end.
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
const { declarations, replaced, watch } = require('./canaries.cjs')
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
  const canaries = watch(path)
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
  let expect, getState, setState, kept, checked
  for (const name of ['requireModule', 'unstable_importModule']) {
    const method = runtime[name]
    if (typeof method !== 'function') continue
    runtime[name] = function (file, ...rest) {
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
const { declarations, replaced, watch } = createRequire(@URL@)('./canaries.cjs')
// Vitest puts its functions there for its own use; older versions do not.
const vitest = globalThis.__vitest_index__
if (vitest !== undefined) {
  const { afterAll, beforeAll, expect } = vitest
  const { getState, setState } = expect
  const GLOBAL_EXPECT = Symbol.for('expect-global')
  const canaries = watch(globalThis.__vitest_worker__?.filepath ?? getState().testPath ?? null)
  const kept = declarations(globalThis)
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
const { declarations, replaced, watch } = require('./canaries.cjs')
const { apply } = Reflect
const isWorker = /\/mocha\/lib\/nodejs\/worker\.c?js$/.test(process.argv[1] ?? '')
let canaries = null
const changed = []

const { emit } = EventEmitter.prototype
let Suite = null
EventEmitter.prototype.emit = function (type, ...args) {
  if (type !== 'pre-require' || Suite !== null) return apply(emit, this, [type, ...args])
  EventEmitter.prototype.emit = emit
  if (!isWorker) canaries = watch(null)
  Suite = Object.getPrototypeOf(this)
  const inherited = Suite.emit
  let kept = {}
  Suite.emit = function (type, ...args) {
    const result = apply(inherited, this, [type, ...args])
    if (type === 'pre-require') {
      kept = declarations(args[0])
      if (isWorker) canaries = watch(args[1])
    } else if (type === 'post-require') {
      const names = replaced(args[0], kept)
      for (let i = 0; i < names.length; i++) changed[changed.length] = names[i]
    }
    return result
  }
  return this.emit(type, ...args)
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
