import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import { ASSERT_LOCK } from './assert-lock.js'
import type { ReportInjection, ReportPlace } from './reports.js'

/**
 * Our reporter for node:test. It comes in through NODE_OPTIONS, which reaches `node --test` behind
 * npm, make or a shell script as well, and takes itself out of the environment when it is loaded,
 * before the first test file starts: what tests start themselves is not reported.
 *
 * A file that only exits 0 shows up in the runner as a test with the file's own name; it is no test
 * here. Nor is a suite. Tests that were announced and never ended (`process.exit(0)` half way,
 * which Node 20 takes for success) make their file one that stopped.
 */
const REPORTER = String.raw`
import { closeSync, openSync, writeSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const nonce = '@NONCE@'
const root = @ROOT@
const inner = process.env.RUNWRIGHT_REPORTED === nonce
process.env.RUNWRIGHT_REPORTED = nonce
// The processes of test files still get the lock, which takes itself out there.
const left = process.execArgv.includes('--test') ? [@LOCK@] : []
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
  const place = (file) => (file ? relative(root, file) : '(unknown file)')
  const path = join(here, 'report-' + process.hrtime.bigint() + '-' + process.pid + '.jsonl')
  const fd = openSync(path, 'ax', 0o600)
  const say = (...line) => writeSync(fd, JSON.stringify([nonce, ...line]) + '\n')
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
      const file = place(data.file)
      if (isFile(data)) {
        say(type === 'test:fail' ? 'file' : 'idle', file)
        continue
      }
      count(data, -1)
      titles[data.nesting] = data.name
      if (data.details?.type === 'suite') continue
      const skipped = data.skip !== undefined || (data.todo !== undefined && type === 'test:fail')
      const outcome = skipped ? 'skip' : type === 'test:pass' ? 'pass' : 'fail'
      say('test', [file, ...titles.slice(0, data.nesting + 1)], outcome)
    }
  }
  for (const [file, left] of open) if (left > 0) say('file', place(file))
  say('end')
  closeSync(fd)
}
`

/**
 * Brings the reporter in. The readable report stays on standard output: Node wants as many
 * destinations as reporters over NODE_OPTIONS and command line together, and a goal whose command
 * brings a reporter without one has said so in its own NODE_OPTIONS (see `nodeReporterOptions`).
 */
export function injectNodeTest(place: ReportPlace, nodeOptions: string): ReportInjection {
  const file = `reporter-${place.nonce}.mjs`
  const url = pathToFileURL(join(place.folder, file)).href
  const beside = nodeOptions.includes(DESTINATION)
    ? ''
    : ` --test-reporter=spec ${DESTINATION}=stdout`
  // Ours writes its own file. The destination only has to be one: Node flushes files to disk, which
  // /dev/null does not take.
  const options = `--test-reporter=${url} ${DESTINATION}=stderr${beside}`
  const lock = `--require=${join(place.folder, 'assert-lock.cjs')}`
  const source = REPORTER.replaceAll('@NONCE@', place.nonce)
    .replace('@ROOT@', () => JSON.stringify(place.root))
    .replace('@OPTIONS@', () => JSON.stringify(options))
    .replaceAll('@LOCK@', () => JSON.stringify(lock))
  return {
    files: {
      [file]: source,
      'assert-lock.cjs': ASSERT_LOCK.replace('@OPTIONS@', () => JSON.stringify(lock)),
    },
    env: { NODE_OPTIONS: `${lock} ${options}` },
  }
}

const DESTINATION = '--test-reporter-destination'

/**
 * What NODE_OPTIONS must hold for a check that is known to run `scripts`: a destination for a
 * reporter which they name without one, as they may while it is the only one.
 */
export function nodeReporterOptions(scripts: string): string {
  const reporters = scripts.match(/--test-reporter(?=[\s="'])/g)?.length ?? 0
  const destinations = scripts.match(/--test-reporter-destination(?=[\s="'])/g)?.length ?? 0
  return reporters === 1 && destinations === 0 ? `${DESTINATION}=stdout` : ''
}
