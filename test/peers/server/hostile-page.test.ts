/**
 * Malicious web pages in a real browser: whatever the page's origin and way of calling, it starts,
 * reads, answers and aborts nothing. The same calls from the service's own page succeed, which
 * shows that the calls themselves are valid.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import type { BrowserContext, Frame, Page } from 'playwright-core'
import { MemoryStore } from 'runwright/agent'
import { createRunService, type Authorize } from 'runwright/server'
import { testProvider } from '../../helpers/engine.js'
import { openBrowser } from './browser.js'

const HTML = '<!doctype html><head></head><body>'
/** Part of the goal of the run that must stay unread. */
const SECRET = 'secret-7261'

let browser: BrowserContext
let closeBrowser = async (): Promise<void> => {}
before(async () => {
  browser = await openBrowser({ after: (hook) => (closeBrowser = hook) })
})
after(() => closeBrowser())

async function listen(t: TestContext, listener: RequestListener) {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { server, port: (server.address() as AddressInfo).port }
}

/** A service with one run waiting at its gate, and the requests that reach it. */
async function openVictim(t: TestContext, authorize?: Authorize) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-hostile-')))
  const service = await createRunService({
    engine: {
      store: new MemoryStore(),
      roots: [root],
      cwdPolicy: 'allow',
      providers: [testProvider(() => ({ text: SECRET }))],
      defaultModel: 'test:m',
    },
    ...(authorize === undefined ? {} : { authorize }),
  })
  const seen: string[] = []
  const { server, port } = await listen(t, (request, response) => {
    if (request.url === '/evil')
      return void response.setHeader('Content-Type', 'text/html').end(HTML)
    response.on('finish', () => seen.push(`${request.method} ${response.statusCode}`))
    service.handler(request, response)
  })
  server.on('upgrade', () => seen.push('upgrade'))
  service.attach(server)
  t.after(async () => {
    await service.close({ graceMs: 0 })
    rmSync(root, { recursive: true, force: true })
  })
  const { details } = await service.engine.create(
    { goal: `shell: test -e ${SECRET}`, hitl_enabled: true },
    { caller: { owner: { id: 'ann', tenant: null } } },
  )
  for await (const batch of await service.engine.subscribe(details.run_id)) {
    if (batch.some(({ kind }) => kind === 'human_check_required')) break
  }
  return { service, port, seen, runId: details.run_id }
}

interface Attack {
  readonly target: string
  readonly runId: string
  /** A server of the attacker that redirects with 307, which keeps method and body; or null. */
  readonly bounce: string | null
}

/** Runs in the page: calls the service in every way a page can; returns all that it learns. */
async function attack({ target, runId, bounce }: Attack): Promise<string[]> {
  const learnt: string[] = []
  const run = `${target}/api/runs/${runId}`
  const attempt = async (name: string, act: () => Promise<unknown>): Promise<void> => {
    try {
      learnt.push(`${name}: ${String(await act())}`)
    } catch (error) {
      learnt.push(`${name}: failed ${String(error)}`)
    }
  }
  const tell = async (response: Response): Promise<string> =>
    `${response.type} ${response.status} ${await response.text()}`
  const bodies: [string, RequestInit][] = [
    ['json', { headers: { 'content-type': 'application/json' } }],
    ['text/plain', { headers: { 'content-type': 'text/plain' } }],
    ['urlencoded', { headers: { 'content-type': 'application/x-www-form-urlencoded' } }],
    ['no type', {}],
  ]
  const writes: [string, string, object | undefined][] = [
    ['start', `${target}/api/runs`, { goal: 'shell: touch owned' }],
    ['approve', `${run}/resume`, { decision: 'approve' }],
    ['abort at the gate', `${run}/resume`, { decision: 'abort' }],
    ['abort', `${run}/abort`, {}],
    ['abort without a body', `${run}/abort`, undefined],
    ['retry', `${run}/retry`, undefined],
  ]
  for (const mode of ['cors', 'no-cors'] as const) {
    for (const credentials of ['include', 'omit'] as const) {
      for (const path of ['', '/events', '/events?after=0', '/nothing']) {
        const init: RequestInit = { mode, credentials }
        await attempt(`${mode} GET ${path}`, async () => tell(await fetch(`${run}${path}`, init)))
      }
      await attempt(`${mode} list`, async () =>
        tell(await fetch(`${target}/api/runs`, { mode, credentials })),
      )
      for (const [name, url, body] of writes) {
        for (const [type, init] of bodies) {
          const content = body === undefined ? null : new Blob([JSON.stringify(body)])
          const options = { ...init, method: 'POST', mode, credentials, body: content }
          await attempt(`${mode} ${name} ${type}`, async () => tell(await fetch(url, options)))
        }
      }
    }
  }
  for (const [name, url, body] of writes) {
    const content = body === undefined ? null : new Blob([JSON.stringify(body)])
    const init: RequestInit = { method: 'POST', mode: 'no-cors', body: content }
    for (const options of [
      { ...init, keepalive: true },
      { ...init, referrerPolicy: 'no-referrer' } as const,
      { ...init, referrer: '' },
    ]) {
      await attempt(`${name} ${Object.keys(options).join()}`, async () =>
        tell(await fetch(url, options)),
      )
    }
    await attempt(`${name} beacon`, async () => navigator.sendBeacon(url, content))
    if (bounce === null) continue
    const bounced = `${bounce}?${encodeURIComponent(url)}`
    await attempt(`${name} redirected`, async () => tell(await fetch(bounced, init)))
  }
  await attempt('DELETE', async () => tell(await fetch(run, { method: 'DELETE' })))
  const override = { method: 'POST', headers: { 'x-http-method-override': 'DELETE' } }
  await attempt('override', async () => tell(await fetch(run, override)))
  for (const type of ['text/plain', 'application/json']) {
    const body = new Blob(['{"goal":"shell: touch owned"}'], { type })
    await attempt(`beacon ${type}`, async () => navigator.sendBeacon(`${target}/api/runs`, body))
  }
  const socket = (protocols: string[]) => async () =>
    new Promise((resolve) => {
      const one = new WebSocket(`${target.replace('http', 'ws')}/api/ws/${runId}`, protocols)
      one.onmessage = ({ data }) => resolve(data)
      one.onclose = ({ code }) => resolve(`closed ${code}`)
    })
  await attempt('WebSocket', socket([]))
  await attempt('WebSocket with its protocol', socket(['runwright.v1']))
  for (const withCredentials of [true, false]) {
    await attempt('EventSource', async () =>
      new Promise((resolve) => {
        const source = new EventSource(`${run}/events`, { withCredentials })
        source.onmessage = ({ data }) => {
          source.close()
          resolve(data)
        }
        source.onerror = () => {
          source.close()
          resolve('error')
        }
      }),
    )
  }
  const include = (element: HTMLElement, source: string) => async () =>
    new Promise((resolve) => {
      element.onload = () => resolve('loaded')
      element.onerror = () => resolve('error')
      element.setAttribute(element instanceof HTMLLinkElement ? 'href' : 'src', source)
      document.head.append(element)
    })
  for (const source of [
    run,
    `${target}/api/runs`,
    `${run}/events`,
    `${run}/abort`,
    `${run}/retry`,
    `${target}/runwright/app.js`,
  ]) {
    const style = Object.assign(document.createElement('link'), { rel: 'stylesheet' })
    await attempt('script', include(document.createElement('script'), source))
    const module = Object.assign(document.createElement('script'), { type: 'module' })
    await attempt('module', include(module, source))
    await attempt('stylesheet', include(style, source))
    await attempt('image', include(document.createElement('img'), source))
  }
  return learnt
}

/** Runs in the page: posts forms of every kind into a frame of its own. */
async function postForms({ target, runId }: Attack): Promise<number> {
  const frame = Object.assign(document.createElement('iframe'), { name: 'sink' })
  document.body.append(frame)
  let posted = 0
  const kinds = ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']
  for (const enctype of kinds) {
    for (const [path, json] of [
      ['api/runs', '{"goal":"shell: touch owned","metadata":{"x":"'],
      [`api/runs/${runId}/resume`, '{"decision":"approve","feedback":"'],
      [`api/runs/${runId}/abort`, ''],
      [`api/runs/${runId}/retry`, ''],
    ]) {
      const form = Object.assign(document.createElement('form'), {
        method: 'post',
        enctype,
        target: 'sink',
        action: `${target}/${path}`,
      })
      // As text/plain this is JSON: {"goal":"…","metadata":{"x":"="}}
      const end = path === 'api/runs' ? '"}}' : '"}'
      if (json !== '') {
        form.append(Object.assign(document.createElement('input'), { name: json, value: end }))
      }
      document.body.append(form)
      const loaded = new Promise((resolve) =>
        frame.addEventListener('load', resolve, { once: true }),
      )
      form.submit()
      await loaded
      posted++
    }
  }
  return posted
}

/** Scripts for the page are plain functions, to which the compiler of this file adds a helper. */
const shim = 'globalThis.__name = (value) => value'

async function attackFrom(where: Page | Frame, how: Attack): Promise<string[]> {
  await where.evaluate(shim)
  return await where.evaluate(attack, how)
}

const COOKIE = 'session=0123456789abcdef'
const byCookie: Authorize = ({ headers }) => (headers.cookie === COOKIE ? { id: 'ann' } : null)

/** Origins of a page. Each opens a page of the attacker and returns the frame that runs it. */
const ORIGINS: Readonly<Record<string, (page: Page, evil: number) => Promise<Page | Frame>>> = {
  'another site': async (page, evil) => {
    await page.goto(`http://evil.test:${evil}/`)
    return page
  },
  'localhost on another port': async (page, evil) => {
    await page.goto(`http://localhost:${evil}/`)
    return page
  },
  'the same host on another port': async (page, evil) => {
    await page.goto(`http://127.0.0.1:${evil}/`)
    return page
  },
  'a sandboxed frame, whose origin is null': async (page, evil) => {
    await page.goto(`http://127.0.0.1:${evil}/sandbox`)
    return page.frames()[1]!
  },
  'a data: URL, whose origin is null': async (page, evil) => {
    await page.goto(`http://127.0.0.1:${evil}/data`)
    return page.frames()[1]!
  },
}

const evilPages: RequestListener = (request, response) => {
  const [path, to = ''] = (request.url ?? '').split('?')
  if (path === '/307') {
    // Lets every page follow.
    response.setHeader('Access-Control-Allow-Origin', '*')
    return void response.writeHead(307, { Location: decodeURIComponent(to) }).end()
  }
  const inner =
    request.url === '/sandbox'
      ? '<iframe sandbox="allow-scripts allow-forms" srcdoc="<!doctype html><head></head><body>"></iframe>'
      : ''
  const data =
    request.url === '/data'
      ? `<iframe src="data:text/html,${encodeURIComponent(HTML)}"></iframe>`
      : ''
  response.setHeader('Content-Type', 'text/html').end(`${HTML}${inner}${data}`)
}

for (const [guard, authorize] of [
  ['without authorize', undefined],
  ['with a cookie session', byCookie],
] as const) {
  for (const [name, open] of Object.entries(ORIGINS)) {
    test(`${guard} a page of ${name} starts, reads, answers and aborts nothing`, async (t) => {
      const victim = await openVictim(t, authorize)
      const evil = await listen(t, evilPages)
      const page = await browser.newPage()
      t.after(() => page.close())
      const target = `http://127.0.0.1:${victim.port}`
      const cookie = { url: target, name: 'session', value: COOKIE.split('=')[1]! }
      await browser.addCookies([cookie])
      const where = await open(page, evil.port)
      const bounce = `http://127.0.0.1:${evil.port}/307`
      const how: Attack = { target, runId: victim.runId, bounce }
      const learnt = await attackFrom(where, how)
      const posted = await where.evaluate(postForms, how)
      assert.equal(posted, 12)
      assert.deepEqual(
        learnt.filter(
          (line) => line.includes(SECRET) || /: (cors|basic|default) |: loaded/.test(line),
        ),
        [],
      )
      assert.ok(learnt.length > 100, `only ${learnt.length} attempts`)
      await assertUntouched(victim)
      // They were sent, and the service refused them.
      assert.ok(victim.seen.filter((one) => /^POST 4/.test(one)).length >= 60, victim.seen.join())
      assert.deepEqual(victim.seen.filter((one) => /^(POST|DELETE) 2/.test(one)), [])
    })
  }
}

async function assertUntouched(victim: Awaited<ReturnType<typeof openVictim>>): Promise<void> {
  const { runs } = await victim.service.engine.list({})
  assert.deepEqual(
    runs.map(({ run_id, status }) => [run_id, status]),
    [[victim.runId, 'awaiting_human']],
  )
}

test('a page whose name was rebound to this machine is refused by its Host', async (t) => {
  const victim = await openVictim(t)
  const page = await browser.newPage()
  t.after(() => page.close())
  const origin = `http://rebound.test:${victim.port}`
  // The page was loaded from elsewhere; now its name resolves to this machine.
  await page.goto(`${origin}/evil`)
  const how: Attack = { target: origin, runId: victim.runId, bounce: null }
  const learnt = await attackFrom(page, how)
  assert.deepEqual(
    learnt.filter((line) => line.includes(SECRET)),
    [],
  )
  const answers = learnt.filter((line) => /: basic /.test(line))
  assert.ok(answers.length > 40, `only ${answers.length} calls came through`)
  assert.deepEqual(
    answers.filter((line) => !/: basic (403 .*forbidden_host|404 .*"not_found")/.test(line)),
    [],
  )
  await assertUntouched(victim)
})

test('the dashboard cannot be framed, and a page that opens it gets no handle', async (t) => {
  const victim = await openVictim(t)
  const evil = await listen(t, (_request, response) => {
    const frame = `<iframe src="http://127.0.0.1:${victim.port}/"></iframe>`
    response.setHeader('Content-Type', 'text/html').end(`${HTML}${frame}`)
  })
  const page = await browser.newPage()
  t.after(() => page.close())
  await page.goto(`http://127.0.0.1:${evil.port}/`)
  assert.match(page.frames()[1]!.url(), /^chrome-error:/)
  const [popup] = await Promise.all([
    browser.waitForEvent('page'),
    page.evaluate((url) => void window.open(url), `http://127.0.0.1:${victim.port}/`),
  ])
  await popup.getByRole('link', { name: 'New run' }).first().waitFor()
  assert.equal(await popup.evaluate(() => window.opener), null)
  await popup.close()
})

test('the same calls from the page of the service itself succeed', async (t) => {
  const victim = await openVictim(t)
  const page = await browser.newPage()
  t.after(() => page.close())
  const target = `http://127.0.0.1:${victim.port}`
  await page.goto(`${target}/`)
  await page.locator('nav .chip.awaiting_human').waitFor()
  await page.evaluate(shim)
  const init = { method: 'POST', headers: { 'content-type': 'application/json' } }
  const statuses = await page.evaluate(
    async ({ target, runId, init }) => {
      const run = `${target}/api/runs/${runId}`
      const socket = await new Promise<string>((resolve) => {
        const one = new WebSocket(`${target.replace('http', 'ws')}/api/ws/${runId}`)
        one.onmessage = ({ data }) => {
          one.close()
          resolve(String(data))
        }
        one.onclose = ({ code }) => resolve(`closed ${code}`)
      })
      const posted = async (url: string, body: object): Promise<number> =>
        (await fetch(url, { ...init, body: JSON.stringify(body) })).status
      return [
        (await fetch(run)).status,
        socket.startsWith('{'),
        await posted(`${run}/resume`, { decision: 'abort' }),
        (await fetch(`${run}/retry`, { method: 'POST' })).status,
        await posted(`${target}/api/runs`, { goal: 'shell: true' }),
      ]
    },
    { target, runId: victim.runId, init },
  )
  assert.deepEqual(statuses, [200, true, 200, 201, 201])
})
