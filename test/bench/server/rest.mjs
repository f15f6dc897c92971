/**
 * Compares the REST API with the same routes written by hand on node:http, Fastify, Hono and
 * Express, and measures what a caller waits for:
 *
 *     npm install --no-save --prefix test/peers
 *     node test/bench/server/rest.mjs [part of a scenario's name]… [--json FILE]
 *
 * Each contender has a process of its own; they take turns, so that a busy machine is busy for all.
 * Server and load are pinned to a core each. The built package is measured, in TURNS turns (default
 * 9) after one to warm up, of TURN_MS (default 400) each.
 *
 * The hand-written routes check the method and the path, look the run up in a map and answer with
 * the same bytes as the service. A posted run works with a model and an executor that do nothing.
 * Rows have the format of `../http/compare.mjs`: medians, less is better; `cpu` is of the server.
 */
import { fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { buildPackage } from '../build-package.mjs'
import { versionsOf, writeResults } from '../report.mjs'
import { firstEvent, hammer } from './load.mjs'

const here = (name) => fileURLToPath(new URL(name, import.meta.url))
const { values: flags, positionals: words } = parseArgs({
  allowPositionals: true,
  options: { json: { type: 'string' } },
})
const TURNS = Number(process.env.TURNS ?? 9)
const TURN_MS = Number(process.env.TURN_MS ?? 400)
const CONNECTIONS = 64
const canPin = availableParallelism() > 1 && spawnSync('taskset', ['-V']).status === 0

const built = buildPackage()
if (canPin) spawnSync('taskset', ['-cp', '0', String(process.pid)])

/** Starts a server of one contender. */
async function start(contender, reference) {
  const child = fork(here('server.mjs'), [contender], {
    env: {
      ...process.env,
      RUNWRIGHT: pathToFileURL(built).href,
      REFERENCE: JSON.stringify(reference ?? null),
    },
  })
  if (canPin) spawnSync('taskset', ['-acp', '1', String(child.pid)])
  const [told] = await once(child, 'message')
  const ask = async (what) => {
    child.send(what)
    const [answer] = await once(child, 'message')
    return answer
  }
  return { name: contender, port: told.port, run: told.run, ask, stop: () => child.kill('SIGKILL') }
}

const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1]
const rows = []

/** Adds a row; `samples` are numbers in `unit`. */
function add(
  scenario,
  contender,
  samples,
  unit,
  { base = null, cpu = null, bar = null, limit = null } = {},
) {
  const value = median(samples)
  const ratio = base === null ? null : value / base
  const met = limit === null ? null : (base === null ? value : ratio) <= limit
  rows.push({
    scenario,
    contender,
    median: value,
    min: Math.min(...samples),
    max: Math.max(...samples),
    unit,
    ratio,
    cpu,
    bar,
    met,
  })
  const text = [
    value.toFixed(3).padStart(10),
    unit,
    ratio === null ? '' : `${ratio.toFixed(2)}x`,
    cpu === null ? '' : `cpu ${cpu.toFixed(1)} us`,
    bar ?? '',
    met === null ? '' : met ? 'met' : 'NOT MET',
  ]
  console.log(`${scenario.padEnd(30)} ${contender.padEnd(10)} ${text.join('  ')}`)
  return value
}

const wants = (scenario) => words.length === 0 || words.some((word) => scenario.includes(word))

/** Contenders take turns with the same requests. */
async function compare(scenario, servers, requestFor, barsFor) {
  if (!wants(scenario)) return
  const samples = new Map(servers.map(({ name }) => [name, { us: [], cpu: [] }]))
  for (let turn = 0; turn <= TURNS; turn++) {
    // The order changes, so that none always follows the same contender.
    const order = servers.map((_, index) => servers[(index + turn) % servers.length])
    for (const server of order) {
      const before = await server.ask('cpu')
      const { count, ms } = await hammer(server.port, requestFor(server), CONNECTIONS, TURN_MS)
      const after = await server.ask('cpu')
      if (turn === 0) continue
      samples.get(server.name).us.push((ms * 1000) / count)
      samples.get(server.name).cpu.push((after - before) / count)
    }
  }
  const base = median(samples.get(servers[0].name).us)
  const fastify = samples.get('fastify') === undefined ? null : median(samples.get('fastify').us)
  for (const { name } of servers) {
    const { us, cpu } = samples.get(name)
    add(scenario, name, us, 'us', {
      base: name === servers[0].name ? null : base,
      cpu: median(cpu),
      ...barsFor(name),
    })
  }
  if (fastify !== null) {
    add(`${scenario} / fastify`, 'runwright', samples.get('runwright').us, 'us', {
      base: fastify,
      ...barsFor('fastify ratio'),
    })
  }
}

const ours = await start('runwright')
const reference = await ours.ask('reference')
const servers = [
  await start('node:http', reference),
  ours,
  await start('fastify', reference),
  await start('hono', reference),
  await start('express', reference),
]
const get = ({ run }) => `GET /api/runs/${run} HTTP/1.1\r\nHost: localhost\r\n\r\n`
const body = '{"goal":"noop","max_iterations":1}'
const post = () =>
  'POST /api/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n' +
  `Content-Length: ${body.length}\r\n\r\n${body}`

await compare('GET run', servers, get, (name) =>
  name === 'runwright'
    ? { bar: '<= 1.15x', limit: 1.15 }
    : name === 'fastify ratio'
      ? { bar: '<= 1.10x', limit: 1.1 }
      : {},
)
await compare('POST run', servers, post, () => ({}))
for (const server of servers) server.stop()

if (wants('first event')) {
  const server = await start('runwright-durable')
  const samples = await firstEvent(server.port, post(), Number(process.env.ROUNDS ?? 200))
  add('POST to first event', 'runwright', samples, 'ms', { bar: '< 5 ms', limit: 5 })
  server.stop()
}
if (wants('list')) {
  const server = await start('runwright-list')
  const list = `GET /api/runs?limit=50&cursor=${server.run} HTTP/1.1\r\nHost: localhost\r\n\r\n`
  for (const [what, request] of [
    ['50 of 100 000, first page', 'GET /api/runs?limit=50 HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['50 of 100 000, in the middle', list],
    [
      '50 of 100 000, rare text',
      'GET /api/runs?limit=50&search=needle HTTP/1.1\r\nHost: localhost\r\n\r\n',
    ],
    [
      '50 of 100 000, a rare status',
      'GET /api/runs?limit=50&status=failed HTTP/1.1\r\nHost: localhost\r\n\r\n',
    ],
  ]) {
    const samples = []
    for (let i = 0; i < 60; i++) {
      const { count, ms } = await hammer(server.port, request, 1, 0)
      if (i >= 10) samples.push(ms / count)
    }
    // A rare text is searched in every run: reported, without a limit.
    const bar = what.includes('text') ? {} : { bar: '< 5 ms', limit: 5 }
    add(`list: ${what}`, 'runwright', samples, 'ms', bar)
  }
  server.stop()
}

if (flags.json !== undefined) {
  writeResults(flags.json, {
    name: 'rest',
    versions: versionsOf(['fastify', 'hono', 'express']),
    rows,
    pinned: canPin,
  })
}
process.exit(0)
