/** The dashboard in a real browser. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import type { BrowserContext, Page, Request } from 'playwright-core'
import { MemoryStore } from 'runwright/agent'
import { repairModel } from 'runwright/repair'
import { bearerKeys, createRunService, type RunServiceOptions } from 'runwright/server'
import { pairs } from '../../helpers/choice.js'
import { testProvider, type Said } from '../../helpers/engine.js'
import { complaintsOf, EXECUTABLE, fillNumber, goBy, inFirefox, openBrowser } from './browser.js'

/** Folder for screenshots; none are taken unless the variable is set. */
const SHOTS = process.env['RUNWRIGHT_SCREENSHOTS']
const HOSTILE = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`

let desktop: BrowserContext
let closeDesktop = async (): Promise<void> => {}
before(async () => {
  desktop = await openBrowser({ after: (hook) => (closeDesktop = hook) })
})
after(() => closeDesktop())

/** The model's n-th call: one file in each iteration, then the check. */
function work(n: number): Said {
  if (n % 2 === 1) return { text: `Turn ${n}: ${HOSTILE}`, tokens: [800, 60] }
  const content = `${HOSTILE}\nexport const answer = ${n}\n`
  return {
    calls: [{ tool: 'write_file', args: { path: `src/file-${n}.js`, content } }],
    tokens: [1_200, 140],
  }
}

async function openService(
  t: TestContext,
  options: Partial<RunServiceOptions> = {},
): Promise<string> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-peer-')))
  const service = await createRunService({
    engine: {
      store: new MemoryStore(),
      roots: [root],
      cwdPolicy: 'allow',
      providers: [testProvider((_, n) => work(n)), repairModel()],
      defaultModel: 'builtin:repair',
    },
    ...options,
  })
  const server = createServer((request, response) => {
    if (options.basePath !== undefined && request.url === '/')
      response.end('<!doctype html><p>the host')
    else service.handler(request, response)
  })
  service.attach(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    await service.close({ graceMs: 0 })
    server.closeAllConnections()
    server.close()
    rmSync(root, { recursive: true, force: true })
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A page that fails the test on any warning or error of the browser. */
async function openPage(
  t: TestContext,
  url: string,
  context: BrowserContext = desktop,
): Promise<Page> {
  const page = await context.newPage()
  // The service is closed before the page, which may be reading the list at that moment.
  const complaints = complaintsOf(page, /status of (401|404|409|422|503)|net::ERR_CONNECTION/)
  page.on('dialog', (dialog) => void dialog.accept())
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

async function startRun(
  page: Page,
  goal: string,
  fill: (page: Page) => Promise<void> = async () => {},
): Promise<void> {
  await page.getByRole('link', { name: 'New run' }).first().click()
  await page.getByLabel('Goal', { exact: true }).fill(goal)
  await page.getByLabel('Model', { exact: true }).selectOption('test:m')
  await fill(page)
  await page.getByRole('button', { name: 'Start run' }).click()
  await page.getByRole('heading', { level: 1, name: goal }).waitFor()
}

test('a run is started from the form and followed live to its end', async (t) => {
  const page = await openPage(t, `${await openService(t)}/`)
  await startRun(page, 'shell: test -e src/file-2.js')
  await page.getByText('Achieved: the goal was met').waitFor()
  await page.locator('.run-head .chip.achieved').waitFor()
  await page.waitForFunction(() => document.title.startsWith('Achieved · '))
  await page.getByText('is a program, not a language model').waitFor()
  await page.getByText('Changed files (2)').waitFor()
  const diff = page.locator('.diff .line.plus').filter({ hasText: 'answer = 2' })
  await diff.first().waitFor()
  assert.match(
    String(await page.locator('.meters').textContent()),
    /Iterations2 of 20.*Tokens4,400.*Cost\$/,
  )
  await page.locator('nav .chip.achieved').waitFor()
  await shoot(page, 'achieved-1440-light')
})

test('one gate is approved with feedback and the next one aborts the run', async (t) => {
  const page = await openPage(t, `${await openService(t)}/`)
  await startRun(page, 'shell: test -e never', async () =>
    page.getByLabel('Ask me after each iteration').check(),
  )
  const gate = page.locator('section.gate')
  await gate.getByRole('heading', { name: 'Iteration 1 is done. Continue?' }).waitFor()
  await page.locator('.run-head .chip').getByText('Waiting for you', { exact: true }).waitFor()
  await shoot(page, 'gate-1440-light')
  await gate.getByLabel('Feedback for the model').fill('look at the other file')
  // A click that waits for the button scrolls the page meanwhile, and what was scrolled to is read.
  await page.locator('section.gate[data-ready]').waitFor()
  await gate.getByRole('button', { name: 'Approve and continue' }).click()
  await gate.getByRole('heading', { name: 'Iteration 2 is done. Continue?' }).waitFor()
  await page.waitForFunction(() => document.activeElement?.id === 'run-title')
  // The gate comes with the run's details, and what the timeline has with its events.
  await page.getByRole('button', { name: 'Iteration 2', exact: true }).waitFor()
  // The feedback is in the iteration that was answered, which is folded by now: but in Firefox,
  // whose driver has scrolled to the button, so that it counts as read.
  if (!inFirefox) assert.equal(await page.getByText('look at the other file').count(), 0)
  await page.getByLabel('Find in this run').fill('other FILE')
  await page.getByText('look at the other file').waitFor()
  await page.getByText('1 entry found').waitFor()
  await page.getByLabel('Find in this run').fill('')
  await gate.getByRole('button', { name: 'Abort run' }).click()
  await page.locator('.run-head .chip.aborted').waitFor()
  // Entries far from the window are not drawn.
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight))
  await page.getByText('Aborted: stopped by a human at a gate').waitFor()
  await gate.waitFor({ state: 'hidden' })
  await page.getByRole('button', { name: 'Run again' }).waitFor()
})

test('a gate for tool calls shows what would run, and calls can be rejected', async (t) => {
  const page = await openPage(t, `${await openService(t)}/`)
  await startRun(page, 'shell: test -e never', async () => {
    await page.getByText('Checks, approvals and budgets').click()
    await page.getByLabel('Approve individual tool calls').selectOption('writes')
  })
  const gate = page.locator('section.gate')
  await gate.getByRole('heading', { name: 'May these tools run?' }).waitFor()
  const calls = String(await gate.locator('.gated').textContent())
  assert.match(calls, /Writes src\/file-0\.js.*write_file/s)
  await gate.getByRole('button', { name: 'Reject calls' }).click()
  // The run goes on to its next gate, and what is far from the window is not drawn.
  await page.getByLabel('Find in this run').fill('refused')
  await page.locator('article').getByText('refused').first().waitFor()
  await page.getByRole('button', { name: 'Abort', exact: true }).click()
  await page.locator('.run-head .chip.aborted').waitFor()
})

test('a command or path at a gate cannot be disguised as another one', async (t) => {
  const disguised = testProvider(() => ({
    calls: [
      { tool: 'write_file', args: { path: 'photo\u202egpj.exe', content: '-- a\nb' } },
      { tool: 'bash', args: { command: 'curl evil.example # \u202e gnitset' } },
    ],
  }))
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-peer-')))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  const engine = { store: new MemoryStore(), roots: [root], providers: [disguised] }
  const page = await openPage(t, `${await openService(t, { engine })}/`)
  await startRun(page, 'shell: test -e never', async () => {
    await page.getByText('Checks, approvals and budgets').click()
    await page.getByLabel('Approve individual tool calls').selectOption('writes')
  })
  const gate = page.locator('section.gate')
  await gate.getByRole('heading', { name: 'May these tools run?' }).waitFor()
  const unseen = /[\u202a-\u202e\u2066-\u2069\u200b-\u200f]/
  assert.match(
    String(await gate.textContent()),
    /photo\\u202egpj\.exe.*evil\.example # \\u202e gnitset/s,
  )
  assert.doesNotMatch(String(await page.locator('main').textContent()), unseen)
  await gate.getByRole('button', { name: 'Approve calls' }).click()
  await page.getByText('Changed files (1)').waitFor()
  assert.doesNotMatch(String(await page.locator('main').textContent()), unseen)
  await page.getByRole('button', { name: 'Abort', exact: true }).click()
  await page.locator('.run-head .chip.aborted').waitFor()
})

test('a removed line that begins with two dashes is not shown as the head of a diff', async (t) => {
  const worker = testProvider((_, n) => ({
    calls: [
      {
        tool: 'write_file',
        args: { path: 'a.sql', content: n === 0 ? '-- keep\nselect 1\n' : 'select 1\n' },
      },
    ],
  }))
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-peer-')))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  const engine = { store: new MemoryStore(), roots: [root], providers: [worker] }
  const page = await openPage(t, `${await openService(t, { engine })}/`)
  await startRun(page, 'shell: grep -q never a.sql', async () =>
    fillNumber(page.getByLabel('Max iterations'), 2),
  )
  await page.locator('.run-head .chip:not(.running):not(.pending)').waitFor()
  await page.getByRole('button', { name: 'Unfold all' }).click()
  await page.locator('.diff .line.minus', { hasText: '--- keep' }).waitFor()
  assert.equal(await page.locator('.diff .line.file', { hasText: '--- keep' }).count(), 0)
})

test('a waiting run is listed on the first page, however many runs came after it', async (t) => {
  const base = await openService(t)
  const post = async (body: object): Promise<string> => {
    const headers = { 'content-type': 'application/json' }
    const made = await fetch(`${base}/api/runs`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    assert.equal(made.status, 201)
    return ((await made.json()) as { run_id: string }).run_id
  }
  const waiting = await post({
    goal: 'shell: test -e never',
    model_name: 'test:m',
    hitl_enabled: true,
  })
  for (let i = 0; i < 55; i++) await post({ goal: 'shell: true', model_name: 'test:m' })
  const page = await openPage(t, `${base}/`)
  const row = page.locator('.group', { hasText: 'Needs you' }).locator('.run-row')
  await row.waitFor()
  assert.equal(await row.count(), 1)
  assert.match(String(await row.getAttribute('href')), new RegExp(waiting))
  const gate = (
    (await (await fetch(`${base}/api/runs/${waiting}`)).json()) as { gate: { gate_id: string } }
  ).gate
  await fetch(`${base}/api/runs/${waiting}/resume`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ decision: 'abort', gate_id: gate.gate_id }),
  })
  await row.waitFor({ state: 'detached' })
})

test('a run that waits for another one in its folder says why', async (t) => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-peer-')))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  const engine = {
    store: new MemoryStore(),
    roots: [root],
    providers: [testProvider((_, n) => work(n))],
  }
  const page = await openPage(t, `${await openService(t, { engine })}/`)
  await startRun(page, 'shell: test -e never', async () =>
    page.getByLabel('Ask me after each iteration').check(),
  )
  await page.locator('section.gate').getByRole('button', { name: 'Abort run' }).waitFor()
  const first = page.url()
  await startRun(page, 'shell: test -e nor-this')
  await page.getByText('Queued: waiting').waitFor()
  await page.goto(first)
  await page.locator('section.gate').getByRole('button', { name: 'Abort run' }).click()
  await page.getByText('Aborted: stopped by a human at a gate').waitFor()
  await page.locator('nav .run', { hasText: 'nor-this' }).click()
  await page.getByRole('heading', { level: 1, name: 'nor-this' }).waitFor()
  await page.locator('.run-head .chip:not(.pending)').waitFor()
  await page.getByText('Queued: waiting').waitFor({ state: 'hidden' })
})

test('a lost response about the end of a run is requested again', async (t) => {
  const page = await openPage(t, `${await openService(t)}/`)
  let lost = 0
  await page.route(/\/api\/runs\/[0-9a-f-]{36}$/, async (route) => {
    const ended = await page.getByText('Achieved: the goal was met').count()
    if (ended === 0 || lost > 1) return route.continue()
    lost += 1
    await route.fulfill({
      status: 503,
      contentType: 'application/problem+json',
      body: '{"status":503,"detail":"busy"}',
    })
  })
  await startRun(page, 'shell: test -e src/file-2.js')
  await page.locator('.run-head .chip.achieved').waitFor()
})

test('abort, run again and delete work', async (t) => {
  const page = await openPage(t, `${await openService(t)}/`)
  await startRun(page, 'shell: test -e never', async () =>
    page.getByLabel('Ask me after each iteration').check(),
  )
  await page.locator('section.gate').getByRole('button', { name: 'Approve and continue' }).waitFor()
  const first = page.url()
  await page.getByRole('button', { name: 'Abort', exact: true }).click()
  await page.getByText('Aborted: stopped before it was done').waitFor()
  await page.getByRole('button', { name: 'Run again' }).click()
  await page.getByRole('link', { name: 'an earlier run' }).waitFor()
  assert.notEqual(page.url(), first)
  await page.getByRole('button', { name: 'Abort', exact: true }).click()
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('heading', { name: 'Runs' }).waitFor()
  await page.locator('nav .run').nth(1).waitFor({ state: 'detached' })
  assert.equal(await page.locator('nav .run').count(), 1)
})

test('hostile text is shown and never becomes markup', async (t) => {
  const page = await openPage(t, `${await openService(t)}/`)
  await startRun(page, `shell: test -e "${HOSTILE}"`, async () =>
    fillNumber(page.getByLabel('Max iterations'), 1),
  )
  await page.getByText('Failed: out of iterations').waitFor()
  assert.doesNotMatch(await page.title(), /^owned/)
  assert.equal(await page.locator('main img, main script, nav img, nav script').count(), 0)
  assert.ok((await page.getByText(HOSTILE).count()) >= 2)
  await shoot(page, 'hostile-1440-light')
})

test('an error of the service is shown beside its field', async (t) => {
  const page = await openPage(t, `${await openService(t)}/`)
  await page.goto(`${page.url()}#/new`)
  await page.getByLabel('Goal', { exact: true }).fill('make it nice')
  await page.getByLabel('Working directory').fill('/nowhere/at/all')
  await page.getByRole('button', { name: 'Start run' }).click()
  const cwd = page.locator('#cwd[aria-invalid=true]')
  await cwd.waitFor()
  assert.notEqual(await page.locator('#cwd-error').textContent(), '')
  await page.getByLabel('Working directory').fill('')
  await page.getByRole('button', { name: 'Start run' }).click()
  await page.locator('#goal[aria-invalid=true]').waitFor()
  assert.match(String(await page.locator('#goal-error').textContent()), /check|judge/)
  assert.equal(await page.locator('#cwd[aria-invalid]').count(), 0)
})

test('a 401 asks for a key, which serves all calls of the tab until it is forgotten', async (t) => {
  const key = 'a-key-for-the-page-0001'
  const page = await openPage(
    t,
    `${await openService(t, { authorize: bearerKeys({ ann: key }) })}/`,
  )
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('API key').fill('wrong')
  await dialog.getByRole('button', { name: 'Use key' }).click()
  await dialog.getByText('The key was not accepted.').waitFor()
  await dialog.getByLabel('API key').fill(key)
  await dialog.getByRole('button', { name: 'Use key' }).click()
  await page.getByText('No runs yet.').waitFor()
  await startRun(page, 'shell: test -e never', async () =>
    page.getByLabel('Ask me after each iteration').check(),
  )
  await page.locator('.stream.live').waitFor()
  await page.locator('section.gate').getByRole('button', { name: 'Approve and continue' }).waitFor()
  await page.reload()
  await page.locator('.stream.live').waitFor()
  assert.equal(await page.evaluate(() => document.cookie + JSON.stringify(localStorage)), '{}')
  await page.getByRole('button', { name: 'Forget key' }).click()
  await dialog.getByLabel('API key').waitFor()
})

test('a link with the key opens the page, and leaves the key in the tab only', async (t) => {
  const key = 'a-key-for-the-page_0001.~+/=='
  const check = bearerKeys({ ann: key })
  const sent: string[] = []
  const url = await openService(t, {
    authorize: (request) => {
      sent.push(JSON.stringify(request.headers))
      return check(request)
    },
  })
  const context = await openBrowser(t)
  const page = await openPage(t, `${url}/api/openapi.json`, context)
  const requests: string[] = []
  page.on('request', (request) => {
    requests.push(`${request.url()} ${request.headers()['referer'] ?? ''}`)
  })
  const addresses: string[] = []
  page.on('framenavigated', (frame) => addresses.push(frame.url()))
  await page.goto(`${url}/#key=${key}`)
  await page.getByText('No runs yet.').waitFor()
  assert.equal(page.url(), `${url}/#/`)
  assert.equal(await page.getByRole('dialog').count(), 0)
  // Fragments are routes too.
  await page.getByRole('link', { name: 'New run' }).first().click()
  await page.getByLabel('Goal', { exact: true }).waitFor()
  await page.reload()
  await page.getByLabel('Goal', { exact: true }).waitFor()
  await page.getByText('No runs yet.').waitFor()
  for (const [way, at] of [
    ['back', `${url}/#/`],
    ['back', `${url}/api/openapi.json`],
    ['forward', `${url}/#/`],
    ['forward', `${url}/#/new`],
  ] as const) {
    await goBy(page, way === 'back' ? -1 : 1)
    await page.waitForURL(at)
  }
  await startRun(page, 'shell: test -e never', async () =>
    page.getByLabel('Ask me after each iteration').check(),
  )
  await page.locator('.stream.live').waitFor()
  assert.ok(requests.length > 10)
  assert.deepEqual(requests.filter((one) => one.includes('key=') || one.includes(key)), [])
  // The services' side has it in the header for it, and nowhere else.
  const named = sent.filter((headers) => headers.includes(key))
  assert.ok(named.length > 0)
  for (const one of named) {
    const { authorization, ...others } = JSON.parse(one) as Record<string, string>
    assert.equal(authorization, `Bearer ${key}`)
    assert.ok(!JSON.stringify(others).includes(key))
  }
  const kept = await page.evaluate(() => [
    document.cookie + JSON.stringify(localStorage) + document.documentElement.outerHTML,
    JSON.stringify(history.state),
  ])
  assert.ok(!kept.join().includes(key))
  // Only the navigation itself had it.
  assert.equal(addresses.filter((address) => address.includes(key)).length, 1)
})

test('a link with a wrong key asks for a key, also in a tab that has one', async (t) => {
  const key = 'a-key-for-the-page-0001'
  const url = await openService(t, { authorize: bearerKeys({ ann: key }) })
  const page = await openPage(t, `${url}/#key=wrong-key-for-the-page`, await openBrowser(t))
  const dialog = page.getByRole('dialog')
  await dialog.getByText('The key was not accepted.').waitFor()
  assert.equal(page.url(), `${url}/#/`)
  // The right link, opened in the same tab.
  await page.evaluate((hash) => void (location.hash = hash), `#key=${key}`)
  await page.getByText('No runs yet.').waitFor()
  assert.equal(page.url(), `${url}/#/`)
  assert.equal(await dialog.count(), 0)
  for (const hash of ['#key=', '#key=%0d%0ax', '#key=schl\u00fcssel']) {
    // The page begins anew; until then, the dialog of the link before is open.
    const loaded = page.waitForEvent('load')
    await page.evaluate((hash) => {
      sessionStorage.clear()
      location.hash = hash
    }, hash)
    await loaded
    await dialog.getByLabel('API key').waitFor()
    assert.equal(page.url(), `${url}/#/`)
    assert.equal(await dialog.getByText('The key was not accepted.').count(), 0)
  }
})

test('a link with a valid key of somebody else does not replace the key of a tab', async (t) => {
  const [own, other] = ['a-key-for-the-page-0001', 'a-key-of-an-attacker-01'] as const
  const url = await openService(t, {
    authorize: bearerKeys({ ann: own, eve: { key: other, tenant: 'eve' } }),
  })
  const page = await openPage(t, `${url}/#key=${own}`, await openBrowser(t))
  await page.getByText('No runs yet.').waitFor()
  const keys = new Set<string | undefined>()
  page.on('request', (request) => keys.add(request.headers()['authorization']))
  const open = [
    () => page.evaluate((hash) => void (location.hash = hash), `#key=${other}`),
    () => page.goto('about:blank').then(() => page.goto(`${url}/#key=${other}`)),
  ]
  for (const openLink of open) {
    // The page that was open before has the same address, and lists its runs as well.
    const loaded = page.waitForEvent('load')
    await openLink()
    await loaded
    await page.waitForURL(`${url}/#/`)
    await page.getByText('No runs yet.').waitFor()
  }
  assert.ok(keys.has(`Bearer ${own}`))
  assert.ok(!keys.has(`Bearer ${other}`))
})

test('the user is asked once for a revoked key, and a new one resumes the stream', async (t) => {
  const [first, second] = ['a-key-for-the-page-0001', 'a-key-for-the-page-0002'] as const
  let check = bearerKeys({ ann: first })
  const url = await openService(t, { authorize: (request) => check(request) })
  const page = await openPage(t, 'about:blank')
  let drop = async (): Promise<void> => {}
  await page.routeWebSocket(/\/api\/ws\//, (socket) => {
    socket.connectToServer()
    drop = () => socket.close({ code: 3001, reason: 'the cable' })
  })
  await page.goto(url)
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('API key').fill(first)
  await dialog.getByRole('button', { name: 'Use key' }).click()
  await startRun(page, 'shell: test -e never', async () =>
    page.getByLabel('Ask me after each iteration').check(),
  )
  const gate = page.locator('section.gate')
  await gate.getByRole('heading', { name: 'Iteration 1 is done. Continue?' }).waitFor()
  await page.locator('.stream.live').waitFor()
  check = bearerKeys({ ann: second })
  await drop()
  await dialog.getByText('The key was not accepted.').waitFor()
  await page.locator('.stream.waiting, .stream.connecting').waitFor()
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await page.locator('.stream.locked').waitFor()
  assert.equal(await dialog.count(), 0)
  await gate.getByRole('button', { name: 'Approve and continue' }).click()
  await dialog.getByLabel('API key').fill(second)
  await dialog.getByRole('button', { name: 'Use key' }).click()
  await gate.getByRole('heading', { name: 'Iteration 2 is done. Continue?' }).waitFor()
  await page.locator('.stream.live').waitFor()
})

test('a late refusal of an old key does not take the new one away', async (t) => {
  const key = 'a-key-for-the-page-0001'
  const url = await openService(t, { authorize: bearerKeys({ ann: key }) })
  const context = await openBrowser(t)
  let letGo = (): void => {}
  const held = new Promise<void>((resolve) => (letGo = resolve))
  // The first response about models is a late refusal.
  await context.route(/\/api\/models$/, async (route) => {
    if (route.request().headers()['authorization'] === undefined) await held
    await route.continue()
  })
  const page = await openPage(t, `${url}/#/new`, context)
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('API key').fill(key)
  await dialog.getByRole('button', { name: 'Use key' }).click()
  await page.getByText('No runs yet.').waitFor()
  const again = page.waitForResponse(
    (response) => response.url().endsWith('/api/models') && response.ok(),
  )
  letGo()
  await again
  assert.equal(await dialog.count(), 0)
})

test('a call that is answered after the user has declined does not ask again', async (t) => {
  const key = 'a-key-for-the-page-0001'
  const url = await openService(t, { authorize: bearerKeys({ ann: key }) })
  const context = await openBrowser(t)
  let letGo = (): void => {}
  const held = new Promise<void>((resolve) => (letGo = resolve))
  await context.route(/\/api\/runs\?limit/, async (route) => {
    if (route.request().headers()['authorization'] !== undefined) return route.continue()
    const response = await route.fetch()
    await held
    await route.fulfill({ response })
  })
  const page = await openPage(t, `${url}/#/new`, context)
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await page.locator('form .error-text', { hasText: 'key' }).first().waitFor()
  letGo()
  await page.locator('#service:not(:empty), dialog').first().waitFor()
  assert.equal(await dialog.count(), 0)
  // What the user does asks again.
  await page.getByRole('button', { name: 'Start run' }).click()
  await dialog.getByLabel('API key').fill(key)
  await dialog.getByRole('button', { name: 'Use key' }).click()
  await page.getByText('No runs yet.').waitFor()
})

/** Follows the calls of a page from now on; the function resolves once none of them is open. */
function openCalls(context: BrowserContext): () => Promise<void> {
  const open = new Set<Request>()
  let settled = (): void => {}
  const end = (request: Request): void => {
    open.delete(request)
    if (open.size === 0) settled()
  }
  context.on('request', (request) => void open.add(request))
  context.on('requestfinished', end)
  context.on('requestfailed', end)
  return () => new Promise((resolve) => (open.size === 0 ? resolve() : (settled = resolve)))
}

test('what the page reads by itself does not ask a user who has declined', async (t) => {
  let keys = { ann: 'a-key-for-the-page-0001' }
  const url = await openService(t, { authorize: (request) => bearerKeys(keys)(request) })
  const context = await openBrowser(t)
  await context.clock.install()
  const allAnswered = openCalls(context)
  const page = await openPage(t, `${url}/#/new`, context)
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('API key').fill(keys.ann)
  await dialog.getByRole('button', { name: 'Use key' }).click()
  await page.getByText('No runs yet.').waitFor()
  // The form has read what it offers, and no timer lets the page read anything by itself.
  await context.clock.pauseAt(await page.evaluate(() => Date.now() + 1_000))
  await allAnswered()
  keys = { ann: 'a-key-for-the-page-0002' }
  await page.getByRole('button', { name: 'Start run' }).click()
  await dialog.getByText('The key was not accepted.').waitFor()
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  // The timer of the list began before the key was revoked.
  for (const pause of [5_000, 60_000]) {
    const answered = page.waitForResponse(/\/api\/runs\?limit/)
    // What was said of the answer before.
    await page.locator('#service').evaluate((element) => element.replaceChildren())
    await context.clock.runFor(pause)
    assert.equal((await answered).status(), 401)
    await page.locator('#service:not(:empty), dialog').first().waitFor()
    assert.equal(await dialog.count(), 0)
  }
})

test('a lost connection is reopened without loss or repetition of events', async (t) => {
  const page = await openPage(t, `${await openService(t)}/`)
  await page.routeWebSocket(/\/api\/ws\//, (socket) => {
    const server = socket.connectToServer()
    let count = 0
    server.onMessage((message) => {
      socket.send(message)
      // Every connection breaks after a few events.
      if (++count === 3) void socket.close({ code: 3001, reason: 'the cable' })
    })
  })
  await startRun(page, 'shell: test -e src/file-4.js')
  await page.getByText('Achieved: the goal was met').waitFor()
  await page.getByRole('button', { name: 'Unfold all' }).click()
  const shown = await page
    .locator('[data-seq]')
    .evaluateAll((entries) => entries.map((entry) => Number((entry as HTMLElement).dataset['seq'])))
  assert.deepEqual(
    shown,
    [...new Set(shown)].sort((a, b) => a - b),
  )
  assert.equal(await page.locator('.entry.tool').count(), 3)
})

test('everything can be done by keyboard, and the landmarks are there', async (t) => {
  const page = await openPage(t, `${await openService(t)}/`)
  for (const role of ['banner', 'navigation', 'main'] as const)
    assert.equal(await page.getByRole(role).count(), 1)
  await page.keyboard.press('Tab')
  assert.equal(
    await page.evaluate(() => document.activeElement?.textContent),
    'Skip to content',
  )
  const tabTo = async (name: string): Promise<void> => {
    for (let i = 0; i < 60; i++) {
      const text = await page.evaluate(() => {
        const element = document.activeElement
        if (element instanceof HTMLAnchorElement || element instanceof HTMLButtonElement)
          return element.textContent ?? ''
        return (element as HTMLInputElement | null)?.labels?.[0]?.textContent ?? ''
      })
      if (text.includes(name)) return
      await page.keyboard.press('Tab')
    }
    assert.fail(`${name} is not to be reached`)
  }
  await tabTo('New run')
  await page.keyboard.press('Enter')
  await page.getByLabel('Goal', { exact: true }).waitFor()
  await tabTo('Goal')
  await page.keyboard.type('shell: test -e never')
  await page.locator('#model_name option[value="test:m"]').waitFor({ state: 'attached' })
  await tabTo('Model')
  await page.keyboard.press('ArrowDown')
  assert.equal(await page.locator('#model_name').inputValue(), 'test:m')
  await tabTo('Ask me after')
  await page.keyboard.press('Space')
  await tabTo('Start run')
  await page.keyboard.press('Enter')
  await page.locator('section.gate[data-ready]').waitFor()
  await tabTo('Abort run')
  await page.keyboard.press('Enter')
  await page.getByText('Aborted: stopped by a human at a gate').waitFor()
})

test('mounted under a prefix the page finds its files, the API and the stream', async (t) => {
  const origin = await openService(t, { basePath: '/team/agents' })
  const page = await openPage(t, `${origin}/team/agents`)
  assert.equal(page.url(), `${origin}/team/agents/`)
  await startRun(page, 'shell: test -e src/file-0.js')
  await page.getByText('Achieved: the goal was met').waitFor()
})

for (const [width, colorScheme] of pairs([360, 1440], ['light', 'dark'] as const)) {
  test(`at ${width} px in ${colorScheme} nothing is cut off and text is legible`, async (t) => {
    const context = await openBrowser(t, {
      viewport: { width, height: width === 360 ? 740 : 900 },
      colorScheme,
    })
    const page = await openPage(t, `${await openService(t)}/`, context)
    await startRun(page, `shell: test -e ${'never'.repeat(40)}`, async () =>
      page.getByLabel('Ask me after each iteration').check(),
    )
    await page
      .locator('section.gate')
      .getByRole('button', { name: 'Approve and continue' })
      .waitFor()
    await shoot(page, `run-${width}-${colorScheme}`)
    for (const hash of [new URL(page.url()).hash, '#/new', '#/']) {
      await page.goto(`${page.url().split('#')[0]}${hash}`)
      await page.locator(hash === '#/' ? 'nav .run' : 'main h1').waitFor()
      await shoot(
        page,
        `${hash === '#/' ? 'list' : hash === '#/new' ? 'form' : 'again'}-${width}-${colorScheme}`,
      )
      // Hovered buttons have other colors.
      const [primary] = await page.locator('main .primary:visible').all()
      await primary?.hover()
      // The compiler adds a helper to named functions that the page does not have.
      await page.evaluate('globalThis.__name = (value) => value')
      const { wide, faint } = await page.evaluate(inspect)
      assert.equal(wide, 0, `${hash} scrolls sideways by ${wide} px`)
      assert.deepEqual(faint, [], `${hash} has text of too little contrast`)
    }
  })
}

/** Runs in the page: its sideways overflow, and texts with a contrast below 4.5 (WCAG 1.4.3). */
function inspect(): { wide: number; faint: string[] } {
  // What is mixed, as below the pointer, is told in parts of one: color(srgb 0.5 0.5 0.5).
  const channels = (color: string): number[] => {
    const numbers = (color.match(/[\d.]+/g) ?? []).map(Number)
    if (!color.startsWith('color(')) return numbers
    return numbers.map((part, i) => (i < 3 ? part * 255 : part))
  }
  const luminance = ([red = 0, green = 0, blue = 0]: number[]): number => {
    const [r = 0, g = 0, b = 0] = [red, green, blue].map((value) => {
      const part = value / 255
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const backdrop = (element: Element | null): number[] => {
    for (let at = element; at !== null; at = at.parentElement) {
      const color = channels(getComputedStyle(at).backgroundColor)
      if (color.length === 3 || (color[3] ?? 1) > 0.99) return color
    }
    return [255, 255, 255]
  }
  const faint: string[] = []
  for (const element of document.querySelectorAll<HTMLElement>('body *')) {
    const own = [...element.childNodes].some(
      (node) => node.nodeType === 3 && node.textContent?.trim() !== '',
    )
    if (!own || element.getClientRects().length === 0 || (element as HTMLButtonElement).disabled)
      continue
    const [front, back] = [
      luminance(channels(getComputedStyle(element).color)),
      luminance(backdrop(element)),
    ]
    const contrast = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05)
    if (contrast < 4.5)
      faint.push(`${contrast.toFixed(2)} ${element.className} ${element.textContent?.slice(0, 30)}`)
  }
  const { scrollWidth, clientWidth } = document.documentElement
  return { wide: scrollWidth - clientWidth, faint }
}

test('Chromium is where this file looks for it', () => {
  assert.ok(
    existsSync(EXECUTABLE),
    `there is no ${EXECUTABLE}: install Debian's chromium, or name another in CHROMIUM`,
  )
})
