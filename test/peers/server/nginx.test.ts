/** The service behind a real nginx (Debian's package), set up as docs/mounting.md says. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { MemoryStore } from 'runwright/agent'
import { AsyncClient } from 'runwright/http'
import { bearerKeys, createRunService, type RunServiceOptions } from 'runwright/server'
import { WebSocket } from 'ws'
import { testProvider } from '../../helpers/engine.js'
import { freePort, missing, startProgram } from '../programs.js'
import { openChromium } from './chromium.js'
import { assertWhole, readSse, type Event } from './proof.js'

const KEY = 'a-key-behind-nginx-0001'
const skip = missing('nginx')

/** The nginx location in the guide. */
const guide = readFileSync(
  fileURLToPath(new URL('../../../docs/mounting.md', import.meta.url)),
  'utf8',
)
const LOCATION = /^```nginx\n(.*?)^```$/ms.exec(guide)?.[1] ?? ''

function scratch(t: TestContext): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-nginx-')))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Starts a service behind nginx; resolves to the ports of both. */
async function open(
  t: TestContext,
  options: Partial<RunServiceOptions>,
  location: string = LOCATION,
): Promise<{ port: number; upstream: number; origin: string }> {
  const service = await createRunService({
    basePath: '/agents',
    engine: {
      store: new MemoryStore(),
      roots: [scratch(t)],
      cwdPolicy: 'allow',
      providers: [testProvider(() => ({ text: 'nothing to do' }))],
      defaultModel: 'test:m',
    },
    ...options,
  })
  const server = createHttpServer(service.handler)
  service.attach(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    await service.close({ graceMs: 0 })
    server.closeAllConnections()
    server.close()
  })
  const upstream = (server.address() as AddressInfo).port
  const port = await startNginx(t, location.replaceAll('127.0.0.1:8000', `127.0.0.1:${upstream}`))
  return { port, upstream, origin: `http://127.0.0.1:${port}` }
}

async function startNginx(t: TestContext, location: string): Promise<number> {
  const folder = scratch(t)
  const port = await freePort()
  const config = join(folder, 'nginx.conf')
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  writeFileSync(
    config,
    `daemon off; master_process off; pid ${folder}/pid; error_log stderr;
    events {}
    http {
      access_log off;
      ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
      server {
        listen 127.0.0.1:${port};
        ${location}
        location / { return 200 'the host'; }
      }
    }`,
  )
  const child = await startProgram('nginx', ['-e', 'stderr', '-c', config], port)
  t.after(async () => {
    child.kill('SIGKILL')
    await once(child, 'close')
  })
  return port
}

function client(t: TestContext, origin: string, key?: string): AsyncClient {
  const one = new AsyncClient({
    baseUrl: origin,
    trustEnv: false,
    timeout: null, // the test has one
    headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
  })
  t.after(() => one.close())
  return one
}

test('the guide has a location for nginx', () => {
  assert.match(LOCATION, /^location \/agents\/ \{.*proxy_pass.*\}\n$/s)
})

test(
  'behind nginx REST, both streams and links work, and nothing is held back',
  { skip },
  async (t) => {
    const { origin, port } = await open(t, { authorize: bearerKeys({ ann: KEY }) })
    const http = client(t, origin, KEY)
    assert.equal((await http.get('/')).text, 'the host')
    const created = await http.post('/agents/api/runs', {
      json: { goal: 'shell: test -e never', hitl_enabled: true },
    })
    assert.equal(created.statusCode, 201, created.text)
    const { run_id: id } = created.json() as { run_id: string }
    assert.equal(created.headers.get('location'), `/agents/api/runs/${id}`)
    let waiting = 2
    const seen = ({ kind }: Event): void => {
      // A buffering proxy would withhold the gate event, and the run would never end.
      if (kind !== 'human_check_required' || --waiting > 0) return
      void http.post(`/agents/api/runs/${id}/resume`, { json: { decision: 'abort' } })
    }
    const protocols = ['runwright.v1', `bearer.${Buffer.from(KEY).toString('base64url')}`]
    const socket = new WebSocket(`ws://127.0.0.1:${port}/agents/api/ws/${id}`, protocols)
    const overSocket: Event[] = []
    socket.on('message', (data) => {
      const event = JSON.parse(String(data)) as Event
      overSocket.push(event)
      seen(event)
    })
    const closed = once(socket, 'close')
    const overSse = await readSse(http, `/agents/api/runs/${id}/events`, seen)
    assert.deepEqual((await closed)[0], 1000)
    assertWhole(overSse)
    assert.deepEqual(overSocket, overSse)
  },
)

test('behind nginx the dashboard starts a run in Chromium and follows it', { skip }, async (t) => {
  const { origin } = await open(t, { authorize: bearerKeys({ ann: KEY }) })
  const browser = await openChromium(t)
  const page = await browser.newPage()
  await page.goto(`${origin}/agents/`)
  await page.getByRole('dialog').getByLabel('API key').fill(KEY)
  await page.getByRole('button', { name: 'Use key' }).click()
  await page.getByRole('link', { name: 'New run' }).first().click()
  await page.getByLabel('Goal', { exact: true }).fill('shell: test -e never')
  await page.getByLabel('Ask me after each iteration').check()
  await page.getByRole('button', { name: 'Start run' }).click()
  await page.locator('.stream.live').waitFor()
  await page.getByRole('button', { name: 'Abort run' }).click()
  await page.getByText('Aborted: stopped by a human at a gate').waitFor()
})

const MARKS: Readonly<Record<string, string>> = {
  'as in the guide': LOCATION,
  'with X-Forwarded-For alone':
    'location /agents/ { proxy_pass http://127.0.0.1:8000; proxy_set_header X-Forwarded-For $remote_addr; }',
  'with Forwarded alone':
    'location /agents/ { proxy_pass http://127.0.0.1:8000; proxy_set_header Forwarded "for=$remote_addr"; }',
  'with Via alone':
    'location /agents/ { proxy_pass http://127.0.0.1:8000; proxy_set_header Via "1.1 nginx"; }',
  'with X-Real-IP alone':
    'location /agents/ { proxy_pass http://127.0.0.1:8000; proxy_set_header X-Real-IP $remote_addr; }',
  'with the public Host alone':
    'location /agents/ { proxy_pass http://127.0.0.1:8000; proxy_set_header Host agents.example; }',
  'with nothing but proxy_pass': 'location /agents/ { proxy_pass http://127.0.0.1:8000; }',
  'with an upstream of that name':
    'location /agents/ { proxy_pass http://127.0.0.1:8000; proxy_set_header Host localhost; }',
}

for (const [how, location] of Object.entries(MARKS)) {
  test(`without authorize a mount behind nginx ${how} refuses`, { skip }, async (t) => {
    const { origin, port } = await open(t, {}, location)
    const http = client(t, origin)
    for (const answer of [
      await http.get('/agents/api/runs'),
      await http.post('/agents/api/runs', { json: { goal: 'shell: true' } }),
    ]) {
      assert.equal(answer.statusCode, 403)
      assert.match((answer.json() as { code: string }).code, /^forbidden_(proxy|host)$/)
    }
    const socket = new WebSocket(
      `ws://127.0.0.1:${port}/agents/api/ws/01930000-0000-7000-8000-00000000ffff`,
    )
    socket.on('error', () => {})
    const [, response] = (await once(socket, 'unexpected-response')) as [
      unknown,
      { statusCode: number },
    ]
    assert.equal(response.statusCode, 403)
    socket.terminate()
  })
}
