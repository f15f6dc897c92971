/**
 * Reads a report of as many tests as the first argument says, keeps them, and compares a second
 * report with them. Prints what that took as JSON: milliseconds, bytes, and the longest time for
 * which nothing else was done.
 */
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'

import { changeOf, countTests } from '../../../lib/agent/goals/compare-tests.js'
import { readLines } from '../../../lib/agent/goals/reports/lines.js'
import { TestTable } from '../../../lib/agent/goals/reports/test-table.js'
import type { TestReport } from '../../../lib/agent/goals/reports/types.js'
import type { KeptTests } from 'runwright/agent'

const count = Number(process.argv[2])
const folder = mkdtempSync(join(tmpdir(), 'million-'))
const place = { folder, nonce: 'n', root: folder }

/** Two of these tests are missing in the second report, and one is newly skipped. */
function writeReport(isSecond: boolean): void {
  const fd = openSync(join(folder, 'report-1-1.jsonl'), 'w')
  let lines = ''
  for (let i = 0; i < count; i++) {
    if (isSecond && (i === 5 || i === 77)) continue
    const file = `test/unit/part-${Math.floor(i / 200)}/values.test.js`
    const title = `serialises value number ${i} of the table as the standard says`
    const outcome = i % 50 === 0 || (isSecond && i === 99) ? 'skip' : 'pass'
    lines += `${JSON.stringify(['n', 'test', [file, 'values', title], outcome])}\n`
    if (lines.length < 1 << 20 && i < count - 1) continue
    writeSync(fd, lines)
    lines = ''
  }
  writeSync(fd, `${lines}["n","end"]\n`)
  closeSync(fd)
}

let longest = 0
let last = performance.now()
let turns = 0
let timer = setImmediate(function turn() {
  longest = Math.max(longest, performance.now() - last)
  last = performance.now()
  turns += 1
  timer = setImmediate(turn)
})

async function measured<T>(work: () => Promise<T>): Promise<[T, number, number]> {
  // What was done before took its turn: it is not measured.
  for (const end = turns + 2; turns < end; ) await nextTurn()
  const began = performance.now()
  longest = 0
  const result = await work()
  return [result, Math.round(performance.now() - began), Math.round(longest)]
}

const read = async (): Promise<TestReport> => {
  const report = await readLines(place, true)
  if (typeof report === 'string') throw new Error(report)
  return report
}
const table = async (): Promise<TestTable> => (await read()).tests as TestTable

try {
  writeReport(false)
  const [first, readMs, readTurn] = await measured(table)
  const [kept, packMs, packTurn] = await measured(() => first.pack())
  const stored = JSON.stringify(kept)
  writeReport(true)
  const baseline = JSON.parse(stored) as KeptTests
  const second = await read()
  const [change, compareMs, compareTurn] = await measured(() => changeOf(second, baseline))
  const counts = countTests(first)
  const [bytes, rss] = [Buffer.byteLength(stored), process.resourceUsage().maxRSS * 1024]
  const took = { readMs, packMs, compareMs, readTurn, packTurn, compareTurn }
  console.log(JSON.stringify({ change, counts, bytes, rss, ...took }))
} finally {
  clearImmediate(timer)
  rmSync(folder, { recursive: true })
}
