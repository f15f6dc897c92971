/**
 * Takes the pictures of the dashboard for the documents, with a real run of the built-in
 * program-repair model on the demo project, from the first page to the applied changes:
 *
 *     node --conditions=runwright-source --import tsx test/peers/server/pictures.ts docs/images
 *
 * As small as can be: one is shipped with the README.
 */
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { MemoryStore } from 'runwright/agent'
import { createRunService } from 'runwright/server'
import { openBrowser } from './browser.js'

const into = process.argv[2] ?? 'docs/images'
mkdirSync(into, { recursive: true })
const root = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-')))
const copies = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-copies-')))
const demo = fileURLToPath(new URL('../../../examples/demo-project', import.meta.url))
const project = join(root, 'catalogue')
cpSync(demo, project, { recursive: true })

const service = await createRunService({
  engine: {
    store: new MemoryStore(),
    roots: [project],
    cwdPolicy: 'allow',
    maxConcurrentRuns: 8,
    workspaceFolder: copies,
  },
})
const server = createServer(service.handler)
service.attach(server)
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
const hooks: (() => Promise<void>)[] = []

async function open(width: number, colorScheme: 'light' | 'dark'): Promise<Page> {
  const owner = { after: (hook: () => Promise<void>) => void hooks.push(hook) }
  const browser = await openBrowser(owner, {
    viewport: { width, height: 720 },
    colorScheme,
    reducedMotion: 'reduce',
  })
  return await browser.newPage()
}

async function take(page: Page, name: string): Promise<void> {
  const session = await page.context().newCDPSession(page)
  const shot = { format: 'webp', quality: 30 } as const
  const { data } = await session.send('Page.captureScreenshot', shot)
  writeFileSync(join(into, `${name}.webp`), data, 'base64')
  await session.detach()
}

/** Approves at the next gate, once its buttons act. */
async function approve(page: Page): Promise<void> {
  await page.locator('section.gate[data-ready]').waitFor()
  await page.getByRole('button', { name: /^Approve/ }).click()
}

try {
  const page = await open(1024, 'light')
  await page.goto(url)
  await page.getByText('No runs yet.').waitFor()
  await take(page, 'film-01-first-page')
  await page.getByRole('link', { name: 'New run' }).first().click()
  await page.getByLabel('Goal', { exact: true }).fill('node-test')
  await page.getByLabel('Ask me after each iteration').check()
  await page.getByText('Private copy and checkpoints').click()
  await page.getByLabel('Where it works').selectOption('isolated')
  await page.getByRole('button', { name: 'Show what it will run' }).click()
  await page.locator('.preview dl').waitFor()
  await take(page, 'film-02-what-it-will-run')
  await page.getByRole('button', { name: 'Start run' }).click()
  await page.locator('article.entry', { hasText: 'edit_file' }).first().waitFor()
  await take(page, 'film-03-live')
  const gate = page.locator('section.gate[data-ready]')
  await gate.waitFor()
  await gate.locator('.diff').first().waitFor()
  await take(page, 'dashboard-gate')
  await take(page, 'film-04-gate')
  const phone = await open(360, 'dark')
  await phone.goto(page.url())
  await phone.locator('section.gate[data-ready]').waitFor()
  await take(phone, 'dashboard-phone')
  await approve(page)
  await page.locator('.run-head .chip', { hasText: 'Running' }).waitFor()
  await take(page, 'film-05-approved')
  const achieved = page.locator('.run-head .chip', { hasText: 'Achieved' })
  while (!(await achieved.isVisible())) {
    const asked = gate.waitFor().then(() => true)
    const over = achieved.waitFor().then(() => false)
    over.catch(() => undefined)
    asked.catch(() => undefined)
    if (await Promise.race([asked, over])) await approve(page)
    await page.locator('section.gate').waitFor({ state: 'hidden' })
  }
  await page.evaluate(() => scrollTo(0, 0))
  await take(page, 'film-06-achieved')
  await page.getByRole('tab', { name: 'Waterfall' }).click()
  await page.locator('.waterfall').waitFor()
  await take(page, 'film-07-waterfall')
  await page.getByRole('tab', { name: 'Changes' }).click()
  await page.locator('.change-row .diff').first().waitFor()
  await take(page, 'film-08-changes')
  await page.getByRole('button', { name: 'Apply…' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.locator('button:enabled', { hasText: 'Apply' }).waitFor()
  await take(page, 'film-09-apply')
  await dialog.getByRole('button', { name: 'Apply' }).click()
  await dialog.waitFor({ state: 'hidden' })
  const dark = await open(1280, 'dark')
  await dark.goto(page.url())
  await dark.locator('.stream.connecting').waitFor({ state: 'detached' })
  await dark.locator('.change-row .diff').first().waitFor()
  await take(dark, 'dashboard-run')
  await page.goto(`${url}#/`)
  await page.locator('.run-row').first().waitFor()
  await take(page, 'film-10-list')
} finally {
  for (const hook of hooks) await hook()
  await service.close({ graceMs: 0 })
  server.closeAllConnections()
  server.close()
  for (const folder of [root, copies]) rmSync(folder, { recursive: true, force: true })
}
