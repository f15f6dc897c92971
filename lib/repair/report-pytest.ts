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

/** Characters of a message that is no error of the code. */
const MAX_MESSAGE = 1_000

const LINE = /^(PASSED|FAILED|ERROR|XFAIL|XPASS|SKIPPED) (.*)$/

/**
 * The test at the start of a summary line, which goes on with ` - ` and a message. The parameters
 * in brackets may contain any text: they end at the last bracket before such a message.
 */
function testName(rest: string): string {
  const open = rest.search(/[\s[]/)
  if (open < 0 || rest[open] !== '[') return rest.slice(0, open < 0 ? rest.length : open)
  // A message may have brackets as well, and so may a parameter have ` - `.
  const close = rest.indexOf('] - ', open)
  if (close >= 0) return rest.slice(0, close + 1)
  const last = rest.lastIndexOf(']')
  return last < open ? rest.trim() : rest.slice(0, last + 1)
}

/** Outcomes of `pytest -rA`, from the lines of its short summary. */
export function parsePytest(output: string): Outcomes {
  const outcomes = new Map<string, 'pass' | 'fail' | 'skip'>()
  for (const line of output.split('\n')) {
    if (outcomes.size >= MAX_TESTS) break
    const found = LINE.exec(line)
    if (found === null) continue
    const [, status, rest] = found
    // Of a passed test there is no message, so its parameters end the line.
    const name = status === 'PASSED' ? rest!.trim() : testName(rest!)
    if (status === 'PASSED') addOutcome(outcomes, name, 'pass')
    else if (status === 'XFAIL') addOutcome(outcomes, name, 'pass')
    else if (status === 'SKIPPED') addOutcome(outcomes, rest!.split(': ', 1)[0]!, 'skip')
    else if (status === 'ERROR' && !name.includes('::'))
      addOutcome(outcomes, `ERROR ${name}`, 'fail')
    else outcomes.set(name, 'fail')
  }
  return outcomes
}

/** Failures of `pytest --tb=short -rA`, named as in the summary. */
export function parsePytestFailures(output: string): Failure[] {
  const names = new Set<string>()
  for (const line of output.split('\n')) {
    const found = /^(FAILED|ERROR) (.*)$/.exec(line)
    if (found === null) continue
    const name = testName(found[2]!)
    // A captured message of a log may begin like an error of collection.
    const isFile = found[1] === 'ERROR' && /\.\w+$/.test(name) && !name.includes('::')
    if (isFile) names.add(`ERROR ${name}`)
    else if (name.includes('::')) names.add(name)
    if (names.size >= MAX_DETAILED) break
  }
  const sections = sectionsOf(output)
  return [...names].map((name) => {
    const body = bodyOf(name, sections)
    const errors = [...body.matchAll(/^E {1,3}(.*)$/gm)].map(([, text]) => text).join('\n')
    // What pytest says itself has no such mark.
    const message = errors === '' ? body.trim().slice(0, MAX_MESSAGE) : errors
    const frames = parseFrames(body).reverse()
    return {
      name,
      message,
      ...comparedIn(message),
      frames: frames.slice(0, MAX_FRAMES),
      at: [...frames].reverse().find(({ file }) => /test/.test(file)),
    }
  })
}

/** The parts of a report by their titles, which stand between underscores. */
function sectionsOf(output: string): ReadonlyMap<string, readonly string[]> {
  const sections = new Map<string, string[]>()
  let lines: string[] | null = null
  const ends: [string, string[]][] = []
  for (const line of output.split('\n')) {
    const title = /^_{3,} (\S.*?) _{3,}$/.exec(line)?.[1]
    if (title !== undefined) ends.push([title, (lines = [])])
    else if (/^={3,} \S/.test(line)) lines = null
    else lines?.push(line)
  }
  for (const [title, body] of ends)
    sections.set(title, [...(sections.get(title) ?? []), body.join('\n')])
  return sections
}

/**
 * The part that describes a failure. Tests of the same name in several files have parts of the
 * same title: the one whose trace has the file is theirs.
 */
function bodyOf(name: string, sections: ReadonlyMap<string, readonly string[]>): string {
  if (name.startsWith('ERROR ')) return sections.get(`ERROR collecting ${name.slice(6)}`)?.[0] ?? ''
  const at = name.indexOf('::')
  const [file, path] = [name.slice(0, at), name.slice(at + 2)]
  const open = path.indexOf('[')
  const bare = (open < 0 ? path : path.slice(0, open)).split('::').join('.')
  const title = bare + (open < 0 ? '' : path.slice(open))
  const titles = [title, `ERROR at setup of ${title}`, `ERROR at teardown of ${title}`]
  const bodies = titles.flatMap((text) => sections.get(text) ?? [])
  return bodies.find((body) => body.includes(`${file}:`)) ?? bodies[0] ?? ''
}
