/**
 * Compares our WebSocket server with its peers:
 *
 *   npm install --no-save --prefix test/peers
 *   node --conditions=runwright-source --import tsx test/bench/ws/run.ts \
 *     [echo|broadcast|large|memory|stalled]… [--json FILE]
 *
 * One process serves, another generates the load. After a warm-up turn each, the contenders take
 * TURNS (default 9) turns of TURN_MS (default 700). The output is the median and the range, in
 * microseconds per round trip or delivery, with the CPU time of the server. Ours runs as built
 * JavaScript. Memory is one measurement of 2000 idle connections. Ratios are to `ws`. `--json FILE`
 * writes the rows in the format of `../results.ts`.
 */
import { type ChildProcess, fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { versionsOf, writeResults } from '../report.mjs'
import type { Row } from '../results.js'
import type { LoadOrder } from './load.js'
import type { Answer, Order } from './server.js'

const TURNS = Number(process.env['TURNS'] ?? 9)
const TURN_MS = Number(process.env['TURN_MS'] ?? 700)
const NAMES = (process.env['CONTENDERS'] ?? 'raw,runwright,ws,websocket,faye-websocket').split(',')
const root = fileURLToPath(new URL('../../..', import.meta.url))

/** Builds lib/ws as shipped, and the two child programs, so that no loader is measured. */
function build(into: string): void {
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const files = ['lib/ws/index.ts', 'test/bench/ws/server.ts', 'test/bench/ws/load.ts']
  const options =
    '--ignoreConfig --noEmit false --target ES2023 --lib ES2023,ESNext.Disposable --types node ' +
    '--module NodeNext --moduleResolution NodeNext --customConditions runwright-source --strict'
  const { status, stdout } = spawnSync(
    process.execPath,
    [tsc, ...files, ...options.split(' '), '--skipLibCheck', '--rootDir', '.', '--outDir', into],
    { cwd: root, encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(stdout)
  writeFileSync(join(into, 'package.json'), '{"type":"module"}')
}

class Child<Ask extends Order | LoadOrder> {
  readonly process: ChildProcess

  constructor(file: string, args: readonly string[], env: Record<string, string>) {
    this.process = fork(file, args, { execArgv: ['--expose-gc'], env: { ...process.env, ...env } })
  }

  async ready(): Promise<Answer> {
    const [answer] = (await once(this.process, 'message')) as [Answer]
    return answer
  }

  async ask<Result>(order: Ask): Promise<Result> {
    this.process.send(order)
    const [answer] = (await once(this.process, 'message')) as [Result]
    return answer
  }

  async end(): Promise<void> {
    const ended = once(this.process, 'exit')
    this.process.disconnect()
    await ended
  }
}

interface Pair {
  readonly name: string
  readonly server: Child<Order>
  readonly load: Child<LoadOrder>
  readonly port: number
}

async function pair(name: string, folder: string, env: Record<string, string> = {}): Promise<Pair> {
  const server = new Child<Order>(join(folder, 'test/bench/ws/server.js'), [name], {
    PEERS: join(root, 'test/peers/package.json'),
    // The native addon for `ws` is only installed as a dependency of another peer.
    WS_NO_BUFFER_UTIL: '1',
    ...env,
  })
  const { port } = await server.ready()
  const load = new Child<LoadOrder>(join(folder, 'test/bench/ws/load.js'), [], {})
  await load.ready()
  return { name, server, load, port: port! }
}

interface Figures {
  readonly us: number
  readonly cpu: number
}

/** The target for our figures relative to the reference contender. */
interface Bar {
  readonly text: string
  readonly holds: (us: number, cpu: number) => boolean
}

const rows: Row[] = []

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!

const format = (value: number): string => (value < 100 ? value.toFixed(2) : value.toFixed(0))

function add(row: Row): void {
  const { contender, unit, ratio, cpu, bar, met } = row
  const cells = [
    `  ${contender.padEnd(16)} ${format(row.median).padStart(8)} ${unit}`,
    (ratio === null ? '' : `${ratio.toFixed(2)}x`).padStart(7),
    `(${format(row.min)}..${format(row.max)})`.padEnd(18),
    (cpu === null ? '' : `cpu ${format(cpu)} us`).padEnd(14),
    bar === null ? '' : `${bar}: ${met === true ? 'met' : 'MISSED'}`,
  ]
  console.log(cells.join(' ').trimEnd())
  rows.push(row)
}

/** Lets the contenders take turns; adds a row for each, with its ratio to `reference`. */
async function measure(
  scenario: string,
  pairs: readonly Pair[],
  turn: (pair: Pair) => Promise<Figures>,
  { reference = 'ws', bar, of = 'runwright' }: { reference?: string; bar?: Bar; of?: string } = {},
): Promise<void> {
  const results = new Map(pairs.map(({ name }) => [name, [] as Figures[]]))
  for (let i = -1; i < TURNS; i++) {
    for (const one of pairs) {
      const figures = await turn(one)
      if (i >= 0) results.get(one.name)!.push(figures)
    }
  }
  console.log(`\n${scenario}`)
  const base = results.get(reference)
  const middle = (turns: readonly Figures[], key: keyof Figures): number =>
    median(turns.map((one) => one[key]))
  for (const [contender, turns] of results) {
    const values = turns.map(({ us }) => us)
    const [us, cpu] = [median(values), middle(turns, 'cpu')]
    const ratio = base === undefined || contender === reference ? null : us / middle(base, 'us')
    const held = contender === of && base !== undefined ? bar : undefined
    const met =
      held?.holds(us / middle(base ?? turns, 'us'), cpu / middle(base ?? turns, 'cpu')) ?? null
    const range = { min: Math.min(...values), max: Math.max(...values) }
    add({
      scenario,
      contender,
      median: us,
      ...range,
      unit: 'us',
      ratio,
      cpu,
      bar: held?.text ?? null,
      met,
    })
  }
}

async function withPairs(
  folder: string,
  names: readonly string[],
  use: (pairs: readonly Pair[]) => Promise<void>,
): Promise<void> {
  const pairs: Pair[] = []
  for (const name of names) pairs.push(await pair(name, folder))
  await use(pairs)
  for (const { load, server } of pairs) {
    await load.end()
    await server.end()
  }
}

const open = (one: Pair, count: number, path: string): Promise<unknown> =>
  one.load.ask({ kind: 'open', port: one.port, count, path })

const ECHO_BAR: Bar = { text: '<= 0.95x ws', holds: (us) => us <= 0.95 }
const LARGE_BAR: Bar = { text: '<= 1.00x ws', holds: (us) => us <= 1 }

async function echo(
  folder: string,
  count: number,
  bytes: number,
  binary: boolean,
  names: readonly string[],
): Promise<void> {
  await withPairs(folder, names, async (pairs) => {
    for (const one of pairs) await open(one, count, '/echo')
    await measure(
      `echo of ${bytes} bytes (${binary ? 'binary' : 'text'}) on ${count}`,
      pairs,
      async ({ load, server }) => {
        const before = await server.ask<Answer>({ kind: 'cpu' })
        const { trips, wallMs } = await load.ask<{ trips: number; wallMs: number }>({
          kind: 'echo',
          bytes,
          binary,
          forMs: TURN_MS,
        })
        const after = await server.ask<Answer>({ kind: 'cpu' })
        return { us: (wallMs * 1000) / trips, cpu: (after.cpuUs! - before.cpuUs!) / trips }
      },
      count === 1 && bytes === 100 ? {} : { bar: bytes === 100 ? ECHO_BAR : LARGE_BAR },
    )
  })
}

const broadcastTurn = (perTurn: number) => async ({ server }: Pair): Promise<Figures> => {
  const { deliveries, wallMs, cpuUs } = await server.ask<Answer>({
    kind: 'broadcast',
    perTurn,
    forMs: TURN_MS,
  })
  return { us: (wallMs! * 1000) / deliveries!, cpu: cpuUs! / deliveries! }
}

const BROADCAST_BARS: Readonly<Record<number, Bar>> = {
  1: { text: 'CPU <= 0.90x ws', holds: (_us, cpu) => cpu <= 0.9 },
  10: { text: '<= 0.25x ws', holds: (us) => us <= 0.25 },
}

async function broadcast(folder: string): Promise<void> {
  await withPairs(folder, NAMES, async (pairs) => {
    for (const one of pairs) await open(one, 1_000, '/')
    for (const perTurn of [1, 10]) {
      const title = `broadcast of 300 bytes to 1000, ${perTurn} per turn`
      await measure(title, pairs, broadcastTurn(perTurn), { bar: BROADCAST_BARS[perTurn]! })
    }
  })
}

async function memory(folder: string): Promise<void> {
  const scenario = 'memory per idle connection, JS heap'
  console.log(`\n${scenario}`)
  const heaps = new Map<string, number>()
  for (const name of NAMES) {
    const one = await pair(name, folder)
    await open(one, 100, '/')
    await one.load.ask({ kind: 'close' })
    const before = await one.server.ask<Answer>({ kind: 'heap' })
    await open(one, 2_000, '/')
    const after = await one.server.ask<Answer>({ kind: 'heap' })
    heaps.set(name, (after.heapBytes! - before.heapBytes!) / 2_000 / 1_024)
    await one.load.end()
    await one.server.end()
  }
  const base = heaps.get('ws')
  for (const [contender, kb] of heaps) {
    const ratio = base === undefined || contender === 'ws' ? null : kb / base
    const bar = contender === 'runwright' && ratio !== null ? '<= 0.75x ws' : null
    const met = bar === null || ratio === null ? null : ratio <= 0.75
    add({
      scenario,
      contender,
      median: kb,
      min: kb,
      max: kb,
      unit: 'KB',
      ratio,
      cpu: null,
      bar,
      met,
    })
  }
}

/** The same broadcast without and with a subscriber that never reads, in turns. */
async function stalled(folder: string): Promise<void> {
  const clear = { ...(await pair('runwright', folder, { STALLED: '0' })), name: 'all read' }
  const blocked = { ...(await pair('runwright', folder, { STALLED: '1' })), name: 'one stalled' }
  await clear.load.ask({ kind: 'open', port: clear.port, count: 200, path: '/' })
  await blocked.load.ask({ kind: 'open', port: blocked.port, count: 201, path: '/', stalled: 1 })
  const title = 'broadcast to 200 readers, without and with a stalled one'
  await measure(title, [clear, blocked], broadcastTurn(1), {
    reference: 'all read',
    of: 'one stalled',
    bar: { text: '<= 1.05x', holds: (us) => us <= 1.05 },
  })
  for (const { load, server } of [clear, blocked]) {
    await load.end()
    await server.end()
  }
}

const { values: flags, positionals: wanted } = parseArgs({
  allowPositionals: true,
  options: { json: { type: 'string' } },
})
const wants = (name: string): boolean => wanted.length === 0 || wanted.includes(name)
const folder = mkdtempSync(join(tmpdir(), 'runwright-ws-bench-'))
try {
  build(folder)
  console.log(`node ${process.version}, ${TURNS} turns of ${TURN_MS} ms`)
  if (wants('echo')) {
    for (const count of [1, 100]) await echo(folder, count, 100, false, NAMES)
  }
  if (wants('broadcast')) await broadcast(folder)
  if (wants('large')) {
    const names = NAMES.filter((name) => name !== 'raw')
    for (const binary of [false, true]) await echo(folder, 1, 2 ** 20, binary, names)
  }
  if (wants('memory')) await memory(folder)
  if (wants('stalled')) await stalled(folder)
  if (flags.json !== undefined) {
    const peers = NAMES.filter((name) => name !== 'raw' && name !== 'runwright')
    writeResults(flags.json, { name: 'ws', versions: versionsOf(peers), rows })
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
