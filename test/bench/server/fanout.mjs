/**
 * Compares the event streams of the service with a server on `ws` that does the same job: both
 * bring the events of the same engine to all subscribers of a run.
 *
 *     npm install --no-save --prefix test/peers
 *     node test/bench/server/fanout.mjs [bursts|idle|one run|many runs]… [--json FILE]
 *
 * One process serves, another holds the subscribers; each is pinned to a core. The scenarios:
 *
 * - `bursts`: one model turn writes about 27 events to SUBSCRIBERS (default 1000). Timed from the
 *   model's answer until the last subscriber has the last event, for TURNS (default 15) rounds
 *   after 3 to warm up, with the contenders taking turns.
 * - `idle`: growth of RSS per subscriber at 5000.
 * - `one run`, `many runs`: RSS during bursts to 5000 subscribers of one run, or of 1000 runs with
 *   5 each, the last quarter against the second. `many runs` takes ROUNDS bursts (default 40, at
 *   least 20). The log is on disk, and a window of 8000 tokens bounds the conversation that a run
 *   keeps in memory, so any growth would be growth with the number of events.
 *
 * `ratio` is relative to the first contender of a scenario. Rows have the format of
 * `../http/compare.mjs`.
 */
import { fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { buildPackage } from '../build-package.mjs'
import { versionsOf, writeResults } from '../report.mjs'

const here = (name) => fileURLToPath(new URL(name, import.meta.url))
const { values: flags, positionals: words } = parseArgs({
  allowPositionals: true,
  options: { json: { type: 'string' } },
})
const TURNS = Number(process.env.TURNS ?? 15)
const SUBSCRIBERS = Number(process.env.SUBSCRIBERS ?? 1_000)
const WARM_UP = 3
const canPin = availableParallelism() > 1 && spawnSync('taskset', ['-V']).status === 0

const built = buildPackage()

class Child {
  constructor(file, args, core) {
    this.process = fork(here(file), args, {
      execArgv: ['--expose-gc'],
      env: { ...process.env, RUNWRIGHT: pathToFileURL(built).href, WS_NO_BUFFER_UTIL: '1' },
    })
    if (canPin) spawnSync('taskset', ['-acp', core, String(this.process.pid)])
    this.ready = once(this.process, 'message').then(([answer]) => answer)
    this.ended = new Promise((resolve) => this.process.once('exit', resolve))
  }

  async ask(order) {
    this.process.send(order)
    return await new Promise((resolve, reject) => {
      const gone = () => reject(new Error('a process has ended'))
      this.process.once('exit', gone)
      this.process.once('message', (answer) => {
        this.process.off('exit', gone)
        resolve(answer)
      })
    })
  }

  async end() {
    this.process.disconnect()
    await this.ended
  }
}

/** The server of one contender with its runs, and its subscribers. */
async function start(name, runCount, perRun) {
  const server = new Child('fanout-server.mjs', [name, String(runCount)], '0')
  const load = new Child('fanout-load.mjs', [], '1')
  const { port, runs } = await server.ready
  await load.ready
  const { heads } = await server.ask('heads')
  const one = { name, server, load, heads, end: () => Promise.all([server.end(), load.end()]) }
  one.open = async (count) => {
    for (const run of runs) await load.ask({ kind: 'open', port, run, count, from: one.heads[run] })
  }
  await one.open(perRun)
  return one
}

/** One burst: the time until the last subscriber has it, and the CPU time of the server. */
async function burst(one, perRun) {
  const began = performance.timeOrigin + performance.now()
  const { heads, cpuBefore } = await one.server.ask('burst')
  const { at } = await one.load.ask({ kind: 'until', heads })
  const { cpu } = await one.server.ask('cpu')
  let events = 0
  for (const [run, seq] of Object.entries(heads)) events += seq - one.heads[run]
  one.heads = heads
  const deliveries = events * perRun
  return { us: ((at - began) * 1000) / deliveries, cpu: (cpu - cpuBefore) / deliveries, deliveries }
}

const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1]
const rows = []

function add(scenario, contender, values, unit, more = {}) {
  const row = {
    scenario,
    contender,
    median: median(values),
    min: Math.min(...values),
    max: Math.max(...values),
    unit,
    ratio: null,
    cpu: null,
    bar: null,
    met: null,
    ...more,
  }
  rows.push(row)
  const show = (value) => (value < 100 ? value.toFixed(2) : value.toFixed(0))
  const { bar, met, ratio, cpu } = row
  const range = `${show(row.min)}..${show(row.max)}`
  console.log(
    `${scenario.padEnd(34)} ${contender.padEnd(10)} ${show(row.median)} (${range}) ${unit}` +
      (ratio === null ? '' : `  ${ratio.toFixed(2)}x`) +
      (cpu === null ? '' : `  cpu ${cpu.toFixed(2)} us`) +
      (bar === null ? '' : `  ${met ? 'meets' : 'MISSES'} ${bar}`),
  )
}

async function bursts() {
  const scenario = `bursts to ${SUBSCRIBERS} subscribers`
  const pairs = []
  for (const name of ['ws', 'runwright']) pairs.push(await start(name, 1, SUBSCRIBERS))
  const results = new Map(pairs.map(({ name }) => [name, []]))
  for (let i = -WARM_UP; i < TURNS; i++) {
    for (const one of pairs) {
      const result = await burst(one, SUBSCRIBERS)
      if (i >= 0) results.get(one.name).push(result)
    }
  }
  const base = median(results.get('ws').map(({ us }) => us))
  for (const [name, list] of results) {
    const values = list.map(({ us }) => us)
    const ratio = median(values) / base
    const bar = name === 'runwright' ? { bar: '<= 0.25x ws', met: ratio <= 0.25 } : {}
    add(scenario, name, values, 'us/delivery', {
      ratio,
      cpu: median(list.map(({ cpu }) => cpu)),
      ...bar,
    })
  }
  for (const one of pairs) await one.end()
}

async function idle() {
  const scenario = 'memory per idle subscriber, of 5000'
  let base
  for (const name of ['ws', 'runwright']) {
    const one = await start(name, 1, 100)
    for (let i = 0; i < WARM_UP; i++) await burst(one, 100)
    const before = await one.server.ask('memory')
    await one.open(5_000)
    const after = await one.server.ask('memory')
    const kb = (after.rss - before.rss) / 5_000 / 1_024
    base ??= kb
    const bar = name === 'runwright' ? { bar: '<= 12 KB', met: kb <= 12 } : {}
    add(scenario, name, [kb], 'KB', {
      ratio: kb / base,
      heapKb: (after.heapUsed - before.heapUsed) / 5_000 / 1_024,
      ...bar,
    })
    await one.end()
  }
}

/** RSS during bursts; flat when the last quarter is not above the second. */
async function hold(scenario, runCount, perRun, rounds) {
  const one = await start('runwright', runCount, perRun)
  const samples = []
  const costs = []
  for (let i = 0; i < rounds; i++) {
    costs.push(await burst(one, perRun))
    if (i % 5 === 4) samples.push((await one.server.ask('memory')).rss / 2 ** 20)
  }
  const quarter = samples.length >> 2
  const [second, last] = [samples.slice(quarter, 2 * quarter), samples.slice(-quarter)]
  const growth = median(last) / median(second)
  add(`${scenario}: RSS`, 'runwright', samples, 'MB', {
    ratio: growth,
    bar: '<= 1.15x over time',
    met: growth <= 1.15,
  })
  add(
    `${scenario}: delivery`,
    'runwright',
    costs.slice(WARM_UP).map(({ us }) => us),
    'us/delivery',
    { cpu: median(costs.map(({ cpu }) => cpu)) },
  )
  await one.end()
}

const wanted = (name) => words.length === 0 || words.includes(name)
if (wanted('bursts')) await bursts()
if (wanted('idle')) await idle()
if (wanted('one run')) await hold('5000 subscribers on one run', 1, 5_000, 60)
if (wanted('many runs'))
  await hold('1000 runs with 5 subscribers each', 1_000, 5, Number(process.env.ROUNDS ?? 40))

if (flags.json !== undefined) {
  writeResults(flags.json, { name: 'fanout', versions: versionsOf(['ws']), rows, pinned: canPin })
}
