import { addOutcome, comparedIn, type Failure, type Outcomes, parseFrames } from './report.js'

const LINE = /^(PASSED|FAILED|ERROR|XFAIL|XPASS|SKIPPED) (.*)$/

/** The test at the start of a summary line; its bracketed parameters may contain any text. */
function testName(rest: string): string {
  return /^[^\s[]+(?:\[.*?\](?= - |$))?/.exec(rest)?.[0] ?? rest.trim()
}

/** Outcomes of `pytest -rA`, from the lines of its short summary. */
export function parsePytest(output: string): Outcomes {
  const outcomes = new Map<string, 'pass' | 'fail' | 'skip'>()
  for (const line of output.split('\n')) {
    const found = LINE.exec(line)
    if (found === null) continue
    const [, status, rest] = found
    const name = testName(rest!)
    if (status === 'PASSED' || status === 'XFAIL') addOutcome(outcomes, name, 'pass')
    else if (status === 'SKIPPED') addOutcome(outcomes, rest!.split(': ', 1)[0]!, 'skip')
    else if (status === 'ERROR' && !name.includes('::'))
      addOutcome(outcomes, `ERROR ${name}`, 'fail')
    else if (outcomes.get(name) !== undefined) outcomes.set(name, 'fail')
    else outcomes.set(name, 'fail')
  }
  return outcomes
}

/** Failures of `pytest --tb=short -rA`, named as in the summary. */
export function parsePytestFailures(output: string): Failure[] {
  const names = [...output.matchAll(/^(FAILED|ERROR) (.*)$/gm)].map(([, status, rest]) => {
    const name = testName(rest!)
    return status === 'ERROR' && !name.includes('::') ? `ERROR ${name}` : name
  })
  const sections = output.split(/^_{3,} (?=\S)/m).slice(1)
  return [...new Set(names)].map((name) => {
    const title = name.startsWith('ERROR ')
      ? `ERROR collecting ${name.slice(6)}`
      : name.split('::').slice(1).join('.')
    const section =
      sections.find((text) => text.startsWith(`${title} `)) ??
      sections.find((text) => text.includes(`${title} _`)) ??
      ''
    const body = section.split(/^={3,} /m)[0]!
    const message = [...body.matchAll(/^E {1,3}(.*)$/gm)].map(([, text]) => text).join('\n')
    const frames = parseFrames(body)
    return {
      name,
      message,
      ...comparedIn(message),
      frames: [...frames].reverse(),
      at: frames.find(({ file }) => /test/.test(file)),
    }
  })
}
