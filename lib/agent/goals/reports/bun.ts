import { join } from 'node:path'

import { LongWork } from '../../../internal/time.js'
import type { TestOutcome } from '../../test-outcomes.js'
import { nodePackages } from '../runner-files.js'
import { readRegularFile } from '../small-file.js'
import { BUN_REPORT_VARIABLE } from './bun-variable.js'
import { collectTests, MAX_LISTED } from './outcomes.js'
import type { ReportedTest, ReportProblem, TestRunner } from './types.js'

const MAX_FILE_BYTES = 32 * 1024 * 1024
/** Suites inside each other; each test is named after all that are around it. */
const MAX_SUITES = 100
/** Parts of all names together. */
const MAX_PARTS = 2_000_000

/** Bun writes a JUnit report only where its command line names a file for it. */
export const bun: TestRunner = {
  command: null,
  inject: ({ folder }) => ({
    files: {},
    env: { [BUN_REPORT_VARIABLE]: join(folder, 'bun.xml') },
  }),
  read: async ({ folder }) => collectTests(await readBun(folder)),
  packages: (cwd) => nodePackages(cwd),
}

/** Reads the report, which Bun writes when all tests have ended. */
async function readBun(folder: string): Promise<readonly ReportedTest[] | ReportProblem> {
  const xml = await readRegularFile(join(folder, 'bun.xml'), MAX_FILE_BYTES)
  return typeof xml === 'string' ? xml : junitTests(xml.toString('utf8'))
}

/**
 * The tests of a JUnit report: suites nest, and the outermost names the file. An empty suite that
 * counts errors or failures is a file that could not be loaded.
 */
export async function junitTests(xml: string): Promise<readonly ReportedTest[] | ReportProblem> {
  const tests: ReportedTest[] = []
  const suites: string[] = []
  let current: { names: readonly string[]; outcome: TestOutcome } | null = null
  let closed = false
  let parts = 0
  const work = new LongWork()
  for (const found of tagsOf(xml)) {
    if (work.isDue) await work.next()
    if (tests.length > MAX_LISTED || suites.length > MAX_SUITES) return 'too_large'
    if (parts > MAX_PARTS) return 'too_large'
    if (found === null) continue
    const [, slash, tag, attributes, empty] = found
    const isEnd = slash === '/'
    if (tag === 'testsuites') closed ||= isEnd || empty === '/'
    else if (tag === 'testsuite') {
      if (isEnd) suites.pop()
      else if (empty === '/') {
        const broken = /\b(?:errors|failures)="[1-9]/.test(attributes!)
        if (broken) tests.push({ names: [nameOf(attributes!)], outcome: 'fail' })
      } else suites.push(nameOf(attributes!))
    } else if (tag === 'testcase') {
      if (!isEnd) current = { names: [...suites, nameOf(attributes!)], outcome: 'pass' }
      if (current !== null && (isEnd || empty === '/')) {
        tests.push(current)
        parts += current.names.length
        current = null
      }
    } else if (current !== null && !isEnd) {
      if (tag === 'failure' || tag === 'error') current.outcome = 'fail'
      else if (tag === 'skipped') current.outcome = 'skip'
    }
  }
  return closed ? tests : 'incomplete'
}

const TAG = /<(\/?)([a-z]+)((?:\s+[\w:.-]+="[^"<]*"){0,40})\s*(\/?)>/y

/**
 * The tags of a document, null for any other `<`. CDATA sections and comments are skipped whole,
 * with the tags in them.
 */
function* tagsOf(xml: string): Generator<RegExpExecArray | null> {
  for (let at = xml.indexOf('<'); at !== -1; at = xml.indexOf('<', at)) {
    const end = xml.startsWith('<!--', at) ? '-->' : xml.startsWith('<![CDATA[', at) ? ']]>' : null
    if (end !== null) {
      const close = xml.indexOf(end, at)
      if (close === -1) return
      at = close + end.length
      continue
    }
    TAG.lastIndex = at
    const tag = TAG.exec(xml)
    yield tag
    at += tag?.[0].length ?? 1
  }
}

const ENTITIES: Readonly<Record<string, string>> = {
  lt: '<',
  gt: '>',
  amp: '&',
  quot: '"',
  apos: "'",
}

function nameOf(attributes: string): string {
  const raw = /\sname="([^"]*)"/.exec(attributes)?.[1] ?? '(no name)'
  return raw.replaceAll(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, (whole, decimal, hex, entity) => {
    const code = decimal !== undefined ? Number(decimal) : Number.parseInt(String(hex), 16)
    if (entity !== undefined) return ENTITIES[String(entity)] ?? whole
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole
  })
}
