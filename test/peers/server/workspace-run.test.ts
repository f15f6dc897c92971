/**
 * Real runs in the dashboard, in a real browser: restored at a gate, spoken to, forked, and
 * applied from a private copy. What the page says is compared with the folder on disk.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import { MemoryStore, type ModelRequest } from 'runwright/agent'
import { createRunService } from 'runwright/server'
import { scratch, testProvider, type Said } from '../../helpers/engine.js'
import { assertAccessible } from './accessible.js'
import { complaintsOf, openBrowser } from './browser.js'

let browser: BrowserContext
let closeBrowser = async (): Promise<void> => {}
before(async () => {
  browser = await openBrowser({ after: (hook) => (closeBrowser = hook) })
})
after(() => closeBrowser())

/** A page of a service whose model answers with `answer`, and the folder of its runs. */
async function open(t: TestContext, answer: (request: ModelRequest, call: number) => Said) {
  const top = scratch(t)
  const folder = join(top, 'project')
  mkdirSync(join(folder, 'src'), { recursive: true })
  writeFileSync(join(folder, 'src/a.js'), 'one\ntwo\nthree\nfour\nfive\n')
  writeFileSync(join(folder, '.env'), 'TOKEN=1\n')
  const service = await createRunService({
    engine: {
      store: new MemoryStore(),
      roots: [folder],
      providers: [testProvider(answer)],
      defaultModel: 'test:m',
      workspaceFolder: join(top, 'copies'),
    },
  })
  const server = createServer(service.handler)
  service.attach(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const page = await browser.newPage()
  const complaints = complaintsOf(page, /status of (404|409)|net::ERR_/)
  t.after(async () => {
    await page.close()
    await service.close({ graceMs: 0 })
    server.closeAllConnections()
    server.close()
    assert.deepEqual(complaints, [])
  })
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/#/new`)
  return { page, file: (name: string) => join(folder, name) }
}

/** Turns of the model: it plans, then writes a file of its own, or changes `src/a.js`. */
const write = (path: string, content: string): Said => ({
  calls: [{ tool: 'write_file', args: { path, content } }],
  tokens: [10, 10],
})

async function start(page: Page, goal: string, choose: () => Promise<void>): Promise<void> {
  await page.getByLabel('Goal', { exact: true }).fill(goal)
  await page.locator('#model_name option[value="test:m"]').waitFor({ state: 'attached' })
  await page.getByLabel('Model', { exact: true }).selectOption('test:m')
  await choose()
  await page.getByRole('button', { name: 'Start run' }).click()
  await page.getByRole('heading', { level: 1, name: goal }).waitFor()
}

test('a run is restored at its gate, undone, told something, and forked', async (t) => {
  const said: string[] = []
  const { page, file } = await open(t, (request, n) => {
    said.push(JSON.stringify(request.messages))
    return n % 2 === 1 ? { text: 'done for now' } : write(`src/new-${n}.js`, `made ${n}\n`)
  })
  await start(page, 'shell: test -e src/new-2.js', async () =>
    page.getByLabel('Ask me after each iteration').check(),
  )
  const gate = page.locator('section.gate')
  await gate.getByRole('heading', { name: 'Iteration 1 is done. Continue?' }).waitFor()
  assert.ok(existsSync(file('src/new-0.js')))
  await page.getByRole('tab', { name: 'Changes' }).click()
  await page.getByText('1 file changed · +1 −0').waitFor()
  await page.locator('[role=tabpanel] .change-row .line.plus', { hasText: 'made 0' }).waitFor()
  await page.getByText('Not compared: 1 path (secret by name)').waitFor()
  await assertAccessible(page, 'changes of a run')

  await page.getByRole('tab', { name: 'Timeline' }).click()
  const first = page.locator('article.checkpoint', { hasText: 'Checkpoint: start' })
  await first.getByRole('button', { name: 'Restore' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('src/new-0.js goes').waitFor()
  await dialog.getByRole('button', { name: 'Restore' }).click()
  await page.getByText('Restored 1 file: start.').waitFor()
  assert.ok(!existsSync(file('src/new-0.js')))
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByText('Restored 1 file: as before.').waitFor()
  assert.equal(readFileSync(file('src/new-0.js'), 'utf8'), 'made 0\n')

  // Somebody else edits: a restore names that, and overwrites it only when told so.
  writeFileSync(file('src/a.js'), 'mine\n')
  await first.getByRole('button', { name: 'Restore' }).click()
  await dialog.getByText('2 files would change:').waitFor()
  await dialog.getByRole('button', { name: 'Restore' }).click()
  await dialog.getByText('Others changed these files').waitFor()
  await dialog.locator('.paths .path', { hasText: 'src/a.js' }).waitFor()
  assert.equal(readFileSync(file('src/a.js'), 'utf8'), 'mine\n')
  await dialog.getByRole('button', { name: 'Overwrite and restore' }).click()
  await page.getByText('Restored 2 files: start.').waitFor()
  assert.match(readFileSync(file('src/a.js'), 'utf8'), /^one\n/)

  await page.getByLabel('Message to the run').fill('look at the other file')
  await page.keyboard.press('Control+Enter')
  await page.getByText('1 message not heard yet.').waitFor()
  await gate.getByRole('button', { name: 'Approve and continue' }).click()
  await page.getByText('Heard.', { exact: true }).waitFor()
  await page.locator('.run-head .chip.achieved').waitFor()
  assert.ok(said.some((messages) => messages.includes('look at the other file')))

  await page.getByRole('tab', { name: 'Files' }).click()
  await page.getByRole('link', { name: 'src/', exact: true }).click()
  await page.getByRole('link', { name: 'new-2.js', exact: true }).click()
  await page.getByLabel('Content of the file').getByText('made 2').waitFor()
  await page.getByLabel('At', { exact: true }).selectOption('Start of the run')
  await page.getByText('has no file').waitFor()

  await page.getByRole('tab', { name: 'Timeline' }).click()
  await page.locator('article.iteration').first()
    .getByRole('button', { name: 'Fork from here' }).click()
  await dialog.getByLabel('Go on with…').fill('another way')
  await dialog.getByRole('button', { name: 'Start the fork' }).click()
  await page.locator('.run-head').getByText('Private copy').waitFor()
  await page.locator('.run-head').getByRole('link', { name: 'another run' }).waitFor()
  await page.getByText('another way').first().waitFor()
})

test('a private copy leaves the folder alone until its changes are applied', async (t) => {
  const content = 'one\ntwo\nthree\nfour\nFIVE\n'
  const { page, file } = await open(t, (_, n) =>
    n === 0
      ? write('src/a.js', content)
      : n === 1
        ? write('src/b.js', 'new\n')
        : { text: 'done' },
  )
  await start(page, 'shell: test -e src/b.js', async () => {
    await page.getByText('Private copy and checkpoints').click()
    await page.getByLabel('Where it works').selectOption('isolated')
  })
  await page.locator('.run-head').getByText('Changes wait to be applied').waitFor()
  assert.ok(!existsSync(file('src/b.js')))
  // Somebody else edits another line of the same file, and makes the same new file.
  writeFileSync(file('src/a.js'), 'ONE\ntwo\nthree\nfour\nfive\n')
  writeFileSync(file('src/b.js'), 'theirs\n')
  await page.getByRole('tab', { name: 'Changes' }).click()
  await page.getByText('2 of 2 files').waitFor()
  await page.getByRole('button', { name: 'Apply…' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('Lines of both sides would be merged in 1 file').waitFor()
  await dialog.getByText('1 file changed in both places').waitFor()
  assert.ok(await dialog.getByRole('button', { name: 'Apply' }).isDisabled())
  await assertAccessible(page, 'conflicts of a run')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('checkbox', { name: 'src/b.js' }).uncheck()
  await page.getByRole('button', { name: 'Apply…' }).click()
  await dialog.getByText('1 file in').waitFor()
  await dialog.getByRole('button', { name: 'Apply' }).click()
  await page.getByText('Applied 1 file.').waitFor()
  assert.equal(readFileSync(file('src/a.js'), 'utf8'), content.replace('one', 'ONE'))
  assert.equal(readFileSync(file('src/b.js'), 'utf8'), 'theirs\n')
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByText('Restored 1 file: as before.').waitFor()
  assert.match(readFileSync(file('src/a.js'), 'utf8'), /^ONE\n.*\nfive\n$/s)
  // Changes are requested in the same copy.
  await page.getByLabel('Request changes').fill('call it c.js')
  await page.getByRole('button', { name: 'Start a fork' }).click()
  await page.locator('.run-head').getByRole('link', { name: 'another run' }).waitFor()
  await page.getByText('call it c.js').first().waitFor()
})
