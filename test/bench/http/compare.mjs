/**
 * Compares HTTP clients side by side in one run:
 *
 *     npm install --no-save --prefix test/peers
 *     node test/bench/http/compare.mjs [part of a scenario's name]… [--json FILE]
 *
 * Each contender has a process of its own; they take turns, so that a busy machine is busy for all.
 * For the asynchronous clients the server is pinned to one core and the client to another; blocking
 * clients use both and are not pinned. What is measured of ours is the built package. WARM_MS (default
 * 1000, for blocking clients 3000) is how long each contender runs before the first turn, alike for
 * all; TURNS (default 7) is how many turns count, TURN_MS (default 500, for blocking clients 21 turns of
 * 200) how long one lasts, and CONTENDERS a list of parts of names, for those who want to see less. Each
 * turn begins with another contender.
 *
 * Figures are medians of the turns with their range; a ratio is one of medians, to the first
 * contender of the scenario. `scenarios.mjs` says what is run and which bars we hold ourselves to.
 *
 * `--json FILE` writes what the tables say, in the format that the benchmarks here share:
 *
 *     {
 *       name: 'http',
 *       versions: { node: 'v20.20.2', undici: '7.30.2', … },
 *       machine: { cpu: 'AMD EPYC', cores: 2, memoryGB: 24, platform: 'linux x64', pinned: true },
 *       rows: [{
 *         scenario: 'GET, one at a time',
 *         contender: 'runwright AsyncClient',
 *         median: 88.1, min: 84, max: 91.5,   // in `unit`, of one request unless the scenario says else
 *         unit: 'us',                         // less is better, but for `/s`
 *         ratio: 0.62,                        // to the first contender, null for itself
 *         cpu: 51.2,                          // us of client CPU for one request, null where not measured
 *         bar: '<= 1.15x',                    // what ours must hold, null on other rows
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

// What is measured is what is shipped: the built package.
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

/** Milliseconds from the start of a process to the point that it tells of. */
async function timeFresh(name, what, ports) {
  const startedAt = performance.timeOrigin + performance.now()
  const child = start(here('fresh.mjs'), [name, what, JSON.stringify(ports)], null)
  const [told] = await once(child, 'message')
  if (child.connected) child.disconnect()
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  return told.error === undefined ? { ms: told.at - startedAt } : told
}

/** How long and how often the contenders of a scenario run: what the environment says goes first. */
function paceOf({ pace = {} }) {
  const { WARM_MS, TURNS, TURN_MS } = process.env
  return {
    warmMs: Number(WARM_MS ?? pace.warmMs ?? 1000),
    turns: Number(TURNS ?? pace.turns ?? 7),
    turnMs: Number(TURN_MS ?? pace.turnMs ?? 500),
  }
}

const rotated = (names, by) => names.map((_, i) => names[(i + Math.max(by, 0)) % names.length])

/** Runs the turns of one scenario: name of contender to its results. */
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
  // Fresh processes have nothing to warm up but the disk's cache: for them, one turn that does not count.
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

/** The rows of one table: what `measure` says of each contender's turns. */
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
