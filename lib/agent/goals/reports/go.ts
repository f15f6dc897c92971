/**
 * Go's own report: `go test -json` prints one event a line, and wraps whatever the tests print into
 * events of kind `output`. The flag comes in through GOFLAGS, so it reaches a `go test` behind make
 * or a script as well.
 *
 * @module
 */
import { LongWork } from '../../../internal/time.js'
import type { TestOutcome } from '../../test-outcomes.js'
import { nodePackages } from '../runner-files.js'
import { collectTests, MAX_LISTED } from './outcomes.js'
import { program } from './recognise.js'
import { textLines } from './text-lines.js'
import type { ReportedTest, ReportProblem, TestRunner } from './types.js'

export const go: TestRunner = {
  // GOFLAGS would give the flag to every other go command as well.
  command: {
    starts: program((name, [verb]) => name === 'go' && verb === 'test'),
    avoids: (text) => /\bGOFLAGS=|(?:^|[\s;&|(])go +(?!test\b)[a-z]/m.test(text),
  },
  inject: () => ({ files: {}, env: { GOFLAGS: '-json' } }),
  read: async (_place, output) => collectTests(await readGo(output)),
  packages: (cwd) => nodePackages(cwd),
  readable: readableGo,
}

interface GoEvent {
  readonly Action: string
  readonly Package?: string
  readonly ImportPath?: string
  readonly Test?: string
  readonly Output?: string
}

/** Characters that are kept of what a failing test printed. */
const MAX_PRINTED = 2_000
/** Longer lines are no events. */
const MAX_LINE = 1024 * 1024

/** One event of `go test -json`; null for any other line. */
function parseEvent(line: string): GoEvent | null {
  if (line.length > MAX_LINE || !line.startsWith('{"')) return null
  try {
    const event = JSON.parse(line) as Partial<GoEvent>
    return typeof event.Action === 'string' ? (event as GoEvent) : null
  } catch {
    return null
  }
}

const OUTCOMES: Readonly<Record<string, TestOutcome>> = { pass: 'pass', fail: 'fail', skip: 'skip' }

/**
 * The tests in the output of `go test -json`, by package. A test that started and did not end has
 * failed. A package that failed without a failing test, for instance because it does not compile,
 * counts as one failure. A package that did not end leaves the report incomplete.
 */
export async function readGo(output: string): Promise<readonly ReportedTest[] | ReportProblem> {
  const outcomes = new Map<string, ReportedTest>()
  const packages = new Map<string, 'running' | 'ended' | 'failed'>()
  const printed = new Map<string, string>()
  const work = new LongWork()
  for (const line of textLines(output)) {
    if (work.isDue) await work.next()
    const event = parseEvent(line)
    const name = event?.Package
    if (event === null || name === undefined) continue
    if (!packages.has(name)) packages.set(name, 'running')
    const outcome = Object.hasOwn(OUTCOMES, event.Action) ? OUTCOMES[event.Action]! : null
    if (event.Test === undefined) {
      if (outcome !== null) packages.set(name, outcome === 'fail' ? 'failed' : 'ended')
      continue
    }
    const key = `${name} ${event.Test}`
    if (event.Action === 'output' && event.Output !== undefined) {
      const before = printed.get(key) ?? ''
      if (before.length < MAX_PRINTED) printed.set(key, before + event.Output)
    }
    if (outcome === 'pass' || outcome === 'skip') printed.delete(key)
    if (outcome === null && event.Action !== 'run') continue
    const names = [name, ...event.Test.split('/')]
    outcomes.set(key, { names, outcome: outcome ?? 'fail' })
    if (outcomes.size > MAX_LISTED) return 'too_large'
  }
  if (packages.size === 0) return 'absent'
  if ([...packages.values()].includes('running')) return 'incomplete'
  const tests: ReportedTest[] = [...outcomes].map(([key, test]) => {
    const message = test.outcome === 'fail' ? printed.get(key) : undefined
    return message === undefined ? test : { ...test, message }
  })
  const failures = tests.filter(({ outcome }) => outcome === 'fail')
  const failed = new Set(failures.map(({ names }) => names[0]))
  for (const [name, state] of packages) {
    if (state === 'failed' && !failed.has(name)) tests.push({ names: [name], outcome: 'fail' })
  }
  return tests
}

/** The same output for people: what the tests printed, and lines that are not events. */
export async function readableGo(output: string): Promise<string> {
  const work = new LongWork()
  let text = ''
  let event: GoEvent | null = null
  for (const line of textLines(output)) {
    if (work.isDue) await work.next()
    event = parseEvent(line)
    text += event === null ? `${line}\n` : (event.Output ?? '')
  }
  return event === null ? text.slice(0, -1) : text
}
