/**
 * Takes the pictures of the dashboard for the documents, with a real run of the built-in
 * program-repair model on the demo project:
 *
 *     node --conditions=runwright-source --import tsx test/peers/server/pictures.ts docs/images
 */
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MemoryStore } from 'runwright/agent'
import { createRunService } from 'runwright/server'
import { openBrowser } from './browser.js'

const into = process.argv[2] ?? 'docs/images'
mkdirSync(into, { recursive: true })
const root = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-')))
const copies = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-copies-')))
const demo = fileURLToPath(new URL('../../../examples/demo-project', import.meta.url))
for (const name of ['catalogue', 'shop']) cpSync(demo, join(root, name), { recursive: true })

const service = await createRunService({
  engine: {
    store: new MemoryStore(),
    roots: [root],
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

async function start(request: { goal: string } & Record<string, string | number | boolean>) {
  const { details } = await service.engine.create(request)
  for await (const batch of await service.engine.subscribe(details.run_id)) {
    if (batch.some(({ kind }) => kind === 'human_check_required' || kind === 'run_end')) break
  }
  return details.run_id
}

try {
  const cwd = join(root, 'catalogue')
  await start({ goal: 'shell: node --check src/catalogue.js', cwd })
  await start({ goal: 'shell: test -e CHANGELOG.md', cwd, max_iterations: 1 })
  await start({ goal: 'shell: node --test test/fees.test.js', cwd, hitl_enabled: true })
  const changed = await start({ goal: 'node-test', cwd, workspace: 'isolated' })
  const waiting = await start({ goal: 'node-test', cwd: join(root, 'shop'), hitl_enabled: true })
  for (const { name, hash, width, colorScheme } of [
    { name: 'dashboard-gate', hash: `#/runs/${waiting}`, width: 1024, colorScheme: 'light' },
    { name: 'dashboard-run', hash: `#/runs/${changed}/changes`, width: 1280, colorScheme: 'dark' },
    { name: 'dashboard-phone', hash: `#/runs/${waiting}`, width: 360, colorScheme: 'dark' },
  ] as const) {
    const browser = await openBrowser(
      { after: (hook) => void hooks.push(hook) },
      { viewport: { width, height: 760 }, colorScheme },
    )
    const page = await browser.newPage()
    await page.goto(`${url}${hash}`)
    const shown = name === 'dashboard-run' ? '.change-row .diff' : 'article.entry'
    await page.locator(shown).first().waitFor()
    if (name === 'dashboard-run') await page.getByText('Apply…').waitFor()
    // As small as can be: the first is shipped with the README.
    const session = await browser.newCDPSession(page)
    const shot = { format: 'webp', quality: 40 } as const
    const { data } = await session.send('Page.captureScreenshot', shot)
    writeFileSync(join(into, `${name}.webp`), data, 'base64')
  }
} finally {
  for (const hook of hooks) await hook()
  await service.close({ graceMs: 0 })
  server.closeAllConnections()
  server.close()
  for (const folder of [root, copies]) rmSync(folder, { recursive: true, force: true })
}
