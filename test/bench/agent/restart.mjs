/**
 * Measures a start with runs in the queue of the last process:
 *
 *     node test/bench/agent/restart.mjs [--json FILE]
 *
 * A FileStore with RUNS (default 20 000) pending runs is opened by a new process, TURNS times
 * (default 5), as the built package. Figures are medians with their range, from the moment at which
 * the store is open: until `RunEngine.open()` resolves, which is when a service listens; until the
 * run that had begun calls its model; until all others have their places in the queue; and the
 * longest time for which the event loop was blocked until then.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { buildPackage } from '../build-package.mjs'
import { rowText, versionsOf, writeResults } from '../report.mjs'

const RUNS = Number(process.env.RUNS ?? 20_000)
const TURNS = Number(process.env.TURNS ?? 5)
const { values: flags } = parseArgs({ options: { json: { type: 'string' } } })

const folder = mkdtempSync(join(tmpdir(), 'runwright-restart-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
const agent = pathToFileURL(join(buildPackage(), 'agent/index.js')).href

/** Runs a role of `restart-worker.mjs` in a process of its own. */
async function roleOf(role, directory) {
  const worker = fileURLToPath(new URL('restart-worker.mjs', import.meta.url))
  const order = JSON.stringify({ role, agent, directory, root: folder, runs: RUNS })
  const child = fork(worker, [order], { execArgv: [] })
  const [[result]] = await Promise.all([once(child, 'message'), once(child, 'exit')])
  return result
}

await roleOf('fill', join(folder, 'filled'))
const results = []
for (let turn = 0; turn < TURNS; turn++) {
  const directory = join(folder, String(turn))
  cpSync(join(folder, 'filled'), directory, { recursive: true })
  results.push(await roleOf('start', directory))
}

const scenario = `start with ${RUNS} pending runs`
const rows = [
  ['until it listens', 'listening', 500],
  ['until the run that had begun works', 'working', null],
  ['until the others are queued', 'queued', null],
  ['longest block of the event loop', 'blocked', 50],
].map(([contender, figure, most]) => {
  const sorted = results.map((result) => result[figure]).toSorted((a, b) => a - b)
  const median = sorted[Math.floor(sorted.length / 2)]
  const [min, max] = [sorted[0], sorted.at(-1)]
  const bar = most === null ? null : `<= ${most}`
  const met = most === null ? null : median <= most
  return { scenario, contender, median, min, max, unit: 'ms', ratio: null, cpu: null, bar, met }
})
for (const row of rows) console.log(rowText(row))
if (flags.json !== undefined)
  writeResults(flags.json, { name: 'restart', versions: versionsOf([]), rows })
if (rows.some(({ met }) => met === false)) process.exitCode = 1
