import { untakenName } from '../../../internal/untaken-name.js'

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

/** Supported reports; `any` tries all of them and falls back to the exit code. */
export type ReportKind = 'tap' | 'unittest' | 'pytest' | 'any'

/** Stands for a check without a report: one test, which passes with exit code 0. */
export const WHOLE_CHECK = 'the check'

const FRAME = new RegExp(
  '(?<![^\\s:()\'"])([^\\s:()\'"]+):(\\d+)(?::\\d+)?|File "([^"]+)", line (\\d+)',
  'g',
)

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
  for (const { index } of message.matchAll(/expected:? /gi)) {
    const rest = message.slice(index, index + 260)
    const said = /^expected:? (.+?)(?:,| but)? (?:got|received|was):? (.{1,120})/i.exec(rest)
    if (said !== null) return { expected: said[1]!.trim(), actual: said[2]!.trim() }
  }
  return {}
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

/** Whether a test stands for a file that failed to load; it disappears when the file loads. */
function isFileFailure(name: string): boolean {
  const isPath = /^\S+$/.test(name) && /[\\/]/.test(name) && /\.\w+$/.test(name)
  return isPath || name.includes('_FailedTest') || name.startsWith('ERROR ')
}

/**
 * Whether `after` is progress over `before`: strictly more tests pass, every test that passed still
 * passes, and none is missing or newly skipped.
 */
export function isProgress(before: Outcomes, after: Outcomes): boolean {
  if (passCount(after) <= passCount(before) || after.size < before.size) return false
  for (const [name, outcome] of before) {
    const now = after.get(name)
    if (outcome === 'pass' && now !== 'pass') return false
    if (outcome === 'fail' && now !== 'fail' && now !== 'pass' && !isFileFailure(name)) return false
  }
  return true
}

/** Whether every outcome in `some` is the same in `all`. */
export function agrees(some: Outcomes, all: Outcomes): boolean {
  return some.size > 0 && [...some].every(([name, outcome]) => all.get(name) === outcome)
}

/** Whether both contain the same tests with the same outcomes. */
export function isSameOutcome(a: Outcomes, b: Outcomes): boolean {
  return a.size === b.size && (a.size === 0 || agrees(a, b))
}
