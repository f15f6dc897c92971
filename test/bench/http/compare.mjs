/**
 * Compares HTTP clients side by side in one run:
 *
 *     npm install --no-save --prefix test/peers
 *     node test/bench/http/compare.mjs [part of a scenario's name]… [--json FILE]
 *
 * Each contender has its own process. They take turns, each turn in another order, so that load on
 * the machine affects all alike. For asynchronous clients the server is pinned to one core and the
 * client to another; blocking clients use both and are not pinned. Our clients are those of the
 * built package. Environment variables:
 *
 *     WARM_MS     how long each contender runs before the first turn (1000; blocking clients: 3000)
 *     TURNS       how many turns count (7; blocking clients: 21)
 *     TURN_MS     how long a turn lasts (500; blocking clients: 200)
 *     CONTENDERS  a list of parts of names; the first contender of a scenario always runs
 *
 * Figures are medians of the turns with their range; a ratio compares a median with that of the
 * first contender. `scenarios.mjs` has the scenarios, and the bars that our clients must meet.
 *
 * `--json FILE` writes the tables in the format that all benchmarks here share:
 *
 *     {
 *       name: 'http',
 *       versions: { node: 'v20.20.2', undici: '7.30.2', … },
 *       machine: { cpu: 'AMD EPYC', cores: 2, memoryGB: 24, platform: 'linux x64', pinned: true },
 *       rows: [{
 *         scenario: 'GET, one at a time',
 *         contender: 'runwright AsyncClient',
 *         median: 88.1, min: 84, max: 91.5,   // in `unit`; of one request unless stated otherwise
 *         unit: 'us',                         // less is better, except for `/s`
 *         ratio: 0.62,                        // to the first contender, null for itself
 *         cpu: 51.2,                          // us of client CPU per request, null if not measured
 *         bar: '<= 1.15x',                    // what ours must meet, null on other rows
 *         met: true,                          // whether it does, null without a bar
 *       }, …]
 *     }
 */
import { fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { buildPackage } from '../build-package.mjs'
import { rowText, versionsOf, writeResults } from '../report.mjs'
import { scenarios } from './scenarios.mjs'

const here = (name) => fileURLToPath(new URL(name, import.meta.url))
const root = here('../../..')
const { values: flags, positionals: words } = parseArgs({
  allowPositionals: true,
  options: { json: { type: 'string' } },
})
const wanted = process.env.CONTENDERS?.split(',') ?? ['']
const canPin = availableParallelism() > 1 && spawnSync('taskset', ['-V']).status === 0
const SERVER_CORE = 1
const CLIENT_CORE = 0

// Measures what is shipped: the built package.
const built = buildPackage()
const env = {
  ...process.env,
  RUNWRIGHT_HTTP: pathToFileURL(join(built, 'http/index.js')).href,
  NODE_TLS_REJECT_UNAUTHORIZED: '0',
}

function start(file, args, core) {
  const execArgv = ['--no-warnings']
  const pinned = core !== null && canPin
  return fork(file, args, {
    cwd: root,
    env,
    execPath: pinned ? 'taskset' : process.execPath,
    execArgv: pinned ? ['-c', String(core), process.execPath, ...execArgv] : execArgv,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
}

async function ask(child, message) {
  const answer = once(child, 'message')
  child.send(message)
  return (await answer)[0]
}

async function startContender(name, ports, core) {
  const child = start(here('contender.mjs'), [name, JSON.stringify(ports)], core)
  await once(child, 'message')
  return child
}

/** Milliseconds from the start of a process to its report. */
async function timeFresh(name, what, ports) {
  const startedAt = performance.timeOrigin + performance.now()
  const child = start(here('fresh.mjs'), [name, what, JSON.stringify(ports)], null)
  const [report] = await once(child, 'message')
  if (child.connected) child.disconnect()
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  return report.error === undefined ? { ms: report.at - startedAt } : report
}

/** How long and how often the contenders of a scenario run; the environment takes precedence. */
function paceOf({ pace = {} }) {
  const { WARM_MS, TURNS, TURN_MS } = process.env
  return {
    warmMs: Number(WARM_MS ?? pace.warmMs ?? 1000),
    turns: Number(TURNS ?? pace.turns ?? 7),
    turnMs: Number(TURN_MS ?? pace.turnMs ?? 500),
  }
}

const rotated = (names, by) => names.map((_, i) => names[(i + Math.max(by, 0)) % names.length])

/** Runs the turns of one scenario; a map from contender to results. */
async function run(scenario, names) {
  const pinned = scenario.pinned === true
  const server = start(here('server.mjs'), [], pinned ? SERVER_CORE : null)
  const [ports] = await once(server, 'message')
  const core = pinned ? CLIENT_CORE : null
  const children = new Map()
  if (scenario.fresh === undefined && scenario.freshProcess !== true) {
    for (const name of names) children.set(name, await startContender(name, ports, core))
  }
  const results = new Map(names.map((name) => [name, []]))
  const { warmMs, turns, turnMs } = paceOf(scenario)
  const order = {
    task: scenario.task,
    flights: scenario.flights ?? 1,
    once: scenario.freshProcess === true,
  }
  for (const child of children.values()) await ask(child, { ...order, ms: warmMs })
  // Fresh processes warm up only the disk cache: one turn that does not count.
  for (let turn = children.size > 0 ? 0 : -1; turn < turns; turn++) {
    for (const name of rotated(names, turn)) {
      let result
      if (scenario.fresh !== undefined) result = await timeFresh(name, scenario.fresh, ports)
      else {
        const child = children.get(name) ?? (await startContender(name, ports, core))
        result = await ask(child, { ...order, ms: turnMs })
        if (!children.has(name)) child.disconnect()
      }
      if (turn >= 0) results.get(name).push(result)
    }
  }
  for (const child of children.values()) child.disconnect()
  server.disconnect()
  return results
}

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]

/** The rows of one table: `measure`, applied to each contender's turns. */
function rowsOf(title, measure, results) {
  const rows = []
  let floor = null
  for (const [contender, turns] of results) {
    const failed = turns.find((turn) => turn.error !== undefined)
    if (failed !== undefined) {
      console.error(`${title}: ${contender} failed: ${failed.error}`)
      continue
    }
    const figures = turns.map(measure.figure)
    const value = median(figures)
    const cpu = turns[0].cpu === undefined ? null : median(turns.map((turn) => turn.cpu))
    const ratio = floor === null ? null : value / floor
    floor ??= value
    rows.push({
      scenario: title,
      contender,
      median: value,
      min: Math.min(...figures),
      max: Math.max(...figures),
      unit: measure.unit,
      ratio,
      cpu,
      bar: null,
      met: null,
    })
  }
  for (const { of, text, holds } of measure.bars ?? []) {
    const ours = rows.find((row) => row.contender === of)
    if (ours === undefined || ours === rows[0]) continue
    ours.bar = text
    ours.met = holds(
      ours,
      (name) => rows.find((row) => row.contender === name)?.median ?? Infinity,
      rows[0].median,
      rows[0].cpu,
    )
  }
  return rows
}

function print(title, rows) {
  console.log(`\n${title}`)
  for (const row of rows) console.log(rowText(row, 26))
}

const rows = []
for (const scenario of scenarios) {
  const measures = scenario.measures.filter(
    ({ title }) => words.length === 0 || words.some((word) => title.includes(word)),
  )
  if (measures.length === 0) continue
  const [floor, ...others] = scenario.contenders
  const names = [floor, ...others.filter((name) => wanted.some((part) => name.includes(part)))]
  const results = await run(scenario, names)
  for (const measure of measures) {
    const table = rowsOf(measure.title, measure, results)
    print(`${measure.title}${scenario.pinned === true && canPin ? ' (pinned)' : ''}`, table)
    rows.push(...table)
  }
}
const missed = rows.filter((row) => row.met === false)
console.log(`\n${rows.filter((row) => row.met === true).length} bars met, ${missed.length} missed`)
for (const row of missed) console.log(`  missed: ${row.scenario}, ${row.contender}: ${row.bar}`)
if (flags.json !== undefined) {
  const versions = versionsOf(['undici', 'got', 'axios', 'ky', 'sync-fetch', 'synckit'])
  writeResults(flags.json, { name: 'http', versions, rows, pinned: canPin })
}
