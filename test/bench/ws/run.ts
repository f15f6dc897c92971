/**
 * Compares our WebSocket server with its peers:
 *
 *   npm install --no-save --prefix test/peers
 *   node --conditions=runwright-source --import tsx test/bench/ws/run.ts [echo|broadcast|large|memory|stalled]…
 *
 * One process serves, another is the load; each measure takes TURNS (default 9) turns of TURN_MS
 * (default 700) that go round the contenders, after one turn each to warm up, and shows the median
 * and the range. Ours runs as built JavaScript. Memory is one measure of 2000 idle connections.
 */
import { type ChildProcess, fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { LoadOrder } from './load.js'
import type { Answer, Order } from './server.js'

const TURNS = Number(process.env['TURNS'] ?? 9)
const TURN_MS = Number(process.env['TURN_MS'] ?? 700)
const NAMES = (process.env['CONTENDERS'] ?? 'raw,runwright,ws,websocket,faye-websocket').split(',')
const root = fileURLToPath(new URL('../../..', import.meta.url))

/** Builds lib/ws as it ships, and the two children of this file, so that no loader is measured. */
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
    // Native masking of `ws` is an addon that only comes with another of the peers.
    WS_NO_BUFFER_UTIL: '1',
    ...env,
  })
  const { port } = await server.ready()
  const load = new Child<LoadOrder>(join(folder, 'test/bench/ws/load.js'), [], {})
  await load.ready()
  return { name, server, load, port: port! }
}

type Figures = Record<string, number>

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!

/** Turns that go round the contenders; prints median (min..max) and how it compares with `reference`. */
async function measure(
  title: string,
  pairs: readonly Pair[],
  turn: (pair: Pair) => Promise<Figures>,
  reference = 'ws',
): Promise<void> {
  const results = new Map(pairs.map(({ name }) => [name, [] as Figures[]]))
  for (let i = -1; i < TURNS; i++) {
    for (const one of pairs) {
      const figures = await turn(one)
      if (i >= 0) results.get(one.name)!.push(figures)
    }
  }
  console.log(`\n${title}`)
  const base = results.get(reference)
  for (const [name, turns] of results) {
    const columns = Object.keys(turns[0]!).map((key) => {
      const values = turns.map((figures) => figures[key]!)
      const mid = median(values)
      const ratio =
        base === undefined ? '' : ` ${(mid / median(base.map((f) => f[key]!))).toFixed(2)}x`
      return `${key} ${format(mid)} (${format(Math.min(...values))}..${format(Math.max(...values))})${ratio}`
    })
    console.log(`  ${name.padEnd(16)} ${columns.join('   ')}`)
  }
}

const format = (value: number): string => (value < 100 ? value.toFixed(2) : value.toFixed(0))

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

async function echo(folder: string, count: number, bytes: number, binary: boolean, names: readonly string[]): Promise<void> {
  await withPairs(folder, names, async (pairs) => {
    for (const one of pairs) await open(one, count, '/echo')
    await measure(`echo of ${bytes} octets (${binary ? 'binary' : 'text'}) on ${count}`, pairs, async ({ load, server }) => {
      const before = await server.ask<Answer>({ kind: 'cpu' })
      const { trips, wallMs } = await load.ask<{ trips: number; wallMs: number }>({
        kind: 'echo',
        bytes,
        binary,
        forMs: TURN_MS,
      })
      const after = await server.ask<Answer>({ kind: 'cpu' })
      return { 'trips/s': (trips / wallMs) * 1000, 'CPU us': (after.cpuUs! - before.cpuUs!) / trips }
    })
  })
}

const broadcastTurn = (perTurn: number) => async ({ server }: Pair): Promise<Figures> => {
  const { deliveries, wallMs, cpuUs } = await server.ask<Answer>({
    kind: 'broadcast',
    perTurn,
    forMs: TURN_MS,
  })
  return { 'deliveries/s': (deliveries! / wallMs!) * 1000, 'CPU us': cpuUs! / deliveries! }
}

async function broadcast(folder: string): Promise<void> {
  await withPairs(folder, NAMES, async (pairs) => {
    for (const one of pairs) await open(one, 1_000, '/')
    for (const perTurn of [1, 10]) {
      const title = `broadcast of 300 octets to 1000, ${perTurn} a turn`
      await measure(title, pairs, broadcastTurn(perTurn))
    }
  })
}

async function memory(folder: string): Promise<void> {
  console.log('\nmemory of 2000 idle connections')
  for (const name of NAMES) {
    const one = await pair(name, folder)
    await open(one, 100, '/')
    await one.load.ask({ kind: 'close' })
    const before = await one.server.ask<Answer>({ kind: 'heap' })
    await open(one, 2_000, '/')
    const after = await one.server.ask<Answer>({ kind: 'heap' })
    const per = (a: number, b: number): string => `${((b - a) / 2_000 / 1_024).toFixed(2)} KB`
    console.log(
      `  ${name.padEnd(16)} JS heap ${per(before.heapBytes!, after.heapBytes!)}   RSS ${per(before.rssBytes!, after.rssBytes!)}`,
    )
    await one.load.end()
    await one.server.end()
  }
}

/** The same broadcast without and with one subscriber that never reads, in turns. */
async function stalled(folder: string): Promise<void> {
  const clear = { ...(await pair('runwright', folder, { STALLED: '0' })), name: 'all read' }
  const blocked = { ...(await pair('runwright', folder, { STALLED: '1' })), name: 'one stalled' }
  await clear.load.ask({ kind: 'open', port: clear.port, count: 200, path: '/' })
  await blocked.load.ask({ kind: 'open', port: blocked.port, count: 201, path: '/', stalled: 1 })
  const title = 'broadcast to 200 that read, without and with one more that never does'
  await measure(title, [clear, blocked], broadcastTurn(1), 'all read')
  for (const { load, server } of [clear, blocked]) {
    await load.end()
    await server.end()
  }
}

const wanted = process.argv.slice(2)
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
} finally {
  rmSync(folder, { recursive: true, force: true })
}
