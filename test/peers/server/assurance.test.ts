/** What a verdict rests on, and the files of the check, in the dashboard in a real browser. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { BrowserContext } from 'playwright-core'
import type { Assurance, EventPayloads } from 'runwright/agent'
import { assertAccessible } from './accessible.js'
import { openBrowser } from './browser.js'
import { openFake, openRun, problem, type Answer } from './fake-workspace.js'

let browser: BrowserContext
let closeBrowser = async (): Promise<void> => {}
before(async () => {
  browser = await openBrowser({ after: (hook) => (closeBrowser = hook) })
})
after(() => closeBrowser())

const COUNTS = { total: 12, passed: 12, failed: 0, skipped: 0 }

function verdict(
  by: Assurance['by'],
  facts: Partial<Assurance> = {},
  more: Partial<EventPayloads['goal_check']> = {},
): EventPayloads['goal_check'] {
  return {
    achieved: true,
    reason: 'all is well',
    verified_by: by === 'judge' ? 'judge' : 'command',
    assurance: { by, sealed: false, canaries: false, holdout: false, ...facts },
    cached: false,
    counts: by === 'tests' ? COUNTS : null,
    duration_ms: 5,
    ...more,
  }
}

for (const { payload, says } of [
  {
    payload: verdict('tests', { sealed: true, canaries: true }),
    says: '12 tests, in a sealed copy, assertions shown to fail',
  },
  {
    payload: verdict('tests', { sealed: true, holdout: true }),
    says: '12 tests, in a sealed copy, held-out tests too',
  },
  { payload: verdict('exit_code'), says: 'exit code only, not in a sealed copy' },
  { payload: verdict('judge'), says: 'the opinion of a model' },
]) {
  test(`a goal that was met by ${says} says so`, async (t) => {
    const fake = await openFake(t, {})
    const { assurance } = payload
    fake.set({
      assurance: assurance ?? null,
      final_state: {
        iteration: 1, goal_achieved: true, goal_reason: '', total_tokens: 0,
        estimated_cost_usd: 0,
      },
    })
    fake.engine.append(fake.runId, 'goal_check', payload)
    const page = await openRun(t, browser, fake)
    const entry = page.locator('.entry.check .hint')
    assert.equal(await entry.textContent(), `Met by: ${says}`)
    const fact = page.locator('.facts div', { hasText: 'Met by' }).locator('dd', { hasText: says })
    await fact.waitFor()
    assert.equal(await fact.textContent(), says)
    await assertAccessible(page, says)
  })
}

test('a run without sealed checks shows the cause', async (t) => {
  const fake = await openFake(t, {})
  const cause = 'the tests need a service on localhost'
  fake.engine.append(
    fake.runId, 'goal_check', verdict('tests', {}, { achieved: false, sealed_unavailable: cause }),
  )
  // A later check says nothing about it.
  fake.engine.append(fake.runId, 'goal_check', verdict('tests'))
  const page = await openRun(t, browser, fake)
  await page.locator('.entry', { hasText: `No sealed checks: ${cause}` }).waitFor()
  const fact = page.locator('.facts div', { hasText: 'No sealed checks' }).locator('dd')
  assert.equal(await fact.textContent(), cause)
})

test('a run of an earlier version says nothing about it', async (t) => {
  const fake = await openFake(t, {})
  const { assurance: _, ...payload } = verdict('tests')
  fake.engine.append(fake.runId, 'goal_check', payload)
  const page = await openRun(t, browser, fake)
  await page.locator('.entry.check').waitFor()
  assert.equal(await page.locator('.entry.check .hint').count(), 0)
  assert.equal(await page.locator('.facts', { hasText: 'Met by' }).count(), 0)
  assert.equal(await page.locator('.check-files').isHidden(), true)
})

test('the files of the check are read when their list is opened, by keyboard', async (t) => {
  const hostile = `qa/<img src=x onerror="document.title='owned'">\u202e.js`
  const files = [
    { path: hostile, reason: 'a test file that the report names' },
    ...Array.from({ length: 250 }, (_, i) => ({ path: `data/${i}.json`, reason: 'read by tests' })),
  ]
  let answer: Answer = problem(503, 'store_unavailable', 'the store does not answer')
  const fake = await openFake(t, { 'check-files': () => answer })
  fake.set({ check_files: files.length })
  fake.engine.append(fake.runId, 'goal_check', verdict('tests'))
  const page = await openRun(t, browser, fake)
  const list = page.locator('details.check-files')
  const summary = list.locator('summary')
  await summary.getByText('Check files (251)').waitFor()
  assert.deepEqual(fake.requests, [])

  await summary.focus()
  await page.keyboard.press('Enter')
  await list.getByRole('alert').getByText('the store does not answer').waitFor()
  answer = { json: { files, observed: true, sealed_unavailable: null } }
  await page.keyboard.press('Enter')
  await page.keyboard.press('Enter')
  const rows = list.getByRole('listitem')
  await rows.first().waitFor()
  assert.equal(await list.locator('.error-text').textContent(), '')
  assert.equal(await rows.count(), 201)
  assert.equal(
    await rows.first().textContent(),
    `${hostile.replace('\u202e', '\\u202e')} a test file that the report names`,
  )
  assert.equal(await rows.last().textContent(), 'and 51 more files')
  assert.equal(await list.locator('img').count(), 0)
  await list.getByText('by what a check was seen to read').waitFor()
  // The list scrolls by keyboard.
  await page.keyboard.press('Tab')
  assert.equal(await page.evaluate(() => document.activeElement?.tagName), 'UL')
  await assertAccessible(page, 'the open list')

  // A later check has added one: what is open is read again.
  answer = { json: { files: files.slice(0, 2), observed: false, sealed_unavailable: null } }
  fake.set({ check_files: 252 })
  fake.engine.append(fake.runId, 'goal_check', verdict('tests'))
  await summary.getByText('Check files (252)').waitFor()
  await list.getByText('by their names alone').waitFor()
  assert.equal(await rows.count(), 2)
})
