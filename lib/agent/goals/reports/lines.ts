/**
 * Reports that our own reporters write, as files `report-<time>-<pid>.jsonl` in the private folder.
 *
 * 1. A check may start its runner more than once; each start writes a file of its own, and they are
 *    read in the order of their start.
 * 2. Every line carries the check's nonce. A file with any other line makes the report invalid.
 * 3. A file without its end marker makes the report incomplete.
 * 4. A report is invalid where more tests pass than the processes which ran them have seen to
 *    pass, or none fails and they have seen one that does.
 *
 * Lines are JSON arrays:
 * - `[nonce, "test", [file, suite…, title], outcome]`, for one that failed with a message and the
 *   place of the project that is innermost on the stack: `[message, path, line]`
 * - `[nonce, "file", path]`: a file that could not be loaded or stopped before its tests were done
 * - `[nonce, "idle", path]`: a file that exited with 0 without a test
 * - `[nonce, "end"]`
 *
 * @module
 */
import { join } from 'node:path'

import type { TestOutcome } from '../../test-outcomes.js'
import { readFolder } from '../../workspace/read-folder.js'
import { readCanaries } from './canaries.js'
import { detailsOf } from './failed-tests.js'
import { readLineFile } from './line-file.js'
import { TestCollector } from './outcomes.js'
import type { ReportPlace, ReportProblem, TestReport } from './types.js'

/** Of all files together. */
const MAX_BYTES = 1024 * 1024 * 1024
const MAX_LINE = 1024 * 1024
const MAX_FILES = 200
const MAX_ENTRIES = 10_000
const REPORT_FILE = /^report-(\d+)-\d+\.jsonl$/

/** Reads the reports of one check; `reportsIdle` is true for the runner that reports idle files. */
export async function readLines(
  { folder, nonce }: Pick<ReportPlace, 'folder' | 'nonce'>,
  reportsIdle = false,
): Promise<TestReport | ReportProblem> {
  const entries = await readFolder(folder, MAX_ENTRIES)
  const names = entries.map(({ name }) => name).filter((name) => REPORT_FILE.test(name))
  if (names.length === 0) return 'absent'
  if (names.length > MAX_FILES) return 'too_large'
  names.sort((a, b) => (startedAt(a) < startedAt(b) ? -1 : 1))
  const collector = new TestCollector()
  const told = { pass: 0, fail: 0, skip: 0 }
  let maxBytes = MAX_BYTES
  for (const name of names) {
    const lines = new ReportLines(nonce, collector, told)
    const limits = { maxBytes, maxLine: MAX_LINE }
    const problem = await readLineFile(join(folder, name), limits, (line, bytes) => {
      maxBytes -= bytes
      return lines.add(line)
    })
    if (problem !== null) return problem
    if (!lines.ended) return 'incomplete'
  }
  const canaries = await readCanaries({ folder, nonce })
  if (typeof canaries === 'string') return canaries
  const { seen } = canaries
  const hides = seen !== null && seen.failed > 0 && told.fail === 0
  if (hides || (seen !== null && told.pass > seen.passed)) return 'invalid'
  return collector.report(reportsIdle, canaries)
}

function startedAt(name: string): bigint {
  return BigInt(REPORT_FILE.exec(name)![1]!)
}

/** The lines of one file. */
class ReportLines {
  ended = false
  readonly #nonce: string
  readonly #collector: TestCollector
  readonly #told: Record<TestOutcome, number>

  /** `told` counts the tests. */
  constructor(nonce: string, collector: TestCollector, told: Record<TestOutcome, number>) {
    this.#nonce = nonce
    this.#collector = collector
    this.#told = told
  }

  /** Adds what a line reports, unless it has a problem. */
  async add(line: string): Promise<ReportProblem | null> {
    let parsed: unknown
    try {
      parsed = JSON.parse(line)
    } catch {
      return 'invalid'
    }
    if (!Array.isArray(parsed) || parsed[0] !== this.#nonce || this.ended) return 'invalid'
    const [, kind, subject, outcome, details] = parsed as unknown[]
    const collector = this.#collector
    if (kind === 'end') this.ended = true
    else if (kind === 'file' && typeof subject === 'string') {
      this.#told.fail += 1
      await collector.addFile(subject)
    } else if (kind === 'idle' && typeof subject === 'string') collector.addIdle(subject)
    else if (kind === 'test' && isNames(subject) && isOutcome(outcome)) {
      this.#told[outcome] += 1
      await collector.addTest(subject, outcome, detailsOf(details))
    } else return 'invalid'
    return collector.isTooLarge ? 'too_large' : null
  }
}

function isNames(value: unknown): value is readonly string[] {
  return (
    Array.isArray(value) && value.length >= 2 && value.every((part) => typeof part === 'string')
  )
}

function isOutcome(value: unknown): value is TestOutcome {
  return value === 'pass' || value === 'fail' || value === 'skip'
}
