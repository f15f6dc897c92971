import { loadFailure, LOADING } from './load-failure.js'
import {
  addOutcome,
  comparedIn,
  type Failure,
  MAX_DETAILED,
  MAX_FRAMES,
  MAX_TESTS,
  type Outcomes,
  parseFrames,
} from './report.js'

/** One test in a report of lines such as `["pass",{"title":"adds","fullTitle":"many adds"}]`. */
export interface TestLine {
  readonly outcome: 'pass' | 'fail' | 'skip'
  readonly name: string
  /** Absolute path of its file; empty when the report has none. */
  readonly file: string
  readonly details: Readonly<Record<string, unknown>>
}

/** The tests in a report of lines, in their order. */
export function* testLines(output: string): Generator<TestLine> {
  let count = 0
  for (const line of output.split('\n')) {
    // A test may have printed something that does not end its line.
    const found = /\["(pass|fail|skip)",\{"title":/.exec(line)
    if (found === null) continue
    const details = recordIn(line.slice(found.index))
    if (details === null) continue
    const { title, fullTitle, file } = details
    if (typeof title !== 'string') continue
    const full = typeof fullTitle === 'string' ? fullTitle : title
    const suite = full.endsWith(` ${title}`) ? full.slice(0, -title.length - 1) : ''
    yield {
      outcome: found[1] as TestLine['outcome'],
      name: suite === '' ? title : `${suite} > ${title}`,
      file: typeof file === 'string' ? file : '',
      details,
    }
    if (++count === MAX_TESTS) return
  }
}

/** The second item of an array in JSON; null for none. */
function recordIn(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    const second: unknown = Array.isArray(value) ? value[1] : null
    return typeof second === 'object' && second !== null ? { ...second } : null
  } catch {
    return null
  }
}

/** Outcomes of Mocha's `json-stream` and of Jest, whose report is turned into the same lines. */
export function parseLines(output: string): Outcomes {
  const outcomes = new Map<string, 'pass' | 'fail' | 'skip'>()
  for (const { name, outcome } of testLines(output)) addOutcome(outcomes, name, outcome)
  if (outcomes.size === 0 && loadFailure(output) !== null) outcomes.set(LOADING, 'fail')
  return outcomes
}

export function parseLinesFailures(output: string): Failure[] {
  const failures: Failure[] = []
  const seen = new Map<string, 'pass' | 'fail' | 'skip'>()
  for (const { name: title, outcome, file, details } of testLines(output)) {
    const name = addOutcome(seen, title, outcome)
    if (outcome !== 'fail') continue
    const text = (key: string): string | undefined => {
      const value = details[key]
      return typeof value === 'string' ? value : undefined
    }
    const said = text('err') ?? ''
    const trace = text('stack') ?? said
    const start = said.search(/\n {2,12}at /)
    const message = (start < 0 ? said : said.slice(0, start)).trim()
    const compared = comparedIn(message)
    const frames = parseFrames(withoutMessage(trace, message)).slice(0, MAX_FRAMES)
    failures.push({
      name,
      message: withType(trace, message),
      expected: compared.expected ?? text('expected'),
      actual: compared.actual ?? text('actual'),
      frames,
      at: frames.find((frame) => isSame(frame.file, file)),
    })
    if (failures.length === MAX_DETAILED) break
  }
  const whole = seen.size === 0 ? loadFailure(output) : null
  return whole === null ? failures : [whole]
}

/** The frames of a stack, which starts with the message. */
function withoutMessage(trace: string, message: string): string {
  const at = trace.indexOf(message)
  return at < 0 ? trace : trace.slice(at + message.length)
}

/** The type of the error before its message, when only the stack has it. */
function withType(trace: string, message: string): string {
  const type = /^(\w*(?:Error|Exception))(?: \[\w+\])?: /.exec(trace)?.[1]
  return type === undefined || message.startsWith(type) ? message : `${type}: ${message}`
}

function isSame(printed: string, file: string): boolean {
  return printed === file || (file !== '' && file.endsWith(`/${printed.replace(/^\.\//, '')}`))
}
