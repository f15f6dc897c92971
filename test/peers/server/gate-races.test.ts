/** The gate of the dashboard when others are faster, time passes, or the model is hostile. */
import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import type { GatedCall, RunDetails } from 'runwright/agent'
import { assertAccessible } from './accessible.js'
import { openBrowser } from './browser.js'
import { openFake, openRun, problem, type FakeService, type Routes } from './fake-workspace.js'
import { ready } from './gate-world.js'

const PARTS = 'section.gate, section.kept-text'
const INVISIBLE = '\u202egpj\u200b\u{e0041}'

let browser: BrowserContext
let closeBrowser = async (): Promise<void> => {}
before(async () => {
  browser = await openBrowser({ after: (hook) => (closeBrowser = hook) })
})
after(() => closeBrowser())

const NO_FILE = problem(404, 'file_not_found', 'the folder has no such file')
const CALL: GatedCall = { call_id: 'c1', tool: 'bash', args: { command: 'ls' } }

/** Opens a gate of a service whose runs do nothing. */
function openGate(
  { engine, runId }: FakeService,
  { calls = [CALL], gate_id = 'g1', deadline = null }: {
    calls?: readonly GatedCall[]
    gate_id?: string
    deadline?: string | null
  } = {},
): void {
  const kind = 'tool' as const
  const gate = { gate_id, kind, iteration: 0, summary: 'Waiting.', deadline, calls }
  const details: Partial<RunDetails> = {
    status: 'awaiting_human', approval: 'all', gate: { ...gate, opened_at: '2026-01-01T00:00:00Z' },
  }
  engine.set(runId, details)
  engine.append(runId, 'human_check_required', gate)
}

async function atGate(
  t: TestContext,
  options: Parameters<typeof openGate>[1] = {},
  routes: Routes = {},
  context = browser,
): Promise<{ fake: FakeService; page: Page }> {
  const fake = await openFake(t, { files: () => NO_FILE, ...routes })
  openGate(fake, options)
  const page = await openRun(t, context, fake)
  await ready(page)
  return { fake, page }
}

/** The answers that have reached the service. */
const answersTo = ({ engine }: FakeService): unknown[] =>
  engine.calls.flatMap(([method, , answer]) => (method === 'resume' ? [answer] : []))

const gateOf = (page: Page) => page.locator('section.gate')
const feedback = (page: Page) => gateOf(page).getByLabel('Feedback for the model')
const kept = (page: Page) => page.locator('section.kept-text')

/** Somebody answers, or ends the run, before the page has sent what was typed. */
const CLOSINGS: readonly {
  readonly name: string
  readonly why: string
  close(fake: FakeService): void
}[] = [
  {
    name: 'another person answers',
    why: 'The gate was answered by bob: reject.',
    close: ({ engine, runId }) => {
      engine.set(runId, { status: 'running', gate: null })
      const answer = { decision: 'reject', gate_id: 'g1', decided_by: 'bob' } as const
      engine.append(runId, 'human_check_response', answer)
    },
  },
  ...([
    ['the deadline passes', 'gate_timeout', 'The run ended: the gate was not answered in time.'],
    ['the run is aborted', 'cancelled', 'The run ended: stopped before it was done.'],
  ] as const).map(([name, end_reason, why]) => ({
    name,
    why,
    close: ({ engine, runId }: FakeService) => {
      engine.set(runId, { status: 'aborted', gate: null, end_reason })
      engine.append(runId, 'run_end', {
        achieved: false, iterations: 0, total_tokens: 0, status: 'aborted', end_reason, reason: '',
        estimated_cost_usd: 0, cost_known: true,
      })
    },
  })),
]

for (const { name, why, close } of CLOSINGS) {
  test(`what was typed stays when ${name}`, async (t) => {
    const { fake, page } = await atGate(t)
    await gateOf(page).getByRole('button', { name: 'Edit call 1' }).click()
    await gateOf(page).getByLabel('command').fill('ls -l')
    await feedback(page).fill('mind the umlauts')
    close(fake)
    await kept(page).getByText(why).waitFor()
    await gateOf(page).waitFor({ state: 'hidden' })
    const text = await kept(page).getByLabel('What you had written').inputValue()
    assert.equal(text, 'mind the umlauts\n\ncommand:\nls -l')
    await assertAccessible(page, name, PARTS)
    await kept(page).getByRole('button', { name: 'Discard' }).click()
    await kept(page).waitFor({ state: 'hidden' })
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'run-title')
  })
}

test('another answer with the same decision does not swallow the feedback', async (t) => {
  let fake: FakeService | undefined
  const opened = await atGate(t, {}, {
    resume: () => {
      fake!.engine.set(fake!.runId, { status: 'running', gate: null })
      const answer = { decision: 'approve', gate_id: 'g1', decided_by: 'bob' } as const
      fake!.engine.append(fake!.runId, 'human_check_response', answer)
      return { json: { run_id: fake!.runId, status: 'running', ...answer } }
    },
  })
  fake = opened.fake
  await feedback(opened.page).fill('but not on Fridays')
  await gateOf(opened.page).getByRole('button', { name: 'Approve calls' }).click()
  await kept(opened.page).getByText('The gate was answered by bob: approve.').waitFor()
})

test('an answer that comes second is refused by name, and the next gate is shown', async (t) => {
  const { fake, page } = await atGate(t, {}, {
    resume: () => {
      openGate(fake, { gate_id: 'g2', calls: [{ ...CALL, args: { command: 'pwd' } }] })
      return problem(409, 'already_decided', 'gate g1 was already answered with reject')
    },
  })
  await feedback(page).fill('go on')
  await gateOf(page).getByRole('button', { name: 'Approve calls' }).click()
  await gateOf(page).locator('.command', { hasText: 'pwd' }).waitFor()
  await kept(page).getByText('The gate is closed.').waitFor()
  assert.equal(await feedback(page).inputValue(), '')
})

test('without a connection the gate says so, and keeps what was typed until it is sent', async (t) => {
  const { fake, page } = await atGate(t)
  await feedback(page).fill('wait')
  let isDown = true
  await page.route('**/resume', (route) => (isDown ? route.abort() : route.continue()))
  const approve = gateOf(page).getByRole('button', { name: 'Approve calls' })
  await approve.click()
  await gateOf(page).getByText('The service is not responding.').waitFor()
  assert.equal(await feedback(page).inputValue(), 'wait')
  isDown = false
  const sent = page.waitForResponse('**/resume')
  await approve.click()
  await sent
  assert.deepEqual(answersTo(fake), [{ decision: 'approve', gate_id: 'g1', feedback: 'wait' }])
})

test('the time left is counted down, without the focus, and said aloud three times', async (t) => {
  const context = await openBrowser(t)
  const now = Date.parse('2026-01-01T00:00:00Z')
  await context.clock.install({ time: now })
  const deadline = new Date(now + 400_000).toISOString()
  // Its time does not go on with that of the page.
  const fake = await openFake(t, {}, { clockAhead: null })
  openGate(fake, { deadline })
  const page = await openRun(t, context, fake)
  const countdown = gateOf(page).locator('.countdown')
  await countdown.getByText(/^Answer within 6 min \d+ s, or the run is aborted\.$/).waitFor()
  await feedback(page).fill('still typ')
  await page.evaluate(() => {
    const said: string[] = []
    Object.assign(globalThis, { said })
    const place = document.querySelector('#announce')!
    new MutationObserver(() => said.push(place.textContent ?? ''))
      .observe(place, { childList: true, subtree: true, characterData: true })
  })
  await context.clock.runFor(345_000)
  await feedback(page).pressSequentially('ing')
  assert.equal(await feedback(page).inputValue(), 'still typing')
  await gateOf(page).locator('.countdown.soon').waitFor()
  await assertAccessible(page, 'little time', PARTS)
  await context.clock.runFor(60_000)
  await countdown.getByText('The time to answer is over').waitFor()
  const said = await page.evaluate(() => (globalThis as unknown as { said: string[] }).said)
  assert.deepEqual(said.map((text) => text.replace(/^[\d]+ (s|min) ?(\d+ s)? ?/, '')), [
    'left to answer the gate', 'left to answer the gate', 'left to answer the gate',
  ])
})

test('arguments of a megabyte, odd names and thousands of calls stay bounded', async (t) => {
  const huge = 'x'.repeat(1_000_000)
  const calls: GatedCall[] = [
    { call_id: 'h1', tool: 'write_file', args: { path: `a${INVISIBLE}.js`, content: `${huge}\n` } },
    { call_id: 'h2', tool: 'bash', args: { command: `echo ${huge}` } },
    { call_id: 'h3', tool: 'odd', args: JSON.parse('{"__proto__": {"a": 1}, "<b>": "\\u202e"}') },
    {
      call_id: 'h4', tool: `<img src=x>${INVISIBLE}`,
      args: Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`n${i}`, 'y'.repeat(99)])),
    },
    { call_id: 'h5', tool: 'bash', args: { command: `a${INVISIBLE}\n${'b\n'.repeat(5_000)}` } },
    ...Array.from({ length: 3_000 }, (_, i) => ({ ...CALL, call_id: `c${i}` })),
  ]
  const { page } = await atGate(t, { calls })
  const elements = (): Promise<number> => page.evaluate(() => document.querySelectorAll('*').length)
  const call = (n: number) => page.locator('.gated-call').nth(n - 1)
  await gateOf(page).getByText('The model wants to make 3,005 calls').waitFor()
  await call(1).locator('.line.plus').waitFor()
  assert.ok((await elements()) < 1_500, `${await elements()} elements`)
  const characters = (await gateOf(page).textContent())!.length
  assert.ok(characters < 60_000, `${characters} characters`)
  await call(1).getByText('998,001 more characters').waitFor()
  await call(1).locator('.path', { hasText: 'a\\u202egpj\\u200b\\u{e0041}.js' }).waitFor()
  await call(2).getByRole('button', { name: 'Show all 1,000,005 characters' }).waitFor()
  assert.match(String(await call(3).locator('.arguments').textContent()), /__proto__.*<b>\\u202e/s)
  await call(4).getByRole('button', { name: 'Show 4,970 more arguments' }).waitFor()
  assert.equal(await page.locator('main img').count(), 0)
  assert.equal(await call(1).getByRole('button', { name: 'Edit call 1' }).isDisabled(), true)
  await call(3).getByRole('button', { name: 'Edit call 3' }).click()
  assert.equal(await call(3).getByLabel('<b>, as JSON').inputValue(), '"\\u202e"')
  await call(5).getByRole('button', { name: 'Edit call 5' }).click()
  const typed = await call(5).getByLabel('command, as JSON').inputValue()
  assert.match(typed, /^"a\\u202egpj\\u200b\\udb40/)
  await gateOf(page).getByRole('button', { name: 'Show 20 of 2,985 calls more' }).click()
  assert.equal(await page.locator('.gated-call').count(), 40)
  await assertAccessible(page, 'hostile calls', PARTS)
})

test('a text with CRLF keeps its line ends when it is edited', async (t) => {
  const args = { path: 'a.txt', content: 'one\r\ntwo\r\n' }
  const { fake, page } = await atGate(t, { calls: [{ call_id: 'c1', tool: 'write_file', args }] })
  // A moment passes again once it shows the file.
  await gateOf(page).locator('.diff').waitFor()
  await ready(page)
  await page.locator('#run-title').focus()
  await page.keyboard.press('e')
  await gateOf(page).getByLabel('content').fill('one\nthree\n')
  const sent = page.waitForResponse('**/resume')
  await page.locator('#run-title').focus()
  await page.keyboard.press('a')
  await sent
  assert.deepEqual(answersTo(fake), [{
    decision: 'approve', gate_id: 'g1',
    edits: { c1: { args: { path: 'a.txt', content: 'one\r\nthree\r\n' } } },
  }])
})
