/** The form of a new run in a real browser: folders, recent runs, and what a goal would run. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import { MemoryStore } from 'runwright/agent'
import { createRunService, type RunService } from 'runwright/server'
import { pairs } from '../../helpers/choice.js'
import { testProvider } from '../../helpers/engine.js'
import { assertAccessible } from './accessible.js'
import { complaintsOf, openBrowser } from './browser.js'

/** Folder for screenshots; none are taken unless the variable is set. */
const SHOTS = process.env['RUNWRIGHT_SCREENSHOTS']

let context: BrowserContext
let service: RunService
let root = ''
let copies = ''
let url = ''
const closing: (() => Promise<void>)[] = []
before(async () => {
  context = await openBrowser({ after: (hook) => void closing.push(hook) })
  root = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-form-')))
  copies = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-copies-')))
  const shop = join(root, 'shop')
  for (const name of ['shop/test', 'shop/docs', 'other', '.hidden'])
    mkdirSync(join(root, name), { recursive: true })
  writeFileSync(join(shop, 'package.json'), '{ "scripts": { "test": "node --test" } }')
  writeFileSync(join(shop, 'test', 'a.test.js'), "require('node:test')('a', () => {})\n")
  service = await createRunService({
    engine: {
      store: new MemoryStore(),
      roots: [root],
      workspaceFolder: copies,
      cwdPolicy: 'allow',
      providers: [testProvider(() => ({ text: 'nothing to do' }))],
    },
  })
  const server = createServer(service.handler)
  service.attach(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  closing.unshift(async () => {
    await service.close({ graceMs: 0 })
    server.closeAllConnections()
    server.close()
    for (const folder of [root, copies]) rmSync(folder, { recursive: true, force: true })
  })
})
after(async () => {
  for (const hook of closing) await hook()
})

async function openForm(t: TestContext, query = '', where = context): Promise<Page> {
  const page = await where.newPage()
  const complaints = complaintsOf(page, /status of 422|net::ERR_CONNECTION/)
  t.after(async () => {
    await page.close()
    assert.deepEqual(complaints, [])
  })
  await page.goto(`${url}#/new${query}`)
  await page.locator('#model_name option[value="test:m"]').waitFor({ state: 'attached' })
  return page
}

async function endOf(runId: string): Promise<void> {
  for await (const batch of await service.engine.subscribe(runId))
    if (batch.some(({ kind }) => kind === 'run_end')) return
}

test('a folder is chosen level by level, and what the goal runs is shown before', async (t) => {
  const page = await openForm(t)
  await page.getByText('Choose a folder').click()
  await page.getByRole('button', { name: root }).click()
  await page.getByText('left out: hidden, links, or not for you').waitFor()
  await page.getByRole('button', { name: 'shop' }).click()
  await page.getByRole('button', { name: 'docs' }).waitFor()
  await page.getByRole('button', { name: 'Up' }).click()
  await page.getByRole('button', { name: 'shop' }).click()
  await page.getByRole('button', { name: 'docs' }).waitFor()
  await page.getByRole('button', { name: 'Use this folder' }).click()
  assert.equal(await page.getByLabel('Working directory').inputValue(), join(root, 'shop'))
  await page.getByLabel('Goal', { exact: true }).fill('npm-test')
  await page.getByRole('button', { name: 'Show what it will run' }).click()
  await page.getByText('Nothing was run.').waitFor()
  const facts = String(await page.locator('.preview-facts').textContent())
  assert.match(facts, /npm/)
  assert.match(facts, /Protected files/)
  assert.equal((await service.engine.list()).runs.length, 0)
  // It says nothing of another goal.
  await page.getByLabel('Goal', { exact: true }).fill('node-test')
  assert.equal(await page.locator('.preview-facts dt').count(), 0)
})

test('an error of what it would run is shown beside its field, also in a fold', async (t) => {
  const page = await openForm(t)
  await page.getByLabel('Goal', { exact: true }).fill('nodetest')
  await page.getByRole('button', { name: 'Show what it will run' }).click()
  await page.locator('#goal-error').getByText('did you mean node-test?').waitFor()
  await page.getByLabel('Goal', { exact: true }).fill('shell: true')
  await page.getByText('Result and other models').click()
  await page.getByLabel('Result schema').fill('{ oops')
  await page.getByText('Result and other models').click()
  await page.getByRole('button', { name: 'Start run' }).click()
  await page.locator('#result_schema-error').getByText('is not JSON').waitFor()
  await page.getByLabel('Result schema').fill('')
  await page.getByLabel('Models that take over').fill('nobody:x')
  await page.getByRole('button', { name: 'Show what it will run' }).click()
  await page.locator('#fallback_models-error:not(:empty)').waitFor()
})

test('an earlier run is edited and run again', async (t) => {
  const { details } = await service.engine.create({
    goal: 'shell: test -e done',
    cwd: join(root, 'shop'),
    model_name: 'test:m',
    max_iterations: 1,
    max_tool_calls: 9,
    instructions: 'Be brief.',
    attempts: { count: 2, choose: 'smallest' },
    compaction: 'summary',
  })
  await endOf(details.run_id)
  const page = await openForm(t)
  await page.locator('.recent a', { hasText: 'shell: test -e done' }).click()
  await page.getByText('Change what you like').waitFor()
  for (const [name, value] of [
    ['goal', 'shell: test -e done'],
    ['cwd', join(root, 'shop')],
    ['model_name', 'test:m'],
    ['max_iterations', '1'],
    ['max_tool_calls', '9'],
    ['instructions', 'Be brief.'],
    ['attempts-count', '2'],
    ['attempts-choose', 'smallest'],
    ['compaction', 'summary'],
  ] as const) assert.equal(await page.locator(`#${name}`).inputValue(), value, name)
  // What is set is not in a fold.
  assert.equal(await page.locator('#max_tool_calls').isVisible(), true)
  await page.locator('#goal').fill('shell: true')
  await page.locator('#attempts-count').fill('')
  await page.locator('#attempts-choose').selectOption('')
  await page.getByRole('button', { name: 'Start run' }).click()
  await page.getByRole('heading', { level: 1, name: 'shell: true' }).waitFor()
  const [again] = (await service.engine.list()).runs
  const { instructions, max_tool_calls } = await service.engine.get(again!.run_id)
  assert.deepEqual([instructions, max_tool_calls], ['Be brief.', 9])
  assert.equal(existsSync(join(root, 'shop', 'done')), false)
})

const SIZES = [[1920, 1080], [1280, 800], [768, 1024], [360, 740]] as const
for (const [[width, height], colorScheme] of pairs(SIZES, ['light', 'dark'] as const)) {
  test(`the form is accessible at ${width} px, ${colorScheme}`, async (t) => {
    const viewport = { width, height }
    const own = await openBrowser(t, { viewport, colorScheme, reducedMotion: 'reduce' })
    const page = await openForm(t, '', own)
    await page.getByText('Choose a folder').click()
    await page.getByRole('button', { name: root }).click()
    await page.getByRole('button', { name: 'shop' }).waitFor()
    await page.getByText('Result and other models').click()
    await page.getByLabel('Working directory').fill('shop')
    await page.getByLabel('Goal', { exact: true }).fill('npm-test')
    await page.getByRole('button', { name: 'Show what it will run' }).click()
    await page.getByText('Nothing was run.').waitFor()
    await assertAccessible(page, 'the filled form')
    if (SHOTS !== undefined) {
      mkdirSync(SHOTS, { recursive: true })
      const path = join(SHOTS, `form-${width}-${colorScheme}.png`)
      await page.screenshot({ path, fullPage: true })
    }
    await page.getByLabel('Goal', { exact: true }).fill('nodetest')
    await page.getByRole('button', { name: 'Show what it will run' }).click()
    await page.locator('#goal-error:not(:empty)').waitFor()
    await assertAccessible(page, 'a refused form')
  })
}
