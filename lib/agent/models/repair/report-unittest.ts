import { addOutcome, comparedIn, type Failure, type Outcomes, parseFrames } from './report.js'

const TEST = /^ *(\w+) \(([\w.]+)\)/
const STATUS = / \.\.\. (ok|FAIL|ERROR|skipped\b.*|expected failure|unexpected success)$/

/** The same name in all Python versions: before 3.11 the printed id lacks the method. */
function fullName(method: string, id: string): string {
  return id.endsWith(`.${method}`) ? id : `${id}.${method}`
}

/** Outcomes of `python3 -m unittest -v`. */
export function parseUnittest(output: string): Outcomes {
  const outcomes = new Map<string, 'pass' | 'fail' | 'skip'>()
  let current = ''
  for (const line of output.split('\n')) {
    const header = /^(FAIL|ERROR): (\w+) \(([\w.]+)\)/.exec(line)
    if (header !== null) {
      const name = mark(fullName(header[2]!, header[3]!))
      outcomes.set(name, 'fail')
      current = ''
      continue
    }
    const test = TEST.exec(line)
    if (test !== null) current = mark(fullName(test[1]!, test[2]!))
    if (current !== '' && !outcomes.has(current)) outcomes.set(current, 'fail')
    const status = STATUS.exec(line)?.[1]
    if (status === undefined || current === '') continue
    if (/^(ok|expected failure)$/.test(status)) outcomes.set(current, 'pass')
    else if (status.startsWith('skipped')) outcomes.set(current, 'skip')
    else outcomes.set(current, 'fail')
    current = ''
  }
  return outcomes
}

function mark(name: string): string {
  return name
}

/** Failures that `python3 -m unittest` reports; of the subtests of a test, only the first. */
export function parseUnittestFailures(output: string): Failure[] {
  const failures: Failure[] = []
  const seen = new Map<string, 'pass' | 'fail' | 'skip'>()
  const parts = output.split(/^={40,}\n(?=(?:FAIL|ERROR): )/m).slice(1)
  for (const part of parts) {
    const header = /^(?:FAIL|ERROR): (\w+) \(([\w.]+)\)/.exec(part)
    if (header === null) continue
    const body = part.split(/^-{40,}$/m)[1] ?? ''
    const name = fullName(header[1]!, header[2]!)
    if (seen.has(name)) continue
    addOutcome(seen, name, 'fail')
    const frames = parseFrames(body)
    const message = body
      .slice(Math.max(0, body.search(/^\w[\w.]*(?:Error|Exception|Exit|Warning|Interrupt)?\b.*$/m)))
      .replace(/^Traceback[\s\S]*?^(?=\S)(?!Traceback)/m, '')
      .trim()
    failures.push({
      name,
      message,
      ...comparedIn(message.split('\n')[0] ?? ''),
      frames: [...frames].reverse(),
      at: frames.find(({ file }) => /test/.test(file)),
    })
  }
  return failures
}
