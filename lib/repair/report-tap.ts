import { loadFailure, LOADING } from './load-failure.js'
import {
  addOutcome,
  comparedIn,
  type Failure,
  type Frame,
  MAX_DETAILED,
  MAX_FRAMES,
  MAX_TESTS,
  type Outcomes,
  parseFrames,
} from './report.js'
import { readYamlBlock } from './yaml-block.js'

/** A test in a report of the Test Anything Protocol. */
export interface TapTest {
  readonly name: string
  readonly outcome: 'pass' | 'fail' | 'skip'
  /** Blocks of diagnostics: its own, or those of its failed assertions. */
  readonly blocks: readonly ReadonlyMap<string, string>[]
  /** Whether it only stands for the tests in it. */
  readonly isSuite: boolean
  /** Where its report starts. */
  readonly line: number
}

const POINT = /^( *)(not ok|ok)(?= |$)(.*)$/
/** What Node 20 says about tests that a pattern of names leaves out. */
const UNSELECTED = 'test name does not match pattern'

/** Removes the escapes that node:test writes in the Test Anything Protocol. */
function plain(name: string): string {
  return name.replace(/\\([\\#])/g, '$1').trim()
}

/** A level of nesting. */
interface Level {
  /** Title of the test whose report has started at this level; null for none. */
  title: string | null
  /** Failed assertions, and failed tests, in the test that encloses this level. */
  assertions: ReadonlyMap<string, string>[]
  failedTests: number
  /** Tests in it that were reported, and those that were left out by a pattern of names. */
  reported: number
  unselected: number
}

function newLevel(): Level {
  return { title: null, assertions: [], failedTests: 0, reported: 0, unselected: 0 }
}

/**
 * All tests of a report, suites included, named with the titles around them.
 *
 * 1. node:test and node-tap write `# Subtest: title` before a test's report, which is indented.
 *    A point inside a test that has no such line is an assertion of that test.
 * 2. tape writes `# title` before the assertions of a test, all at one level. A test in which the
 *    process ended has failed, although none of its assertions has.
 * 3. Else every point is a test.
 */
export function readTap(output: string): TapTest[] {
  const lines = output.split('\n')
  return isTape(lines) ? readTape(lines) : readNested(lines)
}

function isTape(lines: readonly string[]): boolean {
  let titled = false
  for (const line of lines) {
    if (/^ *# Subtest: /.test(line)) return false
    if (/^# \S/.test(line)) titled = true
    const isPoint = /^(?:not ok|ok) \d/.test(line)
    if (isPoint && /^(?:not ok|ok) \d+ - /.test(line)) return false
    if (isPoint && titled) return true
    // Before any point, a plan says that points are tests.
    if (/^1\.\.\d/.test(line)) return false
  }
  return titled && lines.some((line) => /^TAP version \d+$/.test(line))
}

function readNested(lines: readonly string[]): TapTest[] {
  const levels: Level[] = [newLevel()]
  const found: TapTest[] = []
  /** Titles of tests whose reports follow their points in braces. */
  const braced: string[] = []
  const starts: number[] = []
  for (let at = 0; at < lines.length && found.length < MAX_TESTS; at++) {
    const line = lines[at]!
    const subtest = /^( *)# Subtest: (.*)$/.exec(line)
    if (subtest !== null) {
      const depth = Math.floor(subtest[1]!.length / 4)
      while (levels.length <= depth) levels.push(newLevel())
      levels.length = depth + 1
      levels[depth]!.title = plain(subtest[2]!)
      starts[depth] = at
      continue
    }
    const point = POINT.exec(line)
    if (point === null) continue
    const depth = Math.floor(point[1]!.length / 4)
    if (depth > levels.length) continue
    const { title, directive, opens } = readPoint(point[3]!)
    if (title === null) continue
    const block = readYamlBlock(lines, at + 1)
    const level = levels[depth] ?? (levels[depth] = newLevel())
    const inner = levels[depth + 1]
    const isAssertion = depth > 0 && level.title !== title && braced[depth - 1] === undefined
    const ok = point[2] === 'ok'
    level.reported++
    if (directive.includes(UNSELECTED)) level.unselected++
    else if (isAssertion) {
      if (!ok && directive === '') level.assertions.push(titled(block.values, title))
    } else {
      const around = levels.slice(0, depth).flatMap((outer) => outer.title ?? [])
      const reported = inner?.reported ?? 0
      if (ok && reported > 0 && inner?.unselected === reported) level.unselected++
      else {
        const assertions = inner?.assertions ?? []
        const isSuite =
          block.values.get('failureType') === 'subtestsFailed' ||
          ((inner?.failedTests ?? 0) > 0 && assertions.length === 0)
        const outcome = directive !== '' ? 'skip' : ok ? 'pass' : 'fail'
        if (outcome === 'fail') level.failedTests++
        const isOwn = assertions.length === 0
        found.push({
          name: [...around, title].join(' > '),
          outcome,
          blocks: isOwn ? [block.values] : assertions,
          isSuite,
          line: starts[depth] ?? at,
        })
      }
    }
    levels.length = depth + 1
    level.title = null
    braced.length = depth
    if (opens) {
      level.title = title
      braced[depth] = title
    }
    at = Math.max(at, block.next - 1)
  }
  return found
}

/** Title and directive of a point; no title when it is none. */
function readPoint(rest: string): { title: string | null; directive: string; opens: boolean } {
  const opens = rest.endsWith(' {')
  const body = (opens ? rest.slice(0, -2) : rest).replace(/^ \d+/, '')
  if (body !== '' && !body.startsWith(' ')) return { title: null, directive: '', opens }
  const at = body.search(/ # (?:SKIP|TODO|time=)/i)
  const directive = at < 0 ? '' : body.slice(at + 3)
  const title = (at < 0 ? body : body.slice(0, at)).replace(/^ - /, '')
  return { title: plain(title), directive: /^time=/.test(directive) ? '' : directive, opens }
}

/** The diagnostics of an assertion, whose title is its message. */
function titled(
  values: ReadonlyMap<string, string>,
  title: string,
): ReadonlyMap<string, string> {
  return values.has('error') ? values : new Map([...values, ['error', title]])
}

function readTape(lines: readonly string[]): TapTest[] {
  const found: TapTest[] = []
  let title: string | null = null
  let start = 0
  let points = 0
  let failed: ReadonlyMap<string, string>[] = []
  const close = (crashed: boolean): void => {
    const outcome = failed.length > 0 || crashed ? ('fail' as const) : ('pass' as const)
    // Without assertions a line may just as well be a comment.
    if (points > 0 || crashed)
      found.push({ name: title ?? '', outcome, blocks: failed, isSuite: false, line: start })
    failed = []
    points = 0
  }
  for (let at = 0; at < lines.length && found.length < MAX_TESTS; at++) {
    const line = lines[at]!
    const comment = /^# (.*)$/.exec(line)
    if (comment !== null) {
      close(false)
      title = comment[1]!.trim()
      start = at
      continue
    }
    if (/^1\.\.\d+$/.test(line)) {
      close(false)
      return found
    }
    const point = /^(not ok|ok)( \d.*)$/.exec(line)
    if (point === null) continue
    points++
    const block = readYamlBlock(lines, at + 1)
    at = Math.max(at, block.next - 1)
    const { directive, title: said } = readPoint(point[2]!)
    if (point[1] === 'not ok' && directive === '') failed.push(titled(block.values, said ?? ''))
  }
  // No plan: the process ended in this test.
  if (title !== null) close(true)
  return found
}

/** Outcomes in a report of the Test Anything Protocol. */
export function parseTap(output: string): Outcomes {
  const outcomes = new Map<string, 'pass' | 'fail' | 'skip'>()
  for (const { name, outcome } of readTap(output)) addOutcome(outcomes, name, outcome)
  if (outcomes.size === 0 && loadFailure(output) !== null) outcomes.set(LOADING, 'fail')
  return outcomes
}

/** The failing tests of such a report with their diagnostics, without the suites around them. */
export function parseTapFailures(output: string): Failure[] {
  const lines = output.split('\n')
  const seen = new Map<string, 'pass' | 'fail' | 'skip'>()
  const failures: Failure[] = []
  const tests = readTap(output)
  tests.forEach((test, index) => {
    const name = addOutcome(seen, test.name, test.outcome)
    if (test.outcome !== 'fail' || test.isSuite || failures.length >= MAX_DETAILED) return
    const blocks = test.blocks.filter(({ size }) => size > 0)
    if (blocks.length === 0) {
      failures.push(crashed(name, lines, test.line, tests[index + 1]?.line))
      return
    }
    for (const block of blocks.slice(0, 5)) failures.push(failureOf(name, block, lines, test.line))
  })
  const whole = seen.size === 0 ? loadFailure(output) : null
  return whole === null ? failures : [whole]
}

/** A test that has no diagnostics: the process said why it ended. */
function crashed(name: string, lines: readonly string[], from: number, to?: number): Failure {
  const said = lines.slice(from + 1, Math.min(to ?? lines.length, from + 120))
  const frames = parseFrames(said.join('\n')).filter(isOwnFrame).slice(0, MAX_FRAMES)
  const message = said.filter((line) => /^\w*(Error|Exception)\b/.test(line)).join('\n')
  return { name, message, frames, ...comparedIn(message), at: frames.find(isTestFrame) }
}

function failureOf(
  name: string,
  block: ReadonlyMap<string, string>,
  lines: readonly string[],
  line: number,
): Failure {
  const stack = block.get('stack') ?? ''
  const said = messageOf(block)
  const crash =
    stack === '' && said.startsWith('test failed')
      ? printedBefore(lines, line)
      : []
  // tape shows two undefined values when something else was expected than a value.
  const hasValues = !/^(throws|doesNotThrow|fail|error)$/.test(block.get('operator') ?? '')
  const values = differenceIn(block) ?? comparedIn(said)
  const place = block.get('location') ?? block.get('at') ?? ''
  const frames = parseFrames([stack, ...crash].join('\n'))
  const at = location(place)
  if (frames.length === 0 && at !== undefined) frames.push(at)
  return {
    name,
    message: [said, ...crash.map((text) => text.replace(/^# ?/, ''))].join('\n'),
    expected: hasValues ? (block.get('expected') ?? values.expected) : undefined,
    actual: hasValues ? (block.get('actual')?.trimStart() ?? values.actual) : undefined,
    frames: frames.filter(isOwnFrame).slice(0, MAX_FRAMES),
    at:
      block.has('location') || (at !== undefined && isTestFrame(at))
        ? at
        : frames.find(isTestFrame),
  }
}

/** What a file printed that ended without a test, as comments before its own line. */
function printedBefore(lines: readonly string[], line: number): string[] {
  let from = line
  while (from > 0 && line - from < 60 && lines[from - 1]!.startsWith('#')) from--
  return lines.slice(from, line)
}

/** The message, whatever the runner calls it, with the type of the error and differences. */
function messageOf(block: ReadonlyMap<string, string>): string {
  const error = block.get('error') ?? ''
  const nested = /^ *name: "?(\w+)"?\n *message: (.*)$/m.exec(error)
  const lead =
    nested === null ? error : `${nested[1]}: ${nested[2]!.replace(/^"|"$/g, '')}`
  const missing = block.get('operator') === 'throws' ? 'Missing expected exception' : ''
  const type = block.get('name') ?? block.get('type') ?? ''
  const parts = [lead, missing, block.get('message') ?? '', type]
  parts.push(block.get('details') ?? block.get('values') ?? '', block.get('diff') ?? '')
  return parts
    .filter((part) => part.trim() !== '')
    .join('\n')
    .trim()
}

/** Values of one line each in a printed difference: that of node-tap, or that of AVA. */
function differenceIn(
  block: ReadonlyMap<string, string>,
): { expected?: string; actual?: string } | undefined {
  const text = block.get('diff') ?? block.get('details') ?? block.get('values')
  if (text === undefined) return undefined
  const lines = text.split('\n').map((line) => line.trim())
  const signed = (sign: string): string[] =>
    lines.filter((line) => line.startsWith(sign) && !line.startsWith(sign.repeat(3)))
  const [minus, plus] = [signed('-'), signed('+')]
  if (minus.length !== 1 || plus.length !== 1) return undefined
  const [removed, added] = [minus[0]!.slice(1).trim(), plus[0]!.slice(1).trim()]
  return block.has('diff')
    ? { expected: removed, actual: added }
    : { expected: added, actual: removed }
}

/** `file:line:column`, alone or in a frame, or the fields of node-tap. */
function location(text: string): Frame | undefined {
  const file = /^ *fileName: (.*)$/m.exec(text)?.[1]
  const line = /^ *lineNumber: (\d+)$/m.exec(text)?.[1]
  if (file !== undefined && line !== undefined) return { file, line: Number(line) }
  const alone = /^(\S[^():]*):(\d+):\d+$/.exec(text.trim())
  if (alone !== null) return { file: alone[1]!, line: Number(alone[2]) }
  return parseFrames(text).find(isOwnFrame)
}

function isTestFrame({ file }: Frame): boolean {
  return /test|spec/.test(file) && isOwnFrame({ file })
}

/** Whether a frame is of the project, as far as its path tells. */
function isOwnFrame({ file }: Pick<Frame, 'file'>): boolean {
  return !file.includes('node_modules/') && !file.startsWith('node:')
}
