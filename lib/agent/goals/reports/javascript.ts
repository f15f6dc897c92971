import { join } from 'node:path'

import { ASSERT_LOCK } from './assert-lock.js'
import type { ReportInjection, ReportPlace } from './reports.js'

/**
 * Our reporters for Jest, Vitest and Mocha. None of them takes a reporter from the environment, so
 * a hook does: NODE_OPTIONS, which reaches a runner behind npm, make or a shell script as well,
 * loads it into every Node process. In the runner's own process, before the runner reads its
 * arguments, it adds our reporter to them, and takes itself out of the environment: what tests
 * start is not reported. A script that sets NODE_OPTIONS itself gets the hook by a `node` that
 * comes first on PATH.
 *
 * Everything that is used for writing is taken when the hook is loaded, which is before the first
 * file of the workspace.
 */
const HOOK = String.raw`
'use strict'
const { realpathSync } = require('node:fs')
const { isMainThread } = require('node:worker_threads')

const HERE = @HERE@
const OPTIONS = @OPTIONS@
const RUNNERS = [
  {
    path: /\/(jest|jest-cli)\/bin\/jest\.js$/,
    ours: '--reporters=' + HERE + '/jest.cjs',
    own: /^--reporters(=|$)/,
    readable: ['--reporters=default'],
  },
  {
    path: /\/vitest\/vitest\.mjs$/,
    ours: '--reporter=' + HERE + '/vitest.mjs',
    own: /^--reporter(=|$)/,
    readable: ['--reporter=default'],
  },
  {
    path: /\/mocha\/(bin\/_?mocha(\.c?js)?|lib\/cli\/cli\.c?js)$/,
    ours: '--reporter=' + HERE + '/mocha.cjs',
    own: /(?!)/,
    readable: [],
  },
]

function real(path) {
  try {
    return realpathSync(path)
  } catch {
    return ''
  }
}

const main = isMainThread && process.argv[1] ? real(process.argv[1]) : ''
const runner = RUNNERS.find(({ path }) => path.test(main))
if (runner !== undefined) {
  const { ours, own, readable } = runner
  const args = process.argv
  // Mocha started again by itself, with other flags for Node, has ours already.
  if (!args.includes(ours)) {
    const end = args.indexOf('--', 2)
    const beside = args.some((arg) => own.test(arg)) ? [] : readable
    args.splice(end < 0 ? args.length : end, 0, ...beside, ours)
  }
  const rest = (process.env.NODE_OPTIONS ?? '').replace(OPTIONS, '').trim()
  if (rest === '') delete process.env.NODE_OPTIONS
  else process.env.NODE_OPTIONS = rest
  require('./assert-lock.cjs')
  const path = (process.env.PATH ?? '').split(':').filter((part) => part !== HERE + '/bin')
  process.env.PATH = path.join(':')
}
`

/** What the three reporters write with. It is no module of theirs that tests could find. */
const LINES = String.raw`
'use strict'
const { closeSync, openSync, writeSync } = require('node:fs')
const { isAbsolute, relative } = require('node:path')
const { stringify } = JSON
const HERE = @HERE@
const ROOT = @ROOT@
const NONCE = '@NONCE@'

process.argv = process.argv.filter((arg) => !arg.includes(HERE))
for (const file of Object.keys(require.cache)) if (file.startsWith(HERE)) delete require.cache[file]

exports.openReport = () => {
  const name = 'report-' + process.hrtime.bigint() + '-' + process.pid + '.jsonl'
  const fd = openSync(HERE + '/' + name, 'ax', 0o600)
  const say = (...line) => writeSync(fd, stringify([NONCE, ...line]) + '\n')
  const place = (file) => (file ? (isAbsolute(file) ? relative(ROOT, file) : file) : '(unknown file)')
  return {
    test: (file, titles, outcome) => say('test', [place(file), ...titles], outcome),
    file: (file) => say('file', place(file)),
    end: () => {
      say('end')
      closeSync(fd)
    },
  }
}
`

const JEST = String.raw`
'use strict'
const { openReport } = require('./lines.cjs')
const OUTCOMES = { passed: 'pass', failed: 'fail' }

module.exports = class {
  report = openReport()
  onTestResult(test, { testResults, testExecError, failureMessage }) {
    // Of a file that could not be loaded there is no test, or not all of them.
    const failed = testResults.some(({ status }) => status === 'failed')
    if (testExecError != null || (failureMessage && !failed)) this.report.file(test.path)
    for (const { ancestorTitles, title, status } of testResults) {
      this.report.test(test.path, [...ancestorTitles, title], OUTCOMES[status] ?? 'skip')
    }
  }
  onRunComplete() {
    this.report.end()
  }
}
`

/** Vitest tells everything at the end: to `onTestRunEnd` since version 3, before to `onFinished`. */
const VITEST = String.raw`
import { createRequire } from 'node:module'
const { openReport } = createRequire(@URL@)('./lines.cjs')
const OUTCOMES = { pass: 'pass', fail: 'fail' }

export default class {
  report = openReport()
  ended = false
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
        this.report.test(path, names, outcome)
      }
    }
  }
}
`

/** Mocha has one reporter only: ours brings the readable one of Mocha itself along. */
const MOCHA = String.raw`
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
  throw new Error('the reporters of Mocha were not found beside ' + process.argv[1])
}

const { Spec } = readable()

module.exports = class extends Spec {
  constructor(runner, options) {
    super(runner, options)
    const report = openReport()
    const told = new Set()
    const waiting = new Set()
    const tell = (test, outcome) => {
      told.add(test)
      waiting.delete(test)
      report.test(fileOf(test), test.titlePath(), outcome)
    }
    runner.once('start', () => {
      runner.suite.eachTest((test) => {
        const { _grep: grep, _invert: invert } = runner
        if (grep === undefined || grep.test(test.fullTitle()) !== Boolean(invert)) waiting.add(test)
      })
    })
    runner.on('pass', (test) => tell(test, 'pass'))
    runner.on('pending', (test) => tell(test, 'skip'))
    runner.on('fail', (test) => {
      if (test.type === 'hook') report.file(fileOf(test.ctx?.currentTest ?? test))
      // A test may fail after it has passed, and more than once.
      else if (told.has(test)) report.file(fileOf(test))
      else tell(test, 'fail')
    })
    runner.once('end', () => {
      for (const test of waiting) if (!told.has(test)) tell(test, 'fail')
      report.end()
    })
  }
}

function fileOf(runnable) {
  for (let at = runnable; at !== undefined && at !== null; at = at.parent) if (at.file) return at.file
  return ''
}
`

/** A `node` that looks for the next one on PATH and gives it the hook. */
const NODE = String.raw`#!/bin/sh
IFS=:
for folder in $PATH; do
  if [ "$folder" != '@HERE@/bin' ] && [ -x "$folder/node" ]; then
    exec "$folder/node" --require '@HERE@/hook.cjs' "$@"
  fi
done
echo 'node was not found' >&2
exit 127
`

/** Brings the hook in, for whichever of the three runners the check starts. */
export function injectJavaScript({ folder, nonce, root }: ReportPlace): ReportInjection {
  const options = `--require=${join(folder, 'hook.cjs')}`
  const fill = (source: string): string =>
    source
      .replaceAll('@NONCE@', nonce)
      .replaceAll('@HERE@', () => JSON.stringify(folder))
      .replace('@ROOT@', () => JSON.stringify(root))
      .replace('@OPTIONS@', () => JSON.stringify(options))
      .replace('@URL@', () => JSON.stringify(join(folder, 'vitest.mjs')))
  return {
    files: {
      'hook.cjs': fill(HOOK),
      'assert-lock.cjs': fill(ASSERT_LOCK),
      'lines.cjs': fill(LINES),
      'jest.cjs': fill(JEST),
      'vitest.mjs': fill(VITEST),
      'mocha.cjs': fill(MOCHA),
    },
    programs: { 'bin/node': NODE.replaceAll('@HERE@', folder) },
    env: { NODE_OPTIONS: options },
  }
}
