/**
 * Measures the store that processes share, against a real PostgreSQL in a scratch folder with its
 * durable defaults:
 *
 *     npm install --no-save --prefix test/peers
 *     node --import tsx test/bench/scale/compare.ts [part of a scenario's name]… [--json FILE]
 *
 * It measures the built package, in processes on the same machine as the database, which takes its
 * share of the cores. TURNS (default 3) is how often each scenario is measured, TURN_MS (default
 * 2000) for how long. Figures are medians with their range. `--json FILE` writes them in the format
 * described in `test/bench/http/compare.mjs`.
 *
 * `--large "by what is stored"` compares 10 million stored events with 10 thousand, and measures
 * reads, lists, searches and claims as well: it writes 4 GB and takes four minutes. `--port` uses a
 * local server that an earlier run has filled.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { buildPackage } from '../build-package.mjs'
import { rowText, versionsOf, writeResults } from '../report.mjs'
import type { Row } from '../results.js'
import { connectionTo, poolTo, startPostgres } from '../../peers/postgres/postgres.js'

const { values: flags, positionals: words } = parseArgs({
  allowPositionals: true,
  options: { json: { type: 'string' }, large: { type: 'boolean' }, port: { type: 'string' } },
})
const TURNS = Number(process.env['TURNS'] ?? 3)
const TURN_MS = Number(process.env['TURN_MS'] ?? 2_000)
const PROCESSES = 4

const built = buildPackage()
const env = { ...process.env, RUNWRIGHT_AGENT: pathToFileURL(join(built, 'agent/index.js')).href }

const own = flags.port === undefined ? await startPostgres() : undefined
const port = own?.connection.port ?? Number(flags.port)
const pool = poolTo(connectionTo(port))
const children = new Set<ChildProcess>()
const rows: Row[] = []
let schemas = 0

type Result = Readonly<Record<string, number>>

async function start(schema: string): Promise<ChildProcess> {
  const script = fileURLToPath(new URL('worker.mjs', import.meta.url))
  const child = fork(script, [JSON.stringify({ port, schema })], { env, execArgv: [] })
  children.add(child)
  await once(child, 'message')
  return child
}

async function nextMessage(child: ChildProcess): Promise<Record<string, unknown>> {
  // The result of a role, or an intermediate message.
  const [message] = (await once(child, 'message')) as [{ result?: unknown; error?: string }]
  if (message.error !== undefined) throw new Error(message.error)
  return (message.result ?? message) as Record<string, unknown>
}

/** Runs one role of `worker.mjs` and resolves with its result. */
async function request(child: ChildProcess, order: Record<string, unknown>): Promise<Result> {
  const result = nextMessage(child)
  child.send(order)
  return (await result) as Result
}

async function end(child: ChildProcess, signal?: NodeJS.Signals): Promise<void> {
  children.delete(child)
  const exited = once(child, 'exit')
  if (signal === undefined) child.disconnect()
  else child.kill(signal)
  await exited
}

function wanted(scenario: string): boolean {
  return words.length === 0 || words.some((word) => scenario.includes(word))
}

function row(
  scenario: string,
  contender: string,
  unit: string,
  figures: readonly number[],
  cpu: number | null = null,
): Row {
  const sorted = figures.toSorted((a, b) => a - b)
  const median = sorted[Math.floor(sorted.length / 2)] as number
  const [min, max] = [sorted[0] as number, sorted.at(-1) as number]
  const noBar = { ratio: null, bar: null, met: null }
  const made: Row = { scenario, contender, median, min, max, unit, cpu, ...noBar }
  rows.push(made)
  return made
}

function setBar(made: Row, bar: string, met: boolean): void {
  made.bar = bar
  made.met = met
}

async function turns<T>(count: number, work: () => Promise<T>): Promise<T[]> {
  const results: T[] = []
  for (let turn = 0; turn < count; turn++) results.push(await work())
  return results
}

/** Concurrent appends of several processes: events per second in all, CPU per event. */
async function appends(
  processes: number,
  runs: number,
  schema = `b${(schemas += 1)}`,
): Promise<{ rate: number; cpu: number }> {
  const workers = await Promise.all(Array.from({ length: processes }, () => start(schema)))
  const results = await Promise.all(
    workers.map((child) => request(child, { role: 'append', runs, ms: TURN_MS })),
  )
  await Promise.all(workers.map((child) => end(child)))
  const rate = results.reduce(
    (sum, { events = 0, elapsed = 1 }) => sum + (events / elapsed) * 1000,
    0,
  )
  return { rate, cpu: results.reduce((sum, { cpu = 0 }) => sum + cpu, 0) / results.length }
}

async function throughput(): Promise<void> {
  const scenario = 'durable events per second'
  if (!wanted(scenario)) return
  for (const [processes, runs] of [[1, 1], [1, 64], [PROCESSES, 64]] as const) {
    const results = await turns(TURNS, () => appends(processes, runs))
    const each = `${runs} run${runs > 1 ? 's' : ''} each`
    const name = `${processes} process${processes > 1 ? 'es' : ''}, ${each}`
    const made = row(scenario, name, '/s', results.map(({ rate }) => rate), results[0]?.cpu ?? null)
    if (processes === PROCESSES) setBar(made, '>= 5000', made.median >= 5_000)
  }
}

async function claims(): Promise<void> {
  const scenario = 'claims per second'
  if (!wanted(scenario)) return
  for (const processes of [1, PROCESSES]) {
    const figures = await turns(TURNS, async () => {
      const schema = `b${(schemas += 1)}`
      const workers = await Promise.all(Array.from({ length: processes }, () => start(schema)))
      const results = await Promise.all(
        workers.map((child) => request(child, { role: 'claim', runs: 50, ms: TURN_MS })),
      )
      await Promise.all(workers.map((child) => end(child)))
      return results.reduce(
        (sum, { claims = 0, elapsed = 1 }) => sum + (claims / elapsed) * 1000,
        0,
      )
    })
    row(scenario, `${processes} process${processes > 1 ? 'es' : ''}`, '/s', figures)
  }
}

async function tails(): Promise<void> {
  const scenario = 'from append to another process, 500 events/s'
  if (!wanted(scenario)) return
  const results = await turns(TURNS, async () => {
    const schema = `b${(schemas += 1)}`
    const [writer, reader] = [await start(schema), await start(schema)]
    const begun = nextMessage(writer)
    writer.send({ role: 'pace', runs: 20, rate: 500, ms: TURN_MS })
    const { ids } = await begun
    const following = nextMessage(reader)
    reader.send({ role: 'tail', ids, ms: TURN_MS + 500 })
    await following
    const [read, written] = [nextMessage(reader), nextMessage(writer)]
    writer.send({ go: true })
    const [{ events: sent }, result] = [await written, await read] as [Result, Result]
    if (result['events'] !== sent) throw new Error(`${result['events']} of ${sent} events arrived`)
    await end(writer)
    await end(reader)
    return result
  })
  const p50 = row(scenario, 'p50', 'ms', results.map((result) => result['p50'] as number))
  setBar(p50, '< 10 ms', p50.median < 10)
  const p99 = row(scenario, 'p99', 'ms', results.map((result) => result['p99'] as number))
  setBar(p99, '< 50 ms', p99.median < 50)
}

/** Fills a schema with ended runs of 100 events of 300 bytes each, by COPY. */
async function fill(schema: string, events: number): Promise<void> {
  const worker = await start(schema)
  await request(worker, { role: 'append', runs: 1, ms: 1 })
  await end(worker)
  const runs = events / 100
  // A crash of the machine would only lose this benchmark.
  await pool.query('ALTER SYSTEM SET fsync = off')
  await pool.query('SELECT pg_reload_conf()')
  await pool.query(`INSERT INTO ${schema}.runs (run_id, created_ms, ended_ms, status, goal_hash,
      model_name, tenant, search_text, fixed, head, last_seq)
    SELECT 'old-' || lpad(i::text, 7, '0'), i, i,
      (ARRAY['achieved', 'failed', 'aborted'])[1 + i % 3], md5(i::text), 'm', 't' || i % 20,
      'make the tests of part ' || md5(i::text) || ' pass m old-' || lpad(i::text, 7, '0'),
      f.fixed, f.head, 100
    FROM generate_series(1, ${runs}) i, (SELECT fixed, head FROM ${schema}.runs LIMIT 1) f`)
  const rows = `x = sprintf("%300s", ""); gsub(/ /, "x", x)
    for (i = 1; i <= ${runs}; i++) for (s = 1; s <= 100; s++)
      printf "old-%07d\\t%d\\t\\"%s\\"\\n", i, s, x`
  await pool.query(`COPY ${schema}.events FROM PROGRAM $copy$awk 'BEGIN { ${rows} }'$copy$`)
  await pool.query('ALTER SYSTEM RESET fsync')
  await pool.query('SELECT pg_reload_conf()')
  await pool.query(`VACUUM ANALYZE ${schema}.events`)
  await pool.query(`VACUUM ANALYZE ${schema}.runs`)
  await pool.query('CHECKPOINT')
}

/** The cost of an append, and with --large of all other statements, by the number of events. */
async function growth(): Promise<void> {
  const scenario = 'cost of an event by what is stored'
  if (!wanted(scenario)) return
  const sizes = [10_000, flags.large === true ? 10_000_000 : 1_000_000]
  for (const size of sizes) if (!(await isFilled(size))) await fill(`g${size}`, size)
  const figures = new Map<number, number[]>(sizes.map((size) => [size, []]))
  const others = new Map<number, Result[]>(sizes.map((size) => [size, []]))
  await turns(TURNS, async () => {
    // Alternating, so that load from elsewhere affects both.
    for (const size of sizes) figures.get(size)?.push(1e6 / (await appends(1, 64, `g${size}`)).rate)
    if (flags.large !== true) return
    for (const size of sizes) others.get(size)?.push(await statements(size))
  })
  const compare = (what: string, unit: string, of: (size: number) => readonly number[]): Row => {
    const [, many] = sizes.map((size) =>
      row(what, `${size.toLocaleString('en')} events`, unit, of(size)),
    )
    if (many === undefined) throw new Error('nothing measured')
    many.ratio = many.median / (rows.at(-2)?.median ?? NaN)
    return many
  }
  const many = compare(scenario, 'us', (size) => figures.get(size) ?? [])
  setBar(many, '<= 1.2x that at 10,000', (many.ratio ?? Infinity) <= 1.2)
  for (const what of Object.keys(others.get(sizes[0] as number)?.[0] ?? {})) {
    compare(what, 'us', (size) => (others.get(size) ?? []).map((result) => result[what] as number))
  }
}

/** Microseconds of each kind of statement in a schema of this size. */
async function statements(size: number): Promise<Result> {
  const worker = await start(`g${size}`)
  const result = await request(worker, { role: 'statements', runs: size / 100, ms: TURN_MS / 4 })
  await end(worker)
  return result
}

async function isFilled(size: number): Promise<boolean> {
  const { rows: found } = await pool.query(
    `SELECT to_regclass('g${size}.events') IS NOT NULL AS yes`,
  )
  return (found[0] as { yes: boolean }).yes
}

async function steps(): Promise<void> {
  const scenario = 'one agent step on PostgreSQL'
  if (!wanted(scenario)) return
  const figures: Record<string, number[]> = { step: [], langgraph: [] }
  await turns(TURNS, async () => {
    for (const role of ['langgraph', 'step']) {
      const worker = await start(`b${(schemas += 1)}`)
      figures[role]?.push((await request(worker, { role, length: 50 }))['us'] as number)
      await end(worker)
    }
  })
  const theirs = row(scenario, 'LangGraph.js, PostgresSaver', 'us', figures['langgraph'] ?? [])
  const ours = row(scenario, 'runwright', 'us', figures['step'] ?? [])
  ours.ratio = ours.median / theirs.median
  setBar(ours, '<= 0.5x', ours.ratio <= 0.5)
}

async function takeOvers(): Promise<void> {
  const scenario = 'from SIGKILL to a claim elsewhere'
  if (!wanted(scenario)) return
  const leaseMs = 2_000
  const figures = await turns(TURNS, async () => {
    const schema = `b${(schemas += 1)}`
    const [holder, successor] = [await start(schema), await start(schema)]
    await request(holder, { role: 'hold', leaseMs })
    const killedAt = performance.timeOrigin + performance.now()
    await end(holder, 'SIGKILL')
    const { ms = Infinity } = await request(successor, { role: 'takeOver', leaseMs, killedAt })
    await end(successor)
    return ms
  })
  const made = row(scenario, `lease of ${leaseMs} ms`, 'ms', figures)
  setBar(made, '<= lease + 1000 ms', made.max <= leaseMs + 1_000)
}

function print(): void {
  let last = ''
  for (const made of rows) {
    if (made.scenario !== last) console.log(`\n${made.scenario}`)
    last = made.scenario
    console.log(rowText(made, 32))
  }
}

try {
  for (const measure of [throughput, claims, tails, growth, steps, takeOvers]) await measure()
  print()
  if (flags.json !== undefined) {
    const { rows: server } = await pool.query<{ server_version: string }>('SHOW server_version')
    const versions = {
      ...versionsOf(['pg', '@langchain/langgraph-checkpoint-postgres']),
      postgresql: server[0]?.server_version ?? 'unknown',
    }
    writeResults(flags.json, { name: 'scale', versions, rows })
  }
} finally {
  for (const child of children) child.kill('SIGKILL')
  await pool.end()
  await own?.remove()
}
