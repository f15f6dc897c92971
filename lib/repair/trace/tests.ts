/** What processes recorded, as one trace. */
import { lowerBound } from '../../internal/queues.js'
import { MAX_TESTS, type RecordedProcess } from './records.js'
import type { Lines } from './lines.js'

/** Which lines of a project's files its tests ran. */
export interface Trace {
  /**
   * Tests that were told apart, in the order in which they began; at most 20 000. `failed` is what
   * the runner says, null when it does not tell, or the test was skipped or cut short.
   */
  readonly tests: readonly TracedTest[]
  /**
   * Path from the project's root → line, from 1 → tests that ran it, ascending. Lines that only ran
   * outside of tests (loading, hooks of suites, tools) are there without a test.
   */
  readonly files: ReadonlyMap<string, ReadonlyMap<number, readonly number[]>>
}

/** A test, or a process that tells no tests apart. */
export interface TracedTest {
  readonly name: string
  readonly failed: boolean | null
}

/** Mentions of tests by lines. */
const MAX_MENTIONS = 8_000_000
/** Processes between a test and what it starts. */
const MAX_DEPTH = 8
/** Tests that are open at the same time. */
const MAX_OPEN = 64

/** A test of the trace while it is put together. */
interface Entry {
  readonly name: string
  readonly begun: number
  readonly ended: number
  readonly failed: boolean | null
  readonly ran: Lines[]
  /** Where it ran; a thread is a place of its own. */
  readonly process: RecordedProcess
}

/** Puts processes together: each with its tests, or as a part of the test that started it. */
export function join(processes: readonly RecordedProcess[]): Trace {
  const told: Entry[] = []
  for (const process of processes) {
    for (const { name, begun, ended, failed, ran } of process.tests.values()) {
      told.push({ name, begun, ended, failed, ran, process })
    }
  }
  told.sort((a, b) => a.begun - b.begun)
  const windows = windowsOf(told)
  const parents = new Map<number, RecordedProcess>()
  for (const process of processes) if (process.thread === 0) parents.set(process.pid, process)
  const outside: Lines[] = []
  const entries = [...told]
  for (const process of processes) {
    if (process.tests.size > 0) {
      for (const lines of process.ran) outside.push(lines)
    } else if (process.ran.length > 0) {
      const owners = ownersOf(process, parents, windows, told)
      const first = told[firstFrom(told, process.begun)]
      if (owners.length > 0) {
        for (const { ran } of owners) for (const lines of process.ran) ran.push(lines)
        // A program that starts tests is none.
      } else if (first !== undefined && first.begun < process.ended) {
        for (const lines of process.ran) outside.push(lines)
      } else entries.push(alone(process))
    }
  }
  entries.sort((a, b) => a.begun - b.begun)
  return filed(entries, outside)
}

/** A process that tells no tests apart, and was started by none. */
function alone(process: RecordedProcess): Entry {
  const { begun, ended, code, script, ran } = process
  const failed = code === null ? null : code !== 0
  return { name: script === '' ? '(script)' : script, begun, ended, failed, ran, process }
}

/** Tests by the process and thread that ran them, each in the order in which they began. */
type Windows = ReadonlyMap<string, readonly Entry[]>

function windowsOf(told: readonly Entry[]): Windows {
  const windows = new Map<string, Entry[]>()
  for (const entry of told) {
    const place = `${entry.process.pid} ${entry.process.thread}`
    const entries = windows.get(place)
    if (entries === undefined) windows.set(place, [entry])
    else entries.push(entry)
  }
  return windows
}

/** The tests in which a process or thread was started; those of its ancestors' if need be. */
function ownersOf(
  process: RecordedProcess,
  parents: ReadonlyMap<number, RecordedProcess>,
  windows: Windows,
  told: readonly Entry[],
): readonly Entry[] {
  let at = process
  for (let depth = 0; depth < MAX_DEPTH; depth++) {
    const pid = at.thread > 0 ? at.pid : at.parent
    const own = windows.get(`${pid} 0`)
    if (own !== undefined) return openAt(own, at.begun)
    const parent = parents.get(pid)
    // Without a record of the parent, such as a shell, the one test of that time is meant.
    if (parent === undefined || parent === at) {
      const open = openAt(told, at.begun)
      return open.length === 1 ? open : []
    }
    at = parent
  }
  return []
}

/** The tests that were open at a time, without those of which another is a part. */
function openAt(entries: readonly Entry[], time: number): readonly Entry[] {
  const first = firstFrom(entries, time)
  const recent = entries.slice(Math.max(0, first - MAX_OPEN), first)
  const open = recent.filter(({ ended }) => ended > time)
  const last = open.at(-1)
  return open.filter((entry) => entry === last || entry.ended < last!.ended)
}

/** The first test that began at a time or after it. */
function firstFrom(entries: readonly Entry[], time: number): number {
  return lowerBound(entries.length, (at) => entries[at]!.begun < time)
}

/** Lines with the tests that ran them. */
function filed(entries: readonly Entry[], outside: readonly Lines[]): Trace {
  const files = new Map<string, Map<number, number[]>>()
  let mentions = 0
  const add = (ran: readonly Lines[], test: number | null): void => {
    for (const { path, lines } of new Set(ran)) {
      let file = files.get(path)
      if (file === undefined) files.set(path, (file = new Map()))
      for (const line of lines) {
        let tests = file.get(line)
        if (tests === undefined) {
          if (++mentions > MAX_MENTIONS) return
          file.set(line, (tests = []))
        }
        if (test === null || tests.at(-1) === test) continue
        if (++mentions > MAX_MENTIONS) return
        tests.push(test)
      }
    }
  }
  // Those beyond the last one belong to it.
  for (const [index, { ran }] of entries.entries()) add(ran, Math.min(index, MAX_TESTS - 1))
  add(outside, null)
  const tests: TracedTest[] = []
  for (const { name, failed } of entries.slice(0, MAX_TESTS)) tests.push({ name, failed })
  const sorted = [...files].map(([path, lines]) => {
    return [path, new Map([...lines].sort(([a], [b]) => a - b))] as const
  })
  return { tests, files: new Map(sorted) }
}
