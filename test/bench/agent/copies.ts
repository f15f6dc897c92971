/**
 * Measures copies of folders, beside `cp -a`:
 *
 *     node --conditions=runwright-source --import tsx test/bench/agent/copies.ts [--json FILE]
 *
 * FILES (default 20 000) files, most of them in `node_modules`, with 140 MB are copied TURNS times
 * (default 5) by each, in turns, below TMPDIR. The time of the disk is that of both, so the ratio
 * tells more than the milliseconds. The processor time that the main thread has meanwhile is more
 * than the event loop can have been blocked.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { copyTree, removeFolder } from '../../../lib/agent/workspace/copy.js'
import { Random } from '../../helpers/random.js'
import { rowText, versionsOf, writeResults } from '../report.mjs'
import type { Row } from '../results.js'

const FILES = Number(process.env['FILES'] ?? 20_000)
const TURNS = Number(process.env['TURNS'] ?? 5)

const { values: flags } = parseArgs({ options: { json: { type: 'string' } } })
const scratch = mkdtempSync(join(tmpdir(), 'runwright-copies-'))
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }))

const from = join(scratch, 'project')
const random = new Random(1)
for (let i = 0; i < FILES; i++) {
  const folder = i % 20 === 0 ? 'src' : `node_modules/p${i % 397}/lib`
  mkdirSync(join(from, folder), { recursive: true })
  writeFileSync(join(from, folder, `${i}.js`), 'x'.repeat(random.integer(100, 14_000)))
}

/** Milliseconds of processor time that the main thread has had. */
function cpuOfMain(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1').split(' ')[0]) / 1e6
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}

const ours: number[] = []
const theirs: number[] = []
const removals: number[] = []
const blocks: number[] = []
// The first thread of a program starts slowly.
await removeFolder(join(scratch, 'nothing'))
for (let turn = 0; turn < TURNS; turn++) {
  const [one, other] = [join(scratch, 'one'), join(scratch, 'other')]
  const before = cpuOfMain()
  ours.push(await timed(() => copyTree(from, one)))
  blocks.push(cpuOfMain() - before)
  theirs.push(await timed(async () => void execFileSync('cp', ['-a', from, other])))
  removals.push(await timed(() => removeFolder(one)))
  execFileSync('rm', ['-rf', other])
}

const rows: Row[] = []

/** @param most the target; a contender without one is only shown */
function row(contender: string, values: readonly number[], unit: string, most?: number): void {
  const sorted = values.toSorted((a, b) => a - b)
  const median = sorted[Math.floor(sorted.length / 2)]!
  rows.push({
    scenario: `${FILES} files with node_modules`,
    contender,
    median,
    min: sorted[0]!,
    max: sorted.at(-1)!,
    unit,
    ratio: null,
    cpu: null,
    bar: most === undefined ? null : `<= ${most} ${unit}`,
    met: most === undefined ? null : median <= most,
  })
  console.log(rowText(rows.at(-1)!))
}

row('copy', ours, 'ms', 3_000)
row('cp -a', theirs, 'ms')
row('copy, relative to cp -a', ours.map((ms, i) => ms / theirs[i]!), 'x')
row('removal', removals, 'ms')
row('processor time of the main thread', blocks, 'ms', 20)
if (flags.json !== undefined) {
  writeResults(flags.json, { name: 'copies', versions: versionsOf([]), rows })
}
if (rows.some(({ met }) => met === false)) process.exitCode = 1
