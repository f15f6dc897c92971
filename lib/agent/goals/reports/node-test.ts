import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import { nodePackages } from '../runner-files.js'
import { CANARIES } from './assert-canaries.js'
import { ASSERT_LOCK } from './assert-lock.js'
import { CANARY_FOLDER } from './canaries.js'
import { FAILURE_OF } from './failed-tests.js'
import { FUNCTION_PLACES } from './function-places.js'
import { NODE_TEST_OUTCOMES } from './node-test-outcomes.js'
import { NODE_TEST_PROCESS } from './node-test-process.js'
import { readLines } from './lines.js'
import { nameOf, replaces } from './recognise.js'
import type { ReportInjection, ReportPlace, TestRunner } from './types.js'

export const nodeTest: TestRunner = {
  command: {
    starts: ({ words }) => {
      const node = words.findIndex(({ text }) => /^(?:node|tsx|ts-node)$/.test(nameOf(text)))
      const isTest = words.findLastIndex(({ text }) => text === '--test') > node
      return isTest ? words[node] : undefined
    },
    avoids: (text) => replaces(text, /\bNODE_OPTIONS=/),
  },
  inject: injectNodeTest,
  read: (place) => readLines(place, true),
  packages: (cwd) => nodePackages(cwd),
  nodeOptions: missingDestination,
}

/**
 * Our reporter for node:test. It is loaded through NODE_OPTIONS, which reaches `node --test` behind
 * npm, make or a shell script as well. It removes itself from the environment when it is loaded,
 * before the first test file starts, so that runners which tests start are not reported.
 *
 * The runner shows a file that only exits with 0 as a test with the file's own name; here it counts
 * as an idle file. Suites are no tests. A test that was announced and never ended
 * (`process.exit(0)` half way, which Node 20 takes for success) marks its file as stopped.
 */
const REPORTER = String.raw`
import { closeSync, openSync, writeSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
${FAILURE_OF}
const nonce = '@NONCE@'
const root = @ROOT@
const inner = process.env.RUNWRIGHT_REPORTED === nonce
process.env.RUNWRIGHT_REPORTED = nonce
// The processes of test files still get the lock and canaries, which remove themselves there.
const left = process.execArgv.includes('--test') && !inner ? [@LOCK@] : []
const rest = (process.env.NODE_OPTIONS ?? '').replace(@OPTIONS@, '').replace(@LOCK@, '').trim()
process.env.NODE_OPTIONS = [rest, ...left].join(' ').trim()
if (process.env.NODE_OPTIONS === '') delete process.env.NODE_OPTIONS

export default async function* report(source) {
  if (inner) {
    for await (const event of source) void event
    return
  }
  const cwd = process.cwd()
  const here = dirname(fileURLToPath(import.meta.url))
  const named = (file) => (file ? relative(root, file) : '(unknown file)')
  const path = join(here, 'report-' + process.hrtime.bigint() + '-' + process.pid + '.jsonl')
  const fd = openSync(path, 'ax', 0o600)
  const write = (...line) => writeSync(fd, JSON.stringify([nonce, ...line]) + '\n')
  const isFile = ({ name, nesting, file, line, column }) =>
    nesting === 0 && file !== undefined && line === 1 && column === 1 && resolve(cwd, name) === file
  const open = new Map()
  const count = (data, by) => {
    const file = data.file ?? ''
    open.set(file, (open.get(file) ?? 0) + by)
  }
  const titles = []
  for await (const { type, data } of source) {
    if (type === 'test:enqueue') {
      if (!isFile(data)) count(data, 1)
    } else if (type === 'test:start') {
      titles[data.nesting] = data.name
    } else if (type === 'test:pass' || type === 'test:fail') {
      const file = named(data.file)
      if (isFile(data)) {
        write(type === 'test:fail' ? 'file' : 'idle', file)
        continue
      }
      count(data, -1)
      titles[data.nesting] = data.name
      if (data.details?.type === 'suite') continue
      const skipped = data.skip !== undefined || (data.todo !== undefined && type === 'test:fail')
      const outcome = skipped ? 'skip' : type === 'test:pass' ? 'pass' : 'fail'
      const { error } = data.details ?? {}
      const isOwn = outcome === 'fail' && error?.failureType !== 'subtestsFailed'
      const failure = isOwn ? [failureOf(error?.cause ?? error, root)] : []
      write('test', [file, ...titles.slice(0, data.nesting + 1)], outcome, ...failure)
    }
  }
  for (const [file, left] of open) if (left > 0) write('file', named(file))
  write('end')
  closeSync(fd)
}
`

/**
 * The readable report stays on standard output. Node requires as many destinations as reporters, in
 * NODE_OPTIONS and on the command line together; where the command names a reporter without a
 * destination, the goal's NODE_OPTIONS hold one (see {@link missingDestination}).
 */
function injectNodeTest(
  place: ReportPlace,
  env: Readonly<Record<string, string>>,
): ReportInjection {
  const file = `reporter-${place.nonce}.mjs`
  const url = pathToFileURL(join(place.folder, file)).href
  const hasReporter = (env['NODE_OPTIONS'] ?? '').includes(DESTINATION)
  const readable = hasReporter ? '' : ` --test-reporter=spec ${DESTINATION}=stdout`
  // Our reporter writes its own file, but Node requires a destination for it: not /dev/null, since
  // Node flushes destinations to disk, which fails there.
  const options = `--test-reporter=${url} ${DESTINATION}=stderr${readable}`
  const lock = `--require=${join(place.folder, 'process.cjs')}`
  const fill = (source: string, own: string): string =>
    source
      .replaceAll('@NONCE@', place.nonce)
      .replace('@HERE@', () => JSON.stringify(place.folder))
      .replace('@ROOT@', () => JSON.stringify(place.root))
      .replace('@OPTIONS@', () => JSON.stringify(own))
      .replaceAll('@LOCK@', () => JSON.stringify(lock))
  return {
    files: {
      [file]: fill(REPORTER, options),
      'process.cjs': fill(NODE_TEST_PROCESS, lock),
      'assert-lock.cjs': ASSERT_LOCK,
      'outcomes.cjs': NODE_TEST_OUTCOMES,
      'canaries.cjs': fill(CANARIES, ''),
      'places.cjs': fill(FUNCTION_PLACES, ''),
      [`${CANARY_FOLDER}/.keep`]: '',
    },
    env: { NODE_OPTIONS: `${lock} ${options}` },
  }
}

const DESTINATION = '--test-reporter-destination'

/**
 * NODE_OPTIONS with a destination for a reporter that `scripts` name without one, which Node allows
 * only as long as there is no second reporter.
 */
function missingDestination(scripts: string): string {
  const reporters = scripts.match(/--test-reporter(?=[\s="'])/g)?.length ?? 0
  const destinations = scripts.match(/--test-reporter-destination(?=[\s="'])/g)?.length ?? 0
  return reporters === 1 && destinations === 0 ? `${DESTINATION}=stdout` : ''
}
