import { addOutcome, type Outcomes, passCount, type ReportKind } from './report.js'
import { filtered } from './plan.js'
import { parseOutcomes } from './read-report.js'

const COUNTED = 'tests that passed: '
const END = `END{show(); print "${COUNTED}" n+0}`

/** Titles of tests are told once it is known that one of them, or one in it, failed. */
const TAP =
  'function show() {} function depth() {match($0, /^ */); return RLENGTH} ' +
  'function drop(from) {for (i = from; i <= most; i++) held[i] = ""} ' +
  '/^ *# Subtest: /{at = depth(); drop(at); if (at > 200) next; held[at] = $0; ' +
  'if (at > most) most = at; next} ' +
  '/^ *ok [0-9]/{n++; drop(depth()); next} ' +
  '/^ *not ok /{for (i = 0; i <= most; i++) if (held[i] != "") print held[i]; drop(0)} ' +
  `{print} ${END}`
/** A test with a docstring has its outcome on the line after its name. */
const UNITTEST =
  'function show() {if (held != "") print held; held = ""} ' +
  '/^ *[A-Za-z0-9_.]+ [(][A-Za-z0-9_.]+[)]$/{show(); held = $0; next} ' +
  `/ [.][.][.] ok$/{n++; held = ""; next} {show(); print} ${END}`
const LINES = `function show() {} /\\["pass",[{]"title":/{n++; next} {print} ${END}`
const PYTEST = `function show() {} /^PASSED /{n++; next} {print} ${END}`

/** Programs that count tests that passed and leave out the lines that tell of them. */
const PROGRAMS: Readonly<Record<string, string>> = {
  tap: TAP, lines: LINES, pytest: PYTEST, unittest: UNITTEST,
}

/**
 * A command that counts the tests that passed instead of naming them, for suites whose report is
 * too long; null for a report of another kind.
 */
export function brief(command: string, kind: ReportKind): string | null {
  const program = PROGRAMS[kind]
  return program === undefined ? null : filtered(command, ` | awk '${program}'`)
}

/** The outcomes that {@link brief} tells; those that passed have numbers for names. */
export function briefOutcomes(kind: ReportKind, output: string, exitCode: number): Outcomes {
  const outcomes = new Map(parseOutcomes(kind, output, exitCode))
  const counted = /^tests that passed: (\d{1,7})$/m.exec(output)
  const passed = Number(counted?.[1] ?? 0)
  for (let at = 1; at <= passed; at++) addOutcome(outcomes, `passed ${at}`, 'pass')
  return outcomes
}

/**
 * As `isProgress`, of two brief reports: a test that failed and passes now has no name any
 * more, and one that passed and fails now has got one.
 */
export function isBriefProgress(before: Outcomes, after: Outcomes): boolean {
  if (passCount(after) <= passCount(before) || after.size < before.size) return false
  for (const [name, outcome] of after) {
    if (outcome === 'fail' && before.get(name) !== 'fail') return false
  }
  return [...before].some(([name, outcome]) => outcome === 'fail' && after.get(name) !== 'fail')
}
