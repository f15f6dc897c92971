/** What a run was told, and telling a new one, in the dashboard in a real browser. */
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

const PROJECT = { path: '../AGENTS.md', text: '<b>Use tabs.</b>\n', bytes: 40_000, truncated: true }

test('the page of a run shows what its model was told', async (t) => {
  const fake = await openFake(t, {})
  fake.set({ instructions: 'Be kind.', project_instructions: PROJECT })
  fake.engine.append(fake.runId, 'log', { level: 'info', message: 'begun' })
  const page = await openRun(t, browser, fake)
  await page.locator('.instructions > summary').click()
  const texts = await page.locator('.instructions pre').allInnerTexts()
  assert.deepEqual(texts.map((text) => text.trim()), ['Be kind.', '<b>Use tabs.</b>'])
  const hints = await page.locator('.instructions .hint').allInnerTexts()
  assert.deepEqual(hints.map((hint) => hint.slice(0, 30)), [
    'Of the request', 'Of the project: ../AGENTS.md, ', 'The rest was left out: the fil',
  ])
  await assertAccessible(page, 'open instructions')
})

test('the page of a run that was told nothing more than its goal says nothing', async (t) => {
  const page = await openRun(t, browser, await openFake(t, {}))
  assert.equal(await page.locator('.instructions').isVisible(), false)
})

test('the form of a new run sends instructions', async (t) => {
  const fake = await openFake(t, {
    create: () => ({ status: 201, json: { run_id: fake.runId } }),
  })
  const page = await browser.newPage()
  t.after(() => page.close())
  await page.goto(`${fake.url}#/new`)
  await page.locator('#goal').fill('shell: true')
  await page.locator('summary', { hasText: 'Instructions' }).click()
  await page.locator('textarea#instructions').fill('Be kind.')
  await page.locator('#project_instructions').check()
  await page.locator('button[type=submit]').click()
  await page.waitForURL(/#\/runs\//)
  const sent = fake.requests[0]?.body
  assert.deepEqual([sent?.['instructions'], sent?.['project_instructions']], ['Be kind.', false])
})
