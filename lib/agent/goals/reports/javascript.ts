/**
 * Jest, Vitest and Mocha. None of them takes a reporter from the environment, so a hook adds ours:
 *
 * 1. NODE_OPTIONS loads the hook into every Node process, so it reaches a runner behind npm, make
 *    or a shell script as well. A script that sets NODE_OPTIONS itself gets the hook from a `node`
 *    that comes first on PATH.
 * 2. In the runner's own process, before the runner reads its arguments, the hook adds our reporter
 *    to them and removes itself from the environment, so that runners which tests start are not
 *    reported.
 * 3. It also brings canaries into the processes that run tests: into Jest's workers by an option
 *    for Node, into Mocha by `--require`; Vitest's reporter adds a setup file.
 * 4. Hook and reporters look up the functions they write with when they are loaded, before any code
 *    of the workspace could replace them.
 *
 * @module
 */
import { join } from 'node:path'

import { nodePackages } from '../runner-files.js'
import { CANARIES } from './assert-canaries.js'
import { ASSERT_LOCK } from './assert-lock.js'
import { CANARY_FOLDER } from './canaries.js'
import { FUNCTION_PLACES } from './function-places.js'
import { JEST_CANARIES, MOCHA_CANARIES, VITEST_CANARIES } from './javascript-canaries.js'
import { JEST, LINES, MOCHA, VITEST } from './javascript-reporters.js'
import { readLines } from './lines.js'
import { program } from './recognise.js'
import type { ReportInjection, ReportPlace, TestRunner } from './types.js'

export const jest: TestRunner = hookedRunner(
  (name) => /^jest(?:\.js)?$/.test(name),
  ['jest', 'jest-*', '@jest/*', 'babel-jest', 'ts-jest'],
)
export const vitest: TestRunner = hookedRunner(
  (name, [verb = '']) =>
    /^vitest(?:\.mjs)?$/.test(name) && !['bench', 'list', 'init'].includes(verb),
  ['vitest', '@vitest/*', 'vite-node', 'tinypool', 'tinyspy'],
)
export const mocha: TestRunner = hookedRunner(
  (name) => /^_?mocha(?:\.c?js)?$/.test(name),
  ['mocha', 'ts-mocha'],
)

/** A runner that the hook finds by its process, whatever a script does to NODE_OPTIONS. */
function hookedRunner(
  isRunner: Parameters<typeof program>[0],
  packages: readonly string[],
): TestRunner {
  return {
    command: { starts: program(isRunner) },
    inject: injectHook,
    read: (place) => readLines(place),
    packages: (cwd) => nodePackages(cwd, packages),
  }
}

const HOOK = String.raw`
'use strict'
const { realpathSync } = require('node:fs')
const { isMainThread } = require('node:worker_threads')

const HERE = @HERE@
const OPTIONS = @OPTIONS@
const RUNNERS = [
  {
    path: /\/(jest|jest-cli)\/bin\/jest\.js$/,
    reporter: '--reporters=' + HERE + '/jest.cjs',
    chosen: /^--reporters(=|$)/,
    readable: ['--reporters=default'],
    more: [],
  },
  {
    path: /\/vitest\/vitest\.mjs$/,
    reporter: '--reporter=' + HERE + '/vitest.mjs',
    chosen: /^--reporter(=|$)/,
    readable: ['--reporter=default'],
    more: [],
  },
  {
    path: /\/mocha\/(bin\/_?mocha(\.c?js)?|lib\/cli\/cli\.c?js)$/,
    reporter: '--reporter=' + HERE + '/mocha.cjs',
    chosen: /(?!)/,
    readable: [],
    more: ['--require=' + HERE + '/mocha-canaries.cjs'],
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
  const { reporter, chosen, readable, more } = runner
  const args = process.argv
  // Mocha restarts itself to pass flags to Node; then our reporter is there already.
  if (!args.includes(reporter)) {
    const end = args.indexOf('--', 2)
    const added = args.some((arg) => chosen.test(arg)) ? [reporter] : [...readable, reporter]
    args.splice(end < 0 ? args.length : end, 0, ...added, ...more)
  }
  const rest = (process.env.NODE_OPTIONS ?? '').replace(OPTIONS, '').trim()
  if (rest === '') delete process.env.NODE_OPTIONS
  else process.env.NODE_OPTIONS = rest
  if (reporter.endsWith('/mocha.cjs')) require('./assert-lock.cjs')
  if (reporter.endsWith('/jest.cjs')) {
    require('./jest-canaries.cjs')
    // Workers need the canaries, not this hook, which our node loads by such an option.
    const own = process.execArgv.indexOf(HERE + '/hook.cjs')
    if (own > 0) process.execArgv.splice(own - 1, 2)
    process.execArgv.push('--require=' + HERE + '/jest-canaries.cjs')
  }
  const path = (process.env.PATH ?? '').split(':').filter((part) => part !== HERE + '/bin')
  process.env.PATH = path.join(':')
}
`

/** A `node` that starts the next one on PATH with the hook. */
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

/** The same for all three: a check may start more than one of them. */
function injectHook({ folder, nonce, root }: ReportPlace): ReportInjection {
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
      'assert-lock.cjs': ASSERT_LOCK,
      'canaries.cjs': fill(CANARIES),
      'places.cjs': fill(FUNCTION_PLACES),
      'jest-canaries.cjs': fill(JEST_CANARIES),
      'vitest-canaries.mjs': fill(VITEST_CANARIES),
      'mocha-canaries.cjs': fill(MOCHA_CANARIES),
      [`${CANARY_FOLDER}/.keep`]: '',
      'lines.cjs': fill(LINES),
      'jest.cjs': fill(JEST),
      'vitest.mjs': fill(VITEST),
      'mocha.cjs': fill(MOCHA),
    },
    programs: { 'bin/node': NODE.replaceAll('@HERE@', folder) },
    env: { NODE_OPTIONS: options },
    path: join(folder, 'bin'),
  }
}
