/** What a first visitor sees in a real browser: what a run is, and the demo. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import { MemoryStore } from 'runwright/agent'
import { createRunService, type RunServiceOptions } from 'runwright/server'
import { testProvider } from '../../helpers/engine.js'
import { FakeEngine } from '../../server/fake-engine.js'
import { assertAccessible } from './accessible.js'
import { complaintsOf, openBrowser, resize } from './browser.js'

/** Folder for screenshots; none are taken unless the variable is set. */
const SHOTS = process.env['RUNWRIGHT_SCREENSHOTS']

async function serve(t: TestContext, options: RunServiceOptions): Promise<string> {
  const service = await createRunService(options)
  const server = createServer(service.handler)
  service.attach(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    await service.close({ graceMs: 0 })
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

/** A page that fails the test on any error of the browser but those expected. */
async function openPage(
  t: TestContext,
  context: BrowserContext,
  url: string,
  expected = /^$/,
): Promise<Page> {
  const page = await context.newPage()
  const complaints = complaintsOf(page, expected)
  t.after(async () => {
    await page.close()
    assert.deepEqual(complaints, [])
  })
  await page.goto(url)
  return page
}

test('the demo is one click away, and its first events are shown as they happen', async (t) => {
  const context = await openBrowser(t)
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-first-')))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  // The model answers once the page shows the events before.
  let shown = (): void => undefined
  const watched = new Promise<void>((resolve) => (shown = resolve))
  const url = await serve(t, {
    demo: () => ({ goal: 'shell: test -e mended', cwd: root, metadata: { name: 'Demo' } }),
    engine: {
      store: new MemoryStore(),
      roots: [root],
      defaultModel: 'test:m',
      sealedChecks: 'off',
      providers: [
        testProvider(async () => {
          await watched
          return { calls: [{ tool: 'bash', args: { command: 'touch mended' } }] }
        }),
      ],
    },
  })
  const page = await openPage(t, context, url)
  await page.getByRole('heading', { name: 'Give it a goal that can be checked' }).waitFor()
  const terms = await page.locator('.run-parts dt').allTextContents()
  assert.deepEqual(terms, ['Goal', 'Check', 'Model', 'Iterations', 'Gates', 'Report'])
  const start = page.getByRole('button', { name: 'Watch the demo' })
  // By keyboard, twice, and again as soon as it can be pressed: one run starts.
  await start.evaluate((element) => {
    new MutationObserver(() => {
      if (element.isConnected && element.ariaDisabled !== 'true') (element as HTMLElement).click()
    }).observe(element, { attributes: true })
  })
  await start.focus()
  await page.keyboard.press('Enter')
  await page.keyboard.press('Enter')
  await page.locator('.run-view').waitFor()
  assert.match(page.url(), /#\/runs\/[\da-f-]{36}$/)
  await page.locator('.run-view').getByText('Running', { exact: true }).first().waitFor()
  await page.locator('.entry').first().waitFor()
  shown()
  await page.locator('.run-head').getByText('Achieved').waitFor()
  await page.locator('#brand').click()
  // The list is read by itself.
  await page.locator('.run-row').first().waitFor()
  assert.equal(await page.locator('.run-row').count(), 1)
  // With a run, the list is what is shown; the demo is found where runs begin.
  await page.locator('.welcome').waitFor({ state: 'hidden' })
  await page.locator('#new').click()
  await start.click()
  await page.locator('.run-view').waitFor()
})

test('a demo that is refused says why, and can be asked for again', async (t) => {
  const context = await openBrowser(t)
  const engine = new FakeEngine()
  let fails = true
  const url = await serve(t, {
    engine,
    demo: () => {
      if (fails) throw new Error('no')
      return { goal: 'shell: true' }
    },
    onError: () => undefined,
  })
  const page = await openPage(t, context, url, /status of 500/)
  const start = page.getByRole('button', { name: 'Watch the demo' })
  await start.focus()
  await page.keyboard.press('Enter')
  await page.locator('.demo-start .error-text:not(:empty)').waitFor()
  assert.equal(await start.evaluate((element) => element === document.activeElement), true)
  await assertAccessible(page, 'a demo that was refused')
  fails = false
  await page.keyboard.press('Enter')
  await page.locator('.run-view').waitFor()
})

test('the first page is accessible at every size, with and without a demo', async (t) => {
  const context = await openBrowser(t)
  for (const offered of [true, false]) {
    const demo = offered ? { demo: () => ({ goal: 'shell: true' }) } : {}
    const url = await serve(t, { engine: new FakeEngine(), ...demo })
    const page = await openPage(t, context, url)
    await page.locator('.welcome').waitFor()
    for (const view of ['', '#/new']) {
      await page.goto(`${url}${view}`)
      const button = page.getByRole('button', { name: 'Watch the demo' })
      if (offered) await button.waitFor()
      else assert.equal(await button.count(), 0)
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        for (const width of [360, 768, 1280, 1920]) {
          await resize(page, { width, height: 900 })
          const where = `${view === '' ? 'first' : 'new'}-${offered}-${width}-${colorScheme}`
          if (SHOTS !== undefined) {
            mkdirSync(SHOTS, { recursive: true })
            await page.screenshot({ path: join(SHOTS, `${where}.png`), fullPage: true })
          }
          await assertAccessible(page, where)
        }
      }
    }
  }
})
