/**
 * How soon the pages of the dashboard show something, each in a page of its own, from the
 * navigation on; medians are printed, and a figure beyond its bar is a failure:
 *
 *     npm install --no-save --prefix test/peers
 *     node --conditions=runwright-source --import tsx test/peers/server/page-times.ts [turns]
 *
 * 1. The list of two hundred runs: its first paint, as the browser reports it (First
 *    Contentful Paint), and its first run.
 * 2. The page of a run of 10 000 events: the same, all of its entries, and its elements then.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AgentEvent } from 'runwright/agent'
import { createRunService } from 'runwright/server'
import { FakeEngine } from '../../server/fake-engine.js'
import { openBrowser } from './browser.js'

const EVENTS = 10_000
const RUNS = 200
const BARS = { paint: 500, entry: 1_000, elements: 1_500 }
const turns = Number(process.argv[2] ?? 9)

/** Milliseconds since the navigation. */
interface Times {
  paint: number
  entry: number
  /** Of the page's main thread until the first entry, which other programs do not slow down. */
  work: number
  whole: number
  elements: number
}

const engine = new FakeEngine()
for (let n = 1; n < RUNS; n++) engine.finish(engine.add())
const runId = engine.add()
for (let n = 1; n < EVENTS; n += 2) {
  engine.iteration = Math.ceil(n / 50)
  const call_id = `c${n}`
  engine.append(runId, 'tool_call', { call_id, tool: 'bash', args: { command: `step ${n}` } })
  const facts = { call_id, tool: 'bash', exit_code: 0, duration_ms: n }
  const output = `\x1b[32mline one\x1b[0m of ${n}\n${'a line of output\n'.repeat(20)}`
  type Result = Extract<AgentEvent, { kind: 'tool_result' }>['payload']
  engine.append(runId, 'tool_result', { ...facts, output } as Result)
}
engine.finish(runId)

const service = await createRunService({ engine })
const server = createServer(service.handler)
service.attach(server)
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`

const hooks: (() => Promise<void>)[] = []
const context = await openBrowser({ after: (hook) => void hooks.push(hook) })
type Page = Awaited<ReturnType<typeof context.newPage>>

/** Until a selector matches, as the page itself sees it. */
async function until(page: Page, selector: string): Promise<number> {
  const found = await page.waitForFunction(
    (wanted) => (document.querySelector(wanted) === null ? false : performance.now()),
    selector,
    { polling: 'raf', timeout: 20_000 },
  )
  return Number(await found.jsonValue())
}

async function visit(url: string, first: string, last: string): Promise<Times> {
  const page = await context.newPage()
  const devtools = await context.newCDPSession(page)
  await devtools.send('Performance.enable', { timeDomain: 'threadTicks' })
  await page.goto(url, { waitUntil: 'commit' })
  const entry = await until(page, first)
  const { metrics } = await devtools.send('Performance.getMetrics')
  const work = metrics.find(({ name }) => name === 'TaskDuration')?.value ?? NaN
  const whole = await until(page, last)
  const [paint, elements] = await page.evaluate(() => [
    performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN,
    document.querySelectorAll('*').length,
  ])
  await page.close()
  return { paint: paint ?? NaN, entry, work: work * 1_000, whole, elements: elements ?? NaN }
}

/** The medians of several turns, after one that fills the caches of the browser and of the service. */
async function measure(url: string, first: string, last: string): Promise<Times> {
  await visit(url, first, last)
  const all: Times[] = []
  for (let turn = 0; turn < turns; turn++) all.push(await visit(url, first, last))
  const median = (field: keyof Times): number => {
    const values = all.map((times) => times[field]).sort((a, b) => a - b)
    return Math.round(values[Math.floor(values.length / 2)] ?? NaN)
  }
  return {
    paint: median('paint'),
    entry: median('entry'),
    work: median('work'),
    whole: median('whole'),
    elements: median('elements'),
  }
}

const list = await measure(base, '.run-row', '.run-row')
const run = await measure(`${base}#/runs/${runId}`, '.feed article', '.stream.ended')
for (const hook of hooks) await hook()
await service.close({ graceMs: 0 })
server.closeAllConnections()
server.close()

console.log(`list of ${RUNS} runs: first paint ${list.paint} ms, first run ${list.entry} ms`)
console.log(
  `run of ${EVENTS} events: first paint ${run.paint} ms, first entry ${run.entry} ms ` +
    `(${run.work} ms of CPU), all ${run.whole} ms, ${run.elements} elements`,
)
for (const { paint, entry, elements } of [list, run]) {
  assert.ok(paint < BARS.paint, `the first paint takes ${paint} ms`)
  assert.ok(entry < BARS.entry, `the first entry takes ${entry} ms`)
  assert.ok(elements < BARS.elements, `${elements} elements`)
}
