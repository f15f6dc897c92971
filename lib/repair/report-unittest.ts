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

const TEST = /^ *([\p{L}\p{M}\p{N}_.]+) \(([\p{L}\p{M}\p{N}_.]+)\)/u
const STATUS = /^(?:ok|FAIL|ERROR|expected failure|unexpected success)$|^skipped\b/

/** The same name in all Python versions: before 3.11 the printed id lacks the method. */
function fullName(method: string, id: string): string {
  return id.endsWith(`.${method}`) ? id : `${id}.${method}`
}

/**
 * Outcomes of `python3 -m unittest -v`. What the code writes itself stands between the name of a
 * test and its outcome, or in one word with it: then the headers of the failures tell which tests
 * have failed, once all have run.
 */
export function parseUnittest(output: string): Outcomes {
  const outcomes = new Map<string, 'pass' | 'fail' | 'skip'>()
  const untold = new Set<string>()
  let current = ''
  const tell = (name: string, outcome: 'pass' | 'fail' | 'skip'): void => {
    outcomes.set(name, outcome)
    untold.delete(name)
    current = ''
  }
  for (const line of output.split('\n')) {
    if (outcomes.size >= MAX_TESTS) break
    const header = /^(FAIL|ERROR): ([^\s()]+) \(([^\s()]+)\)/.exec(line)
    if (header !== null) {
      tell(fullName(header[2]!, header[3]!), 'fail')
      continue
    }
    const test = TEST.exec(line)
    if (test !== null) current = fullName(test[1]!, test[2]!)
    if (current !== '' && !outcomes.has(current)) {
      outcomes.set(current, 'fail')
      untold.add(current)
    }
    const status = statusOf(line)
    if (status === undefined || current === '') continue
    if (/^(ok|expected failure)$/.test(status)) tell(current, 'pass')
    else tell(current, status.startsWith('skipped') ? 'skip' : 'fail')
  }
  if (/^Ran \d+ tests? in /m.test(output)) for (const name of untold) outcomes.set(name, 'pass')
  return outcomes
}

function statusOf(line: string): string | undefined {
  if (STATUS.test(line)) return line
  for (let at = line.indexOf(' ... '); at !== -1; at = line.indexOf(' ... ', at + 1)) {
    const status = line.slice(at + 5)
    if (STATUS.test(status)) return status
  }
  return undefined
}

/** Failures that `python3 -m unittest` reports; of the subtests of a test, only the first. */
export function parseUnittestFailures(output: string): Failure[] {
  const failures: Failure[] = []
  const seen = new Map<string, 'pass' | 'fail' | 'skip'>()
  const parts = output.split(/^={40,}\n(?=(?:FAIL|ERROR): )/m).slice(1)
  for (const part of parts) {
    const header = /^(?:FAIL|ERROR): ([^\s()]+) \(([^\s()]+)\)/.exec(part)
    if (header === null) continue
    const body = part.split(/^-{40,}$/m)[1] ?? ''
    const name = fullName(header[1]!, header[2]!)
    if (seen.has(name)) continue
    if (failures.length === MAX_DETAILED) break
    addOutcome(seen, name, 'fail')
    const frames = parseFrames(body)
    const message = withoutTraceback(body.slice(Math.max(0, body.search(/^\w/m)))).trim()
    failures.push({
      name,
      message,
      ...comparedIn(message.split('\n')[0] ?? ''),
      frames: [...frames].reverse().slice(0, MAX_FRAMES),
      at: frames.find(({ file }) => /test/.test(file)),
    })
  }
  return failures
}

/** Removes the lines from the first `Traceback` up to the next one that is not indented. */
function withoutTraceback(text: string): string {
  const lines = text.split('\n')
  const from = lines.findIndex((line) => line.startsWith('Traceback'))
  const to = lines.findIndex(
    (line, i) => i > from && /^\S/.test(line) && !line.startsWith('Traceback'),
  )
  return from === -1 || to === -1 ? text : lines.toSpliced(from, to - from).join('\n')
}
