/** The dashboard with very long runs and with very many runs, in a real browser. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test, type TestContext } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import { MemoryStore, type AgentEvent } from 'runwright/agent'
import { createRunService, type RunServiceOptions } from 'runwright/server'
import { scratch, testProvider } from '../../helpers/engine.js'
import { FakeEngine } from '../../server/fake-engine.js'
import { openBrowser, resize } from './browser.js'

const EVENTS = 10_000
/** The most elements of the page, however long a run is. */
const MOST_ELEMENTS = 1_500
/** Parts of the page to which a reader scrolls. */
const PLACES = [0.5, 0.9, 0.1, 0.11, 0.2, 0.3, 0.33, 0.47, 0.62, 0.7, 0.88, 0.97, 1]

let browser: BrowserContext
let closeBrowser = async (): Promise<void> => {}
before(async () => {
  browser = await openBrowser({ after: (hook) => (closeBrowser = hook) })
})
after(() => closeBrowser())

async function open(t: TestContext, options: RunServiceOptions): Promise<Page> {
  const service = await createRunService(options)
  const server = createServer(service.handler)
  service.attach(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const page = await browser.newPage()
  t.after(async () => {
    await page.close()
    await service.close({ graceMs: 0 })
    server.closeAllConnections()
    server.close()
  })
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  return page
}

/** Tool calls with their output, 50 events in an iteration. */
function fill(engine: FakeEngine, runId: string, from: number, to: number): void {
  for (let n = from; n < to; n += 2) {
    engine.iteration = Math.floor(n / 50) + 1
    const call_id = `c${n}`
    engine.append(runId, 'tool_call', { call_id, tool: 'bash', args: { command: `step ${n}` } })
    engine.append(runId, 'tool_result', {
      call_id,
      tool: 'bash',
      output: `line one of ${n}\nline two\n`,
      exit_code: n % 14 === 0 ? 1 : 0,
      duration_ms: n,
    } as Extract<AgentEvent, { kind: 'tool_result' }>['payload'])
  }
}

/** What has left the window is taken away a moment later. */
async function waitUntilSmall(page: Page): Promise<void> {
  const isSmall = (most: number): boolean => document.querySelectorAll('*').length < most
  await page.waitForFunction(isSmall, MOST_ELEMENTS)
}

test(`a run of ${EVENTS} events keeps the page small, and every one can be read`, async (t) => {
  const engine = new FakeEngine()
  const runId = engine.add()
  fill(engine, runId, 0, EVENTS)
  const page = await open(t, { engine })
  const began = performance.now()
  await page.evaluate((hash) => (location.hash = hash), `#/runs/${runId}`)
  await page.locator('.stream.live').waitFor()
  t.diagnostic(`${EVENTS} events shown after ${Math.round(performance.now() - began)} ms`)
  await page.getByRole('button', { name: 'Unfold all' }).click()
  const feed = page.getByRole('feed')
  assert.equal(await feed.getAttribute('aria-busy'), 'false')
  const total = EVENTS / 2 + EVENTS / 50
  const place = page.locator(`article[aria-setsize="${total}"]`)
  await place.nth(19).waitFor({ state: 'attached' })
  await waitUntilSmall(page)

  // Anywhere, as with the scrollbar.
  for (const height of [720, 1_080, 1_440]) {
    await resize(page, { width: 1_920, height })
    for (const part of PLACES) {
      await page.evaluate((to) => scrollTo(0, document.documentElement.scrollHeight * to), part)
      await page.waitForFunction(() => {
        const middle = document.elementFromPoint(innerWidth / 2, innerHeight / 2)
        return middle?.closest('article') !== null || middle?.closest('.feed') === null
      })
      await waitUntilSmall(page)
    }
  }
  const last = page.locator(`article[aria-posinset="${total}"]`)
  await last.waitFor()
  assert.match(String(await last.textContent()), new RegExp(`step ${EVENTS - 2}`))

  // At the end of a live run new entries scroll into view.
  fill(engine, runId, EVENTS, EVENTS + 200)
  await page.getByText(`step ${EVENTS + 198}`, { exact: true }).waitFor()
  await page.waitForFunction(
    () => document.documentElement.scrollHeight - scrollY - innerHeight < 200,
  )

  // By a search, far from what is drawn.
  await page.getByLabel('Find in this run').fill('line one of 5000')
  await page.getByText('1 entry found').waitFor()
  // It is drawn a frame after the number of entries is shown.
  await feed.getByRole('article').first().waitFor()
  assert.equal(await feed.getByRole('article').count(), 1)
  assert.match(String(await feed.textContent()), /step 5000/)
})

test('every entry of a long run is reachable by keyboard, and has its position', async (t) => {
  const engine = new FakeEngine()
  const runId = engine.add()
  fill(engine, runId, 0, 1_000)
  const page = await open(t, { engine })
  await page.evaluate((hash) => (location.hash = hash), `#/runs/${runId}`)
  await page.locator('.stream.live').waitFor()
  await page.getByRole('button', { name: 'Unfold all' }).click()
  const here = (): Promise<string | null> =>
    page.evaluate(() => document.activeElement?.getAttribute('aria-posinset') ?? null)
  // The unfolded ones are drawn a moment later.
  await page.locator('article[aria-posinset="1"][aria-setsize="520"]').waitFor()
  await page.getByLabel('Find in this run').focus()
  await page.keyboard.press('Tab')
  assert.equal(await here(), '1')
  for (const [key, place] of [
    ['PageDown', '2'],
    ['PageDown', '3'],
    ['PageUp', '2'],
    ['End', '520'],
    ['PageUp', '519'],
    ['PageDown', '520'],
    ['PageDown', '520'],
    ['Home', '1'],
  ]) {
    await page.keyboard.press(key!)
    assert.equal(await here(), place, key)
    const seen = await page.evaluate(() => {
      const box = document.activeElement!.getBoundingClientRect()
      return box.bottom > 0 && box.top < innerHeight
    })
    assert.ok(seen, `after ${key} the entry is in sight`)
  }
  // Through all of them: more than were ever drawn at once.
  for (let place = 2; place <= 130; place++) await page.keyboard.press('PageDown')
  assert.equal(await here(), '130')
})

test('opened details stay open when they are scrolled away and back', async (t) => {
  const engine = new FakeEngine()
  const runId = engine.add()
  fill(engine, runId, 0, 1_000)
  const page = await open(t, { engine })
  await page.evaluate((hash) => (location.hash = hash), `#/runs/${runId}`)
  await page.locator('.stream.live').waitFor()
  await page.getByRole('button', { name: 'Unfold all' }).click()
  const entry = page.locator('article[data-seq="2"]')
  await entry.getByText('Output').click()
  await entry.getByText('line one of 0').waitFor()
  await page.mouse.move(700, 500)
  await page.evaluate(() => (document.activeElement as HTMLElement).blur())
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight))
  await entry.waitFor({ state: 'detached' })
  await page.evaluate(() => scrollTo(0, 0))
  await entry.getByText('line one of 0').waitFor()
})

test('the service searches all of many runs, and scrolling loads older ones', async (t) => {
  const root = scratch(t)
  const over = new AbortController()
  t.after(() => over.abort())
  const engine = {
    store: new MemoryStore(),
    roots: [root],
    cwdPolicy: 'allow',
    // The first run has it till the end: the others are aborted before they ran anything.
    maxConcurrentRuns: 1,
    providers: [testProvider(() => once(over.signal, 'abort').then(() => ({})))],
    defaultModel: 'test:m',
  } as const
  const service = await createRunService({ engine })
  t.after(() => service.close({ graceMs: 0 }))
  for (let i = 0; i < 260; i++) {
    const goal = i === 3 ? 'shell: echo the Needle' : `shell: echo ${i}`
    const { details } = await service.engine.create({ goal })
    if (i > 0) await service.engine.abort(details.run_id)
    for await (const batch of await service.engine.subscribe(details.run_id))
      if (i === 0 || batch.some(({ kind }) => kind === 'run_end')) break
  }
  const page = await open(t, { engine: service.engine })
  const items = page.locator('nav .run')
  await items.nth(49).waitFor()
  assert.equal(await page.getByText('Needle').count(), 0)
  await page.getByLabel('Search all runs').fill('needle')
  await page.getByText('1 run', { exact: true }).waitFor()
  assert.match(String(await items.textContent()), /echo the Needle/)
  await page.getByLabel('Search all runs').fill('no such thing')
  await page.getByText('No run matches.').waitFor()
  await page.getByLabel('Search all runs').fill('')
  await items.nth(49).waitFor()
  while (await page.getByRole('button', { name: 'Show older runs' }).isVisible()) {
    await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight))
    await page.evaluate(() => new Promise(requestAnimationFrame))
  }
  await page.getByText('260 runs').waitFor()
  assert.equal(await items.count(), 260)
  await page.getByLabel('Show runs with status').selectOption('failed')
  await page.getByText('No run matches.').waitFor()
  // Arrow keys move from run to run.
  await page.getByLabel('Show runs with status').selectOption('')
  await items.first().focus()
  await page.keyboard.press('ArrowDown')
  assert.equal(
    await page.evaluate(() => document.activeElement?.getAttribute('href')),
    await items.nth(1).getAttribute('href'),
  )
})
