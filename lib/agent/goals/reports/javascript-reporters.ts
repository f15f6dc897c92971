/**
 * Source code of our reporters for Jest, Vitest and Mocha, with placeholders that `javascript.ts`
 * fills in. Each runs in the runner's own process.
 *
 * @module
 */

import { FAILURE_OF } from './failed-tests.js'

/** Writes the report. The module hides itself from tests, which could use it to forge lines. */
export const LINES: string = String.raw`
'use strict'
const { closeSync, openSync, writeSync } = require('node:fs')
const { isAbsolute, relative, resolve } = require('node:path')
const { fileURLToPath } = require('node:url')
const { stringify } = JSON
const HERE = @HERE@
const ROOT = @ROOT@
const NONCE = '@NONCE@'
${FAILURE_OF}

process.argv = process.argv.filter((arg) => !arg.includes(HERE))
for (const file of Object.keys(require.cache)) if (file.startsWith(HERE)) delete require.cache[file]

exports.openReport = () => {
  const name = 'report-' + process.hrtime.bigint() + '-' + process.pid + '.jsonl'
  const fd = openSync(HERE + '/' + name, 'ax', 0o600)
  const write = (...line) => writeSync(fd, stringify([NONCE, ...line]) + '\n')
  const named = (file) => {
    if (!file) return '(unknown file)'
    return isAbsolute(file) ? relative(ROOT, file) : file
  }
  return {
    test: (file, titles, outcome, error) => {
      const failure = outcome === 'fail' ? [failureOf(error, ROOT)] : []
      write('test', [named(file), ...titles], outcome, ...failure)
    },
    file: (file) => write('file', named(file)),
    end: () => {
      write('end')
      closeSync(fd)
    },
  }
}
`

/** Jest reports each test file when it has ended. */
export const JEST: string = String.raw`
'use strict'
const { openReport } = require('./lines.cjs')
const OUTCOMES = { passed: 'pass', failed: 'fail' }

module.exports = class {
  report = openReport()
  onTestResult(test, { testResults, testExecError, failureMessage }) {
    // A file that could not be loaded has no tests, or not all of them.
    const failed = testResults.some(({ status }) => status === 'failed')
    if (testExecError != null || (failureMessage && !failed)) this.report.file(test.path)
    for (const { ancestorTitles, title, status, failureMessages } of testResults) {
      const outcome = OUTCOMES[status] ?? 'skip'
      this.report.test(test.path, [...ancestorTitles, title], outcome, failureMessages?.[0])
    }
  }
  onRunComplete() {
    this.report.end()
  }
}
`

/** Vitest reports at the end: since version 3 to `onTestRunEnd`, before that to `onFinished`. */
export const VITEST: string = String.raw`
import { realpathSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
const { openReport } = createRequire(@URL@)('./lines.cjs')
const OUTCOMES = { pass: 'pass', fail: 'fail' }
const CANARIES = @HERE@ + '/vitest-canaries.mjs'

/** What the canaries need of Vitest's own modules, which are known here; older ones lack some. */
function writeParts() {
  const parts = { suite: ['getCurrentSuite', 'getFn'], runners: ['VitestTestRunner'] }
  let text = ''
  for (const [name, exported] of Object.entries(parts)) {
    try {
      const path = createRequire(realpathSync(process.argv[1])).resolve('vitest/' + name)
      text += 'import * as ' + name + ' from ' + JSON.stringify(pathToFileURL(path).href) + '\n'
    } catch {
      text += 'const ' + name + ' = {}\n'
    }
    text += 'export const { ' + exported.join(', ') + ' } = ' + name + '\n'
  }
  writeFileSync(@HERE@ + '/vitest-parts.mjs', text)
}

export default class {
  report = openReport()
  ended = false
  onInit({ projects = [] }) {
    writeParts()
    for (const { config } of projects) {
      // The canaries write files, which a browser cannot.
      if (config?.browser?.enabled || !Array.isArray(config?.setupFiles)) continue
      config.setupFiles.unshift(CANARIES)
      config.server?.deps?.inlineFiles?.push(CANARIES)
    }
  }
  onTestRunEnd(modules, errors) {
    this.onFinished(modules.map(({ task }) => task), errors)
  }
  onFinished(files = [], errors = []) {
    if (this.ended) return
    this.ended = true
    for (const file of files) {
      const before = this.failed
      this.walk(file, file.filepath, [])
      if (file.result?.state === 'fail' && this.failed === before) this.report.file(file.filepath)
    }
    // What was thrown outside of any test makes the run fail.
    if (errors.length > 0) this.report.file('(errors outside of tests)')
    this.report.end()
  }
  failed = 0
  walk(suite, path, titles) {
    for (const task of suite.tasks ?? []) {
      const names = [...titles, task.name]
      if (task.type === 'suite') this.walk(task, path, names)
      else {
        const isOff = task.mode === 'skip' || task.mode === 'todo'
        const outcome = isOff ? 'skip' : OUTCOMES[task.result?.state] ?? 'skip'
        if (outcome === 'fail') this.failed++
        this.report.test(path, names, outcome, task.result?.errors?.[0])
      }
    }
  }
}
`

/** Mocha takes only one reporter, so ours extends the readable one of Mocha itself. */
export const MOCHA: string = String.raw`
'use strict'
const { existsSync, realpathSync } = require('node:fs')
const { dirname, join } = require('node:path')
const { openReport } = require('./lines.cjs')

function readable() {
  let folder = realpathSync(process.argv[1])
  for (; folder !== dirname(folder); folder = dirname(folder)) {
    for (const index of ['index.cjs', 'index.js']) {
      const path = join(folder, 'lib/reporters', index)
      if (existsSync(path)) return require(path)
    }
  }
  throw new Error('the reporters of Mocha were not found next to ' + process.argv[1])
}

const { Spec } = readable()

module.exports = class extends Spec {
  constructor(runner, options) {
    super(runner, options)
    const report = openReport()
    const reported = new Set()
    const pending = new Set()
    const add = (test, outcome, error) => {
      reported.add(test)
      pending.delete(test)
      report.test(fileOf(test), test.titlePath(), outcome, error)
    }
    runner.once('start', () => {
      runner.suite.eachTest((test) => {
        const { _grep: grep, _invert: invert } = runner
        if (grep === undefined || grep.test(test.fullTitle()) !== Boolean(invert)) pending.add(test)
      })
    })
    // Another test, a copy, is the next try.
    runner.on('retry', (test) => pending.delete(test))
    runner.on('pass', (test) => add(test, 'pass'))
    runner.on('pending', (test) => add(test, 'skip'))
    runner.on('fail', (test, error) => {
      if (test.type === 'hook') report.file(fileOf(test.ctx?.currentTest ?? test))
      // A test may fail after it has passed, and more than once.
      else if (reported.has(test)) report.file(fileOf(test))
      else add(test, 'fail', error)
    })
    runner.once('end', () => {
      for (const test of pending) if (!reported.has(test)) add(test, 'fail')
      report.end()
    })
  }
}

function fileOf(runnable) {
  for (let at = runnable; at !== undefined && at !== null; at = at.parent) {
    if (at.file) return at.file
  }
  return ''
}
`
