/**
 * How long the page of a run of 10 000 events takes to its first entry and to all of them, and how
 * many elements it has then:
 *
 *     npm install --no-save --prefix test/peers
 *     node --conditions=runwright-source --import tsx test/peers/server/run-page-time.ts [turns]
 *
 * Each turn is a page of its own, from the navigation on; the medians are printed.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AgentEvent } from 'runwright/agent'
import { createRunService } from 'runwright/server'
import { FakeEngine } from '../../server/fake-engine.js'
import { openBrowser } from './browser.js'

const EVENTS = 10_000
const turns = Number(process.argv[2] ?? 9)

const engine = new FakeEngine()
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
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/#/runs/${runId}`

const hooks: (() => Promise<void>)[] = []
const context = await openBrowser({ after: (hook) => void hooks.push(hook) })

/** Milliseconds since the navigation until a selector matches, as the page itself sees it. */
async function until(page: Awaited<ReturnType<typeof context.newPage>>, selector: string) {
  const found = await page.waitForFunction(
    (wanted) => (document.querySelector(wanted) === null ? false : performance.now()),
    selector,
    { polling: 'raf' },
  )
  return Number(await found.jsonValue())
}

const first: number[] = []
const all: number[] = []
/** Of the page's main thread until the first entry, which other programs do not slow down. */
const work: number[] = []
let elements = 0
for (let turn = 0; turn <= turns; turn++) {
  const page = await context.newPage()
  const devtools = await context.newCDPSession(page)
  await devtools.send('Performance.enable', { timeDomain: 'threadTicks' })
  await page.goto(url, { waitUntil: 'commit' })
  const entry = await until(page, '.feed article')
  const { metrics } = await devtools.send('Performance.getMetrics')
  const busy = metrics.find(({ name }) => name === 'TaskDuration')?.value ?? NaN
  const whole = await until(page, '.stream.ended')
  // The first turn fills the caches of the browser and of the service.
  if (turn > 0) {
    first.push(entry)
    work.push(busy * 1_000)
    all.push(whole)
  }
  elements = await page.evaluate(() => document.querySelectorAll('*').length)
  await page.close()
}
const median = (values: number[]): string =>
  `${Math.round(values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN)} ms`
console.log(`${EVENTS} events: first entry after ${median(first)}, all after ${median(all)}`)
console.log(`${median(work)} of CPU until the first entry`)
console.log(`${elements} elements`)

for (const hook of hooks) await hook()
await service.close({ graceMs: 0 })
server.closeAllConnections()
server.close()
