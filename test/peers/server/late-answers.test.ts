/** What comes late, or not at all, in the dashboard in a real browser: answers, sockets, storage. */
import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import { complaintsOf, openBrowser } from './browser.js'
import {
  changed, changesOf, openFake, openRun, problem, twoIterations, type FakeService,
} from './fake-workspace.js'

let browser: BrowserContext
let closeBrowser = async (): Promise<void> => {}
before(async () => {
  browser = await openBrowser({ after: (hook) => (closeBrowser = hook) })
})
after(() => closeBrowser())

const gate = (fake: FakeService, runId = fake.runId, more: object = {}): void => {
  const facts = {
    gate_id: 'g1', kind: 'iteration', iteration: 1, summary: 'Waiting.', deadline: null, calls: [],
    ...more,
  } as const
  const opened = { ...facts, opened_at: '2026-01-01T00:00:00Z' }
  fake.engine.set(runId, { status: 'awaiting_human', gate: opened })
  fake.engine.append(runId, 'human_check_required', facts)
}

async function openList(t: TestContext, fake: FakeService, hash = '#/'): Promise<Page> {
  const page = await browser.newPage()
  const errors = complaintsOf(page, /status of \d|net::ERR_|response code: 422/)
  t.after(async () => {
    await page.close()
    assert.deepEqual(errors, [])
  })
  await page.goto(fake.url + hash)
  return page
}

/** Resolves once the page has the answer to a call that was held. */
async function answered(page: Page, path: RegExp, release: () => void): Promise<void> {
  const response = page.waitForResponse(path)
  release()
  await (await response).finished()
  await page.evaluate(() => new Promise((done) => setTimeout(done)))
}

const goTo = (page: Page, hash: string): Promise<void> =>
  page.evaluate((to) => void (location.hash = to), hash)

test('details that come after one has gone elsewhere change neither title nor keys', async (t) => {
  const fake = await openFake(t, {})
  gate(fake)
  const other = fake.engine.add()
  fake.engine.set(other, { goal: 'the other one' })
  const release = fake.hold(new RegExp(`GET /api/runs/${fake.runId}$`))
  const page = await openList(t, fake, `#/runs/${fake.runId}`)
  await goTo(page, `#/runs/${other}`)
  await page.getByRole('heading', { name: 'the other one' }).waitFor()
  await answered(page, new RegExp(`/api/runs/${fake.runId}$`), release)
  assert.match(await page.title(), /the other one/)
  await page.keyboard.press('?')
  const dialog = page.getByRole('dialog', { name: 'Keys' })
  await dialog.waitFor()
  assert.equal(await dialog.getByText('Gate').count(), 0)
})

test('events that wait for a frame when their run is left are not followed up', async (t) => {
  const fake = await openFake(t, {})
  const page = await openRun(t, browser, fake)
  await page.evaluate(() => {
    Reflect.set(window, 'requestAnimationFrame', () => Reflect.set(window, 'isHeld', true))
    // What is asked from the moment at which the page is left.
    const asked: string[] = []
    Object.assign(window, { asked })
    const send = window.fetch
    const atOnce = { capture: true, once: true }
    window.addEventListener('hashchange', () => {
      window.fetch = (resource, options) => {
        asked.push(String(resource))
        return send(resource, options)
      }
    }, atOnce)
  })
  fake.engine.append(fake.runId, 'human_check_response', {
    decision: 'approve', gate_id: 'g1', decided_by: null,
  })
  // Not looked at by frames, which are held.
  const isHeld = () => Reflect.get(window, 'isHeld') === true
  await page.waitForFunction(isHeld, undefined, { polling: 50 })
  await goTo(page, '#/')
  await page.getByRole('heading', { name: 'Runs', exact: true }).waitFor()
  // The list reads the runs again, after the socket was closed.
  await page.waitForResponse(/\/api\/runs\?/)
  await page.waitForResponse(/\/api\/runs\?/)
  const asked = await page.evaluate<string[]>('asked')
  assert.ok(asked.some((address) => address.includes('api/runs?')))
  assert.deepEqual(asked.filter((address) => address.includes(fake.runId)), [])
})

test('who has left a form or a run is not taken to the run that starts', async (t) => {
  const fake = await openFake(t, {})
  fake.set({ status: 'failed', end_reason: 'stuck' })
  const page = await openList(t, fake, '#/new')
  await page.getByLabel('Goal', { exact: true }).fill('node-test')
  const start = fake.hold(/^POST \/api\/runs$/)
  await page.getByRole('button', { name: 'Start run' }).click()
  await goTo(page, '#/')
  await answered(page, /\/api\/runs$/, start)
  assert.equal(new URL(page.url()).hash, '#/')
  await goTo(page, `#/runs/${fake.runId}`)
  const retry = fake.hold(/retry$/)
  await page.getByRole('button', { name: 'Run again' }).click()
  await goTo(page, '#/')
  await answered(page, /retry$/, retry)
  assert.equal(new URL(page.url()).hash, '#/')
})

test('a dialog is closed with the run that it is about', async (t) => {
  const fake = await openFake(t, {})
  fake.set({ status: 'achieved', end_reason: 'goal_achieved' })
  const page = await openRun(t, browser, fake)
  await page.getByRole('button', { name: 'Options…' }).click()
  await page.getByRole('dialog').waitFor()
  await goTo(page, '#/')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
})

test('of some readings of the changes at a gate, the newest one is shown', async (t) => {
  const answers: (() => void)[] = []
  let isHeld = true
  const fake = await twoIterations(t, {
    changes: async () => {
      const file = `reading-${answers.length + 1}.js`
      await new Promise<void>((resolve) => {
        answers.push(resolve)
        if (!isHeld) resolve()
      })
      return { json: changesOf(changed(file)) }
    },
  })
  gate(fake)
  const page = await openRun(t, browser, fake)
  const until = async (count: number): Promise<void> => {
    while (answers.length < count) await page.evaluate('1')
  }
  await until(1)
  fake.checkpoint('7', 'iteration')
  await until(2)
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))))
  isHeld = false
  const newest = answers.length
  answers[newest - 1]!()
  const shown = page.locator('section.gate').getByText(/reading-\d+\.js/).first()
  const number = async (): Promise<number> =>
    Number(/\d+/.exec(String(await shown.textContent()))?.[0])
  await shown.waitFor()
  assert.ok((await number()) >= newest)
  for (const answer of answers.slice(0, newest - 1).reverse())
    await answered(page, /changes/, answer)
  assert.ok((await number()) >= newest)
})

test('what a goal would run is not shown of a form that has changed since', async (t) => {
  const fake = await openFake(t, {})
  const page = await openList(t, fake, '#/new')
  const goal = page.getByLabel('Goal', { exact: true })
  await goal.fill('node-test')
  const ask = page.getByRole('button', { name: 'Show what it will run' })
  const release = fake.hold(/resolve/)
  await ask.click()
  await goal.fill('shell: something else')
  await answered(page, /resolve/, release)
  assert.equal(await page.locator('.preview dd').count(), 0)
  await ask.click()
  await page.locator('.preview dd').first().waitFor()
  // Nobody has lost the place by that.
  assert.ok(await ask.evaluate((each) => each === document.activeElement))
  await page.getByRole('group', { name: 'Goals of this host' }).getByRole('button').first().click()
  assert.equal(await page.locator('.preview dd').count(), 0)
})

test('folders that come late take no focus from a field in which somebody types', async (t) => {
  const fake = await openFake(t, {})
  fake.engine.offered = { ...fake.engine.offered, folders: [{ path: '/srv', name: '/srv' }] }
  const page = await openList(t, fake, '#/new')
  const release = fake.hold(/folders/)
  await page.getByText('Choose a folder').click()
  const goal = page.getByLabel('Goal', { exact: true })
  await goal.pressSequentially('node')
  await answered(page, /folders/, release)
  await page.locator('.folder-list button').first().waitFor()
  await page.keyboard.type('-test')
  assert.equal(await goal.inputValue(), 'node-test')
})

test('the request of an earlier run leaves what was typed before it came', async (t) => {
  const fake = await openFake(t, {})
  fake.set({ goal: 'the goal of then', max_iterations: 7 })
  const release = fake.hold(new RegExp(`GET /api/runs/${fake.runId}$`))
  const page = await openList(t, fake, `#/new?from=${fake.runId}`)
  const goal = page.getByLabel('Goal', { exact: true })
  await goal.fill('typed')
  await answered(page, new RegExp(`/api/runs/${fake.runId}$`), release)
  await page.getByText('The request of').waitFor()
  assert.equal(await goal.inputValue(), 'typed')
  assert.equal(await page.getByLabel('Max iterations').inputValue(), '7')
})

test('a search that is typed and a status that is chosen at once both count', async (t) => {
  const fake = await openFake(t, {})
  const page = await openList(t, fake)
  await page.locator('.run-row').first().waitFor()
  // In one turn of the page: there is no pause in which the search could begin.
  await page.evaluate(() => {
    const search = document.querySelector<HTMLInputElement>('#search')!
    const status = document.querySelector<HTMLSelectElement>('#filter-status')!
    search.value = 'node'
    search.dispatchEvent(new Event('input'))
    status.value = 'running'
    status.dispatchEvent(new Event('change'))
  })
  await page.waitForFunction(() => location.hash === '#/?status=running&search=node')
  assert.equal(await page.locator('#search').inputValue(), 'node')
})

test('what is typed while a message or an answer is sent stays', async (t) => {
  const fake = await openFake(t, {})
  const page = await openRun(t, browser, fake)
  const message = page.getByLabel('Message to the run')
  await message.fill('first')
  const sent = fake.hold(/messages$/)
  await page.getByRole('button', { name: 'Send' }).click()
  await message.fill('second')
  await answered(page, /messages$/, sent)
  assert.equal(await message.inputValue(), 'second')

  gate(fake)
  await page.locator('section.gate[data-ready]').waitFor()
  const feedback = page.getByLabel('Feedback for the model')
  await feedback.fill('good')
  const resumed = fake.hold(/resume$/)
  await page.getByRole('button', { name: /^Approve/ }).click()
  await feedback.fill('good, but mind the tests')
  await answered(page, /resume$/, resumed)
  fake.set({ status: 'running', gate: null })
  fake.engine.append(fake.runId, 'human_check_response', {
    decision: 'approve', gate_id: 'g1', decided_by: null, feedback: 'good',
  })
  await page.getByText('Your answer did not count').waitFor()
  const kept = page.getByLabel('What you had written')
  assert.equal(await kept.inputValue(), 'good, but mind the tests')
})

const REFUSING = `
const refuse = () => { throw new DOMException('refused', 'SecurityError') }
for (const name of ['localStorage', 'sessionStorage'])
  Object.defineProperty(window, name, { get: refuse })
Object.defineProperty(window, 'BroadcastChannel', { value: refuse })`

test('where storage is refused the page works, and keeps choices while it is open', async (t) => {
  const fake = await openFake(t, {})
  const context = await openBrowser(t)
  await context.addInitScript(REFUSING)
  const page = await context.newPage()
  const errors = complaintsOf(page)
  await page.goto(fake.url)
  await page.locator('.run-row').first().waitFor()
  await page.getByRole('button', { name: 'Keys' }).click()
  await page.getByLabel('Use these keys').uncheck()
  await page.getByRole('button', { name: 'Close' }).click()
  await page.keyboard.press('?')
  assert.equal(await page.getByRole('dialog').count(), 0)
  assert.deepEqual(errors, [])
})

for (const [what, clockAhead] of [['behind', -3_600_000], ['ahead', 3_600_000]] as const) {
  test(`a countdown goes by the clock of a service that is an hour ${what}`, async (t) => {
    const fake = await openFake(t, {}, { clockAhead })
    const deadline = new Date(Date.now() + clockAhead + 30 * 60_000).toISOString()
    gate(fake, fake.runId, { deadline })
    const page = await openRun(t, browser, fake)
    await page.locator('.countdown time').waitFor()
    assert.match(await page.locator('.countdown').innerText(), /Answer within (29|30) min/)
  })
}

test('where no socket opens, a link leads to its event all the same', async (t) => {
  const fake = await openFake(t, {}, { sockets: false })
  fake.engine.log(fake.runId, 300)
  const page = await openList(t, fake, `#/runs/${fake.runId}?event=42`)
  await page.locator('[data-seq="42"][aria-current]').waitFor()
  // One that does not exist leads to the last one, which is said.
  await goTo(page, `#/runs/${fake.runId}?event=9999`)
  fake.engine.append(fake.runId, 'run_end', {
    status: 'achieved', end_reason: 'goal_achieved', reason: '', iterations: 1, total_tokens: 0,
  } as never)
  await page.locator('.toast', { hasText: 'This run has no event 9999.' }).waitFor()
})

test('what was refused without a key is read once there is one', async (t) => {
  let refuses = false
  const fake = await openFake(t, {}, {
    refuses: (path) => refuses && !path.startsWith('/runwright/'),
  })
  const page = await openRun(t, browser, fake)
  refuses = true
  gate(fake)
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await dialog.waitFor({ state: 'detached' })
  assert.equal(await page.locator('section.gate').isVisible(), false)
  await page.getByLabel('Message to the run').fill('hello')
  await page.getByRole('button', { name: 'Send' }).click()
  await dialog.getByLabel('API key').fill('a-new-key-0123456789')
  refuses = false
  await dialog.getByRole('button', { name: 'Use key' }).click()
  await page.locator('section.gate').waitFor()
})

test('a run that is left keeps no marks, and a selection is kept however far one scrolls', async (t) => {
  const fake = await openFake(t, {})
  fake.engine.log(fake.runId, 1_000)
  const page = await openRun(t, browser, fake)
  for (const seq of [5, 30]) await page.locator(`[data-seq="${seq}"]`).waitFor()
  await page.evaluate(() => {
    getSelection()!.selectAllChildren(document.querySelector('[data-seq="5"] .what')!)
  })
  const selected = (): Promise<string> => page.evaluate(() => String(getSelection()))
  const before = await selected()
  assert.notEqual(before, '')
  await page.getByRole('button', { name: 'Latest' }).click()
  await page.locator('[data-seq="1000"]').waitFor()
  await page.locator('[data-seq="30"]').waitFor({ state: 'detached' })
  assert.equal(await selected(), before)
  if (await page.evaluate(() => !('highlights' in CSS))) return
  await page.getByLabel('Find in this run').fill('hello')
  const marks = (): number => CSS.highlights.get('found')?.size ?? 0
  while ((await page.evaluate(marks)) === 0);
  await goTo(page, '#/')
  await page.getByRole('heading', { name: 'Runs', exact: true }).waitFor()
  assert.equal(await page.evaluate(marks), 0)
})

test('a call at a gate has one mark that it is folded', async (t) => {
  const fake = await openFake(t, {})
  const calls = [{ call_id: 'c1', tool: 'bash', args: { command: 'ls' } }]
  gate(fake, fake.runId, { kind: 'tool', calls })
  const page = await openRun(t, browser, fake)
  const summary = page.locator('.call-details > summary')
  await summary.waitFor()
  assert.equal(await summary.evaluate((each) => getComputedStyle(each).listStyleType), 'none')
})

test('an answer about the runs that comes after a newer one is not shown', async (t) => {
  const fake = await openFake(t, {})
  fake.set({ goal: 'the first' })
  const other = fake.engine.add()
  fake.engine.set(other, { goal: 'the other' })
  const { list } = fake.engine
  const found: typeof list = async (query = {}) => {
    const { runs, next } = await list(query)
    const { search = '' } = query
    return { runs: runs.filter(({ goal }) => goal.includes(search)), next }
  }
  Object.assign(fake.engine, { list: found })
  const all = fake.hold(/^GET \/api\/runs\?(?!.*search=)/)
  const page = await openList(t, fake)
  await page.getByRole('searchbox').fill('other')
  const rows = page.locator('.run-row')
  await rows.first().waitFor()
  assert.equal(await rows.count(), 1)
  const newer = fake.hold(/^GET \/api\/runs\?.*search=/)
  await answered(page, /\/api\/runs\?(?!.*search=)/, all)
  // The list is drawn again, by what it knows.
  await goTo(page, `#/runs/${other}`)
  await page.getByRole('heading', { name: 'the other' }).waitFor()
  assert.equal(await rows.count(), 1)
  newer()
  assert.match(String(await rows.first().textContent()), /the other/)
})

test('who has left a run while it is deleted stays where he is', async (t) => {
  const fake = await openFake(t, {})
  fake.set({ status: 'failed', end_reason: 'stuck' })
  const page = await openRun(t, browser, fake)
  fake.set({ ended_at: '2026-01-01T00:00:00Z' })
  page.on('dialog', (dialog) => void dialog.accept())
  const release = fake.hold(/^DELETE/)
  const asked = page.waitForRequest((request) => request.method() === 'DELETE')
  const deleted = page.waitForResponse((response) => response.request().method() === 'DELETE')
  await page.getByRole('button', { name: 'Delete' }).click()
  await asked
  await goTo(page, '#/new')
  await page.getByLabel('Goal', { exact: true }).waitFor()
  release()
  assert.equal((await deleted).status(), 204)
  await page.getByText('No runs yet.').waitFor()
  assert.equal(new URL(page.url()).hash, '#/new')
})

test('who starts a run by keyboard can try again when it was refused', async (t) => {
  const fake = await openFake(t, {
    create: () => problem(503, 'queue_full', 'too many runs wait'),
  })
  const page = await openList(t, fake, '#/new')
  await page.getByLabel('Goal', { exact: true }).fill('node-test')
  await page.getByRole('button', { name: 'Start run' }).focus()
  await page.keyboard.press('Enter')
  await page.getByText('too many runs wait').first().waitFor()
  const text = await page.evaluate(() => document.activeElement?.textContent)
  assert.equal(text, 'Start run')
})

test('the longer a waterfall takes to draw, the longer its reader is left alone', async (t) => {
  const fake = await openFake(t, {})
  const page = await openRun(t, browser, fake, '/waterfall')
  await page.evaluate(() => {
    // Each look at the clock takes 50 ms: four times that are no other wait of the page.
    const { now } = performance
    let late = 0
    performance.now = () => now.call(performance) + (late += 50)
    const delays: number[] = []
    const { setTimeout: set } = window
    Reflect.set(window, 'setTimeout', (work: () => void, ms: number) => {
      delays.push(ms)
      return set(work, ms)
    })
    Reflect.set(window, 'delays', delays)
  })
  const isLeftAlone = () =>
    page.evaluate(() =>
      (Reflect.get(window, 'delays') as number[]).some((ms) => ms >= 200 && ms < 1_000),
    )
  // Turns that reach the page together are drawn once: only one that comes after a drawing shows
  // the pause.
  for (let turn = 1; !(await isLeftAlone()); turn += 1) {
    const text = `turn ${turn}`
    fake.engine.append(fake.runId, 'model_turn', { turn, text, stop: 'end' })
    await page.locator('.wf-row', { hasText: text }).waitFor()
    assert.ok(turn < 9, 'each drawing was followed by the next one at once')
  }
})

test('where locks are refused there is no error', async (t) => {
  const context = await openBrowser(t, {})
  await context.addInitScript({
    content: `if (navigator.locks) Object.defineProperty(navigator.locks, 'request', {
      value: () => Promise.reject(new DOMException('no', 'SecurityError')),
    })`,
  })
  const fake = await openFake(t, {})
  const page = await openRun(t, context, fake)
  await goTo(page, '#/')
  await page.getByRole('heading', { name: 'Runs', exact: true }).waitFor()
})
