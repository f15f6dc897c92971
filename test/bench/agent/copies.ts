/**
 * Measures copies of folders, beside `cp -a`:
 *
 *     node --conditions=runwright-source --import tsx test/bench/agent/copies.ts [--json FILE]
 *
 * FILES (default 20 000) files, most of them in `node_modules`, with 140 MB are copied TURNS times
 * (default 5) by each, in turns, below TMPDIR. The time of the disk is that of both, so the ratio
 * tells more than the milliseconds. Who is first alternates, and copies are removed at the end
 * only: ext4 looks for free inodes beside those that were just removed, which takes several times
 * as long as the copy. The processor time that the main thread has meanwhile is more than the event
 * loop can have been blocked.
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

/** Milliseconds of processor time that the programs of a shell have had. */
function cpuOf(command: string): number {
  const told = execFileSync('sh', ['-c', `${command}; times`], { encoding: 'latin1' })
  const times = told.trim().split('\n')[1]!.matchAll(/(\d+)m([\d.]+)s/g)
  return [...times].reduce((sum, [, min, s]) => sum + Number(min) * 60_000 + Number(s) * 1_000, 0)
}

const ours: number[] = []
const oursCpu: number[] = []
const theirs: number[] = []
const theirsCpu: number[] = []
const removals: number[] = []
const blocks: number[] = []
// The first thread of a program starts slowly.
await removeFolder(join(scratch, 'nothing'))
for (let turn = 0; turn < TURNS; turn++) {
  const [one, other] = [join(scratch, `one${turn}`), join(scratch, `other${turn}`)]
  const copies = [
    async (): Promise<void> => {
      const [main, all] = [cpuOfMain(), process.cpuUsage()]
      ours.push(await timed(() => copyTree(from, one)))
      blocks.push(cpuOfMain() - main)
      const { user, system } = process.cpuUsage(all)
      oursCpu.push((user + system) / 1_000)
    },
    async (): Promise<void> => {
      const copy = (): void => void theirsCpu.push(cpuOf(`cp -a ${from} ${other}`))
      theirs.push(await timed(() => Promise.resolve(copy())))
    },
  ]
  for (const copy of turn % 2 === 0 ? copies : copies.toReversed()) await copy()
}
for (let turn = 0; turn < TURNS; turn++) {
  removals.push(await timed(() => removeFolder(join(scratch, `one${turn}`))))
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
row('processor time of the copy', oursCpu, 'ms')
row('processor time of cp -a', theirsCpu, 'ms')
row('removal', removals, 'ms')
row('processor time of the main thread', blocks, 'ms', 20)
if (flags.json !== undefined) {
  writeResults(flags.json, { name: 'copies', versions: versionsOf([]), rows })
}
if (rows.some(({ met }) => met === false)) process.exitCode = 1
