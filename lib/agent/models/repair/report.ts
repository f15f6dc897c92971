/** How a test ended, by its name; names that come twice are numbered. */
export type Outcomes = ReadonlyMap<string, 'pass' | 'fail' | 'skip'>

/** One line of a stack trace. */
export interface Frame {
  /** As it was printed: absolute or relative. */
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
  /** Where the test stands. */
  readonly at?: Frame | undefined
}

/** Reports that can be read; `any` tries them all and falls back to the exit code. */
export type ReportKind = 'tap' | 'unittest' | 'pytest' | 'any'

/** The name under which a check counts that reports no tests: one test, passed by exit code 0. */
export const WHOLE_CHECK = 'the check'

/** Stack frames of JavaScript and Python in the order in which they were printed. */
export function parseFrames(text: string): Frame[] {
  const pattern =
    /(?:file:\/\/)?((?:\/|\.{0,2}[\w@-])[^\s:()'"]*\.\w+):(\d+)(?::\d+)?|File "([^"]+)", line (\d+)/g
  return [...text.matchAll(pattern)].slice(0, 60).map((found) => ({
    file: found[1] ?? found[3]!,
    line: Number(found[2] ?? found[4]),
  }))
}

/** What a message says was compared: `1 !== 2`, `1 != 2`, `assert 1 == 2`, `expected 1, got 2`. */
export function comparedIn(message: string): { expected?: string; actual?: string } {
  const unequal =
    /^\s*(?:E\s+)?(?:\w*Error: )?(?:assert )?(.{1,200}?) (?:!==?|==) (.{1,200})$/m.exec(message)
  if (unequal !== null) return { actual: unequal[1]!.trim(), expected: unequal[2]!.trim() }
  const told = /expected:? (.{1,120}?)(?:,| but)? (?:got|received|was):? (.{1,120})/i.exec(message)
  return told === null ? {} : { expected: told[1]!.trim(), actual: told[2]!.trim() }
}

/** Adds an outcome under a name that is not taken yet. */
export function addOutcome(
  outcomes: Map<string, 'pass' | 'fail' | 'skip'>,
  name: string,
  outcome: 'pass' | 'fail' | 'skip',
): string {
  let unique = name
  for (let i = 2; outcomes.has(unique); i++) unique = `${name} #${i}`
  outcomes.set(unique, outcome)
  return unique
}

/** How many tests passed. */
export function passCount(outcomes: Outcomes): number {
  let passed = 0
  for (const outcome of outcomes.values()) if (outcome === 'pass') passed++
  return passed
}

/**
 * A test that stands for a whole file that could not be loaded; its name goes when the file loads.
 */
export function isFileFailure(name: string): boolean {
  return /^\S*[\\/]\S*\.\w+$/.test(name) || name.includes('_FailedTest') || /^ERROR /.test(name)
}

/**
 * Is `after` progress over `before`? Strictly more tests pass, none that passed does not, none is
 * gone or newly skipped, and there are not fewer tests.
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

/** True when all of `some` ended as in `all`. */
export function agrees(some: Outcomes, all: Outcomes): boolean {
  return some.size > 0 && [...some].every(([name, outcome]) => all.get(name) === outcome)
}

/** True when the same tests ended the same. */
export function isSameOutcome(a: Outcomes, b: Outcomes): boolean {
  return a.size === b.size && (a.size === 0 || agrees(a, b))
}
