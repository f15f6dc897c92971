/** Trees of runs in the dashboard: the list, attempts beside each other, the choice of one. */
import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import type { Assurance, Candidate } from 'runwright/agent'
import { assertAccessible } from './accessible.js'
import { openBrowser } from './browser.js'
import {
  changed, changesOf, openFake, openRun, problem, type FakeService, type Request, type Routes,
} from './fake-workspace.js'

const HOSTILE = `<img src=x onerror="document.title='owned'">`
const SEALED: Assurance = { by: 'tests', sealed: true, canaries: false, holdout: false }

let browser: BrowserContext
let closeBrowser = async (): Promise<void> => {}
before(async () => {
  browser = await openBrowser({ after: (hook) => (closeBrowser = hook) })
})
after(() => closeBrowser())

interface Tree extends FakeService {
  readonly first: string
  readonly second: string
  readonly delegate: string
}

/** A run with two attempts at work, of which the second has a delegate. */
async function openTree(t: TestContext, routes: Routes = {}): Promise<Tree> {
  const fake = await openFake(t, {
    changes: ({ path }) => ({ json: changesOf(changed(`${path}.js`)) }),
    ...routes,
  })
  const { engine, runId } = fake
  const first = engine.addChild(runId, 'attempt', { model_name: 'acme:small' })
  const second = engine.addChild(runId, 'attempt', { model_name: `acme:${HOSTILE}` })
  const delegate = engine.addChild(second, 'delegate', { goal: `look at ${HOSTILE}` })
  return { ...fake, first, second, delegate }
}

/** What a run has used; shown once its log has grown. */
function spend(fake: Tree, runId: string, tokens: number, usd: number): void {
  const { details } = fake.engine.runs.get(runId)!
  const final_state = { ...details.final_state, total_tokens: tokens, estimated_cost_usd: usd }
  fake.engine.set(runId, { final_state })
  fake.engine.log(runId, 1)
}

/** Both attempts end, and the second is chosen unless a human is to do it. */
function endAttempts(fake: Tree): void {
  const { engine, first, second, delegate } = fake
  engine.endChild(delegate, { status: 'achieved', conflicts: ['src/a.js'] } as never)
  spend(fake, first, 1_200, 0.25)
  engine.endChild(first, { status: 'failed', reason: '2 of 9 tests fail' })
  spend(fake, second, 3_400, 0.5)
  const changes = { files: 2, additions: 7, deletions: 3 }
  const reason = `all tests pass ${HOSTILE}`
  engine.endChild(second, { status: 'achieved', reason, assurance: SEALED, changes })
}

const list = (page: Page) => page.getByRole('navigation', { name: 'Runs' })
const item = (page: Page, name: string) => list(page).getByRole('link', { name })

async function goTo(page: Page, runId: string, tab = ''): Promise<void> {
  await page.evaluate((hash) => (location.hash = hash), `#/runs/${runId}${tab}`)
}

test('runs that others started are folded under them, and read when unfolded', async (t) => {
  const fake = await openTree(t)
  const { engine, runId, second } = fake
  const page = await openRun(t, browser, fake)
  const fold = list(page).getByRole('button', { name: '2 attempts of node-test' })
  await fold.waitFor()
  assert.equal(await list(page).getByRole('link').count(), 1)
  assert.equal(await fold.getAttribute('aria-expanded'), 'false')
  await fold.focus()
  await page.keyboard.press('Enter')
  await item(page, 'Attempt 2').getByText('Running').waitFor()
  await item(page, 'Attempt 1').getByText('acme:small').waitFor()
  // What goes on below is seen without events of its own.
  spend(fake, second, 3_400, 0.5)
  await item(page, 'Attempt 2').getByText('$0.5000').waitFor()
  await list(page).getByRole('button', { name: '1 delegate of' }).click()
  await item(page, `Delegate 1: look at ${HOSTILE}`).waitFor()
  await assertAccessible(page, 'an unfolded list')
  // Arrow keys go through all that is shown.
  await page.keyboard.press('ArrowDown')
  await page.waitForFunction(() => document.activeElement?.textContent?.startsWith('Delegate 1'))
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('Enter')
  await page.waitForFunction((id) => location.hash.endsWith(id), second)
  await list(page).locator('a[aria-current=page]', { hasText: 'Attempt 2' }).waitFor()
  endAttempts(fake)
  engine.set(runId, { attempts: { ...engine.runs.get(runId)!.details.attempts!, chosen: 2 } })
  engine.append(runId, 'attempt_chosen', { attempt: 2, run_id: second, why: 'the only one' })
  await item(page, 'Attempt 2 · chosen').getByText('Achieved').waitFor()
  await item(page, 'Attempt 1').getByText('Failed').waitFor()
  await fold.click()
  assert.equal(await list(page).getByRole('link').count(), 1)
  // Who looks for a run finds it wherever it is.
  await page.getByLabel('Show runs with status').selectOption('achieved')
  await item(page, 'Delegate · builtin:repair').waitFor()
})

test('attempts are compared beside each other, with their changes on demand', async (t) => {
  const asked: string[] = []
  const fake = await openTree(t, {
    changes: () => {
      asked.push('changes')
      return { json: changesOf(...Array.from({ length: 25 }, (_, i) => changed(`src/${i}.js`))) }
    },
  })
  const { engine, runId, first, second } = fake
  const page = await openRun(t, browser, fake)
  await page.getByRole('tab', { name: 'Attempts' }).click()
  assert.ok(page.url().endsWith(`${runId}/attempts`))
  await page.getByText('2 attempts · 2 started · 0 ended').waitFor()
  // No model would hear a message.
  assert.equal(await page.locator('.message-box').isVisible(), false)
  const card = (name: string) => page.locator('li.attempt', { hasText: name })
  await card('Attempt 1').getByText('Running').waitFor()
  // Each has a log of its own, of which no event is followed.
  spend(fake, first, 1_200, 0.25)
  await card('Attempt 1').getByText('1,200').waitFor()
  endAttempts(fake)
  await card('Attempt 2').getByText('all tests pass').waitFor()
  await card('Attempt 2').getByText('tests, in a sealed copy').waitFor()
  await card('Attempt 2').getByText('2 files +7 −3').waitFor()
  await card('Attempt 2').getByText('$0.5000').waitFor()
  await card('Attempt 1').getByText('2 of 9 tests fail').waitFor()
  assert.equal(await page.getByText('Chosen', { exact: true }).filter({ visible: true }).count(), 0)
  engine.set(runId, { attempts: { ...engine.runs.get(runId)!.details.attempts!, chosen: 2 } })
  engine.append(runId, 'attempt_chosen', { attempt: 2, run_id: second, why: 'the only one' })
  await card('Attempt 2').getByText('Chosen', { exact: true }).waitFor()
  const chosen = card('Attempt 1').getByText('Chosen', { exact: true })
  assert.equal(await chosen.filter({ visible: true }).count(), 0)
  assert.deepEqual(asked, [])
  await page.getByRole('button', { name: 'Show all changes' }).click()
  await card('Attempt 1').getByText('25 files · +25 −25').waitFor()
  await card('Attempt 2').getByText('All changes of the run: 5 more files').waitFor()
  assert.equal(await card('Attempt 2').locator('.change-row').count(), 20)
  assert.equal(await card('Attempt 2').locator('details.change[open]').count(), 3)
  await assertAccessible(page, 'attempts with their changes')
  assert.equal(await page.locator('main img').count(), 0)
  await card('Attempt 2').getByRole('link', { name: 'Attempt 2' }).click()
  // The way back: its parent, which is its root as well.
  await page.locator('.facts').getByText('Attempt of').waitFor()
  assert.equal(await page.getByText('Top of the tree').count(), 0)
  await page.getByRole('link', { name: 'its parent' }).click()
  await page.getByRole('tab', { name: 'Attempts' }).waitFor()
})

test('a run without attempts has no tab for them, and a delegate leads to its root', async (t) => {
  const fake = await openTree(t)
  const page = await openRun(t, browser, fake)
  await goTo(page, fake.delegate)
  await page.locator('.facts').getByText('Delegate of').waitFor()
  assert.equal(await page.getByRole('tab').count(), 4)
  await page.getByRole('tab', { name: 'Timeline' }).focus()
  await page.keyboard.press('ArrowRight')
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Waterfall')
  await page.keyboard.press('ArrowLeft')
  await page.getByRole('link', { name: 'its root' }).click()
  await page.getByRole('tab', { name: 'Attempts' }).waitFor()
  assert.ok(page.url().endsWith(fake.runId))
  // An address that somebody has kept.
  await goTo(page, fake.delegate, '/attempts')
  await page.getByText('This run makes no attempts.').waitFor()
})

test('the timeline tells of the runs that were started, with links to them', async (t) => {
  const fake = await openTree(t)
  const { engine, runId, second, delegate } = fake
  const common = { operation_id: 'o1', operation: 'merge' as const }
  engine.append(second, 'files_changing', {
    ...common, before: 'a', after: 'b', by: null, run_id: delegate, conflicts: ['src/a.js'],
  })
  engine.append(second, 'files_changed', { ...common, paths: ['src/b.js'], skipped: [] })
  const facts = { files: 3, bytes: 10, new_bytes: 0, left_out: [] }
  for (const reason of ['delegate', 'merge', 'attempt'] as const)
    engine.append(second, 'checkpoint', { checkpoint_id: 'd'.repeat(64), reason, ...facts })
  endAttempts(fake)
  engine.append(runId, 'attempt_chosen', { attempt: 2, run_id: second, why: `best ${HOSTILE}` })
  engine.append(runId, 'run_end', {
    achieved: false, iterations: 0, total_tokens: 0, status: 'failed',
    end_reason: 'attempts_failed', reason: '', estimated_cost_usd: 0, cost_known: true,
  })
  const page = await openRun(t, browser, fake)
  const entry = (text: string) => page.locator('article.entry', { hasText: text })
  await entry('Attempt 1 started').getByText('acme:small').waitFor()
  await entry('Attempt 1: Failed, out of iterations').getByText('2 of 9 tests fail').waitFor()
  await entry('Attempt 2: Achieved').getByText('2 files changed · +7 −3').waitFor()
  await entry('Attempt 2 was chosen').getByText(`best ${HOSTILE}`).waitFor()
  await entry('no attempt met the goal').waitFor()
  await assertAccessible(page, 'a timeline of attempts')
  await entry('Attempt 2 was chosen').getByRole('link', { name: 'Its run' }).click()
  await entry('Delegate 1 started').getByText('look at').waitFor()
  await entry('Delegate: Achieved').getByText('Left as they were: 1').click()
  await entry('Delegate: Achieved').getByText('src/a.js').waitFor()
  await entry('The changes of a delegate are brought').getByText('Left as they were: 1').waitFor()
  await entry('Brought from a delegate: 1 file').waitFor()
  await entry('Checkpoint: for a delegate at').waitFor()
  await entry('Checkpoint: at the merge at').waitFor()
  await entry('Checkpoint: chosen attempt').waitFor()
  await entry('Delegate 1 started').getByRole('link', { name: 'Its run' }).click()
  await page.locator('.facts').getByText('Delegate of').waitFor()
  assert.equal(await page.locator('main img').count(), 0)
})

/** The gate at which a human chooses; the first candidate did not achieve the goal. */
function openChoice({ engine, runId, first, second }: Tree): void {
  const common = { model_name: `acme:${HOSTILE}`, cost_known: true }
  const candidates: Candidate[] = [
    {
      ...common, attempt: 1, run_id: first, status: 'failed', reason: '2 of 9 tests fail',
      assurance: null, changes: null, total_tokens: 1_200, cost_usd: 0.25,
    },
    {
      ...common, attempt: 2, run_id: second, status: 'achieved', reason: 'all tests pass',
      assurance: SEALED, changes: { files: 2, additions: 7, deletions: 3 }, total_tokens: 3_400,
      cost_usd: 0.5,
    },
  ]
  const gate = {
    gate_id: 'g1', kind: 'choice' as const, iteration: 0, summary: '1 of 2 attempts succeeded',
    deadline: null,
  }
  const opened_at = '2026-01-01T00:00:00Z'
  const opened = { ...gate, opened_at, calls: [], candidates }
  engine.set(runId, { status: 'awaiting_human', gate: opened })
  engine.append(runId, 'human_check_required', { ...gate, candidates })
}

for (const { width, colorScheme } of [
  { width: 360, colorScheme: 'dark' },
  { width: 1440, colorScheme: 'light' },
] as const) {
  test(`an attempt is chosen by keyboard at ${width} px, ${colorScheme}`, async (t) => {
    const viewport = { width, height: 800 }
    const context = await openBrowser(t, { viewport, colorScheme, reducedMotion: 'reduce' })
    const answers: Request['body'][] = []
    const fake = await openTree(t, {
      resume: ({ body }) => {
        answers.push(body)
        if (answers.length === 1) return problem(409, 'stale_gate', 'another gate is open')
        fake.engine.set(fake.runId, { status: 'running', gate: null })
        const answer = { decision: 'approve', gate_id: 'g1', decided_by: null, attempt: 2 } as const
        fake.engine.append(fake.runId, 'human_check_response', answer)
        return { json: { run_id: fake.runId, status: 'running', ...answer } }
      },
    })
    endAttempts(fake)
    const page = await openRun(t, context, fake)
    openChoice(fake)
    const gate = page.locator('section.gate')
    await gate.getByRole('heading', { name: 'Which attempt is to count?' }).waitFor()
    const card = (name: string) => gate.locator('li.attempt', { hasText: name })
    await card('Attempt 1').getByText('2 of 9 tests fail').waitFor()
    await card('Attempt 2').getByText('tests, in a sealed copy').waitFor()
    await card('Attempt 2').getByText('2 files +7 −3').waitFor()
    assert.deepEqual(await gate.getByRole('button').allTextContents(), [
      'Fold', 'Choose attempt 2', 'Abort run',
    ])
    assert.equal(await gate.getByRole('textbox').count(), 0)
    await card('Attempt 2').getByText('Net changes').focus()
    await page.keyboard.press('Enter')
    await card('Attempt 2').getByText('1 file · +1 −1').waitFor()
    await assertAccessible(page, 'a choice')
    const choose = gate.getByRole('button', { name: 'Choose attempt 2' })
    await page.locator('section.gate[data-ready]').waitFor()
    await choose.focus()
    await page.keyboard.press('Enter')
    await gate.getByText('another gate is open').waitFor()
    await page.keyboard.press('Enter')
    await page.getByText('Answered: attempt 2').waitFor()
    const answer = { decision: 'approve', gate_id: 'g1', attempt: 2 }
    assert.deepEqual(answers, [answer, answer])
    await gate.waitFor({ state: 'hidden' })
    await page.getByRole('tab', { name: 'Attempts' }).click()
    await page.locator('.tab-panel li.attempt').nth(1).getByText('all tests pass').waitFor()
    await page.getByRole('button', { name: 'Show all changes' }).click()
    await page.locator('.tab-panel li.attempt').first().getByText('1 file · +1 −1').waitFor()
    await assertAccessible(page, 'attempts after the choice')
    assert.equal(await page.locator('main img').count(), 0)
  })
}

test('a run with attempts and delegates is started from the form', async (t) => {
  const fake = await openTree(t)
  const page = await openRun(t, browser, fake)
  await page.getByRole('link', { name: 'New run' }).click()
  await page.getByLabel('Goal', { exact: true }).fill('node-test')
  const fold = page.getByText('Attempts and delegates')
  assert.equal(await page.getByLabel('Levels of such runs').isVisible(), false)
  await fold.click()
  await page.getByLabel('Attempts', { exact: true }).fill('3')
  await page.getByLabel('Which one counts').selectOption('human')
  await page.getByLabel('Models of the attempts').fill('acme:small\n\n acme:large ')
  await page.getByLabel('Let me apply the changes').check()
  await page.getByLabel('Runs that each may start').fill('2')
  await assertAccessible(page, 'the form')
  const errors = [{ pointer: '/attempts/models/1', detail: 'is no model of this host' }]
  fake.routes['create'] = () => ({
    status: 422,
    headers: { 'content-type': 'application/problem+json' },
    json: { title: '', status: 422, code: 'x', detail: 'no', errors },
  })
  await page.getByRole('button', { name: 'Start run' }).click()
  await page.getByText('is no model of this host').waitFor()
  const body = fake.requests.find(({ path }) => path === 'create')?.body ?? {}
  assert.deepEqual(body['attempts'], {
    count: 3, models: ['acme:small', 'acme:large'], choose: 'human',
  })
  assert.deepEqual([body['delegation'], body['apply']], [{ children: 2 }, 'manual'])
  const models = page.getByLabel('Models of the attempts')
  assert.equal(await models.getAttribute('aria-invalid'), 'true')
})
