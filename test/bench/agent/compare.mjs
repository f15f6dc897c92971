/**
 * Compares the run engine with agent frameworks and with floors, side by side in one run:
 *
 *     npm install --no-save --prefix test/peers
 *     node test/bench/agent/compare.mjs [part of a table's name]… [--json FILE]
 *
 * A *step* is one iteration: a model call, one tool in process, and the evaluation. The model is a
 * script in the same process, so that what is measured is what a framework does around it. Ours
 * writes ten events a step, each with its time and number; `followed` means that somebody reads them
 * all as JSON while the run goes on. `file` is FileStore without sync, `durable` with.
 *
 * Each contender has a process of its own; they take turns, so that a busy machine is busy for all.
 * What is measured of ours is the built package. TURNS (default 5) is how many turns count, after one
 * to warm up, TURN_MS (default 400) how long one lasts at least, and CONTENDERS a list of parts of
 * names, for those who want to see less.
 *
 * Figures are medians of the turns with their range; a ratio is one of medians, to the first
 * contender of the table. `scenarios.mjs` says what is run and which bars we hold ourselves to.
 * `--json FILE` writes the tables in the format that is told in `test/bench/http/compare.mjs`; a row
 * with several bars has them joined by `; `.
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

// What is measured is what is shipped: the built package.
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

/** Runs the turns of one scenario: name of contender to its results. */
async function run({ contenders, params = {} }) {
  const [floor, ...others] = Object.keys(contenders)
  const names = [floor, ...others.filter((name) => wanted.some((part) => name.includes(part)))]
  const children = new Map()
  for (const name of names) children.set(name, await start(contenders[name]))
  const results = new Map(names.map((name) => [name, []]))
  for (let turn = -1; turn < TURNS; turn++) {
    for (const [name, child] of children) {
      const answer = once(child, 'message')
      child.send({ ...params, ms: TURN_MS })
      const [result] = await answer
      if (turn >= 0) results.get(name).push(result)
    }
  }
  for (const child of children.values()) {
    const gone = once(child, 'exit')
    child.disconnect()
    await gone
  }
  return results
}

/** The rows of one table. */
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
console.log(
  `\n${allRows.filter((row) => row.met === true).length} rows hold their bars, ${missed.length} do not`,
)
for (const row of missed) console.log(`  missed: ${row.scenario}, ${row.contender}: ${row.missed}`)
if (flags.json !== undefined) {
  const versions = versionsOf(['@langchain/langgraph', '@openai/agents', 'ai', '@mastra/core'])
  writeResults(flags.json, {
    name: 'agent',
    versions,
    rows: allRows.map(({ missed: _, ...row }) => row),
  })
}
