/**
 * Compares clients side by side in one run: `node test/bench/http/compare.mjs [part of a scenario]…`.
 *
 * Each contender has a process of its own; they take turns, so that a busy machine is busy for all.
 * The server is pinned to one core and each client to another (not for the blocking clients, which
 * need both). Figures are medians of the turns, ratios are to the first contender of the scenario.
 */
import { fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const here = (name) => fileURLToPath(new URL(name, import.meta.url))
const root = here('../../..')
const words = process.argv.slice(2)
const TURNS = Number(process.env.TURNS ?? 7)
const TURN_MS = Number(process.env.TURN_MS ?? 500)
const canPin = availableParallelism() > 1 && spawnSync('taskset', ['-V']).status === 0

const ASYNC = ['node:http', 'runwright AsyncClient', 'undici.request', 'global fetch', 'got', 'axios', 'ky']
const scenarios = {
  sequential: ASYNC,
  '64 in flight': ASYNC,
  'POST 1 MB': ASYNC,
  'gzip JSON': ASYNC,
  '100 MB stream': ASYNC,
  HTTPS: ASYNC,
  'HTTP/2': ['node:http', 'runwright AsyncClient', 'undici.request'],
  'HTTP/2, 64 in flight': ['node:http', 'runwright AsyncClient', 'undici.request'],
  blocking: ['worker + node:http', 'runwright Client', 'sync-fetch'],
}

// What is measured is what is shipped: the built package.
const built = mkdtempSync(join(tmpdir(), 'runwright-bench-'))
process.on('exit', () => rmSync(built, { recursive: true, force: true }))
spawnSync(process.execPath, [here('../../../node_modules/typescript/bin/tsc'), '-p', join(root, 'lib'), '--outDir', built])
writeFileSync(join(built, 'package.json'), '{"type":"module"}')

function start(file, args, core) {
  const pin = canPin && core !== null
  const flags = ['--no-warnings']
  return fork(file, args, {
    cwd: root,
    env: { ...process.env, RUNWRIGHT_HTTP: pathToFileURL(join(built, 'http/index.js')).href },
    execPath: pin ? 'taskset' : process.execPath,
    execArgv: pin ? ['-c', String(core), process.execPath, ...flags] : flags,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
}

async function ask(child, message) {
  const answer = once(child, 'message')
  child.send(message)
  return (await answer)[0]
}

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]

async function compare(scenario, names) {
  const core = scenario === 'blocking' ? [null, null] : [1, 0]
  const server = start(here('server.mjs'), [], core[0])
  const [ports] = await once(server, 'message')
  const children = new Map()
  for (const name of names) {
    const child = start(here('contender.mjs'), [name, JSON.stringify(ports)], core[1])
    await once(child, 'message')
    children.set(name, child)
  }
  const turns = new Map(names.map((name) => [name, []]))
  for (let turn = -1; turn < TURNS; turn++) {
    for (const [name, child] of children) {
      const result = await ask(child, { scenario, ms: TURN_MS })
      if (turn >= 0 && result !== null) turns.get(name).push(result)
    }
  }
  for (const child of children.values()) child.disconnect()
  server.disconnect()
  report(scenario, turns)
}

function report(scenario, turns) {
  console.log(`\n${scenario}${canPin && scenario !== 'blocking' ? ' (pinned)' : ''}`)
  let floor = null
  for (const [name, results] of turns) {
    const good = results.filter((result) => result.error === undefined)
    if (good.length === 0) {
      if (results.length > 0) console.log(`  ${name.padEnd(24)} ${results[0].error}`)
      continue
    }
    const us = median(good.map((result) => result.us))
    const cpu = median(good.map((result) => result.cpu))
    const rss = Math.max(...good.map((result) => result.rss))
    floor ??= { us, cpu }
    const spread = `${Math.min(...good.map((r) => r.us)).toFixed(0)}..${Math.max(...good.map((r) => r.us)).toFixed(0)}`
    console.log(
      `  ${name.padEnd(24)} ${us.toFixed(1).padStart(9)} us ${(us / floor.us).toFixed(2).padStart(6)}x  ` +
        `cpu ${cpu.toFixed(1).padStart(8)} us ${(cpu / floor.cpu).toFixed(2).padStart(5)}x  rss +${rss.toFixed(0)} MB  (${spread})`,
    )
  }
}

for (const [scenario, names] of Object.entries(scenarios)) {
  if (words.length === 0 || words.some((word) => scenario.includes(word))) await compare(scenario, names)
}
