import { untakenName } from '../internal/text.js'
import { isFileFailure, isFixtureFailure } from './file-failure.js'

/** Outcome by test name; duplicate names are numbered. */
export type Outcomes = ReadonlyMap<string, 'pass' | 'fail' | 'skip'>

/** One line of a stack trace. */
export interface Frame {
  /** As printed: absolute or relative. */
  readonly file: string
  readonly line: number
}

/** What is known about one failing test. */
export interface Failure {
  /** Name as in {@link Outcomes}. */
  readonly name: string
  readonly message: string
  /** As printed; undefined when the report has none. */
  readonly expected?: string | undefined
  readonly actual?: string | undefined
  /** Innermost first. */
  readonly frames: readonly Frame[]
  /** A line of the test; undefined when the report shows none. */
  readonly at?: Frame | undefined
}

/**
 * Supported reports: `lines` has one array in JSON for each test; `any` tries all of them and falls
 * back to the exit code.
 */
export type ReportKind = 'tap' | 'lines' | 'unittest' | 'pytest' | 'any'

/** Tests of a report that are read. */
export const MAX_TESTS = 50_000
/** Failures of a report whose details are read. */
export const MAX_DETAILED = 200
/** Stack frames of a failure that are kept. */
export const MAX_FRAMES = 20

/** Stands for a check without a report: one test, which passes with exit code 0. */
export const WHOLE_CHECK = 'the check'

const FRAME = new RegExp(
  '(?<![^\\s:()\'"])([^\\s:()\'"]+):(\\d+)(?::\\d+)?|File "([^"]+)", line (\\d+)',
  'g',
)

/** What Chai writes between the two values of a comparison. */
const CHAI_VERBS = [
  ' to deeply equal ', ' to strictly equal ', ' to loosely equal ', ' to deep equal ',
  ' to equal ', ' to be equal ', ' to eql ', ' to be ',
]

/** Stack frames of JavaScript and Python in the order in which they were printed. */
export function parseFrames(text: string): Frame[] {
  const frames: Frame[] = []
  for (const [, place, line, pythonFile, pythonLine] of text.matchAll(FRAME)) {
    const file = place === undefined ? pythonFile! : pathIn(place)
    if (file !== null) frames.push({ file, line: Number(line ?? pythonLine) })
    if (frames.length === 60) break
  }
  return frames
}

/** The path of a file at the end of a word; null for none. */
function pathIn(word: string): string | null {
  const start = word.search(/\/|\.{0,2}[\w@-]/)
  if (start === -1 || !/[^.]\.\w+$/.test(word)) return null
  return word.slice(start).replace(/^\/\/(?=\/)/, '')
}

/** The compared values in `1 !== 2`, `1 != 2`, `assert 1 == 2` or `expected 1, got 2`. */
export function comparedIn(message: string): { expected?: string; actual?: string } {
  for (const line of message.split('\n')) {
    const sign = / (?:!==?|==) /.exec(line)
    if (sign === null) continue
    const right = line.slice(sign.index + sign[0].length)
    const left = line.slice(0, sign.index)
    const actual = left.replace(/^\s*(?:E\s+)?(?:\w*Error: )?(?:assert )?/, '')
    if (isShown(actual) && isShown(right)) return { actual: actual.trim(), expected: right.trim() }
  }
  const shown = shownIn(message)
  if (shown !== null) return shown
  for (const { index } of message.matchAll(/expected:? /gi)) {
    const rest = message.slice(index, index + 260)
    const said = /^expected:? (.+?)(?:,| but)? (?:got|received|was):? (.{1,120})/i.exec(rest)
    if (said !== null) return { expected: said[1]!.trim(), actual: said[2]!.trim() }
  }
  return {}
}

/** Of a message of Chai, or of Jest, which writes a line for each value. */
function shownIn(message: string): { expected: string; actual: string } | null {
  let expected: string | undefined
  for (const line of message.split('\n', 40)) {
    const said = chaiComparison(line.slice(0, 400))
    if (said !== null) return said
    const [, side, value] = /^\s*(Expected|Received)(?: value)?: +(\S.*)$/.exec(line) ?? []
    if (side === 'Expected') expected = value
    else if (side === 'Received' && expected !== undefined && value !== undefined)
      return isShown(value) && isShown(expected) ? { expected, actual: value } : null
  }
  return null
}

/** The values of `expected 1 to equal 2 // Object.is equality`. */
function chaiComparison(line: string): { expected: string; actual: string } | null {
  const start = line.indexOf('expected ')
  // Only the type of the error may come before.
  if (start < 0 || (start > 0 && !/^\w+: $/.test(line.slice(0, start)))) return null
  for (const verb of CHAI_VERBS) {
    const at = line.indexOf(verb, start)
    if (at < 0) continue
    const [right = ''] = line.slice(at + verb.length).split(' // ', 1)
    const actual = line.slice(start + 'expected '.length, at)
    return actual === '' || right === '' ? null : { expected: right, actual }
  }
  return null
}

function isShown(value: string): boolean {
  return value.length > 0 && value.length <= 200
}

/** Adds an outcome; a name that is taken gets a number. */
export function addOutcome(
  outcomes: Map<string, 'pass' | 'fail' | 'skip'>,
  name: string,
  outcome: 'pass' | 'fail' | 'skip',
): string {
  const unique = untakenName(name, outcomes, (taken, number) => `${taken} #${number}`)
  outcomes.set(unique, outcome)
  return unique
}

export function passCount(outcomes: Outcomes): number {
  let passed = 0
  for (const outcome of outcomes.values()) if (outcome === 'pass') passed++
  return passed
}

/**
 * Whether `after` is progress over `before`: strictly more tests pass, one of them failed, every
 * test that passed still passes, and none is missing or newly skipped. Tests that were not told of
 * before may have passed unseen, such as those whose line had the output of the code in it.
 */
export function isProgress(before: Outcomes, after: Outcomes): boolean {
  if (passCount(after) <= passCount(before) || after.size < before.size) return false
  let repairs = false
  for (const [name, outcome] of before) {
    const now = after.get(name)
    if (outcome === 'pass' && now !== 'pass') return false
    if (outcome !== 'fail' || now === 'fail') continue
    const mayVanish = isFileFailure(name) || isFixtureFailure(name)
    if (now !== 'pass' && !mayVanish) return false
    repairs = true
  }
  return repairs
}

/** Whether every outcome in `some` is the same in `all`. */
export function agrees(some: Outcomes, all: Outcomes): boolean {
  return some.size > 0 && [...some].every(([name, outcome]) => all.get(name) === outcome)
}
