import type { CallResult } from './conversation.js'

/** How many failing and other tests ran a line. */
export interface Use {
  readonly failed: number
  readonly passed: number
}

/** Which lines failing tests ran, by path. */
export interface TestedLines extends Use {
  readonly files: ReadonlyMap<string, ReadonlyMap<number, Use>>
}

/** One run of the command, with or without a patch. */
export interface Run {
  readonly exitCode: number
  readonly timedOut: boolean
  /** Null when some of it was left out. */
  readonly output: string | null
}

/** The run without a patch. */
export interface BaseRun extends Run {
  /** What is left of the output, all or not. */
  readonly shown: string
}

/** What `try_patches` told. */
export interface TrialReport {
  readonly base: BaseRun
  /** Null for one that could not be made. */
  readonly runs: readonly (Run | 'impossible' | 'not tried')[]
  readonly tested: TestedLines | null
}

/**
 * Reads the result of `try_patches`; null when that is none. `known` is what the command printed
 * without a patch before: where it was cut now, it is the same if what is left is.
 */
export function parseTrials(
  { output }: CallResult,
  known: string | null = null,
): TrialReport | null {
  const sections = sectionsOf(output)
  const own = sections.find(({ head }) => head.startsWith('Without a patch: '))
  const told = own === undefined ? null : baseOf(own)
  if (own === undefined || told === null) return null
  const isKnown = told.output === null && known !== null && isRestOf(told.shown, known)
  const base = isKnown ? { ...told, output: known } : told
  const before = isKnown ? known.split('\n') : told.output === null ? null : own.lines
  const runs: TrialReport['runs'][number][] = []
  let tested: TestedLines | null = null
  for (const { head, lines } of sections) {
    const patch = /^Patch \d+: (.*)$/s.exec(head)
    if (patch !== null) runs.push(runOf(patch[1]!, lines, before))
    else if (head.startsWith('Lines run by failing tests')) tested = linesOf(head, lines)
  }
  return { base, runs, tested }
}

interface Section {
  readonly head: string
  /** Without their indentation. */
  readonly lines: readonly string[]
}

function sectionsOf(text: string): Section[] {
  const sections: { head: string; lines: string[] }[] = []
  for (const line of text.split('\n')) {
    if (line.startsWith('  ')) sections.at(-1)?.lines.push(line.slice(2))
    else sections.push({ head: line, lines: [] })
  }
  return sections
}

/** The line that stands for what was left out in the middle of an output. */
const LEFT_OUT = /^\[\u2026 \d+ bytes left out \u2026\]$/

function baseOf({ head, lines }: Section): BaseRun | null {
  const exitCode = exitCodeOf(head)
  if (exitCode === null) return null
  const isWhole = !lines.some((line) => LEFT_OUT.test(line))
  const timedOut = head.includes('reached the time limit')
  const shown = lines.join('\n')
  return { exitCode, timedOut, shown, output: isWhole ? shown : null }
}

/** Whether a text that was cut is this one. */
function isRestOf(shown: string, whole: string): boolean {
  const lines = shown.split('\n')
  const at = lines.findIndex((line) => LEFT_OUT.test(line))
  const [head, tail] = [lines.slice(0, at).join('\n'), lines.slice(at + 1).join('\n')]
  return at >= 0 && whole.startsWith(head) && whole.endsWith(tail)
}

function exitCodeOf(text: string): number | null {
  const found = /exit code (-?\d+)/.exec(text)
  return found === null ? null : Number(found[1])
}

/** `before` are the lines without a patch. */
function runOf(
  told: string,
  lines: readonly string[],
  before: readonly string[] | null,
): TrialReport['runs'][number] {
  if (told === 'not tried') return told
  const exitCode = exitCodeOf(told)
  if (exitCode === null || !told.startsWith('exit code')) return 'impossible'
  const timedOut = told.includes('reached its time limit')
  const changes = told.endsWith(', same output') ? [] : lines
  const output = before === null ? null : patched(before, changes)
  return { exitCode, timedOut, output }
}

/** Applies the changes to the output without a patch; null when they are not complete. */
function patched(before: readonly string[], changes: readonly string[]): string | null {
  const after: string[] = []
  let at = 0
  for (const line of changes) {
    const place = /^@@ -(\d+),(\d+) \+\d+,\d+ @@$/.exec(line)
    if (place !== null) {
      const start = Number(place[1]) - 1
      after.push(...before.slice(at, start))
      at = start + Number(place[2])
    } else if (line.startsWith('+') && !LEFT_OUT.test(line.slice(1))) after.push(line.slice(1))
    else if (!line.startsWith('-')) return null
  }
  return [...after, ...before.slice(at)].join('\n')
}

function linesOf(head: string, lines: readonly string[]): TestedLines {
  const [failed = 0, passed = 0] = [...head.matchAll(/\d+/g)].map(([digits]) => Number(digits))
  const files = new Map<string, Map<number, Use>>()
  let uses = new Map<number, Use>()
  for (const line of lines) {
    const range = /^ {2}(\d+)(?:-(\d+))?: (\d+) failing, (\d+) other$/.exec(line)
    if (range === null) {
      uses = new Map<number, Use>()
      if (!line.startsWith('…')) files.set(line, uses)
    } else {
      const [from, to] = [Number(range[1]), Number(range[2] ?? range[1])]
      const use = { failed: Number(range[3]), passed: Number(range[4]) }
      for (let at = from; at <= to && at < from + 10_000; at++) uses.set(at, use)
    }
  }
  return { failed, passed, files }
}
