/** Search, links to events, and outputs in the page of a run, in a real browser. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import type { AgentEvent } from 'runwright/agent'
import { assertAccessible } from './accessible.js'
import { copiedBy, openBrowser, savedBy } from './browser.js'
import { openFake, openRun, type FakeService } from './fake-workspace.js'

/** The most elements of the page, however long a run is. */
const MOST_ELEMENTS = 1_500

let browser: BrowserContext
let closeBrowser = async (): Promise<void> => {}
before(async () => {
  browser = await openBrowser({ after: (hook) => (closeBrowser = hook) })
  await browser.grantPermissions(['clipboard-read', 'clipboard-write'])
})
after(() => closeBrowser())

type Result = Extract<AgentEvent, { kind: 'tool_result' }>['payload']

function call({ engine, runId }: FakeService, id: string, output: string, exit_code = 0): void {
  engine.append(runId, 'tool_call', { call_id: id, tool: 'bash', args: { command: `run ${id}` } })
  const facts = { call_id: id, tool: 'bash', output, exit_code, duration_ms: 5 }
  engine.append(runId, 'tool_result', facts as Result)
}

/** 10 000 events, 50 in an iteration. */
function fill(fake: FakeService): void {
  for (let n = 1; n <= 5_000; n++) {
    fake.engine.iteration = Math.ceil(n / 25)
    call(fake, `c${n}`, n % 1_000 === 0 ? `needle one\nneedle two of ${n}` : `plain ${n}`)
  }
}

const elements = (page: Page): Promise<number> =>
  page.evaluate(() => document.querySelectorAll('*').length)

/** What has left the window is taken away a moment later. */
async function waitUntilSmall(page: Page): Promise<void> {
  const isSmall = (most: number): boolean => document.querySelectorAll('*').length < most
  await page.waitForFunction(isSmall, MOST_ELEMENTS)
}

/** Waits until the whole entry is in the window: what is drawn around it may move it. */
async function waitUntilInSight(page: Page, seq: number): Promise<void> {
  await page.waitForFunction((wanted) => {
    const box = document.querySelector(`article[data-seq="${wanted}"]`)?.getBoundingClientRect()
    return box !== undefined && box.top >= 0 && box.bottom <= innerHeight
  }, seq)
}

const marks = (page: Page, name = 'found'): Promise<number> =>
  page.evaluate((registry) => CSS.highlights.get(registry)?.size ?? 0, name)

test('an address leads to its event in a log of 10 000, wherever that is shown', async (t) => {
  const fake = await openFake(t, {})
  fill(fake)
  for (const [seq, shown] of [
    [5_002, 5_002],
    // A result is shown with its call.
    [5_003, 5_002],
    [10_000, 10_000],
  ]) {
    const page = await openRun(t, browser, fake, `?event=${seq}`)
    const entry = page.locator(`article[data-seq="${shown}"][aria-current]`)
    await entry.waitFor()
    await page.waitForFunction(
      (wanted) => document.activeElement?.getAttribute('data-seq') === String(wanted),
      shown,
    )
    await waitUntilInSight(page, shown!)
    await waitUntilSmall(page)
    await page.close()
  }
  const page = await openRun(t, browser, fake, '?event=99999')
  await page.locator('article[data-seq="10000"][aria-current]').waitFor()
  // A link to another event of the run that is open.
  await page.evaluate((hash) => (location.hash = hash), `#/runs/${fake.runId}?event=4`)
  await page.locator('article[data-seq="4"][aria-current]').waitFor()
  // Back on the tab, the keyboard stays on it.
  await page.getByRole('tab', { name: 'Waterfall' }).click()
  await page.keyboard.press('ArrowLeft')
  const focused = await page.evaluate(() => document.activeElement?.id)
  assert.equal(focused, 'tab-timeline')
})

test('the link of an entry is copied by a button that the keyboard reaches', async (t) => {
  const fake = await openFake(t, {})
  call(fake, 'a', 'out')
  const page = await openRun(t, browser, fake)
  const entry = page.locator('article[data-seq="2"]')
  await entry.focus()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  const copied = await copiedBy(page, async () => {
    await Promise.all([entry.getByText('Copied').waitFor(), page.keyboard.press('Enter')])
  })
  assert.equal(copied, `${fake.url}#/runs/${fake.runId}?event=2`)
})

test('matches are counted, marked and gone through, those in folded outputs too', async (t) => {
  const fake = await openFake(t, {})
  fill(fake)
  const page = await openRun(t, browser, fake)
  const find = page.getByLabel('Find in this run')
  await find.fill('NEEDLE')
  await page.getByText('5 entries found · 10 matches').waitFor()
  await find.press('Enter')
  await page.getByText('1 of 5 entries found').waitFor()
  // What holds it is open, and marked; the focus stays in the field.
  await page.getByText('needle two of 1000').waitFor()
  await page.waitForFunction(() => (CSS.highlights.get('found')?.size ?? 0) === 10)
  await find.press('Shift+Enter')
  await page.getByText('5 of 5 entries found').waitFor()
  await page.getByText('needle two of 5000').waitFor()
  // Among the others, an iteration that is folded opens.
  await page.getByRole('button', { name: 'Show others' }).click()
  await page.getByRole('button', { name: 'Next match', exact: true }).click()
  const entry = page.locator('article[data-seq="2000"][aria-current]')
  await entry.waitFor()
  assert.ok((await page.getByRole('feed').getByRole('article').count()) > 5)
  await waitUntilSmall(page)
  await assertAccessible(page, 'a search')
  await page.getByRole('button', { name: 'Show others' }).click()
  await find.fill('no such thing')
  await page.getByText('No entry matches.').waitFor()
  await assertAccessible(page, 'a search without matches')
  await find.fill('')
  await page.getByText('No entry matches.').waitFor({ state: 'hidden' })
  await page.waitForFunction(() => (CSS.highlights.get('found')?.size ?? 0) === 0)
  assert.equal(await marks(page), 0)
  // What comes while a search is shown is searched as well.
  await find.fill('late arrival')
  await page.getByText('0 entries found').waitFor()
  fake.engine.log(fake.runId, 1, 'a Late Arrival')
  await page.getByText('1 entry found').waitFor()
})

test('an output has its colours, and nothing in it is hidden', async (t) => {
  const fake = await openFake(t, {})
  call(fake, 'a', '\x1b[32mok\x1b[0m \x1b[8mhidden\x1b[0m \x1b[2Jgone <b>x</b> bidi\u202e\n')
  const page = await openRun(t, browser, fake)
  await page.locator('.output-box summary').click()
  const output = page.locator('.output-box pre')
  assert.equal(await output.innerText(), 'ok hidden \\u001b[2Jgone <b>x</b> bidi\\u202e\n')
  assert.equal(await output.locator('.fg-2').innerText(), 'ok')
  const copy = page.locator('.output-box').getByRole('button', { name: 'Copy' })
  const copied = await copiedBy(page, () => copy.click())
  assert.equal(copied, 'ok hidden \\u001b[2Jgone <b>x</b> bidi\\u202e\n')
})

const LINES = 50_000

test('an output of 1 MB is scrolled, searched, copied and saved whole', async (t) => {
  const fake = await openFake(t, {})
  const lines = Array.from({ length: LINES }, (_, i) => `\x1b[3${i % 8}mline ${i}\x1b[0m of many`)
  lines[40_000] = `far away ${'y'.repeat(5_000)}`
  const text = lines.join('\n')
  call(fake, 'a', text)
  const page = await openRun(t, browser, fake)
  await page.getByText('Output · 50,000 lines').click()
  const box = page.locator('.output-long')
  await box.getByText('line 0 of many').waitFor()
  assert.ok((await elements(page)) < MOST_ELEMENTS, `${await elements(page)} elements`)
  await box.evaluate((element) => element.scrollTo(0, element.scrollHeight))
  await box.getByText(`line ${LINES - 1} of many`).waitFor()
  assert.ok((await elements(page)) < MOST_ELEMENTS, `${await elements(page)} elements`)
  await page.getByLabel('Find in this output').fill('FAR away')
  await box.getByText('far away').waitFor()
  await page.getByText('1 of 1 line', { exact: true }).waitFor()
  await page.waitForFunction(() => CSS.highlights.get('found-in-output')?.size === 1)
  assert.ok((await elements(page)) < MOST_ELEMENTS, `${await elements(page)} elements`)
  await assertAccessible(page, 'a long output')
  // The search of the run leads into it.
  const find = page.getByLabel('Find in this run')
  await find.fill('line 12345 of')
  await page.getByText('1 entry found').waitFor()
  await find.press('Enter')
  await box.getByText('line 12345 of many').waitFor()
  const tools = page.locator('.output-tools')
  const copied = await copiedBy(page, () => tools.getByRole('button', { name: 'Copy' }).click())
  assert.equal(copied.length, text.replace(/\x1b\[\d+m/g, '').length)
  const saved = await savedBy(page, () => tools.getByRole('button', { name: 'Download' }).click())
  assert.equal(saved.name, 'output-3.txt')
  assert.equal(saved.text, text)
})

test('hostile outputs keep the page small', async (t) => {
  const fake = await openFake(t, {})
  const coloured = (count: number) => '\x1b[31mx\x1b[32my'.repeat(count)
  call(fake, 'a', coloured(800))
  call(fake, 'b', `${coloured(40)}\n`.repeat(1_000))
  call(fake, 'c', 'z'.repeat(1_000_000))
  const page = await openRun(t, browser, fake)
  const outputs = page.locator('.output-box summary')
  await outputs.nth(2).waitFor()
  for (const summary of await outputs.all()) await summary.click()
  await page.locator('.output-line').first().waitFor()
  assert.ok((await elements(page)) < 3_000, `${await elements(page)} elements`)
})

/** A red dot. */
const DOT =
  'iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO' +
  '9TXL0Y4OHwAAAABJRU5ErkJggg=='

test('images of a result are shown when they are opened, and what is none is said', async (t) => {
  const fake = await openFake(t, {})
  const { engine, runId } = fake
  const images = [
    { media_type: 'image/png', bytes: 85, name: 'dot<b>.png' },
    { media_type: 'image/png', bytes: 9 },
  ] as const
  engine.append(runId, 'tool_call', { call_id: 'a', tool: 'look', args: {} })
  engine.append(runId, 'tool_result', {
    call_id: 'a', tool: 'look', output: '', exit_code: 0, duration_ms: 1, images,
  })
  const broken = Buffer.from('<svg onload=alert(1)>').toString('base64')
  engine.kept.set(3, [
    { media_type: 'image/png', data: DOT }, { media_type: 'image/png', data: broken },
  ])
  const page = await openRun(t, browser, fake)
  assert.equal(await page.locator('main img').count(), 0)
  await page.getByText('2 images · dot<b>.png').click()
  const image = page.getByRole('img', { name: 'dot<b>.png' })
  await image.waitFor()
  // It has a place before it was loaded.
  const width = await image.evaluate(async (element) => {
    const picture = element as HTMLImageElement
    await picture.decode()
    return picture.naturalWidth
  })
  assert.equal(width, 5)
  await page.getByText('This is no image that the browser can show.').waitFor()
  await assertAccessible(page, 'images')
})

test('the log is saved as it came, an event a line', async (t) => {
  const fake = await openFake(t, {})
  call(fake, 'a', 'ünï\u202e\n"')
  const page = await openRun(t, browser, fake)
  await page.locator('article[data-seq="2"]').waitFor()
  const download = page.getByRole('button', { name: 'Download log' })
  const saved = await savedBy(page, () => download.click())
  assert.equal(saved.name, `${fake.runId}.jsonl`)
  const { text } = saved
  const whole = fake.engine.runs.get(fake.runId)!.events.map((event) => JSON.stringify(event))
  assert.deepEqual(text.trimEnd().split('\n'), whole)
  const copy = (): Promise<void> => page.getByRole('button', { name: 'Copy log' }).click()
  assert.equal(await copiedBy(page, copy), text)
})

test('a long output is drawn when it is opened, and is open when it is seen again', async (t) => {
  const fake = await openFake(t, {})
  call(fake, 'long', 'a line of output\n'.repeat(5_000))
  call(fake, 'short', 'a short one')
  const page = await openRun(t, browser, fake)
  const boxes = page.locator('.output-box')
  await boxes.nth(1).waitFor()
  assert.deepEqual(
    await boxes.evaluateAll((all) => all.map(({ childElementCount }) => childElementCount)),
    [1, 2],
  )
  await boxes.first().locator('summary').click()
  await boxes.first().locator('.output-line').first().waitFor()
  fake.engine.log(fake.runId, 500)
  await page.getByRole('button', { name: 'Latest' }).click()
  await boxes.first().waitFor({ state: 'detached' })
  await page.evaluate(() => scrollTo(0, 0))
  await boxes.first().locator('.output-line').first().waitFor()
})
