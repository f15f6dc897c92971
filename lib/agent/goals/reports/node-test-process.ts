/**
 * Source of the module that is loaded into processes of node:test, by NODE_OPTIONS. In one that
 * runs tests it locks node:assert and the functions that declare tests, lets canaries watch the
 * assertions and who registers hooks, and removes itself from the environment.
 *
 * Canaries run when the first turn of the event loop is over, when the process has no more work,
 * and when it ends; our listener for its end is the first. What the runner itself says of each test
 * is counted here, before code under test could change it on its way to the report.
 */
export const NODE_TEST_PROCESS: string = String.raw`
'use strict'
const { readFileSync, realpathSync } = require('node:fs')
const { resolve, sep } = require('node:path')
const { isMainThread } = require('node:worker_threads')
const { lock } = require('./assert-lock.cjs')
const { countOutcomes } = require('./outcomes.cjs')
const ROOT = @ROOT@
const OPTIONS = @OPTIONS@

// From 24.21 on Node passes to test files, as arguments, what NODE_OPTIONS had: they load this
// twice, and what they fork would. The second time, it has removed itself from the environment.
const isFirst = (process.env.NODE_OPTIONS ?? '').includes(OPTIONS)
const isChild = process.env.NODE_TEST_CONTEXT !== undefined
const entry = process.argv[1] === undefined ? '' : real(resolve(process.argv[1]))
if (isMainThread && isFirst && runsTests()) {
  const nodeTest = require('node:test')
  const Module = require('node:module')
  const { apply } = Reflect
  const watch = require('./canaries.cjs').watch(entry)
  for (const name of ['before', 'after', 'beforeEach', 'afterEach']) {
    const register = nodeTest[name]
    nodeTest[name] = (...rest) => {
      watch.deed(name, rest[0])
      return apply(register, nodeTest, rest)
    }
  }
  Module.syncBuiltinESMExports()
  lock(nodeTest)
  for (const name of ['test', 'it', 'describe', 'suite']) if (nodeTest[name]) lock(nodeTest[name])
  const seen = countOutcomes()
  const check = () => {
    watch.assertions()
    let given
    try {
      given = apply(Module.prototype.require, module, ['node:test'])
    } catch {}
    if (given !== nodeTest) watch.note("require('node:test')")
  }
  setImmediate(check).unref()
  process.on('beforeExit', check)
  const finish = () => {
    check()
    watch.end(seen)
  }
  process.on('exit', finish)
  const { reallyExit } = process
  process.reallyExit = (code) => {
    finish()
    return apply(reallyExit, process, [code])
  }
}
if (isChild && isFirst) {
  const rest = process.env.NODE_OPTIONS.replace(OPTIONS, '').trim()
  if (rest === '') delete process.env.NODE_OPTIONS
  else process.env.NODE_OPTIONS = rest
}

function runsTests() {
  if (isChild) return true
  if (process.execArgv.includes('--test') || !entry.startsWith(ROOT + sep)) return false
  if (entry.includes(sep + 'node_modules' + sep)) return false
  try {
    return readFileSync(entry, 'utf8').includes('node:test')
  } catch {
    return false
  }
}

function real(path) {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
`
