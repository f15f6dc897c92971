/** The waterfall of a run in the dashboard, in a real browser. */
import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import type { AgentEvent } from 'runwright/agent'
import { pairs } from '../../helpers/choice.js'
import { assertAccessible } from './accessible.js'
import { goBy, openBrowser } from './browser.js'
import { openFake, openRun, type FakeService } from './fake-workspace.js'

/** The most elements of the page, however long a run is. */
const MOST_ELEMENTS = 1_500

let browser: BrowserContext
let closeBrowser = async (): Promise<void> => {}
before(async () => {
  browser = await openBrowser({ after: (hook) => (closeBrowser = hook) })
})
after(() => closeBrowser())

type Result = Extract<AgentEvent, { kind: 'tool_result' }>['payload']

/** An iteration with two calls at the same time, and a gate before a third. */
function play({ engine, runId }: FakeService, iteration: number): void {
  engine.iteration = iteration
  engine.append(runId, 'step_start', { node: 'plan' })
  engine.append(runId, 'llm_usage', {
    input_tokens: 1_000, output_tokens: 234, cached_tokens: 0, reasoning_tokens: 0,
    cost_usd: 0.25, purpose: 'worker',
  })
  engine.append(runId, 'model_turn', { turn: 1, text: 'I <b>look</b>', stop: 'tool_calls' })
  for (const id of ['a', 'b', 'c']) {
    const args = { command: `run \u202e${id}` }
    engine.append(runId, 'tool_call', { call_id: `${iteration}${id}`, tool: 'bash', args })
  }
  const start = (id: string): void =>
    engine.append(runId, 'tool_started', {
      call_id: `${iteration}${id}`, args_hash: '', effect: 'read',
    })
  const end = (id: string, exit_code: number): void =>
    engine.append(runId, 'tool_result', {
      call_id: `${iteration}${id}`, tool: 'bash', output: 'x', exit_code, duration_ms: 0,
    } as Result)
  start('a')
  start('b')
  end('a', 0)
  end('b', 1)
  const gate_id = `g${iteration}`
  engine.append(runId, 'human_check_required', {
    iteration, summary: 'Waiting to run: bash', gate_id, kind: 'tool', deadline: null,
  })
  engine.append(runId, 'human_check_response', {
    decision: 'approve', gate_id, decided_by: 'ann',
  })
  start('c')
  end('c', 0)
}

async function open(t: TestContext, iterations: number): Promise<[FakeService, Page]> {
  const fake = await openFake(t, {})
  for (let i = 1; i <= iterations; i++) play(fake, i)
  return [fake, await openRun(t, browser, fake, '/waterfall')]
}

const active = (page: Page): Promise<string> =>
  page.evaluate(() => document.activeElement?.querySelector('.wf-name')?.textContent ?? '')

test('each call, gate and model call has a row with its time, in words', async (t) => {
  const [fake, page] = await open(t, 1)
  const rows = page.locator('.wf-row')
  await rows.nth(6).waitFor()
  assert.equal(await page.getByRole('list', { name: 'What the run spends' }).count(), 1)
  const texts = (await rows.allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' '))
  assert.match(texts[1]!, /^Plan I <b>look<\/b> 250 ms · 1,234 tokens · \$0\.2500$/)
  assert.match(texts[2]!, /^bash run \\u202ea 250 ms$/)
  assert.match(texts[3]!, /^bash run \\u202eb 250 ms · failed$/)
  assert.match(texts[4]!, /^Gate approve by ann 125 ms$/)
  // At the same time: their bars overlap.
  const boxes = await page.locator('.wf-track .wf-tool').evaluateAll((all) =>
    all.map((bar) => [bar.getBoundingClientRect().left, bar.getBoundingClientRect().right]),
  )
  assert.ok(boxes[1]![0]! < boxes[0]![1]!)
  // Live: what comes is added below, and what lasts says so.
  fake.engine.append(fake.runId, 'step_start', { node: 'evaluate' })
  const check = rows.filter({ hasText: 'Goal check' })
  await check.locator('.wf-fact', { hasText: /now$/ }).waitFor()
  await assertAccessible(page, 'a waterfall')
  // A bar leads to its entry.
  await rows.filter({ hasText: 'u202eb' }).click()
  const entry = page.locator('article[data-seq="6"]')
  await entry.waitFor()
  assert.equal(await entry.getAttribute('aria-current'), 'true')
  assert.match(page.url(), /\?event=6$/)
  await goBy(page, -1)
  await rows.nth(6).waitFor()
})

test('rows are reached, folded and unfolded by keyboard', async (t) => {
  const [, page] = await open(t, 3)
  await page.locator('.wf-row').nth(6).waitFor()
  await page.locator('.wf-link[tabindex="0"]').focus()
  for (const [key, name] of [
    ['ArrowDown', 'Plan'],
    ['ArrowDown', 'bash'],
    ['ArrowLeft', 'Iteration 1'],
    ['ArrowLeft', 'Iteration 1'],
    ['ArrowDown', 'Iteration 2'],
    ['ArrowUp', 'Iteration 1'],
    ['ArrowRight', 'Iteration 1'],
    ['ArrowDown', 'Plan'],
    ['End', 'Model'],
    ['Home', 'Iteration 1'],
  ]) {
    await page.keyboard.press(key!)
    assert.equal(await active(page), name, key)
  }
  await page.getByRole('button', { name: 'Fold all' }).click()
  assert.equal(await page.locator('.wf-row').count(), 3)
  await page.getByRole('button', { name: 'Zoom in' }).click()
  await page.getByRole('button', { name: 'Unfold all' }).click()
  assert.ok((await page.locator('.wf-row').count()) > 6)
  const { scrollWidth, clientWidth } = await page.locator('.wf-scroller').evaluate((box) => ({
    scrollWidth: box.scrollWidth, clientWidth: box.clientWidth,
  }))
  assert.ok(scrollWidth > clientWidth)
})

test('the focus stays where it is while events come', async (t) => {
  const [fake, page] = await open(t, 2)
  const gate = page.locator('.wf-row', { hasText: 'Gate' }).first().locator('a')
  await gate.focus()
  play(fake, 3)
  await page.locator('.wf-row', { hasText: 'Iteration 3' }).waitFor()
  assert.equal(await active(page), 'Gate')
})

test('a run of 10 000 events keeps the page small, and one of one event has an axis', async (t) => {
  const [, page] = await open(t, 800)
  const rows = page.locator('.wf-row')
  await rows.nth(10).waitFor()
  const elements = (): Promise<number> =>
    page.evaluate(() => document.querySelectorAll('*').length)
  assert.ok((await elements()) < MOST_ELEMENTS, `${await elements()} elements`)
  await page.getByRole('button', { name: 'Unfold all' }).click()
  // What has still to load is unfolded as well.
  await page.locator('.wf-row[aria-setsize="4801"]').first().waitFor()
  await page.locator('.wf-link[tabindex="0"]').focus()
  await page.keyboard.press('End')
  await page.locator('.wf-row[aria-posinset="4801"]').waitFor()
  assert.ok((await elements()) < MOST_ELEMENTS, `${await elements()} elements`)
  const fake = await openFake(t, {})
  const single = await openRun(t, browser, fake, '/waterfall')
  await single.getByText('Nothing has happened yet.').waitFor()
  await assertAccessible(single, 'a waterfall without events')
})

test('iterations that come after all were unfolded are open', async (t) => {
  const [fake, page] = await open(t, 40)
  const rows = (size: number): Promise<void> =>
    page.locator(`.wf-row[aria-setsize="${size}"]`).first().waitFor()
  await rows(40 + 6)
  await page.getByRole('button', { name: 'Unfold all' }).click()
  await rows(40 * 6 + 1)
  play(fake, 41)
  play(fake, 42)
  await rows(42 * 6 + 1)
  await page.getByRole('button', { name: 'Fold all', exact: true }).click()
  await rows(42)
  play(fake, 43)
  await rows(43 + 6)
})

for (const [width, colorScheme] of pairs([360, 768, 1280, 1920], ['light', 'dark'] as const)) {
  test(`the waterfall is accessible at ${width} px, ${colorScheme}`, async (t) => {
    const context = await openBrowser(t, { viewport: { width, height: 900 }, colorScheme })
    const fake = await openFake(t, {})
    for (const iteration of [1, 2]) play(fake, iteration)
    const page = await openRun(t, context, fake, '/waterfall')
    await page.locator('.wf-row').nth(4).waitFor()
    await assertAccessible(page, `a waterfall at ${width} px`)
    await page.getByRole('button', { name: 'Zoom in' }).click()
    await assertAccessible(page, `zoomed at ${width} px`)
  })
}

test('no iteration is folded under its reader, and rows that come leave focus and place', async (t) => {
  const [fake, page] = await open(t, 30)
  const scroller = page.locator('.wf-scroller')
  // All has come: only the last iteration is open, below what is in sight. Near the end of the
  // list, and not at it, where it would follow what comes.
  await page.locator('.wf-row[aria-setsize="36"]').first().waitFor()
  await scroller.evaluate((element) => {
    element.scrollTo({ top: element.scrollHeight - element.clientHeight - 64 })
  })
  const row = page.locator('.wf-link', { hasText: 'run \\u202eb' })
  await row.focus()
  const name = await active(page)
  const shownAt = (): Promise<number> =>
    page.evaluate(() => Math.round(document.activeElement!.getBoundingClientRect().top))
  const before = await shownAt()
  play(fake, 31)
  await page.locator('.wf-link', { hasText: 'Iteration 31' }).waitFor({ state: 'attached' })
  assert.equal(await active(page), name)
  assert.equal(await shownAt(), before)
  // Tab comes back to the list, wherever it was scrolled.
  await page.getByRole('button', { name: 'Zoom in' }).focus()
  await scroller.evaluate((element) => element.scrollTo({ top: 0 }))
  await page.getByRole('button', { name: 'Unfold all' }).click()
  await scroller.evaluate((element) => element.scrollTo({ top: 2_500 }))
  await page.waitForFunction(() => {
    const stops = [...document.querySelectorAll('.wf-link[tabindex="0"]')]
    const box = document.querySelector('.wf-scroller')!.getBoundingClientRect()
    const tops = stops.map((stop) => stop.getBoundingClientRect().top)
    return tops.length === 1 && tops[0]! > box.top - 40 && tops[0]! < box.bottom
  })
})
