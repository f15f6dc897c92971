import {
  addOutcome,
  comparedIn,
  type Failure,
  type Frame,
  type Outcomes,
  parseFrames,
} from './report.js'

const POINT = /^( *)(not ok|ok) \d+((?: .*)?)$/
const DIRECTIVE = / # (?:SKIP|TODO)\b/

/** Removes the escapes that node:test writes in the Test Anything Protocol. */
function plain(name: string): string {
  return name.replace(/\\([\\#])/g, '$1').trim()
}

interface Point {
  readonly name: string
  readonly ok: boolean
  readonly skip: boolean
  readonly line: number
}

/** All test points, suites included, named with the path of their suites. */
function points(lines: readonly string[]): Point[] {
  const titles: string[] = []
  const found: Point[] = []
  lines.forEach((line, index) => {
    const subtest = /^( *)# Subtest: (.*)$/.exec(line)
    if (subtest !== null) {
      titles.length = Math.floor(subtest[1]!.length / 4)
      titles.push(plain(subtest[2]!))
      return
    }
    const point = POINT.exec(line)
    if (point === null) return
    const depth = Math.floor(point[1]!.length / 4)
    const [title = '', directive] = point[3]!.split(DIRECTIVE, 2)
    if (title !== '' && !title.startsWith(' - ')) return
    const name = [...titles.slice(0, depth), plain(title.slice(3))].join(' > ')
    found.push({ name, ok: point[2] === 'ok', skip: directive !== undefined, line: index })
  })
  return found
}

/** Outcomes in the report of `node --test-reporter=tap`. */
export function parseTap(output: string): Outcomes {
  const outcomes = new Map<string, 'pass' | 'fail' | 'skip'>()
  for (const { name, ok, skip } of points(output.split('\n'))) {
    addOutcome(outcomes, name, skip ? 'skip' : ok ? 'pass' : 'fail')
  }
  return outcomes
}

/** The failing tests of such a report with their diagnostics, without the suites around them. */
export function parseTapFailures(output: string): Failure[] {
  const lines = output.split('\n')
  const seen = new Map<string, 'pass' | 'fail' | 'skip'>()
  const failures: Failure[] = []
  for (const point of points(lines)) {
    const name = addOutcome(seen, point.name, point.ok ? 'pass' : 'fail')
    if (point.ok || point.skip) continue
    const details = diagnostics(lines, point.line + 1)
    if (details.get('failureType') === 'subtestsFailed') continue
    const stack = details.get('stack') ?? ''
    const message = [details.get('error') ?? '', details.get('name') ?? ''].join('\n').trim()
    const crash =
      stack === '' && message.startsWith('test failed')
        ? lines
            .slice(Math.max(0, point.line - 60), point.line)
            .filter((line) => line.startsWith('# '))
        : []
    const compared = comparedIn(message)
    failures.push({
      name,
      message: [message, ...crash.map((line) => line.slice(2))].join('\n'),
      expected: details.get('expected') ?? compared.expected,
      actual: details.get('actual') ?? compared.actual,
      frames: parseFrames([stack, ...crash].join('\n')),
      at: location(details.get('location') ?? ''),
    })
  }
  return failures
}

function location(text: string): Frame | undefined {
  const found = /^(.*?):(\d+):\d+$/.exec(text)
  return found === null ? undefined : { file: found[1]!, line: Number(found[2]) }
}

/** Top-level keys of the YAML block that starts at `from`, with nested values as text. */
function diagnostics(lines: readonly string[], from: number): Map<string, string> {
  const found = new Map<string, string>()
  const margin = /^( *)---$/.exec(lines[from] ?? '')?.[1]
  if (margin === undefined) return found
  const ends = [`${margin}...`, `${margin}---`]
  let key = ''
  for (let i = from + 1; i < lines.length && !ends.includes(lines[i]!); i++) {
    const line = lines[i]!.slice(margin.length)
    const entry = /^(\w+):(?: (.*))?$/.exec(line)
    if (entry !== null) {
      key = entry[1]!
      const value = entry[2] ?? ''
      found.set(key, /^[|>]-?$/.test(value) ? '' : unquote(value))
    } else if (key !== '') {
      const before = found.get(key)!
      found.set(key, before === '' ? line.slice(2) : `${before}\n${line.slice(2)}`)
    }
  }
  return found
}

function unquote(value: string): string {
  if (/^'.*'$/.test(value))
    return value
      .slice(1, -1)
      .replace(/''/g, "'")
      .replace(/\\(['\\])/g, '$1')
  if (/^".*"$/.test(value)) return value.slice(1, -1).replace(/\\(["\\])/g, '$1')
  return value
}
