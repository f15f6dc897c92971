/** Notifications in a real browser: asked for, told once for all tabs, not of what is looked at. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import { createRunService } from 'runwright/server'
import { FakeEngine } from '../../server/fake-engine.js'
import { assertAccessible } from './accessible.js'
import { openBrowser } from './browser.js'

/** Stands in for the notifications of the browser, which has none without a window. */
const FAKE = `
globalThis.Notification = class {
  static get permission() { return localStorage.getItem('fake.permission') ?? 'default' }
  static async requestPermission() {
    localStorage.setItem('fake.permission', 'granted')
    return 'granted'
  }
  constructor(title, { body }) {
    const told = JSON.parse(localStorage.getItem('fake.told') ?? '[]')
    localStorage.setItem('fake.told', JSON.stringify([...told, title + ': ' + body]))
  }
}`

async function open(t: TestContext): Promise<{
  readonly engine: FakeEngine
  readonly context: BrowserContext
  readonly url: string
}> {
  const engine = new FakeEngine()
  const service = await createRunService({ engine })
  const server = createServer(service.handler)
  service.attach(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const context = await openBrowser(t)
  t.after(async () => {
    await service.close({ graceMs: 0 })
    server.closeAllConnections()
    server.close()
  })
  await context.addInitScript(FAKE)
  await context.clock.install()
  return { engine, context, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }
}

async function toldIn(page: Page): Promise<string[]> {
  const told = await page.evaluate(() => localStorage.getItem('fake.told'))
  return JSON.parse(told ?? '[]') as string[]
}

/** Lets the pages look at the runs until one has told as many. */
async function toldOf(context: BrowserContext, page: Page, count: number): Promise<string[]> {
  for (;;) {
    const told = await toldIn(page)
    if (told.length >= count) return told
    await context.clock.runFor(5_000)
    await page.evaluate('1')
  }
}

test('each event is told once for all tabs, and not of a run that is looked at', async (t) => {
  const { engine, context, url } = await open(t)
  const [one, two, three] = [engine.add(), engine.add(), engine.add()]
  engine.set(one, { goal: 'first' })
  engine.set(two, { goal: 'second' })
  engine.set(three, { goal: 'third' })
  const tabs = [await context.newPage(), await context.newPage(), await context.newPage()]
  for (const tab of tabs) {
    await tab.goto(url)
    await tab.locator('.run-row').nth(2).waitFor()
  }
  const [tab, other, reader] = tabs as [Page, Page, Page]
  const looked = Promise.all(
    ['?limit=100', '?limit=100&status=awaiting_human'].map((query) =>
      context.waitForEvent('response', (response) => response.url().endsWith(query)),
    ),
  )
  await tab.getByRole('button', { name: 'Notify me', exact: true }).click()
  await tab.getByText('You are told when a run needs you or ends.').waitFor()
  await other.getByText('You are told when a run needs you or ends.').waitFor()
  await assertAccessible(tab, 'with notifications')
  // The first look tells what is known from then on.
  await looked
  engine.set(one, { status: 'awaiting_human' })
  assert.deepEqual(await toldOf(context, tab, 1), ['A run needs you: first'])
  for (const page of tabs) {
    await page.waitForFunction(() => document.title.startsWith('(1) Runs'))
  }
  // One tab shows the second run: of that, nothing is told.
  await reader.evaluate((id) => void (location.hash = `#/runs/${id}`), two)
  await reader.locator('main h1').getByText('second').waitFor()
  await reader.waitForFunction(async (id) => {
    const { held = [] } = await navigator.locks.query()
    return held.some(({ name }) => name === `runwright.seen.${id}`)
  }, two)
  engine.set(one, { status: 'running' })
  engine.set(two, { status: 'failed', end_reason: 'stuck' })
  engine.set(three, { status: 'failed', end_reason: 'stuck' })
  assert.deepEqual(await toldOf(context, tab, 2), [
    'A run needs you: first',
    'A run has ended: Failed: third\nthe model repeated itself',
  ])
  await tab.getByRole('button', { name: 'Do not notify me' }).click()
  engine.set(one, { status: 'awaiting_human' })
  for (let i = 0; i < 3; i++) {
    await context.clock.runFor(5_000)
    await tab.evaluate('1')
  }
  assert.equal((await toldIn(tab)).length, 2)
  await tab.waitForFunction(() => document.title.startsWith('Runs'))
})

test('blocked notifications are said', async (t) => {
  const { context, url } = await open(t)
  const page = await context.newPage()
  await page.addInitScript(`localStorage.setItem('fake.permission', 'denied')`)
  await page.goto(url)
  await page.getByText('Notifications are blocked').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Notify me' }).isDisabled(), true)
  await assertAccessible(page, 'blocked notifications')
})

test('a question of the browser that is closed without an answer is told', async (t) => {
  const { context, url } = await open(t)
  await context.addInitScript("Notification.requestPermission = async () => 'default'")
  const page = await context.newPage()
  await page.goto(url)
  await page.getByRole('button', { name: 'Notify me', exact: true }).click()
  await page.getByText('The browser has not allowed it.').waitFor()
})
