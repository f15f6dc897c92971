/**
 * What recorders wrote, process by process, as files `trace-<time>-<pid>-<thread>.jsonl`. Each line
 * is a JSON array; times are nanoseconds of the system's monotonic clock:
 *
 * - `["p", pid, parent, thread, time, script]`: the process, first of all
 * - `["s", script, path, source]`: a script of Node; its text is the file `sources/<source>`
 * - `["r", id, script, [start, end, ran, …]]`: ranges of a script, inner ones override outer ones
 * - `["f", file, path]` and `["l", id, file, [line, …]]`: a file of Python, and lines that ran
 * - `["t", test, name, time]` and `["e", test, failed, time]`: a test begins and ends
 * - `["c", [test, …], [id, …]]`: what ran for these tests; without a test, outside of any
 * - `["x", code, time]`: the process ends
 *
 * Lines that are something else are skipped.
 *
 * @module
 */
import { join } from 'node:path'

import type { Lines } from './lines.js'
import { linesIn, namesIn, readRecorded } from './read-records.js'
import { isPath, Sources } from './sources.js'

/** Tests of one process, and of a trace. */
export const MAX_TESTS = 20_000
/** What one process writes. */
export const MAX_PROCESS_BYTES: number = 16 * 1024 * 1024
/** Text of one script. */
export const MAX_SOURCE_BYTES: number = 2 * 1024 * 1024
/** What all processes write together, without texts. */
const MAX_BYTES = 64 * 1024 * 1024
const MAX_LINE = 4 * 1024 * 1024
const MAX_ENTRIES = 10_000
/** Lines that are held for all processes, and mentions of them by tests. */
const MAX_HELD = 8_000_000
const MAX_STEPS = 20_000_000
const MAX_NAME = 2_000
const TRACE_FILE = /^trace-(\d{1,20})-\d+-\d+\.jsonl$/

/** A test of one process. */
export interface RecordedTest {
  readonly name: string
  readonly begun: number
  ended: number
  failed: boolean | null
  readonly ran: Lines[]
}

/** What one process or thread recorded. */
export interface RecordedProcess {
  pid: number
  parent: number
  thread: number
  begun: number
  script: string
  ended: number
  code: number | null
  readonly tests: Map<number, RecordedTest>
  /** What ran outside of tests. */
  readonly ran: Lines[]
}

/** Reads the processes of a trace, in the order of their start. */
export async function readProcesses(
  folder: string,
  sourceFolder: string,
): Promise<readonly RecordedProcess[]> {
  const names = (await namesIn(folder, MAX_ENTRIES)).filter((name) => TRACE_FILE.test(name))
  names.sort((a, b) => (startedAt(a) < startedAt(b) ? -1 : 1))
  const limits: Limits = { held: MAX_HELD, steps: MAX_STEPS, tests: MAX_TESTS }
  const sources = new Sources(sourceFolder, MAX_SOURCE_BYTES)
  const processes: RecordedProcess[] = []
  let maxBytes = MAX_BYTES
  for (const name of names) {
    const content = await readRecorded(join(folder, name), maxBytes)
    if (content === null) continue
    maxBytes -= content.length
    const records = new Records(sources, limits)
    for (const line of linesIn(content, MAX_LINE)) await records.add(line)
    if (records.process !== null) processes.push(records.process)
  }
  return processes
}

function startedAt(name: string): bigint {
  return BigInt(TRACE_FILE.exec(name)![1]!)
}

/** What may still be held. */
interface Limits {
  held: number
  /** Mentions of lines by tests, which are all looked at. */
  steps: number
  tests: number
}

/** The records of one process. */
class Records {
  process: RecordedProcess | null = null
  readonly #sources: Sources
  readonly #limits: Limits
  readonly #files = new Map<number, string>()
  readonly #scripts = new Map<number, { readonly path: string; readonly source: string }>()
  readonly #ran = new Map<number, readonly Lines[]>()

  constructor(sources: Sources, limits: Limits) {
    this.#sources = sources
    this.#limits = limits
  }

  async add(line: string): Promise<void> {
    let record: unknown
    try {
      record = JSON.parse(line)
    } catch {
      return
    }
    if (!Array.isArray(record)) return
    const [kind, first, second, third, fourth, fifth] = record as unknown[]
    if (this.process === null) {
      if (kind !== 'p' || !isTime(fourth) || typeof fifth !== 'string') return
      if (!isNumber(first) || !isNumber(second) || !isNumber(third)) return
      const place = { pid: first, parent: second, thread: third, begun: fourth }
      const script = fifth.slice(0, MAX_NAME)
      const times = { ended: Infinity, code: null }
      this.process = { ...place, ...times, script, tests: new Map(), ran: [] }
    } else if (kind === 'c') this.#mention(this.process, first, second)
    else if (kind === 'x' && isTime(second)) {
      this.process.ended = second
      this.process.code = isNumber(first) ? first : null
    } else if (isNumber(first)) await this.#describe(this.process, kind, first, second, third)
  }

  async #describe(
    { tests }: RecordedProcess,
    kind: unknown,
    id: number,
    second: unknown,
    third: unknown,
  ): Promise<void> {
    if (kind === 't' && typeof second === 'string' && isTime(third)) {
      if (tests.has(id) || this.#limits.tests-- <= 0) return
      const name = second.slice(0, MAX_NAME)
      tests.set(id, { name, begun: third, ended: Infinity, failed: null, ran: [] })
    } else if (kind === 'e' && isTime(third)) {
      const test = tests.get(id)
      if (test === undefined) return
      test.ended = third
      test.failed = typeof second === 'boolean' ? second : null
    } else if (kind === 's' && isPath(second) && typeof third === 'string') {
      this.#scripts.set(id, { path: second, source: third })
    } else if (kind === 'f' && isPath(second)) this.#files.set(id, second)
    else if (kind === 'r' && isNumber(second) && isNumbers(third)) {
      const script = this.#scripts.get(second)
      if (script === undefined || this.#limits.held <= 0) return
      this.#hold(id, await this.#sources.lines(script.path, script.source, third))
    } else if (kind === 'l' && isNumber(second) && isNumbers(third)) {
      const path = this.#files.get(second)
      if (path === undefined || this.#limits.held <= 0) return
      this.#hold(id, [{ path, lines: third.filter((line) => line > 0) }])
    }
  }

  #hold(id: number, ran: readonly Lines[]): void {
    for (const { lines } of ran) this.#limits.held -= lines.length + 1
    this.#ran.set(id, ran)
  }

  #mention({ tests, ran }: RecordedProcess, owners: unknown, ids: unknown): void {
    if (!isNumbers(owners) || !isNumbers(ids)) return
    const limits = this.#limits
    const takers = owners.length === 0 ? [ran] : owners.map((owner) => tests.get(owner)?.ran)
    for (const id of ids) {
      for (const lines of this.#ran.get(id) ?? []) {
        for (const taker of takers) {
          limits.steps -= lines.lines.length + 1
          if (limits.held <= 0 || limits.steps <= 0) return
          limits.held -= 1
          taker?.push(lines)
        }
      }
    }
  }
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

function isNumber(value: unknown): value is number {
  return Number.isSafeInteger(value)
}

function isNumbers(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every(isNumber)
}
