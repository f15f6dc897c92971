/**
 * Reports that our own reporters write, as files `report-<time>-<pid>.jsonl` in the private folder.
 *
 * 1. A check may start its runner more than once; each start writes a file of its own, and they are
 *    read in the order of their start.
 * 2. Every line carries the check's nonce. A file with any other line makes the report invalid.
 * 3. A file without its end marker makes the report incomplete.
 *
 * Lines are JSON arrays:
 * - `[nonce, "test", [file, suite…, title], outcome]`
 * - `[nonce, "file", path]`: a file that could not be loaded or stopped before its tests were done
 * - `[nonce, "idle", path]`: a file that exited with 0 without a test
 * - `[nonce, "end"]`
 *
 * @module
 */
import { join } from 'node:path'

import { LongWork } from '../../../internal/next-turn.js'
import type { TestOutcome } from '../../test-outcomes.js'
import { readFolder } from '../../workspace/read-folder.js'
import { readRegularFile } from '../small-file.js'
import { TestCollector } from './outcomes.js'
import { textLines } from './text-lines.js'
import type { ReportPlace, ReportProblem, TestReport } from './types.js'

const MAX_FILE_BYTES = 32 * 1024 * 1024
const MAX_LINE = 1024 * 1024
const MAX_FILES = 200
const MAX_ENTRIES = 10_000
const REPORT_FILE = /^report-(\d+)-\d+\.jsonl$/

/** Reads the reports of one check; `reportsIdle` is true for the runner that reports idle files. */
export async function readLines(
  { folder, nonce }: ReportPlace,
  reportsIdle = false,
): Promise<TestReport | ReportProblem> {
  const entries = await readFolder(folder, MAX_ENTRIES)
  const names = entries.map(({ name }) => name).filter((name) => REPORT_FILE.test(name))
  if (names.length === 0) return 'absent'
  if (names.length > MAX_FILES) return 'too_large'
  names.sort((a, b) => (startedAt(a) < startedAt(b) ? -1 : 1))
  const collector = new TestCollector()
  const work = new LongWork()
  for (const name of names) {
    const content = await readRegularFile(join(folder, name), MAX_FILE_BYTES)
    if (typeof content === 'string') return content
    const problem = await addLines(content.toString('utf8'), nonce, collector, work)
    if (problem !== null) return problem
  }
  return collector.report(reportsIdle)
}

function startedAt(name: string): bigint {
  return BigInt(REPORT_FILE.exec(name)![1]!)
}

async function addLines(
  content: string,
  nonce: string,
  collector: TestCollector,
  work: LongWork,
): Promise<ReportProblem | null> {
  if (!content.endsWith('\n')) return 'incomplete'
  let ended = false
  for (const line of textLines(content.slice(0, -1))) {
    if (work.isDue) await work.next()
    if (line.length > MAX_LINE) return 'too_large'
    let parsed: unknown
    try {
      parsed = JSON.parse(line)
    } catch {
      return 'invalid'
    }
    if (!Array.isArray(parsed) || parsed[0] !== nonce || ended) return 'invalid'
    const [, kind, subject, outcome] = parsed as unknown[]
    if (kind === 'end') ended = true
    else if (kind === 'file' && typeof subject === 'string') collector.addFile(subject)
    else if (kind === 'idle' && typeof subject === 'string') collector.addIdle(subject)
    else if (kind === 'test' && isNames(subject) && isOutcome(outcome))
      collector.addTest(subject, outcome)
    else return 'invalid'
    if (collector.isTooLarge) return 'too_large'
  }
  return ended ? null : 'incomplete'
}

function isNames(value: unknown): value is readonly string[] {
  return (
    Array.isArray(value) && value.length >= 2 && value.every((part) => typeof part === 'string')
  )
}

function isOutcome(value: unknown): value is TestOutcome {
  return value === 'pass' || value === 'fail' || value === 'skip'
}
