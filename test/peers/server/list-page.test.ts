/** The list of runs in a browser: groups, why runs ended, filters in the address, many runs. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import type { RunDetails } from 'runwright/agent'
import { createRunService } from 'runwright/server'
import { pairs } from '../../helpers/choice.js'
import { FakeEngine } from '../../server/fake-engine.js'
import { assertAccessible } from './accessible.js'
import { complaintsOf, openBrowser } from './browser.js'

/** Folder for screenshots; none are taken unless the variable is set. */
const SHOTS = process.env['RUNWRIGHT_SCREENSHOTS']
const HOSTILE = '<img src=x onerror="document.title=1">\u202e'

interface Listed {
  readonly engine: FakeEngine
  readonly url: string
  /** Queries of the lists that the page asked for. */
  readonly asked: string[]
}

async function openListed(t: TestContext): Promise<Listed> {
  const engine = new FakeEngine()
  const service = await createRunService({ engine })
  const asked: string[] = []
  const server = createServer((request, response) => {
    const { pathname, search } = new URL(request.url ?? '', 'http://localhost')
    if (pathname === '/api/runs') asked.push(search)
    service.handler(request, response)
  })
  service.attach(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    await service.close({ graceMs: 0 })
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  return { engine, url, asked }
}

function add(engine: FakeEngine, details: Partial<RunDetails>): string {
  const runId = engine.add()
  const state = engine.runs.get(runId)!.details.final_state
  engine.set(runId, { ...details, final_state: { ...state, ...details.final_state } })
  return runId
}

function spent(usd: number): RunDetails['final_state'] {
  return {
    iteration: 0, goal_achieved: false, goal_reason: '', total_tokens: 0, estimated_cost_usd: usd,
  }
}

const TIMES = {
  created_at: '2026-01-01T00:00:00.000Z',
  started_at: '2026-01-01T00:00:01.000Z',
  ended_at: '2026-01-01T00:02:31.000Z',
}

/** One run of each kind; the one that needs the user is the oldest. */
function fill(engine: FakeEngine): { waiting: string; working: string } {
  const cwd = '/home/ann/projects/shop'
  const waiting = add(engine, { goal: 'npm-test', status: 'awaiting_human', iteration: 3, cwd })
  add(engine, {
    ...TIMES, goal: 'node-test', status: 'failed', end_reason: 'max_iterations', iteration: 20, cwd,
    model_name: 'anthropic:claude-sonnet-4-5', final_state: spent(1.5),
  })
  add(engine, {
    ...TIMES, goal: HOSTILE, status: 'failed', end_reason: 'stuck', iteration: 4,
    cwd: `/srv/${HOSTILE}/deep/down`, model_name: 'openai:gpt-5.1', cost_known: false,
  })
  add(engine, {
    ...TIMES, goal: 'shell: make release', status: 'achieved', end_reason: 'goal_achieved',
    iteration: 2, cwd: '', metadata: { name: 'Nightly release' },
  })
  add(engine, { ...TIMES, goal: 'pytest', status: 'aborted', end_reason: 'human_abort' })
  add(engine, { goal: 'cargo-test', status: 'pending', iteration: 0 })
  const working = add(engine, {
    goal: 'go-test', status: 'running', iteration: 7, started_at: TIMES.started_at, cwd,
    final_state: spent(0.0421),
  })
  const damaged = add(engine, { goal: '', status: 'running' })
  engine.runs.get(damaged)!.problem = 'a segment of its log is missing'
  return { waiting, working }
}

/** A page that fails the test on any warning or error of the browser. */
async function openPage(t: TestContext, context: BrowserContext, url: string): Promise<Page> {
  const page = await context.newPage()
  const complaints = complaintsOf(page, /status of (401|422)|net::ERR_CONNECTION/)
  t.after(async () => {
    await page.close()
    assert.deepEqual(complaints, [])
  })
  await page.goto(url)
  return page
}

async function shoot(page: Page, name: string): Promise<void> {
  if (SHOTS === undefined) return
  mkdirSync(SHOTS, { recursive: true })
  await page.screenshot({ path: join(SHOTS, `${name}.png`) })
}

async function groupsOf(page: Page): Promise<string[]> {
  return await page.locator('.group:visible > h2').allTextContents()
}

test('runs are grouped by status, what needs the user first, and say why they ended', async (t) => {
  const context = await openBrowser(t)
  const { engine, url } = await openListed(t)
  const { waiting, working } = fill(engine)
  const page = await openPage(t, context, url)
  await page.locator('.run-row').nth(7).waitFor()
  const groups = ['Needs you 1', 'Working 1', 'Queued 1', 'Ended 5']
  assert.deepEqual(await groupsOf(page), groups)
  assert.equal(await page.locator('.run-row').first().getAttribute('href'), `#/runs/${waiting}`)
  for (const words of [
    '20 of 20 iterations used',
    'The model repeated itself',
    'The goal was met in 2 iterations',
    'Stopped by a human at a gate',
    'Iteration 3 of 20',
    'Waits for its turn',
    'Nightly release',
    'a segment of its log is missing',
    '…/projects/shop',
    '2 min 30 s',
    '$1.50',
    '\\u202e',
  ]) {
    const shown = page.locator('.groups').getByText(words).first()
    assert.equal(await shown.isVisible(), true, words)
  }
  assert.equal(await page.locator('img:not([alt=""])').count(), 0)
  // The focus follows a run that goes to another group.
  await page.locator(`.run-row[href$="${working}"]`).focus()
  engine.set(working, { status: 'failed', end_reason: 'cancelled', ended_at: TIMES.ended_at })
  await page.locator('.group', { hasText: 'Working' }).waitFor({ state: 'hidden' })
  assert.deepEqual(await groupsOf(page), ['Needs you 1', 'Queued 1', 'Ended 6'])
  const focused = await page.evaluate(() => document.activeElement?.getAttribute('href'))
  assert.equal(focused, `#/runs/${working}`)
})

test('a filter is in the address: as a link, from the controls, and after a reload', async (t) => {
  const context = await openBrowser(t)
  const { engine, url, asked } = await openListed(t)
  fill(engine)
  const page = await openPage(t, context, `${url}#/?status=failed&metadata.team=a%26b`)
  await page.getByRole('button', { name: 'team: a&b' }).waitFor()
  assert.equal(await page.getByLabel('Show runs with status').inputValue(), 'failed')
  // The conditions are shown at once, the runs that were asked for when they come.
  await page.locator('.run-row').nth(1).waitFor()
  const query = asked.find((one) => one.includes('metadata'))
  assert.equal(query, '?limit=50&status=failed&metadata.team=a%26b')
  await page.getByRole('button', { name: 'team: a&b' }).click()
  await page.getByLabel('Show runs that ended because').selectOption('stuck')
  await page.locator('.run-row').nth(1).waitFor({ state: 'detached' })
  assert.equal(new URL(page.url()).hash, '#/?status=failed&end_reason=stuck')
  await page.reload()
  await page.locator('.run-row').first().waitFor()
  assert.deepEqual(await groupsOf(page), ['Ended 1'])
  // A run is shown and left again: the list is as it was.
  await page.locator('.run-row').first().click()
  await page.locator('main h1').getByText('onerror').waitFor()
  await page.locator('#brand').click()
  await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor()
  assert.equal(new URL(page.url()).hash, '#/?status=failed&end_reason=stuck')
  // A link to another filter in the same page.
  await page.evaluate(() => void (location.hash = '#/?status=lost'))
  await page.locator('#service').getByText('status').waitFor()
  await page.evaluate(() => void (location.hash = '#/?cwd='))
  await page.getByText('Nightly release').waitFor()
  await page.getByRole('button', { name: 'without a folder' }).waitFor()
})

test('what was typed and chosen survives refreshes', async (t) => {
  const context = await openBrowser(t)
  const { engine, url, asked } = await openListed(t)
  fill(engine)
  const page = await openPage(t, context, url)
  await page.locator('.run-row').first().waitFor()
  const folder = page.getByLabel('Show runs in this folder')
  await folder.fill('/home/ann/pro')
  const before = asked.length
  while (asked.length < before + 3) await page.waitForResponse(/\/api\/runs\?limit/)
  assert.equal(await folder.inputValue(), '/home/ann/pro')
  assert.equal(await folder.evaluate((input) => input === document.activeElement), true)
})

test('only runs that go on are read again and again', async (t) => {
  const context = await openBrowser(t)
  await context.clock.install()
  const { engine, url, asked } = await openListed(t)
  fill(engine)
  const page = await openPage(t, context, url)
  await page.locator('.run-row').nth(7).waitFor()
  // The clock of the page also goes on by itself, while the test does something.
  const now = (): Promise<number> => page.evaluate(() => performance.now() / 1_000)
  const began = await now()
  asked.length = 0
  for (let i = 0; i < 6; i++) {
    const answered = page.waitForResponse(/status=awaiting_human/)
    await context.clock.runFor(1_500)
    await answered
    await page.evaluate(() => new Promise(requestAnimationFrame))
  }
  const ended = asked.filter((query) => query.includes('status=achieved')).length
  const seconds = (await now()) - began
  const counts = `${asked.length} requests, ${ended} of them for ended runs, in ${seconds} s`
  assert.ok(asked.length - ended <= seconds / 1.5 + 1, counts)
  assert.ok(ended <= seconds / 4.5 + 1, counts)
})

test('ten thousand runs: the page asks for one page, and older ones as it is scrolled', async (t) => {
  const context = await openBrowser(t)
  const { engine, url } = await openListed(t)
  const waiting = add(engine, { goal: 'the oldest', status: 'awaiting_human' })
  for (let i = 0; i < 10_000; i++) {
    const status = i < 300 ? 'pending' : 'achieved'
    const end_reason = status === 'achieved' ? 'goal_achieved' : null
    add(engine, { ...TIMES, goal: `run ${i}`, status, end_reason })
  }
  const page = await openPage(t, context, url)
  await page.locator('.run-row').nth(50).waitFor()
  assert.equal(await page.locator('.run-row').first().getAttribute('href'), `#/runs/${waiting}`)
  assert.deepEqual((await groupsOf(page))[0], 'Needs you 1+')
  while ((await page.locator('.run-row').count()) < 500) {
    await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight))
    await page.evaluate(() => new Promise(requestAnimationFrame))
  }
})

const SIZES = [[1920, 1080], [1280, 800], [768, 1024], [360, 740]] as const
for (const [[width, height], colorScheme] of pairs(SIZES, ['light', 'dark'] as const)) {
  test(`the list is accessible at ${width} px, ${colorScheme}`, async (t) => {
    const viewport = { width, height }
    const context = await openBrowser(t, { viewport, colorScheme, reducedMotion: 'reduce' })
    const empty = await openListed(t)
    const page = await openPage(t, context, empty.url)
    await page.getByText('No runs yet.').waitFor()
    await assertAccessible(page, 'an empty list')
    await shoot(page, `list-empty-${width}-${colorScheme}`)
    const { engine, url } = await openListed(t)
    fill(engine)
    for (const [name, hash] of [
      ['full', ''],
      ['filtered', '#/?status=failed&cwd=%2Fhome%2Fann%2Fprojects%2Fshop&metadata.team=red'],
      ['side', '#/new'],
    ] as const) {
      await page.goto('about:blank')
      await page.goto(`${url}${hash}`)
      if (name === 'side') await page.getByRole('button', { name: 'node-test' }).waitFor()
      else await page.locator('.run-row').first().waitFor()
      await assertAccessible(page, `the ${name} list`)
      await shoot(page, `list-${name}-${width}-${colorScheme}`)
    }
    await page.goto(`${url}#/?status=lost`)
    await page.locator('#service').getByText('status').waitFor()
    await assertAccessible(page, 'a refused filter')
    await shoot(page, `list-refused-${width}-${colorScheme}`)
  })
}
