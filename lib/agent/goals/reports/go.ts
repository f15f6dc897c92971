import type { TestOutcome } from '../../goal.js'
import type { ReportedTest, ReportInjection, ReportProblem } from './reports.js'

/**
 * Go's own account of its tests: `go test -json` prints one event a line, and wraps whatever the
 * tests print into events of kind `output`. The flag comes in through GOFLAGS, so that it reaches a
 * `go test` behind make or a script as well.
 */
export function injectGo(): ReportInjection {
  return { files: {}, programs: {}, env: { GOFLAGS: '-json' } }
}

interface GoEvent {
  readonly Action: string
  readonly Package?: string
  readonly ImportPath?: string
  readonly Test?: string
  readonly Output?: string
}

/** What the events of `go test -json` tell; null for a line that is no event. */
function parseEvent(line: string): GoEvent | null {
  if (!line.startsWith('{"')) return null
  try {
    const event = JSON.parse(line) as Partial<GoEvent>
    return typeof event.Action === 'string' ? (event as GoEvent) : null
  } catch {
    return null
  }
}

const OUTCOMES: Readonly<Record<string, TestOutcome>> = { pass: 'pass', fail: 'fail', skip: 'skip' }

/**
 * The tests of some output of `go test -json`, by package. A test that was started and did not end
 * has failed; so has a package that failed without a test that did, for instance because it does
 * not compile. A package that never came to its end leaves the report incomplete.
 */
export function readGo(output: string): readonly ReportedTest[] | ReportProblem {
  const outcomes = new Map<string, { readonly names: readonly string[]; outcome: TestOutcome }>()
  const packages = new Map<string, 'open' | 'ended' | 'failed'>()
  for (const line of output.split('\n')) {
    const event = parseEvent(line)
    const place = event?.Package
    if (event === null || place === undefined) continue
    if (!packages.has(place)) packages.set(place, 'open')
    const outcome = Object.hasOwn(OUTCOMES, event.Action) ? OUTCOMES[event.Action]! : null
    if (event.Test === undefined) {
      if (outcome !== null) packages.set(place, outcome === 'fail' ? 'failed' : 'ended')
      continue
    }
    if (outcome === null && event.Action !== 'run') continue
    const key = `${place} ${event.Test}`
    const names = [place, ...event.Test.split('/')]
    outcomes.set(key, { names, outcome: outcome ?? 'fail' })
  }
  if (packages.size === 0) return 'absent'
  if ([...packages.values()].includes('open')) return 'incomplete'
  const tests: ReportedTest[] = [...outcomes.values()]
  for (const [place, state] of packages) {
    const failed = tests.some(({ names, outcome }) => names[0] === place && outcome === 'fail')
    if (state === 'failed' && !failed) tests.push({ names: [place], outcome: 'fail' })
  }
  return tests
}

/** The same output as people read it: what the tests printed, and what was no event. */
export function readableGo(output: string): string {
  return output
    .split('\n')
    .map((line, index, lines) => {
      const event = parseEvent(line)
      if (event !== null) return event.Output ?? ''
      return index === lines.length - 1 ? line : `${line}\n`
    })
    .join('')
}
