/** The service behind a real nginx (Debian's package), set up as docs/mounting.md says. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { AsyncClient } from 'runwright/http'
import { bearerKeys } from 'runwright/server'
import { WebSocket } from 'ws'
import { missing } from '../programs.js'
import { openBrowser } from './browser.js'
import { assertWhole, readSse, type Event } from './proof.js'
import { openService, startProxy } from './reverse-proxies.js'

const KEY = 'a-key-behind-nginx-0001'
const skip = missing('nginx')

/** The nginx location in the guide. */
const guide = readFileSync(
  fileURLToPath(new URL('../../../docs/mounting.md', import.meta.url)),
  'utf8',
)
const LOCATION = /^```nginx\n(.*?)^```$/ms.exec(guide)?.[1] ?? ''

/** Starts a service behind nginx; resolves to the origin of nginx. */
async function open(t: TestContext): Promise<{ port: number; origin: string }> {
  const upstream = await openService(t, { authorize: bearerKeys({ ann: KEY }) })
  const port = await startProxy(t, 'nginx', LOCATION, upstream)
  return { port, origin: `http://127.0.0.1:${port}` }
}

function client(t: TestContext, origin: string): AsyncClient {
  const one = new AsyncClient({
    baseUrl: origin,
    trustEnv: false,
    timeout: null, // the test has one
    headers: { authorization: `Bearer ${KEY}` },
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
    const { origin, port } = await open(t)
    const http = client(t, origin)
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

test('behind nginx the dashboard starts a run in a real browser and follows it', { skip }, async (t) => {
  const { origin } = await open(t)
  const browser = await openBrowser(t)
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
