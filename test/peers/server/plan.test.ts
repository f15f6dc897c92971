/** The plan of a model, and summaries of its conversation, in the dashboard in a real browser. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { BrowserContext } from 'playwright-core'
import { assertAccessible } from './accessible.js'
import { openBrowser } from './browser.js'
import { openFake, openRun } from './fake-workspace.js'

let browser: BrowserContext
let closeBrowser = async (): Promise<void> => {}
before(async () => {
  browser = await openBrowser({ after: (hook) => (closeBrowser = hook) })
})
after(() => closeBrowser())

const steps = (...states: ('pending' | 'in_progress' | 'done')[]) =>
  states.map((status, i) => ({ text: `<b>step</b> ${i + 1}`, status }))

test('the page of a run shows the plan of its model, and follows it', async (t) => {
  const fake = await openFake(t, {})
  fake.set({ plan: steps('in_progress', 'pending') })
  fake.engine.append(fake.runId, 'log', { level: 'info', message: 'begun' })
  const page = await openRun(t, browser, fake)
  const items = page.locator('.plan li')
  await items.nth(1).waitFor()
  const texts = (await items.allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' '))
  assert.deepEqual(texts, ['in progress: <b>step</b> 1', 'to do: <b>step</b> 2'])
  await assertAccessible(page, 'a plan')

  // From now on, the details are older than what comes.
  const address = `${fake.url}api/runs/${fake.runId}`
  const older = (await (await fetch(address)).json()) as object
  let goal = 'read before'
  await page.route(address, (route) => route.fulfill({ json: { ...older, goal } }))
  const next = steps('done', 'in_progress', 'pending')
  fake.engine.append(fake.runId, 'plan_updated', { call_id: 'c', steps: next })
  await items.nth(2).waitFor()
  assert.match(await page.locator('.plan h2').innerText(), /1 of 3 steps done/)
  assert.deepEqual(
    await items.evaluateAll((all) => all.map((one) => one.className)),
    ['done', 'in_progress', 'pending'],
  )
  // They do not bring the plan before back.
  goal = 'read again'
  fake.engine.append(fake.runId, 'run_started', {})
  await page.getByRole('heading', { level: 1, name: goal }).waitFor()
  assert.equal(await page.locator('.plan li.done').count(), 1)
})

test('the page of a run without a plan shows none', async (t) => {
  const page = await openRun(t, browser, await openFake(t, {}))
  assert.equal(await page.locator('.plan').isVisible(), false)
})

test('the timeline tells of summaries, and of turns that were left out without one', async (t) => {
  const fake = await openFake(t, {})
  const summary = 'Found: <i>dust</i>.'
  fake.engine.append(fake.runId, 'conversation_compacted', { turns: 12, verbatim: 1, summary })
  fake.engine.append(fake.runId, 'conversation_compacted', {
    turns: 30, verbatim: 0, summary: null, problem: 'the model wrote none',
  })
  const page = await openRun(t, browser, fake)
  const entries = page.locator('.entry[aria-label=Summary]')
  await entries.nth(1).waitFor()
  await entries.nth(0).locator('summary').click()
  assert.match(await entries.nth(0).innerText(), /first 12 turns .*\n[^]*Found: <i>dust<\/i>\./)
  assert.match(
    await entries.nth(1).innerText(),
    /first 30 turns .* left out without a summary\s+the model wrote none/,
  )
})
