/** The result of a run, in the dashboard in a real browser. */
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

const result = { total: 12.5, note: '<b>paid</b>' }

test('the page of a run shows its result, its last answer, and answers that were wrong', async (t) => {
  const fake = await openFake(t, {})
  const result_schema = { type: 'object' }
  fake.set({ result, result_schema, answer: 'It says <i>12.50</i>.', workspace: 'none', cwd: '' })
  const wrong = { attempt: 1, result: null, problem: '/total must be a number' }
  fake.engine.append(fake.runId, 'result', wrong)
  fake.engine.append(fake.runId, 'result', { attempt: 2, result, problem: null })
  const page = await openRun(t, browser, fake)
  const texts = await page.locator('.result pre').allInnerTexts()
  assert.deepEqual(texts, [JSON.stringify(result, null, 2), 'It says <i>12.50</i>.'])
  await page.locator('.entry.check').nth(1).waitFor()
  const entries = await page.locator('.entry.check').allInnerTexts()
  assert.match(entries[0]!, /Not a valid result[\s\S]*\/total must be a number/)
  assert.match(entries[1]!, /Result[\s\S]*"total": 12.5/)
  assert.match(await page.locator('dl.facts').innerText(), /Folder\s+none/)
  await assertAccessible(page, 'a result')
})

test('the page of a run that gives no result has no place for one', async (t) => {
  const fake = await openFake(t, {})
  fake.set({ answer: 'Done.' })
  const page = await openRun(t, browser, fake)
  assert.equal(await page.locator('.result').isVisible(), false)
})
