/**
 * Compares the run engine with agent frameworks and with floors, side by side:
 *
 *     npm install --no-save --prefix test/peers
 *     node test/bench/agent/compare.mjs [part of a table's name]… [--json FILE]
 *
 * A *step* is one iteration: a model call, one tool in process, and the evaluation. The model is a
 * script in the same process, so only the framework around it is measured. runwright writes ten
 * events per step; with `followed` a subscriber reads all of them as JSON while the run goes on.
 * `file` is FileStore without sync, `durable` with sync.
 *
 * Each contender has its own process. They take turns, so that load from elsewhere affects all of
 * them. runwright is measured as the built package. TURNS (default 5) is the number of turns after
 * one to warm up, TURN_MS (default 400) their minimum length, and CONTENDERS a comma-separated list
 * of parts of contender names to run.
 *
 * Figures are medians of the turns with their range; ratios are of medians, to the first contender
 * of the table. `scenarios.mjs` defines the scenarios and the bars that runwright has to meet.
 * `--json FILE` writes the tables in the format described in `test/bench/http/compare.mjs`; several
 * bars of one row are joined by `; `.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { buildPackage } from '../build-package.mjs'
import { rowText, versionsOf, writeResults } from '../report.mjs'
import { scenarios } from './scenarios.mjs'
import { median } from './task.mjs'

const here = (name) => fileURLToPath(new URL(name, import.meta.url))
const { values: flags, positionals: words } = parseArgs({
  allowPositionals: true,
  options: { json: { type: 'string' } },
})
const TURNS = Number(process.env.TURNS ?? 5)
const TURN_MS = Number(process.env.TURN_MS ?? 400)
const wanted = process.env.CONTENDERS?.split(',') ?? ['']

const built = buildPackage()
const env = { ...process.env, RUNWRIGHT_AGENT: pathToFileURL(join(built, 'agent/index.js')).href }

async function start([file, name, options]) {
  const child = fork(here('contender.mjs'), [file, name, JSON.stringify(options)], {
    env,
    execArgv: ['--no-warnings'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  await once(child, 'message')
  return child
}

/** Runs the turns of one scenario; resolves with results by contender. */
async function run({ contenders, params = {} }) {
  const [floor, ...others] = Object.keys(contenders)
  const names = [floor, ...others.filter((name) => wanted.some((part) => name.includes(part)))]
  const children = new Map()
  for (const name of names) children.set(name, await start(contenders[name]))
  const results = new Map(names.map((name) => [name, []]))
  for (let turn = -1; turn < TURNS; turn++) {
    for (const [name, child] of children) {
      const message = once(child, 'message')
      child.send({ ...params, ms: TURN_MS })
      const [result] = await message
      if (turn >= 0) results.get(name).push(result)
    }
  }
  for (const child of children.values()) {
    const exited = once(child, 'exit')
    child.disconnect()
    await exited
  }
  return results
}

/** The rows of one table, with ratios and bars; failed contenders are reported and left out. */
function rowsOf({ title, figure, unit, bars }, results) {
  const rows = []
  let floor = null
  for (const [contender, turns] of results) {
    const failed = turns.find((turn) => turn.error !== undefined)
    if (failed !== undefined) {
      console.error(`${title}: ${contender} failed: ${failed.error}`)
      continue
    }
    const figures = turns.map((turn) => turn[figure])
    const value = median(figures)
    const cpu =
      turns[0].cpu === undefined || figure === 'start'
        ? null
        : median(turns.map((turn) => turn.cpu))
    const ratio = floor === null ? null : value / floor
    floor ??= value
    rows.push({
      scenario: title,
      contender,
      median: value,
      min: Math.min(...figures),
      max: Math.max(...figures),
      unit,
      ratio,
      cpu,
      bar: null,
      met: null,
    })
  }
  const figureOf = (name) => rows.find((row) => row.contender === name)?.median ?? Infinity
  const earlier = (scenario, name) =>
    allRows.find((row) => row.scenario === scenario && row.contender === name)?.median
  for (const row of rows) {
    const own = bars.filter(({ of }) => of === row.contender)
    if (own.length === 0) continue
    const missed = own.filter(({ holds }) => !holds(row, figureOf, floor, earlier))
    row.bar = own.map(({ text }) => text).join('; ')
    row.met = missed.length === 0
    if (missed.length > 0) row.missed = missed.map(({ text }) => text).join('; ')
  }
  return rows
}

function print(title, rows) {
  console.log(`\n${title}`)
  for (const row of rows) console.log(`${rowText(row)}${row.met === false ? ` ${row.missed}` : ''}`)
}

const allRows = []
for (const scenario of scenarios) {
  const measures = scenario.measures.filter(
    ({ title }) => words.length === 0 || words.some((word) => title.includes(word)),
  )
  if (measures.length === 0) continue
  const results = await run(scenario)
  for (const measure of measures) {
    const table = rowsOf(measure, results)
    print(measure.title, table)
    allRows.push(...table)
  }
}
const missed = allRows.filter((row) => row.met === false)
const met = allRows.filter((row) => row.met === true)
console.log(`\n${met.length} rows meet their bars, ${missed.length} do not`)
for (const row of missed) console.log(`  missed: ${row.scenario}, ${row.contender}: ${row.missed}`)
if (flags.json !== undefined) {
  const versions = versionsOf(['@langchain/langgraph', '@openai/agents', 'ai', '@mastra/core'])
  writeResults(flags.json, {
    name: 'agent',
    versions,
    rows: allRows.map(({ missed: _, ...row }) => row),
  })
}
